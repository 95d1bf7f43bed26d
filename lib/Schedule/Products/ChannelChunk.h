// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What makes a chunk with a decay per channel ready for the recurrence.
#ifndef GDN_LIB_SCHEDULE_PRODUCTS_CHANNELCHUNK_H
#define GDN_LIB_SCHEDULE_PRODUCTS_CHANNELCHUNK_H

#include "gdn/Dialect/Tile/IR/Tile.h"

#include <optional>

namespace gdn {

/// Of tiles as they are in memory: log decays are f32, or f16 of
/// `scaleOfNarrowLogs` times them.
struct ChannelChunk {
  tile::DecayOperandsOp operands;
  tile::TriInverseOp inverse;
  tile::LoadOp query, key, logDecay, strength, value;
  tile::LoadOp queryNorm, keyNorm; // of rows; null: none
  mlir::Value solve, scores;       // T, and P times `scale`
  double scale = 1;

  /// None if the body of a loop has no such chunk; a remark says so where maps
  /// of one are others.
  static std::optional<ChannelChunk> find(mlir::Block &body);

  /// Whether `op` is one of those that make the chunk ready, of all that need
  /// no state.
  bool contains(mlir::Operation *op) const;
};

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_PRODUCTS_CHANNELCHUNK_H
