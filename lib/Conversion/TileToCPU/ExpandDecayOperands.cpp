// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_tile.decay_operands on the CPU, with the roundings that the op fixes. A
// pass over tokens multiplies decays on its way and writes rows times what it
// has; scores are sums over rows that passes wrote. Written to be exact, not
// fast.
#include "ExpandDecayOps.h"

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace gdn;

namespace {

class DecayOperands {
public:
  DecayOperands(OpBuilder &b, Location loc, const DecayOperandsBuffers &buffers,
                int64_t lanes)
      : b(b), loc(loc), at(buffers), lanes(lanes) {
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
  /// What a pass writes: rows of `from` times its decays to `to`.
  struct Rows {
    Value from, to;
  };

  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
  Value ones() {
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(wide, b.getF32FloatAttr(1)));
  }
  /// Runs `body` with the variable of a loop.
  void forEach(Value from, Value to, int64_t step,
               function_ref<void(Value)> body) {
    auto loop = scf::ForOp::create(b, loc, from, to, index(step));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    body(loop.getInductionVar());
  }
  Value read(Value buffer, Value row, Value column) {
    Type element = cast<MemRefType>(buffer.getType()).getElementType();
    auto type = cast<VectorType>(wide.clone(element));
    Value value =
        vector::LoadOp::create(b, loc, type, buffer, ValueRange{row, column});
    return element.isF32() ? value : arith::ExtFOp::create(b, loc, wide, value);
  }
  Value round(Value value) {
    Value rounded = arith::TruncFOp::create(b, loc, narrow, value);
    return arith::ExtFOp::create(b, loc, wide, rounded);
  }
  void write(Value value, Value buffer, Value row, Value column) {
    if (!cast<MemRefType>(buffer.getType()).getElementType().isF32())
      value = arith::TruncFOp::create(b, loc, narrow, value);
    vector::StoreOp::create(b, loc, value, buffer, ValueRange{row, column});
  }
  /// Passes over the `count` tokens from `first` on, forwards or backwards, and
  /// writes rows times the decays so far: forwards with the token's own.
  void passOver(Value first, int64_t count, bool backwards, Value column,
                ArrayRef<Rows> rows);
  /// The decay of the block of 16 tokens from `first` on, of logs as they are.
  Value totalOf(Value first, Value column);
  Value roundedDecay(Value log);
  void score(Value i, Value j, Value scale, bool isInBlock);
  Value truncate(Value value);
  void passFromMiddle(Value first, bool backwards, Value column);
  void emitOwn();
  void emitBlocks();

  OpBuilder &b;
  Location loc;
  const DecayOperandsBuffers &at;
  int64_t lanes, tokens, channels;
  VectorType wide, narrow;
};

} // namespace

/// Of base 2; all decays below it are zero.
static constexpr float lowestLog = -32768;

/// The decay of one token, whose log to base 2 is rounded to f16.
Value DecayOperands::roundedDecay(Value log) {
  auto splat = [&](float value) -> Value {
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(wide, b.getF32FloatAttr(value)));
  };
  log = mul(log, splat(llvm::numbers::log2ef));
  log = round(arith::MaximumFOp::create(b, loc, log, splat(lowestLog)));
  return math::ExpOp::create(b, loc, mul(log, splat(llvm::numbers::ln2f)));
}

Value DecayOperands::totalOf(Value first, Value column) {
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(wide));
  auto loop =
      scf::ForOp::create(b, loc, index(0), index(block), index(1), zero);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value token = add(first, loop.getInductionVar());
    Value sum = arith::AddFOp::create(b, loc, loop.getRegionIterArg(0),
                                      read(at.logDecay, token, column));
    scf::YieldOp::create(b, loc, sum);
  }
  return math::ExpOp::create(b, loc, loop.getResult(0));
}

void DecayOperands::passOver(Value first, int64_t count, bool backwards,
                             Value column, ArrayRef<Rows> rows) {
  auto loop =
      scf::ForOp::create(b, loc, index(0), index(count), index(1), ones());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value step = loop.getInductionVar(), factor = loop.getRegionIterArg(0);
  if (backwards)
    step = arith::SubIOp::create(b, loc, index(count - 1), step);
  Value token = add(first, step);
  Value next = mul(factor, read(at.decay, token, column));
  for (const Rows &each : rows) {
    Value decay = round(backwards ? factor : next);
    Value row = mul(round(read(each.from, token, column)), decay);
    write(round(row), each.to, token, column);
  }
  scf::YieldOp::create(b, loc, next);
}

/// Both scores of token `i` with token `j`, whose key is multiplied by
/// `scale`, a row of a buffer, if that is given.
void DecayOperands::score(Value i, Value j, Value scale, bool isInBlock) {
  for (auto [left, scores] : {std::pair{at.leftQuery, at.queryScores},
                              std::pair{at.leftKey, at.keyScores}}) {
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(wide));
    auto loop = scf::ForOp::create(b, loc, index(0), index(channels),
                                   index(lanes), zero);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      Value column = loop.getInductionVar();
      Value key = read(at.right, j, column);
      if (scale)
        key = round(mul(key, read(at.between, scale, column)));
      Value sum = vector::FMAOp::create(b, loc, read(left, i, column), key,
                                        loop.getRegionIterArg(0));
      scf::YieldOp::create(b, loc, sum);
    }
    Value total = vector::ReductionOp::create(
        b, loc, vector::CombiningKind::ADD, loop.getResult(0),
        arith::FastMathFlags::reassoc);
    if (isInBlock)
      total = mul(
          total,
          arith::ConstantOp::create(
              b, loc, b.getF32FloatAttr(tile::DecayOperandsOp::scaleOfScores)));
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
  Value least = arith::ConstantOp::create(
      b, loc,
      DenseElementsAttr::get(
          wide, b.getF32FloatAttr(
                    std::exp2(tile::DecayOperandsOp::leastLogOfScores))));
  auto loop =
      scf::ForOp::create(b, loc, index(0), index(half), index(1), ones());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value step = loop.getInductionVar(), factor = loop.getRegionIterArg(0);
  step = backwards ? Value(arith::SubIOp::create(b, loc, index(half - 1), step))
                   : add(step, index(half));
  Value token = add(first, step);
  Value decay =
      arith::MaximumFOp::create(b, loc, read(at.decay, token, column), least);
  Value next = mul(factor, decay);
  Value scale = backwards ? factor : next;
  Value inverse = arith::DivFOp::create(b, loc, ones(), scale);
  Value ofKey = backwards ? scale : inverse;
  Value ofLeft = backwards ? inverse : scale;
  Value query = read(at.query, token, column),
        key = read(at.key, token, column);
  write(truncate(mul(query, ofLeft)), at.leftQuery, token, column);
  write(truncate(mul(key, ofLeft)), at.leftKey, token, column);
  write(truncate(mul(key, ofKey)), at.right, token, column);
  scf::YieldOp::create(b, loc, next);
}

/// Scores of the tokens of each block with each other.
void DecayOperands::emitOwn() {
  forEach(index(0), index(tokens), block, [&](Value first) {
    forEach(index(0), index(channels), lanes, [&](Value column) {
      for (bool backwards : {false, true})
        passFromMiddle(first, backwards, column);
    });
    forEach(first, add(first, index(block)), 1, [&](Value i) {
      forEach(first, add(i, index(1)), 1,
              [&](Value j) { score(i, j, {}, true); });
      Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
      memref::StoreOp::create(b, loc, zero, at.keyScores, ValueRange{i, i});
    });
  });
}

/// Scores between blocks, and what the state gives and takes. `between` has a
/// row for each pair of blocks: what lies between.
void DecayOperands::emitBlocks() {
  const int64_t count = tokens / block;
  forEach(index(0), index(channels), lanes, [&](Value column) {
    SmallVector<Value> totals;
    for (int64_t i = 0; i < count; ++i) {
      passOver(index(i * block), block, /*backwards=*/true, column,
               {{at.key, at.right}});
      passOver(index(i * block), block, /*backwards=*/false, column,
               {{at.query, at.leftQuery}, {at.key, at.leftKey}});
      totals.push_back(totalOf(index(i * block), column));
    }
    for (int64_t j = 0; j < count; ++j) {
      Value product = ones();
      for (int64_t i = j + 1; i < count; ++i) {
        write(round(product), at.between, index(i * count + j), column);
        product = mul(product, totals[i]);
      }
    }
    SmallVector<Value> before = {ones()}, behind = {ones()};
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
    forEach(index(0), index(channels), lanes, [&](Value column) {
      write(roundedDecay(read(at.logDecay, t, column)), at.decay, t, column);
    });
    Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
    forEach(index(0), index(tokens), 1, [&](Value j) {
      for (Value scores : {at.queryScores, at.keyScores})
        memref::StoreOp::create(b, loc, zero, scores, ValueRange{t, j});
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
