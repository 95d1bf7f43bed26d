// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the naive model of a state cache knows: whole prefixes with the id of
// their last page, and those with a checkpoint. It has no nodes.

#ifndef GDNRT_TEST_CACHE_DICTIONARY_H
#define GDNRT_TEST_CACHE_DICTIONARY_H

#include "gdnrt/state_cache.h"

#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace gdnrt::test {

/// The namespace, then tokens.
using Prefix = std::vector<int32_t>;

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

struct Checkpoint {
  /// 0: it is on the host.
  int32_t slot = 0, accepted = 0;
  double priority = 0;
  uint64_t use = 0;
  int locks = 0;
  uint64_t node = 0;
  /// What its memory holds.
  float value = 0;
};
/// A lock, and the end of its node.
struct Held {
  CacheLock lock;
  Prefix prefix;
};

template <typename... Pieces> void require(bool holds, const Pieces &...about) {
  if (holds)
    return;
  std::ostringstream text;
  (text << ... << about);
  throw std::runtime_error(text.str());
}
template <typename T> T need(Result<T> result) {
  require(result.isOk(), "refused: ", result.status().message());
  return *result;
}
inline void need(const Status &status) {
  require(status.isOk(), "refused: ", status.message());
}

/// Whether `longer` begins with `prefix`.
bool beginsWith(const Prefix &longer, const Prefix &prefix);

struct PrefixDictionary {
  int64_t pageTokens = 1;
  bool hasPages = true;
  std::map<Prefix, int64_t> pages;
  std::map<Prefix, Checkpoint> checkpoints;
  std::vector<Held> held;

  bool isKnown(const Prefix &prefix) const;
  bool isLocked(const Prefix &prefix) const;
  /// Whether the page is on the way to a checkpoint.
  bool serves(const Prefix &prefix) const;
  /// The tokens of the closest checkpoint ahead of a prefix.
  size_t tokensAbove(const Prefix &prefix) const;
  /// The one known prefix that is a page longer.
  Prefix onlyLonger(const Prefix &prefix) const;
  /// The order in which checkpoints in slots are evicted, or those on the host.
  std::vector<Prefix> order(bool onHost = false) const;
  /// The prefix of the checkpoint of a node.
  std::map<Prefix, Checkpoint>::iterator find(uint64_t node);
  /// Whether pages behind this one were just evicted.
  static bool wasCut(const Prefix &prefix, const std::set<Prefix> &removed);
};

} // namespace gdnrt::test

#endif // GDNRT_TEST_CACHE_DICTIONARY_H
