// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loop over the tokens of a sequence with one scan in it: which tiles have a
// row per token, so that several tokens can be worked on at once, what the
// convolutions carry from token to token, and how a block of threads takes it.
#ifndef GDN_LIB_SCHEDULE_TOKENS_TOKENPLAN_H
#define GDN_LIB_SCHEDULE_TOKENS_TOKENPLAN_H

#include "Kernel/FragmentEmitter.h"
#include "Kernel/OperandRoles.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace gdn {

/// The roles whose operands may come from convolutions.
constexpr ScanRole convRoles[] = {ScanRole::query, ScanRole::key,
                                  ScanRole::value};

struct TokenPlan {
  TokenPlan(mlir::scf::ForOp loop, tile::DeltaScanOp scan,
            const ScanRoles &roles, int64_t numWarps);

  /// Whether tokens may be taken at once: nothing asks for the state after
  /// each, and a decay is a number.
  bool isSolvable();
  /// Whether tensor cores take the rows of the state as they lie, four lanes to
  /// a row; longer rows leave a thread no room for a key.
  bool takesTensorCores();
  /// Whether tokens are taken one after another, nothing stays pending, and
  /// eight warps have registers for the state.
  bool scansInPlace();
  /// Whether each warp makes the decays per channel of another token of a block
  /// of them: its scans would wait for one warp.
  bool sharesDecays() { return scan.isPerChannel(); }
  /// Whether these lie in shared memory as the factors of the state: nobody
  /// takes their logarithms, and threads would take each of them many times.
  bool makesFactors() { return sharesDecays() && !keepsPending(); }
  /// Whether the state in memory has at most 11 significant bits.
  bool isStateNarrow();
  /// Whether the state in memory is bytes.
  bool hasPlanes();
  /// The same of states that are read for each token, as in a tree.
  bool readsNarrowStates();
  /// Whether queries, keys or values come from convolutions.
  bool hasConvs();
  /// Whether queries, keys and values come from convolutions that keep their
  /// inputs in shared memory, and there are rows and warps for it.
  bool preparesByHistory();
  /// Whether the inputs of these convolutions have 16 bits in memory.
  bool haveNarrowInputs();
  /// Whether windows are stored behind the outputs, which then wait neither for
  /// them nor for the answer of the counter: a block of eight warps asks it
  /// early, and no other block of tokens follows.
  bool storesWindowsLast() { return preparesByHistory() && !keepsPending(); }
  /// Whether tokens are pending before and behind the sequence's.
  bool keepsPending() { return fold || catchUp; }

  /// The operands or results of the scan that a role has in shared memory.
  llvm::SmallVector<mlir::Value> getTiles(ScanRole role);
  /// The convolution of a role whose window the loop carries; null if there is
  /// none.
  tile::Conv1dOp findCarriedConv(ScanRole role);
  /// What makes `tile` inside the loop, in its order.
  llvm::SmallVector<mlir::Operation *> getOpsOf(mlir::Value tile);
  /// What makes the inputs of `conv`.
  llvm::SmallVector<mlir::Operation *> getInputOps(tile::Conv1dOp conv) {
    return getOpsOf(conv.getInput());
  }
  /// What the role makes before the loop, but for a carried window: the
  /// weights.
  llvm::SmallVector<mlir::Operation *> getWeightOps(ScanRole role);
  /// What the loop begins with for `carried`.
  mlir::Value getInit(mlir::Value carried) {
    return loop.getTiedLoopInit(mlir::cast<mlir::BlockArgument>(carried))
        ->get();
  }

  mlir::scf::ForOp loop;
  tile::DeltaScanOp scan;
  const ScanRoles &roles;
  // How pending tokens come into the state, if there are any: all of them ahead
  // of the tokens, or those of several steps if it is time.
  tile::DeltaFoldOp fold;
  tile::DeltaCatchUpOp catchUp;
  int64_t numWarps;
  int64_t blockTokens; // that are taken before the next ones
  bool isOneBlock;     // no sequence has more tokens than that
};

/// Tiles of the body of `loop` with a row, or an element, for the token.
llvm::DenseSet<mlir::Value> findTokenTiles(mlir::scf::ForOp loop);

/// Tiles from the convolutions among `ops` that the conditional stores `stores`
/// write: windows after a token.
llvm::SetVector<mlir::Value>
findStoredWindows(mlir::ArrayRef<mlir::Operation *> stores);

/// Copies to the builder's position the ops of `block` that are no tiles and
/// need none, with those in their regions; those of floating point are computed
/// where they are used. Ops that need what `scalars` lacks are left out.
void emitTokenScalars(mlir::OpBuilder &b, mlir::Block &block,
                      mlir::IRMapping &scalars);

/// True if `op` is or has a `gdn_tile.store` or a store of a number.
bool hasStores(mlir::Operation *op);

/// The ops of `gdn_tile.last_in_group` that the condition of a branch comes
/// from.
llvm::SetVector<mlir::Operation *> findLastInGroup(mlir::Operation *branch);

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_TOKENS_TOKENPLAN_H
