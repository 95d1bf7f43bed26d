// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a group needs of memory is loaded a group ahead, into registers: there
// are few warps, and each has something under way at any time.
#include "Stages/TokenGroupStage.h"
#include "Stages/SequenceOrder.h"

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

/// Groups of a piece where there are many tokens: more of them share what a
/// warp does once.
static constexpr int64_t pieceGroups = 8;

/// Blocks of two pieces for which a multiprocessor has registers, a few less
/// than most stages are given: one that ran behind the others would take as
/// long again.
static constexpr int64_t blocksAtOnce = 14;

TokenGroupStage::TokenGroupStage(const StageInputs &inputs)
    : ChunkStage(inputs) {
  blockTokens = std::min(algorithm.chunk, groupTokens);
  wholeLoads = algorithm.wholeLoads &&
               !(parts.rule && RuleOpInterface(parts.rule).isPerChannel());
  pieceTokens = std::min(algorithm.chunk, algorithm.shortPieces != 0
                                              ? algorithm.shortPieces
                                              : pieceGroups * blockTokens);
  // What comes of it is rounded to 16 bits.
  fastExponentials = chunkTypes.queryParts == 1;
}

SmallVector<std::string> TokenGroupStage::gridOf(const std::string &slots) {
  const int64_t pieces = slotTokens / pieceTokens;
  views.stage().setTokenPieces(pieces);
  if (isOfHalves())
    return {std::to_string(blocksAtOnce * algorithm.workers), "1",
            std::to_string(pieces)};
  std::string all = slots;
  if (slotTokens != algorithm.chunk)
    all = getChunkForm(parts.rule, slotTokens) + " + " + sequenceForm;
  return {all, unitsForm(), std::to_string(pieces)};
}

void TokenGroupStage::emitBlock(Value at) {
  if (!isOfHalves())
    return emitSlot(at);
  OpBuilder::InsertionGuard guard(b);
  enterIf(arith::XOrIOp::create(b, loc,
                                chooseByLengths(*this, index(0)).isWhole,
                                arith::ConstantIntOp::create(b, loc, 1, 1)));
  Value units = mul(heads, ratio);
  Value tokens = memref::DimOp::create(
      b, loc, operandViews.lookup(views.results.front()), 0);
  Value slots =
      add(divideTokens(*this, tokens, index(algorithm.chunk)), sequenceCount());
  auto loop = scf::ForOp::create(b, loc, at, mul(slots, units),
                                 index(blocksAtOnce * algorithm.workers));
  b.setInsertionPointToStart(loop.getBody());
  Value slot = divideTokens(*this, loop.getInductionVar(), units);
  head = sub(loop.getInductionVar(), mul(slot, units));
  h = divideTokens(*this, head, ratio);
  head = sub(head, mul(h, ratio));
  emitSlot(slot);
}

void TokenGroupStage::emitChunkSlot(Value chunkSlot, Value isFirst,
                                    Value valid) {
  slotBegin = begin;
  slotCount = valid;
  isFirstSlot = isFirst;
  Value piece = tile::BlockIdOp::create(b, loc, b.getIndexType(), 2);
  first = mul(piece, index(pieceTokens));
  inChunk = first;
  if (slotTokens != algorithm.chunk) {
    Value tokens = index(algorithm.chunk);
    Value chunk = divideTokens(*this, first, tokens);
    Value before = mul(chunk, tokens);
    inChunk = sub(first, before);
    chunkSlot = add(chunkSlot, chunk);
    // A chunk behind the sequence's end has no place.
    stored = select(compare(arith::CmpIPredicate::ult, before, valid),
                    index(pieceTokens), index(0));
  }
  // Tokens of a piece behind the sequence's end may lie past all of them.
  Value before = minimum(valid, first);
  count = minimum(sub(valid, before), index(pieceTokens));
  begin = add(begin, first);
  Value isFirstPiece = compare(arith::CmpIPredicate::eq, piece, index(0));
  emitPiece(chunkSlot, both(isFirst, isFirstPiece));
}

void TokenGroupStage::emitGroups(
    function_ref<Tiles(Value at, Rows rows)> load,
    function_ref<Tiles(Value at)> start,
    function_ref<void(Value at, Value valid, ValueRange loaded, Tiles &carried)>
        work,
    bool near) {
  using arith::MinUIOp, arith::SubIOp;
  Value step = index(blockTokens), none = index(0);
  Value rest = arith::RemUIOp::create(b, loc, count, step);
  Value whole = SubIOp::create(b, loc, count, rest);
  Tiles tiles;
  if (!near)
    tiles = load(none, {MinUIOp::create(b, loc, whole, step), wholeLoads});
  const size_t numLoaded = tiles.size();
  tiles.append(start(none));
  auto loop = scf::ForOp::create(b, loc, none, whole, step, tiles);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value at = loop.getInductionVar();
  Tiles yielded, held(loop.getRegionIterArgs());
  Tiles carried(held.begin() + numLoaded, held.end());
  held.truncate(numLoaded);
  if (near) {
    held = load(at, {});
  } else {
    // The last one once more, so that nothing depends on whether there is a
    // next.
    Value next = MinUIOp::create(b, loc, add(at, step),
                                 SubIOp::create(b, loc, whole, step));
    yielded = load(next, {});
  }
  work(at, Value(), held, carried);
  yielded.append(carried);
  if (!yielded.empty())
    scf::YieldOp::create(b, loc, yielded);
  b.setInsertionPointAfter(loop);
  enterIf(compare(arith::CmpIPredicate::ne, rest, none));
  tiles = load(whole, {rest});
  carried = start(whole);
  work(whole, rest, tiles, carried);
}
