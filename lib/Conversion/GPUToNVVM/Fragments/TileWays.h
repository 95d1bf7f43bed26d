// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One load or store of a fragment while it is written: which way it goes
// (TileAccess.cpp), and the accesses of each way (TileWays.cpp).
#ifndef GDN_LIB_CONVERSION_GPUTONVVM_FRAGMENTS_TILEWAYS_H
#define GDN_LIB_CONVERSION_GPUTONVVM_FRAGMENTS_TILEWAYS_H

#include "Fragments/TileAccess.h"
#include "Kernel/Assembly.h"

namespace gdn {

/// Of one load or store of a thread.
constexpr int64_t maxAccessBytes = 16;

class TileAccess {
public:
  /// `stored` is null for a load.
  TileAccess(mlir::OpBuilder &b, mlir::Location loc,
             const BlockThreads &threads, gdn::gpu::FragmentType type,
             const TileMemory &memory, mlir::Value rows, mlir::Value stored);

  /// The loaded elements; null for a store.
  mlir::Value emit();
  /// Copies to shared memory instead, where the thread's elements lie side by
  /// side, and takes them from there.
  void begin() {
    isBegun = true;
    listWays();
    choose(choices);
  }
  mlir::Value take();

private:
  enum class Way { pieces, columns, runs, elements };
  struct Choice {
    Way way;
    mlir::Value condition; // null: it holds
  };

  void listWays();
  bool hasRuns();
  mlir::Value askAlignment(int64_t bytes, const Stride *other);
  mlir::Value askStride(const Stride &stride, int64_t bytes, bool &isPossible);
  mlir::Value choose(llvm::ArrayRef<Choice> choices);
  mlir::Value emitWay(Way way);
  mlir::Value emitColumns();
  mlir::Value emitRuns();
  bool turnsLater();
  mlir::Value transpose(mlir::Value inMemoryOrder);
  mlir::Value emitRow(Way way, int64_t row);
  mlir::Value emitPiece(Way way, mlir::Value pointer, int64_t row,
                        int64_t piece);
  mlir::Value emitElement(mlir::Value pointer, int64_t row, int64_t position,
                          int64_t offset);
  mlir::Value guarded(mlir::Value condition, mlir::VectorType type,
                      llvm::function_ref<mlir::Value()> access);

  mlir::Value load(mlir::Value pointer, int64_t position, int64_t elements);
  mlir::Value getCopied(int64_t position);
  bool mayTurn();
  mlir::Value transposeIfAcross(mlir::Value all);
  void store(mlir::Value value, mlir::Value pointer);
  mlir::Value rowMask(int64_t row);
  mlir::Value advance(mlir::Value pointer, const Stride &stride, int64_t times);
  mlir::Value zeros(mlir::VectorType type) {
    return mlir::arith::ConstantOp::create(b, loc, type, b.getZeroAttr(type));
  }
  mlir::VectorType vectorOf(int64_t size) {
    return mlir::VectorType::get({size}, type.getElementType());
  }
  /// Elements `first` to `first + size` of what is stored.
  mlir::Value part(int64_t first, int64_t size) {
    return mlir::vector::ExtractStridedSliceOp::create(
        b, loc, stored, llvm::ArrayRef<int64_t>{first},
        llvm::ArrayRef<int64_t>{size}, llvm::ArrayRef<int64_t>{1});
  }

  mlir::OpBuilder &b;
  mlir::Location loc;
  Arithmetic a;
  const BlockThreads &threads;
  gdn::gpu::FragmentType type;
  TileMemory memory;
  mlir::Value rowLimit; // index, or null
  mlir::Value stored;

  gdn::gpu::RowsAttr layout;
  int64_t bytes;                                 // of an element
  int64_t numRows = 1, numColumns = 1;           // of the tile
  int64_t localRows = 1, pieces = 1, vector = 1; // of the thread
  mlir::Value origin;                            // the thread's first element
  llvm::SmallVector<Choice> choices;
  bool isTransposedLater = false; // columns come in the order of memory
  bool isBegun = false;           // copies instead of loads
};

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_FRAGMENTS_TILEWAYS_H
