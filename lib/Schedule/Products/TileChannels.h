// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The channels through which the roles of a kernel hand tiles to each other.
#ifndef GDN_LIB_SCHEDULE_PRODUCTS_TILECHANNELS_H
#define GDN_LIB_SCHEDULE_PRODUCTS_TILECHANNELS_H

#include "Products/SharedTiles.h"

namespace gdn {

/// Channels by the tile of the program that goes through them, in groups: the
/// channel of the first tile leads the others.
class TileChannels {
public:
  /// Channels are created at the beginning of `entry`.
  TileChannels(mlir::OpBuilder &b, mlir::Block *entry) : b(b), entry(entry) {}

  /// Creates the channels of `group`.
  void open(mlir::ArrayRef<mlir::Value> group, int64_t depth, bool paired);

  /// `tile` comes from `channel`, which others fill: in columns of its tiles
  /// from `firstColumn` on.
  void take(mlir::Value tile, mlir::Value channel, int64_t firstColumn = 0) {
    channels[tile] = channel;
    firstColumns[tile] = firstColumn;
  }

  /// Creates the channel of a vector that a copy fills.
  void openCopied(mlir::Value vector, int64_t depth);

  /// Creates the channel through which one role tells the others what the next
  /// unit of the block is.
  void openUnits();
  /// The next unit: takes it for all roles, or receives its number.
  mlir::Value giveUnit(mlir::Location loc);
  mlir::Value receiveUnit(mlir::Location loc);

  /// Creates the channel through which both blocks of a pair add up `sum`.
  void openExchanged(tile::SumOfPairOp sum);
  /// Gives the other block what this one, with that number, has for `sum`.
  void give(tile::SumOfPairOp sum, mlir::Value own, mlir::Value number);
  /// Waits for what both have, a row each, and adds the channel to `received`.
  mlir::Value take(tile::SumOfPairOp sum,
                   llvm::SmallVectorImpl<mlir::Value> &received);

  /// Takes the next buffers for the tiles of `group`.
  void acquire(SharedTiles &tiles, mlir::ArrayRef<mlir::Value> group);
  /// The tiles of `group` go to their channels, whose buffers are taken when
  /// the first is made.
  void destine(SharedTiles &tiles, mlir::ArrayRef<mlir::Value> group);
  void commit(mlir::ArrayRef<mlir::Value> group);

  /// Waits for the next tiles of `group`, and adds their channels to
  /// `received`.
  void receive(SharedTiles &tiles, mlir::ArrayRef<mlir::Value> group,
               llvm::SmallVectorImpl<mlir::Value> &received,
               bool ahead = false);
  /// Gives back what was received.
  void release(mlir::ArrayRef<mlir::Value> received);

private:
  mlir::Value acquire(mlir::Value tile);

  mlir::OpBuilder &b;
  mlir::Block *entry;
  llvm::DenseMap<mlir::Value, mlir::Value> channels;
  llvm::DenseMap<mlir::Value, int64_t> firstColumns;
  mlir::Value units; // the channel of their numbers
};

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_PRODUCTS_TILECHANNELS_H
