// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The life of sequences: admission to finish. What runs tokens is in steps.cpp,
// what compares in audit.cpp.

#include "scheduler.h"

#include "draw.h"
#include "failed.h"
#include "prefix_cache.h"

#include <ostream>

using namespace gdnrt::traces;

Scheduler::Scheduler(const Kernels &kernels, const Trace &trace, Bug bug,
                     std::ostream *log)
    : State(kernels, trace, bug, log) {
  if (trace.usesCache)
    cache = std::make_shared<PrefixCache>(engine.pool(), hosts.tier(), trace,
                                          coverage);
  const auto guesses = static_cast<size_t>(trace.verifyTokens);
  engine.pools().paintNullSlot();
  if (kernels.verifyKind() == VerifyKind::slots)
    groupSize = guesses;
  if (kernels.verifyKind() != VerifyKind::tree)
    return;
  if (!trace.usesBuffer) {
    groupSize = guesses + 1;
    return;
  }
  gdnrt_error error;
  int32_t taken = 0;
  buffer.resize(2 * guesses);
  check(gdnrt_state_pool_allocate(engine.pool(), buffer.size(), 0, nullptr,
                                  buffer.data(), &taken, &error),
        error);
  if (!taken)
    buffer.clear();
}

std::optional<Failure> Scheduler::play() {
  size_t index = 0;
  try {
    for (; index < trace.steps.size(); ++index) {
      perform(trace.steps[index]);
      ++coverage.steps;
      audit(*this);
    }
    while (!sequences.empty())
      finish(0);
    while (!kept.empty())
      drop({});
    if (cache)
      cache->clear();
    freeSlots(buffer);
    buffer.clear();
    for (Waiting &each : waiting)
      if (each.host >= 0)
        hosts.free(each.host);
    waiting.clear();
    audit(*this);
    if (!engine.pools().nullSlotIsIntact())
      throw Failed("the null slot was written");
  } catch (const Failed &failed) {
    return Failure{index, failed.what()};
  } catch (const std::runtime_error &error) {
    return Failure{index, std::string("refused: ") + error.what()};
  }
  return std::nullopt;
}

void Coverage::add(const Coverage &other) {
  steps += other.steps;
  tokens += other.tokens;
  guesses += other.guesses;
  rolledBack += other.rolledBack;
  skippedRows += other.skippedRows;
  firstTokens += other.firstTokens;
  idleSteps += other.idleSteps;
  replayed += other.replayed;
  planned += other.planned;
  forks += other.forks;
  resumed += other.resumed;
  evicted += other.evicted;
  swapped += other.swapped;
  full += other.full;
  hits += other.hits;
  checkpoints += other.checkpoints;
  moved += other.moved;
  fetched += other.fetched;
  resized += other.resized;
}

void State::say(const std::string &text) const {
  if (log)
    *log << "    " << text << "\n";
}

static std::string list(const std::vector<int32_t> &slots) {
  std::string text;
  for (int32_t slot : slots)
    text += " " + std::to_string(slot);
  return text;
}

void Scheduler::perform(const Step &step) {
  // Engines keep states when they have them.
  if (cache && draw(step, -1, 97, 3) == 0)
    keep(step);
  // With graphs all batches go through layers.
  const bool isServed = engine.usesGraphs();
  switch (step.kind) {
  case StepKind::admit:
    return admit(step);
  case StepKind::extend:
    return isServed ? serve(*this, step) : extend(*this, step);
  case StepKind::decode:
    return isServed ? serve(*this, step) : decode(*this, step);
  case StepKind::verify:
    return isServed ? serve(*this, step) : verify(*this, step);
  case StepKind::serve:
    return serve(*this, step);
  case StepKind::fork:
    return fork(step);
  case StepKind::keep:
    return keep(step);
  case StepKind::resume:
    return resume(step);
  case StepKind::drop:
    return drop(step);
  case StepKind::evict:
    return evict(step);
  case StepKind::readmit:
    return readmit(step);
  case StepKind::finish:
    if (!sequences.empty())
      finish(step.which % sequences.size());
    return;
  }
}

bool Scheduler::take(Sequence &sequence) {
  gdnrt_error error;
  gdnrt_state_pool_info before = gdnrt_state_pool_info_default();
  check(gdnrt_state_pool_describe(engine.pool(), &before, &error), error);
  int32_t taken = -1;
  sequence.slots.assign(groupSize, 0);
  const bool zeroes = trace.zeroes && bug != Bug::keepsState;
  sequence.name = nextName++;
  sequence.accepted = 1;
  if (cache && cache->ownsRequests()) {
    taken = cache->takeSlots(groupSize, zeroes, sequence.slots.data());
    coverage.full += !taken;
    return taken == 1;
  }
  check(gdnrt_state_pool_allocate(engine.pool(), groupSize, zeroes, nullptr,
                                  sequence.slots.data(), &taken, &error),
        error);
  const auto group = static_cast<int64_t>(groupSize);
  if (taken != (before.free_requests >= group))
    throw Failed("the pool has " + std::to_string(before.free_requests) +
                 " free slots, asked for " + std::to_string(group) +
                 ", and said " + (taken ? "yes" : "no"));
  coverage.full += !taken;
  return taken == 1;
}

void Scheduler::freeSlots(const std::vector<int32_t> &slots) {
  gdnrt_error error;
  check(gdnrt_state_pool_free(engine.pool(), slots.data(), slots.size(),
                              nullptr, &error),
        error);
}

void State::copySlot(int32_t from, int32_t to) {
  gdnrt_error error;
  check(gdnrt_state_pool_copy(engine.pool(), &from, &to, 1, nullptr, &error),
        error);
}

void Scheduler::admit(const Step &step) {
  Sequence sequence;
  Known &known = sequence.known;
  if (cache)
    known.tokens = drawPrompt(*this, step);
  for (uint32_t t = 0; !cache && t <= step.size; ++t)
    known.tokens.push_back(mix(step.seed, t, 1));
  known.layers.assign(kNumLayers, LayerState(engine.sizes()));
  if (!take(sequence))
    return say("admit: full");
  say("admit s" + std::to_string(sequence.name) + ": " +
      std::to_string(known.tokens.size()) + " tokens, slots" +
      list(sequence.slots));
  if (cache)
    startFromCache(*this, sequence, step);
  sequences.push_back(std::move(sequence));
}

void Scheduler::fork(const Step &step) {
  if (sequences.empty())
    return;
  Sequence &forked = sequences[step.which % sequences.size()];
  takeCopy(*this, forked);
  // A copy of the slot has not what waits in the buffer.
  if (kernels.verifyKind() == VerifyKind::buffer && bug != Bug::sharesSlots)
    commit(*this, {&forked});
  const Sequence source = forked;
  Sequence sequence = source;
  sequence.lock = gdnrt_cache_lock_default();
  if (bug == Bug::sharesSlots) {
    sequence.name = nextName++;
  } else if (groupSize == 1) {
    gdnrt_error error;
    int32_t taken = 0;
    check(gdnrt_state_pool_fork(engine.pool(), source.stateSlot(), nullptr,
                                sequence.slots.data(), &taken, &error),
          error);
    if (!taken)
      return say("fork: full");
    sequence.name = nextName++;
  } else {
    if (!take(sequence))
      return say("fork: full");
    copySlot(source.stateSlot(), sequence.slots[0]);
  }
  say("fork s" + std::to_string(source.name) + " to s" +
      std::to_string(sequence.name) + ", slots" + list(sequence.slots));
  ++coverage.forks;
  sequences.push_back(std::move(sequence));
}

void Scheduler::keep(const Step &step) {
  if (sequences.empty())
    return;
  Sequence &source = sequences[step.which % sequences.size()];
  if (cache)
    return keepInCache(*this, source, step);
  if (source.known.isFresh)
    return;
  if (kernels.verifyKind() == VerifyKind::buffer)
    commit(*this, {&source});
  // A state that goes to somebody who knows no pending tokens.
  if (draw(step, source.name, 9, 2))
    commit(*this, {&source}, /*states=*/true);
  gdnrt_error error;
  int32_t taken = 0;
  Kept entry{source.known, 0};
  check(gdnrt_state_pool_allocate_track(engine.pool(), 1, 0, nullptr,
                                        &entry.slot, &taken, &error),
        error);
  if (taken != (static_cast<int64_t>(kept.size()) < trace.numTrack))
    throw Failed("a track slot: the pool said " +
                 std::string(taken ? "yes" : "no"));
  if (!taken)
    return say("keep: full");
  copySlot(source.stateSlot(), entry.slot);
  // What is not in the state is not kept.
  entry.known.tokens.resize(entry.known.done);
  say("keep s" + std::to_string(source.name) + " after " +
      std::to_string(entry.known.done) + " tokens in slot " +
      std::to_string(entry.slot));
  kept.push_back(std::move(entry));
}

void Scheduler::resume(const Step &step) {
  if (cache)
    return admit(step);
  if (kept.empty())
    return;
  const Kept &entry = kept[step.which % kept.size()];
  Sequence sequence;
  sequence.known = entry.known;
  if (!take(sequence))
    return say("resume: full");
  copySlot(entry.slot, sequence.slots[0]);
  for (uint32_t t = 0; t < step.size; ++t)
    sequence.known.tokens.push_back(mix(step.seed, t, 2));
  ++coverage.resumed;
  say("resume slot " + std::to_string(entry.slot) + " as s" +
      std::to_string(sequence.name) + ": " + std::to_string(step.size) +
      " tokens more, slots" + list(sequence.slots));
  sequences.push_back(std::move(sequence));
}

void Scheduler::drop(const Step &step) {
  if (cache)
    return cache->disturb(step.seed);
  if (kept.empty())
    return;
  const size_t index = step.which % kept.size();
  say("drop slot " + std::to_string(kept[index].slot));
  freeSlots({kept[index].slot});
  kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(index));
}

void Scheduler::evict(const Step &step) {
  if (sequences.empty())
    return;
  const size_t index = step.which % sequences.size();
  Sequence &sequence = sequences[index];
  ++coverage.evicted;
  int32_t host = -1;
  // Most of those that have a state keep it, if there is room.
  if (!sequence.known.isFresh && bug != Bug::usesFreed &&
      draw(step, sequence.name, 11, 4) != 0) {
    // A copy of the slot has not what waits in the buffer.
    if (kernels.verifyKind() == VerifyKind::buffer)
      commit(*this, {&sequence});
    host = hosts.store(sequence.stateSlot());
    if (host < 0 && cache && draw(step, sequence.name, 13, 2)) {
      cache->giveHostSlot();
      host = hosts.store(sequence.stateSlot());
    }
    const size_t way = draw(step, sequence.name, 12, 4);
    if (host >= 0 && way == 1)
      hosts.passThroughFile(host);
    else if (host >= 0 && way > 1)
      coverage.resized +=
          hosts.passThroughRanks(host, static_cast<int64_t>(way));
  }
  say("evict s" + std::to_string(sequence.name) +
      (host < 0 ? "" : " to host slot " + std::to_string(host)));
  leaveCache(*this, sequence);
  freeSlots(sequence.slots);
  if (bug == Bug::usesFreed)
    return;
  waiting.push_back({std::move(sequence.known), host});
  sequences.erase(sequences.begin() + static_cast<std::ptrdiff_t>(index));
}

void Scheduler::readmit(const Step &step) {
  if (waiting.empty())
    return;
  const size_t index = step.which % waiting.size();
  const Waiting &from = waiting[index];
  Sequence sequence;
  if (from.host >= 0) {
    sequence.known = from.known;
  } else {
    sequence.known.tokens = from.known.tokens;
    sequence.known.layers.assign(kNumLayers, LayerState(engine.sizes()));
  }
  if (!take(sequence))
    return say("readmit: full");
  if (from.host >= 0) {
    ++coverage.swapped;
    if (bug == Bug::forgetsHost)
      hosts.free(from.host);
    else
      hosts.load(from.host, sequence.slots[0]);
    if (bug != Bug::forgetsHost)
      expectRounded(*this, sequence.known, sequence.slots[0]);
  }
  say("readmit s" + std::to_string(sequence.name) + ": " +
      std::to_string(sequence.known.tokens.size()) + " tokens, slots" +
      list(sequence.slots));
  const bool begins = from.host < 0;
  waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(index));
  if (cache && begins)
    startFromCache(*this, sequence, step);
  sequences.push_back(std::move(sequence));
}

void Scheduler::finish(size_t index) {
  leaveCache(*this, sequences[index]);
  std::vector<int32_t> slots = sequences[index].slots;
  say("finish s" + std::to_string(sequences[index].name));
  if (bug == Bug::leaks)
    slots.pop_back();
  freeSlots(slots);
  sequences.erase(sequences.begin() + static_cast<std::ptrdiff_t>(index));
}
