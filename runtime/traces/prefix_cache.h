// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The state cache of a scheduler: which states it owns, what the model knows of
// each, and which page ids it has. Every token is a page.

#ifndef GDNRT_TRACES_PREFIX_CACHE_H
#define GDNRT_TRACES_PREFIX_CACHE_H

#include "gdn-c/state_cache.h"
#include "state.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace gdnrt::traces {

class PrefixCache {
public:
  /// `tier` is where states go that lose their slots, if the trace says so.
  PrefixCache(gdnrt_state_pool *pool, gdnrt_host_tier *tier, const Trace &trace,
              Coverage &coverage);
  ~PrefixCache() { gdnrt_state_cache_destroy(cache_); }
  PrefixCache(const PrefixCache &) = delete;
  PrefixCache &operator=(const PrefixCache &) = delete;

  /// Whether its slots are those for requests.
  bool ownsRequests() const { return ownsRequests_; }
  /// The states that it owns.
  std::map<uint64_t, Kept> &kept() { return kept_; }

  /// Locks the longest prefix with a state, and brings it back from the host;
  /// null if there is none, or no slot for it.
  Kept *start(const std::vector<uint64_t> &tokens, gdnrt_cache_lock &lock);
  void unlockSlot(gdnrt_cache_lock &lock);
  void unlock(gdnrt_cache_lock &lock);
  /// Takes slots of its kind; false if too few are free, or could be.
  bool takeSlots(size_t count, bool zero, int32_t *slots);
  /// After how many of the tokens prefill should keep states.
  std::vector<int64_t> positions(const std::vector<uint64_t> &tokens,
                                 size_t done, size_t count);
  /// Inserts all tokens that a state has seen, with the slot that has it. False
  /// if there was one, or no room: the slot is the caller's still. `lock`, if
  /// there is one, becomes that of the node.
  bool insert(const Known &known, int32_t slot, gdnrt_cache_lock *lock);
  /// Evicts, copies ahead, or changes a priority, as `seed` says.
  void disturb(uint64_t seed);
  /// Makes room for one state in the host tier, if it can.
  void giveHostSlot();
  /// The host slots that it has.
  int64_t numHostCopies() const;
  /// Fails if the cache contradicts itself or the model.
  void audit() const;
  /// Evicts all; no lock may be left.
  void clear();

private:
  gdnrt_state_cache_info describe() const;
  /// The state of a node that leaves a slot, or the host if that is 0.
  Kept *leaving(uint64_t node, int64_t tokens, int32_t slot);
  gdnrt_cache_tokens give(const std::vector<uint64_t> &tokens, size_t count);
  void free(const int64_t *pages, size_t count);

  gdnrt_state_cache *cache_ = nullptr;
  gdnrt_host_tier *tier_ = nullptr;
  Coverage &coverage_;
  bool ownsRequests_;
  std::map<uint64_t, Kept> kept_;
  /// The page ids that the cache has.
  std::set<int64_t> pages_;
  int64_t nextPage_ = 0;
  std::vector<int64_t> ids_, given_, freed_;
  /// What went wrong where nothing can be thrown.
  std::string wrong_;
};

} // namespace gdnrt::traces

#endif // GDNRT_TRACES_PREFIX_CACHE_H
