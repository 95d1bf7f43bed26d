// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A trace: sizes of a pool and what a scheduler does, as plain numbers. Steps
// name sequences by their place among those that are there, modulo their count,
// and draw the rest from a seed of their own. So every list of steps is a
// legal trace, which is what shrinking needs.

#ifndef GDNRT_TRACES_TRACE_H
#define GDNRT_TRACES_TRACE_H

#include <cstdint>
#include <string>
#include <vector>

namespace gdnrt::traces {

enum class StepKind {
  /// A new sequence with a prompt of `size` tokens.
  admit,
  /// Pieces of prompts, and single tokens of sequences that have theirs.
  extend,
  /// One token each of the sequences in `which`.
  decode,
  /// Guessed tokens of the sequences in `which`, some accepted.
  verify,
  /// Any of these at once, through the metadata builder and layers.
  serve,
  /// A second sequence from the state of one.
  fork,
  /// A copy of a state in a track slot.
  keep,
  /// A new sequence from a kept state.
  resume,
  /// A kept state is given up.
  drop,
  /// A sequence loses its slots, and waits; its state may go to the host.
  evict,
  /// A sequence that waits goes on with its state, or starts again with all of
  /// its tokens.
  readmit,
  finish,
};

struct Step {
  StepKind kind = StepKind::admit;
  /// A bit per sequence for steps of batches, otherwise the place of one.
  uint32_t which = 0;
  uint32_t size = 0;
  uint32_t seed = 0;
};

struct Trace {
  int64_t numRequests = 4, numTrack = 1;
  int64_t keyHeads = 1, valueHeads = 2;
  /// The most tokens of a row in a verify step.
  int64_t verifyTokens = 1;
  /// Slots are zeroed when they are taken; else the first tokens of a sequence
  /// run with has_initial false.
  bool zeroes = true;
  bool isSD = false;
  /// Verify steps with parents write to slots that all sequences share, from
  /// where the accepted state is copied.
  bool usesBuffer = false;
  /// Slots are copied and zeroed by entries of the image.
  bool movesByKernels = false;
  /// Steps through layers are replayed from graphs, where there are any, and
  /// take their metadata from a plan of the batch, if the image has one.
  bool usesGraphs = false, usesPlanner = false;
  /// Kept states are those of a prefix cache, and prompts begin alike.
  bool usesCache = false;
  /// The states that the cache may have on the host; 0: it has no tier. And how
  /// many tokens one must be behind another to go there.
  int64_t hostCopies = 0, hostMinTokens = 0;
  /// A gdnrt_host_format, for pools with states of f32.
  int32_t hostFormat = 0;
  /// Elements between slots, and beyond the window.
  int64_t padding = 0, convExtra = 0;
  std::vector<Step> steps;
};

/// The trace number `seed`.
Trace makeTrace(uint64_t seed);

/// "extend which=5 size=3 seed=17".
std::string toString(const Step &step);
/// The sizes, in one line.
std::string toString(const Trace &trace);

} // namespace gdnrt::traces

#endif // GDNRT_TRACES_TRACE_H
