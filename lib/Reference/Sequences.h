// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The sequences of a ragged batch: which tokens each owns and which slots it
// reads and writes.
#ifndef GDN_LIB_REFERENCE_SEQUENCES_H
#define GDN_LIB_REFERENCE_SEQUENCES_H

#include "Environment.h"

namespace gdn::reference {

/// A state inside a sequence: after `tokens` of its tokens, to `slot`.
struct Checkpoint {
  int64_t tokens, slot;
};

struct Sequence {
  int64_t begin = 0, end = 0; ///< its tokens
  int64_t slot = -1;          ///< its state; -1 if the sequence is skipped
  int64_t writeSlot = -1;     ///< where the state goes; -1 for nowhere
  bool fromZeros = false;     ///< the state starts as zeros, not from `slot`
  /// How many tokens of its previous step the state lacks; where it lacks none
  /// by the op's kind, 0.
  int64_t accepted = 0;
  /// Those that write something, by rising tokens.
  llvm::SmallVector<Checkpoint> checkpoints;
  /// Where the state after each token goes; -1 for nowhere. Empty without.
  llvm::SmallVector<int64_t> tokenSlots;
  bool writesElsewhere = false; ///< token slots are those of another pool
  /// The token from whose state each token starts, -1 for the sequence's state.
  /// Empty where each starts from the one before.
  llvm::SmallVector<int64_t> parents;

  int64_t length() const { return end - begin; }
  bool live() const { return slot >= 0; }
  /// The slots of its states, after the last or after every token.
  llvm::SmallVector<int64_t> written() const;
  /// The token before `t` on its way from the sequence's state; -1, -2, ..
  /// before the first.
  int64_t before(int64_t t) const {
    return t < 0 || parents.empty() ? t - 1 : parents[t];
  }
};

/// The operands that say what the sequences are. Only `slots` is always there.
struct SequenceOperands {
  const Tensor *slots = nullptr;
  const Tensor *bounds = nullptr;     ///< cu_seqlens
  const Tensor *writeSlots = nullptr; ///< write_slots
  const Tensor *hasInitial = nullptr; ///< has_initial
  /// cu_checkpoints, checkpoint_tokens, checkpoint_slots: all or none.
  const Tensor *checkpointBounds = nullptr;
  const Tensor *checkpointTokens = nullptr;
  const Tensor *checkpointSlots = nullptr;
  const Tensor *tokenSlots = nullptr; ///< token_slots
  const Tensor *parents = nullptr;    ///< parents
  const Tensor *accepted = nullptr;   ///< num_accepted, of pending tokens
  int64_t steps = 0;                  ///< at most so many of them
  const Pool *tokenPool = nullptr;    ///< of token slots, if not the states'
  /// Whose slots count too.
  llvm::SmallVector<const Pool *> pendingPools = {};

  /// Those of an op with states.
  static SequenceOperands of(StateOpInterface op, const Environment &env) {
    return {&env.tensor(op.getSlots()),
            env.optional(op.getCuSeqlens()),
            env.optional(op.getWriteSlots()),
            env.optional(op.getHasInitial()),
            env.optional(op.getCuCheckpoints()),
            env.optional(op.getCheckpointTokens()),
            env.optional(op.getCheckpointSlots()),
            env.optional(op.getTokenSlots()),
            env.optional(op.getParents()),
            env.optional(op.getNumAccepted())};
  }
};

/// The number of tokens that `count`, an element of num_accepted, accepts of at
/// most `steps`; nothing where it is no such number.
std::optional<int64_t> acceptedOf(double count, int64_t steps);

/// A slot into which some pending tokens go.
struct Commit {
  int64_t slot, accepted;
};

/// The sequences of which something is accepted, 1 to `steps` tokens, and whose
/// slot no pool skips. If slots count tokens that are pending, nothing has to
/// be accepted, and `accepted` may be null. Fails at `op` if two have one slot.
mlir::FailureOr<llvm::SmallVector<Commit>>
makeCommits(mlir::Operation *op, llvm::ArrayRef<const Pool *> pools,
            const Tensor &slots, const Tensor *accepted, int64_t steps,
            bool areCounted);

/// The sequences of a batch of `tokens` tokens. Fails at `op` if the operands
/// do not fit each other or the tokens.
mlir::FailureOr<llvm::SmallVector<Sequence>>
makeSequences(mlir::Operation *op, int64_t tokens, const Pool &pool,
              const SequenceOperands &operands);

/// Fails at `op` if sequences depend on the order in which they run: two write
/// one slot, or one writes a slot that another reads. A sequence writes no slot
/// twice, and with parents not the one it reads. Sequences without tokens do
/// neither. The slot of a checkpoint is read and written by nothing else, its
/// own sequence included.
mlir::LogicalResult expectIndependent(mlir::Operation *op,
                                      llvm::ArrayRef<Sequence> sequences);

} // namespace gdn::reference

#endif // GDN_LIB_REFERENCE_SEQUENCES_H
