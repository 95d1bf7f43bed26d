// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A prefill in two stages. What a chunk does not need the state for is most of
// its work, and all chunks can do it at the same time:
//
//   prepare  a block per chunk and value head: Y, Z and the gates of the chunk
//            to the workspace; queries, keys and values too, where they are not
//            in memory as products take them
//   walk     a block per row and value head, and one for the padding: from
//            state to state, chunk after chunk; outputs, pools, zeros
//
// The window of the convolution before a chunk is the pool's for the first one
// of a row, and else the row's own input. The walk writes the pool, when all
// reading of it is over.
//
// Chunks have slots in the workspace. Chunk i of row n, which begins at token
// c[n], has the slot floor(c[n] / C) + n + i. A row of L tokens has ceil(L / C)
// chunks, and the next row's first slot is at least as much farther, so that no
// slot has two owners; floor(T / C) + N of them are enough. So nothing is
// planned: a block finds its row by binary search, and blocks of slots without
// an owner end at once.
#include "SplitKernel.h"
#include "TokenWork.h"

#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Support/LinearForm.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace gdn;

using P = arith::CmpIPredicate;

namespace {

class SplitKernel : public RecurrentKernel {
public:
  enum class Stage { prepare, walk };

  SplitKernel(EntryViews &views, const KernelParts &parts,
              const Algorithm &algorithm, Stage stage)
      : RecurrentKernel(views, parts, algorithm), stage(stage) {
    blockTokens = algorithm.chunk;
  }
  LogicalResult emit();

private:
  void describe();
  Value compare(P how, Value x, Value y) {
    return arith::CmpIOp::create(b, loc, how, x, y);
  }
  Value divide(Value x, int64_t by) {
    return arith::DivUIOp::create(b, loc, x, index(by));
  }
  /// True if the rule's `input` lies in memory in a type that will do.
  bool isReady(Value input, Type element);

  Value firstSlot(Value rowBegin, Value row) {
    return add(divide(rowBegin, algorithm.chunk), row);
  }
  Value findRow(Value slot);
  Value loadWindow(const Carry &carry, Value isFirst);
  Chunk emitInputs(Value isFirst, Value valid);
  void emitPrepare(Value chunkSlot);
  void emitChunkSlot(Value chunkSlot, Value isFirst, Value valid);
  void storeWindow(TokenBlock &block, const Carry &carry);
  void emitWalk();
  StoredChunk loadChunk(Value chunkSlot, Value t, Value valid);

  /// A tile of the workspace at the block's value head, or where `head` is
  /// given, at that head.
  Value loadRegion(Value region, Value chunkSlot, Value head);
  void storeRegion(Value tile, Value region, Value chunkSlot, Value head);
  Value loadGate(int64_t row, Value chunkSlot);
  void storeGate(Value tile, int64_t row, Value chunkSlot);
  Value loadReady(Value input, Value t, Value valid);

  Stage stage;
  // The workspace, by chunk slot and head: C x dk, C x C, 4 x C.
  Value toState, toOutput, gates;
  // By chunk slot and key head, C x dk, and value head, C x dv; null for what
  // is in memory already.
  Value queries, keys, values;
};

} // namespace

/// Rows of a tile of gates.
enum : int64_t { decayRow, strengthRow, freeRow, endRow, gateRows };

bool SplitKernel::isReady(Value input, Type element) {
  Operation *op = input.getDefiningOp();
  return (!op || isa<UnpackOp>(op)) &&
         (!element || getElementTypeOrSelf(input.getType()) == element);
}

/// The form of the number of chunk slots, without rows; empty if it has none.
static std::string chunkForm(DeltaRuleOp rule, int64_t chunk) {
  std::string tokens = getDimForm(rule.getQuery(), 0);
  LinearForm form = llvm::cantFail(LinearForm::parse(tokens));
  if (form.isConstant())
    return std::to_string(form.getConstant() / chunk);
  return isIdentifier(tokens) ? tokens + " floordiv " + std::to_string(chunk)
                              : "";
}

/// Grid and workspace of the stage.
void SplitKernel::describe() {
  DeltaRuleOp rule = parts.rule;
  auto last = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getShape().back();
  };
  const int64_t dk = last(rule.getKey()), dv = last(rule.getValue());
  const int64_t C = algorithm.chunk;
  std::string slots = chunkForm(rule, C) + " + " + rowForm;
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
  std::string rows = stage == Stage::prepare ? slots : rowForm + " + 1";
  function->setAttr("gdn_tile.grid", b.getStrArrayAttr({rows, valueForm}));
  func::FuncOp entry = views.source;
  function->setAttr("gdn_tile.stage_of", b.getStringAttr(entry.getName()));
  function->setAttr("gdn_tile.variant", b.getStringAttr("split"));
}

Value SplitKernel::loadRegion(Value region, Value chunkSlot, Value head) {
  auto type = cast<MemRefType>(region.getType());
  auto tile =
      VectorType::get(type.getShape().take_back(2), type.getElementType());
  return tile::LoadOp::create(b, loc, tile, region,
                              ValueRange{chunkSlot, head, index(0), index(0)},
                              ArrayRef<int64_t>{2, 3}, Value());
}

void SplitKernel::storeRegion(Value tile, Value region, Value chunkSlot,
                              Value head) {
  tile::StoreOp::create(b, loc, tile, region,
                        ValueRange{chunkSlot, head, index(0), index(0)},
                        ArrayRef<int64_t>{2, 3}, Value());
}

Value SplitKernel::loadGate(int64_t row, Value chunkSlot) {
  auto tile = VectorType::get({algorithm.chunk}, b.getF32Type());
  return tile::LoadOp::create(
      b, loc, tile, gates,
      ValueRange{chunkSlot, headIndex(head), index(row), index(0)},
      ArrayRef<int64_t>{3}, Value());
}

void SplitKernel::storeGate(Value tile, int64_t row, Value chunkSlot) {
  tile::StoreOp::create(
      b, loc, tile, gates,
      ValueRange{chunkSlot, headIndex(head), index(row), index(0)},
      ArrayRef<int64_t>{3}, Value());
}

/// A tile of the rule's input for the tokens from `t` on, as it is in memory.
Value SplitKernel::loadReady(Value input, Value t, Value valid) {
  auto type = cast<RankedTensorType>(input.getType());
  SmallVector<Value> at = {t, h};
  if (!parts.isKey(input))
    at.push_back(head);
  SmallVector<int64_t> dims = {0, int64_t(at.size())};
  at.push_back(index(0));
  auto tile = VectorType::get({algorithm.chunk, type.getShape().back()},
                              type.getElementType());
  return tile::LoadOp::create(b, loc, tile, operandViews.lookup(input), at,
                              dims, valid);
}

/// The row that owns `slot` if any row does: the last one whose first slot is
/// not behind it. Row 0 if there are none.
Value SplitKernel::findRow(Value slot) {
  Value rows = rowCount();
  Type i64 = b.getI64Type();
  Value zeros = math::CountLeadingZerosOp::create(
      b, loc, arith::IndexCastOp::create(b, loc, i64, rows));
  Value bits = arith::SubIOp::create(
      b, loc, index(64),
      arith::IndexCastOp::create(b, loc, b.getIndexType(), zeros));
  auto loop = scf::ForOp::create(b, loc, index(0), bits, index(1),
                                 ValueRange{index(0)});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value found = loop.getRegionIterArg(0);
  Value bit = arith::SubIOp::create(
      b, loc, arith::SubIOp::create(b, loc, bits, index(1)),
      loop.getInductionVar());
  Value row = add(found, arith::ShLIOp::create(b, loc, index(1), bit));
  // One past the last row has a bound as well: that of its end.
  Value at = arith::MinUIOp::create(b, loc, row, rows);
  Value first = firstSlot(rowBound(at, index(0)), at);
  Value owns = arith::AndIOp::create(b, loc, compare(P::ult, row, rows),
                                     compare(P::ule, first, slot));
  scf::YieldOp::create(
      b, loc, ValueRange{arith::SelectOp::create(b, loc, owns, row, found)});
  return loop.getResult(0);
}

/// The window of the convolution before token `begin`, the first of its row or
/// of a later chunk: one of two places is read, the other gives zeros.
Value SplitKernel::loadWindow(const Carry &carry, Value isFirst) {
  Value all = index(carry.type.getDimSize(0)), none = index(0);
  Value start = startRows(carry);
  Value kept =
      arith::SelectOp::create(b, loc, isFirst, start ? start : all, none);
  Value own = arith::SelectOp::create(b, loc, isFirst, none, all);
  return mapRows(
      b, loc,
      {loadCarryAt(carry, head, slot, kept), loadOwnWindow(carry, head, own)},
      {carry.type}, [&](OpBuilder &, ValueRange in) -> SmallVector<Value> {
        return {arith::AddFOp::create(b, loc, in[0], in[1])};
      })[0];
}

/// True if rows of `value` past the valid ones are zero as the kernel computes
/// them from rows that are.
static bool keepsZeros(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<L2NormOp, CastOp>(op))
    return keepsZeros(op->getOperand(0));
  return !op || isa<UnpackOp>(op);
}

/// The rule's inputs for the tokens `begin` to `begin + valid`, zeros behind.
Chunk SplitKernel::emitInputs(Value isFirst, Value valid) {
  TokenBlock block(*this, head);
  SmallVector<Value> carried;
  for (const Carry &carry : parts.carries)
    carried.push_back(isa<Conv1dOp>(carry.op) ? loadWindow(carry, isFirst)
                                              : Value());
  Chunk chunk = block.emitRuleInputs(begin, valid, carried);
  DeltaRuleOp rule = parts.rule;
  for (auto [tile, input] : {std::pair(&chunk.query, rule.getQuery()),
                             std::pair(&chunk.key, rule.getKey()),
                             std::pair(&chunk.value, rule.getValue()),
                             std::pair(&chunk.logDecay, rule.getLogDecay()),
                             std::pair(&chunk.beta, rule.getBeta())})
    if (!keepsZeros(input))
      *tile = maskRows(b, loc, *tile, valid);
  return chunk;
}

/// The chunk of the tokens `begin` to `begin + valid` to its slot.
void SplitKernel::emitChunkSlot(Value chunkSlot, Value isFirst, Value valid) {
  Chunk chunk = emitInputs(isFirst, valid);
  PreparedChunk made = prepareRoundedChunk(b, loc, chunk, chunkTypes);
  Value own = headIndex(head);
  storeRegion(made.toState, toState, chunkSlot, own);
  storeRegion(made.toOutput, toOutput, chunkSlot, own);

  auto exp = [&](Value x) -> Value { return math::ExpOp::create(b, loc, x); };
  using Rows = SmallVector<Value>;
  Type type = made.sums.getType();
  Value decay = mapRows(
      b, loc, made.sums, {type},
      [&](OpBuilder &, ValueRange in) -> Rows { return {exp(in[0])}; })[0];
  Value strength =
      mapRows(b, loc, {chunk.beta, made.outside}, {type},
              [&](OpBuilder &, ValueRange in) -> Rows {
                Value less = exp(arith::NegFOp::create(b, loc, in[1]));
                return {arith::MulFOp::create(b, loc, in[0], less)};
              })[0];
  Value end =
      mapRows(b, loc, made.sums, {type}, [&](OpBuilder &, ValueRange) -> Rows {
        return {exp(
            vector::ExtractOp::create(b, loc, made.sums, algorithm.chunk - 1))};
      })[0];
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
  storeGate(decay, decayRow, chunkSlot);
  storeGate(strength, strengthRow, chunkSlot);
  storeGate(tile::FillOp::create(b, loc, type, zero), freeRow, chunkSlot);
  storeGate(end, endRow, chunkSlot);

  if (values)
    storeRegion(castTile(b, loc, chunk.value, chunkTypes.inner), values,
                chunkSlot, own);
  if (!queries && !keys)
    return;
  // Those of a key head are the same for each of its value heads.
  Value writes = compare(P::eq, head, index(0));
  auto branch = scf::IfOp::create(b, loc, writes, /*withElse=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  if (queries)
    storeRegion(made.query, queries, chunkSlot, h);
  if (keys)
    storeRegion(made.key, keys, chunkSlot, h);
}

void SplitKernel::emitPrepare(Value chunkSlot) {
  n = findRow(chunkSlot);
  Value live = emitBounds();
  Value length = arith::SubIOp::create(b, loc, end, begin);
  Value chunks =
      arith::CeilDivUIOp::create(b, loc, length, index(algorithm.chunk));
  Value number = arith::SubIOp::create(b, loc, chunkSlot, firstSlot(begin, n));
  // Unsigned: a slot before the first row's is past every end.
  live = arith::AndIOp::create(b, loc, live, compare(P::ult, number, chunks));
  auto branch = scf::IfOp::create(b, loc, live, /*withElse=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  begin = add(begin, mul(number, index(algorithm.chunk)));
  Value left = arith::SubIOp::create(b, loc, end, begin);
  emitChunkSlot(chunkSlot, compare(P::eq, number, index(0)),
                arith::MinUIOp::create(b, loc, left, index(algorithm.chunk)));
}

/// What is known of the chunk of `valid` tokens from `t` on.
StoredChunk SplitKernel::loadChunk(Value chunkSlot, Value t, Value valid) {
  DeltaRuleOp rule = parts.rule;
  auto either = [&](Value region, Value input, Value head) {
    return region ? loadRegion(region, chunkSlot, head)
                  : loadReady(input, t, valid);
  };
  Value own = headIndex(head);
  StoredChunk chunk;
  chunk.key = either(keys, rule.getKey(), h);
  chunk.query = either(queries, rule.getQuery(), h);
  chunk.value = either(values, rule.getValue(), own);
  chunk.toState = loadRegion(toState, chunkSlot, own);
  chunk.toOutput = loadRegion(toOutput, chunkSlot, own);
  chunk.decay = loadGate(decayRow, chunkSlot);
  chunk.strength = loadGate(strengthRow, chunkSlot);
  chunk.end = loadGate(endRow, chunkSlot);
  chunk.scale = rule.getScaleOrDefault();
  return chunk;
}

/// Writes the window of `carry` after the row: of its last inputs, and of what
/// was there where it is shorter.
void SplitKernel::storeWindow(TokenBlock &block, const Carry &carry) {
  const int64_t width = carry.type.getDimSize(0);
  Value length = arith::SubIOp::create(b, loc, end, begin);
  Value count = arith::MinUIOp::create(b, loc, length, index(width));
  Value from = arith::SubIOp::create(b, loc, end, count);
  blockTokens = width;
  Value next = block.emitWindow(carry, loadCarry(carry, head), from, count);
  blockTokens = algorithm.chunk;
  storeCarry(carry, next, head);
}

/// The live row, chunk after chunk.
void SplitKernel::emitWalk() {
  const Carry &carry = *llvm::find_if(
      parts.carries, [](const Carry &c) { return isa<DeltaRuleOp>(c.op); });
  TokenBlock block(*this, head);
  Value start =
      scaleTile(b, loc, loadCarry(carry, head), chunkTypes.valueScale);
  Value first = firstSlot(begin, n);
  auto loop = scf::ForOp::create(b, loc, begin, end, index(algorithm.chunk),
                                 ValueRange{start});
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value t = loop.getInductionVar();
    Value valid = arith::MinUIOp::create(
        b, loc, arith::SubIOp::create(b, loc, end, t), index(algorithm.chunk));
    Value number =
        divide(arith::SubIOp::create(b, loc, t, begin), algorithm.chunk);
    StoredChunk chunk = loadChunk(add(first, number), t, valid);
    ChunkResult result =
        emitStateRowsChunk(b, loc, loop.getRegionIterArg(0), chunk, chunkTypes);
    block.emitRuleResults(t, valid, result.output);
    scf::YieldOp::create(b, loc, result.state);
  }
  Value last = scaleTile(b, loc, loop.getResult(0), 1 / chunkTypes.valueScale);
  storeCarry(carry, last, head);
  // Windows of a key head are the same for each of its value heads.
  Value isFirst = compare(P::eq, head, index(0));
  for (const Carry &window : parts.carries) {
    if (!isa<Conv1dOp>(window.op))
      continue;
    OpBuilder::InsertionGuard guard(b);
    if (window.perKeyHead) {
      auto branch = scf::IfOp::create(b, loc, isFirst, /*withElse=*/false);
      b.setInsertionPointToStart(branch.thenBlock());
    }
    storeWindow(block, window);
  }
}

LogicalResult SplitKernel::emit() {
  b.setInsertionPointToStart(&views.function.getBody().front());
  if (failed(emitGrid()) || failed(emitViews()))
    return failure();
  describe();
  Value first = tile::BlockIdOp::create(b, loc, b.getIndexType(), 0);
  h = tile::BlockIdOp::create(b, loc, b.getIndexType(), 1);
  head = arith::RemUIOp::create(b, loc, h, ratio);
  h = arith::DivUIOp::create(b, loc, h, ratio);
  if (stage == Stage::prepare) {
    emitPrepare(first);
  } else {
    n = first;
    Value live = emitBounds();
    auto branch = scf::IfOp::create(b, loc, live, /*withElse=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    emitWalk();
    b.setInsertionPointToStart(branch.elseBlock());
    emitZeros(begin, end);
    emitZeros(index(0), lead);
  }
  func::ReturnOp::create(b, loc);
  return success();
}

/// Whether the kernel can be split; see emitSplitKernel.
static bool canSplit(const KernelParts &parts, const Algorithm &algorithm) {
  if (!parts.cuSeqlens || !parts.rule || parts.checkpoints ||
      parts.tokenSlots || parts.numAccepted)
    return false;
  DeltaRuleOp rule = parts.rule;
  if (ChunkTypes::choose(parts, algorithm.precision).isExact() ||
      chunkForm(rule, algorithm.chunk).empty())
    return false;
  // A window before a chunk has to lie in the row.
  if (llvm::any_of(parts.carries, [&](const Carry &carry) {
        return isa<Conv1dOp>(carry.op) &&
               carry.type.getDimSize(0) > algorithm.chunk;
      }))
    return false;
  // Behind the rule stand ops on its output and on what is in memory.
  llvm::DenseSet<Value> inputs = parts.ruleInputs();
  auto isBefore = [&](Value value) {
    return inputs.contains(value) && value.getDefiningOp() &&
           value.getDefiningOp()->getParentOp() == parts.kernel;
  };
  KernelOp kernel = parts.kernel;
  for (Operation &op : kernel.getBody().front()) {
    bool isInput = llvm::any_of(op.getResults(), isBefore);
    if (!isInput && !isa<DeltaRuleOp>(op) &&
        llvm::any_of(op.getOperands(), isBefore))
      return false;
  }
  return true;
}

LogicalResult gdn::emitSplitKernel(func::FuncOp entry, KernelOp kernel,
                                   const Algorithm &algorithm,
                                   int64_t &numStages) {
  FailureOr<KernelParts> parts = KernelParts::analyse(entry, kernel);
  if (failed(parts))
    return failure();
  Algorithm perKeyHead = algorithm;
  perKeyHead.valueHeads = false;
  if (!canSplit(*parts, perKeyHead))
    return success();
  using Stage = SplitKernel::Stage;
  for (auto [stage, name] : {std::pair(Stage::prepare, "__prepare"),
                             std::pair(Stage::walk, "__walk")}) {
    EntryViews views = createEntryViews(entry, (entry.getName() + name).str());
    if (failed(SplitKernel(views, *parts, perKeyHead, stage).emit())) {
      views.function.erase();
      return failure();
    }
    ++numStages;
  }
  return success();
}
