// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A leader comes first where tiles are taken, and last where they are given: it
// speaks for all that it leads.
#include "Products/TileChannels.h"

using namespace mlir;
using namespace gdn;

static gpu::SharedType getTileType(Value channel) {
  return cast<gpu::ChannelType>(channel.getType()).getTile();
}

void TileChannels::open(ArrayRef<Value> group, int64_t depth, bool paired) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(entry);
  Location loc = entry->getParentOp()->getLoc();
  Value leader;
  for (Value tile : group) {
    VectorType type = vectorType(tile);
    if (isa<tile::DecayMatrixOp>(tile.getDefiningOp())) // its running sums
      type = VectorType::get({type.getDimSize(0)}, type.getElementType());
    auto channel = gpu::ChannelType::get(
        b.getContext(), type.getShape(), type.getElementType(), depth,
        /*parts=*/1, /*swizzled=*/type.getRank() == 2);
    channels[tile] = gpu::ChannelOp::create(b, loc, channel, leader,
                                            /*memory=*/Value(), paired);
    leader = leader ? leader : channels[tile];
    b.setInsertionPointAfterValue(leader);
  }
}

/// A copy takes a row.
void TileChannels::openCopied(Value vector, int64_t depth) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(entry);
  VectorType type = vectorType(vector);
  auto channel = gpu::ChannelType::get(b.getContext(), {1, type.getDimSize(0)},
                                       type.getElementType(), depth,
                                       /*parts=*/1, /*swizzled=*/false);
  channels[vector] = gpu::ChannelOp::create(b, vector.getLoc(), channel,
                                            /*leader=*/Value(),
                                            /*memory=*/Value());
}

/// A role is a unit ahead of the others, and no more.
static constexpr int64_t unitsDepth = 1;

/// Tiles are of floating point: the bits of one hold the number. It is the last
/// of all channels: shared memory has no room for others to begin at multiples
/// of 128 bytes behind it.
void TileChannels::openUnits() {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(entry);
  for (auto channel : entry->getOps<gpu::ChannelOp>())
    b.setInsertionPointAfter(channel);
  auto type = gpu::ChannelType::get(b.getContext(), {1}, b.getF32Type(),
                                    unitsDepth, /*parts=*/1,
                                    /*swizzled=*/false);
  units = gpu::ChannelOp::create(b, entry->getParentOp()->getLoc(), type,
                                 /*leader=*/Value(), /*memory=*/Value());
}

Value TileChannels::giveUnit(Location loc) {
  MLIRContext *context = b.getContext();
  Value unit = gpu::TakeUnitOp::create(b, loc, b.getIndexType());
  Value bits = arith::BitcastOp::create(
      b, loc, b.getF32Type(),
      arith::IndexCastOp::create(b, loc, b.getI32Type(), unit));
  auto type = gpu::FragmentType::get(
      VectorType::get({1}, b.getF32Type()),
      gpu::PerRowAttr::get(context, gpu::RowsAttr::get(context, 1, 1, 1)));
  Value tile = gpu::FillOp::create(b, loc, type, bits);
  Value buffer = gpu::AcquireOp::create(b, loc, getTileType(units), units);
  gpu::StoreSharedOp::create(b, loc, tile, buffer, Value());
  gpu::CommitOp::create(b, loc, Type(), units);
  return unit;
}

Value TileChannels::receiveUnit(Location loc) {
  Value buffer = gpu::ReceiveOp::create(b, loc, getTileType(units), units,
                                        /*ahead=*/false);
  Value bits = gpu::LoadSharedElementOp::create(
      b, loc, b.getF32Type(), buffer,
      arith::ConstantIndexOp::create(b, loc, 0));
  gpu::ReleaseOp::create(b, loc, units);
  return arith::IndexCastOp::create(
      b, loc, b.getIndexType(),
      arith::BitcastOp::create(b, loc, b.getI32Type(), bits));
}

/// One is filled while the other block may still read the one before.
static constexpr int64_t exchangedDepth = 2;

void TileChannels::openExchanged(tile::SumOfPairOp sum) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(entry);
  VectorType type = vectorType(sum.getResult());
  auto channel = gpu::ChannelType::get(b.getContext(), {2, type.getDimSize(0)},
                                       type.getElementType(), exchangedDepth,
                                       /*parts=*/1, /*swizzled=*/false);
  channels[sum.getResult()] =
      gpu::ChannelOp::create(b, sum.getLoc(), channel, /*leader=*/Value(),
                             /*memory=*/Value(), /*paired=*/false,
                             /*exchanged=*/true);
}

void TileChannels::give(tile::SumOfPairOp sum, Value own, Value number) {
  Value buffer = acquire(sum.getResult());
  gpu::StoreSharedOp::create(b, sum.getLoc(), own, buffer, number);
  commit(sum.getResult());
}

Value TileChannels::take(tile::SumOfPairOp sum,
                         SmallVectorImpl<Value> &received) {
  Value channel = channels.lookup(sum.getResult());
  received.push_back(channel);
  return gpu::ReceiveOp::create(b, sum.getLoc(), getTileType(channel), channel,
                                /*ahead=*/false);
}

Value TileChannels::acquire(Value tile) {
  Value channel = channels.lookup(tile);
  return gpu::AcquireOp::create(b, tile.getLoc(), getTileType(channel),
                                channel);
}

void TileChannels::acquire(SharedTiles &tiles, ArrayRef<Value> group) {
  for (Value tile : group)
    tiles.setBuffer(tile, acquire(tile));
}

void TileChannels::destine(SharedTiles &tiles, ArrayRef<Value> group) {
  auto buffers = std::make_shared<DenseMap<Value, Value>>();
  for (Value tile : group)
    tiles.setDestination(
        tile, [this, buffers, tile, all = SmallVector<Value>(group)] {
          if (buffers->empty())
            for (Value other : all)
              (*buffers)[other] = acquire(other);
          return buffers->lookup(tile);
        });
}

void TileChannels::commit(ArrayRef<Value> group) {
  for (Value tile : llvm::reverse(group))
    gpu::CommitOp::create(b, tile.getLoc(), Type(), channels.lookup(tile));
}

void TileChannels::receive(SharedTiles &tiles, ArrayRef<Value> group,
                           SmallVectorImpl<Value> &received, bool ahead) {
  DenseMap<Value, Value> known; // by channel
  for (Value tile : group) {
    Value channel = channels.lookup(tile);
    gpu::SharedType type = getTileType(channel);
    if (isVector(tile) && type.getRank() == 2) // the row of a copy
      type = gpu::SharedType::get(vectorType(tile), /*swizzled=*/false);
    Value &buffer = known[channel];
    if (!buffer) {
      buffer = gpu::ReceiveOp::create(b, tile.getLoc(), type, channel, ahead);
      received.push_back(channel);
    }
    // In the place of wider elements, a panel takes that of several.
    Type element = vectorType(tile).getElementType();
    if (unsigned bits = element.getIntOrFloatBitWidth(),
        wider = type.getElementType().getIntOrFloatBitWidth();
        bits < wider)
      buffer = gpu::ReshapeOp::create(
          b, tile.getLoc(),
          gpu::SharedType::get(vectorType(tile), type.getSwizzled(),
                               /*apart=*/int64_t(wider / bits)),
          buffer);
    tiles.pinBuffer(tile, buffer);
    tiles.setFirstColumn(tile, firstColumns.lookup(tile));
  }
}

void TileChannels::release(ArrayRef<Value> received) {
  for (Value channel : llvm::reverse(received))
    gpu::ReleaseOp::create(b, channel.getLoc(), channel);
}
