// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A swizzled tile of 16-bit elements in shared memory, as matrix instructions
// see it: blocks of 8 x 8 elements, of which a lane holds two neighbours of a
// row in one 32-bit register.
#ifndef GDN_LIB_CONVERSION_GPUTONVVM_FRAGMENTS_SHAREDMATRIX_H
#define GDN_LIB_CONVERSION_GPUTONVVM_FRAGMENTS_SHAREDMATRIX_H

#include "Kernel/BlockThreads.h"

#include "mlir/IR/IRMapping.h"

namespace gdn {

/// The blocks of 8 x 8 elements of a fragment that a warp has.
struct MatrixBlocks {
  explicit MatrixBlocks(gpu::FragmentType type)
      : rows(type.getRows().getLocalRows(type.getDimSize(0))),
        columns(type.getRows().getPieces(type.getDimSize(1))) {}
  int64_t word(int64_t i, int64_t p) const { return i * columns + p; }
  int64_t rows, columns;
};

/// The place of a swizzled shared tile, at which a warp stands.
class SharedMatrix {
public:
  SharedMatrix(mlir::OpBuilder &b, mlir::Location loc, mlir::Value lane,
               gpu::SharedType type, mlir::Value pointer);

  /// The corner of a block: row and column over 8, each a constant and a value
  /// (an i32, or null for 0). A value's bits are apart from the constant's.
  struct Corner {
    int64_t row = 0, column = 0;
    mlir::Value rowValue, columnValue;
  };

  /// Loads four blocks, i32 each: the one at `corner`, at a step from it, at
  /// another step, at both. Steps are in blocks, (rows, columns); the corner's
  /// column is a multiple of what they reach. With `transpose` each block is
  /// transposed.
  llvm::SmallVector<mlir::Value, 4> load4(const Corner &corner,
                                          std::pair<int64_t, int64_t> step,
                                          std::pair<int64_t, int64_t> other,
                                          bool transpose) const;
  /// Stores four blocks, which lie as those of `load4`, by one instruction that
  /// GPUs with warpgroups have.
  void store4(const Corner &corner, std::pair<int64_t, int64_t> step,
              std::pair<int64_t, int64_t> other, mlir::ValueRange blocks,
              bool transpose) const;
  /// Stores the words of a left operand, of 16 x 16 elements, or with
  /// `transpose` its transpose; by one instruction if there is one.
  void storeLeft(const Corner &corner, mlir::ValueRange words, bool transpose,
                 bool hasStore4) const;
  /// Stores a block, an i32 per lane, with `transpose` its transpose.
  void store(const Corner &corner, mlir::Value block, bool transpose) const;

  /// Address of the piece of 16 bytes that `column` bytes into `row` begin in,
  /// plus what is left of them; i32 values.
  mlir::Value getAddress(mlir::Value row, mlir::Value column) const;
  /// `address`, `rows` rows further down, a multiple of 8.
  mlir::Value getBelow(mlir::Value address, mlir::Value rows) const;

private:
  mlir::Value addressOf4(const Corner &corner, std::pair<int64_t, int64_t> step,
                         std::pair<int64_t, int64_t> other) const;
  mlir::Value swizzleOf(mlir::Value row) const;
  mlir::Value addressOf(mlir::Value rowInBlock, const Corner &corner,
                        mlir::Value laneColumn) const;

  mlir::OpBuilder &b;
  mlir::Location loc;
  Arithmetic a;
  mlir::Value lane, pointer;
  int64_t rowBytes;   // in a panel
  int64_t panelBytes; // 0 if there is one panel
  int64_t group;      // pieces that are swizzled among each other
};

/// Four blocks, i32 each, by one instruction: a lane's pointer is to a row of
/// one of them.
llvm::SmallVector<mlir::Value, 4> loadMatrices(mlir::OpBuilder &b,
                                               mlir::Location loc,
                                               mlir::Value pointer,
                                               bool transpose);
void storeMatrices(mlir::OpBuilder &b, mlir::Location loc, mlir::Value pointer,
                   mlir::ValueRange blocks, bool transpose);

/// `gdn_gpu.load_shared` and `gdn_gpu.store_shared` of a swizzled tile and
/// `gdn_gpu.tri_inverse`, on the thread's elements; `from`, an i32, is the
/// first row of the buffer that a fragment of fewer rows has, or null.
mlir::Value loadMatrix(mlir::OpBuilder &b, mlir::Location loc,
                       const BlockThreads &threads, gpu::FragmentType type,
                       gpu::SharedType buffer, mlir::Value pointer,
                       mlir::Value from, bool transpose);
void storeMatrix(mlir::OpBuilder &b, mlir::Location loc,
                 const BlockThreads &threads, gpu::FragmentType type,
                 mlir::Value local, gpu::SharedType buffer, mlir::Value pointer,
                 mlir::Value from, bool transpose, bool hasStore4);

/// A barrier of the block, for or in `op`: what was written before it can be
/// read behind it, by products of warpgroups too.
void emitBarrier(mlir::OpBuilder &b, mlir::Operation *op,
                 const BlockThreads &threads);

/// All threads of the blocks of a cluster meet; what they wrote is known.
void emitClusterBarrier(mlir::OpBuilder &b, mlir::Location loc);
/// Whether what was written before `commit` has to be fenced for products of
/// warpgroups in the roles that receive it.
bool emitsFence(gpu::CommitOp commit);
/// `pointer` is that of the scratch tile.
llvm::SmallVector<mlir::Value> emitTriInverse(mlir::OpBuilder &b,
                                              const BlockThreads &threads,
                                              gpu::TriInverseOp inverse,
                                              mlir::ValueRange matrices,
                                              mlir::Value pointer);

/// The thread's elements of the results, from `local`, those of the log decays;
/// `values` has the pointers of the buffers.
llvm::SmallVector<mlir::Value> emitDecayOperands(mlir::OpBuilder &b,
                                                 const BlockThreads &threads,
                                                 gpu::DecayOperandsOp op,
                                                 const mlir::IRMapping &values,
                                                 mlir::Value local);

/// The thread's 16-bit elements, two in an i32, and back.
llvm::SmallVector<mlir::Value> getWords(mlir::OpBuilder &b, mlir::Location loc,
                                        mlir::Value local);
mlir::Value fromWords(mlir::OpBuilder &b, mlir::Location loc,
                      mlir::ValueRange words, mlir::Type element);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_FRAGMENTS_SHAREDMATRIX_H
