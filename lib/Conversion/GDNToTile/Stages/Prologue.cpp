// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The stage of the variant "staged" before the others: queries, keys and values
// that are not in memory as products take them, and gates of channels for
// blocks that prepare their chunks. They are computed token by token; a block
// has a piece of a chunk for one head of one of them. Where lengths of
// sequences choose who convolves values, these have a stage of their own. The
// window of the convolution before it is the pool's at the beginning of a
// sequence, and else the sequence's own input. Where a policy says so, a block
// has the inputs of four warps' pieces, a chunk or two, with those ahead of
// them, as one tile, from which its pieces take rows.
#include "Chunks/ChunkForm.h"
#include "Program/TokenOps.h"
#include "Stages/TokenGroupStage.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace gdn;

using P = arith::CmpIPredicate;

namespace {

class PrologueStage final : public TokenGroupStage {
public:
  explicit PrologueStage(const StageInputs &inputs);

protected:
  std::string unitsForm() override;
  void emitPiece(Value chunkSlot, Value isFirst) override;

private:
  /// The inputs of the block's slot, with those ahead of it but in a
  /// sequence's first slot: there are `lead` of these.
  struct SlotInputs {
    Value tile, lead;
  };
  SlotInputs loadSlotInputs(Value operand, const Carry *carry);
  Value takeRows(const SlotInputs &slot, Value at);
  Value loadWindow(const Carry &carry, Value at, Value isFirst,
                   const SlotInputs &slot);
  void emitInput(Value input, const Operand &regions, Value chunkSlot,
                 Value regionHead, Value isFirst);
  SmallVector<Value> operandsOf(Value input);
  bool liesInRows(Value operand);
  void emitNorms(Value input, Value norms, Value chunkSlot, Value regionHead);
  void emitGates(Value chunkSlot, Value regionHead, Value isFirst);
  void clearSignals(Value chunkSlot, Value regionHead);

  bool hasTiles; // whether blocks have inputs of a slot as one tile
};

} // namespace

/// Whether `carry` is no window, or one of inputs of 16 bits, of which 16 bytes
/// are a part of a row.
static bool isCopiedInPieces(const Carry &carry) {
  auto conv = dyn_cast<Conv1dOp>(carry.op);
  if (!conv)
    return true;
  constexpr int64_t pieceBits = 128;
  auto type = cast<RankedTensorType>(conv.getInputs()[carry.section].getType());
  const int64_t bits = type.getElementTypeBitWidth();
  return bits == 16 && type.getShape().back() * bits % pieceBits == 0;
}

/// Warps that take their rows of a tile.
static constexpr int64_t tileWarps = 4;

/// Blocks that go through several pieces would have as many tiles. With a decay
/// per channel those that prepare their own chunks have short ones: a tile has
/// two.
PrologueStage::PrologueStage(const StageInputs &inputs)
    : TokenGroupStage(inputs) {
  const int64_t tokens = tileWarps * algorithm.chunkPieces;
  const bool isOneByOne = algorithm.fusedChunks == 1;
  hasTiles = algorithm.chunkPieces != 0 && algorithm.shortPieces == 0 &&
             !isOfHalves() &&
             (isOneByOne || !RuleOpInterface(parts.rule).isPerChannel()) &&
             algorithm.chunk % algorithm.chunkPieces == 0 &&
             llvm::all_of(parts.carries, isCopiedInPieces);
  if (!hasTiles)
    return;
  pieceTokens = algorithm.chunkPieces;
  if (isOneByOne && tokens % algorithm.chunk == 0)
    slotTokens = tokens;
}

/// Heads of values, of queries and of keys, and of gates, as far as they are
/// computed here.
std::string PrologueStage::unitsForm() {
  SmallVector<std::string> forms;
  if (values)
    forms.push_back(valueForm);
  if (queries || queryNorms)
    forms.push_back(headForm);
  if (keys || keyNorms)
    forms.push_back(headForm);
  if (logDecays)
    forms.push_back(valueForm);
  return llvm::join(forms, " + ");
}

/// All tiles are as large as the largest, so that they can have one buffer.
PrologueStage::SlotInputs PrologueStage::loadSlotInputs(Value operand,
                                                        const Carry *carry) {
  int64_t most = 0;
  for (const Carry &each : parts.carries)
    if (isa<Conv1dOp>(each.op))
      most = std::max(most, each.type.getDimSize(0));
  const int64_t ahead = carry ? carry->type.getDimSize(0) : 0;
  Value lead = select(isFirstSlot, index(0), index(ahead));
  return {loadInput(operand, sub(slotBegin, lead), add(slotCount, lead),
                    slotTokens + most, /*wholeValues=*/true),
          lead};
}

/// The group's rows of the tile, which is zero behind the sequence.
Value PrologueStage::takeRows(const SlotInputs &slot, Value at) {
  auto from = cast<VectorType>(slot.tile.getType());
  auto type =
      VectorType::get({blockTokens, from.getDimSize(1)}, from.getElementType());
  return tile::ExtractRowsOp::create(b, loc, type, slot.tile,
                                     add(slot.lead, add(first, at)), Value());
}

/// The window of `carry` before token `at` of the piece. One of two places is
/// read, the other gives zeros. Neither for a piece without tokens, which may
/// lie past all of them.
Value PrologueStage::loadWindow(const Carry &carry, Value at, Value isFirst,
                                const SlotInputs &slotInputs) {
  Value all = index(carry.type.getDimSize(0)), none = index(0);
  Value fromPool = both(isFirst, compare(P::eq, at, none));
  Value start = startRows(carry);
  Value keptRows = select(fromPool, start ? start : all, none);
  Value ownRows =
      select(compare(P::eq, count, none), none, select(fromPool, none, all));
  auto loadKept = [&] {
    return loadCarryAt(carry, head, slot, keptRows, wholeLoads);
  };
  if (!slotInputs.tile) {
    llvm::SaveAndRestore token(begin, add(begin, at));
    Value kept = loadKept();
    return joinWindow(carry, kept,
                      loadOwnWindow(carry, head, ownRows, wholeLoads));
  }
  Value kept = loadKept();
  auto from = cast<VectorType>(slotInputs.tile.getType());
  auto type = VectorType::get(carry.type.getShape(), from.getElementType());
  Value row = sub(add(slotInputs.lead, add(first, at)), all);
  Value own =
      tile::ExtractRowsOp::create(b, loc, type, slotInputs.tile, row, ownRows);
  return joinWindow(carry, kept, castTile(b, loc, own, b.getF32Type()));
}

/// What an input of the rule is computed from and lies in memory, rows by
/// token.
SmallVector<Value> PrologueStage::operandsOf(Value input) {
  llvm::SetVector<Value> operands;
  llvm::DenseSet<Value> needed = parts.inputsOf({input});
  auto isRow = [&](Value operand) {
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    return type && type.getRank() == 3 && operandViews.contains(operand);
  };
  if (isRow(input))
    operands.insert(input);
  KernelOp kernel = parts.kernel;
  for (Operation &op : kernel.getBody().front().without_terminator())
    for (Value operand : op.getOperands())
      if (isRow(operand) && needed.contains(operand))
        operands.insert(operand);
  return operands.takeVector();
}

/// Whether elements of a row lie side by side.
bool PrologueStage::liesInRows(Value operand) {
  auto view = cast<MemRefType>(operandViews.lookup(operand).getType());
  return view.getStridesAndOffset().first.back() == 1;
}

/// An input of the rule to the regions of its parts, zeros behind the tokens
/// that count. `regionHead` is the head in the regions.
void PrologueStage::emitInput(Value input, const Operand &regions,
                              Value chunkSlot, Value regionHead,
                              Value isFirst) {
  TokenBlock block(*this, head);
  llvm::DenseSet<Value> needed = parts.inputsOf({input});
  if (needed.contains(RuleOpInterface(parts.rule).getLogDecay()))
    block.holdGateWeights();
  SmallVector<unsigned> windows; // by number of the carry
  for (auto [i, carry] : llvm::enumerate(parts.carries)) {
    auto conv = dyn_cast<Conv1dOp>(carry.op);
    if (conv && needed.contains(conv.getResult(carry.section)))
      windows.push_back(i);
  }
  SmallVector<Value> operands = operandsOf(input);
  SlotInputs own;
  const bool isOfTokens = windows.empty() && slotTokens != algorithm.chunk;
  if (hasTiles && operands.size() == 1 && (windows.size() == 1 || isOfTokens) &&
      liesInRows(operands.front()))
    own =
        loadSlotInputs(operands.front(),
                       isOfTokens ? nullptr : &parts.carries[windows.front()]);
  auto load = [&](Value at, Rows rows) -> Tiles {
    if (own.tile)
      return {takeRows(own, at)};
    return llvm::map_to_vector(operands, [&](Value operand) {
      return loadInput(operand, add(begin, at), rows.valid, blockTokens,
                       /*wholeValues=*/true, rows.whole);
    });
  };
  auto start = [&](Value at) -> Tiles {
    return llvm::map_to_vector(windows, [&](unsigned i) {
      return loadWindow(parts.carries[i], at, isFirst, own);
    });
  };
  auto store = [&](Value tile, Value region, Value at) {
    tile::StoreOp::create(
        b, loc, tile, region,
        ValueRange{chunkSlot, regionHead, add(inChunk, at), index(0)},
        ArrayRef<int64_t>{2, 3}, Value());
  };
  auto regionType = cast<MemRefType>(regions.high.getType());
  Type element = regionType.getElementType();
  auto work = [&](Value at, Value valid, ValueRange loaded, Tiles &carried) {
    for (auto [operand, tile] : llvm::zip(operands, loaded))
      block.hold(operand, tile);
    SmallVector<Value> all(parts.carries.size());
    for (auto [i, window] : llvm::zip(windows, carried))
      all[i] = window;
    // A group with fewer tokens is the last: no one wants the window behind it.
    Value t = add(begin, at);
    Value tokens = valid && windows.empty() ? valid : index(blockTokens);
    Value tile = block.emitInputs(t, tokens, input, all).front();
    if (regions.high == logDecays)
      tile = narrowLogs(b, loc, tile);
    for (auto [i, window] : llvm::zip(windows, carried))
      window = all[i];
    auto storeValid = [&](Value part, Value region) {
      store(valid ? maskRows(b, loc, part, valid) : part, region, at);
    };
    if (!regions.low)
      return storeValid(castTile(b, loc, tile, element), regions.high);
    Operand parts = toParts(b, loc, tile, element);
    storeValid(parts.high, regions.high);
    storeValid(parts.low, regions.low);
  };
  emitGroups(load, start, work, /*near=*/bool(own.tile));
  // The groups behind them.
  Value step = index(blockTokens);
  Value groups = arith::CeilDivUIOp::create(b, loc, count, step);
  auto rest = scf::ForOp::create(b, loc, mul(groups, step),
                                 stored ? stored : index(pieceTokens), step);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(rest.getBody());
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
  auto type = VectorType::get({blockTokens, regionType.getDimSize(3)}, element);
  for (Value region : {regions.high, regions.low})
    if (region)
      store(tile::FillOp::create(b, loc, type, zero), region,
            rest.getInductionVar());
}

/// What rows of `input` are multiplied with. Nobody reads what is behind the
/// tokens that count.
void PrologueStage::emitNorms(Value input, Value norms, Value chunkSlot,
                              Value regionHead) {
  L2NormOp norm = getNormAlone(input);
  SlotInputs own;
  if (hasTiles && liesInRows(norm.getInput()))
    own = loadSlotInputs(norm.getInput(), nullptr);
  auto load = [&](Value at, Rows rows) -> Tiles {
    if (own.tile)
      return {takeRows(own, at)};
    return {loadInput(norm.getInput(), add(begin, at), rows.valid, blockTokens,
                      /*wholeValues=*/true, rows.whole)};
  };
  auto start = [](Value) { return Tiles(); };
  auto work = [&](Value at, Value valid, ValueRange loaded, Tiles &) {
    Value tile = castTile(b, loc, loaded.front(), b.getF32Type());
    tile::StoreOp::create(
        b, loc, inverseNormTile(b, loc, tile, norm.getEps().convertToDouble()),
        norms, ValueRange{chunkSlot, regionHead, index(0), add(inChunk, at)},
        ArrayRef<int64_t>{3}, valid);
  };
  emitGroups(load, start, work, /*near=*/bool(own.tile));
}

/// Log decays, and the strengths of all tokens of the piece at once, zeros
/// behind those that count. These are loaded with the first log decays.
void PrologueStage::emitGates(Value chunkSlot, Value regionHead,
                              Value isFirst) {
  RuleOpInterface rule = parts.rule;
  Value beta = rule.getBeta(), tile;
  {
    llvm::SaveAndRestore all(blockTokens, pieceTokens);
    SmallVector<Value> carried(parts.carries.size());
    TokenBlock block(*this, head);
    tile = block.emitInputs(begin, count, beta, carried).front();
  }
  emitInput(rule.getLogDecay(), {logDecays}, chunkSlot, regionHead, isFirst);
  tile::StoreOp::create(b, loc, maskRows(b, loc, tile, count), strengths,
                        ValueRange{chunkSlot, regionHead, index(0), inChunk},
                        ArrayRef<int64_t>{3}, stored);
}

/// No values of the chunk have outputs: the number 0 has the bits of 0.0.
void PrologueStage::clearSignals(Value chunkSlot, Value regionHead) {
  OpBuilder::InsertionGuard guard(b);
  enterIf(compare(P::eq, first, index(0)));
  auto type = VectorType::get({1}, b.getF32Type());
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
  tile::StoreOp::create(b, loc, tile::FillOp::create(b, loc, type, zero),
                        signals, ValueRange{chunkSlot, regionHead},
                        ArrayRef<int64_t>{1}, Value());
}

void PrologueStage::emitPiece(Value chunkSlot, Value isFirst) {
  RuleOpInterface rule = parts.rule;
  // Where a block has all values of a head, it convolves them itself, and
  // another prologue has queries and keys.
  if (isOfHalves())
    return emitInput(rule.getValue(), values, chunkSlot, headIndex(head),
                     isFirst);
  Value unit = tile::BlockIdOp::create(b, loc, b.getIndexType(), 1);
  Value allValues = mul(heads, ratio), none = index(0);
  // Which heads the unit is one of, in the order of the form.
  auto emitIf = [&](Value input, const Operand &regions, Value count,
                    bool isValue) {
    Value norms = input == rule.getQuery() ? queryNorms
                  : input == rule.getKey() ? keyNorms
                                           : Value();
    if (!regions && !norms)
      return;
    OpBuilder::InsertionGuard guard(b);
    enterIf(compare(P::ult, unit, count));
    if (isValue && signals)
      clearSignals(chunkSlot, unit);
    h = isValue ? Value(arith::DivUIOp::create(b, loc, unit, ratio)) : unit;
    head = isValue ? Value(arith::RemUIOp::create(b, loc, unit, ratio)) : none;
    if (input == rule.getLogDecay())
      emitGates(chunkSlot, unit, isFirst);
    else if (norms)
      emitNorms(input, norms, chunkSlot, unit);
    else
      emitInput(input, regions, chunkSlot, unit, isFirst);
  };
  emitIf(rule.getValue(), values, allValues, true);
  if (values)
    unit = sub(unit, allValues);
  emitIf(rule.getQuery(), queries, heads, false);
  if (queries || queryNorms)
    unit = sub(unit, heads);
  emitIf(rule.getKey(), keys, heads, false);
  if (!logDecays)
    return;
  if (keys || keyNorms)
    unit = sub(unit, heads);
  emitIf(rule.getLogDecay(), {logDecays}, allValues, true);
}

LogicalResult gdn::emitPrologueStage(const StageInputs &inputs) {
  return PrologueStage(inputs).emitStage();
}
