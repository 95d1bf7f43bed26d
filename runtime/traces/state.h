// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a trace is played on: the sequences, what is known of their states, and
// the steps that run their tokens.

#ifndef GDNRT_TRACES_STATE_H
#define GDNRT_TRACES_STATE_H

#include "engine.h"
#include "gdn-c/state_cache.h"
#include "host_states.h"

#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

namespace gdnrt::traces {

/// Mistakes that the scheduler makes on purpose, to show that they are found.
enum class Bug {
  none,
  /// A new sequence starts from what its slot held before.
  keepsState,
  /// A finished sequence gives back all but one of its slots.
  leaks,
  /// A fork works in the slots of its source.
  sharesSlots,
  /// A sequence that lost its slots goes on.
  usesFreed,
  /// The row after a verify step starts one token too early.
  wrongRollback,
  /// A sequence writes the slot of the cache from which it starts.
  writesShared,
  /// A sequence comes back from the host without its state.
  forgetsHost,
  /// A sequence starts from a checkpoint of the host before it has come back.
  startsEarly,
};

class PrefixCache;

/// What ran, so that it can be seen that much did.
struct Coverage {
  size_t steps = 0, tokens = 0, guesses = 0, rolledBack = 0, skippedRows = 0;
  size_t firstTokens = 0, idleSteps = 0, replayed = 0, planned = 0;
  size_t forks = 0, resumed = 0, evicted = 0, swapped = 0, full = 0, hits = 0,
         checkpoints = 0, moved = 0, fetched = 0, resized = 0;
  void add(const Coverage &other);
};

/// What is known of a state.
struct Known {
  std::vector<uint64_t> tokens;
  /// Tokens that the state has seen.
  size_t done = 0;
  /// The slots hold anything as yet.
  bool isFresh = true;
  std::vector<LayerState> layers;
  /// What the slot holds where tokens wait for a commit, and how many of them
  /// were right; of kinds that have commits.
  std::vector<LayerState> base;
  int32_t pending = 0;
};
struct Sequence {
  int name = 0;
  Known known;
  /// Slots: [0] for plain steps; in a verify step those of the tokens, with
  /// trees from [1] on.
  std::vector<int32_t> slots;
  /// The state is in slots[accepted - 1].
  int32_t accepted = 1;
  /// What it holds of the cache. As long as it has computed nothing itself, its
  /// state may be in a slot of the cache; else 0.
  gdnrt_cache_lock lock = gdnrt_cache_lock_default();
  int32_t readSlot = 0;

  /// Tokens that the state has not seen.
  size_t left() const { return known.tokens.size() - known.done; }
  int32_t stateSlot() const {
    return readSlot != 0 ? readSlot : slots[size_t(accepted) - 1];
  }
};
struct Kept {
  Known known;
  /// 0: it is on the host.
  int32_t slot = 0;
};
/// A sequence without slots; its state is in a host slot, or is computed again.
struct Waiting {
  Known known;
  int32_t host = -1;
};
/// A row with the sequence that it is of; null is padding.
struct Planned {
  Row row;
  Sequence *sequence = nullptr;
};

/// What steps work on: the engine, and what is known of each sequence.
struct State {
  State(const Kernels &kernels, const Trace &trace, Bug bug, std::ostream *log)
      : kernels(kernels), trace(trace), bug(bug), log(log),
        engine(kernels, trace), hosts(engine.pools(), trace) {}
  /// Writes a line to the log, if there is one.
  void say(const std::string &text) const;
  void copySlot(int32_t from, int32_t to);

  const Kernels &kernels;
  const Trace &trace;
  Bug bug;
  std::ostream *log;
  Engine engine;
  HostStates hosts;
  /// The slots that a sequence takes.
  size_t groupSize = 1;
  /// Slots that verify steps share, in two rows, or none.
  std::vector<int32_t> buffer;
  Coverage coverage;
  int nextName = 0;
  std::vector<Sequence> sequences;
  std::vector<Kept> kept;
  std::vector<Waiting> waiting;
  /// Null in traces without one. It is ended before the pool.
  std::shared_ptr<PrefixCache> cache;
};

// steps.cpp: batches of rows through the kernels and through the model.
void extend(State &state, const Step &step);
void decode(State &state, const Step &step);
void verify(State &state, const Step &step);
/// Makes the sequences' slots hold all that was accepted. With deferred writes
/// the slot may go on to count tokens, unless their states are asked for.
void commit(State &state, const std::vector<Sequence *> &sequences,
            bool states = false);
/// Where the states after a sequence's tokens go in a buffer.
std::vector<int32_t> bufferOf(const State &state, const Sequence &sequence);
/// A table of parents for `count` tokens.
std::vector<int32_t> drawParents(const Sequence &sequence, const Step &step,
                                 size_t count);
/// The model's part of one plain row, whose first token is number `token`.
void advanceRow(State &state, Sequence &sequence,
                const std::vector<uint64_t> &tokens, size_t token,
                const std::vector<Outputs> &outputs);
/// The same for one row of a verify step; returns how many tokens were
/// accepted, with parents the place of the last of them, plus one.
size_t advanceGuesses(State &state, Sequence &sequence, const Row &row,
                      size_t firstToken, const std::vector<Outputs> &outputs,
                      uint64_t seed);

// cached_steps.cpp: what a prefix cache is for.
/// A prompt that begins like others.
std::vector<uint64_t> drawPrompt(const State &state, const Step &step);
/// Makes a new sequence start from the longest prefix that is kept, in a copy
/// or in the slot of the cache.
void startFromCache(State &state, Sequence &sequence, const Step &step);
/// Copies the state that a sequence has in the cache to its own slot.
void takeCopy(State &state, Sequence &sequence);
/// The sequence has written its own slot.
void hasMoved(State &state, Sequence &sequence);
/// A sequence gives back what it holds of the cache, if there is one.
void leaveCache(State &state, Sequence &sequence);
/// Gives a row of prefill slots for the states that the cache wants of it.
void addCheckpoints(State &state, const Sequence &sequence, Row &row);
/// Puts a state that prefill wrote into the cache.
void keepCheckpoint(State &state, const Known &known, int32_t slot);
/// Puts the state of a sequence into the cache.
void keepInCache(State &state, Sequence &source, const Step &step);

// serve_step.cpp: a step of rows of all kinds through layers.
void serve(State &state, const Step &step);

// audit.cpp: what is compared.
/// `after` is the state behind the token.
void expectOutput(const State &state, const std::string &who,
                  const std::vector<double> &expected, const LayerState &after,
                  const Outputs &outputs, size_t token);
void expectZeros(const State &state, const std::vector<Outputs> &outputs,
                 size_t token);
/// Compares a state that came back from the host with what is known of it, and
/// makes the model go on from what the slot holds, as it may be rounded.
void expectRounded(State &state, Known &known, int32_t slot);
/// Who owns what, and what it holds.
void audit(State &state);

} // namespace gdnrt::traces

#endif // GDNRT_TRACES_STATE_H
