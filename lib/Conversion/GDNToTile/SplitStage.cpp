// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Chunks have slots in the workspace. Chunk i of row n, which begins at token
// c[n], has the slot floor(c[n] / C) + n + i. A row of L tokens has ceil(L / C)
// chunks, and the next row's first slot is at least as much farther, so that no
// slot has two owners; floor(T / C) + N of them are enough. So nothing is
// planned.
#include "SplitStage.h"

#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Support/LinearForm.h"

using namespace mlir;
using namespace gdn;

std::string gdn::getChunkForm(DeltaRuleOp rule, int64_t chunk) {
  std::string tokens = getDimForm(rule.getQuery(), 0);
  if (tokens.empty())
    return "";
  LinearForm form = llvm::cantFail(LinearForm::parse(tokens));
  if (form.isConstant())
    return std::to_string(form.getConstant() / chunk);
  return isIdentifier(tokens) ? tokens + " floordiv " + std::to_string(chunk)
                              : "";
}

/// True if `input` of the rule lies in memory, and in that type where one is
/// given.
static bool isReady(Value input, Type element) {
  return isInMemory(input) &&
         (!element || getElementTypeOrSelf(input.getType()) == element);
}

int64_t gdn::getGroupTokens(const KernelParts &parts,
                            const Algorithm &algorithm) {
  DeltaRuleOp rule = parts.rule;
  auto last = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getShape().back();
  };
  int64_t widest = std::max(last(rule.getKey()), last(rule.getValue()));
  return std::min<int64_t>(algorithm.chunk, widest > 128 ? 4 : 8);
}

bool gdn::hasPrologue(const KernelParts &parts, const Algorithm &algorithm) {
  DeltaRuleOp rule = parts.rule;
  ChunkTypes types = ChunkTypes::choose(parts, algorithm.precision);
  return !isReady(rule.getQuery(), types.key) ||
         !isReady(rule.getKey(), types.key) ||
         !isReady(rule.getValue(), Type());
}

/// Grid and workspace of the stage.
void SplitStage::describe() {
  DeltaRuleOp rule = parts.rule;
  auto last = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getShape().back();
  };
  const int64_t dk = last(rule.getKey()), dv = last(rule.getValue());
  const int64_t C = algorithm.chunk;
  std::string slots = getChunkForm(rule, C) + " + " + rowForm;
  constexpr int64_t any = ShapedType::kDynamic;
  SmallVector<Attribute> regions;
  auto region = [&](const std::string &heads, int64_t rows, int64_t columns,
                    Type element) {
    return addRegion(
        {slots, heads, std::to_string(rows), std::to_string(columns)},
        {any, any, rows, columns}, element, regions);
  };
  toState = region(valueForm, C, dk, chunkTypes.inner);
  toOutput = region(valueForm, C, C, chunkTypes.inner);
  gates = region(valueForm, gateRows, C, b.getF32Type());
  if (!isReady(rule.getQuery(), chunkTypes.key))
    queries = region(headForm, C, dk, chunkTypes.key);
  if (!isReady(rule.getKey(), chunkTypes.key))
    keys = region(headForm, C, dk, chunkTypes.key);
  if (!isReady(rule.getValue(), Type()))
    values = region(valueForm, C, dv, chunkTypes.inner);
  func::FuncOp function = views.function;
  function->setAttr("gdn_tile.workspace", b.getArrayAttr(regions));
  SmallVector<std::string> grid = gridOf(slots);
  function->setAttr("gdn_tile.grid", b.getStrArrayAttr(SmallVector<StringRef>(
                                         grid.begin(), grid.end())));
  func::FuncOp entry = views.source;
  function->setAttr("gdn_tile.stage_of", b.getStringAttr(entry.getName()));
  function->setAttr("gdn_tile.variant", b.getStringAttr("split"));
  // For targets that have this variant alone.
  auto fact = [&](StringRef name, const Twine &value) {
    return b.getNamedAttr(name, b.getStringAttr(value));
  };
  function->setAttr(
      "gdn_tile.facts",
      b.getDictionaryAttr({fact("chunk_from", "1"), fact("chunk", Twine(C)),
                           fact("precision", chunkTypes.precision())}));
}

Value SplitStage::loadRegion(Value region, Value chunkSlot, Value head) {
  auto type = cast<MemRefType>(region.getType());
  const bool isValue = region == values;
  int64_t columns = type.getDimSize(3);
  auto tile = VectorType::get(
      {type.getDimSize(2), isValue ? valueCount(columns) : columns},
      type.getElementType());
  Value first = isValue ? valueStart() : index(0);
  return tile::LoadOp::create(b, loc, tile, region,
                              ValueRange{chunkSlot, head, index(0), first},
                              ArrayRef<int64_t>{2, 3}, Value());
}

void SplitStage::storeRegion(Value tile, Value region, Value chunkSlot,
                             Value head) {
  tile::StoreOp::create(b, loc, tile, region,
                        ValueRange{chunkSlot, head, index(0), index(0)},
                        ArrayRef<int64_t>{2, 3}, Value());
}

Value SplitStage::loadGate(Gate row, Value chunkSlot) {
  auto tile = VectorType::get({algorithm.chunk}, b.getF32Type());
  return tile::LoadOp::create(
      b, loc, tile, gates,
      ValueRange{chunkSlot, headIndex(head), index(row), index(0)},
      ArrayRef<int64_t>{3}, Value());
}

void SplitStage::storeGate(Value tile, Gate row, Value chunkSlot) {
  tile::StoreOp::create(
      b, loc, tile, gates,
      ValueRange{chunkSlot, headIndex(head), index(row), index(0)},
      ArrayRef<int64_t>{3}, Value());
}

LogicalResult SplitStage::emit() {
  b.setInsertionPointToStart(&views.function.getBody().front());
  if (failed(emitGrid()) || failed(emitViews()))
    return failure();
  describe();
  Value first = tile::BlockIdOp::create(b, loc, b.getIndexType(), 0);
  h = tile::BlockIdOp::create(b, loc, b.getIndexType(), 1);
  head = arith::RemUIOp::create(b, loc, h, ratio);
  h = arith::DivUIOp::create(b, loc, h, ratio);
  emitBlock(first);
  func::ReturnOp::create(b, loc);
  return success();
}
