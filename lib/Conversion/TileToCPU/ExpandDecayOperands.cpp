// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_tile.decay_operands on the CPU, with the roundings that the op fixes. A
// pass over tokens multiplies decays on its way and writes rows times what it
// has; scores are sums over rows that passes wrote. Written to be exact, not
// fast.
#include "ExpandDecayOps.h"
#include "MatrixLoops.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace gdn;

namespace {

class DecayOperands : MatrixLoops {
public:
  DecayOperands(OpBuilder &b, Location loc, const DecayOperandsBuffers &buffers,
                int64_t lanes)
      : MatrixLoops{b, loc}, at(buffers), lanes(lanes) {
    auto type = cast<MemRefType>(at.key.getType());
    tokens = type.getDimSize(0);
    channels = type.getDimSize(1);
    while (channels % this->lanes != 0)
      this->lanes /= 2;
    wide = VectorType::get({this->lanes}, b.getF32Type());
    narrow = cast<VectorType>(wide.clone(b.getF16Type()));
  }
  void emit();

private:
  static constexpr int64_t block = tile::DecayOperandsOp::block;
  /// Rows of `from` that go to `to`, multiplied.
  struct Rows {
    Value from, to;
  };

  Value mul(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
  Value splat(float value) {
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(wide, b.getF32FloatAttr(value)));
  }
  Value number(float value) {
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
  }
  void forEachColumn(function_ref<void(Value)> body) {
    forEach(index(0), index(channels), lanes, body);
  }
  Value read(Value buffer, Value row, Value column) {
    Type element = cast<MemRefType>(buffer.getType()).getElementType();
    auto type = cast<VectorType>(wide.clone(element));
    Value value = MatrixLoops::read(type, buffer, row, column);
    return element.isF32() ? value : arith::ExtFOp::create(b, loc, wide, value);
  }
  Value round(Value value) {
    Value rounded = arith::TruncFOp::create(b, loc, narrow, value);
    return arith::ExtFOp::create(b, loc, wide, rounded);
  }
  void write(Value value, Value buffer, Value row, Value column) {
    if (!cast<MemRefType>(buffer.getType()).getElementType().isF32())
      value = arith::TruncFOp::create(b, loc, narrow, value);
    MatrixLoops::write(value, buffer, row, column);
  }
  /// Passes over the `count` tokens from `first` on, forwards or backwards,
  /// with the product of decays so far: forwards with the token's own. None
  /// counts as less than `least`, if that is given.
  void pass(Value first, int64_t count, bool backwards, Value column,
            Value least, function_ref<void(Value, Value)> body);
  /// Writes rows times these products.
  void passOver(Value first, bool backwards, Value column, ArrayRef<Rows> rows);
  /// The decay of the block of 16 tokens from `first` on, of logs as they are.
  Value totalOf(Value first, Value column);
  Value roundedDecay(Value log);
  void score(Value i, Value j, Value scale, bool isInBlock);
  Value truncate(Value value);
  void passFromMiddle(Value first, bool backwards, Value column);
  void emitOwn();
  void emitBlocks();

  const DecayOperandsBuffers &at;
  int64_t lanes, tokens, channels;
  VectorType wide, narrow;
};

} // namespace

/// Of base 2; all decays below it are zero.
static constexpr float lowestLog = -32768;

/// The decay of one token, whose log to base 2 is rounded to f16.
Value DecayOperands::roundedDecay(Value log) {
  log = mul(log, splat(llvm::numbers::log2ef));
  log = round(arith::MaximumFOp::create(b, loc, log, splat(lowestLog)));
  return math::ExpOp::create(b, loc, mul(log, splat(llvm::numbers::ln2f)));
}

Value DecayOperands::totalOf(Value first, Value column) {
  OpBuilder::InsertionGuard guard(b);
  scf::ForOp loop = enter(first, add(first, block), 1, splat(0));
  Value sum =
      arith::AddFOp::create(b, loc, loop.getRegionIterArg(0),
                            read(at.logDecay, loop.getInductionVar(), column));
  scf::YieldOp::create(b, loc, sum);
  b.setInsertionPointAfter(loop);
  return math::ExpOp::create(b, loc, loop.getResult(0));
}

void DecayOperands::pass(Value first, int64_t count, bool backwards,
                         Value column, Value least,
                         function_ref<void(Value, Value)> body) {
  OpBuilder::InsertionGuard guard(b);
  scf::ForOp loop = enter(index(0), index(count), 1, splat(1));
  Value step = loop.getInductionVar(), factor = loop.getRegionIterArg(0);
  if (backwards)
    step = arith::SubIOp::create(b, loc, index(count - 1), step);
  Value token = add(first, step);
  Value decay = read(at.decay, token, column);
  if (least)
    decay = arith::MaximumFOp::create(b, loc, decay, least);
  Value next = mul(factor, decay);
  body(token, backwards ? factor : next);
  scf::YieldOp::create(b, loc, next);
}

void DecayOperands::passOver(Value first, bool backwards, Value column,
                             ArrayRef<Rows> rows) {
  pass(first, block, backwards, column, /*least=*/{},
       [&](Value token, Value decay) {
         for (const Rows &each : rows) {
           Value row = round(read(each.from, token, column));
           write(round(mul(row, round(decay))), each.to, token, column);
         }
       });
}

/// Both scores of token `i` with token `j`, whose key is multiplied by
/// `scale`, a row of a buffer, if that is given.
void DecayOperands::score(Value i, Value j, Value scale, bool isInBlock) {
  for (auto [left, scores] : {std::pair{at.leftQuery, at.queryScores},
                              std::pair{at.leftKey, at.keyScores}}) {
    OpBuilder::InsertionGuard guard(b);
    scf::ForOp loop = enter(index(0), index(channels), lanes, splat(0));
    Value column = loop.getInductionVar();
    Value key = read(at.right, j, column);
    if (scale)
      key = round(mul(key, read(at.between, scale, column)));
    Value sum = vector::FMAOp::create(b, loc, read(left, i, column), key,
                                      loop.getRegionIterArg(0));
    scf::YieldOp::create(b, loc, sum);
    b.setInsertionPointAfter(loop);
    Value total = vector::ReductionOp::create(
        b, loc, vector::CombiningKind::ADD, loop.getResult(0),
        arith::FastMathFlags::reassoc);
    if (isInBlock)
      total = mul(total, number(tile::DecayOperandsOp::scaleOfScores));
    memref::StoreOp::create(b, loc, total, scores, ValueRange{i, j});
  }
}

/// The number without the last 13 bits.
Value DecayOperands::truncate(Value value) {
  auto bits = cast<VectorType>(wide.clone(b.getI32Type()));
  Value mask = arith::ConstantOp::create(
      b, loc,
      DenseElementsAttr::get(bits, b.getI32IntegerAttr(int32_t(0xffffe000))));
  value = arith::BitcastOp::create(b, loc, bits, value);
  value = arith::AndIOp::create(b, loc, value, mask);
  return arith::BitcastOp::create(b, loc, wide, value);
}

/// Passes from the middle of the block over half of it, and writes what
/// products of its tokens take.
void DecayOperands::passFromMiddle(Value first, bool backwards, Value column) {
  constexpr int64_t half = block / 2;
  Value least = splat(std::exp2(tile::DecayOperandsOp::leastLogOfScores));
  if (!backwards)
    first = add(first, half);
  pass(first, half, backwards, column, least, [&](Value token, Value decay) {
    Value inverse = arith::DivFOp::create(b, loc, splat(1), decay);
    Value ofLeft = backwards ? inverse : decay,
          ofKey = backwards ? decay : inverse;
    for (auto [from, factor, to] : {std::tuple{at.query, ofLeft, at.leftQuery},
                                    {at.key, ofLeft, at.leftKey},
                                    {at.key, ofKey, at.right}})
      write(truncate(mul(read(from, token, column), factor)), to, token,
            column);
  });
}

/// Scores of the tokens of each block with each other.
void DecayOperands::emitOwn() {
  forEach(index(0), index(tokens), block, [&](Value first) {
    forEachColumn([&](Value column) {
      for (bool backwards : {false, true})
        passFromMiddle(first, backwards, column);
    });
    forEach(first, add(first, index(block)), 1, [&](Value i) {
      forEach(first, add(i, index(1)), 1,
              [&](Value j) { score(i, j, {}, true); });
      memref::StoreOp::create(b, loc, number(0), at.keyScores,
                              ValueRange{i, i});
    });
  });
}

/// Scores between blocks, and what the state gives and takes. `between` has a
/// row for each pair of blocks: what lies between.
void DecayOperands::emitBlocks() {
  const int64_t count = tokens / block;
  forEachColumn([&](Value column) {
    SmallVector<Value> totals;
    for (int64_t i = 0; i < count; ++i) {
      passOver(index(i * block), /*backwards=*/true, column,
               {{at.key, at.right}});
      passOver(index(i * block), /*backwards=*/false, column,
               {{at.query, at.leftQuery}, {at.key, at.leftKey}});
      totals.push_back(totalOf(index(i * block), column));
    }
    for (int64_t j = 0; j < count; ++j) {
      Value product = splat(1);
      for (int64_t i = j + 1; i < count; ++i) {
        write(round(product), at.between, index(i * count + j), column);
        product = mul(product, totals[i]);
      }
    }
    SmallVector<Value> before = {splat(1)}, behind = {splat(1)};
    for (int64_t i = 0; i < count; ++i) {
      before.push_back(mul(before.back(), totals[i]));
      behind.push_back(mul(behind.back(), totals[count - 1 - i]));
    }
    for (int64_t i = 0; i < count; ++i) {
      auto scale = [&](Value factor, ArrayRef<Rows> rows) {
        forEach(index(i * block), index((i + 1) * block), 1, [&](Value t) {
          for (const Rows &each : rows)
            write(mul(read(each.from, t, column), factor), each.to, t, column);
        });
      };
      scale(round(before[i]),
            {{at.leftQuery, at.fromQuery}, {at.leftKey, at.fromKey}});
      scale(round(behind[count - 1 - i]), {{at.right, at.toEnd}});
    }
    vector::StoreOp::create(b, loc, before.back(), at.end, column);
  });
  for (int64_t i = 1; i < count; ++i)
    for (int64_t j = 0; j < i; ++j)
      forEach(index(i * block), index((i + 1) * block), 1, [&](Value own) {
        forEach(index(j * block), index((j + 1) * block), 1, [&](Value other) {
          score(own, other, index(i * count + j), false);
        });
      });
}

void DecayOperands::emit() {
  forEach(index(0), index(tokens), 1, [&](Value t) {
    forEachColumn([&](Value column) {
      write(roundedDecay(read(at.logDecay, t, column)), at.decay, t, column);
    });
    forEach(index(0), index(tokens), 1, [&](Value j) {
      for (Value scores : {at.queryScores, at.keyScores})
        memref::StoreOp::create(b, loc, number(0), scores, ValueRange{t, j});
    });
  });
  emitOwn();
  emitBlocks();
}

void gdn::expandDecayOperands(OpBuilder &b, Location loc,
                              const DecayOperandsBuffers &buffers,
                              int64_t lanes) {
  DecayOperands(b, loc, buffers, lanes).emit();
}
