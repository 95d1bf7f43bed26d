// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The program of gdn-schedule-resident-tokens while it is written: prepare,
// scan, finish (ResidentTokens.cpp), tokens that are taken at once
// (TokenSolve.cpp), and tokens that stay pending (PendingTokens.cpp).
#ifndef GDN_LIB_SCHEDULE_TOKENS_TOKENSKERNEL_H
#define GDN_LIB_SCHEDULE_TOKENS_TOKENSKERNEL_H

#include "Kernel/ScheduledKernel.h"
#include "Tokens/TokenRoles.h"

#include "llvm/ADT/MapVector.h"

namespace gdn {

/// A range of warps.
struct Warps {
  int64_t first, count;
};

/// The window before a group of tokens: what the loop begins with, or the
/// inputs before the group. One of them is asked for, the other is zeros.
struct CarriedWindow {
  llvm::SmallVector<mlir::Operation *> startOps, inputOps;
  TokenGroup inputGroup;
  FragmentEmitter start, inputs;
  mlir::Value isStart, initial;
};

/// The program of a recurrence while it is written.
class TokensKernel final : public ScheduledKernel {
public:
  TokensKernel(mlir::func::FuncOp source, tile::DeltaScanOp scan,
               mlir::scf::ForOp loop, int64_t threads)
      : ScheduledKernel(source, scan, loop, threads), loop(loop),
        blockTokens(mostTokens(loop) <= 4 ? 4 : 8),
        isOneBlock(mostTokens(loop) <= blockTokens) {}

private:
  static int64_t mostTokens(mlir::scf::ForOp loop) {
    return tile::getMostTokens(loop).value_or(INT64_MAX);
  }
  void emitRootBlock(mlir::Block &block) override;
  std::optional<int64_t> getOwnLanes() override;
  void chooseWarps(int64_t &minBlocks) override;
  void emitBlocks(mlir::ValueRange start);
  mlir::Value emitBlock(mlir::Value first, mlir::Value before);
  void place(ScanRole role, llvm::ArrayRef<mlir::Value> operands);
  void emitPrepare(mlir::Value first, mlir::Value count);
  void emitRole(ScanRole role, llvm::ArrayRef<mlir::Value> operands,
                mlir::Value first, mlir::Value count);
  void emitLoadsIf(FragmentEmitter &emitter, llvm::ArrayRef<tile::LoadOp> loads,
                   mlir::Value condition, bool expected);
  std::unique_ptr<CarriedWindow> emitWindowLoads(tile::Conv1dOp conv,
                                                 mlir::Value token);
  void emitCarriedWindow(FragmentEmitter &warp, tile::Conv1dOp conv,
                         CarriedWindow &loaded, mlir::Value at);
  /// What makes the inputs of `conv`, in its order.
  llvm::SmallVector<mlir::Operation *> getInputOps(tile::Conv1dOp conv);
  // Preparation in two steps (TokenHistories.cpp).
  bool ownsByHistory();
  bool haveNarrowInputs();
  void emitByHistory(mlir::Value first, mlir::Value count);
  llvm::SmallVector<mlir::Operation *> getWeightOps(ScanRole role);
  llvm::SmallVector<mlir::Value> emitHistory(ScanRole role, mlir::Value first,
                                             mlir::Value count);
  void emitFromHistory(ScanRole role, mlir::Value operand,
                       mlir::ValueRange weights, mlir::Value first,
                       mlir::Value count);
  mlir::Value emitScans(mlir::Value state, mlir::Value first,
                        mlir::Value count);
  // All tokens of a block at once (TokenSolve.cpp).
  bool isSolvable();
  bool takesTensorCores();
  bool scansNumbers();
  bool isStateNarrow();
  void placeSolve();
  mlir::Value fetchNumber(mlir::Value buffer, mlir::Value at);
  void emitPairs(mlir::Value count);
  void emitProducts(mlir::Value state, mlir::Value first, mlir::Value count);
  mlir::Value emitSolved(int64_t t, llvm::ArrayRef<mlir::Value> deltas,
                         mlir::Value decay, gpu::FragmentType type);
  void emitSolve(mlir::Value count);
  mlir::Value emitCarried(mlir::Value state, mlir::Value last,
                          mlir::Value count);

  llvm::SmallVector<tile::LoadOp> getOutputLoads();
  void emitOutput(mlir::Value first, mlir::Value count);
  bool storesWindowsLast();
  void emitWindowStores(mlir::Value first, mlir::Value count,
                        int64_t firstWarp);
  void emitWindowStores(ScanRole role, mlir::Value first, mlir::Value count,
                        int64_t warp);
  // Tokens that stay pending.
  void findEarlyStores(mlir::Block &block);
  void beginPendingCopies();
  mlir::Value emitFold(mlir::Value state, mlir::Value first);
  void emitTickets(mlir::Value first);
  void emitIsLast(mlir::Value first);
  void emitKept(mlir::Value first, mlir::Value count);
  void emitStoresOf(FragmentEmitter &emitter, mlir::Operation *op);
  mlir::IRMapping withFlags();

  mlir::Value emitIsLast(tile::LastInGroupOp last, ScanRole role,
                         mlir::Value window, mlir::Value first);

  gpu::EachWarpOp enterEachWarp(Warps warps, mlir::TypeRange results = {});
  /// The body of a loop on each warp of the block, which takes tokens below
  /// `count` in turn; to be left with `leave`.
  mlir::Value enterTurns(mlir::Value count);
  void leave(mlir::Operation *op);
  gpu::WarpsOp enterWarp(int64_t warp, mlir::TypeRange results = {});
  /// The values of the program at token `token`.
  mlir::IRMapping atToken(mlir::Value token);
  mlir::Value index(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(b, scan.getLoc(), value);
  }
  mlir::Value add(mlir::Value x, mlir::Value y) {
    return mlir::arith::AddIOp::create(b, scan.getLoc(), x, y);
  }
  mlir::Value sub(mlir::Value x, mlir::Value y) {
    return mlir::arith::SubIOp::create(b, scan.getLoc(), x, y);
  }
  /// `value` between 0 and `most`.
  mlir::Value clamp(mlir::Value value, int64_t most) {
    value = mlir::arith::MinSIOp::create(b, scan.getLoc(), value, index(most));
    return mlir::arith::MaxSIOp::create(b, scan.getLoc(), value, index(0));
  }
  mlir::scf::IfOp emitIf(mlir::Value condition, mlir::TypeRange results = {}) {
    return mlir::scf::IfOp::create(b, scan.getLoc(), results, condition,
                                   /*withElse=*/!results.empty());
  }
  mlir::Value isEqual(mlir::Value x, mlir::Value y) {
    return mlir::arith::CmpIOp::create(b, scan.getLoc(),
                                       mlir::arith::CmpIPredicate::eq, x, y);
  }

  mlir::scf::ForOp loop;
  int64_t blockTokens;
  bool isOneBlock; // no row has more tokens than that
  llvm::DenseSet<mlir::Value> tokenTiles;
  mlir::Value begin, end;
  /// Of a window after a token: its tile in shared memory, and the rows there
  /// from token to token.
  struct WindowBuffer {
    mlir::Value tile;
    int64_t firstRow, rowsPerToken;
  };
  llvm::DenseMap<mlir::Value, WindowBuffer> windows;
  // Of last_in_group, 1 or 0; code is written in this order.
  llvm::MapVector<mlir::Operation *, mlir::Value> flags;
  llvm::DenseMap<mlir::Operation *, mlir::Value> tickets; // of the same

  // Of tokens that are taken at once, in shared memory.
  mlir::Value knownBuffer, seenBuffer; // the state's products
  mlir::Value keyPairs, queryPairs;

  // Of tokens that stay pending (PendingTokens.cpp).
  tile::DeltaFoldOp fold;
  mlir::Value pendingKeys, pendingDeltas, pendingDecays; // in shared memory
  /// Stores before the loop: of the folded state, and of windows.
  llvm::SmallVector<mlir::Operation *> stateStores, windowStores;
};

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_TOKENS_TOKENSKERNEL_H
