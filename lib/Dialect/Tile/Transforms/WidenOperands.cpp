// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-tile-widen-operands: f32 operands for products. See Passes.td.
#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Dialect/Tile/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace gdn {
#define GEN_PASS_DEF_WIDENTILEOPERANDS
#include "gdn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace gdn

using namespace mlir;
using namespace gdn;

namespace {

struct WidenTileOperands final
    : gdn::impl::WidenTileOperandsBase<WidenTileOperands> {
  void runOnOperation() override {
    getOperation().walk([&](tile::MatmulOp matmul) {
      if (matmul.getLhs().getType().getElementType().isF32())
        return;
      matmul.getLhsMutable().assign(widen(matmul.getLhs()));
      matmul.getRhsMutable().assign(widen(matmul.getRhs()));
    });
    wide.clear();
  }

private:
  Value widen(Value tile);

  DenseMap<Value, Value> wide;
};

} // namespace

/// `tile` in f32, made where `tile` is made.
Value WidenTileOperands::widen(Value tile) {
  if (Value known = wide.lookup(tile))
    return known;
  OpBuilder b(tile.getContext());
  b.setInsertionPointAfterValue(tile);
  Location loc = tile.getLoc();
  auto type = cast<VectorType>(tile.getType()).clone(b.getF32Type());
  ++numWidened;
  if (auto transpose = tile.getDefiningOp<tile::TransposeOp>()) {
    Value result = tile::TransposeOp::create(b, loc, cast<VectorType>(type),
                                             widen(transpose.getTile()));
    return wide[tile] = result;
  }
  auto map = tile::MapRowsOp::create(b, loc, TypeRange{type}, tile);
  Type narrowRow = tile::getRowType(cast<VectorType>(tile.getType()));
  Type wideRow = tile::getRowType(cast<VectorType>(type));
  Block *body = b.createBlock(&map.getBody(), {}, {b.getIndexType(), narrowRow},
                              {loc, loc});
  Value row = arith::ExtFOp::create(b, loc, wideRow, body->getArgument(1));
  tile::YieldOp::create(b, loc, row);
  return wide[tile] = map.getResult(0);
}
