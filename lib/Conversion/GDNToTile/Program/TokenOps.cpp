// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Token-wise gdn ops as rows of tiles. The forms are the safe ones: log1p with
// the threshold for softplus (log(1+e^u) overflows), eps inside the square
// root (a zero row stays zero).
#include "Program/TokenOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace gdn;

namespace {
/// f32 arithmetic on a row (vector) or a single element (scalar) alike.
struct Row {
  OpBuilder &b;
  Location loc;
  bool fast = false;

  /// `value` in every element, in the shape of `like`.
  Value constant(double value, Type like) {
    auto attr = FloatAttr::get(getElementTypeOrSelf(like), value);
    if (auto type = dyn_cast<VectorType>(like))
      return arith::ConstantOp::create(b, loc,
                                       DenseElementsAttr::get(type, attr));
    return arith::ConstantOp::create(b, loc, attr);
  }
  Value splat(Value scalar, Type like) {
    if (isa<VectorType>(like) && !isa<VectorType>(scalar.getType()))
      return vector::BroadcastOp::create(b, loc, like, scalar);
    return scalar;
  }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, loc, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
  Value div(Value x, Value y) { return arith::DivFOp::create(b, loc, x, y); }
  Value exp(Value x) {
    auto flags = fast ? arith::FastMathFlags::afn : arith::FastMathFlags::none;
    return math::ExpOp::create(b, loc, x, flags);
  }
  Value exp2(Value x) {
    assert(fast && "an approximation");
    return math::Exp2Op::create(b, loc, x, arith::FastMathFlags::afn);
  }
  /// 1 / (1 + e^-x); e^-x may overflow to infinity, which gives 0.
  Value sigmoid(Value x) {
    Value one = constant(1.0, x.getType());
    Value e = exp(arith::NegFOp::create(b, loc, x));
    return div(one, add(one, e));
  }
  Value activate(Value x, Activation activation) {
    switch (activation) {
    case Activation::identity:
      return x;
    case Activation::silu:
      return mul(x, sigmoid(x));
    case Activation::sigmoid:
      return sigmoid(x);
    }
    llvm_unreachable("every activation is handled");
  }
  /// Sum of the squares of a row. The order is a tree that depends on the
  /// length alone, so it is the same for every token of every kernel.
  Value sumOfSquares(Value x) {
    return vector::ReductionOp::create(b, loc, vector::CombiningKind::ADD,
                                       mul(x, x),
                                       arith::FastMathFlags::reassoc);
  }
  Value rsqrt(Value x) { return math::RsqrtOp::create(b, loc, x); }
};
} // namespace

SmallVector<Value>
gdn::mapRows(OpBuilder &builder, Location loc, ValueRange inputs,
             TypeRange results,
             function_ref<SmallVector<Value>(OpBuilder &, ValueRange)> body) {
  auto map = tile::MapRowsOp::create(builder, loc, results, inputs);
  SmallVector<Type> types = {builder.getIndexType()};
  for (Value input : inputs)
    types.push_back(tile::getRowType(cast<VectorType>(input.getType())));
  OpBuilder::InsertionGuard guard(builder);
  Block *block = builder.createBlock(&map.getBody(), {}, types,
                                     SmallVector<Location>(types.size(), loc));
  SmallVector<Value> rows = body(builder, block->getArguments().drop_front());
  tile::YieldOp::create(builder, loc, rows);
  return map.getResults();
}

static VectorType withElement(Value tile, Type element) {
  return VectorType::get(cast<VectorType>(tile.getType()).getShape(), element);
}

Value gdn::castTile(OpBuilder &builder, Location loc, Value tile,
                    Type element) {
  VectorType type = withElement(tile, element);
  if (type == tile.getType())
    return tile;
  auto row = tile::getRowType(type);
  unsigned from = cast<VectorType>(tile.getType()).getElementTypeBitWidth();
  unsigned to = element.getIntOrFloatBitWidth();
  return mapRows(builder, loc, tile, {type},
                 [&](OpBuilder &b, ValueRange in) -> SmallVector<Value> {
                   if (from < to)
                     return {arith::ExtFOp::create(b, loc, row, in[0])};
                   if (from > to)
                     return {arith::TruncFOp::create(b, loc, row, in[0])};
                   // Between bf16 and f16, through f32.
                   Type wide = b.getF32Type();
                   if (auto vec = dyn_cast<VectorType>(row))
                     wide = VectorType::get(vec.getShape(), wide);
                   Value x = arith::ExtFOp::create(b, loc, wide, in[0]);
                   return {arith::TruncFOp::create(b, loc, row, x)};
                 })[0];
}

/// What `tile` is extended from without a change, or null.
static Value getExtended(Value tile) {
  auto map = tile.getDefiningOp<tile::MapRowsOp>();
  if (!map || map.getInputs().size() != 1 || map->getNumResults() != 1)
    return {};
  Block &body = map.getBody().front();
  auto extend = dyn_cast<arith::ExtFOp>(body.front());
  return extend && extend.getIn() == body.getArgument(1) &&
                 extend.getOut() == body.getTerminator()->getOperand(0)
             ? map.getInputs().front()
             : Value();
}

Value gdn::roundTile(OpBuilder &builder, Location loc, Value tile,
                     Type element) {
  Value source = getExtended(tile);
  return source && getElementTypeOrSelf(source.getType()) == element
             ? source
             : castTile(builder, loc, tile, element);
}

Value gdn::narrowTile(OpBuilder &builder, Location loc, Value tile,
                      Type element) {
  Value source = getExtended(tile);
  return source && getElementTypeOrSelf(source.getType())
                           .getIntOrFloatBitWidth() == 16
             ? source
             : castTile(builder, loc, tile, element);
}

Value gdn::transposeTile(OpBuilder &builder, Location loc, Value tile) {
  auto type = cast<VectorType>(tile.getType());
  auto result = VectorType::get({type.getDimSize(1), type.getDimSize(0)},
                                type.getElementType());
  return tile::TransposeOp::create(builder, loc, result, tile);
}

Value gdn::keepBelow(OpBuilder &builder, Location loc, Value number, Value row,
                     bool diagonal) {
  auto type = cast<VectorType>(row.getType());
  auto indices = VectorType::get(type.getShape(), builder.getIndexType());
  Value column = vector::StepOp::create(builder, loc, indices);
  Value own = vector::BroadcastOp::create(builder, loc, indices, number);
  Value kept = arith::CmpIOp::create(builder, loc,
                                     diagonal ? arith::CmpIPredicate::ule
                                              : arith::CmpIPredicate::ult,
                                     column, own);
  Value zero =
      arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
  return arith::SelectOp::create(builder, loc, kept, row, zero);
}

Value gdn::scaleTile(OpBuilder &builder, Location loc, Value tile,
                     double factor) {
  return mapRows(builder, loc, tile, {tile.getType()},
                 [&](OpBuilder &b, ValueRange in) -> SmallVector<Value> {
                   Row row{b, loc};
                   return {
                       row.mul(in[0], row.constant(factor, in[0].getType()))};
                 })[0];
}

Value gdn::narrowLogs(OpBuilder &builder, Location loc, Value tile) {
  using Ops = tile::DecayOperandsOp;
  VectorType type = withElement(tile, builder.getF16Type());
  return mapRows(
      builder, loc, tile, {type},
      [&](OpBuilder &b, ValueRange in) -> SmallVector<Value> {
        Row row{b, loc};
        Type wide = in[0].getType();
        Value log = row.mul(in[0], row.constant(Ops::scaleOfNarrowLogs, wide));
        log = arith::MaximumFOp::create(
            b, loc, log, row.constant(Ops::leastNarrowLog, wide));
        return {arith::TruncFOp::create(b, loc, tile::getRowType(type), log)};
      })[0];
}

Value gdn::widenLogs(OpBuilder &builder, Location loc, Value tile) {
  VectorType type = withElement(tile, builder.getF32Type());
  return mapRows(builder, loc, tile, {type},
                 [&](OpBuilder &b, ValueRange in) -> SmallVector<Value> {
                   Row row{b, loc};
                   Value log = arith::ExtFOp::create(
                       b, loc, tile::getRowType(type), in[0]);
                   constexpr float factor =
                       1 / tile::DecayOperandsOp::scaleOfNarrowLogs;
                   return {row.mul(log, row.constant(factor, log.getType()))};
                 })[0];
}

Value gdn::activateTile(OpBuilder &builder, Location loc, Value tile,
                        Activation activation, bool fast) {
  if (activation == Activation::identity)
    return tile;
  return mapRows(builder, loc, tile, {tile.getType()},
                 [&](OpBuilder &b, ValueRange in) -> SmallVector<Value> {
                   return {Row{b, loc, fast}.activate(in[0], activation)};
                 })[0];
}

Value gdn::l2normTile(OpBuilder &builder, Location loc, Value tile,
                      double eps) {
  return mapRows(builder, loc, tile, {tile.getType()},
                 [&](OpBuilder &b, ValueRange in) -> SmallVector<Value> {
                   Row row{b, loc};
                   Value sum = row.sumOfSquares(in[0]);
                   Value norm = row.rsqrt(
                       row.add(sum, row.constant(eps, sum.getType())));
                   return {row.mul(in[0], row.splat(norm, in[0].getType()))};
                 })[0];
}

Value gdn::inverseNormTile(OpBuilder &builder, Location loc, Value tile,
                           double eps) {
  auto type = cast<VectorType>(tile.getType());
  type = VectorType::get(type.getDimSize(0), type.getElementType());
  return mapRows(
      builder, loc, tile, {type},
      [&](OpBuilder &b, ValueRange in) -> SmallVector<Value> {
        Row row{b, loc};
        Value sum = row.sumOfSquares(in[0]);
        return {row.rsqrt(row.add(sum, row.constant(eps, sum.getType())))};
      })[0];
}

Value gdn::scaleRowsTo(OpBuilder &builder, Location loc, Value tile,
                       Value factors, Type element) {
  VectorType type = withElement(tile, element);
  Type wide = tile::getRowType(withElement(tile, builder.getF32Type()));
  return mapRows(
      builder, loc, {tile, factors}, {type},
      [&](OpBuilder &b, ValueRange in) -> SmallVector<Value> {
        Row row{b, loc};
        Value x = arith::ExtFOp::create(b, loc, wide, in[0]);
        x = row.mul(x, row.splat(in[1], wide));
        return {arith::TruncFOp::create(b, loc, tile::getRowType(type), x)};
      })[0];
}

/// Below this `softplus(u)` is `exp(u)` to the accuracy of f32.
static constexpr double kExponential = -17;

/// The last `a_log` of which `exp` is finite in f32; and log2 e times that.
static constexpr double kLargestLog = 88.72, kLargestExponent = 88.35;

/// `bound * sigmoid(rate u)`. Slow decays keep the accuracy of the exponential;
/// an approximate tanh would lose it, for it is relative to 1.
static Value boundedDecayTile(OpBuilder &builder, Location loc, Value a,
                              Value aLog, Value dtBias, double bound,
                              bool fast) {
  return mapRows(
      builder, loc, a, {withElement(a, builder.getF32Type())},
      [&](OpBuilder &b, ValueRange in) -> SmallVector<Value> {
        Row row{b, loc, fast};
        Type type = in[0].getType();
        Value u = row.add(in[0], row.splat(dtBias, type));
        Value rate;
        if (aLog) {
          // An infinite rate would make NaN of a u of 0.
          Value most = row.constant(fast ? kLargestExponent : kLargestLog,
                                    aLog.getType());
          Value isLarge = arith::CmpFOp::create(
              b, loc, arith::CmpFPredicate::OGT, aLog, most);
          rate = Row{b, loc}.exp(
              arith::SelectOp::create(b, loc, isLarge, most, aLog));
        }
        if (!fast) {
          if (rate)
            u = row.mul(row.splat(rate, type), u);
          return {row.mul(row.constant(bound, type), row.sigmoid(u))};
        }
        // 1 / (1/bound + e^-(rate u) / bound), with a power of 2.
        Value scale = row.constant(-llvm::numbers::log2e, b.getF32Type());
        if (rate)
          scale = row.mul(scale, rate);
        Value power = row.exp2(row.mul(row.splat(scale, type), u));
        Value least = row.constant(1 / bound, type);
        return {row.div(row.constant(1, type),
                        row.add(row.mul(power, least), least))};
      })[0];
}

/// `-e^A softplus(u)` without selections, with x = e^-|u|, which is at most 1:
///   -(e^A max(u, 0) + e^(A - |u|) log1p(x) / x)
/// Exponents are those of 2. An infinite rate times 0 is 0.
static Value fastDecayTile(OpBuilder &builder, Location loc, Value a,
                           Value aLog, Value dtBias) {
  // -log1p(x) / x up to 1, to 2e-7 of what it is.
  constexpr double terms[] = {-0.999999806,  0.499974054,  -0.332754798,
                              0.244954628,   -0.177452415, 0.107681714,
                              -0.0440896324, 0.00853920872};
  return mapRows(
      builder, loc, a, {withElement(a, builder.getF32Type())},
      [&](OpBuilder &b, ValueRange in) -> SmallVector<Value> {
        Row row{b, loc, /*fast=*/true};
        Type type = in[0].getType();
        auto toExponent = [&](Value x) {
          return row.mul(x, row.constant(llvm::numbers::log2e, x.getType()));
        };
        Value u = row.add(toExponent(in[0]),
                          row.splat(toExponent(dtBias), type)); // log2e u
        Value positive =
            arith::MaximumFOp::create(b, loc, u, row.constant(0, type));
        Value away = arith::MinimumFOp::create(
            b, loc, u, arith::NegFOp::create(b, loc, u)); // -log2e |u|
        Value x = row.exp2(away), sum;
        for (double term : llvm::reverse(terms)) {
          Value next = row.constant(term, type);
          sum = sum ? row.add(row.mul(sum, x), next) : next;
        }
        Value most =
            row.constant(std::numeric_limits<float>::max(), aLog.getType());
        Value rate =
            arith::MinimumFOp::create(b, loc, Row{b, loc}.exp(aLog), most);
        rate = row.mul(rate, row.constant(-llvm::numbers::ln2, rate.getType()));
        Value power =
            row.exp2(row.add(away, row.splat(toExponent(aLog), type)));
        return {row.add(row.mul(row.splat(rate, type), positive),
                        row.mul(power, sum))};
      })[0];
}

Value gdn::logDecayTile(OpBuilder &builder, Location loc, Value a, Value aLog,
                        Value dtBias, GatesOp op, bool fast) {
  if (std::optional<APFloat> bound = op.getLowerBound())
    return boundedDecayTile(builder, loc, a, aLog, dtBias,
                            bound->convertToFloat(), fast);
  const double threshold = op.getSoftplusThreshold().convertToFloat();
  // From there on f32 holds the same number with the threshold and without.
  constexpr double leastWithoutEffect = 17;
  if (fast && threshold >= leastWithoutEffect)
    return fastDecayTile(builder, loc, a, aLog, dtBias);
  return mapRows(
      builder, loc, a, {withElement(a, builder.getF32Type())},
      [&](OpBuilder &b, ValueRange in) -> SmallVector<Value> {
        Row row{b, loc};
        Type type = in[0].getType();
        Value u = row.add(in[0], row.splat(dtBias, type));
        auto compare = [&](arith::CmpFPredicate predicate, double bound) {
          return arith::CmpFOp::create(b, loc, predicate, u,
                                       row.constant(bound, type));
        };
        auto select = [&](Value condition, Value x, Value y) -> Value {
          return arith::SelectOp::create(b, loc, condition, x, y);
        };
        // Where softplus might be 0 and the rate infinite, exp(a_log) exp(u)
        // is one exponential. Elsewhere an infinite product is a decay of 0.
        Value isSmall = compare(arith::CmpFPredicate::OLT, kExponential);
        Value sum = row.add(u, row.splat(aLog, type));
        Value power = row.exp(select(isSmall, sum, u));
        Value soft = math::Log1pOp::create(b, loc, power);
        Value large = compare(arith::CmpFPredicate::OGT, threshold);
        Value softplus = select(large, u, soft);
        Value rate = arith::NegFOp::create(b, loc, row.exp(aLog));
        Value decay = row.mul(row.splat(rate, type), softplus);
        Value together = arith::NegFOp::create(b, loc, power);
        return {select(isSmall, together, decay)};
      })[0];
}

Value gdn::betaTile(OpBuilder &builder, Location loc, Value b0, bool doubled) {
  return mapRows(builder, loc, b0, {b0.getType()},
                 [&](OpBuilder &b, ValueRange in) -> SmallVector<Value> {
                   Row row{b, loc};
                   Value beta = row.sigmoid(in[0]);
                   if (doubled)
                     beta = row.mul(beta, row.constant(2.0, beta.getType()));
                   return {beta};
                 })[0];
}

namespace {
/// The parts of gdn.gated_rms_norm.
struct GatedNorm {
  /// Ahead of what the norm does to rows.
  GatedNorm(OpBuilder &b, Location loc, ValueRange constants, GatedRMSNormOp op)
      : constants(constants), op(op) {
    if (constants.empty())
      return;
    Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
    isSilu = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE,
                                   constants[1], zero);
  }

  /// act(gate)
  Value activate(Row &row, Value gate) {
    if (!isSilu)
      return row.activate(gate, *op.getActivation());
    Value sigmoid = row.sigmoid(gate);
    return arith::SelectOp::create(row.b, row.loc, isSilu,
                                   row.mul(gate, sigmoid), sigmoid);
  }
  /// What a row with that sum of squares is multiplied by.
  Value getScale(Row &row, Value sum, int64_t width) {
    Value mean = row.div(sum, row.constant(width, sum.getType()));
    Value eps =
        isSilu ? constants[0]
               : row.constant(op.getEps().convertToFloat(), mean.getType());
    return row.rsqrt(row.add(mean, eps));
  }

  ValueRange constants;
  GatedRMSNormOp op;
  Value isSilu; // null where the op says it
};
} // namespace

Value gdn::gatedNormTile(OpBuilder &builder, Location loc, Value tile,
                         Value gate, Value weight, ValueRange constants,
                         GatedRMSNormOp op, bool fast) {
  GatedNorm norm(builder, loc, constants, op);
  int64_t width = cast<VectorType>(tile.getType()).getDimSize(1);
  return mapRows(builder, loc, {tile, gate}, {tile.getType()},
                 [&](OpBuilder &b, ValueRange in) -> SmallVector<Value> {
                   Row row{b, loc, fast};
                   Value x = in[0];
                   Value act = norm.activate(row, in[1]);
                   if (op.getNormAfterGate())
                     x = row.mul(x, act);
                   Value scale = norm.getScale(row, row.sumOfSquares(x), width);
                   Value y = row.mul(row.mul(x, row.splat(scale, x.getType())),
                                     weight);
                   return {op.getNormAfterGate() ? y : row.mul(y, act)};
                 })[0];
}

Value gdn::normOfOutputs(OpBuilder &builder, Location loc, Value tile,
                         Value gate, Value weight, ValueRange constants,
                         GatedRMSNormOp op, int64_t width) {
  using Rows = SmallVector<Value>;
  GatedNorm norm(builder, loc, constants, op);
  VectorType wide = withElement(tile, builder.getF32Type());
  auto sums = VectorType::get({wide.getDimSize(0)}, wide.getElementType());
  auto extend = [&](Row &row, Value x) -> Value {
    auto type = VectorType::get({wide.getDimSize(1)}, wide.getElementType());
    return x.getType() == type
               ? x
               : arith::ExtFOp::create(row.b, loc, type, x).getResult();
  };
  // With a half, the gate is work for the time that the other half takes.
  SmallVector<Value> summed = {tile};
  if (op.getNormAfterGate())
    summed.push_back(gate);
  auto activate = [&](Row &row, Value x) {
    return norm.activate(row, extend(row, x));
  };
  Value sum = mapRows(builder, loc, summed, {sums},
                      [&](OpBuilder &b, ValueRange in) -> Rows {
                        Row row{b, loc, /*fast=*/true};
                        Value x = extend(row, in[0]);
                        if (in.size() > 1)
                          x = row.mul(x, activate(row, in[1]));
                        return {row.sumOfSquares(x)};
                      })[0];
  Value factor = mapRows(builder, loc, gate, {wide},
                         [&](OpBuilder &b, ValueRange in) -> Rows {
                           Row row{b, loc, /*fast=*/true};
                           return {row.mul(activate(row, in[0]), weight)};
                         })[0];
  if (wide.getDimSize(1) != width)
    sum = tile::SumOfPairOp::create(builder, loc, sum);
  return mapRows(
      builder, loc, {tile, factor, sum}, {wide},
      [&](OpBuilder &b, ValueRange in) -> Rows {
        Row row{b, loc, /*fast=*/true};
        Value x = extend(row, in[0]);
        Value scale = norm.getScale(row, in[2], width);
        return {row.mul(row.mul(x, row.splat(scale, x.getType())), in[1])};
      })[0];
}
