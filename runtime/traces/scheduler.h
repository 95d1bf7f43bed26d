// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plays a trace: keeps sequences as an engine's scheduler does, runs each both
// through the kernels and through the float64 model, and after every step
// compares outputs, all states, and who owns which slot.

#ifndef GDNRT_TRACES_SCHEDULER_H
#define GDNRT_TRACES_SCHEDULER_H

#include "engine.h"

#include <iosfwd>
#include <optional>
#include <set>
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
};

struct Failure {
  /// The step in which it was found.
  size_t step;
  std::string what;
};

/// What ran, so that it can be seen that much did.
struct Coverage {
  size_t steps = 0, tokens = 0, guesses = 0, rolledBack = 0, skippedRows = 0;
  size_t firstTokens = 0, idleSteps = 0;
  size_t forks = 0, resumed = 0, evicted = 0, full = 0;
  void add(const Coverage &other);
};

class Scheduler {
public:
  /// Says what it does to `log` unless that is null.
  Scheduler(const Kernels &kernels, const Trace &trace, Bug bug,
            std::ostream *log);
  /// Plays all steps, finishes what is left, and expects an empty pool.
  std::optional<Failure> play();
  const Coverage &coverage() const { return coverage_; }

private:
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

    /// Tokens that the state has not seen.
    size_t left() const { return known.tokens.size() - known.done; }
    int32_t stateSlot() const { return slots[size_t(accepted) - 1]; }
  };
  struct Kept {
    Known known;
    int32_t slot = 0;
  };
  /// A row with the sequence that it is of; null is padding.
  struct Planned {
    Row row;
    Sequence *sequence = nullptr;
  };

  void perform(const Step &step);
  void admit(const Step &step);
  void extend(const Step &step);
  void decode(const Step &step);
  void verify(const Step &step);
  void serve(const Step &step);
  void fork(const Step &step);
  void keep(const Step &step);
  void resume(const Step &step);
  void drop(const Step &step);
  void evict(const Step &step);
  void readmit(const Step &step);
  void finish(size_t index);

  /// Takes slots for a sequence; false: full.
  bool take(Sequence &sequence);
  void freeSlots(const std::vector<int32_t> &slots);
  void copySlot(int32_t from, int32_t to);
  /// Rows that are to be skipped, mixed among the others.
  void addPadding(std::vector<Planned> &plan, const Step &step, bool isDecode);
  std::vector<Row> rowsOf(const std::vector<Planned> &plan) const;
  /// Where the states after a sequence's tokens go in a buffer.
  std::vector<int32_t> bufferOf(const Sequence &sequence) const;
  /// A table of parents for `count` tokens.
  std::vector<int32_t> drawParents(const Sequence &sequence, const Step &step,
                                   size_t count) const;
  Row guess(const Sequence &sequence, const Step &step,
            const std::vector<int32_t> &buffer) const;
  /// Makes the sequences' slots hold all that was accepted.
  void commit(const std::vector<Sequence *> &sequences);
  /// The model's part of one plain row, whose first token is number `token`.
  void advanceRow(Sequence &sequence, const std::vector<uint64_t> &tokens,
                  size_t token, const std::vector<Outputs> &outputs);
  /// The same of all rows of a batch.
  void advance(const std::vector<Planned> &plan,
               const std::vector<Outputs> &outputs);
  /// The same for one row of a verify step; returns how many tokens were
  /// accepted, with parents the place of the last of them, plus one.
  size_t advanceGuesses(Sequence &sequence, const Row &row, size_t firstToken,
                        const std::vector<Outputs> &outputs, uint64_t seed);
  void expectOutput(const std::string &who, const std::vector<double> &expected,
                    const Outputs &outputs, size_t token) const;
  void expectZeros(const std::vector<Outputs> &outputs, size_t token) const;
  void expectState(const std::string &who, const Known &known, int32_t slot);
  /// Who owns what, and what it holds.
  void audit();
  void say(const std::string &text);

  const Kernels &kernels_;
  const Trace &trace_;
  Bug bug_;
  std::ostream *log_;
  Engine engine_;
  size_t groupSize_;
  /// Slots that verify steps share, in two rows, or none.
  std::vector<int32_t> buffer_;
  Coverage coverage_;
  int nextName_ = 0;
  std::vector<Sequence> sequences_;
  std::vector<Kept> kept_;
  std::vector<Known> waiting_;
};

} // namespace gdnrt::traces

#endif // GDNRT_TRACES_SCHEDULER_H
