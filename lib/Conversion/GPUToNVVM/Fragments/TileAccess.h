// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A fragment between registers and memory, global or shared.
#ifndef GDN_LIB_CONVERSION_GPUTONVVM_FRAGMENTS_TILEACCESS_H
#define GDN_LIB_CONVERSION_GPUTONVVM_FRAGMENTS_TILEACCESS_H

#include "Kernel/BlockThreads.h"

#include <optional>

namespace gdn {

/// A distance in bytes: known, or an i64 value.
struct Stride {
  std::optional<int64_t> known;
  mlir::Value value;

  bool is(int64_t bytes) const { return known == bytes; }
  bool isMultipleOf(int64_t bytes) const {
    return known && *known % bytes == 0;
  }
  /// As an i64.
  mlir::Value get(const Arithmetic &a) const {
    return known ? a.i64(*known) : value;
  }
  /// The address that lies `count` of them behind `pointer`.
  mlir::Value advance(const Arithmetic &a, mlir::Value pointer,
                      mlir::Value count) const;
};

/// Where a tile lies. A rank-1 tile has a stride along its only dimension:
/// `row` for the layout `per_row`, `column` for `per_column`.
struct TileMemory {
  mlir::Value pointer; // !llvm.ptr of its address space, to element 0
  Stride row, column;
  int64_t aligned = 0; // divides the address and `row`, in bytes; 0: unknown
  bool isGlobal = false;
  bool isInvariant = false; // nothing writes it while the kernel runs
  mlir::Value begun;        // !llvm.ptr<3> to where a begun load goes; or null
};

/// The vector of a thread's elements of a fragment; see the attribute `rows`.
mlir::VectorType getLocalType(gpu::FragmentType fragment);

/// The type in which such a vector, or any other value, crosses the border of a
/// block: pairs of 16 bits in one register, which LLVM would else keep in one
/// each.
mlir::Type getCarriedType(mlir::Type local);
mlir::Value toCarried(mlir::OpBuilder &b, mlir::Location loc,
                      mlir::Value local);
/// `local`, computed where it stands: LLVM would move what few elements of 16
/// bits are made of to the block of their use.
mlir::Value pinHere(mlir::OpBuilder &b, mlir::Location loc, mlir::Value local);
mlir::Value fromCarried(mlir::OpBuilder &b, mlir::Location loc,
                        mlir::Value carried, mlir::Type local);

/// Loads the thread's elements of the first `rows` rows (an index; null: all).
/// Positions that hold nothing and further rows are zero, and nothing is read
/// for them.
mlir::Value loadFragment(mlir::OpBuilder &b, mlir::Location loc,
                         const BlockThreads &threads, gpu::FragmentType type,
                         const TileMemory &memory, mlir::Value rows);
/// The same where `rows` is none or all of them: one branch for all rows.
mlir::Value loadFragmentIf(mlir::OpBuilder &b, mlir::Location loc,
                           const BlockThreads &threads, gpu::FragmentType type,
                           const TileMemory &memory, mlir::Value rows);

/// Begins to copy what `loadFragment` will take from `memory.begun`, where each
/// thread has a part of its own.
void beginFragment(mlir::OpBuilder &b, mlir::Location loc,
                   const BlockThreads &threads, gpu::FragmentType type,
                   const TileMemory &memory);

/// Asks for the first element of each of the thread's pieces, as far as the
/// second-level cache.
void prefetchFragment(mlir::OpBuilder &b, mlir::Location loc,
                      const BlockThreads &threads, gpu::FragmentType type,
                      const TileMemory &memory);

/// Stores the thread's elements of the first `rows` rows.
void storeFragment(mlir::OpBuilder &b, mlir::Location loc,
                   const BlockThreads &threads, gpu::FragmentType type,
                   mlir::Value local, const TileMemory &memory,
                   mlir::Value rows);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_FRAGMENTS_TILEACCESS_H
