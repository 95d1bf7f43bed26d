// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A sequence is cut into `S` segments of whole chunks. What the tokens of a
// segment do to the state M is an affine map, M <- M P + H. Three stages:
//
//   maps      a block per sequence, key head and segment s < S - 1
//             s = 0: the ordinary pass, whose last state goes to the workspace;
//             s > 0: P and H, by the chunk form without queries from the
//             identity and from zero
//             sequences of one segment, skipped sequences and padding end here
//   scan      a block per sequence and value head: the state before each
//             segment, M_(s+1) = M_s P_s + H_s
//   segments  a block per sequence, key head and segment s > 0: the ordinary
//             pass from M_s; the last one writes the states of the sequence
//
// In the variant "segment-maps" there is one stage, which makes the maps of
// whole sequences and nothing else.
//
// The window of the convolution before a segment is the sequence's own input.
// No pool is written before all that the sequence reads of it was read.
// Formulas: docs/design/20261121-segments.md.
#include "Stages/SplitSequences.h"
#include "Program/CheckOperands.h"
#include "Program/TokenOps.h"

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace gdn;

using P = arith::CmpIPredicate;

namespace {

class SegmentedKernel : public RecurrentKernel {
public:
  enum class Stage { maps, scan, segments, alone };

  SegmentedKernel(EntryViews &views, const KernelOperands &parts,
                  const Algorithm &algorithm, Stage stage)
      : RecurrentKernel(views, parts, algorithm), stage(stage) {}
  LogicalResult emitStage();

protected:
  Value loadStart(const Carry &carry, Value r) override;
  void storeEnd(const Carry &carry, Value tile, Value r) override;

private:
  void describe();
  void describeAlone();
  Value segmentTokens();
  void emitMapsStage(Value live);
  void emitScan(Value live);
  void emitSegmentsStage(Value live);
  void emitMap(Value r, Value at);
  void emitAlone(Value live);
  Value loadMatrix(Value region, Value head, Value at);
  void storeMatrix(Value tile, Value region, Value head, Value at);
  Value identity(int64_t size);

  Stage stage;
  Value states;  // N x Hv x (S-1) x dv x dk: at s - 1 what precedes segment s
  Value maps;    // N x Hv x (S-2) x dk x dk: at s - 1 the P of segment s
  Value segment; // of the block
  Value isLast;  // whether the sequence ends with the block's segment
};

} // namespace

/// Grid, workspace and conditions of the stage.
void SegmentedKernel::describe() {
  RuleOpInterface rule = parts.rule;
  auto last = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getShape().back();
  };
  int64_t dk = last(rule.getKey()), dv = last(rule.getValue());
  int64_t S = algorithm.segments;
  auto text = [](int64_t number) { return std::to_string(number); };
  constexpr int64_t any = ShapedType::kDynamic;
  SmallVector<Attribute> regions;
  states = addRegion({sequenceForm, valueForm, text(S - 1), text(dv), text(dk)},
                     {any, any, S - 1, dv, dk}, b.getF32Type(), regions);
  if (S > 2)
    maps = addRegion({sequenceForm, valueForm, text(S - 2), text(dk), text(dk)},
                     {any, any, S - 2, dk, dk}, b.getF32Type(), regions);
  tile::StageFields fields = views.stage();
  fields.setWorkspace(b.getArrayAttr(regions));

  std::string segments = text(S - 1), tokens = getDimForm(rule.getQuery(), 0);
  SmallVector<StringRef> grid = {sequenceForm, headForm, segments};
  std::string withPadding = sequenceForm + " + 1";
  if (stage == Stage::maps)
    grid[0] = withPadding;
  if (stage == Stage::scan)
    grid = {sequenceForm, valueForm};
  fields.setGrid(grid);

  // Segments pay where workers would idle and sequences are long.
  auto pair = [&](ArrayRef<StringRef> left, ArrayRef<StringRef> right) {
    return b.getArrayAttr({b.getStrArrayAttr(left), b.getStrArrayAttr(right)});
  };
  std::string from = text(algorithm.segmentsFrom);
  fields.setConditions(
      b.getArrayAttr({pair({segments, sequenceForm, headForm}, {"workers"}),
                      pair({from, sequenceForm}, {tokens})}));
  func::FuncOp entry = views.source;
  fields.setStageOf(entry.getName());
  fields.setVariant("segments");
  fields.setBits("segments");
}

/// The same of the stage that makes maps of sequences alone: first H of each,
/// then P.
void SegmentedKernel::describeAlone() {
  RuleOpInterface rule = parts.rule;
  auto last = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getShape().back();
  };
  int64_t dk = last(rule.getKey()), dv = last(rule.getValue());
  constexpr int64_t any = ShapedType::kDynamic;
  SmallVector<Attribute> regions;
  auto region = [&](int64_t rows) {
    return addRegion({sequenceForm, valueForm, "1", std::to_string(rows),
                      std::to_string(dk)},
                     {any, any, 1, rows, dk}, b.getF32Type(), regions);
  };
  states = region(dv);
  maps = region(dk);
  tile::StageFields fields = views.stage();
  fields.setWorkspace(b.getArrayAttr(regions));
  SmallVector<StringRef> grid = {sequenceForm, headForm};
  fields.setGrid(grid);
  // Launches take it only if they are told to.
  auto side = [&](StringRef text) {
    return b.getStrArrayAttr(ArrayRef<StringRef>{text});
  };
  fields.setConditions(
      b.getArrayAttr({b.getArrayAttr({side("workers"), side("0")})}));
  func::FuncOp entry = views.source;
  fields.setStageOf(entry.getName());
  fields.setVariant("segment-maps");
  fields.setBits("segment-maps");
}

/// Tokens of each segment of the sequence but the last: its chunks over S,
/// rounded up. Every segment is empty past the last token.
Value SegmentedKernel::segmentTokens() {
  Value length = sub(end, begin);
  Value chunks =
      arith::CeilDivUIOp::create(b, loc, length, index(algorithm.chunk));
  Value share =
      arith::CeilDivUIOp::create(b, loc, chunks, index(algorithm.segments));
  return mul(share, index(algorithm.chunk));
}

Value SegmentedKernel::loadMatrix(Value region, Value head, Value at) {
  auto type = cast<MemRefType>(region.getType());
  auto tile = VectorType::get(type.getShape().take_back(2), b.getF32Type());
  SmallVector<Value> indices = {n, head, at, index(0), index(0)};
  return tile::LoadOp::create(b, loc, tile, region, indices,
                              ArrayRef<int64_t>{3, 4}, Value());
}

void SegmentedKernel::storeMatrix(Value tile, Value region, Value head,
                                  Value at) {
  SmallVector<Value> indices = {n, head, at, index(0), index(0)};
  tile::StoreOp::create(b, loc, tile, region, indices, ArrayRef<int64_t>{3, 4},
                        Value());
}

Value SegmentedKernel::identity(int64_t size) {
  auto type = VectorType::get({size, size}, b.getF32Type());
  auto row = VectorType::get({size}, b.getF32Type());
  auto indices = VectorType::get({size}, b.getIndexType());
  auto map = tile::MapRowsOp::create(b, loc, type, ValueRange());
  OpBuilder::InsertionGuard guard(b);
  Block *body = b.createBlock(&map.getBody(), {}, {b.getIndexType()}, {loc});
  Value column = vector::StepOp::create(b, loc, indices);
  Value own =
      vector::BroadcastOp::create(b, loc, indices, body->getArgument(0));
  auto splat = [&](float value) -> Value {
    return arith::ConstantOp::create(b, loc,
                                     DenseElementsAttr::get(row, value));
  };
  Value isOwn = compare(P::eq, column, own);
  Value one = select(isOwn, splat(1), splat(0));
  tile::YieldOp::create(b, loc, one);
  return map.getResult(0);
}

Value SegmentedKernel::loadStart(const Carry &carry, Value r) {
  if (stage == Stage::maps || stage == Stage::alone)
    return loadCarry(carry, r);
  if (isa<Conv1dOp>(carry.op))
    return loadOwnWindow(carry, r);
  return loadMatrix(states, headIndex(r), segment);
}

/// A sequence that ends here writes its pools; a state that goes on, the
/// workspace.
void SegmentedKernel::storeEnd(const Carry &carry, Value tile, Value r) {
  bool goesOn = stage == Stage::maps && isa<RuleOpInterface>(carry.op);
  auto branch = scf::IfOp::create(b, loc, isLast, /*withElse=*/goesOn);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  storeCarry(carry, tile, r);
  if (!goesOn)
    return;
  b.setInsertionPointToStart(branch.elseBlock());
  storeMatrix(tile, states, headIndex(r), index(0));
}

/// P and H of the tokens `begin` to `end` for value head `r`: H to the place
/// `segment`, P to `at`.
void SegmentedKernel::emitMap(Value r, Value at) {
  chunked = true;
  blockTokens = algorithm.chunk;
  TokenBlock block(*this, r);
  llvm::DenseSet<Value> needed = parts.stateInputs();
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
  auto stateType = cast<MemRefType>(states.getType());
  int64_t dv = stateType.getDimSize(3), dk = stateType.getDimSize(4);
  // The chunk form's state is dk x dv.
  SmallVector<unsigned> active;
  SmallVector<Value> start;
  unsigned state = 0;
  for (auto [i, carry] : llvm::enumerate(parts.carries)) {
    if (auto conv = dyn_cast<Conv1dOp>(carry.op)) {
      if (!needed.contains(conv.getResult(carry.section)))
        continue;
      start.push_back(loadOwnWindow(carry, r));
    } else {
      state = start.size();
      start.push_back(tile::FillOp::create(
          b, loc, VectorType::get({dk, dv}, b.getF32Type()), zero));
    }
    active.push_back(i);
  }
  start.push_back(identity(dk));
  auto loop = scf::ForOp::create(b, loc, begin, end, index(blockTokens), start);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> carried(parts.carries.size());
    for (auto [i, arg] : llvm::zip(active, loop.getRegionIterArgs()))
      carried[i] = arg;
    Value map = loop.getRegionIterArgs().back();
    // Segments are whole chunks, sequences are not.
    Value valid = index(blockTokens);
    if (stage == Stage::alone)
      valid = minimum(sub(end, loop.getInductionVar()), valid);
    SmallVector<Value> next =
        block.emitMap(loop.getInductionVar(), valid, carried, map);
    SmallVector<Value> yielded;
    for (unsigned i : active)
      yielded.push_back(next[i]);
    yielded.push_back(map);
    scf::YieldOp::create(b, loc, yielded);
  }
  storeMatrix(fromChunkState(loop.getResult(state)), states, headIndex(r),
              segment);
  storeMatrix(transposeTile(b, loc, loop.getResults().back()), maps,
              headIndex(r), at);
  chunked = false;
  blockTokens = algorithm.tokens;
}

void SegmentedKernel::emitMapsStage(Value live) {
  Value sequenceBegin = begin, sequenceEnd = end;
  Value isFirst = compare(P::eq, segment, index(0));
  auto branch = scf::IfOp::create(b, loc, live, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  {
    Value tokens = segmentTokens();
    bool hasMaps = bool(maps);
    auto first = scf::IfOp::create(b, loc, isFirst, /*withElse=*/hasMaps);
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPointToStart(first.thenBlock());
    end = minimum(add(sequenceBegin, tokens), sequenceEnd);
    isLast = compare(P::eq, end, sequenceEnd);
    emitSequence();
    if (hasMaps) {
      b.setInsertionPointToStart(first.elseBlock());
      begin = add(sequenceBegin, mul(segment, tokens));
      end = add(begin, tokens);
      // The map of the last segment is of no use.
      Value goesOn = compare(P::ult, end, sequenceEnd);
      enterIf(goesOn);
      auto heads = scf::ForOp::create(b, loc, index(0), ratio, index(1));
      b.setInsertionPointToStart(heads.getBody());
      emitMap(heads.getInductionVar(), sub(segment, index(1)));
    }
  }
  b.setInsertionPointToStart(branch.elseBlock());
  enterIf(isFirst);
  emitZeros(sequenceBegin, sequenceEnd);
  emitZeros(index(0), lead);
}

void SegmentedKernel::emitScan(Value live) {
  OpBuilder::InsertionGuard guard(b);
  enterIf(live);
  Value length = sub(end, begin);
  Value count = arith::CeilDivUIOp::create(b, loc, length, segmentTokens());
  // Nothing to do with fewer than three segments: the loop below is empty.
  Value enough = compare(P::ugt, count, index(2));
  enterIf(enough);
  Value start = loadMatrix(states, h, index(0));
  Value last = sub(count, index(1));
  auto loop =
      scf::ForOp::create(b, loc, index(1), last, index(1), ValueRange{start});
  b.setInsertionPointToStart(loop.getBody());
  Value s = loop.getInductionVar();
  Value before = sub(s, index(1));
  Value own = loadMatrix(states, h, s);
  Value next = tile::MatmulOp::create(
      b, loc, own.getType(), loop.getRegionIterArg(0),
      loadMatrix(maps, h, before), own, /*transpose_lhs=*/false);
  storeMatrix(next, states, h, s);
  scf::YieldOp::create(b, loc, next);
}

void SegmentedKernel::emitSegmentsStage(Value live) {
  OpBuilder::InsertionGuard guard(b);
  enterIf(live);
  Value sequenceEnd = end, tokens = segmentTokens();
  begin = add(begin, mul(add(segment, index(1)), tokens));
  Value some = compare(P::ult, begin, sequenceEnd);
  enterIf(some);
  end = minimum(add(begin, tokens), sequenceEnd);
  isLast = compare(P::eq, end, sequenceEnd);
  emitSequence();
}

/// The map of the sequence, for each value head.
void SegmentedKernel::emitAlone(Value live) {
  OpBuilder::InsertionGuard guard(b);
  enterIf(live);
  auto heads = scf::ForOp::create(b, loc, index(0), ratio, index(1));
  b.setInsertionPointToStart(heads.getBody());
  emitMap(heads.getInductionVar(), index(0));
}

LogicalResult SegmentedKernel::emitStage() {
  b.setInsertionPointToStart(&views.function.getBody().front());
  if (failed(emitGrid()) || failed(emitViews()))
    return failure();
  stage == Stage::alone ? describeAlone() : describe();
  n = tile::BlockIdOp::create(b, loc, b.getIndexType(), 0);
  h = tile::BlockIdOp::create(b, loc, b.getIndexType(), 1);
  if (stage == Stage::alone)
    segment = index(0);
  else if (stage != Stage::scan)
    segment = tile::BlockIdOp::create(b, loc, b.getIndexType(), 2);
  Value live = emitBounds();
  switch (stage) {
  case Stage::maps:
    emitMapsStage(live);
    break;
  case Stage::scan:
    emitScan(live);
    break;
  case Stage::segments:
    emitSegmentsStage(live);
    break;
  case Stage::alone:
    emitAlone(live);
    break;
  }
  func::ReturnOp::create(b, loc);
  return success();
}

/// Whether sequences of the kernel can be cut; see emitSegmentedKernel.
static bool hasSegments(const KernelOperands &parts,
                        const Algorithm &algorithm) {
  if (!parts.cuSeqlens || !parts.rule || parts.checkpoints ||
      parts.tokenSlots || parts.numAccepted || parts.hasErase() ||
      algorithm.valueHeads)
    return false;
  return llvm::all_of(parts.carries, [&](const Carry &carry) {
    return isa<RuleOpInterface>(carry.op) ||
           carry.type.getDimSize(0) <= algorithm.chunk;
  });
}

/// Creates the stages, named as they are called, of a kernel that can be cut.
static LogicalResult
emitStages(func::FuncOp entry, KernelOp kernel, const Algorithm &algorithm,
           ArrayRef<std::pair<SegmentedKernel::Stage, StringRef>> stages,
           int64_t &numStages) {
  FailureOr<KernelOperands> parts = KernelOperands::analyse(entry, kernel);
  if (failed(parts))
    return failure();
  if (!hasSegments(*parts, algorithm))
    return success();
  Algorithm chosen = chooseForm(*parts, algorithm);
  for (auto [stage, name] : stages) {
    auto emit = [&, stage = stage](EntryViews &views) {
      return SegmentedKernel(views, *parts, chosen, stage).emitStage();
    };
    if (failed(emitStageOf(entry, name, numStages, emit)))
      return failure();
  }
  return success();
}

using Stage = SegmentedKernel::Stage;

LogicalResult gdn::emitSegmentedKernel(func::FuncOp entry, KernelOp kernel,
                                       const Algorithm &algorithm,
                                       int64_t &numStages) {
  SmallVector<std::pair<Stage, StringRef>> stages = {{Stage::maps, "__maps"}};
  if (algorithm.segments != 2) // segment 0 leaves what precedes segment 1
    stages.emplace_back(Stage::scan, "__scan");
  stages.emplace_back(Stage::segments, "__segments");
  return emitStages(entry, kernel, algorithm, stages, numStages);
}

LogicalResult gdn::emitSequenceMaps(func::FuncOp entry, KernelOp kernel,
                                    const Algorithm &algorithm,
                                    int64_t &numStages) {
  return emitStages(entry, kernel, algorithm,
                    {{Stage::alone, "__segment_maps"}}, numStages);
}
