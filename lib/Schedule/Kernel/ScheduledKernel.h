// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A gdn_gpu program while a schedule writes it from a tile program with one
// scan: what all schedules of a state in registers do alike.
#ifndef GDN_LIB_SCHEDULE_KERNEL_SCHEDULEDKERNEL_H
#define GDN_LIB_SCHEDULE_KERNEL_SCHEDULEDKERNEL_H

#include "Kernel/FragmentEmitter.h"
#include "Kernel/OperandRoles.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gdn {

class ScheduledKernel {
public:
  /// `root` is the op of `source` that the schedule lays out together with its
  /// block: the scan, or a loop around it.
  ScheduledKernel(mlir::func::FuncOp source, tile::RuleOpInterface scan,
                  mlir::Operation *root, int64_t threads)
      : source(source), scan(scan), root(root),
        numWarps(threads / gpu::warpThreads), b(source.getContext()) {}
  virtual ~ScheduledKernel() = default;

  /// Replaces the tile program. Fails with an error on what it cannot take;
  /// false, with a remark, for a state that the registers cannot hold.
  mlir::FailureOr<bool> emit(int64_t minBlocks);

protected:
  /// The block that `root` is in, by role.
  virtual void emitRootBlock(mlir::Block &block) = 0;
  /// A branch beside the one that `root` is in begins.
  virtual void enterOverlap() { emitAwait(); }
  /// A store outside of that block.
  virtual void emitPlainStore(tile::StoreOp store);

  /// Fails with an error on what the schedule cannot take, once roles and
  /// layout are known.
  virtual mlir::LogicalResult check() { return mlir::success(); }
  /// Lanes that hold a row of the state, whose elements in memory are `stored`,
  /// where its columns allow that: two pieces of 128 columns for each. With f32
  /// memory takes 2.5 % longer where a warp asks for 128 bytes of a row instead
  /// of 256; for all 512 at once it is no faster.
  static int64_t getRowLanes(mlir::Type stored) {
    return stored.isF32() ? 16 : 8;
  }
  /// Other lanes that a schedule wants, if any, and the most neighbouring
  /// columns of one.
  virtual std::optional<int64_t> getOwnLanes() { return std::nullopt; }
  virtual int64_t getOwnVector() { return 8; }
  /// Whether elements of a narrow state are widened a row at a time, so that
  /// the others take their own size in registers.
  virtual bool widensRows() const { return false; }
  /// Sets `numWarps` and the blocks that registers must allow, if not to what
  /// the schedule is made with, once roles are known.
  virtual void chooseWarps(int64_t &minBlocks) {}
  /// Whether the warp of the value makes the gates, too.
  virtual bool joinsGates() const { return false; }
  /// Whether the schedule can go over the rows of a state in passes.
  virtual bool takesPasses() const { return false; }

  /// Lays the state out, if that is possible; `stored` is the type of its
  /// elements in memory.
  bool chooseLayout(mlir::Type stored, int64_t minBlocks);
  void emitBlock(mlir::Block &block);
  void emitOps(llvm::iterator_range<mlir::Block::iterator> ops);
  /// Copies ops of `block` that are no tiles and have no regions, but not those
  /// of floating point, which are computed where they are used, nor those that
  /// come later.
  void emitScalars(mlir::Block &block,
                   const llvm::SetVector<mlir::Operation *> &later = {});
  /// From here on what the launch ahead wrote may be read, and memory that it
  /// reads be written. Only what lies in slots is read before, and slot ids.
  void emitAwait();

  /// Whether what `op` makes came from another warp.
  bool isKnown(mlir::Operation &op) {
    return op.getNumRegions() == 0 && op.getNumResults() == 1 &&
           scalars.contains(op.getResult(0));
  }

  int64_t getWarp(ScanRole role) const;
  /// The body of the warp of a role; the state's are all.
  gpu::WarpsOp enterWarps(ScanRole role, mlir::TypeRange results = {});
  /// What a value of the tile program that is no tile is here.
  mlir::Value lookup(mlir::Value value) { return scalars.lookup(value); }
  mlir::Value allocate(mlir::VectorType tile);
  mlir::Value allocate(mlir::Value tile) {
    return allocate(mlir::cast<mlir::VectorType>(tile.getType()));
  }
  /// A row of an operand of the scan, from shared memory.
  mlir::Value loadShared(mlir::Value operand, mlir::Attribute layout,
                         mlir::Value row);

  mlir::func::FuncOp source;
  tile::RuleOpInterface scan;
  mlir::Operation *root;
  int64_t numWarps;
  mlir::OpBuilder b;
  mlir::IRMapping scalars;
  gpu::RowsAttr stateRows;
  bool isAcross = false; // rows of the state lie side by side in memory
  int64_t numPasses =
      1; // over equal blocks of rows, of which registers hold one
  std::optional<ScanRoles> roles;
  mlir::Block *entry = nullptr;
  /// Buffers of operands and results of the scan.
  llvm::DenseMap<mlir::Value, mlir::Value> shared;
};

/// What a role reads, in the order to ask for it: tiles that lie across memory
/// come last, since turning their elements around waits for them.
llvm::SmallVector<tile::LoadOp> getLoads(mlir::ArrayRef<mlir::Operation *> ops);

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_KERNEL_SCHEDULEDKERNEL_H
