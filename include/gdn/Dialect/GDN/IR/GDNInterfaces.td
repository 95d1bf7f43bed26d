// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Interfaces of the ops over the sequences of a batch. Fusion, the reference
// and the lowering use these interfaces, so a new rule needs only a new op.
#ifndef GDN_DIALECT_GDN_IR_GDNINTERFACES_TD
#define GDN_DIALECT_GDN_IR_GDNINTERFACES_TD

include "mlir/IR/OpBase.td"

// An optional operand. Ops without it need not declare it.
class GDN_OptionalOperand<string description, string type, string name>
    : InterfaceMethod<description, type, name, (ins), "", "return {};">;

defvar GDN_PoolValue = "::mlir::TypedValue<::gdn::PoolType>";
defvar GDN_TensorValue = "::mlir::TypedValue<::mlir::RankedTensorType>";

def GDN_SequenceOpInterface : OpInterface<"SequenceOpInterface"> {
  let cppNamespace = "::gdn";
  let description = [{
    An op that works sequence by sequence. Its results are zero in sequences
    whose slot is skipped, and in padding.
  }];
  let methods = [
    InterfaceMethod<"The pool that decides which slots are skipped.",
                    GDN_PoolValue, "getPool">,
    InterfaceMethod<"The slot of each sequence.", "::mlir::Value", "getSlots">,
    InterfaceMethod<"The bounds of the sequences; null if each token is one.",
                    "::mlir::Value", "getCuSeqlens">,
    InterfaceMethod<"The operands that have one entry per token.",
                    "::llvm::SmallVector<::mlir::Value>", "getTokenOperands">
  ];
}

def GDN_StateOpInterface
    : OpInterface<"StateOpInterface", [GDN_SequenceOpInterface]> {
  let cppNamespace = "::gdn";
  let description = [{
    An op whose sequences start from a state in a pool and write their last
    state there. docs/spec/slots.md has the meaning of each operand. All
    operands may be null.
  }];
  let methods = [
    InterfaceMethod<"The slot to write, if not the one read.",
                    "::mlir::Value", "getWriteSlots">,
    InterfaceMethod<"Whether each sequence has a state.",
                    "::mlir::Value", "getHasInitial">,
    InterfaceMethod<"The bounds of each sequence's checkpoints.",
                    "::mlir::Value", "getCuCheckpoints">,
    InterfaceMethod<"The tokens before each checkpoint.",
                    "::mlir::Value", "getCheckpointTokens">,
    InterfaceMethod<"The slot of each checkpoint.",
                    "::mlir::Value", "getCheckpointSlots">,
    InterfaceMethod<"The slots of the states after tokens.",
                    "::mlir::Value", "getTokenSlots">,
    InterfaceMethod<"The token from whose state each token starts.",
                    "::mlir::Value", "getParents">,
    InterfaceMethod<"The pool of the states after tokens, if not the first.",
                    GDN_PoolValue, "getTokenPool">,
    GDN_OptionalOperand<"How many pending tokens are accepted.",
                        "::mlir::Value", "getNumAccepted">,
    GDN_OptionalOperand<"The scales of rows, of states in planes.",
                        GDN_PoolValue, "getStateScales">,
    GDN_OptionalOperand<"The lower plane of states in two planes.",
                        GDN_PoolValue, "getStateLow">
  ];
}

def GDN_RuleOpInterface
    : OpInterface<"RuleOpInterface", [GDN_StateOpInterface]> {
  let cppNamespace = "::gdn";
  let description = [{
    A recurrence with an update of rank 1 per token and value head. The state
    decays, per head or per channel of the key. Then the outer product of a
    vector `d` and the key is added to it. The output is the state times the
    query.

        M <- M * exp(log_decay)
        M <- M + d key^T   d = beta (value - M key), or without beta d = value
        output = M (scale * query)

    An erase key stands for the key in d, where there is one.
  }];
  let methods = [
    InterfaceMethod<"Queries, T x Hk x dk.", GDN_TensorValue, "getQuery">,
    InterfaceMethod<"Keys, T x Hk x dk.", GDN_TensorValue, "getKey">,
    InterfaceMethod<"Values, T x Hv x dv.", GDN_TensorValue, "getValue">,
    InterfaceMethod<"Log decays, T x Hv (x dk).",
                    GDN_TensorValue, "getLogDecay">,
    InterfaceMethod<"The result, T x Hv x dv.", GDN_TensorValue, "getOutput">,
    InterfaceMethod<"The factor on the query, if it is given.",
                    "::std::optional<::llvm::APFloat>", "getScale">,
    GDN_OptionalOperand<[{
      The write strength of a rule with the delta term, T x Hv. It is null for
      rules that write the values without a delta term.
    }], "::mlir::Value", "getBeta">,
    GDN_OptionalOperand<"What the delta term reads instead of keys, T x Hk x dk.",
                        "::mlir::Value", "getErase">,
    InterfaceMethod<"Whether the write strength may be up to 2.", "bool",
                    "getDoubleBeta", (ins), "", "return false;">,
    GDN_OptionalOperand<"Keys of pending tokens.",
                        GDN_PoolValue, "getPendingKeys">,
    GDN_OptionalOperand<"Deltas of pending tokens.",
                        GDN_PoolValue, "getPendingDeltas">,
    GDN_OptionalOperand<"Log decays of pending tokens.",
                        GDN_PoolValue, "getPendingDecays">,
    GDN_OptionalOperand<[{
      How many tokens are pending in each slot, P x Hk. With it the state is
      written when there is no room for more.
    }], GDN_PoolValue, "getPendingCounts">,
    GDN_OptionalOperand<"Scales of deltas of pending tokens in f16.",
                        GDN_PoolValue, "getPendingScales">,
    InterfaceMethod<"Whether the decay has a value per channel of the key.",
                    "bool", "isPerChannel", (ins), "",
                    "return $_op.getLogDecay().getType().getRank() == 3;">,
    InterfaceMethod<"The factor on the query: the scale, or dk^(-1/2).",
                    "double", "getScaleOrDefault", (ins), "", [{
      return ::gdn::getScaleOrDefault($_op.getScale(),
                                      $_op.getKey().getType().getDimSize(2));
    }]>
  ];
}

#endif // GDN_DIALECT_GDN_IR_GDNINTERFACES_TD
