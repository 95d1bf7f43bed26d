// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The sums over pending tokens of a token's output, by several warps: a lane
// has one element of the row.
#include "Kernel/FoldStep.h"
#include "Kernel/ReplayStep.h"

using namespace mlir;
using namespace gdn;

Value gdn::emitReplayFactor(OpBuilder &b, Location loc,
                            const ReplayPending &pending,
                            const ReplayTerms &terms) {
  if (!terms.decay)
    return nullptr;
  Value whole = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(1.0f));
  Value kept =
      arith::SelectOp::create(b, loc, pending.commits, whole, pending.kept);
  return arith::MulFOp::create(b, loc, kept, terms.decay);
}

Value gdn::emitReplayMeets(OpBuilder &b, Location loc,
                           const ReplayTerms &terms) {
  auto shared = cast<gpu::SharedType>(terms.key.getType());
  int64_t columns = shared.getShape().back();
  gpu::RowsAttr rows = getWarpRows(b.getContext(), columns);
  auto row = gpu::FragmentType::get(
      VectorType::get({1, columns}, shared.getElementType()), rows);
  auto one = gpu::FragmentType::get(VectorType::get({1}, b.getF32Type()),
                                    gpu::PerRowAttr::get(b.getContext(), rows));
  Value inputs[] = {
      gpu::LoadSharedOp::create(b, loc, row, terms.key, Value()),
      gpu::LoadSharedOp::create(b, loc, row, terms.query, Value())};
  auto map = gpu::MapRowsOp::create(b, loc, TypeRange{one}, inputs);
  {
    OpBuilder::InsertionGuard guard(b);
    Block *body = map.openBody(b);
    Value products = arith::MulFOp::create(b, loc, body->getArgument(1),
                                           body->getArgument(2));
    gpu::YieldOp::create(
        b, loc,
        vector::ReductionOp::create(b, loc, vector::CombiningKind::ADD,
                                    products, arith::FastMathFlags::reassoc)
            .getResult());
  }
  return gpu::ExtractOp::create(b, loc, b.getF32Type(), map.getResult(0),
                                /*index=*/0);
}

/// Row `row` of a tile of rows of `wide` elements, as `narrow` has them: one
/// for each lane of its warps.
static Value loadSpread(OpBuilder &b, Location loc, Value buffer, int64_t row,
                        gpu::FragmentType narrow) {
  auto shared = cast<gpu::SharedType>(buffer.getType());
  const int64_t warps = narrow.getShape().front();
  auto pieces = VectorType::get(
      {shared.getShape().front() * warps, narrow.getShape().back()},
      shared.getElementType());
  auto type = gpu::FragmentType::get(
      VectorType::get(narrow.getShape(), shared.getElementType()),
      narrow.getRows());
  return gpu::LoadSharedOp::create(
      b, loc, type,
      gpu::ReshapeOp::create(b, loc, gpu::SharedType::get(pieces), buffer),
      arith::ConstantIndexOp::create(b, loc, row * warps));
}

/// A token behind the last one adds nothing, so all have a term here.
void gdn::emitReplaySums(OpBuilder &b, Location loc,
                         const ReplayPending &pending, const ReplayTerms &terms,
                         Value known, Value seen) {
  auto to = cast<gpu::SharedType>(known.getType());
  auto rows = gpu::RowsAttr::get(b.getContext(), to.getShape().front(),
                                 gpu::warpThreads, /*vector=*/1);
  auto type = gpu::FragmentType::get(
      VectorType::get(to.getShape(), b.getF32Type()), rows);
  auto splat = [&](Value x, Value like) -> Value {
    return vector::BroadcastOp::create(b, loc, like.getType(), x);
  };
  SmallVector<Value> inputs = {loadSpread(b, loc, terms.products, 0, type),
                               loadSpread(b, loc, terms.products, 1, type)};
  // By itself: beside the terms it would be rounded with the first of them.
  if (Value factor = emitReplayFactor(b, loc, pending, terms)) {
    auto map = gpu::MapRowsOp::create(b, loc, TypeRange{type, type}, inputs);
    OpBuilder::InsertionGuard guard(b);
    SmallVector<Value> kept;
    for (Value x : map.openBody(b)->getArguments().drop_front())
      kept.push_back(arith::MulFOp::create(b, loc, splat(factor, x), x));
    gpu::YieldOp::create(b, loc, kept);
    inputs.assign(map.result_begin(), map.result_end());
  }
  const int64_t most =
      cast<gpu::SharedType>(pending.deltas.getType()).getShape().front();
  SmallVector<std::pair<Value, Value>> factors;
  for (int64_t j = 0; j < most; ++j) {
    inputs.push_back(loadSpread(b, loc, pending.deltas, j, type));
    Value at = arith::ConstantIndexOp::create(b, loc, j);
    auto element = [&](Value buffer) -> Value {
      return gpu::LoadSharedElementOp::create(b, loc, b.getF32Type(), buffer,
                                              at);
    };
    factors.push_back({element(terms.keyPairs), element(terms.queryPairs)});
  }
  auto map = gpu::MapRowsOp::create(b, loc, TypeRange{type, type}, inputs);
  {
    OpBuilder::InsertionGuard guard(b);
    ValueRange args = map.openBody(b)->getArguments().drop_front();
    Value sums[] = {args[0], args[1]};
    for (auto [factor, narrow] : llvm::zip_equal(factors, args.drop_front(2))) {
      Value delta = emitWide(b, loc, narrow);
      auto add = [&](Value sum, Value x) -> Value {
        return arith::AddFOp::create(
            b, loc, sum, arith::MulFOp::create(b, loc, splat(x, delta), delta));
      };
      sums[0] = add(sums[0], factor.first);
      sums[1] = add(sums[1], factor.second);
    }
    gpu::YieldOp::create(b, loc, sums);
  }
  gpu::StoreSharedOp::create(b, loc, map.getResult(0), known, Value());
  gpu::StoreSharedOp::create(b, loc, map.getResult(1), seen, Value());
}
