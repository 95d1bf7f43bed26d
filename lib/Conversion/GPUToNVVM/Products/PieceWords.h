// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elements of rows as words of mma.sync: what a lane loads at once, 16
// neighbouring bytes of a row, are the four words of its left side, whatever
// the elements are. For products of numbers and of bytes as they are in memory.
#ifndef GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_PIECEWORDS_H
#define GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_PIECEWORDS_H

#include "Kernel/BlockThreads.h"

namespace gdn {

/// A piece of a row that a lane loads at once, and its words.
constexpr int64_t laneBytes = 16, laneWords = 4;

/// A lane's words of the right side: `pieces` pieces from `pointer` on,
/// `distance` bytes from one to the next, with the bits of `inverted` the other
/// way. As words are computed, two of a product may be made in neighbouring
/// registers, where those of a load would have to move.
llvm::SmallVector<mlir::Value> loadPieces(const Arithmetic &a,
                                          mlir::Value pointer, int64_t pieces,
                                          int64_t distance, int64_t inverted);

/// The words of a vector of elements, neighbours in a word.
llvm::SmallVector<mlir::Value> toWords(const Arithmetic &a,
                                       mlir::Value elements);

/// `mine` and that of the next lane, whose number differs in the lowest bit.
mlir::Value addNeighbour(const Arithmetic &a, mlir::Value mine);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_PIECEWORDS_H
