// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls of the C ABI of state caches, with checks of what they return.

#include "prefix_cache.h"

#include "failed.h"

#include <algorithm>

using namespace gdnrt::traces;

/// Small enough that it is full now and then.
static constexpr int64_t kMaxNodes = 24, kMaxTokens = 600;

PrefixCache::PrefixCache(gdnrt_state_pool *pool, gdnrt_host_tier *tier,
                         const Trace &trace, Coverage &coverage)
    : tier_(trace.hostCopies > 0 ? tier : nullptr), coverage_(coverage),
      ownsRequests_(trace.numTrack == 0), freed_(2 * kMaxTokens) {
  gdnrt_state_cache_options options = gdnrt_state_cache_options_default();
  options.page_tokens = 1;
  options.max_nodes = kMaxNodes;
  options.max_tokens = kMaxTokens;
  options.has_pages = 1;
  options.slot_kind = ownsRequests_ ? GDNRT_SLOT_REQUEST : GDNRT_SLOT_TRACK;
  options.context = this;
  options.evicted = [](void *context, uint64_t node, int64_t tokens,
                       int32_t slot) {
    auto &self = *static_cast<PrefixCache *>(context);
    if (self.leaving(node, tokens, slot))
      self.kept_.erase(node);
  };
  gdnrt_error error;
  if (tier_) {
    gdnrt_host_tier_info info = gdnrt_host_tier_info_default();
    check(gdnrt_host_tier_describe(tier_, &info, &error), error);
    options.host_tier = tier_;
    options.host_bytes =
        static_cast<uint64_t>(trace.hostCopies) * info.slot_bytes;
    options.host_min_tokens = trace.hostMinTokens;
    options.moved = [](void *context, uint64_t node, int64_t tokens,
                       int32_t slot, int32_t) {
      auto &self = *static_cast<PrefixCache *>(context);
      if (Kept *kept = self.leaving(node, tokens, slot))
        kept->slot = 0;
      ++self.coverage_.moved;
    };
  }
  check(gdnrt_state_cache_create(pool, &options, &cache_, &error), error);
}

Kept *PrefixCache::leaving(uint64_t node, int64_t tokens, int32_t slot) {
  auto found = kept_.find(node);
  if (found != kept_.end() && found->second.slot == slot &&
      found->second.known.done == static_cast<size_t>(tokens))
    return &found->second;
  wrong_ = "slot " + std::to_string(slot) + " was evicted, which is not of " +
           "node " + std::to_string(node);
  return nullptr;
}

gdnrt_cache_tokens PrefixCache::give(const std::vector<uint64_t> &tokens,
                                     size_t count) {
  ids_.clear();
  for (size_t i = 0; i < count; ++i)
    ids_.push_back(static_cast<int64_t>(tokens[i] & 0x7fffffff));
  gdnrt_cache_tokens given = gdnrt_cache_tokens_default();
  given.tokens = ids_.data();
  given.token_bytes = 8;
  given.count = count;
  return given;
}

Kept *PrefixCache::start(const std::vector<uint64_t> &tokens,
                         gdnrt_cache_lock &lock) {
  gdnrt_error error;
  // One token is left to be computed.
  gdnrt_cache_tokens given = give(tokens, tokens.size() - 1);
  gdnrt_cache_match match = gdnrt_cache_match_default();
  check(gdnrt_state_cache_match(cache_, &given, &match, &error), error);
  if (match.node == 0)
    return nullptr;
  check(gdnrt_state_cache_lock(cache_, match.node, &lock, &error), error);
  auto found = kept_.find(match.node);
  if (lock.on_host && found != kept_.end() && found->second.slot == 0) {
    int32_t fetched = 0;
    check(gdnrt_state_cache_fetch(cache_, &lock, &fetched, &error), error);
    if (!fetched) {
      unlock(lock);
      return nullptr;
    }
    check(gdnrt_host_tier_wait(tier_, &lock.slot, 1, nullptr, &error), error);
    found->second.slot = lock.slot;
    ++coverage_.fetched;
  }
  if (found == kept_.end() || found->second.slot != lock.slot ||
      found->second.known.done != static_cast<size_t>(match.tokens))
    throw Failed("a match of " + std::to_string(match.tokens) +
                 " tokens in "
                 "slot " +
                 std::to_string(lock.slot) + ", where none is kept");
  return &found->second;
}

void PrefixCache::unlockSlot(gdnrt_cache_lock &lock) {
  gdnrt_error error;
  check(gdnrt_state_cache_unlock_slot(cache_, &lock, &error), error);
}

void PrefixCache::unlock(gdnrt_cache_lock &lock) {
  gdnrt_error error;
  check(gdnrt_state_cache_unlock(cache_, &lock, &error), error);
}

bool PrefixCache::takeSlots(size_t count, bool zero, int32_t *slots) {
  gdnrt_error error;
  int32_t taken = 0;
  check(
      gdnrt_state_cache_take_slots(cache_, count, zero, slots, &taken, &error),
      error);
  return taken != 0;
}

std::vector<int64_t> PrefixCache::positions(const std::vector<uint64_t> &tokens,
                                            size_t done, size_t count) {
  gdnrt_error error;
  gdnrt_state_cache_policy policy = gdnrt_state_cache_policy_default();
  check(gdnrt_state_cache_policy_recommended(&policy, &error), error);
  policy.block_tokens = 64;
  gdnrt_cache_piece piece = gdnrt_cache_piece_default();
  piece.done = static_cast<int64_t>(done);
  piece.count = static_cast<int64_t>(count);
  gdnrt_cache_tokens given = give(tokens, tokens.size());
  std::vector<int64_t> found(64);
  size_t size = 0;
  check(gdnrt_state_cache_checkpoints_to_take(cache_, &given, &policy, &piece,
                                              found.data(), found.size(), &size,
                                              &error),
        error);
  found.resize(size);
  return found;
}

bool PrefixCache::insert(const Known &known, int32_t slot,
                         gdnrt_cache_lock *lock) {
  gdnrt_error error;
  gdnrt_cache_tokens tokens = give(known.tokens, known.done);
  given_.clear();
  for (size_t i = 0; i < known.done; ++i) {
    pages_.insert(nextPage_);
    given_.push_back(nextPage_++);
  }
  gdnrt_cache_entry entry = gdnrt_cache_entry_default();
  entry.pages = given_.data();
  entry.num_pages = given_.size();
  entry.slot = slot;
  entry.num_accepted = known.pending;
  gdnrt_cache_inserted done = gdnrt_cache_inserted_default();
  freed_.resize(std::max(freed_.size(), given_.size() + kMaxTokens));
  check(gdnrt_state_cache_insert(cache_, &tokens, &entry, freed_.data(),
                                 freed_.size(), &done, &error),
        error);
  free(freed_.data(), done.num_free_pages);
  if (done.is_full) {
    free(given_.data(), given_.size());
    return false;
  }
  if (done.slot_taken) {
    Kept &kept = kept_[done.node];
    kept = {known, slot};
    kept.known.tokens.resize(known.done);
  }
  if (lock) {
    gdnrt_cache_lock longer = gdnrt_cache_lock_default();
    check(gdnrt_state_cache_lock(cache_, done.node, &longer, &error), error);
    unlock(*lock);
    *lock = longer;
  }
  return done.slot_taken != 0;
}

void PrefixCache::free(const int64_t *pages, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (pages_.erase(pages[i]) == 0)
      throw Failed("page " + std::to_string(pages[i]) + " was freed twice");
}

void PrefixCache::disturb(uint64_t seed) {
  gdnrt_error error;
  int64_t evicted = 0;
  size_t count = 0;
  switch (tier_ ? seed % 6 : seed % 4) {
  case 0:
    check(gdnrt_state_cache_evict_checkpoints(cache_, 1, &evicted, &error),
          error);
    return;
  case 1:
    check(gdnrt_state_cache_evict_pages(
              cache_, static_cast<int64_t>(seed / 4 % 20), freed_.data(),
              freed_.size(), &count, &error),
          error);
    return free(freed_.data(), count);
  case 4:
    return check(
        gdnrt_state_cache_copy_ahead(cache_, static_cast<int64_t>(seed / 8 % 4),
                                     &evicted, &error),
        error);
  case 5:
    return giveHostSlot();
  default:
    if (kept_.empty())
      return;
    auto chosen = std::next(
        kept_.begin(), static_cast<std::ptrdiff_t>(seed / 4 % kept_.size()));
    check(gdnrt_state_cache_set_priority(cache_, chosen->first,
                                         static_cast<double>(seed / 64 % 3),
                                         &error),
          error);
  }
}

void PrefixCache::audit() const {
  if (!wrong_.empty())
    throw Failed(wrong_);
  gdnrt_error error;
  check(gdnrt_state_cache_audit(cache_, &error), error);
  const gdnrt_state_cache_info info = describe();
  const auto all = static_cast<int64_t>(kept_.size());
  const auto onHost = static_cast<int64_t>(
      std::count_if(kept_.begin(), kept_.end(),
                    [](const auto &each) { return each.second.slot == 0; }));
  if (info.num_checkpoints != all - onHost || info.num_on_host != onHost ||
      info.num_tokens != static_cast<int64_t>(pages_.size()))
    throw Failed("the cache has " + std::to_string(info.num_checkpoints) +
                 " states, " + std::to_string(info.num_on_host) +
                 " on the host and " + std::to_string(info.num_tokens) +
                 " tokens, the scheduler " + std::to_string(all - onHost) +
                 ", " + std::to_string(onHost) + " and " +
                 std::to_string(pages_.size()));
}

gdnrt_state_cache_info PrefixCache::describe() const {
  gdnrt_error error;
  gdnrt_state_cache_info info = gdnrt_state_cache_info_default();
  check(gdnrt_state_cache_describe(cache_, &info, &error), error);
  return info;
}

int64_t PrefixCache::numHostCopies() const {
  return describe().num_host_copies;
}

void PrefixCache::giveHostSlot() {
  gdnrt_error error;
  int64_t evicted = 0;
  check(gdnrt_state_cache_evict_host(cache_, 1, &evicted, &error), error);
}

void PrefixCache::clear() {
  gdnrt_error error;
  size_t count = 0;
  check(gdnrt_state_cache_evict_pages(cache_, kMaxTokens, freed_.data(),
                                      freed_.size(), &count, &error),
        error);
  free(freed_.data(), count);
  if (!pages_.empty() || !kept_.empty())
    throw Failed("the cache has locks that nobody holds");
}
