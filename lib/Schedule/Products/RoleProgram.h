// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The programs of the roles of WarpRoles.cpp, and what all of them do alike.
#ifndef GDN_LIB_SCHEDULE_PRODUCTS_ROLEPROGRAM_H
#define GDN_LIB_SCHEDULE_PRODUCTS_ROLEPROGRAM_H

#include "Products/RolePlan.h"
#include "Products/TileChannels.h"
#include "Products/WarpProgram.h"

namespace gdn {

/// Buffers for tiles of chunks: one in the recurrence, one in the intra-chunk
/// work, the next and one on its way.
constexpr int64_t copiedDepth = 4;

/// How many turns later than the consumers' the role that loads knows that
/// outputs of a turn are stored: it fills a buffer that they gave back in a
/// turn in which they had stored those of the one before.
constexpr int64_t signalLag = copiedDepth + 1;

/// What the roles of a kernel share.
struct SharedByRoles {
  mlir::OpBuilder &b;
  mlir::Block *entry;
  const RolePlan &plan;
  TileChannels &channels;
  bool isPaired;           // two blocks prepare chunks for each other
  mlir::IRMapping scalars; // ahead of the roles
  llvm::DenseSet<mlir::Operation *>
      ahead{};        // ops of the program that are there
  bool stays = false; // whether a block has one unit after the other
};

class RoleProgram : public WarpProgram {
public:
  /// `ownOps` are the ops on tiles that are the work of the role, if given.
  RoleProgram(const SharedByRoles &shared, int64_t numWarps,
              const llvm::SetVector<mlir::Operation *> *ownOps = nullptr)
      : WarpProgram(shared.b, shared.scalars, shared.entry, numWarps),
        shared(shared), plan(shared.plan), channels(shared.channels),
        ownOps(ownOps) {
    emitter.receiveSums(plan.sums);
  }
  /// Whether the block has one unit after the other, and the next one.
  bool stays() const { return shared.stays; }
  virtual mlir::Value getNextUnit(mlir::Location loc) {
    return channels.receiveUnit(loc);
  }

  /// The number of the group of warps, an index, where the role is in turns.
  mlir::Value turn;

protected:
  /// Emits the loop over chunks.
  virtual mlir::LogicalResult emitChunks() {
    return WarpProgram::emitLoop(plan.loop);
  }
  virtual bool isOwn(mlir::Operation *op) const {
    return ownOps && ownOps->contains(op);
  }
  bool takes(mlir::Operation *op) const final;
  mlir::LogicalResult emitLoop(mlir::scf::ForOp loop) final {
    return loop == plan.loop ? emitChunks() : WarpProgram::emitLoop(loop);
  }

  /// Of the loop over chunks.
  struct Bounds {
    mlir::Value begin, end, step;
  };
  Bounds getBounds() const;
  /// A loop over chunks, one at a time. Of paired blocks, if the role
  /// `alternates`, each has every second one. Of others it has all, and with
  /// `inPairs` as many as the producer takes: the last may be empty.
  mlir::scf::ForOp createLoop(bool alternates, bool inPairs);
  /// The role's ops in the body of the loop over chunks, in order, with the
  /// scalars there emitted in the body of `copy`.
  Ops enterBody(mlir::scf::ForOp copy);
  /// What `loads` give for the chunk at `at`, in registers.
  llvm::SmallVector<mlir::Value> loadAt(mlir::ArrayRef<tile::LoadOp> loads,
                                        mlir::Value at);
  void receive(mlir::ArrayRef<mlir::Value> group) {
    channels.receive(emitter.tiles, group, received);
  }
  /// Behind the loop `copy` over chunks: where their number is odd, the others
  /// have made one more of `groups`.
  void dropLast(mlir::scf::ForOp copy,
                mlir::ArrayRef<mlir::ArrayRef<mlir::Value>> groups);
  void releaseAll() { channels.release(std::exchange(received, {})); }

  const SharedByRoles &shared;
  const RolePlan &plan;
  TileChannels &channels;
  const llvm::SetVector<mlir::Operation *> *ownOps;
  llvm::SmallVector<mlir::Value> received; // channels, leaders first
};

/// Where a block looks for its sequence in a loop: that, its bounds, and what
/// stands ahead of them, once for all roles.
mlir::LogicalResult emitAheadOfRoles(SharedByRoles &shared,
                                     mlir::func::FuncOp source,
                                     int64_t numWarps);

/// The region of a role, whose warps are the next ones from `first` on: those
/// of the program, or with `turns` above 1 so many groups of them, each by
/// itself.
mlir::LogicalResult emitWarps(mlir::OpBuilder &b, mlir::func::FuncOp source,
                              int64_t &first, RoleProgram &&role,
                              int64_t registers, bool alternate,
                              int64_t turns = 1);

/// Copies chunk after chunk, each as soon as there is a buffer for it.
struct LoadRole final : RoleProgram {
  using RoleProgram::RoleProgram;
  mlir::LogicalResult emitChunks() override;

private:
  void emitSignal(tile::SignalOp signal, mlir::Value at, mlir::Value begin,
                  mlir::Value end);
};

/// Copies groups of tiles of what other stages prepared, chunk after chunk.
struct CopyRole final : RoleProgram {
  using Groups = llvm::SmallVector<llvm::SmallVector<mlir::Value>>;
  CopyRole(const SharedByRoles &shared, const Groups &groups)
      : RoleProgram(shared, /*numWarps=*/1), groups(groups) {}
  mlir::LogicalResult emitChunks() override;
  mlir::LogicalResult emitCopies(mlir::ArrayRef<mlir::Value> tiles);

  Groups groups; // of matrices, or of a vector
};

/// Stores outputs, chunk after chunk.
struct StoreRole final : RoleProgram {
  using RoleProgram::RoleProgram;
  mlir::LogicalResult emitChunks() override;
};

/// Copies what work on rows of outputs takes, chunk after chunk.
struct FetchRole final : RoleProgram {
  using RoleProgram::RoleProgram;
  mlir::LogicalResult emitChunks() override;
};

/// Makes what needs no matrix, for the same chunks.
struct GateRole final : RoleProgram {
  using RoleProgram::RoleProgram;
  mlir::LogicalResult emitChunks() override;
  mlir::LogicalResult emitAhead();
  mlir::Value getNextUnit(mlir::Location loc) override {
    return channels.giveUnit(loc);
  }
};

/// Multiplies rows of what was loaded by elements of vectors, some at a time.
struct ScaleRole final : RoleProgram {
  using RoleProgram::RoleProgram;
  mlir::LogicalResult emitChunks() override;
};

/// Makes all products and inverses that do not need the state.
struct Producer final : RoleProgram {
  using RoleProgram::RoleProgram;
  mlir::LogicalResult emitChunks() override;
  mlir::LogicalResult emitAlone();
};

/// Has the inter-chunk recurrence: all but what is the work of other roles.
struct Consumers final : RoleProgram {
  Consumers(const SharedByRoles &shared, int64_t numWarps)
      : RoleProgram(shared, numWarps) {
    emitter.storePerWarpgroup();
    if (plan.convolved)
      convolution.emplace(emitter.tiles, *plan.convolved);
  }
  bool isOwn(mlir::Operation *op) const override;
  mlir::Value getCarried(mlir::Value tile) override;
  mlir::LogicalResult emitLoopBody(mlir::scf::ForOp loop,
                                   mlir::scf::ForOp copy) override;

  std::optional<ConvolutionEmitter> convolution;
  mlir::Value window; // in front of what it convolves next
};

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_PRODUCTS_ROLEPROGRAM_H
