// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a gdn.kernel is made of, as far as its tile program asks.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_PROGRAM_KERNELOPERANDS_H
#define GDN_LIB_CONVERSION_GDNTOTILE_PROGRAM_KERNELOPERANDS_H

#include "gdn/Dialect/GDN/IR/GDN.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

namespace gdn {

/// A tile that is carried from token block to token block.
struct Carry {
  mlir::Value pool;        // the gdn pool it lives in
  mlir::Value writeSlots;  // gdn operand, may be null
  mlir::Value hasInitial;  // gdn operand, may be null
  bool perKeyHead;         // one per key head, else one per value head
  mlir::VectorType type;   // f32
  mlir::VectorType stored; // in the pool's element type
  mlir::Operation *op;     // conv1d or the rule
  unsigned section;        // of conv1d
  mlir::Value tokenPool;   // the gdn pool of its states after tokens
  mlir::Value scales, low; // gdn pools of states in planes, or null

  /// The op, for what it says of its states.
  StateOpInterface states() const { return mlir::cast<StateOpInterface>(op); }
};

/// The operands that ask for states inside a sequence, or all null.
struct CheckpointOperands {
  mlir::Value bounds, tokens, slots;

  static CheckpointOperands of(StateOpInterface op);
  explicit operator bool() const { return bounds != nullptr; }
  bool operator==(const CheckpointOperands &other) const {
    return bounds == other.bounds && tokens == other.tokens &&
           slots == other.slots;
  }
};

/// The ops of one kernel, checked to work on the same sequences and slots.
struct KernelOperands {
  /// Fails with an error on the op that has no tile program.
  static mlir::FailureOr<KernelOperands> analyse(mlir::func::FuncOp entry,
                                                 KernelOp kernel);

  /// `values`, and all that they are computed from in the kernel.
  llvm::DenseSet<mlir::Value>
  inputsOf(llvm::SmallVector<mlir::Value> values) const;

  /// What the state's change depends on: the rule's keys, values, decays and
  /// strengths, and all that they are computed from in the kernel.
  llvm::DenseSet<mlir::Value> stateInputs() const;

  /// The same for all that the rule computes: with its queries.
  llvm::DenseSet<mlir::Value> ruleInputs() const;

  /// True if tokens are pending over several steps, and the state is written
  /// when there is no room for more.
  bool isDeferred() const {
    RuleOpInterface of = rule;
    return of && of.getPendingCounts();
  }

  /// True if states are in planes.
  bool hasPlanes() const {
    RuleOpInterface of = rule;
    return of && of.getStateScales();
  }

  /// True if tokens erase along another key than they write along, which no
  /// form in chunks does.
  bool hasErase() const {
    RuleOpInterface of = rule;
    return of && of.getErase();
  }

  /// True if tokens are pending over several steps, and none of a step's tokens
  /// are drafts.
  bool isDeferredStep() const { return isDeferred() && !numAccepted; }

  /// True if `value` has one head per key head, and not per value head.
  bool isKey(mlir::Value value) const { return keyHeaded.contains(value); }

  KernelOp kernel;
  RuleOpInterface rule;           // null in a kernel without the recurrence
  mlir::Value slots;              // null in a kernel of token-wise ops
  mlir::Value cuSeqlens;          // null where every token is a sequence
  CheckpointOperands checkpoints; // of every op that has some
  mlir::Value tokenSlots;         // of every op that has some
  mlir::Value parents;            // of all ops with states, or null
  mlir::Value numAccepted;        // of all ops with states, or null
  int64_t maxTokens = 0;          // of a sequence that is live; 0: no bound
  TakenSlotsOp taken;             // which sequences are taken; null: all
  llvm::SmallVector<mlir::Value> pools;
  llvm::SmallVector<Carry> carries;
  /// Number of the entry's result, and the value of the body that it is.
  llvm::SmallVector<std::pair<unsigned, mlir::Value>> results;

private:
  mlir::LogicalResult collectOps();
  mlir::LogicalResult collectResults(mlir::func::FuncOp entry);
  mlir::LogicalResult takeRule(RuleOpInterface op);
  mlir::LogicalResult takeSequences(SequenceOpInterface op);
  mlir::LogicalResult takeCheckpoints(StateOpInterface op);
  mlir::LogicalResult takeTokenSlots(StateOpInterface op);
  mlir::LogicalResult checkParents();
  mlir::LogicalResult takePending();
  mlir::LogicalResult takeBound(mlir::Value of);
  void addCarry(StateOpInterface op, llvm::ArrayRef<int64_t> shape,
                bool perKeyHead, unsigned section);
  void collectCarries();
  void markKeyHeads(mlir::Value value);

  mlir::Operation *sequencesOp = nullptr;
  mlir::Operation *checkpointsOp = nullptr;
  mlir::Operation *tokenSlotsOp = nullptr;
  llvm::DenseSet<mlir::Value> keyHeaded;
};

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_PROGRAM_KERNELOPERANDS_H
