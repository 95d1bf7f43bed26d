// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The model of a state cache. It knows no nodes: which pages an eviction takes
// is checked by what has to hold of them, all else is predicted.

#include "cache_model.h"

#include "cache_dictionary.h"
#include "gdnrt/cpu_device.h"
#include "gdnrt/state_cache.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

struct Gone {
  uint64_t node;
  int64_t tokens;
  int32_t slot;
};

class Trace {
public:
  Trace(uint64_t seed, CacheCoverage &coverage)
      : random_(seed), coverage_(coverage) {
    StatePoolShape shape;
    shape.numLayers = shape.keyHeads = shape.valueHeads = 1;
    shape.keyDim = shape.valueDim = 1;
    shape.numRequests = draw(1, 12);
    pool_ = std::move(
        *StatePool::make(*createCpuDevice(1), shape, StatePoolOptions()));
    const int64_t sizes[] = {1, 1, 2, 3, 16, 64, 65};
    options_.pageTokens = page_ = sizes[draw(0, 6)];
    options_.maxNodes = draw(2, 40);
    options_.maxTokens = page_ * draw(4, 120);
    options_.hasPages = draw(0, 3) != 0;
    known_.pageTokens = page_;
    known_.hasPages = options_.hasPages;
    options_.context = this;
    options_.evicted = [](void *trace, uint64_t node, int64_t tokens,
                          int32_t slot) {
      static_cast<Trace *>(trace)->gone_.push_back({node, tokens, slot});
    };
    cache_ = std::move(*StateCache::make(*pool_, options_));
    numTokenKinds_ = draw(1, 3);
    longest_ = draw(2, 14);
  }

  void play() {
    for (int step = 0; step < 60; ++step) {
      perform();
      need(auditCache(*cache_));
      checkAll();
      ++coverage_.steps;
    }
    while (!known_.held.empty())
      unlock(known_.held.size() - 1);
    evictCheckpoints(1000);
    evictPages(1000, 1000);
    need(auditCache(*cache_));
    require(cache_->describe().numNodes == 0, "nodes are left");
    require(pool_->numInUse(SlotKind::request) == 0, "slots are left");
  }

private:
  int64_t draw(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(
                       random_() % static_cast<uint64_t>(most - least + 1));
  }

  void perform() {
    switch (draw(0, 11)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return insert();
    case 4:
    case 5:
      return lock();
    case 6:
      return known_.held.empty()
                 ? insert()
                 : unlock(size_t(draw(0, 1000)) % known_.held.size());
    case 7:
      return evictCheckpoints(draw(0, 3));
    case 8: {
      const int64_t count = draw(0, 12);
      return evictPages(count, size_t(count + draw(0, 12)));
    }
    case 9:
      return takeSlots();
    case 10:
      return setPriority();
    default:
      return draw(0, 1) ? drop() : unlockSlot();
    }
  }

  /// A prompt, as the cache and as the model have it.
  struct Prompt {
    Prefix prefix;
    std::vector<int64_t> wide;
    CacheNamespace space;
    bool isWide;
    TokenSpan span(size_t tokens) const {
      const auto size = static_cast<int64_t>(tokens);
      return isWide ? TokenSpan{wide.data(), size, true}
                    : TokenSpan{prefix.data() + 1, size, false};
    }
    size_t size() const { return wide.size(); }
    Prefix head(size_t tokens) const {
      return Prefix(prefix.begin(), prefix.begin() + 1 + ptrdiff_t(tokens));
    }
  };
  Prompt drawPrompt() {
    Prompt prompt;
    prompt.isWide = draw(0, 1);
    const auto space = static_cast<int32_t>(draw(0, 7) == 0);
    prompt.prefix.push_back(space);
    prompt.space.adapter = static_cast<uint64_t>(space);
    const int64_t pages = draw(0, longest_);
    for (int64_t p = 0; p < pages; ++p) {
      // Pages are of few kinds, some of which differ in their last token alone.
      const auto kind = static_cast<int32_t>(draw(0, numTokenKinds_));
      for (int64_t t = 0; t < page_; ++t)
        prompt.prefix.push_back(t == page_ - 1 ? kind : kind / 2);
    }
    for (int64_t t = draw(0, page_ - 1); t > 0; --t)
      prompt.prefix.push_back(0);
    prompt.wide.assign(prompt.prefix.begin() + 1, prompt.prefix.end());
    return prompt;
  }

  /// The longest prefix in whole pages that the model knows.
  size_t knownTokens(const Prompt &prompt) const {
    size_t known = 0;
    const auto page = static_cast<size_t>(page_);
    while (known + page <= prompt.size() &&
           known_.isKnown(prompt.head(known + page)))
      known += page;
    return known;
  }
  CacheMatch match(const Prompt &prompt) {
    const CacheMatch found =
        cache_->match(prompt.space, prompt.span(prompt.size()));
    const size_t known = knownTokens(prompt);
    require(found.knownTokens == static_cast<int64_t>(known),
            "known: expected ", known, ", got ", found.knownTokens);
    size_t best = prompt.size();
    while (best > 0 && !known_.checkpoints.count(prompt.head(best)))
      --best;
    require(found.tokens == static_cast<int64_t>(best), "match: expected ",
            best, ", got ", found.tokens);
    require((found.node != 0) == (best > 0), "a node of nothing");
    if (best > 0) {
      const Checkpoint &kept = known_.checkpoints.at(prompt.head(best));
      require(found.slot == kept.slot && found.accepted == kept.accepted,
              "slot: expected ", kept.slot, ", got ", found.slot);
      ++coverage_.hits;
    }
    if (options_.hasPages && known > 0) {
      std::vector<int64_t> ids(known / size_t(page_));
      need(cache_->pages(found.knownNode, int64_t(known), ids.data(),
                         ids.size()));
      for (size_t i = 0; i < ids.size(); ++i)
        require(ids[i] == known_.pages.at(prompt.head((i + 1) * size_t(page_))),
                "page ", i, " is another");
    }
    return found;
  }

  void insert() {
    Prompt prompt = drawPrompt();
    CacheEntry entry;
    int32_t slot = 0;
    if (draw(0, 2) || !options_.hasPages) {
      if (prompt.size() < size_t(page_) ||
          !*pool_->allocate(SlotKind::request, 1, &slot, false, nullptr))
        return;
      const size_t whole = prompt.size() - prompt.size() % size_t(page_);
      prompt.prefix.resize(1 + whole);
      prompt.wide.resize(whole);
      entry.slot = slot;
      entry.accepted = static_cast<int32_t>(draw(0, 4));
    }
    const size_t known = knownTokens(prompt);
    const size_t whole = prompt.size() / size_t(page_);
    std::vector<int64_t> given(options_.hasPages ? whole : 0);
    std::multiset<int64_t> duplicates;
    for (size_t i = 0; i < given.size(); ++i) {
      given[i] = nextPage_++;
      if (i >= known / size_t(page_))
        continue;
      const int64_t there =
          known_.pages.at(prompt.head((i + 1) * size_t(page_)));
      if (draw(0, 1))
        given[i] = there;
      else
        duplicates.insert(given[i]);
    }
    entry.pages = given.data();
    entry.numPages = given.size();
    std::vector<int64_t> freed(given.size() + size_t(draw(0, 3) * draw(0, 20)));
    gone_.clear();
    const CacheInserted done =
        need(cache_->insert(prompt.space, prompt.span(prompt.size()), entry,
                            freed.data(), freed.size()));
    ++use_;
    require(done.numFreePages <= freed.size(), "more pages than fit");
    const auto evicted = freed.begin() + ptrdiff_t(done.numEvictedPages);
    inserting_ = prompt.head(known);
    removePages({freed.begin(), evicted}, done.numEvictedPages,
                !options_.hasPages);
    inserting_.clear();
    require(done.numEvictedCheckpoints == int64_t(gone_.size()),
            "evicted checkpoints");
    coverage_.madeRoom += !gone_.empty() || done.numEvictedPages > 0;
    coverage_.full += done.isFull;
    if (done.isFull || whole == 0) {
      require(done.node == 0 && !done.slotTaken, "nothing has a node");
      require(done.numFreePages == done.numEvictedPages, "duplicates of none");
      if (slot != 0)
        need(pool_->free(&slot, 1, nullptr));
      return;
    }
    ++coverage_.inserted;
    require(done.knownTokens == int64_t(known), "inserted: known ", known,
            ", got ", done.knownTokens);
    const std::multiset<int64_t> reported(
        evicted, freed.begin() + ptrdiff_t(done.numFreePages));
    require(reported == duplicates, "duplicates");
    coverage_.duplicates += duplicates.size();
    for (size_t i = known / size_t(page_); i < given.size(); ++i)
      known_.pages[prompt.head((i + 1) * size_t(page_))] = given[i];
    const bool isNew = slot != 0 && !known_.checkpoints.count(prompt.prefix);
    require(done.slotTaken == isNew, "slot taken: expected ", isNew);
    if (isNew)
      known_.checkpoints[prompt.prefix] = {slot, entry.accepted, 0, use_, 0};
    else if (slot != 0) {
      known_.checkpoints[prompt.prefix].use = use_;
      need(pool_->free(&slot, 1, nullptr));
    }
    require(match(prompt).knownNode == done.node, "another node");
  }

  void lock() {
    const Prompt prompt = drawPrompt();
    const CacheMatch found = match(prompt);
    const bool isState = draw(0, 2) != 0;
    const uint64_t node = isState ? found.node : found.knownNode;
    if (node == 0)
      return;
    const CacheNodeInfo info = need(cache_->node(node));
    // The node may have more tokens than the prompt: the model has one way on.
    Prefix prefix =
        prompt.head(size_t(isState ? found.tokens : found.knownTokens));
    while (prefix.size() - 1 < size_t(info.tokens))
      prefix = known_.onlyLonger(prefix);
    require(prefix.size() - 1 == size_t(info.tokens), "the end of a node");
    auto kept = known_.checkpoints.find(prefix);
    const int32_t slot =
        kept == known_.checkpoints.end() ? 0 : kept->second.slot;
    require(info.slot == slot, "the slot of a node");
    require(info.tokensAbove == int64_t(known_.tokensAbove(prefix)),
            "tokens above");
    Held held{need(cache_->lock(node)), prefix};
    require(held.lock.slot == slot, "locked slot: expected ", slot, ", got ",
            held.lock.slot);
    if (slot != 0)
      ++kept->second.locks;
    known_.held.push_back(std::move(held));
    ++coverage_.locks;
  }
  void giveUpSlot(Held &held) {
    if (held.lock.slot == 0)
      return;
    Checkpoint &kept = known_.checkpoints.at(held.prefix);
    kept.use = ++use_;
    --kept.locks;
  }
  void unlockSlot() {
    if (known_.held.empty())
      return;
    Held &held = known_.held[size_t(draw(0, 1000)) % known_.held.size()];
    giveUpSlot(held);
    need(cache_->unlockSlot(held.lock));
    require(held.lock.slot == 0, "a slot that was given up");
  }
  void unlock(size_t index) {
    giveUpSlot(known_.held[index]);
    need(cache_->unlock(known_.held[index].lock));
    known_.held.erase(known_.held.begin() + ptrdiff_t(index));
  }

  void setPriority() {
    const CacheMatch found = match(drawPrompt());
    if (found.node == 0)
      return;
    const auto priority = static_cast<double>(draw(-2, 2));
    need(cache_->setPriority(found.node, priority));
    for (auto &[prefix, kept] : known_.checkpoints)
      if (kept.slot == found.slot)
        kept.priority = priority;
  }
  void drop() {
    const CacheMatch found = match(drawPrompt());
    if (found.node == 0)
      return;
    auto kept = std::find_if(
        known_.checkpoints.begin(), known_.checkpoints.end(),
        [&](const auto &each) { return each.second.slot == found.slot; });
    const bool isLocked = kept->second.locks > 0;
    require(cache_->drop(found.node).isOk() != isLocked, "drop");
    if (!isLocked)
      known_.checkpoints.erase(kept);
  }

  void expectGone(size_t count) {
    const std::vector<Prefix> expected = known_.order();
    count = std::min(count, expected.size());
    require(gone_.size() == count, "evicted: expected ", count, ", got ",
            gone_.size());
    for (size_t i = 0; i < count; ++i) {
      require(gone_[i].slot == known_.checkpoints.at(expected[i]).slot,
              "the wrong checkpoint was evicted");
      require(gone_[i].tokens == int64_t(expected[i].size() - 1), "its tokens");
      known_.checkpoints.erase(expected[i]);
    }
    coverage_.evictedCheckpoints += count;
  }
  void evictCheckpoints(int64_t count) {
    gone_.clear();
    const int64_t evicted = need(cache_->evictCheckpoints(count));
    expectGone(size_t(count));
    require(evicted == int64_t(gone_.size()), "the count of evicted");
  }
  void takeSlots() {
    const auto count = size_t(draw(0, 3));
    const auto free = size_t(pool_->numFree(SlotKind::request));
    std::vector<int32_t> slots(count);
    gone_.clear();
    const size_t unlocked = known_.order().size();
    const bool taken = need(cache_->takeSlots(count, slots.data(), false));
    require(taken == (count <= free + unlocked), "slots taken: ", taken);
    expectGone(taken && count > free ? count - free : 0);
    if (taken && count > 0)
      need(pool_->free(slots.data(), count, nullptr));
  }

  void evictPages(int64_t count, size_t capacity) {
    std::vector<int64_t> ids(capacity);
    gone_.clear();
    size_t unlocked = 0;
    for (const auto &[prefix, id] : known_.pages)
      unlocked += !known_.isLocked(prefix);
    const size_t evicted =
        need(cache_->evictPages(count, ids.data(), capacity));
    if (options_.hasPages) {
      require(evicted >= std::min(size_t(count), unlocked) &&
                  evicted <= capacity,
              "evicted pages: ", evicted, " of ", unlocked);
      ids.resize(evicted);
      removePages(ids, evicted, false);
    } else {
      removePages({}, 0, true);
    }
  }
  /// Takes evicted pages, and the checkpoints that went with them, out of the
  /// model.
  void removePages(const std::vector<int64_t> &ids, size_t count,
                   bool anyCheckpoint) {
    std::set<int64_t> evicted(ids.begin(), ids.end());
    require(evicted.size() == count, "a page was evicted twice");
    std::set<Prefix> removed;
    for (auto each = known_.pages.begin(); each != known_.pages.end();) {
      if (!evicted.count(each->second)) {
        ++each;
        continue;
      }
      require(!known_.isLocked(each->first), "a locked page was evicted");
      removed.insert(each->first);
      each = known_.pages.erase(each);
    }
    require(removed.size() == count, "a page was evicted that is not there");
    for (const auto &[prefix, id] : known_.pages) {
      const Prefix shorter(prefix.begin(), prefix.end() - page_);
      require(shorter.size() == 1 || known_.pages.count(shorter),
              "a page was evicted ahead of one that is kept");
    }
    std::set<int32_t> slots;
    for (const Gone &each : gone_)
      slots.insert(each.slot);
    for (auto kept = known_.checkpoints.begin();
         kept != known_.checkpoints.end();) {
      const bool isGone = slots.count(kept->second.slot) > 0;
      require(isGone || !removed.count(kept->first),
              "a checkpoint is left without its pages");
      require(!isGone || anyCheckpoint || removed.count(kept->first),
              "a checkpoint went without its pages");
      require(!isGone || kept->second.locks == 0,
              "a locked checkpoint was evicted");
      kept = isGone ? known_.checkpoints.erase(kept) : std::next(kept);
    }
    // Nobody can start behind these, so they go before any checkpoint.
    if (!gone_.empty() && !anyCheckpoint)
      for (const auto &[prefix, id] : known_.pages)
        require(known_.isLocked(prefix) || known_.serves(prefix) ||
                    PrefixDictionary::wasCut(prefix, removed) ||
                    isInserting(prefix),
                "pages of a checkpoint went ahead of pages of none");
    coverage_.evictedPages += count;
    coverage_.evictedCheckpoints += gone_.size();
  }
  /// Whether the page is of the prefix that room is made for, or may be of the
  /// node in which that ends.
  bool isInserting(const Prefix &prefix) const {
    const size_t both = std::min(prefix.size(), inserting_.size());
    return both > 0 &&
           std::equal(prefix.begin(), prefix.begin() + ptrdiff_t(both),
                      inserting_.begin());
  }

  void checkAll() {
    const StateCacheInfo info = cache_->describe();
    require(info.numCheckpoints == int64_t(known_.checkpoints.size()),
            "checkpoints");
    require(pool_->numInUse(SlotKind::request) == info.numCheckpoints,
            "a slot leaks");
    require(info.numTokens <= info.maxTokens && info.numNodes <= info.maxNodes,
            "more than fits");
    if (options_.hasPages)
      require(info.numTokens == int64_t(known_.pages.size()) * page_,
              "tokens: ", info.numTokens, " for ", known_.pages.size(),
              " pages");
    (void)match(drawPrompt());
  }

  std::mt19937_64 random_;
  CacheCoverage &coverage_;
  std::unique_ptr<StatePool> pool_;
  StateCacheOptions options_;
  std::unique_ptr<StateCache> cache_;
  int64_t page_ = 1, numTokenKinds_ = 1, longest_ = 1, nextPage_ = 0;
  uint64_t use_ = 0;
  PrefixDictionary known_;
  std::vector<Gone> gone_;
  /// What is known of the prefix that is being inserted.
  Prefix inserting_;
};

} // namespace

std::string gdnrt::test::playCacheTrace(uint64_t seed,
                                        CacheCoverage &coverage) {
  try {
    Trace(seed, coverage).play();
  } catch (const std::runtime_error &error) {
    return "trace " + std::to_string(seed) + ": " + error.what();
  }
  return {};
}
