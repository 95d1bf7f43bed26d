// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decays of blocks of 16 tokens, a block for each warp, which all warps know.
#ifndef GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_BLOCKDECAYS_H
#define GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_BLOCKDECAYS_H

#include "Fragments/SharedMatrix.h"
#include "Products/WordMaths.h"

#include <array>

namespace gdn {

/// Rows of a shared tile of f32: of each warp the sum of its logs; behind them,
/// in f16, two in the place of one, the decay before its block, behind it, and
/// between two blocks.
class BlockDecays : WordMaths {
public:
  /// `ownColumn` is the lane's first channel of eight.
  BlockDecays(mlir::OpBuilder &b, mlir::Location loc,
              const BlockThreads &threads, int64_t warps, int64_t channels,
              mlir::Value ownColumn, mlir::Value sums, mlir::Value end)
      : WordMaths(b, loc), threads(threads), warps(warps), channels(channels),
        ownColumn(ownColumn), sums(sums), end(end) {}

  /// The sums of the block, of `logs` in powers of two in the layout `rows`.
  void shareSums(mlir::ArrayRef<mlir::Value> logs, gpu::RowsAttr rows);
  /// These logs in f16 in a shared tile, for the warp itself.
  void storeLogs(mlir::ArrayRef<mlir::Value> logs, gpu::RowsAttr rows,
                 const SharedMatrix &to);
  /// What follows from the sums of all blocks, behind a barrier: a thread for
  /// each channel. `end` gets the decay of all.
  void shareDecays();
  /// The lane's channels of slice `number`, in two words, of row `row` of those
  /// in f16.
  std::array<mlir::Value, 2> load(mlir::Value row, mlir::Value number);

  /// Rows of the warp: the decay before its block, behind it, and between
  /// block `j` and it, which is further on.
  mlir::Value before() { return threads.warp; }
  mlir::Value behind() { return add(threads.warp, i32(warps)); }
  mlir::Value between(int64_t j);

  /// Columns of a slice, the inner size of a product.
  static constexpr int64_t sliceChannels = 16;

private:
  using Numbers = llvm::SmallVector<mlir::Value, 8>;

  void shareDecays(int64_t first, mlir::Value thread);
  /// Of numbers of so many bytes, from those of row `row` on.
  mlir::Value sumAt(mlir::Value row, int64_t column, mlir::Value columnValue,
                    int64_t bytes);

  const BlockThreads &threads;
  int64_t warps, channels;
  mlir::Value ownColumn, sums, end;
};

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_BLOCKDECAYS_H
