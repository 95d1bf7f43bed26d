// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a scheduler does with a prefix cache: sequences that start from what it
// keeps, and states that go there, by a copy or with their slot.

#include "draw.h"
#include "failed.h"
#include "prefix_cache.h"

using namespace gdnrt::traces;

std::vector<uint64_t> gdnrt::traces::drawPrompt(const State &state,
                                                const Step &step) {
  // It goes on from a state that is kept, or leaves its tokens on the way, or
  // is of one of three kinds, which are alike up to somewhere.
  std::vector<uint64_t> tokens;
  size_t alike = draw(step, -1, 91, step.size + 2);
  const auto &kept = state.cache->kept();
  if (const size_t way = draw(step, -1, 94, 4); way > 0 && !kept.empty()) {
    auto chosen =
        std::next(kept.begin(),
                  static_cast<std::ptrdiff_t>(draw(step, -1, 95, kept.size())));
    tokens = chosen->second.known.tokens;
    if (way == 1)
      tokens.resize(draw(step, -1, 96, tokens.size()));
    alike = 0;
  }
  // So long now and then that prefill has a state to keep.
  const size_t more = step.size + draw(step, -1, 98, 3) / 2 * 64;
  for (size_t t = 0; t <= more; ++t)
    tokens.push_back(t < alike ? mix(step.seed % 3, t, 7)
                               : mix(step.seed, t, 1));
  return tokens;
}

void gdnrt::traces::startFromCache(State &state, Sequence &sequence,
                                   const Step &step) {
  Known &known = sequence.known;
  const size_t fetched = state.coverage.fetched;
  Kept *kept = state.cache->start(known.tokens, sequence.lock);
  if (!kept)
    return;
  ++state.coverage.hits;
  if (state.coverage.fetched > fetched) {
    // As if its copy from the host were not there yet.
    if (state.bug == Bug::startsEarly) {
      gdnrt_error error;
      check(gdnrt_state_pool_reset(state.engine.pool(), &kept->slot, 1, nullptr,
                                   &error),
            error);
    }
    expectRounded(state, kept->known, kept->slot);
  }
  const std::vector<uint64_t> prompt = std::move(known.tokens);
  known = kept->known;
  known.tokens = prompt;
  known.pending = sequence.lock.num_accepted;
  state.say("s" + std::to_string(sequence.name) + " starts after " +
            std::to_string(known.done) + " tokens from slot " +
            std::to_string(kept->slot));
  sequence.readSlot = kept->slot;
  // A commit would be to the slot of the cache.
  if (!state.kernels.moveStates() || state.kernels.pendingRoom() > 0 ||
      known.pending > 0 || draw(step, -1, 92, 3) == 0)
    takeCopy(state, sequence);
}

void gdnrt::traces::takeCopy(State &state, Sequence &sequence) {
  if (sequence.readSlot == 0)
    return;
  state.copySlot(sequence.readSlot, sequence.slots[0]);
  hasMoved(state, sequence);
}

void gdnrt::traces::hasMoved(State &state, Sequence &sequence) {
  if (sequence.readSlot == 0)
    return;
  sequence.readSlot = 0;
  state.cache->unlockSlot(sequence.lock);
}

void gdnrt::traces::leaveCache(State &state, Sequence &sequence) {
  if (!state.cache)
    return;
  sequence.readSlot = 0;
  state.cache->unlock(sequence.lock);
}

void gdnrt::traces::addCheckpoints(State &state, const Sequence &sequence,
                                   Row &row) {
  if (!state.cache || !state.kernels.takeCheckpoints())
    return;
  const Known &known = sequence.known;
  for (int64_t position :
       state.cache->positions(known.tokens, known.done, row.tokens.size())) {
    int32_t slot = 0;
    if (!state.cache->takeSlots(1, false, &slot))
      return;
    const auto done = static_cast<int64_t>(known.done);
    row.checkpoints.push_back({static_cast<int32_t>(position - done), slot});
  }
}

void gdnrt::traces::keepCheckpoint(State &state, const Known &known,
                                   int32_t slot) {
  ++state.coverage.checkpoints;
  const bool taken = state.cache->insert(known, slot, nullptr);
  state.say("checkpoint after " + std::to_string(known.done) +
            " tokens in slot " + std::to_string(slot) +
            (taken ? "" : ": not taken"));
  gdnrt_error error;
  if (!taken)
    check(gdnrt_state_pool_free(state.engine.pool(), &slot, 1, nullptr, &error),
          error);
}

void gdnrt::traces::keepInCache(State &state, Sequence &source,
                                const Step &step) {
  // What starts in a slot of the cache has nothing new for it.
  if (source.known.isFresh || source.readSlot != 0)
    return;
  if (state.kernels.verifyKind() == VerifyKind::buffer)
    commit(state, {&source});
  int32_t slot = 0;
  if (!state.cache->takeSlots(1, false, &slot))
    return state.say("keep: full");
  const std::string name = "s" + std::to_string(source.name);
  // The sequence gives its slot away, reads it, and writes the new one; or the
  // cache gets a copy.
  const bool gives = state.cache->ownsRequests() && source.slots.size() == 1 &&
                     state.kernels.moveStates() && source.known.pending == 0 &&
                     state.kernels.pendingRoom() == 0 &&
                     draw(step, source.name, 93, 2);
  if (!gives)
    state.copySlot(source.stateSlot(), slot);
  const int32_t given = gives ? source.slots[0] : slot;
  const bool taken =
      state.cache->insert(source.known, given, gives ? &source.lock : nullptr);
  state.say("keep " + name + " after " + std::to_string(source.known.done) +
            " tokens in slot " + std::to_string(given) +
            (gives ? ", its own" : "") + (taken ? "" : ": not taken"));
  if (!taken) {
    gdnrt_error error;
    check(gdnrt_state_pool_free(state.engine.pool(), &slot, 1, nullptr, &error),
          error);
    // Had there been a state already, the lock is of that.
    if (gives && source.lock.slot != 0)
      state.cache->unlockSlot(source.lock);
  } else if (gives) {
    source.slots[0] = slot;
    source.readSlot = given;
  }
}
