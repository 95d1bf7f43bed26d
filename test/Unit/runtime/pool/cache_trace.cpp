// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Steps of a trace between slots and the host. Which copies there are of what
// is in a slot is not predicted; what is on the host alone is.

#include "cache_trace.h"

#include <algorithm>

using namespace gdnrt;
using namespace gdnrt::test;

void CacheTrace::expectGone(size_t count) {
  const std::vector<Prefix> expected = known_.order();
  count = std::min(count, expected.size());
  size_t left = 0;
  for (const Gone &each : gone_) {
    if (each.slot == 0) {
      expectLeavesHost(each);
      continue;
    }
    require(left < count, "evicted: expected ", count, ", got more");
    auto kept = known_.find(each.node);
    require(kept != known_.checkpoints.end() && kept->first == expected[left++],
            "the wrong checkpoint was evicted");
    require(each.tokens == int64_t(kept->first.size() - 1), "its tokens");
    const bool pays = each.tokens - int64_t(known_.tokensAbove(kept->first)) >=
                      options_.hostMinTokens;
    require(each.isMoved || !tier_ || !pays ||
                cache_->describe().numHostCopies == maxCopies_,
            "it was not moved, and there was room");
    coverage_.moved += each.isMoved;
    if (each.isMoved)
      kept->second.slot = 0;
    else
      known_.checkpoints.erase(kept);
  }
  require(left == count, "evicted: expected ", count, ", got ", left);
  coverage_.evictedCheckpoints += count;
}

void CacheTrace::expectLeavesHost(const Gone &gone) {
  const std::vector<Prefix> order = known_.order(/*onHost=*/true);
  auto kept = known_.find(gone.node);
  require(!order.empty() && kept != known_.checkpoints.end() &&
              kept->first == order[0],
          "the wrong checkpoint left the host");
  known_.checkpoints.erase(kept);
  ++coverage_.leftHost;
}

void CacheTrace::copyAhead(int64_t count) {
  gone_.clear();
  const int64_t copied = need(cache_->copyAhead(count));
  expectGone(0);
  require(copied <= count, "copied ahead: ", copied);
}

void CacheTrace::evictHost(int64_t count) {
  gone_.clear();
  const int64_t before = cache_->describe().numHostCopies;
  const int64_t evicted = need(cache_->evictHost(count));
  require(cache_->describe().numHostCopies == before - evicted,
          "copies that left the host");
  expectGone(0);
}

void CacheTrace::fetch() {
  const std::vector<Prefix> onHost = known_.order(/*onHost=*/true);
  if (!onHost.empty() && draw(0, 1)) {
    const Prefix &prefix = onHost[size_t(draw(0, 1000)) % onHost.size()];
    Checkpoint &kept = known_.checkpoints.at(prefix);
    known_.held.push_back({need(cache_->lock(kept.node)), prefix});
    require(known_.held.back().lock.isOnHost, "a lock of the host");
    ++kept.locks;
  }
  if (known_.held.empty())
    return;
  auto found =
      std::find_if(known_.held.begin(), known_.held.end(),
                   [](const Held &each) { return each.lock.isOnHost; });
  Held &held = found == known_.held.end() ? known_.held.back() : *found;
  if (!held.lock.isOnHost)
    return require(need(cache_->fetch(held.lock)), "a lock of no host slot");
  auto slotOf = [&] { return known_.checkpoints.at(held.prefix).slot; };
  const bool mustLoad = slotOf() == 0;
  const bool mustEvict = mustLoad && pool_->numFree(SlotKind::request) == 0;
  const bool canFetch = !mustEvict || !known_.order().empty();
  gone_.clear();
  require(need(cache_->fetch(held.lock)) == canFetch, "fetched: expected ",
          canFetch);
  expectGone(mustEvict && canFetch);
  if (!canFetch)
    return;
  Checkpoint &kept = known_.checkpoints.at(held.prefix);
  if (mustLoad) {
    kept.slot = held.lock.slot;
    kept.use = ++use_;
    ++coverage_.fetched;
  }
  require(!held.lock.isOnHost && held.lock.slot == kept.slot &&
              held.lock.accepted == kept.accepted,
          "the slot of what was fetched");
}
