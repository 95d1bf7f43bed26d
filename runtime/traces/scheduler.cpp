// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The life of sequences: admission to finish. What runs tokens is in steps.cpp,
// what compares in audit.cpp.

#include "scheduler.h"

#include "failed.h"

#include <ostream>

using namespace gdnrt::traces;

Scheduler::Scheduler(const Kernels &kernels, const Trace &trace, Bug bug,
                     std::ostream *log)
    : kernels_(kernels), trace_(trace), bug_(bug), log_(log),
      engine_(kernels, trace), groupSize_(1) {
  const auto guesses = static_cast<size_t>(trace.verifyTokens);
  engine_.paintNullSlot();
  if (kernels.verifyKind() == VerifyKind::slots)
    groupSize_ = guesses;
  if (kernels.verifyKind() != VerifyKind::tree)
    return;
  if (!trace.usesBuffer) {
    groupSize_ = guesses + 1;
    return;
  }
  gdnrt_error error;
  int32_t taken = 0;
  buffer_.resize(2 * guesses);
  check(gdnrt_state_pool_allocate(engine_.pool(), buffer_.size(), 0, nullptr,
                                  buffer_.data(), &taken, &error),
        error);
  if (!taken)
    buffer_.clear();
}

std::optional<Failure> Scheduler::play() {
  size_t index = 0;
  try {
    for (; index < trace_.steps.size(); ++index) {
      perform(trace_.steps[index]);
      ++coverage_.steps;
      audit();
    }
    while (!sequences_.empty())
      finish(0);
    while (!kept_.empty())
      drop({});
    freeSlots(buffer_);
    buffer_.clear();
    audit();
    if (!engine_.nullSlotIsIntact())
      throw Failed("the null slot was written");
  } catch (const Failed &failed) {
    return Failure{index, failed.what()};
  } catch (const RuntimeError &error) {
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
  forks += other.forks;
  resumed += other.resumed;
  evicted += other.evicted;
  full += other.full;
}

void Scheduler::say(const std::string &text) {
  if (log_)
    *log_ << "    " << text << "\n";
}

static std::string list(const std::vector<int32_t> &slots) {
  std::string text;
  for (int32_t slot : slots)
    text += " " + std::to_string(slot);
  return text;
}

void Scheduler::perform(const Step &step) {
  switch (step.kind) {
  case StepKind::admit:
    return admit(step);
  case StepKind::extend:
    return extend(step);
  case StepKind::decode:
    return decode(step);
  case StepKind::verify:
    return verify(step);
  case StepKind::serve:
    return serve(step);
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
    if (!sequences_.empty())
      finish(step.which % sequences_.size());
    return;
  }
}

bool Scheduler::take(Sequence &sequence) {
  gdnrt_error error;
  gdnrt_state_pool_info before = gdnrt_state_pool_info_default();
  check(gdnrt_state_pool_describe(engine_.pool(), &before, &error), error);
  int32_t taken = -1;
  sequence.slots.assign(groupSize_, 0);
  const bool zeroes = trace_.zeroes && bug_ != Bug::keepsState;
  check(gdnrt_state_pool_allocate(engine_.pool(), groupSize_, zeroes, nullptr,
                                  sequence.slots.data(), &taken, &error),
        error);
  const auto group = static_cast<int64_t>(groupSize_);
  if (taken != (before.free_requests >= group))
    throw Failed("the pool has " + std::to_string(before.free_requests) +
                 " free slots, asked for " + std::to_string(group) +
                 ", and said " + (taken ? "yes" : "no"));
  sequence.name = nextName_++;
  sequence.accepted = 1;
  coverage_.full += !taken;
  return taken == 1;
}

void Scheduler::freeSlots(const std::vector<int32_t> &slots) {
  gdnrt_error error;
  check(gdnrt_state_pool_free(engine_.pool(), slots.data(), slots.size(),
                              nullptr, &error),
        error);
}

void Scheduler::copySlot(int32_t from, int32_t to) {
  gdnrt_error error;
  check(gdnrt_state_pool_copy(engine_.pool(), &from, &to, 1, nullptr, &error),
        error);
}

void Scheduler::admit(const Step &step) {
  Sequence sequence;
  Known &known = sequence.known;
  for (uint32_t t = 0; t <= step.size; ++t)
    known.tokens.push_back(mix(step.seed, t, 1));
  known.layers.assign(kNumLayers, LayerState(engine_.sizes()));
  if (!take(sequence))
    return say("admit: full");
  say("admit s" + std::to_string(sequence.name) + ": " +
      std::to_string(step.size + 1) + " tokens, slots" + list(sequence.slots));
  sequences_.push_back(std::move(sequence));
}

void Scheduler::fork(const Step &step) {
  if (sequences_.empty())
    return;
  Sequence &forked = sequences_[step.which % sequences_.size()];
  // A copy of the slot has not what waits in the buffer.
  if (kernels_.verifyKind() == VerifyKind::buffer && bug_ != Bug::sharesSlots)
    commit({&forked});
  const Sequence source = forked;
  Sequence sequence = source;
  if (bug_ == Bug::sharesSlots) {
    sequence.name = nextName_++;
  } else if (groupSize_ == 1) {
    gdnrt_error error;
    int32_t taken = 0;
    check(gdnrt_state_pool_fork(engine_.pool(), source.stateSlot(), nullptr,
                                sequence.slots.data(), &taken, &error),
          error);
    if (!taken)
      return say("fork: full");
    sequence.name = nextName_++;
  } else {
    if (!take(sequence))
      return say("fork: full");
    copySlot(source.stateSlot(), sequence.slots[0]);
  }
  say("fork s" + std::to_string(source.name) + " to s" +
      std::to_string(sequence.name) + ", slots" + list(sequence.slots));
  ++coverage_.forks;
  sequences_.push_back(std::move(sequence));
}

void Scheduler::keep(const Step &step) {
  if (sequences_.empty())
    return;
  Sequence &source = sequences_[step.which % sequences_.size()];
  if (source.known.isFresh)
    return;
  if (kernels_.verifyKind() == VerifyKind::buffer)
    commit({&source});
  gdnrt_error error;
  int32_t taken = 0;
  Kept kept{source.known, 0};
  check(gdnrt_state_pool_allocate_track(engine_.pool(), 1, 0, nullptr,
                                        &kept.slot, &taken, &error),
        error);
  if (taken != (static_cast<int64_t>(kept_.size()) < trace_.numTrack))
    throw Failed("a track slot: the pool said " +
                 std::string(taken ? "yes" : "no"));
  if (!taken)
    return say("keep: full");
  copySlot(source.stateSlot(), kept.slot);
  // What is not in the state is not kept.
  kept.known.tokens.resize(kept.known.done);
  say("keep s" + std::to_string(source.name) + " after " +
      std::to_string(kept.known.done) + " tokens in slot " +
      std::to_string(kept.slot));
  kept_.push_back(std::move(kept));
}

void Scheduler::resume(const Step &step) {
  if (kept_.empty())
    return;
  const Kept &kept = kept_[step.which % kept_.size()];
  Sequence sequence;
  sequence.known = kept.known;
  if (!take(sequence))
    return say("resume: full");
  copySlot(kept.slot, sequence.slots[0]);
  for (uint32_t t = 0; t < step.size; ++t)
    sequence.known.tokens.push_back(mix(step.seed, t, 2));
  ++coverage_.resumed;
  say("resume slot " + std::to_string(kept.slot) + " as s" +
      std::to_string(sequence.name) + ": " + std::to_string(step.size) +
      " tokens more, slots" + list(sequence.slots));
  sequences_.push_back(std::move(sequence));
}

void Scheduler::drop(const Step &step) {
  if (kept_.empty())
    return;
  const size_t index = step.which % kept_.size();
  say("drop slot " + std::to_string(kept_[index].slot));
  freeSlots({kept_[index].slot});
  kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(index));
}

void Scheduler::evict(const Step &step) {
  if (sequences_.empty())
    return;
  const size_t index = step.which % sequences_.size();
  Sequence &sequence = sequences_[index];
  ++coverage_.evicted;
  say("evict s" + std::to_string(sequence.name));
  freeSlots(sequence.slots);
  if (bug_ == Bug::usesFreed)
    return;
  waiting_.push_back(std::move(sequence.known));
  sequences_.erase(sequences_.begin() + static_cast<std::ptrdiff_t>(index));
}

void Scheduler::readmit(const Step &step) {
  if (waiting_.empty())
    return;
  const size_t index = step.which % waiting_.size();
  Sequence sequence;
  sequence.known.tokens = waiting_[index].tokens;
  sequence.known.layers.assign(kNumLayers, LayerState(engine_.sizes()));
  if (!take(sequence))
    return say("readmit: full");
  say("readmit s" + std::to_string(sequence.name) + ": " +
      std::to_string(sequence.known.tokens.size()) + " tokens, slots" +
      list(sequence.slots));
  waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(index));
  sequences_.push_back(std::move(sequence));
}

void Scheduler::finish(size_t index) {
  std::vector<int32_t> slots = sequences_[index].slots;
  say("finish s" + std::to_string(sequences_[index].name));
  if (bug_ == Bug::leaks)
    slots.pop_back();
  freeSlots(slots);
  sequences_.erase(sequences_.begin() + static_cast<std::ptrdiff_t>(index));
}
