// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the ops of the delta rule have in common, for schedules.
#ifndef GDN_DIALECT_TILE_IR_TILEINTERFACES_TD
#define GDN_DIALECT_TILE_IR_TILEINTERFACES_TD

include "mlir/IR/OpBase.td"

def Tile_RuleOpInterface : OpInterface<"RuleOpInterface"> {
  let cppNamespace = "::gdn::tile";
  let description = [{
    The delta rule of some tokens on a state, a row of each operand for a token.
  }];
  defvar tile = "::mlir::TypedValue<::mlir::VectorType>";
  let methods = [
    InterfaceMethod<"The state before the tokens.", tile, "getState">,
    InterfaceMethod<"", tile, "getQuery">,
    InterfaceMethod<"", tile, "getKey">,
    InterfaceMethod<"", tile, "getValue">,
    InterfaceMethod<"", tile, "getLogDecay">,
    InterfaceMethod<"The write strength; null: no delta term.", tile, "getBeta">,
    InterfaceMethod<"How many rows are tokens.", "::mlir::Value", "getValid">,
    InterfaceMethod<"", tile, "getNewState">,
    InterfaceMethod<"", tile, "getOutput">,
    InterfaceMethod<"What each token adds; null: nobody asks.", tile, "getDeltas">
  ];
  let extraSharedClassDeclaration = [{
    /// The log decay and, where there is one, the write strength.
    ::llvm::SmallVector<::mlir::Value> getGates() {
      ::llvm::SmallVector<::mlir::Value> gates = {$_op.getLogDecay()};
      if ($_op.getBeta())
        gates.push_back($_op.getBeta());
      return gates;
    }
    /// Whether a log decay is one per column, not one for the token.
    bool isPerChannel() { return $_op.getLogDecay().getType().getRank() == 2; }
  }];
}

def Tile_PendingOpInterface : OpInterface<"PendingOpInterface"> {
  let cppNamespace = "::gdn::tile";
  let description = [{
    A state without its last tokens, which are pending: it receives them if it
    is time, and is rounded once.
  }];
  defvar tile = "::mlir::TypedValue<::mlir::VectorType>";
  let methods = [
    InterfaceMethod<"The state without them.", tile, "getState">,
    InterfaceMethod<"", tile, "getPendingKey">,
    InterfaceMethod<"", tile, "getPendingDeltas">,
    InterfaceMethod<"", tile, "getPendingDecay">,
    InterfaceMethod<"How many there are.", "::mlir::Value", "getCount">,
    InterfaceMethod<"Whether the state receives them.", "::mlir::Value", "getCommit">,
    InterfaceMethod<"The state with them if it receives them.", tile, "getNewState">
  ];
  let extraSharedClassDeclaration = [{
    /// Keys, deltas and decays of the pending tokens.
    ::std::array<::mlir::Value, 3> getPendingTiles() {
      return {$_op.getPendingKey(), $_op.getPendingDeltas(), $_op.getPendingDecay()};
    }
    /// Whether a pending token has a log decay per column, not one for all.
    bool isPendingPerChannel() { return $_op.getPendingDecay().getType().getRank() == 2; }
  }];
}

#endif // GDN_DIALECT_TILE_IR_TILEINTERFACES_TD
