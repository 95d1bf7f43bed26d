// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// With weights w_j, what remains of pending token j behind the token's decay:
//
//   y = w M k + sum of (w_j k_j . k) d_j,  d = beta (v - y)
//   o = w M q + sum of (w_j k_j . q) d_j + d (k . q)
//
// With a decay per channel w and w_j are rows: M (w o k), (w_j o k_j) . k.
#include "Kernel/ReplayStep.h"

#include "Kernel/FoldStep.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

/// Rows of results from those of inputs.
using EmitRows = function_ref<SmallVector<Value>(ValueRange)>;

static ValueRange mapFragments(OpBuilder &b, Location loc, TypeRange types,
                               ValueRange inputs, EmitRows emitBody) {
  auto op = gpu::MapRowsOp::create(b, loc, types, inputs);
  OpBuilder::InsertionGuard guard(b);
  gpu::YieldOp::create(b, loc,
                       emitBody(op.openBody(b)->getArguments().drop_front()));
  return op.getResults();
}

/// Terms that a turn adds of a loop over those of an output, and of a state.
static constexpr int64_t outputTerms = 4, foldTerms = 2, channelTerms = 4;

/// So many, or fewer, by which `most` can be divided.
static int64_t getTurnTerms(int64_t most, int64_t wanted) {
  int64_t terms = std::min(most, wanted);
  while (most % terms != 0)
    --terms;
  return terms;
}

VectorType gdn::getPendingRoom(Value tile) {
  auto type = cast<VectorType>(tile.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.front() = llvm::alignTo<pendingMultiple>(shape.front());
  return VectorType::get(shape, type.getElementType());
}

void gdn::beginPendingCopy(OpBuilder &b, tile::LoadOp load,
                           FragmentEmitter &outside, Value buffer) {
  Value view = outside.scalar(load.getView());
  SmallVector<Value> indices = llvm::map_to_vector(
      load.getIndices(), [&](Value index) { return outside.scalar(index); });
  Value rows = outside.scalar(load.getRows());
  bool isRows = load.getTile().getType().getRank() == 2;
  if (isRows) {
    Operation *around = b.getInsertionBlock()->getParentOp();
    auto kernel = dyn_cast<func::FuncOp>(around);
    setAlignment(kernel ? kernel : around->getParentOfType<func::FuncOp>(),
                 view, 16);
  }
  gpu::BeginCopyOp::create(b, load.getLoc(), view, indices, load.getDims(),
                           rows, buffer, /*scattered=*/!isRows,
                           /*per_warpgroup=*/false, /*tensor_map=*/false);
}

static int64_t getSize(Value buffer, bool isLast) {
  ArrayRef<int64_t> shape = cast<gpu::SharedType>(buffer.getType()).getShape();
  return isLast ? shape.back() : shape.front();
}

static Value emitIndex(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

static Type getElement(Value buffer) {
  return cast<gpu::SharedType>(buffer.getType()).getElementType();
}

static Value emitElement(OpBuilder &b, Location loc, Value buffer, Value at) {
  return gpu::LoadSharedElementOp::create(b, loc, b.getF32Type(), buffer, at);
}

static Value emitDot(OpBuilder &b, Location loc, Value x, Value y) {
  return vector::ReductionOp::create(b, loc, vector::CombiningKind::ADD,
                                     arith::MulFOp::create(b, loc, x, y),
                                     arith::FastMathFlags::reassoc);
}

gpu::FragmentType gdn::getReplayNumbers(MLIRContext *context, int64_t most) {
  return gpu::FragmentType::get(
      VectorType::get({most}, Float32Type::get(context)),
      gpu::PerRowAttr::get(context, gpu::RowsAttr::get(context, /*warps=*/1,
                                                       /*lanes=*/1,
                                                       /*vector=*/1)));
}

Value gdn::emitReplayWeights(OpBuilder &b, Location loc, ArrayRef<Value> decays,
                             Value scales) {
  const int64_t most = decays.size();
  auto type = getReplayNumbers(b.getContext(), most);
  SmallVector<Value> numbers;
  for (int64_t j = 0; j < most; ++j)
    numbers.push_back(emitIndex(b, loc, j));
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
  SmallVector<Value> rows = {
      scales ? scales : Value(gpu::FillOp::create(b, loc, type, zero))};
  auto map = gpu::MapRowsOp::create(b, loc, TypeRange{type}, rows);
  OpBuilder::InsertionGuard guard(b);
  // A sum of those behind it; the difference of two sums would be worse where
  // some decay is strong.
  Block *body = map.openBody(b);
  Value row = body->getArgument(0), sum = zero;
  for (int64_t j = 1; j < most; ++j) {
    Value isBehind = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                           row, numbers[j]);
    Value part = arith::SelectOp::create(b, loc, isBehind, decays[j], zero);
    sum = arith::AddFOp::create(b, loc, sum, part);
  }
  Value weight = math::ExpOp::create(b, loc, sum);
  if (scales)
    weight = arith::MulFOp::create(b, loc, weight, body->getArgument(1));
  gpu::YieldOp::create(b, loc, weight);
  return map.getResult(0);
}

Value gdn::emitReplayWeights(OpBuilder &b, Location loc, Value decays,
                             int64_t most, Value scales) {
  SmallVector<Value> numbers;
  for (int64_t j = 0; j < most; ++j)
    numbers.push_back(emitElement(b, loc, decays, emitIndex(b, loc, j)));
  if (scales)
    scales = gpu::LoadSharedOp::create(
        b, loc, getReplayNumbers(b.getContext(), most), scales, Value());
  return emitReplayWeights(b, loc, numbers, scales);
}

Value gdn::emitReplayKept(OpBuilder &b, Location loc, ArrayRef<Value> decays) {
  Value sum = decays.front();
  for (Value decay : decays.drop_front())
    sum = arith::AddFOp::create(b, loc, sum, decay);
  return math::ExpOp::create(b, loc, sum);
}

Value gdn::emitReplayKept(OpBuilder &b, Location loc, Value decays,
                          int64_t most) {
  Value sum;
  for (int64_t j = 0; j < most; ++j) {
    Value decay = emitElement(b, loc, decays, emitIndex(b, loc, j));
    sum = sum ? Value(arith::AddFOp::create(b, loc, sum, decay)) : decay;
  }
  return math::ExpOp::create(b, loc, sum);
}

void gdn::emitReplayChannels(OpBuilder &b, Location loc,
                             const ReplayPending &pending, Value decays,
                             Value keys, Value logDecay, Value key, Value query,
                             const ReplayRows &rows) {
  const int64_t most = getSize(decays, /*isLast=*/false),
                columns = getSize(decays, /*isLast=*/true);
  gpu::RowsAttr layout = getWarpRows(b.getContext(), columns);
  auto rowType = [&](Value buffer) {
    return gpu::FragmentType::get(
        VectorType::get({1, columns}, getElement(buffer)), layout);
  };
  auto load = [&](Value buffer, Value at) -> Value {
    return gpu::LoadSharedOp::create(b, loc, rowType(buffer), buffer, at);
  };
  auto map = [&](TypeRange types, ValueRange inputs, EmitRows emitBody) {
    return mapFragments(b, loc, types, inputs, emitBody);
  };
  auto multiply = [&](Value x, Value y) -> Value {
    return arith::MulFOp::create(b, loc, x, y);
  };
  auto exp = [&](Value x) -> Value { return math::ExpOp::create(b, loc, x); };
  auto number = [&](float value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
  };
  auto row = rowType(decays);

  // Backwards: a sum of the log decays behind each token, no difference. What
  // is behind the last one has a log decay and a key of zero.
  const int64_t step = getTurnTerms(most, channelTerms);
  Value none = gpu::FillOp::create(b, loc, row, number(0));
  auto loop =
      scf::ForOp::create(b, loc, emitIndex(b, loc, 0), emitIndex(b, loc, most),
                         emitIndex(b, loc, step), none);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> places, inputs = {loop.getRegionIterArg(0)};
    for (int64_t j = 0; j < step; ++j) {
      Value last = arith::SubIOp::create(
          b, loc, emitIndex(b, loc, most - 1 - j), loop.getInductionVar());
      places.push_back(last);
      inputs.push_back(load(decays, last));
      inputs.push_back(load(pending.keys, last));
    }
    ValueRange made =
        map(SmallVector<Type>(step + 1, row), inputs,
            [&](ValueRange args) -> SmallVector<Value> {
              Value sum = args[0];
              SmallVector<Value> all;
              for (int64_t j = 0; j < step; ++j) {
                Value wide = emitWide(b, loc, args[2 + 2 * j]);
                all.push_back(multiply(exp(sum), wide));
                sum = arith::AddFOp::create(b, loc, sum, args[1 + 2 * j]);
              }
              all.push_back(sum);
              return all;
            });
    for (auto [at, left] : llvm::zip(places, made.drop_back()))
      gpu::StoreSharedOp::create(b, loc, left, keys, at);
    scf::YieldOp::create(b, loc, made.back());
  }

  // Of a state that has received them all is left, and none of the tokens.
  Value whole =
      arith::SelectOp::create(b, loc, pending.commits, number(1), number(0));
  Value rest =
      arith::SelectOp::create(b, loc, pending.commits, number(0), number(1));
  Value zero = emitIndex(b, loc, 0);
  ValueRange made =
      map(SmallVector<Type>(5, row),
          {loop.getResult(0), load(logDecay, zero), load(key, zero),
           load(query, zero)},
          [&](ValueRange args) -> SmallVector<Value> {
            auto splat = [&](Value x) -> Value {
              return vector::BroadcastOp::create(b, loc, args[0].getType(), x);
            };
            Value kept = exp(args[0]), decay = exp(args[1]);
            Value ofState = arith::AddFOp::create(
                b, loc, multiply(splat(rest), kept), splat(whole));
            Value left = multiply(ofState, decay);
            Value ofTokens = multiply(splat(rest), decay);
            return {kept, multiply(left, args[2]), multiply(left, args[3]),
                    multiply(ofTokens, args[2]), multiply(ofTokens, args[3])};
          });
  const std::array<Value, 5> buffers = {pending.keptRow, rows.key, rows.query,
                                        rows.pairKey, rows.pairQuery};
  for (auto [fragment, buffer] : llvm::zip_equal(made, buffers))
    gpu::StoreSharedOp::create(b, loc, fragment, buffer, zero);
}

std::pair<Value, Value> gdn::emitReplayPairs(OpBuilder &b, Location loc,
                                             const ReplayPending &pending,
                                             gpu::RowsAttr rows, Value key,
                                             Value query, Value decay) {
  const int64_t most = getSize(pending.keys, /*isLast=*/false);
  auto keys = gpu::FragmentType::get(
      VectorType::get({most, getSize(pending.keys, /*isLast=*/true)},
                      getElement(pending.keys)),
      rows);
  auto pairs =
      gpu::FragmentType::get(VectorType::get({most}, b.getF32Type()),
                             gpu::PerRowAttr::get(b.getContext(), rows));
  Value all = gpu::LoadSharedOp::create(b, loc, keys, pending.keys, Value());
  SmallVector<Value> inputs = {all, key, query};
  if (pending.weights)
    inputs.push_back(
        gpu::LoadSharedOp::create(b, loc, pairs, pending.weights, Value()));
  Value factor;
  if (decay) {
    Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
    factor = arith::SelectOp::create(b, loc, pending.commits, zero, decay);
  }
  auto map = gpu::MapRowsOp::create(b, loc, TypeRange{pairs, pairs}, inputs);
  OpBuilder::InsertionGuard guard(b);
  Block *body = map.openBody(b);
  Value weight = pending.weights ? body->getArgument(4) : Value();
  if (factor)
    weight = arith::MulFOp::create(b, loc, factor, weight);
  Value known = emitWide(b, loc, body->getArgument(1));
  SmallVector<Value> yielded;
  for (unsigned i : {2, 3}) {
    Value meets = emitDot(b, loc, known, body->getArgument(i));
    yielded.push_back(
        weight ? Value(arith::MulFOp::create(b, loc, weight, meets)) : meets);
  }
  gpu::YieldOp::create(b, loc, yielded);
  return {map.getResult(0), map.getResult(1)};
}

std::pair<Value, Value> gdn::emitReplayOutput(OpBuilder &b, Location loc,
                                              const ReplayPending &pending,
                                              const ReplayTerms &terms) {
  MLIRContext *context = b.getContext();
  auto rowType = [&](Value buffer) {
    int64_t columns = getSize(buffer, /*isLast=*/true);
    return gpu::FragmentType::get(
        VectorType::get({1, columns}, getElement(buffer)),
        getWarpRows(context, columns));
  };
  auto load = [&](Value buffer, Value at = Value()) -> Value {
    auto type = rowType(buffer);
    auto shared = cast<gpu::SharedType>(buffer.getType());
    if (shared.getShape().size() == 1)
      buffer = gpu::ReshapeOp::create(
          b, loc,
          gpu::SharedType::get(VectorType::get({1, shared.getShape().back()},
                                               shared.getElementType())),
          buffer);
    return gpu::LoadSharedOp::create(b, loc, type, buffer, at);
  };
  auto map = [&](TypeRange types, ValueRange inputs, EmitRows emitBody) {
    return mapFragments(b, loc, types, inputs, emitBody);
  };
  auto splat = [&](Value x, Value like) -> Value {
    return vector::BroadcastOp::create(b, loc, like.getType(), x);
  };
  auto multiply = [&](Value x, Value y) -> Value {
    return arith::MulFOp::create(b, loc, x, y);
  };
  auto add = [&](Value x, Value y) -> Value {
    return arith::AddFOp::create(b, loc, x, y);
  };
  const int64_t most = getSize(pending.deltas, /*isLast=*/false);
  Value factor = emitReplayFactor(b, loc, pending, terms);
  Value meets = terms.meets ? terms.meets : emitReplayMeets(b, loc, terms);
  auto row = rowType(terms.value);
  auto finish = [&](Value known, Value seen) -> std::pair<Value, Value> {
    ValueRange made = map(
        {row, row}, {known, seen, load(terms.value)},
        [&](ValueRange args) -> SmallVector<Value> {
          Value error = arith::SubFOp::create(b, loc, args[2], args[0]);
          Value delta = multiply(splat(terms.beta, error), error);
          return {delta, add(args[1], multiply(delta, splat(meets, delta)))};
        });
    return {made[0], made[1]};
  };
  if (terms.known) {
    auto whole = gpu::SharedType::get(VectorType::get(
        {1, getSize(terms.value, /*isLast=*/true)}, b.getF32Type()));
    auto take = [&](Value sums) -> Value {
      return gpu::LoadSharedOp::create(
          b, loc, row, gpu::ReshapeOp::create(b, loc, whole, sums), Value());
    };
    return finish(take(terms.known), take(terms.seen));
  }
  SmallVector<Value> sums = {load(terms.products, emitIndex(b, loc, 0)),
                             load(terms.products, emitIndex(b, loc, 1))};
  if (factor)
    sums = llvm::to_vector(
        map({row, row}, sums, [&](ValueRange args) -> SmallVector<Value> {
          Value w = splat(factor, args[0]);
          return {multiply(w, args[0]), multiply(w, args[1])};
        }));

  // Few instructions: roles of a block share the memory that holds them.
  const int64_t step = getTurnTerms(most, outputTerms);
  auto loop = scf::ForOp::create(b, loc, emitIndex(b, loc, 0), pending.count,
                                 emitIndex(b, loc, step), sums);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> inputs(loop.getRegionIterArgs()), keys, queries;
    for (int64_t j = 0; j < step; ++j) {
      Value at = arith::AddIOp::create(b, loc, loop.getInductionVar(),
                                       emitIndex(b, loc, j));
      inputs.push_back(load(pending.deltas, at));
      keys.push_back(emitElement(b, loc, terms.keyPairs, at));
      queries.push_back(emitElement(b, loc, terms.queryPairs, at));
    }
    ValueRange next =
        map({row, row}, inputs, [&](ValueRange args) -> SmallVector<Value> {
          Value known = args[0], seen = args[1];
          for (auto [j, narrow] : llvm::enumerate(args.drop_front(2))) {
            Value delta = emitWide(b, loc, narrow);
            known = add(known, multiply(splat(keys[j], delta), delta));
            seen = add(seen, multiply(splat(queries[j], delta), delta));
          }
          return {known, seen};
        });
    scf::YieldOp::create(b, loc, next);
  }
  return finish(loop.getResult(0), loop.getResult(1));
}

Value gdn::emitReplayFold(OpBuilder &b, Location loc, Value state,
                          const ReplayPending &pending,
                          function_ref<Value(Value)> delta,
                          function_ref<void(Value)> emitStores) {
  auto type = cast<gpu::FragmentType>(state.getType());
  auto branch = scf::IfOp::create(b, loc, type, pending.commits,
                                  /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loc, state);
  b.setInsertionPointToStart(branch.thenBlock());
  auto row = gpu::FragmentType::get(
      VectorType::get({getSize(pending.keys, /*isLast=*/true)},
                      getElement(pending.keys)),
      gpu::PerColumnAttr::get(b.getContext(), type.getRows()));
  Value wide = castRows(b, loc, state, b.getF32Type());
  SmallVector<Value> inputs = {wide};
  if (pending.keptRow)
    inputs.push_back(gpu::LoadSharedOp::create(b, loc, row, pending.keptRow,
                                               emitIndex(b, loc, 0)));
  auto scaled = gpu::MapRowsOp::create(b, loc, wide.getType(), inputs);
  {
    OpBuilder::InsertionGuard inMap(b);
    Block *body = scaled.openBody(b);
    Value all = body->getArgument(1);
    Value kept = pending.keptRow ? Value(body->getArgument(2))
                                 : Value(vector::BroadcastOp::create(
                                       b, loc, all.getType(), pending.kept));
    gpu::YieldOp::create(b, loc,
                         arith::MulFOp::create(b, loc, all, kept).getResult());
  }
  // A lane has twice as many columns of a narrow state, or more of one in
  // planes, and for two keys of them no registers. Tokens behind the last one
  // add nothing.
  const int64_t most = getSize(pending.keys, /*isLast=*/false);
  const int64_t step =
      type.getRows().getVector() <= 4 ? getTurnTerms(most, foldTerms) : 1;
  auto loop = scf::ForOp::create(b, loc, emitIndex(b, loc, 0), pending.count,
                                 emitIndex(b, loc, step), scaled.getResult(0));
  {
    OpBuilder::InsertionGuard inLoop(b);
    b.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> keys, weights, deltas;
    for (int64_t j = 0; j < step; ++j) {
      Value at = arith::AddIOp::create(b, loc, loop.getInductionVar(),
                                       emitIndex(b, loc, j));
      keys.push_back(gpu::LoadSharedOp::create(b, loc, row, pending.keys, at));
      weights.push_back(
          pending.weights ? emitElement(b, loc, pending.weights, at) : Value());
      deltas.push_back(delta(at));
    }
    Value sum = loop.getRegionIterArg(0);
    for (int64_t j = 0; j < step; ++j)
      sum = emitAdded(b, loc, sum, weights[j], keys[j], deltas[j]);
    scf::YieldOp::create(b, loc, sum);
  }
  Value stored = castRows(b, loc, loop.getResult(0), type.getElementType());
  emitStores(stored);
  scf::YieldOp::create(b, loc, stored);
  return branch.getResult(0);
}
