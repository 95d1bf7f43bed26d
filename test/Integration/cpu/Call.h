// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One call of a compiled entry, through the C ABI, and its judgement by the
// reference. Everything that must not be looked at is NaN before the call:
// outputs, gaps of strided arrays, padding tokens, tokens of skipped sequences,
// and slots that no sequence reads.
#ifndef GDN_TEST_INTEGRATION_CPU_CALL_H
#define GDN_TEST_INTEGRATION_CPU_CALL_H

#include "Buffer.h"
#include "Program.h"

#include "gdn/Data/RandomInputs.h"
#include "gdn/Reference/Evaluator.h"

namespace gdn::integration {

/// A state inside a sequence: after so many of its tokens, to that slot.
struct Checkpoint {
  int64_t tokens, slot;
};

/// What a call works on. For `decode` every length must be 1.
struct Batch {
  std::vector<int64_t> lengths;
  int64_t keyHeads = 1, ratio = 2;
  int64_t leading = 0;           ///< tokens before the first sequence
  int64_t padding = 0;           ///< tokens behind the last sequence
  int64_t slots = 0;             ///< P; 0: three more than sequences
  int64_t nullSlot = -1;         ///< of every pool
  std::vector<int64_t> ids;      ///< slot per sequence; empty: different ones
  std::vector<int64_t> writeIds; ///< where the entry has them; likewise
  std::vector<bool> initial;     ///< likewise; empty: all true
  /// Per sequence, likewise; sequences behind the last have none.
  std::vector<std::vector<Checkpoint>> checkpoints;
  /// Per sequence the slots of the states after its tokens, all of one length,
  /// and how many tokens of the step before were accepted; where the entry has
  /// them.
  std::vector<std::vector<int64_t>> tokenSlots;
  std::vector<int64_t> accepted;
  std::vector<std::vector<int64_t>> parents; ///< likewise, per token
  /// How many tokens are pending over several steps, per sequence; of each key
  /// head one more than of the one before, around.
  std::vector<int64_t> pending;
  int64_t steps = 0; ///< S; 0: as long as the rows of `tokenSlots`
  data::InputOptions inputs = {};
};

/// How a caller keeps the arrays.
struct Memory {
  Placement placement = Placement::heap;
  int64_t rowGap = 0;  ///< elements between rows of tensors of rank 2 and more
  int64_t slotGap = 0; ///< elements between slots of pools
  int64_t headGap = 0; ///< elements between heads of tensors of rank 3, and
                       ///< within slots between all rows of a state
  bool convChannelsLast = false; ///< convolution states as [P, K-1, D]
};

/// A relative RMSE for each kind of result.
struct Errors {
  double core, out, state;
};
/// Bounds of one call whose states were exact before it, beyond the rounding of
/// the results to their element types (which `check` adds): sums of a few
/// hundred products in f32.
constexpr Errors oneCall = {1e-5, 1e-5, 1e-5};
/// Half the distance from 1 to the next number: the largest relative error of
/// one rounding. 0 for f32, whose rounding is within `oneCall`.
double roundingOf(FloatKind kind);

class Call {
public:
  Call(const Config &config, llvm::StringRef entry, const Batch &batch,
       const Memory &memory = {}, int workers = 1);

  Buffer &operator[](llvm::StringRef name);
  bool has(llvm::StringRef name) const { return buffers.count(name.str()); }
  const Parameter *find(llvm::StringRef name) const;
  llvm::ArrayRef<Parameter> parameters() const { return program->parameters; }

  /// Puts another buffer, or other rows of one, in a parameter's place.
  void replace(llvm::StringRef name, Buffer buffer) {
    buffers[name.str()] = std::move(buffer);
  }

  /// Binds and launches; a refusal fails the test. Where given, `variant` is
  /// what runs, with a workspace of NaN; else what needs no workspace.
  void run(const std::string &variant = "");

  /// After `run`: compares with the reference, started from the states as they
  /// were before the call or, where given, from `state`, which then holds the
  /// reference's states. Also expects zeros in the outputs of skipped sequences
  /// and padding, and the same bits in inputs, gaps and slots that no sequence
  /// writes.
  ///
  /// A result of fewer bits may be off by `bounds` and by what the reference
  /// itself loses when it is rounded to that type: for e the error before
  /// rounding, |round(x + e) - x| <= |round(x) - x| + 2 |e|.
  void check(const Errors &bounds, reference::Pool *state = nullptr);
  void runAndCheck() {
    run();
    check(oneCall);
  }
  /// The same of a step that starts from a state which it has put tokens into
  /// and rounded to the type of its slot; the reference does not round it.
  void runAndCheckRounded(FloatKind state) {
    const double rounding = 2 * roundingOf(state);
    run();
    check({oneCall.core + rounding, oneCall.out + rounding,
           oneCall.state + rounding});
  }
  /// What `check` measured.
  const Errors &errors() const { return measured; }

  /// The slot that sequence `n` is to read, live or not.
  int64_t readSlot(int64_t n) const;
  /// True if sequence `n` has a slot to read; the slot that it writes, or -1.
  bool isLive(int64_t n) const;
  int64_t writtenSlot(int64_t n) const;
  /// The slots of the checkpoints that sequence `n` writes.
  std::vector<int64_t> checkpointSlots(int64_t n) const;
  /// The slots that sequence `n` writes after its tokens, -1 where it does not.
  std::vector<int64_t> writtenTokenSlots(int64_t n) const;
  /// For each token the sequence it belongs to, or -1.
  std::vector<int64_t> tokenRows() const;

  const Config config;
  const Batch batch;

private:
  void takeVariant(gdnrt_binding *binding, const std::string &variant);
  void fillInputs();
  void fillTokens(const Parameter &parameter);
  void fillBytes(const Parameter &parameter);
  void fillSlots(const Parameter &parameter);
  std::vector<double> randomValues(const Parameter &parameter);
  void checkOutput(const std::string &name, const reference::Tensor &want,
                   double bound);
  void checkPool(const std::string &name, const reference::Tensor &want,
                 double bound);
  void checkPlanes(std::map<std::string, reference::Pool *> &pools,
                   double bound);
  std::vector<int64_t> writtenSlots() const;
  double compare(const std::string &name, llvm::ArrayRef<double> got,
                 llvm::ArrayRef<double> want, double bound);
  /// Runs the reference on pools, by name; results by name.
  std::map<std::string, reference::Tensor>
  evaluate(const std::map<std::string, reference::Pool *> &pools);
  /// True if the tokens of sequence `n` become pending, and its count is one.
  bool isPending() const { return has("pending_keys"); }
  bool hasCount(int64_t n) const;
  /// True if slots count the tokens that are pending; those of a key head.
  bool isDeferred() const { return has("pending_counts"); }
  int64_t pendingOf(int64_t n, int64_t keyHead) const;
  /// What is accepted of the step before; 0 where that is no count.
  int64_t acceptedOf(int64_t n) const;

  Entry *program;
  std::map<std::string, int64_t> symbols;
  std::map<std::string, Buffer> buffers, before;
  std::vector<uint8_t> workspace;
  Errors measured = {0, 0, 0};
};

/// Sequences of many lengths: sequence 1 is empty, 3 has the null slot, 5 one
/// past the end; 2 and 6 start from zeros, 6 writes to another slot and 7 to
/// none. Slots 20 and on are checkpoints'.
Batch allKindsOfSequences();
/// The same number of sequences of one token, one behind the other, without
/// checkpoints.
Batch oneTokenEach(Batch batch);
/// exp(log_decay) from 1 to 0: nothing may be divided by one that underflows.
void setDecaysOfAllStrengths(Call &call);

/// Notes a relative RMSE; the largest of each kind is printed at the end.
void noteError(const std::string &kind, double error);

} // namespace gdn::integration

#endif // GDN_TEST_INTEGRATION_CPU_CALL_H
