// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ops of a tile program of products on all warps of a block. A tile is in
// registers, rows dealt to warps as matrix instructions want them, or in shared
// memory, or in both; it goes from one to the other when an op asks for it.
#ifndef GDN_LIB_SCHEDULE_PRODUCTS_SHAREDTILES_H
#define GDN_LIB_SCHEDULE_PRODUCTS_SHAREDTILES_H

#include "gdn/Dialect/GPU/IR/GPU.h"
#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

#include <functional>

namespace gdn {

inline mlir::VectorType vectorType(mlir::Value tile) {
  return mlir::cast<mlir::VectorType>(tile.getType());
}
/// Whether `tile` is of rank 1.
inline bool isVector(mlir::Value tile) {
  auto type = mlir::dyn_cast<mlir::VectorType>(tile.getType());
  return type && type.getRank() == 1;
}

class ProductEmitter {
public:
  /// Shared tiles are allocated at the beginning of `entry`.
  ProductEmitter(mlir::OpBuilder &b, mlir::IRMapping &scalars,
                 mlir::Block *entry, int64_t numWarps);

  /// Emits an op whose operands and results are tiles of rank 2, or a store.
  mlir::LogicalResult emit(mlir::Operation *op);
  /// Emits an inverse, of one chunk or of two at the same time, of which each
  /// emitter has one.
  static void emitInverse(tile::TriInverseOp inverse,
                          mlir::ArrayRef<ProductEmitter *> emitters);
  /// Emits ops on tiles of rank 1, loads and stores among them, on one warp;
  /// their results are shared.
  mlir::LogicalResult emitVectors(mlir::ArrayRef<mlir::Operation *> ops);
  /// Emits the loads among such ops, ahead of the others.
  void emitVectorLoads(mlir::ArrayRef<mlir::Operation *> ops);
  /// Begins to copy what `load` reads, at the values that `at` gives it, `rows`
  /// of it if given. With `isPinned`, its buffer serves nothing else: another
  /// copy to it comes before the program asks for the tile again.
  gpu::BeginCopyOp emitCopy(tile::LoadOp load, const mlir::IRMapping &at,
                            mlir::Value rows, bool isPinned);
  /// True for loads that go to shared memory as they are: of 16-bit matrices,
  /// and of rows that no other op on tiles of rank 1 uses.
  static bool isCopied(tile::LoadOp load);

  /// True for gates of tokens that lie apart: copied element by element.
  static bool isElements(tile::LoadOp load);

  /// True if only transposed work reads what `load` loads.
  static bool isReadTransposed(tile::LoadOp load);

  /// The tile in registers, in the layout of all matrices.
  mlir::Value fragmentOf(mlir::Value tile);
  void setFragment(mlir::Value tile, mlir::Value fragment) {
    fragments[tile] = fragment;
  }
  gpu::FragmentType typeOf(mlir::VectorType tile) const;

  /// The shared tile with `tile`, which is shared there if it is not yet.
  mlir::Value bufferOf(mlir::Value tile);
  /// From here on, `tile` is in `buffer`.
  void setBuffer(mlir::Value tile, mlir::Value buffer) {
    buffers[tile] = buffer;
  }
  /// As above, and the buffer serves nothing else.
  void pinBuffer(mlir::Value tile, mlir::Value buffer) {
    buffers[tile] = buffer;
    pinned.insert(buffer);
  }
  /// As soon as it is made, `tile` goes to the buffer that `find` gives then.
  void setDestination(mlir::Value tile, std::function<mlir::Value()> find) {
    destinations[tile] = std::move(find);
  }
  /// Begins to copy what `load` reads, each warp the columns that it reads
  /// transposed; see emitCopy. The buffer serves nothing else.
  void emitOwnCopy(tile::LoadOp load, const mlir::IRMapping &at,
                   mlir::Value rows);
  /// Emits maps whose rows are made of the same rows of shared matrices and of
  /// elements of shared vectors, a few rows at a time, so that few registers
  /// are enough. Results that have a destination go there.
  void emitInSlices(mlir::ArrayRef<mlir::Operation *> maps);
  /// An op on tiles of rank 1 alone, not by copies.
  static bool isVectorWork(mlir::Operation *op);
  /// From here on, what is stored transposed goes by way of the columns per
  /// warpgroup of a warp, which waits for no other.
  void storeWarpgroupColumns() { storesOwn = true; }

private:
  static mlir::VectorType vectorType(mlir::Value tile) {
    return mlir::cast<mlir::VectorType>(tile.getType());
  }
  /// Bytes that divide the address of a tile and of each of its rows; 0 where
  /// nothing is known.
  static int64_t getAlignment(mlir::Value view, mlir::ValueRange indices,
                              mlir::VectorType tile);
  /// Whether it is a tile of rank 1.
  static bool isVector(mlir::Value tile) {
    auto type = mlir::dyn_cast<mlir::VectorType>(tile.getType());
    return type && type.getRank() == 1;
  }
  /// The type of `tile`, or of the slice of it that is worked on.
  mlir::VectorType shown(mlir::Value tile) const;
  mlir::Value sliceRow(mlir::Location loc);
  mlir::Value fetchSlice(mlir::Value vector, gpu::PerRowAttr layout);
  mlir::Value fragmentOf(mlir::Value tile, gpu::RowsAttr rows);
  gpu::RowsAttr rowsOf(mlir::VectorType tile) const;
  gpu::RowsAttr wideRowsOf(mlir::VectorType tile) const;
  mlir::Value allocate(gpu::SharedType type, mlir::Block *block);
  mlir::Value bufferFor(mlir::Value tile, mlir::VectorType type, bool swizzled,
                        mlir::Block *block);
  mlir::Value fetchVector(mlir::Value tile, mlir::Attribute layout);
  void emitMap(tile::MapRowsOp map);
  static bool isTransposed(tile::MapRowsOp map);
  void emitTransposedMap(tile::MapRowsOp map);
  void emitMatmul(tile::MatmulOp matmul);
  void setMade(mlir::Value tile, mlir::Value fragment);
  void emitDecayMatrix(tile::DecayMatrixOp decay);
  void emitStore(tile::StoreOp store);
  void emitVector(mlir::Operation *op);
  bool isDead(mlir::Value tile) const;
  void cloneBody(mlir::Block &from, mlir::Block *to, mlir::IRMapping &mapping);
  llvm::SmallVector<mlir::Value> mapped(mlir::ValueRange values) {
    return mapped(values, scalars);
  }
  static llvm::SmallVector<mlir::Value> mapped(mlir::ValueRange values,
                                               const mlir::IRMapping &at);

  mlir::OpBuilder &b;
  mlir::IRMapping &scalars;
  mlir::Block *entry;
  int64_t numWarps;
  gpu::RowsAttr matrixRows, vectorRows;
  llvm::DenseMap<mlir::Value, mlir::Value> fragments;
  llvm::DenseMap<mlir::Value, mlir::Value> vectors; // on one warp
  // In the order of the program: which buffer is free must not depend on
  // addresses.
  llvm::MapVector<mlir::Value, mlir::Value> buffers;
  llvm::DenseSet<mlir::Operation *> emitted;
  llvm::DenseSet<mlir::Operation *> ahead; // emitted by emitVectorLoads
  llvm::DenseSet<mlir::Value> pinned;      // buffers
  llvm::DenseMap<mlir::Value, std::function<mlir::Value()>> destinations;
  bool storesOwn = false;
  struct Slice {
    int64_t rows = 0; // 0: whole tiles
    int64_t number = 0;
  } slice;
};

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_PRODUCTS_SHAREDTILES_H
