// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The model of a state cache. It knows no nodes: which pages an eviction takes
// is checked by what has to hold of them, all else is predicted.

#include "cache_model.h"

#include "cache_trace.h"
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

class Trace : CacheTrace {
public:
  Trace(uint64_t seed, CacheCoverage &coverage) : CacheTrace(seed, coverage) {
    StatePoolShape shape;
    shape.numLayers = shape.keyHeads = shape.valueHeads = 1;
    shape.keyDim = shape.valueDim = 1;
    shape.numRequests = draw(1, 12);
    pool_ = std::move(
        *StatePool::make(*createCpuDevice(1), shape, StatePoolOptions()));
    states_ = *pool_->view(PoolBuffer::state, 0);
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
      static_cast<Trace *>(trace)->gone_.push_back({node, tokens, slot, false});
    };
    options_.moved = [](void *trace, uint64_t node, int64_t tokens,
                        int32_t slot, int32_t) {
      static_cast<Trace *>(trace)->gone_.push_back({node, tokens, slot, true});
    };
    if (draw(0, 2) > 0) {
      HostTierOptions host;
      host.numSlots = draw(1, 6);
      tier_ = std::move(*HostTier::make(pool_, host));
      options_.tier = tier_.get();
      maxCopies_ = draw(1, host.numSlots);
      options_.hostBytes =
          static_cast<uint64_t>(maxCopies_) * tier_->slotBytes();
      options_.hostMinTokens = draw(0, 2) * page_;
    }
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
    evictHost(1000);
    evictPages(1000, 1000);
    need(auditCache(*cache_));
    require(cache_->describe().numNodes == 0, "nodes are left");
    require(pool_->numInUse(SlotKind::request) == 0, "slots are left");
    require(!tier_ || tier_->numFree() == tier_->numSlots(),
            "host slots are left");
  }

private:
  void perform() {
    switch (draw(0, tier_ ? 15 : 11)) {
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
    case 11:
      return draw(0, 1) ? drop() : unlockSlot();
    case 12:
      return copyAhead(draw(0, 4));
    case 13:
      return evictHost(draw(0, 2));
    default:
      return fetch();
    }
  }

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
      require(found.isOnHost == (kept.slot == 0) && found.node == kept.node,
              "where it is, or its node");
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
      // States of the same tokens are the same, if as many were accepted.
      valueOf(slot) = static_cast<float>(
          hashTokens(prompt.span(whole), 0, int64_t(whole), 0) % 100000 * 8 +
          uint64_t(entry.accepted));
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
    require(done.numEvictedCheckpoints ==
                std::count_if(gone_.begin(), gone_.end(),
                              [](const Gone &each) { return each.slot != 0; }),
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
    auto there = known_.checkpoints.find(prompt.prefix);
    const bool isNew = slot != 0 && (there == known_.checkpoints.end() ||
                                     there->second.slot == 0);
    require(done.slotTaken == isNew, "slot taken: expected ", isNew);
    if (isNew) {
      // What it has on the host keeps its priority and its locks.
      Checkpoint &kept = known_.checkpoints[prompt.prefix];
      kept.slot = slot;
      kept.accepted = entry.accepted;
      kept.use = use_;
      kept.node = done.node;
      kept.value = valueOf(slot);
    } else if (slot != 0) {
      there->second.use = use_;
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
    const bool isKept = kept != known_.checkpoints.end();
    require(held.lock.isOnHost == (isKept && slot == 0), "a lock of the host");
    if (isKept)
      ++kept->second.locks;
    known_.held.push_back(std::move(held));
    ++coverage_.locks;
  }
  void giveUpSlot(Held &held) {
    if (!held.lock.holdsCheckpoint())
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
    require(!held.lock.holdsCheckpoint(), "a slot that was given up");
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
    known_.find(found.node)->second.priority = priority;
  }
  void drop() {
    const CacheMatch found = match(drawPrompt());
    if (found.node == 0)
      return;
    auto kept = known_.find(found.node);
    const bool isLocked = kept->second.locks > 0;
    require(cache_->drop(found.node).isOk() != isLocked, "drop");
    if (!isLocked)
      known_.checkpoints.erase(kept);
  }

  void evictCheckpoints(int64_t count) {
    gone_.clear();
    const int64_t evicted = need(cache_->evictCheckpoints(count));
    const auto unlocked = int64_t(known_.order().size());
    expectGone(size_t(count));
    require(evicted == std::min(count, unlocked), "the count of evicted");
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
    std::set<uint64_t> nodes;
    for (const Gone &each : gone_)
      nodes.insert(each.node);
    for (auto kept = known_.checkpoints.begin();
         kept != known_.checkpoints.end();) {
      const bool isGone = nodes.count(kept->second.node) > 0;
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
    int64_t inSlots = 0;
    for (const auto &[prefix, kept] : known_.checkpoints)
      if (kept.slot != 0) {
        ++inSlots;
        require(valueOf(kept.slot) == kept.value, "what slot ", kept.slot,
                " holds: expected ", kept.value, ", got ", valueOf(kept.slot));
      }
    require(info.numCheckpoints == inSlots, "checkpoints");
    require(info.numOnHost == int64_t(known_.checkpoints.size()) - inSlots,
            "checkpoints on the host");
    require(!tier_ ||
                tier_->numSlots() - tier_->numFree() == info.numHostCopies,
            "a host slot leaks");
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
