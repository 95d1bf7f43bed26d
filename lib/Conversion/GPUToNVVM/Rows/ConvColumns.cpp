// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.conv_columns: `ldmatrix` reads a tile from any row on, so a lane gets
// pairs of neighbouring tokens as they are, and an even number of tokens
// earlier. A warp has two blocks of eight channels and takes two of eight
// tokens at a time: few inputs are in registers at once. In front of the first
// block stand those of the window, of which lanes have pairs, too.
#include "Fragments/SharedMatrix.h"
#include "Fragments/TileAccess.h"
#include "Kernel/OptimizationBarrier.h"
#include "Rows/RowWork.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace gdn;

static constexpr int64_t blockSize = 8, sliceBlocks = 2, channelBlocks = 2;

namespace {
class ConvColumns {
public:
  ConvColumns(OpBuilder &b, const BlockThreads &threads,
              gdn::gpu::ConvColumnsOp conv, const IRMapping &values)
      : b(b), loc(conv.getLoc()), a{b, loc}, conv(conv), values(values),
        // What follows from where the thread stands is computed here.
        lane(optimizationBarrier(b, loc, threads.lane)),
        warp(optimizationBarrier(b, loc, threads.warp)), taps(conv.getTaps()),
        tokens(conv.getInputs().getType().getShape()[0]),
        matrix(b, loc, lane, conv.getInputs().getType(),
               values.lookup(conv.getInputs())),
        made(b, loc, lane, conv.getValues().getType(),
             values.lookup(conv.getValues())) {}

  /// Returns the next window.
  Value emit();

private:
  using Words = SmallVector<Value, 4>; // block by block, channels innermost

  Value lanePart(int64_t shift, int64_t mask) {
    Value part = lane;
    if (shift != 0)
      part = arith::ShRUIOp::create(b, loc, part, a.i32(shift));
    return arith::AndIOp::create(b, loc, part, a.i32(mask));
  }
  Value addressOf(Value row);
  Words load(Value address);
  Value fromQuad(Value value, Value number);
  Value toF32(Value word, Type element, bool isHigh);
  void loadWeights();
  Value windowPair(Value word, int64_t back);
  void putWindow(Words &words, int64_t back);
  Value emitBody(ArrayRef<Value> elements);
  void meetLanes() { NVVM::SyncWarpOp::create(b, loc, a.i32(-1)); }
  void store(int64_t first, ArrayRef<Value> words);

  OpBuilder &b;
  Location loc;
  Arithmetic a;
  gdn::gpu::ConvColumnsOp conv;
  const IRMapping &values;
  Value lane, warp;
  int64_t taps, tokens;
  SharedMatrix matrix, made;
  SmallVector<Value> weights[channelBlocks]; // f32, by tap
};
} // namespace

/// What the lane names of four blocks, two of tokens by two of channels: its
/// row `row`, at the channels of its block.
Value ConvColumns::addressOf(Value row) {
  constexpr int64_t channelBytes = 2;
  Value column = a.add(a.mul(warp, a.i32(channelBlocks * blockSize)),
                       a.mul(lanePart(3, 1), a.i32(blockSize)));
  return matrix.getAddress(row, a.mul(column, a.i32(channelBytes)));
}

ConvColumns::Words ConvColumns::load(Value address) {
  Type i32 = b.getI32Type();
  auto type =
      LLVM::LLVMStructType::getLiteral(b.getContext(), {i32, i32, i32, i32});
  Value all = NVVM::LdMatrixOp::create(
      b, loc, type, address, /*num=*/4, NVVM::MMALayout::col,
      NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8),
      NVVM::LdStMatrixEltType::B16);
  Words words;
  for (int64_t i = 0; i < sliceBlocks * channelBlocks; ++i)
    words.push_back(LLVM::ExtractValueOp::create(b, loc, all, i));
  return words;
}

/// `value` of number `number`, modulo four, of the lanes that have the channel.
Value ConvColumns::fromQuad(Value value, Value number) {
  Value from = arith::OrIOp::create(
      b, loc, arith::AndIOp::create(b, loc, lane, a.i32(~int64_t(3))),
      arith::AndIOp::create(b, loc, number, a.i32(3)));
  return NVVM::ShflOp::create(b, loc, value.getType(), a.i32(-1), value, from,
                              a.i32(31), NVVM::ShflKind::idx, UnitAttr());
}

/// Half of a word, which two elements of 16 bits are.
Value ConvColumns::toF32(Value word, Type element, bool isHigh) {
  if (element.isBF16()) {
    Value bits =
        isHigh ? arith::AndIOp::create(b, loc, word, a.i32(-65536)).getResult()
               : arith::ShLIOp::create(b, loc, word, a.i32(16)).getResult();
    return arith::BitcastOp::create(b, loc, b.getF32Type(), bits);
  }
  Value pair = fromWords(b, loc, word, element);
  return arith::ExtFOp::create(
      b, loc, b.getF32Type(),
      vector::ExtractOp::create(b, loc, pair, int64_t(isHigh)).getResult());
}

/// A lane has two taps of its channels; it needs all of them.
void ConvColumns::loadWeights() {
  Value local = values.lookup(conv.getWeight());
  Type element = conv.getWeight().getType().getElementType();
  SmallVector<Value> words;
  if (!element.isF32())
    words = getWords(b, loc, local);
  for (int64_t i = 0; i < channelBlocks; ++i) {
    Value word;
    for (int64_t tap = 0; tap < taps; ++tap) {
      Value lane = a.i32(tap / 2);
      if (element.isF32()) {
        Value own = vector::ExtractOp::create(b, loc, local, 2 * i + tap % 2);
        weights[i].push_back(fromQuad(own, lane));
        continue;
      }
      if (tap % 2 == 0)
        word = fromQuad(words[i], lane);
      weights[i].push_back(toF32(word, element, tap % 2 != 0));
    }
  }
}

/// The pair of inputs `back` tokens ahead of the lane's in the first block, of
/// the window, whose pairs are `word`. The window ends at token 0.
Value ConvColumns::windowPair(Value word, int64_t back) {
  Value pair = lanePart(0, 3);
  const int64_t first = taps - 1 - back; // column of lane 0's first token
  if (first % 2 == 0)
    return fromQuad(word, a.add(pair, a.i32(first / 2)));
  Value lane = a.add(pair, a.i32((first - 1) / 2));
  Value low = fromQuad(word, lane),
        high = fromQuad(word, a.add(lane, a.i32(1)));
  return arith::OrIOp::create(b, loc,
                              arith::ShRUIOp::create(b, loc, low, a.i32(16)),
                              arith::ShLIOp::create(b, loc, high, a.i32(16)));
}

/// Puts inputs in front of the tile into the first block, `back` tokens ahead.
void ConvColumns::putWindow(Words &words, int64_t back) {
  if (back == 0)
    return;
  Value isAhead = a.isLess(lanePart(0, 3), a.i32(back / 2));
  SmallVector<Value> window = getWords(b, loc, values.lookup(conv.getWindow()));
  for (int64_t i = 0; i < channelBlocks; ++i)
    words[i] = arith::SelectOp::create(b, loc, isAhead,
                                       windowPair(window[i], back), words[i]);
}

/// The body on some elements of a row, as words.
Value ConvColumns::emitBody(ArrayRef<Value> elements) {
  const int64_t count = elements.size();
  auto local = [&](Type type) {
    return VectorType::get({count}, cast<VectorType>(type).getElementType());
  };
  Block &body = conv.getBody().front();
  IRMapping mapping;
  mapping.map(body.getArgument(0),
              Value(vector::FromElementsOp::create(
                  b, loc, local(body.getArgument(0).getType()), elements)));
  auto lookup = [&](Value value) -> Value {
    DenseElementsAttr constant;
    if (!mapping.contains(value) && matchPattern(value, m_Constant(&constant)))
      mapping.map(
          value,
          Value(arith::ConstantOp::create(
              b, loc,
              DenseElementsAttr::get(local(value.getType()),
                                     constant.getSplatValue<Attribute>()))));
    return mapping.lookup(value);
  };
  for (Operation &op : body.without_terminator()) {
    if (op.hasTrait<OpTrait::ConstantLike>())
      continue;
    llvm::for_each(op.getOperands(), lookup);
    Operation *copy = b.clone(op, mapping);
    for (OpResult result : copy->getResults())
      result.setType(local(result.getType()));
  }
  return lookup(body.getTerminator()->getOperand(0));
}

/// Puts what is made of a slice of tokens from `first` on in its place; words
/// as those of `load`.
void ConvColumns::store(int64_t first, ArrayRef<Value> words) {
  SharedMatrix::Corner corner;
  corner.row = first / blockSize;
  corner.columnValue = a.mul(warp, a.i32(channelBlocks));
  auto function = conv->getParentOfType<func::FuncOp>();
  if (gdn::gpu::KernelFields(function).getWarpgroups())
    return made.store4(corner, /*step=*/{0, 1}, /*other=*/{1, 0}, words,
                       /*transpose=*/true);
  for (auto [n, word] : llvm::enumerate(words)) {
    SharedMatrix::Corner own = corner;
    own.row += n / channelBlocks;
    own.column = n % channelBlocks;
    made.store(own, word, /*transpose=*/true);
  }
}

Value ConvColumns::emit() {
  Type element = conv.getInputs().getType().getElementType();
  loadWeights();
  const int64_t sliceTokens = sliceBlocks * blockSize;
  Value ownRow = a.add(lanePart(0, blockSize - 1),
                       a.mul(lanePart(4, 1), a.i32(blockSize)));
  // The next window: the last inputs, from a row within the tile on.
  Value row = arith::MinSIOp::create(
      b, loc, a.add(lanePart(0, blockSize - 1), a.i32(tokens - (taps - 1))),
      a.i32(tokens - 1));
  Words last = load(addressOf(row));
  // By how many tokens pairs are earlier: all even numbers that taps reach.
  SmallVector<int64_t> backs;
  SmallVector<Value> addresses;
  for (int64_t back = 0; back <= 2 * (taps / 2); back += 2) {
    backs.push_back(back);
    addresses.push_back(addressOf(a.add(ownRow, a.i32(-back))));
  }
  SmallVector<SmallVector<Words>> slices;
  for (int64_t first = 0; first < tokens; first += sliceTokens) {
    SmallVector<Words> &pairs = slices.emplace_back();
    for (auto [n, back] : llvm::enumerate(backs)) {
      Value from = first == 0 ? addresses[n]
                              : matrix.getBelow(addresses[n], a.i32(first));
      // Rows in front of the tile are the window's.
      if (first == 0 && back != 0)
        from = addressOf(arith::MaxSIOp::create(
            b, loc, a.add(ownRow, a.i32(-back)), a.i32(0)));
      pairs.push_back(load(from));
      if (first == 0)
        putWindow(pairs.back(), back);
    }
  }
  meetLanes(); // others have loaded, too
  for (auto [slice, pairs] : llvm::enumerate(slices)) {
    SmallVector<Value> words(sliceBlocks * channelBlocks);
    for (int64_t i = 0; i < channelBlocks; ++i) {
      SmallVector<Value> sums;
      for (int64_t block = 0; block < sliceBlocks; ++block)
        for (int64_t second : {0, 1}) {
          Value sum;
          for (int64_t tap = 0; tap < taps; ++tap) {
            // Of the pairs that have the input, in the same half or the other.
            const int64_t back = taps - 1 - tap,
                          from = back + (back % 2) * (second ? -1 : 1);
            Value input = toF32(pairs[from / 2][block * channelBlocks + i],
                                element, (second + back) % 2 != 0);
            sum = sum ? math::FmaOp::create(b, loc, weights[i][tap], input, sum)
                            .getResult()
                      : arith::MulFOp::create(b, loc, weights[i][tap], input)
                            .getResult();
          }
          sums.push_back(sum);
        }
      for (auto [block, word] :
           llvm::enumerate(getWords(b, loc, emitBody(sums))))
        words[block * channelBlocks + i] = word;
    }
    store(slice * sliceTokens, words);
  }
  meetLanes();
  return fromWords(b, loc, ValueRange(last).take_front(channelBlocks), element);
}

Value gdn::emitConvColumns(OpBuilder &b, const BlockThreads &threads,
                           gdn::gpu::ConvColumnsOp conv,
                           const IRMapping &values) {
  return ConvColumns(b, threads, conv, values).emit();
}
