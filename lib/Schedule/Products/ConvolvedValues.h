// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values that a loop over chunks convolves on their way to the recurrence. They
// are taken transposed, so a warp convolves the channels that are its rows, and
// carries the window in front of a chunk in registers.
#ifndef GDN_LIB_SCHEDULE_PRODUCTS_CONVOLVEDVALUES_H
#define GDN_LIB_SCHEDULE_PRODUCTS_CONVOLVEDVALUES_H

#include "Products/SharedTiles.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <optional>

namespace gdn {

struct ConvolvedValues {
  /// Those that `conv` makes, if a loop convolves a chunk of inputs as it is in
  /// memory, each turn the next, and what it does with the result goes element
  /// by element and is used transposed, in 16 bits.
  static std::optional<ConvolvedValues> find(tile::Conv1dOp conv);
  /// The same of the convolution in `loop`, if there is one.
  static std::optional<ConvolvedValues> find(mlir::scf::ForOp loop);

  /// Whether `op` is one of these ops, or loads what they take from ahead of
  /// the loop.
  bool contains(mlir::Operation *op) const;
  /// Whether `tile` is the window, ahead of the loop or in it.
  bool isWindow(mlir::Value tile) const;

  tile::LoadOp inputs;
  tile::MapRowsOp widened, rounded; // around the convolution
  tile::Conv1dOp conv;
  mlir::Value firstWindow;                 // ahead of the loop
  tile::LoadOp loadedWindow, loadedWeight; // as they are in memory
};

/// Such a convolution while the warps of `tiles` have it.
class ConvolutionEmitter {
public:
  ConvolutionEmitter(SharedTiles &tiles, const ConvolvedValues &values)
      : tiles(tiles), values(values) {}

  /// Loads the weights and the first window; returns that.
  mlir::Value begin();
  /// Convolves the inputs of a chunk, which are shared, behind `window`, in
  /// place. Returns the next window.
  mlir::Value emit(mlir::Value window);

private:
  mlir::Value load(tile::LoadOp load);

  SharedTiles &tiles;
  const ConvolvedValues &values;
  mlir::Value weight;
};

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_PRODUCTS_CONVOLVEDVALUES_H
