// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the tiles of a program of products are. A tile is in registers, rows
// dealt to warps as matrix instructions want them, or in shared memory, or in
// both; it goes from one to the other when an op asks for it.
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
inline bool isNarrow(mlir::VectorType type) {
  return type.getElementTypeBitWidth() == 16;
}

inline llvm::SmallVector<mlir::Value> lookupAll(const mlir::IRMapping &at,
                                                mlir::ValueRange values) {
  return llvm::map_to_vector(
      values, [&](mlir::Value value) { return at.lookupOrDefault(value); });
}

/// The tiles of warps that have the same program.
class SharedTiles {
public:
  /// Buffers are allocated at the beginning of `entry`. `scalars` maps values
  /// of the tile program that are no tiles.
  SharedTiles(mlir::OpBuilder &b, mlir::IRMapping &scalars, mlir::Block *entry,
              int64_t numWarps);

  /// Rows dealt as matrix instructions want them, if there are enough.
  gpu::RowsAttr rowsOf(mlir::VectorType tile) const;
  /// The same, of `tile` or of the slice of it that is worked on; log decays by
  /// channel, and what they are made of, as `decay_operands` takes them.
  gpu::RowsAttr rowsOf(mlir::Value tile) const;
  /// Rows dealt so that a row lies side by side in few lanes, 16 bytes each if
  /// elements have 16 bits: for memory, and for tiles with too few rows for
  /// matrix instructions.
  gpu::RowsAttr wideRowsOf(mlir::VectorType tile) const;
  /// From here on all rows are dealt that way.
  void dealWide() { dealsWide = true; }
  gpu::FragmentType typeOf(mlir::VectorType tile) const {
    return gpu::FragmentType::get(tile, rowsOf(tile));
  }
  /// The type of `tile`, or of the slice of it that is worked on.
  mlir::VectorType shown(mlir::Value tile) const;

  /// The tile in registers, in the layout of all matrices.
  mlir::Value fragmentOf(mlir::Value tile) {
    return fragmentOf(tile, rowsOf(vectorType(tile)));
  }
  mlir::Value fragmentOf(mlir::Value tile, gpu::RowsAttr rows);
  /// A tile of rank 1 in registers.
  mlir::Value vectorOf(mlir::Value tile, mlir::Attribute layout);
  void setFragment(mlir::Value tile, mlir::Value in) { fragments[tile] = in; }
  /// Takes the fragment of `tile` out.
  mlir::Value takeFragment(mlir::Value tile) {
    return std::exchange(fragments[tile], {});
  }

  /// Memory for a tile of `block`: that of one that nobody needs any more, if
  /// there is one.
  mlir::Value allocate(gpu::SharedType type, mlir::Block *block);
  /// Memory for `tile`, of `block`: where it has to go, or any.
  mlir::Value bufferFor(mlir::Value tile, mlir::VectorType type, bool swizzled,
                        mlir::Block *block);
  /// The shared tile with `tile`, which is shared there if it is not yet.
  mlir::Value bufferOf(mlir::Value tile);
  /// That, or null if it is not shared.
  mlir::Value findBuffer(mlir::Value of) const { return buffers.lookup(of); }
  /// From here on, `tile` is in that buffer.
  void setBuffer(mlir::Value tile, mlir::Value in) { buffers[tile] = in; }
  /// As above, and the buffer serves nothing else.
  void pinBuffer(mlir::Value tile, mlir::Value buffer) {
    buffers[tile] = buffer;
    pinned.insert(buffer);
  }
  void dropBuffer(mlir::Value tile) { buffers.erase(tile); }
  /// The tile is in columns of its buffer from that one on.
  void setFirstColumn(mlir::Value tile, int64_t column) {
    firstColumns[tile] = column;
  }
  int64_t getFirstColumn(mlir::Value tile) const {
    return firstColumns.lookup(tile);
  }
  /// As soon as it is made, `tile` goes to the buffer that `find` gives then.
  void setDestination(mlir::Value tile, std::function<mlir::Value()> find) {
    destinations[tile] = std::move(find);
  }
  /// That buffer, or null if it goes nowhere.
  mlir::Value findDestination(mlir::Value tile) const {
    return hasDestination(tile) ? destinations.at(tile)() : mlir::Value();
  }

  bool hasDestination(mlir::Value tile) const {
    return destinations.contains(tile);
  }
  /// True if no op that is still to come uses `tile`.
  bool isDead(mlir::Value tile) const;
  /// `op` is emitted: it needs no tile any more.
  void setEmitted(mlir::Operation *op) { emitted.insert(op); }

  /// From here on, fragments are of so many rows, with so many such slices
  /// ahead of them; with 0 they are of whole tiles.
  void setSlice(int64_t rows, int64_t number = 0) { slice = {rows, number}; }
  /// The first row of the slice.
  mlir::Value sliceRow(mlir::Location loc);

  mlir::OpBuilder &b;
  mlir::IRMapping &scalars;
  const int64_t numWarps;
  const gpu::RowsAttr matrixRows;

private:
  mlir::Block *entry;
  llvm::DenseMap<mlir::Value, mlir::Value> fragments;
  // In the order of the program: which buffer is free must not depend on
  // addresses.
  llvm::MapVector<mlir::Value, mlir::Value> buffers;
  llvm::DenseSet<mlir::Operation *> emitted;
  llvm::DenseSet<mlir::Value> pinned;                // buffers
  llvm::DenseMap<mlir::Value, int64_t> firstColumns; // in buffers; else 0
  llvm::DenseMap<mlir::Value, std::function<mlir::Value()>> destinations;
  bool dealsWide = false;
  struct {
    int64_t rows = 0, number = 0;
  } slice;
};

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_PRODUCTS_SHAREDTILES_H
