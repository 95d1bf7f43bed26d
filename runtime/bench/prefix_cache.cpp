// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host's time for a match, an insertion and an eviction of a state cache,
// and what they allocate: nothing.
//
//   gdnrt_prefix_cache_bench [--check] [--json]
//
// Trees are made of 1,000 prompts of 2,048 tokens, or fewer, from which
// branches of 1 to 4 times 64 tokens leave anywhere, so that a prompt passes
// many nodes. Each time is of one call, with another prompt than the calls
// before it. The insertions are of prompts that leave a known one; evictions
// are of as many pages as an insertion brings. --check exits with 1 if a match
// is slower than its limit, or anything allocates. It goes by the median of the
// quietest tenth of the calls, since other programs take turns in the
// processor's caches.

#include "counting_malloc.h"

#include "gdn-c/state_cache.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr int64_t kPrompt = 2048, kBranch = 64;

struct Case {
  int64_t nodes, pageTokens;
  bool isWide;
  /// Of a match; 0: none.
  double limitUs;
};
constexpr Case kCases[] = {
    {1000, 1, false, 20},  {100000, 1, false, 20},  {100000, 1, true, 20},
    {1000, 64, false, 5},  {100000, 16, false, 20}, {100000, 64, false, 5},
    {100000, 64, true, 5},
};

void require(gdnrt_status status, const gdnrt_error &error) {
  if (status == GDNRT_OK)
    return;
  std::fprintf(stderr, "%s\n", error.message);
  std::exit(1);
}

struct Times {
  std::vector<double> us;
  template <typename Work> void add(Work &&work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double, std::micro> took =
        std::chrono::steady_clock::now() - start;
    us.push_back(took.count());
  }
  /// The least of the medians of tenths. Before `at`, which sorts.
  double quietest() const {
    double least = us.front();
    const size_t tenth = us.size() / 10;
    for (size_t i = 0; i + tenth <= us.size(); i += tenth) {
      auto begin = us.begin() + static_cast<ptrdiff_t>(i);
      std::vector<double> some(begin, begin + static_cast<ptrdiff_t>(tenth));
      std::sort(some.begin(), some.end());
      least = i == 0 ? some[tenth / 2] : std::min(least, some[tenth / 2]);
    }
    return least;
  }
  double at(double part) {
    std::sort(us.begin(), us.end());
    return us[static_cast<size_t>(part * static_cast<double>(us.size() - 1))];
  }
};

using Tokens = std::vector<int32_t>;

/// A cache with a tree in it, and the prompts of its trunks.
class Tree {
public:
  Tree(gdnrt_state_pool *pool, const Case &size)
      : size_(size), random_(1), pages_(2 * kPrompt), free_(4 * kPrompt) {
    gdnrt_state_cache_options options = gdnrt_state_cache_options_default();
    options.page_tokens = size.pageTokens;
    options.max_nodes = size.nodes + 8;
    options.max_tokens = kPrompt * size.nodes / 10;
    options.has_pages = 1;
    require(gdnrt_state_cache_create(pool, &options, &cache_, &error_), error_);
    const int64_t numTrunks = std::min<int64_t>(1000, size.nodes / 20);
    for (int64_t i = 0; i < numTrunks; ++i) {
      Tokens trunk(kPrompt);
      for (int32_t &token : trunk)
        token = drawToken();
      insert(trunk);
      trunks_.push_back(std::move(trunk));
    }
    for (;;) {
      gdnrt_state_cache_info info = gdnrt_state_cache_info_default();
      require(gdnrt_state_cache_describe(cache_, &info, &error_), error_);
      if (info.num_nodes >= size.nodes)
        break;
      insert(drawBranch());
    }
  }
  ~Tree() { gdnrt_state_cache_destroy(cache_); }

  const Tokens &drawTrunk() { return trunks_[random_() % trunks_.size()]; }
  /// A prompt that leaves a trunk.
  Tokens drawBranch() {
    Tokens branch = drawTrunk();
    const uint64_t at = random_() % kPrompt;
    branch.resize(at / static_cast<uint64_t>(size_.pageTokens) *
                  static_cast<uint64_t>(size_.pageTokens));
    for (uint64_t more = kBranch * (1 + random_() % 4); more > 0; --more)
      branch.push_back(drawToken());
    return branch;
  }

  /// Returns the number of pages that were new.
  size_t insert(const Tokens &tokens) {
    give(tokens);
    return insertGiven();
  }
  size_t insertGiven() {
    gdnrt_cache_entry entry = gdnrt_cache_entry_default();
    entry.pages = pages_.data();
    entry.num_pages = given_.count / static_cast<size_t>(size_.pageTokens);
    for (size_t i = 0; i < entry.num_pages; ++i)
      pages_[i] = nextPage_++;
    gdnrt_cache_inserted done = gdnrt_cache_inserted_default();
    require(gdnrt_state_cache_insert(cache_, &given_, &entry, free_.data(),
                                     free_.size(), &done, &error_),
            error_);
    if (done.is_full)
      std::exit(1);
    return entry.num_pages - (done.num_free_pages - done.num_evicted_pages);
  }
  void evict(size_t count) {
    size_t evicted = 0;
    require(gdnrt_state_cache_evict_pages(cache_, static_cast<int64_t>(count),
                                          free_.data(), free_.size(), &evicted,
                                          &error_),
            error_);
  }
  int64_t matchGiven() {
    gdnrt_cache_match found = gdnrt_cache_match_default();
    require(gdnrt_state_cache_match(cache_, &given_, &found, &error_), error_);
    return found.known_tokens;
  }
  /// Makes tokens those of the next calls.
  void give(const Tokens &tokens) {
    narrow_ = tokens;
    wide_.assign(tokens.begin(), tokens.end());
    given_ = gdnrt_cache_tokens_default();
    given_.tokens =
        size_.isWide ? static_cast<const void *>(wide_.data()) : narrow_.data();
    given_.token_bytes = size_.isWide ? 8 : 4;
    given_.count = tokens.size();
  }

private:
  int32_t drawToken() { return static_cast<int32_t>(random_() % 150000); }

  Case size_;
  std::mt19937_64 random_;
  gdnrt_state_cache *cache_ = nullptr;
  gdnrt_error error_;
  std::vector<Tokens> trunks_;
  gdnrt_cache_tokens given_;
  Tokens narrow_;
  std::vector<int64_t> wide_, pages_, free_;
  int64_t nextPage_ = 0;
};

struct Printer {
  bool isJson;
  const char *separator = "[";
  void print(const char *what, const Case &size, Times &times, double limit,
             int64_t mallocs) {
    const double us = times.at(0.5), least = times.at(0), most = times.at(0.99);
    if (!isJson) {
      std::printf("%-7s %6lld nodes, pages of %2lld, i%s: %7.2f us (%.2f to "
                  "%.2f in 99 of 100), %lld allocations%s\n",
                  what, static_cast<long long>(size.nodes),
                  static_cast<long long>(size.pageTokens),
                  size.isWide ? "64" : "32", us, least, most,
                  static_cast<long long>(mallocs),
                  limit > 0 && us > limit ? ", too slow" : "");
      return;
    }
    std::printf(
        "%s{\"suite\": \"prefix-cache\", \"impl\": \"gdn\", \"config\": {"
        "\"variant\": \"%s\", \"nodes\": %lld, \"page_tokens\": %lld, "
        "\"tokens\": \"%s\"}, \"us\": %.3f, \"us_min\": %.3f, \"us_p99\": "
        "%.3f, \"mallocs\": %lld, \"limit_us\": %s}",
        separator, what, static_cast<long long>(size.nodes),
        static_cast<long long>(size.pageTokens),
        size.isWide ? "int64" : "int32", us, least, most,
        static_cast<long long>(mallocs),
        limit > 0 ? std::to_string(limit).c_str() : "null");
    separator = ",\n ";
  }
};

} // namespace

int main(int argc, char **argv) {
  bool checks = false;
  Printer printer{false};
  CLI::App app("The host's time for operations of a state cache");
  app.add_flag("--check", checks, "fail where a match is slow or allocates");
  app.add_flag("--json", printer.isJson, "print JSON");
  CLI11_PARSE(app, argc, argv);
  gdnrt_error error;
  gdnrt_device *device = nullptr;
  require(gdnrt_device_create_null(&device, &error), error);
  gdnrt_state_pool_options options = gdnrt_state_pool_options_default();
  options.num_layers = options.num_key_heads = options.num_value_heads = 1;
  options.key_dim = options.value_dim = options.num_requests = 1;
  options.conv_width = 2;
  gdnrt_state_pool *pool = nullptr;
  require(gdnrt_state_pool_create(device, &options, &pool, &error), error);
  bool isGood = true;
  for (const Case &size : kCases) {
    Tree tree(pool, size);
    constexpr int rounds = 2000;
    Times match, insert, evict;
    for (Times *times : {&match, &insert, &evict})
      times->us.reserve(rounds);
    int64_t mallocs = 0, before = 0;
    // Again if it was too slow: something else may have been running.
    for (int tries = 0; tries < 5; ++tries) {
      match.us.clear();
      for (int i = 0; i < rounds; ++i) {
        tree.give(tree.drawTrunk());
        before = numMallocs();
        match.add([&] { isGood &= tree.matchGiven() > 0; });
        mallocs += numMallocs() - before;
      }
      if (match.quietest() <= size.limitUs)
        break;
    }
    for (int i = 0; i < rounds; ++i) {
      tree.give(tree.drawBranch());
      size_t pages = 0;
      before = numMallocs();
      insert.add([&] { pages = tree.insertGiven(); });
      evict.add([&] { tree.evict(pages); });
      mallocs += numMallocs() - before;
    }
    isGood &= mallocs == 0 && match.quietest() <= size.limitUs;
    printer.print("match", size, match, size.limitUs, mallocs);
    printer.print("insert", size, insert, 0, mallocs);
    printer.print("evict", size, evict, 0, mallocs);
  }
  if (printer.isJson)
    std::printf("]\n");
  gdnrt_state_pool_destroy(pool);
  gdnrt_device_destroy(device);
  return checks && !isGood ? 1 : 0;
}
