// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A gdn_gpu program while a schedule writes it from a tile program with one
// scan: what all schedules of a state in registers do alike.
#ifndef GDN_LIB_SCHEDULE_SCHEDULEDKERNEL_H
#define GDN_LIB_SCHEDULE_SCHEDULEDKERNEL_H

#include "FragmentEmitter.h"
#include "ScanRoles.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gdn {

/// The scalars of a tile program at the coordinates of another block, and
/// prefetches of what it will load.
class OtherBlock {
public:
  OtherBlock(mlir::OpBuilder &b, const mlir::IRMapping &here,
             llvm::ArrayRef<mlir::Value> ids)
      : b(b), here(here), ids(ids) {}
  mlir::Value get(mlir::Value value);
  llvm::SmallVector<mlir::Value> get(mlir::ValueRange values);
  void map(mlir::Value value, mlir::Value there) {
    this->there.map(value, there);
    depends[value] = true;
  }
  /// A large tile, a row by each lane; a small one, by the warp, whole or one
  /// row of it.
  void prefetchRows(tile::LoadOp load);
  void prefetch(tile::LoadOp load, mlir::Value row = {});

private:
  bool dependsOnBlock(mlir::Value value);

  mlir::OpBuilder &b;
  const mlir::IRMapping &here;
  llvm::ArrayRef<mlir::Value> ids;
  mlir::IRMapping there;
  llvm::DenseMap<mlir::Value, bool> depends;
};

class ScheduledKernel {
public:
  /// `root` is the op of `source` that the schedule lays out together with its
  /// block: the scan, or a loop around it.
  ScheduledKernel(mlir::func::FuncOp source, tile::DeltaScanOp scan,
                  mlir::Operation *root, int64_t threads)
      : source(source), scan(scan), root(root),
        numWarps(threads / gpu::warpThreads), b(source.getContext()) {}
  virtual ~ScheduledKernel() = default;

  /// Replaces the tile program. Fails with an error on what has no place;
  /// false, with a remark, for a state that the registers cannot hold.
  mlir::FailureOr<bool> emit(int64_t minBlocks);

protected:
  /// The block that `root` is in, by role.
  virtual void emitRootBlock(mlir::Block &block) = 0;
  /// The program behind its signature.
  virtual void emitProgram(mlir::Block &body) { emitBlock(body); }
  /// A branch beside the one that `root` is in begins.
  virtual void enterBeside() { emitAwait(); }
  /// A store outside of that block.
  virtual void emitPlainStore(tile::StoreOp store);

  /// Fails with an error on what the schedule has no place for, once roles and
  /// layout are known.
  virtual mlir::LogicalResult check() { return mlir::success(); }
  /// Lanes that hold a row of the state, where columns allow it.
  virtual int64_t preferredLanes() { return 8; }
  /// Whether the schedule can go over the rows of a state in passes.
  virtual bool takesPasses() const { return false; }

  /// Lays the state out, if that is possible; `stored` is the type of its
  /// elements in memory.
  bool chooseLayout(mlir::Type stored, int64_t minBlocks);
  void emitBlock(mlir::Block &block);
  void emitOps(llvm::iterator_range<mlir::Block::iterator> ops);
  /// Copies ops of `block` that are no tiles and have no regions, but not those
  /// of floating point, which are computed where they are used.
  void emitScalars(mlir::Block &block);
  /// From here on what the launch ahead wrote may be read, and memory that it
  /// reads be written. Only slots and states are read before.
  void emitAwait();
  /// Another unit than this block's: its coordinates, or this one's where there
  /// is none.
  struct OtherUnit {
    llvm::SmallVector<mlir::Value> ids;
    mlir::Value isThere;
  };
  /// The unit `distance` (an index; null: none) behind unit `number` (null: the
  /// one at hand).
  OtherUnit emitUnit(mlir::Value distance, mlir::Value number);
  /// Whether the program gets to `root` in that unit; null: always. It does if
  /// `isReachedOnce`: `root` stands in the function, or in one branch there.
  mlir::Value emitReaches(OtherBlock &other);
  bool isReachedOnce();
  /// Emits `body` for one warp, with the scalars of the block that is `distance`
  /// units ahead: what begins when a block of now ends. To be called in the
  /// block of `root`.
  void emitAhead(int64_t distance, int64_t warp,
                 llvm::function_ref<void(OtherBlock &)> body);
  /// Emits `body` where the unit is there and gets to `root`.
  void emitInUnit(OtherUnit &unit, OtherBlock &other,
                  llvm::function_ref<void(OtherBlock &)> body);
  /// The number of units of a launch; null unless each axis of the grid is a
  /// symbol.
  mlir::Value countUnits();

  /// The body of the warp of a role; the state's are all.
  gpu::WarpsOp enterWarps(ScanRole role, mlir::TypeRange results = {});
  /// What a value of the tile program that is no tile is here.
  mlir::Value lookup(mlir::Value value) { return scalars.lookup(value); }
  mlir::Value allocate(mlir::VectorType tile);
  mlir::Value allocate(mlir::Value tile) {
    return allocate(mlir::cast<mlir::VectorType>(tile.getType()));
  }
  /// A row of an operand of the scan, from shared memory.
  mlir::Value fetch(mlir::Value operand, mlir::Attribute layout,
                    mlir::Value row);

  mlir::func::FuncOp source;
  tile::DeltaScanOp scan;
  mlir::Operation *root;
  int64_t numWarps;
  mlir::OpBuilder b;
  mlir::IRMapping scalars;
  gpu::RowsAttr stateRows;
  int64_t numPasses =
      1; // over equal blocks of rows, of which registers hold one
  std::optional<ScanRoles> roles;
  mlir::Block *entry = nullptr;
  /// Places of operands and results of the scan.
  llvm::DenseMap<mlir::Value, mlir::Value> shared;
};

/// What a role reads, in the order to ask for it: tiles that lie across memory
/// come last, since turning their elements around waits for them.
llvm::SmallVector<tile::LoadOp> getLoads(mlir::ArrayRef<mlir::Operation *> ops);

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_SCHEDULEDKERNEL_H
