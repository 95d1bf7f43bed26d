// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random traces. Pools are small, so that they are full most of the time.

#include "trace.h"

#include "gdn-c/host_tier.h"
#include "model.h"

using namespace gdnrt::traces;

namespace {

class Random {
public:
  explicit Random(uint64_t seed) : state_(mix(seed, 77)) {}
  uint32_t below(uint32_t bound) {
    state_ = mix(state_, 1);
    return static_cast<uint32_t>((state_ >> 32) % bound);
  }

private:
  uint64_t state_;
};

} // namespace

static StepKind drawKind(Random &random) {
  // Of 36; work on batches is most of it.
  static constexpr struct {
    StepKind kind;
    uint32_t weight;
  } weights[] = {
      {StepKind::admit, 3},  {StepKind::extend, 4},  {StepKind::decode, 3},
      {StepKind::verify, 5}, {StepKind::serve, 6},   {StepKind::fork, 2},
      {StepKind::keep, 2},   {StepKind::resume, 2},  {StepKind::drop, 1},
      {StepKind::evict, 2},  {StepKind::readmit, 4}, {StepKind::finish, 2},
  };
  uint32_t drawn = random.below(36);
  for (const auto &entry : weights) {
    if (drawn < entry.weight)
      return entry.kind;
    drawn -= entry.weight;
  }
  return StepKind::finish;
}

Trace gdnrt::traces::makeTrace(uint64_t seed) {
  Random random(seed);
  Trace trace;
  trace.verifyTokens = 1 + random.below(4);
  // Room for up to five sequences, less where each has more slots.
  trace.numRequests =
      trace.verifyTokens * (1 + random.below(5)) + random.below(4);
  trace.usesBuffer = random.below(3) == 0;
  if (trace.usesBuffer)
    trace.numRequests += 2 * trace.verifyTokens;
  trace.numTrack = random.below(4);
  trace.keyHeads = 1 + random.below(2);
  trace.valueHeads = trace.keyHeads * (1 + random.below(3));
  trace.zeroes = random.below(2) != 0;
  trace.isSD = random.below(2) != 0;
  trace.padding = random.below(2) * random.below(40);
  trace.convExtra = random.below(2) * random.below(4);
  trace.movesByKernels = random.below(2) != 0;
  trace.usesGraphs = seed % 2 == 0;
  trace.usesPlanner = seed % 3 == 0;
  trace.usesCache = seed / 2 % 2 == 0;
  // Half of the tiers keep all bits.
  trace.hostFormat = static_cast<int32_t>(mix(seed, 80) % 8);
  trace.hostFormat = trace.hostFormat > GDNRT_HOST_I8 ? 0 : trace.hostFormat;
  if (trace.usesCache) {
    trace.hostCopies = static_cast<int64_t>(mix(seed, 78) % 5);
    trace.hostMinTokens = static_cast<int64_t>(mix(seed, 79) % 3 * 4);
  }
  const uint32_t steps = 5 + random.below(60);
  for (uint32_t i = 0; i < steps; ++i) {
    Step step;
    step.kind = i == 0 ? StepKind::admit : drawKind(random);
    step.which = random.below(1 << 12) | random.below(1 << 12);
    // Prompts are short, or so long that a prefill takes chunks.
    step.size = random.below(8) ? random.below(12) : 50 + random.below(90);
    step.seed = random.below(1 << 30);
    trace.steps.push_back(step);
  }
  return trace;
}

static const char *nameOf(StepKind kind) {
  switch (kind) {
  case StepKind::admit:
    return "admit";
  case StepKind::extend:
    return "extend";
  case StepKind::decode:
    return "decode";
  case StepKind::verify:
    return "verify";
  case StepKind::serve:
    return "serve";
  case StepKind::fork:
    return "fork";
  case StepKind::keep:
    return "keep";
  case StepKind::resume:
    return "resume";
  case StepKind::drop:
    return "drop";
  case StepKind::evict:
    return "evict";
  case StepKind::readmit:
    return "readmit";
  case StepKind::finish:
    return "finish";
  }
  return "?";
}

std::string gdnrt::traces::toString(const Step &step) {
  return std::string(nameOf(step.kind)) +
         " which=" + std::to_string(step.which) +
         " size=" + std::to_string(step.size) +
         " seed=" + std::to_string(step.seed);
}

std::string gdnrt::traces::toString(const Trace &trace) {
  return "pool of " + std::to_string(trace.numRequests) + " slots and " +
         std::to_string(trace.numTrack) + " to track, " +
         (trace.isSD ? "SD" : "DS") + ", padding " +
         std::to_string(trace.padding) + ", history " +
         std::to_string(trace.convExtra) + ", " +
         (trace.zeroes ? "zeroed" : "not zeroed") + "; " +
         std::to_string(trace.keyHeads) + "/" +
         std::to_string(trace.valueHeads) + " heads; rows of up to " +
         std::to_string(trace.verifyTokens) + " guessed tokens" +
         (trace.usesBuffer ? " in a buffer" : "") +
         (trace.movesByKernels ? "; slots moved by kernels" : "") +
         (trace.usesGraphs ? "; graphs" : "") +
         (trace.usesPlanner ? "; plans" : "") +
         (trace.usesCache ? "; a prefix cache" : "") +
         (trace.hostCopies > 0
              ? " with " + std::to_string(trace.hostCopies) +
                    " states on the host, " +
                    std::to_string(trace.hostMinTokens) + " tokens apart"
              : "") +
         (trace.hostFormat > 0
              ? "; format of the host " + std::to_string(trace.hostFormat)
              : "");
}
