// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the ops of a GPU program read and write in shared memory, and which of
// them need no barrier between one another.
#include "SharedAccess.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace gdn;

Value gdn::getSharedTile(Value buffer) {
  while (auto reshape = buffer.getDefiningOp<gdn::gpu::ReshapeOp>())
    buffer = reshape.getBuffer();
  return buffer;
}

Value gdn::getFollowedTile(Value buffer) {
  Value tile = getSharedTile(buffer);
  if (auto acquire = tile.getDefiningOp<gdn::gpu::AcquireOp>())
    return acquire.getChannel();
  return tile;
}

bool gdn::isPerWarpgroup(Operation *op) {
  auto hasAllRows = [&](gdn::gpu::FragmentType type) {
    auto rows = dyn_cast<gdn::gpu::RowsAttr>(type.getLayout());
    return rows && rows.isMatrix() &&
           type.getDimSize(0) % (16 * rows.getWarps()) == 0 &&
           gdn::gpu::countWarps(op) == rows.getWarps();
  };
  if (auto copy = dyn_cast<gdn::gpu::BeginCopyOp>(op))
    return copy.getPerWarpgroup();
  if (auto load = dyn_cast<gdn::gpu::LoadSharedOp>(op))
    return load.getTranspose() && hasAllRows(load.getTile().getType());
  if (auto store = dyn_cast<gdn::gpu::StoreSharedOp>(op))
    return store.getTranspose() && hasAllRows(store.getTile().getType());
  return isa<gdn::gpu::CopyOutOp, gdn::gpu::ConvColumnsOp>(op);
}

SmallVector<SharedAccess, 4> gdn::getSharedAccesses(Operation *op) {
  if (auto store = dyn_cast<gdn::gpu::StoreSharedOp>(op)) // store_shared_c2
    return {SharedAccess{store.getBuffer(), true, false}};
  if (auto copy = dyn_cast<gdn::gpu::BeginCopyOp>(op)) // begin_copy_c5
    return {SharedAccess{copy.getBuffer(), true, false}};
  if (auto inverse = dyn_cast<gdn::gpu::TriInverseOp>(op)) // tri_inverse_c4
    return {SharedAccess{inverse.getScratch(), true, true}};
  if (auto operands =
          dyn_cast<gdn::gpu::DecayOperandsOp>(op)) { // decay_operands_c5
    SmallVector<SharedAccess, 4> accesses;
    for (Value buffer : operands->getOperands().drop_front())
      accesses.push_back({buffer, true, true});
    return accesses;
  }
  if (isa<gdn::gpu::DecayWithinOp, gdn::gpu::DecayBetweenOp,
          gdn::gpu::BlockInversesOp, gdn::gpu::JoinInversesOp>(op)) {
    // decay_within_c5, decay_between_c4, block_inverses_c4, join_inverses_c3
    SmallVector<SharedAccess, 4> accesses;
    for (Value operand : op->getOperands())
      if (isa<gdn::gpu::SharedType>(operand.getType()))
        accesses.push_back({operand, true, true});
    return accesses;
  }
  if (auto sum = dyn_cast<gdn::gpu::ColumnSumOp>(op)) // column_sum_c4
    return {SharedAccess{sum.getScratch(), true, true}};
  if (isa<gdn::gpu::LoadSharedOp, gdn::gpu::LoadSharedElementOp,
          gdn::gpu::CopyOutOp>(op)) // load_shared_c2, load_shared_element_c2
    return {SharedAccess{op->getOperand(0), false, true}};
  if (auto conv = dyn_cast<gdn::gpu::ConvColumnsOp>(op)) // conv_columns_c4
    return {SharedAccess{conv.getInputs(), false, true},
            SharedAccess{conv.getValues(), true, false}};
  if (auto matmul = dyn_cast<gdn::gpu::MatmulOp>(op)) // matmul_c5
    return {SharedAccess{matmul.getRhs(), false, true}};
  auto start = dyn_cast<gdn::gpu::StartMatmulOp>(op);
  if (auto await = dyn_cast<gdn::gpu::AwaitMatmulOp>(op))
    start = await.getProduct().getDefiningOp<gdn::gpu::StartMatmulOp>();
  if (start) {
    SmallVector<SharedAccess, 4> accesses;
    for (Value buffer : start.getBuffers())
      accesses.push_back({buffer, false, true});
    return accesses;
  }
  if (auto products =
          dyn_cast<gdn::gpu::ShareProductsOp>(op)) // share_products_c3
    return {SharedAccess{products.getFirst(), false, true},
            SharedAccess{products.getSecond(), false, true},
            SharedAccess{products.getFirstTo(), true, false},
            SharedAccess{products.getSecondTo(), true, false}};
  if (auto products =
          dyn_cast<gdn::gpu::ShareByteProductsOp>(op)) // share_byte_products_c3
    return {SharedAccess{products.getFirst(), false, true},
            SharedAccess{products.getSecond(), false, true},
            SharedAccess{products.getTo(), true, false}};
  if (auto products =
          dyn_cast<gdn::gpu::SharePartProductsOp>(op)) // share_part_products_c3
    return {SharedAccess{products.getFirst(), false, true},
            SharedAccess{products.getSecond(), false, true},
            SharedAccess{products.getTo(), true, false}};
  if (auto parts =
          dyn_cast<gdn::gpu::ShareColumnPartsOp>(op)) // share_column_parts_c2
    return {SharedAccess{parts.getFrom(), false, true},
            SharedAccess{parts.getTo(), true, false}};
  if (auto products =
          dyn_cast<gdn::gpu::AddPartProductsOp>(op)) // add_part_products_c3
    return {SharedAccess{products.getDeltas(), false, true},
            SharedAccess{products.getWeights(), false, true},
            SharedAccess{products.getParts(), false, true}};
  if (auto keys =
          dyn_cast<gdn::gpu::ShareKeyColumnsOp>(op)) // share_key_columns_c2
    return {SharedAccess{keys.getFrom(), false, true},
            SharedAccess{keys.getTo(), true, false}};
  if (auto unit = dyn_cast<gdn::gpu::TokenUnitOp>(op)) // token_unit_c2
    return {SharedAccess{unit.getWeights(), false, true}};
  if (auto fold = dyn_cast<gdn::gpu::FoldPlanesOp>(op)) // fold_planes_c3
    return {SharedAccess{fold.getDeltas(), false, true},
            SharedAccess{fold.getWeights(), false, true},
            SharedAccess{fold.getKeys(), false, true}};
  return {};
}

/// Rows that a store with a row writes.
static int64_t countRows(gdn::gpu::StoreSharedOp store) {
  gdn::gpu::FragmentType type = store.getTile().getType();
  return type.getRank() == 2 ? type.getDimSize(0) : 1;
}

/// Whether two stores write a row in common, as their rows show.
static bool shareRow(gdn::gpu::StoreSharedOp store,
                     gdn::gpu::StoreSharedOp other) {
  if (store == other) // in another turn, or another warp
    return false;
  if (store.getRow() == other.getRow())
    return true;
  std::optional<int64_t> first = getConstantIntValue(store.getRow());
  std::optional<int64_t> second = getConstantIntValue(other.getRow());
  return first && second && *first < *second + countRows(other) &&
         *second < *first + countRows(store);
}

bool gdn::areApart(Operation *op, Operation *other) {
  if (isPerWarpgroup(op) && isPerWarpgroup(other))
    return true;
  auto isOfOneWarp = [](Operation *inverse) {
    return isa<gdn::gpu::BlockInversesOp, gdn::gpu::JoinInversesOp>(inverse);
  };
  if (isOfOneWarp(op) && isOfOneWarp(other) &&
      op->getParentOp() == other->getParentOp())
    return true;
  auto store = dyn_cast<gdn::gpu::StoreSharedOp>(op);
  auto before = dyn_cast<gdn::gpu::StoreSharedOp>(other);
  return store && before && store.getRow() && before.getRow() &&
         store.getBuffer().getType() == before.getBuffer().getType() &&
         !shareRow(store, before);
}
