// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Regions of the workspace, grid and conditions of a stage, and loads and
// stores of regions.
#include "Stages/KernelStage.h"

#include "Program/TokenOps.h"
#include "Stages/IntraChunkBody.h"

#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Support/LinearForm.h"

using namespace mlir;
using namespace gdn;

std::string gdn::getChunkForm(RuleOpInterface rule, int64_t chunk) {
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

/// The type in which keys and queries of `rule` have to lie in memory, or null:
/// in any. With a decay per channel no product takes them as they are.
static Type getReadyKeyType(RuleOpInterface rule, const ChunkTypes &types) {
  return rule.isPerChannel() ? Type() : Type(types.key);
}

L2NormOp gdn::getNormAlone(Value input) {
  auto norm = input.getDefiningOp<L2NormOp>();
  if (!norm || !isInMemory(norm.getInput()))
    return {};
  Type element = getElementTypeOrSelf(norm.getInput().getType());
  return element.isF16() || element.isBF16() ? norm : L2NormOp();
}

bool gdn::hasNormsAlone(RuleOpInterface rule) {
  return rule.isPerChannel() && getNormAlone(rule.getQuery()) &&
         getNormAlone(rule.getKey());
}

bool gdn::hasGatesAhead(RuleOpInterface rule) {
  Type f32 = Float32Type::get(rule->getContext());
  return rule.isPerChannel() &&
         (!isReady(rule.getLogDecay(), f32) || !isReady(rule.getBeta(), f32));
}

bool gdn::hasPrologue(const KernelOperands &parts, const Algorithm &algorithm) {
  RuleOpInterface rule = parts.rule;
  ChunkTypes types = ChunkTypes::chooseStaged(parts, algorithm.precision);
  Type key = getReadyKeyType(rule, types);
  return types.parts > 1 || !isReady(rule.getQuery(), key) ||
         !isReady(rule.getKey(), key) || !isReady(rule.getValue(), Type());
}

/// What stands ahead of blocks that prepare chunks with a decay per channel is
/// the same for both; stages would want another.
bool gdn::choosesHalves(const KernelOperands &parts,
                        const Algorithm &algorithm) {
  return !RuleOpInterface(parts.rule).isPerChannel() ||
         hasPrologue(parts, algorithm) || hasGatesAhead(parts.rule);
}

ArrayAttr KernelStage::toAttribute(const StageVariant &variant) {
  const Conditions &when = variant.when;
  RuleOpInterface rule = parts.rule;
  std::string tokens = getDimForm(rule.getQuery(), 0);
  auto toForm = [&](StringRef symbol) -> Attribute {
    return b.getStringAttr(symbol == "sequences" ? sequenceForm
                           : symbol == "heads"   ? valueForm
                           : symbol == "tokens"  ? tokens
                                                 : symbol.str());
  };
  auto toPairs = [&](ArrayRef<Inequality> all) {
    SmallVector<Attribute> pairs;
    for (const Inequality &one : all) {
      auto side = [&](ArrayRef<std::string> factors) {
        return b.getArrayAttr(llvm::map_to_vector(factors, toForm));
      };
      pairs.push_back(b.getArrayAttr({side(one.left), side(one.right)}));
    }
    return pairs;
  };
  SmallVector<Attribute> all = toPairs(when.all), any;
  for (const auto &one : when.alternatives)
    any.push_back(b.getArrayAttr(toPairs(one)));
  if (!any.empty())
    all.push_back(
        b.getDictionaryAttr(b.getNamedAttr("any", b.getArrayAttr(any))));
  if (!variant.anyBatch)
    return b.getArrayAttr(all);
  // Each alternative says all that has to hold.
  SmallVector<Attribute> common = toPairs(variant.anyBatch->all), several;
  for (const auto &one : variant.anyBatch->alternatives) {
    SmallVector<Attribute> pairs = common;
    pairs.append(toPairs(one));
    several.push_back(b.getArrayAttr(pairs));
  }
  if (several.empty())
    several.push_back(b.getArrayAttr(common));
  all.push_back(b.getDictionaryAttr(
      b.getNamedAttr("any_batch", b.getArrayAttr(several))));
  return b.getArrayAttr(all);
}

/// The regions of chunks and of segments.
void KernelStage::addChunkRegions(const std::string &slots,
                                  SmallVector<Attribute> &regions) {
  RuleOpInterface rule = parts.rule;
  auto last = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getShape().back();
  };
  const int64_t dk = last(rule.getKey()), dv = last(rule.getValue());
  const int64_t C = algorithm.chunk;
  constexpr int64_t any = ShapedType::kDynamic;
  auto region = [&](const std::string &heads, int64_t rows, int64_t columns,
                    Type element) {
    return addRegion(
        {slots, heads, std::to_string(rows), std::to_string(columns)},
        {any, any, rows, columns}, element, regions);
  };
  auto text = [](int64_t number) { return std::to_string(number); };
  // What others read of a variant of maps alone is where its workspace begins.
  if (algorithm.mapsAlone) {
    auto ofSequences = [&](int64_t rows) {
      return addRegion({sequenceForm, valueForm, text(rows), text(dk)},
                       {any, any, rows, dk}, b.getF32Type(), regions);
    };
    states = ofSequences(dv);
    maps = ofSequences(dk);
  }
  // What the variants' first stages leave comes first otherwise.
  Type readyKey = getReadyKeyType(rule, chunkTypes);
  auto operand = [&](int64_t parts, const std::string &heads, int64_t columns,
                     Type element) -> Operand {
    Value high = region(heads, C, columns, element);
    return {high, parts > 1 ? region(heads, C, columns, element) : Value()};
  };
  const int64_t parts = chunkTypes.parts, queryParts = chunkTypes.queryParts;
  if (algorithm.fusedChunks == 1 && parts == 1 && hasNormsAlone(rule)) {
    queryNorms = region(headForm, 1, C, b.getF32Type());
    keyNorms = region(headForm, 1, C, b.getF32Type());
  } else {
    if (parts > 1 || !isReady(rule.getQuery(), readyKey))
      queries = operand(queryParts, headForm, dk, chunkTypes.key);
    if (parts > 1 || !isReady(rule.getKey(), readyKey))
      keys = operand(parts, headForm, dk, chunkTypes.key);
  }
  // Values are as good as queries: no product takes them.
  if ((queryParts > 1 || !isReady(rule.getValue(), Type())) &&
      !algorithm.convWithRule)
    values = operand(queryParts, valueForm, dv, chunkTypes.inner);
  if (algorithm.fusedChunks == 1 && hasGatesAhead(rule)) {
    logDecays = region(valueForm, C, dk, b.getF16Type());
    strengths = region(valueForm, 1, C, b.getF32Type());
  }
  if (algorithm.hasSignals)
    signals =
        addRegion({slots, valueForm}, {any, any}, b.getF32Type(), regions);
  if (readsIntraChunk()) {
    toState = operand(parts, valueForm, dk, chunkTypes.inner);
    toOutput = operand(parts, valueForm, C, chunkTypes.inner);
    const bool perChannel = rule.isPerChannel();
    gates = region(valueForm, gateRows, perChannel ? std::max(C, dk) : C,
                   b.getF32Type());
    if (perChannel) {
      fromQueries = region(valueForm, C, dk, chunkTypes.key);
      fromKeys = region(valueForm, C, dk, chunkTypes.key);
    }
    if (algorithm.ordersSequences)
      order = addRegion({sequenceForm, "1"}, {any, 1}, b.getF32Type(), regions);
  }
  // In a variant that segments sequences, the regions of its first stage come
  // first.
  const int64_t numSegments = algorithm.batchSegments;
  if (numSegments != 0) {
    std::string segments = sequenceForm + " + " + text(numSegments);
    states = addRegion({segments, valueForm, text(dv), text(dk)},
                       {any, any, dv, dk}, b.getF32Type(), regions);
    maps = addRegion({segments, valueForm, text(dk), text(dk)},
                     {any, any, dk, dk}, chunkTypes.inner, regions);
  }
}

/// Grid, workspace and conditions of the stage.
void KernelStage::describe() {
  const int64_t C = algorithm.chunk;
  std::string slots = getChunkForm(parts.rule, C) + " + " + sequenceForm;
  SmallVector<Attribute> regions;
  if (parts.hasPlanes()) {
    constexpr int64_t any = ShapedType::kDynamic;
    PoolType pool = RuleOpInterface(parts.rule).getPool().getType();
    const int64_t dv = pool.getDimSize(2), dk = pool.getDimSize(3);
    wideStates = addRegion(
        {sequenceForm, valueForm, std::to_string(dv), std::to_string(dk)},
        {any, any, dv, dk}, b.getF32Type(), regions);
  }
  if (readsChunks())
    addChunkRegions(slots, regions);
  const int64_t numSegments = algorithm.batchSegments;
  tile::StageFields stage = views.stage();
  stage.setWorkspace(b.getArrayAttr(regions));
  SmallVector<NamedAttribute> byName;
  for (const StageVariant &variant : variants)
    if (variant.saysWhen && (!variant.when.empty() || variant.anyBatch))
      byName.push_back(b.getNamedAttr(variant.name, toAttribute(variant)));
  if (!byName.empty() && variants.size() == 1)
    stage.setConditions(byName.front().getValue());
  else if (!byName.empty())
    stage.setConditions(b.getDictionaryAttr(byName));
  SmallVector<std::string> grid = gridOf(slots);
  stage.setGrid(SmallVector<StringRef>(grid.begin(), grid.end()));
  func::FuncOp entry = views.source;
  stage.setStageOf(entry.getName());
  SmallVector<StringAttr> names;
  for (const StageVariant &variant : variants)
    names.push_back(b.getStringAttr(variant.name));
  stage.setVariants(names);
  // V-splits do the same work on each value, and so do variants that only
  // differ in their conditions; where a sequence is cut depends on the batch,
  // and sums of a norm in the recurrence have an order of their own.
  if (algorithm.wholeCost != 0 && !choosesHalves(parts, algorithm))
    stage.setBits(names.front().getValue()); // those of one form or the other
  else if (algorithm.fusedChunks != 0)
    stage.setBits(
        numSegments != 0 || algorithm.mapsAlone ? names.front().getValue()
        : algorithm.normWithRule || algorithm.normBehind ? "fused-norm"
                                                         : "fused");
  else if ((names.size() == 1 && !algorithm.convWithRule &&
            algorithm.wholeCost == 0) ||
           algorithm.shortPieces != 0)
    stage.setBits(numSegments != 0 || algorithm.mapsAlone || algorithm.ownChunk
                      ? names.front().getValue()
                      : "staged");
  // For targets that have these variants alone.
  auto fact = [&](StringRef name, const Twine &value) {
    return b.getNamedAttr(name, b.getStringAttr(value));
  };
  stage.setFacts(
      b.getDictionaryAttr({fact("chunk_from", "1"), fact("chunk", Twine(C)),
                           fact("precision", chunkTypes.precision())}));
}

Value KernelStage::loadRegion(Value region, Value chunkSlot, Value head,
                              Value rows) {
  auto type = cast<MemRefType>(region.getType());
  const bool isValue = region == values.high || region == values.low;
  int64_t columns = type.getDimSize(3);
  auto tile = VectorType::get(
      {type.getDimSize(2), isValue ? valueCount(columns) : columns},
      type.getElementType());
  Value first = isValue ? valueStart() : index(0);
  return tile::LoadOp::create(b, loc, tile, region,
                              ValueRange{chunkSlot, head, index(0), first},
                              ArrayRef<int64_t>{2, 3}, rows);
}

void KernelStage::storeRegion(Value tile, Value region, Value chunkSlot,
                              Value head) {
  tile::StoreOp::create(b, loc, tile, region,
                        ValueRange{chunkSlot, head, index(0), index(0)},
                        ArrayRef<int64_t>{2, 3}, Value());
}

Operand KernelStage::loadOperand(const Operand &regions, Value chunkSlot,
                                 Value head, Value rows) {
  auto load = [&](Value region) {
    return region ? loadRegion(region, chunkSlot, head, rows) : Value();
  };
  return {load(regions.high), load(regions.low)};
}

void KernelStage::storeOperand(const Operand &operand, const Operand &regions,
                               Value chunkSlot, Value head) {
  storeRegion(operand.high, regions.high, chunkSlot, head);
  if (operand.low)
    storeRegion(operand.low, regions.low, chunkSlot, head);
}

Value KernelStage::loadGate(Gate row, Value chunkSlot, int64_t count) {
  auto tile = VectorType::get({count}, b.getF32Type());
  return tile::LoadOp::create(
      b, loc, tile, gates,
      ValueRange{chunkSlot, headIndex(head), index(row), index(0)},
      ArrayRef<int64_t>{3}, Value());
}

void KernelStage::storeGate(Value tile, Gate row, Value chunkSlot) {
  tile::StoreOp::create(
      b, loc, tile, gates,
      ValueRange{chunkSlot, headIndex(head), index(row), index(0)},
      ArrayRef<int64_t>{3}, Value());
}

Value KernelStage::loadRows(Value region, Value at, Value firstRow,
                            int64_t count, Value rows) {
  auto type = cast<MemRefType>(region.getType());
  auto tile =
      VectorType::get({count, type.getDimSize(3)}, type.getElementType());
  return tile::LoadOp::create(
      b, loc, tile, region, ValueRange{at, headIndex(head), firstRow, index(0)},
      ArrayRef<int64_t>{2, 3}, rows);
}

void KernelStage::storeRows(Value tile, Value region, Value at, Value firstRow,
                            Value rows) {
  tile::StoreOp::create(b, loc, tile, region,
                        ValueRange{at, headIndex(head), firstRow, index(0)},
                        ArrayRef<int64_t>{2, 3}, rows);
}

Value KernelStage::loadInput(Value input, Value t, Value valid, int64_t rows,
                             bool wholeValues, bool wholeRows) {
  auto type = cast<RankedTensorType>(input.getType());
  SmallVector<Value> at = {t, h};
  int64_t columns = type.getShape().back();
  Value first = index(0);
  if (!parts.isKey(input)) {
    at.push_back(head);
    if (!wholeValues) {
      columns = valueCount(columns);
      first = valueStart();
    }
  }
  SmallVector<int64_t> dims = {0, int64_t(at.size())};
  at.push_back(first);
  auto tile = VectorType::get({rows, columns}, type.getElementType());
  return tile::LoadOp::create(b, loc, tile, operandViews.lookup(input), at,
                              dims, valid, wholeRows);
}

StoredChunk KernelStage::loadChunk(Value chunkSlot, Value t, Value valid,
                                   Value valuesValid, bool wantsOutput) {
  RuleOpInterface rule = parts.rule;
  Value own = headIndex(head);
  auto key = [&](const Operand &regions, Value input) -> Operand {
    if (regions)
      return loadOperand(regions, chunkSlot, h);
    return {loadInput(input, t, valid, algorithm.chunk, false)};
  };
  StoredChunk chunk;
  const bool perChannel = rule.isPerChannel();
  chunk.key = perChannel ? Operand{loadRegion(fromKeys, chunkSlot, own)}
                         : key(keys, rule.getKey());
  if (wantsOutput)
    chunk.query = perChannel ? Operand{loadRegion(fromQueries, chunkSlot, own)}
                             : key(queries, rule.getQuery());
  // Values in the workspace are zero past the valid ones.
  Value some = valid == valuesValid ? Value() : valuesValid;
  chunk.value = values ? loadOperand(values, chunkSlot, own, some)
                       : Operand{loadInput(rule.getValue(), t, valuesValid,
                                           algorithm.chunk, false)};
  chunk.toState = loadOperand(toState, chunkSlot, own);
  if (wantsOutput)
    chunk.toOutput = loadOperand(toOutput, chunkSlot, own);
  const int64_t C = algorithm.chunk;
  if (!perChannel)
    chunk.decay = loadGate(decayRow, chunkSlot, C);
  chunk.strength = loadGate(strengthRow, chunkSlot, C);
  chunk.end = loadGate(
      endRow, chunkSlot,
      perChannel ? cast<VectorType>(chunk.key.high.getType()).getDimSize(1)
                 : C);
  chunk.scale = rule.getScaleOrDefault();
  return chunk;
}

StoredChunk KernelStage::emitIntraChunkAt(Value chunkSlot, Value t, Value valid,
                                          Value valuesValid, bool wantsOutput,
                                          Value convolved) {
  RuleOpInterface rule = parts.rule;
  auto load = [&](Value region, Value at, Value input, Value rows) {
    if (!region)
      return loadInput(input, t, rows, algorithm.chunk,
                       /*wholeValues=*/false);
    // Behind a sequence a region has zeros, and of chunks with a decay per
    // channel none is loaded that lies behind it.
    return loadRegion(region, chunkSlot, at,
                      rule.isPerChannel() ? Value() : rows);
  };
  auto loadVector = [&](Value region, Value head) -> Value {
    return tile::LoadOp::create(
        b, loc, VectorType::get({algorithm.chunk}, b.getF32Type()), region,
        ValueRange{chunkSlot, head, index(0), index(0)}, ArrayRef<int64_t>{3},
        valid);
  };
  auto loadKey = [&](Value region, Value norms, Value input) -> Operand {
    if (!norms)
      return {load(region, h, input, valid)};
    Value raw = load(Value(), h, getNormAlone(input).getInput(), valid);
    return {scaleRowsTo(b, loc, raw, loadVector(norms, h), chunkTypes.key)};
  };
  StoredChunk chunk;
  chunk.key = loadKey(keys.high, keyNorms, rule.getKey());
  if (wantsOutput)
    chunk.query = loadKey(queries.high, queryNorms, rule.getQuery());
  chunk.value = {convolved ? convolved
                           : load(values.high, headIndex(head), rule.getValue(),
                                  valuesValid)};
  Value logDecay, strength;
  if (logDecays) {
    logDecay =
        widenLogs(b, loc, loadRegion(logDecays, chunkSlot, headIndex(head)));
    strength = loadVector(strengths, headIndex(head));
  }
  addIntraChunk(*this, chunk, t, valid, logDecay, strength);
  return chunk;
}

/// `carry` with `count` elements along the dimension `dim` of its tile.
static Carry resize(Carry carry, int64_t dim, int64_t count) {
  SmallVector<int64_t> shape(carry.type.getShape());
  shape[dim] = count;
  carry.type = VectorType::get(shape, carry.type.getElementType());
  carry.stored = VectorType::get(shape, carry.stored.getElementType());
  return carry;
}

Carry KernelStage::stateCarry() {
  const Carry &carry = *llvm::find_if(
      parts.carries, [](const Carry &c) { return isa<RuleOpInterface>(c.op); });
  return resize(carry, 0, valueCount(carry.type.getDimSize(0)));
}

Value KernelStage::loadSequenceState(Value rows) {
  Carry carry = stateCarry();
  if (wideStates)
    return loadRows(wideStates, n, valueStart(), carry.type.getDimSize(0),
                    rows);
  return rows ? loadCarryAt(carry, head, slot, rows) : loadCarry(carry, head);
}

void KernelStage::storeSequenceState(Value state) {
  if (wideStates)
    storeRows(state, wideStates, n, valueStart());
  else
    storeCarry(stateCarry(), state, head);
}

Carry KernelStage::windowCarry(const Carry &carry) {
  return carry.perKeyHead
             ? carry
             : resize(carry, 1, valueCount(carry.type.getDimSize(1)));
}

void KernelStage::takeVSplit(Value which, int64_t vSplit) {
  RuleOpInterface rule = parts.rule;
  auto value = cast<RankedTensorType>(rule.getValue().getType());
  numValues = value.getShape().back() / vSplit;
  firstValue = mul(which, index(numValues));
}

LogicalResult KernelStage::emitStage() {
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
