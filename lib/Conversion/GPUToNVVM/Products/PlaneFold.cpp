// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mma.m16n8k16 of f16 with the state in f32 as its start. A product is four
// numbers of a thread, all of use, of two rows: in a crossed layout keys are on
// the left, so that eight rows are the columns of a product and sixteen columns
// its rows; in the other one sixteen rows of the state are the rows of a
// product, with keys on the right. Four neighbouring tokens are a lane's
// words of both sides.
//
// A row is summed up in a unit of its own: kept * scale becomes a power of two
// by it, so that bytes, as the low bits of a number whose last bit counts one,
// become the start of a sum by one multiplication and addition that rounds
// nothing.
#include "Products/PlaneFold.h"

#include "Products/KeyColumns.h"
#include "Products/PieceWords.h"
#include "Products/ProductFamily.h"
#include "Products/ThreadMaths.h"
#include "Rows/RowWork.h"

#include <limits>

using namespace mlir;
using namespace gdn;

namespace {
/// Bits of the exponent of an f32, of its fraction, and of one.
constexpr int64_t exponentBits = 0x7F800000, fractionBits = 0x007FFFFF,
                  bitsOfOne = 0x3F800000;

/// gdn_gpu.fold_planes.
class PlaneFold : KeyColumns {
public:
  PlaneFold(OpBuilder &b, const BlockThreads &threads,
            gdn::gpu::FoldPlanesOp op, const IRMapping &values)
      : b(b), loc(op.getLoc()), a(b, loc), threads(threads), op(op),
        values(values), type(op.getUpper().getType()), layout(type.getRows()),
        isCrossed(layout.getCrossed()), hasLow(op.getLow()),
        pieces(layout.getPieces(type.getDimSize(1))),
        numTokens(op.getWeights().getType().getShape().back()),
        steps(llvm::divideCeil(numTokens, stepTokens)) {
    group = a.divide(threads.lane, 4);
    inGroup = a.remainder(threads.lane, 4);
    place = a.add(a.divide(group, 2), a.mul(a.remainder(group, 2), a.i32(4)));
  }
  SmallVector<Value> emit();

private:
  /// Planes are bytes plus 128 of numbers up to 127 or 127 * 256.
  double getZero() const { return hasLow ? 0x8080 : 0x80; }
  double getLargest() const { return hasLow ? 127 * 256 : 127; }

  /// What a row is summed up in: a number times `factor`.
  struct Unit {
    Value scale, start; // of a plane's number, and what it begins with
    Value factor, inverse;
  };
  /// A product's words of the side that are not keys, in parts.
  struct Deltas {
    SmallVector<SmallVector<Value>, 2> parts;
  };
  using Sums = SmallVector<Value, 4>;

  Value get(Value value) { return values.lookupOrDefault(value); }
  /// Of the bits of a power of two.
  Value inverseOfPower(Value bits) {
    return a.asFloat(a.minus(a.i32(2 * bitsOfOne), bits));
  }
  Unit getUnit(Value scale);
  Value getFactorOfColumn(ArrayRef<Unit> units);
  SmallVector<Value> widen(int64_t row, const Unit &unit);
  void loadDeltas(Value row, Value factor, int64_t step, Deltas &deltas);
  SmallVector<Deltas> loadDeltas(int64_t first, ArrayRef<Unit> units);
  SmallVector<Value> loadKeys(int64_t step, int64_t block, int64_t pair);
  void multiply(ArrayRef<Deltas> deltas, SmallVector<Value> (&sums)[2]);
  void round(int64_t row, ArrayRef<Value> sums, const Unit &unit);
  void foldTwo(int64_t first);

  OpBuilder &b;
  Location loc;
  ThreadMaths a;
  const BlockThreads &threads;
  gdn::gpu::FoldPlanesOp op;
  const IRMapping &values;
  gdn::gpu::FragmentType type;
  gdn::gpu::RowsAttr layout;
  bool isCrossed, hasLow;
  int64_t pieces, numTokens, steps;
  Value group, inGroup; // of four lanes, and the lane in it
  /// Of what a lane has on the right, as columns of a product in the order in
  /// which lanes have two of its sums: 0 to 3 are the first ones of lanes.
  Value place;
  Value kept, magic;
  SmallVector<Value> upper, low, newUpper, newLow, newScales; // words
};
} // namespace

/// A scale that is NaN makes all numbers of its row NaN.
PlaneFold::Unit PlaneFold::getUnit(Value scale) {
  Unit unit;
  Value all = a.times(scale, kept), bits = a.asBits(all);
  Value power = a.bitAnd(bits, exponentBits);
  Value fraction = a.asFloat(arith::OrIOp::create(
      b, loc, a.bitAnd(bits, fractionBits), a.i32(bitsOfOne)));
  // No unit of a state is more than one: beside that deltas lose nothing.
  Value shared = arith::MinNumFOp::create(b, loc, get(op.getUnit()),
                                          inverseOfPower(power));
  unit.scale = a.times(a.asFloat(power), shared);
  unit.start = a.times(unit.scale, a.f32(-float(0x1p23 + getZero())));
  unit.factor = a.times(shared, a.inverse(fraction));
  unit.inverse = a.times(fraction, inverseOfPower(a.asBits(shared)));
  return unit;
}

/// The numbers of a row, four of each word.
SmallVector<Value> PlaneFold::widen(int64_t row, const Unit &unit) {
  const int64_t words = pieces * vectorColumns / 4;
  SmallVector<Value> numbers;
  auto add = [&](Value bits) {
    numbers.push_back(a.fma(a.asFloat(bits), unit.scale, unit.start));
  };
  for (int64_t word = row * words; word < (row + 1) * words; ++word) {
    if (!hasLow) {
      for (uint32_t bytes : {0x7440, 0x7441, 0x7442, 0x7443})
        add(a.permute(upper[word], magic, bytes));
      continue;
    }
    for (uint32_t pair : {0x5140, 0x7362}) {
      Value two = a.permute(low[word], upper[word], pair);
      for (uint32_t bytes : {0x7610, 0x7632})
        add(a.permute(two, magic, bytes));
    }
  }
  return numbers;
}

/// Adds the words of a row's weighted deltas of a step.
void PlaneFold::loadDeltas(Value row, Value factor, int64_t step,
                           Deltas &deltas) {
  gdn::gpu::SharedType tile = op.getDeltas().getType();
  const int64_t tokenRows = tile.getShape()[0] / numTokens;
  const int64_t tileRow = 2 * tile.getShape()[1];
  Value first =
      a.add(a.mul(inGroup, a.i32(laneTokens)), a.i32(step * stepTokens));
  // Behind the last token those of the first one serve as well, times zero.
  Value isToken;
  if ((step + 1) * stepTokens > numTokens) {
    isToken = a.isLess(first, a.i32(numTokens));
    first = a.select(isToken, first, a.i32(0));
  }
  SmallVector<Value> weights = a.loadAll(
      b.getF32Type(), laneTokens,
      a.advance(get(op.getWeights()), a.mul(first, a.i32(4))), laneBytes);
  Value inTile = a.add(a.mul(row, a.i32(2)),
                       a.mul(a.toI32(get(op.getAt())), a.i32(tileRow)));
  Value pointer =
      a.advance(get(op.getDeltas()),
                a.add(inTile, a.mul(first, a.i32(tokenRows * tileRow))));
  auto two = VectorType::get({2}, b.getF32Type());
  auto half = two.clone(b.getF16Type());
  for (int64_t i = 0; i < laneTokens; i += 2) {
    SmallVector<Value, 2> pair;
    for (int64_t token = i; token < i + 2; ++token) {
      Value delta = arith::ExtFOp::create(
          b, loc, b.getF32Type(),
          a.load(b.getF16Type(),
                 a.advance(pointer, token * tokenRows * tileRow), 2));
      Value product = a.times(a.times(weights[token], delta), factor);
      pair.push_back(isToken ? a.select(isToken, product, a.f32(0)) : product);
    }
    Value rest = vector::FromElementsOp::create(b, loc, two, pair);
    for (auto [part, words] : llvm::enumerate(deltas.parts)) {
      Value rounded = arith::TruncFOp::create(b, loc, half, rest);
      words.push_back(LLVM::BitcastOp::create(b, loc, b.getI32Type(), rounded));
      if (part + 1 < deltas.parts.size())
        rest = arith::SubFOp::create(
            b, loc, rest, arith::ExtFOp::create(b, loc, two, rounded));
    }
  }
}

/// The factor of the row that is a lane's column on the right: of a group's
/// lanes those of even groups have that of the first four rows.
Value PlaneFold::getFactorOfColumn(ArrayRef<Unit> units) {
  Value isOdd = a.isEqual(a.remainder(group, 2), a.i32(1));
  Value given = a.select(isOdd, units[1].factor, units[0].factor);
  return a.shuffle(NVVM::ShflKind::idx, given, place);
}

/// Of two rows of the lane from `first` on, in the order of a product's words.
SmallVector<PlaneFold::Deltas> PlaneFold::loadDeltas(int64_t first,
                                                     ArrayRef<Unit> units) {
  SmallVector<Deltas> all;
  const int64_t numRows = type.getDimSize(0);
  Value row, factor;
  if (isCrossed) {
    factor = getFactorOfColumn(units);
    row = a.add(place, a.i32(first * layout.getRowStep()));
    if (layout.getWarps() > 1)
      row = a.add(row, a.mul(threads.warp, a.i32(layout.getWarpStep(numRows))));
  }
  for (int64_t step = 0; step < steps; ++step) {
    Deltas deltas;
    deltas.parts.resize(op.getRounded() ? 1 : 2);
    if (isCrossed) {
      loadDeltas(row, factor, step, deltas);
    } else {
      for (int64_t of = 0; of < 2; ++of)
        loadDeltas(threads.row(a, layout, numRows, first + of),
                   units[of].factor, step, deltas);
      for (SmallVector<Value> &words : deltas.parts)
        std::swap(words[1], words[2]);
    }
    all.push_back(deltas);
  }
  return all;
}

/// Four words of a lane: of two neighbouring columns for each of the groups.
SmallVector<Value> PlaneFold::loadKeys(int64_t step, int64_t block,
                                       int64_t pair) {
  const int64_t row =
      (step * type.getDimSize(1) + block * blockColumns) / vectorColumns + pair;
  Value piece = isCrossed ? group : place;
  Value mine =
      a.add(a.mul(piece, a.i32(pairBytes)), a.mul(inGroup, a.i32(laneBytes)));
  Value pointer = a.advance(get(op.getKeys()), mine);
  return a.loadAll(b.getI32Type(), 4, a.advance(pointer, row * rowBytes),
                   laneBytes);
}

void PlaneFold::multiply(ArrayRef<Deltas> deltas,
                         SmallVector<Value> (&sums)[2]) {
  auto add = [&](ArrayRef<Value> left, ArrayRef<Value> right,
                 ArrayRef<Value *> places) {
    Sums start;
    for (Value *place : places)
      start.push_back(*place);
    Sums made = emitMma(b, loc, b.getF16Type(), left, right, start);
    for (auto [place, sum] : llvm::zip_equal(places, made))
      *place = sum;
  };
  const int64_t blocks = type.getDimSize(1) / blockColumns;
  for (int64_t step = 0; step < steps; ++step)
    for (int64_t block = 0; block < blocks; ++block)
      for (int64_t pair = 0; pair < pairs; ++pair) {
        SmallVector<Value> keys = loadKeys(step, block, pair);
        for (const SmallVector<Value> &part : deltas[step].parts) {
          if (isCrossed) {
            int64_t at = block * vectorColumns + 2 * pair;
            add(keys, part,
                {&sums[0][at], &sums[1][at], &sums[0][at + 1],
                 &sums[1][at + 1]});
            continue;
          }
          for (int64_t of = 0; of < 2; ++of) {
            int64_t at = 2 * block * vectorColumns + 2 * pair + of;
            add(part, ArrayRef(keys).slice(2 * of, 2),
                {&sums[0][at], &sums[0][at + vectorColumns], &sums[1][at],
                 &sums[1][at + vectorColumns]});
          }
        }
      }
}

/// A row with no element of more than 1e-30 becomes zero; one that is not
/// finite has a scale of NaN.
void PlaneFold::round(int64_t row, ArrayRef<Value> sums, const Unit &unit) {
  Value chains[2];
  for (auto [i, sum] : llvm::enumerate(sums)) {
    Value &chain = chains[i % 2];
    chain = chain ? a.larger(chain, a.absolute(sum)) : a.absolute(sum);
  }
  Value most =
      emitLargestOfLanes(b, loc, layout, a.larger(chains[0], chains[1]));
  Value inState = a.times(most, unit.inverse);
  auto compare = [&](arith::CmpFPredicate how, float value) -> Value {
    return arith::CmpFOp::create(b, loc, how, inState, a.f32(value));
  };
  Value isFinite = compare(arith::CmpFPredicate::OLT,
                           std::numeric_limits<float>::infinity());
  Value isSome = compare(arith::CmpFPredicate::OGE, 1e-30f);
  Value none = a.select(isFinite, a.f32(0),
                        a.f32(std::numeric_limits<float>::quiet_NaN()));
  isSome = a.both(isSome, isFinite);
  newScales.push_back(
      a.select(isSome, a.times(inState, a.f32(1.0f / 127)), none));
  Value factor =
      a.select(isSome, a.times(a.f32(getLargest()), a.inverse(most)), a.f32(0));
  Value shift = a.f32(float(1.5 * 0x1p23 + getZero()));
  for (size_t i = 0; i < sums.size(); i += 4) {
    SmallVector<Value, 4> bits;
    for (Value sum : sums.slice(i, 4))
      bits.push_back(a.asBits(a.fma(sum, factor, shift)));
    Value first = a.permute(bits[0], bits[1], 0x5140);
    Value second = a.permute(bits[2], bits[3], 0x5140);
    Value lowest = a.permute(first, second, 0x5410);
    if (!hasLow) {
      newUpper.push_back(lowest);
      continue;
    }
    newLow.push_back(lowest);
    newUpper.push_back(a.permute(first, second, 0x7632));
  }
}

/// Two rows of the lane, of which products take eight or sixteen.
void PlaneFold::foldTwo(int64_t first) {
  SmallVector<Unit, 2> units;
  SmallVector<Value> sums[2];
  for (int64_t of = 0; of < 2; ++of)
    units.push_back(getUnit(
        vector::ExtractOp::create(b, loc, get(op.getScales()), first + of)));
  SmallVector<Deltas> deltas = loadDeltas(first, units);
  for (int64_t of = 0; of < 2; ++of)
    sums[of] = widen(first + of, units[of]);
  multiply(deltas, sums);
  for (int64_t of = 0; of < 2; ++of)
    round(first + of, sums[of], units[of]);
}

SmallVector<Value> PlaneFold::emit() {
  kept = get(op.getKept());
  if (hasLow)
    kept = a.times(kept, a.f32(1.0f / 256));
  magic = a.i32(0x4B000000);
  upper = toWords(a, get(op.getUpper()));
  if (hasLow)
    low = toWords(a, get(op.getLow()));
  const int64_t rows = layout.getLocalRows(type.getDimSize(0));
  for (int64_t row = 0; row < rows; row += 2)
    foldTwo(row);
  auto toBytes = [&](ArrayRef<Value> words) -> Value {
    auto all = VectorType::get({int64_t(words.size())}, b.getI32Type());
    return vector::BitCastOp::create(
        b, loc, get(op.getUpper()).getType(),
        vector::FromElementsOp::create(b, loc, all, words));
  };
  SmallVector<Value> made = {
      toBytes(newUpper), vector::FromElementsOp::create(
                             b, loc, get(op.getScales()).getType(), newScales)};
  if (hasLow)
    made.push_back(toBytes(newLow));
  return made;
}

SmallVector<Value> gdn::emitFoldPlanes(OpBuilder &b,
                                       const BlockThreads &threads,
                                       gdn::gpu::FoldPlanesOp op,
                                       const IRMapping &values) {
  return PlaneFold(b, threads, op, values).emit();
}
