// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The token recurrence as a tile program. A block serves one row and one key
// head with its value heads:
//
//   bounds and slot of the row; is it live?
//   live:  windows of q and k
//          for each value head of the key head:
//            window of v, state
//            for each block of tokens:   conv, norms, gates, scan, output norm
//            write window of v and state
//          write windows of q and k
//   else:  zeros to the row's output
//
// q and k are prepared once per value head: it costs less than one tenth of the
// scan and keeps every carried tile a value of the program.
#include "RecurrentKernel.h"
#include "CheckOperands.h"
#include "TokenWork.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace gdn;

namespace {

/// A tile that is carried from token block to token block.
struct Carry {
  Value pool;        // the gdn pool it lives in
  Value writeSlots;  // gdn operand, may be null
  Value hasInitial;  // gdn operand, may be null
  bool perKeyHead;   // one per key head, else one per value head
  VectorType type;   // f32
  VectorType stored; // in the pool's element type
  Operation *op;     // conv1d or delta_rule
  unsigned section;  // of conv1d
};

class Emitter {
public:
  Emitter(EntryViews &views, KernelOp kernel, int64_t tokens)
      : views(views), kernel(kernel), blockTokens(tokens), loc(kernel.getLoc()),
        b(kernel.getContext()) {}

  LogicalResult emit();

private:
  LogicalResult analyse();
  LogicalResult analyseResults();
  void markKeyHeads(Value value);
  Value headCount(Value value);
  void emitRow();
  void emitValueHead(Value r, MutableArrayRef<Value> keyCarries);
  SmallVector<Value> emitTokens(Value t, Value valid, Value r,
                                ArrayRef<Value> carries);
  void emitZeros();

  Value tileOf(Value value, Value t, Value valid, Value r);
  Value conv(Conv1dOp op, unsigned section, Value t, Value valid, Value r,
             ArrayRef<Value> carries, SmallVectorImpl<Value> &next);
  Value weightTile(Conv1dOp op, unsigned section, Value r);
  Value channel(Conv1dOp op, unsigned section, Value r);
  Value loadCarry(const Carry &carry, Value r);
  void storeCarry(const Carry &carry, Value tile, Value r);
  Value slotAt(Value slots, Value row);
  Value isLive(Value slot, Value pool);

  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value add(Value x, Value y) {
    return b.createOrFold<arith::AddIOp>(loc, x, y);
  }
  Value mul(Value x, Value y) {
    return b.createOrFold<arith::MulIOp>(loc, x, y);
  }
  Value headIndex(Value r) { return add(mul(h, ratio), r); }
  bool isKey(Value value) const { return keyHeaded.contains(value); }

  EntryViews &views;
  KernelOp kernel;
  int64_t blockTokens;
  Location loc;
  OpBuilder b;

  // What the kernel is made of.
  DeltaRuleOp rule;
  Value slots, cuSeqlens;
  bool hasRows = false;
  SmallVector<Value> pools;
  llvm::DenseSet<Value> keyHeaded;
  SmallVector<Carry> carries;
  SmallVector<std::pair<unsigned, Value>> results; // result number, body value

  // Values of the program.
  Value n, h, heads, ratio, begin, end, slot;
  DenseMap<Value, Value> operandViews; // external operand -> grouped view
  DenseMap<Value, Value> tiles;        // within one token block
  DenseMap<std::pair<Operation *, unsigned>, Value> weights, biases;
};

} // namespace

/// Everything that `value` is computed from, head by head, has its heads.
void Emitter::markKeyHeads(Value value) {
  keyHeaded.insert(value);
  Operation *op = value.getDefiningOp();
  if (auto conv = dyn_cast_or_null<Conv1dOp>(op))
    markKeyHeads(conv.getInputs()[cast<OpResult>(value).getResultNumber()]);
  else if (isa_and_nonnull<L2NormOp, CastOp, MaskRowsOp>(op))
    markKeyHeads(op->getOperand(0));
}

LogicalResult Emitter::analyse() {
  Operation *rowsOp = nullptr;
  auto sameRows = [&](Operation *op, Value opSlots,
                      Value opRows) -> LogicalResult {
    if (!rowsOp) {
      rowsOp = op;
      slots = opSlots;
      cuSeqlens = opRows;
      hasRows = true;
      return success();
    }
    if (slots == opSlots && cuSeqlens == opRows)
      return success();
    InFlightDiagnostic diag =
        op->emitOpError("expects the slots and rows of the other ops in its "
                        "kernel");
    diag.attachNote(rowsOp->getLoc()) << "other op";
    return diag;
  };
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    LogicalResult ok =
        llvm::TypeSwitch<Operation *, LogicalResult>(&op)
            .Case([&](DeltaRuleOp delta) {
              if (rule)
                return LogicalResult(delta.emitOpError(
                    "expects to be the only gdn.delta_rule of its kernel"));
              rule = delta;
              pools.push_back(delta.getPool());
              return sameRows(delta, delta.getSlots(), delta.getCuSeqlens());
            })
            .Case([&](Conv1dOp conv) {
              for (Value input : conv.getInputs()) {
                if (cast<RankedTensorType>(input.getType()).getRank() != 3)
                  return LogicalResult(conv.emitOpError(
                      "expects inputs T x H x d on the way to tiles; put "
                      "gdn.unpack before gdn.conv1d"));
                if (input.getDefiningOp() && !input.getDefiningOp<UnpackOp>())
                  return LogicalResult(conv.emitOpError(
                      "expects its inputs to be arguments of the entry or "
                      "parts of one on the way to tiles"));
              }
              pools.push_back(conv.getPool());
              return sameRows(conv, conv.getSlots(), conv.getCuSeqlens());
            })
            .Case([&](MaskRowsOp mask) {
              pools.push_back(mask.getPool());
              return sameRows(mask, mask.getSlots(), mask.getCuSeqlens());
            })
            .Case<GatesOp, L2NormOp, GatedRMSNormOp, CastOp>(
                [](Operation *) { return success(); })
            .Default([](Operation *other) {
              return LogicalResult(other->emitOpError(
                  "has no tile program inside a fused kernel"));
            });
    if (failed(ok))
      return failure();
  }
  // Roles before carries: a section's window follows its head kind.
  if (rule) {
    markKeyHeads(rule.getQuery());
    markKeyHeads(rule.getKey());
  }
  Type f32 = b.getF32Type();
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    if (auto conv = dyn_cast<Conv1dOp>(op)) {
      auto pool = cast<PoolType>(conv.getPool().getType());
      for (auto [i, input] : llvm::enumerate(conv.getInputs())) {
        SmallVector<int64_t> shape = {
            pool.getDimSize(2),
            cast<RankedTensorType>(input.getType()).getDimSize(2)};
        carries.push_back(
            {conv.getPool(), conv.getWriteSlots(), conv.getHasInitial(),
             isKey(input), VectorType::get(shape, f32),
             VectorType::get(shape, pool.getElementType()), conv, unsigned(i)});
      }
    } else if (auto delta = dyn_cast<DeltaRuleOp>(op)) {
      auto pool = cast<PoolType>(delta.getPool().getType());
      ArrayRef<int64_t> shape = pool.getShape().drop_front(2);
      carries.push_back(
          {delta.getPool(), delta.getWriteSlots(), delta.getHasInitial(), false,
           VectorType::get(shape, f32),
           VectorType::get(shape, pool.getElementType()), delta, 0});
    }
  }
  return analyseResults();
}

/// True if `value` is zero in skipped rows and padding by its op's meaning.
static bool isZeroInDeadRows(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<CastOp>(op))
    return isZeroInDeadRows(op->getOperand(0));
  return isa_and_nonnull<DeltaRuleOp, Conv1dOp, MaskRowsOp>(op);
}

LogicalResult Emitter::analyseResults() {
  auto ret =
      cast<func::ReturnOp>(views.source.getBody().front().getTerminator());
  auto yield = cast<YieldOp>(kernel.getBody().front().getTerminator());
  for (auto [i, operand] : llvm::enumerate(ret.getOperands())) {
    auto result = dyn_cast<OpResult>(operand);
    if (!result || result.getOwner() != kernel)
      return ret.emitOpError("expects operand ")
             << i << " to be a result of the entry's kernel";
    Value value = yield.getResults()[result.getResultNumber()];
    if (!value.getDefiningOp() ||
        value.getDefiningOp()->getParentOp() != kernel)
      return yield.emitOpError("expects operand ")
             << result.getResultNumber() << " to be computed in the kernel";
    if (hasRows && !isZeroInDeadRows(value))
      return yield.emitOpError("expects operand ")
             << result.getResultNumber()
             << " to be zero in skipped rows: the result of gdn.delta_rule, "
                "gdn.conv1d or gdn.mask_rows";
    results.push_back({unsigned(i), value});
  }
  return success();
}

Value Emitter::headCount(Value value) {
  if (Value view = views.tensors.lookup(value))
    return b.createOrFold<memref::DimOp>(loc, view, 1);
  Operation *op = value.getDefiningOp();
  if (auto unpack = dyn_cast<UnpackOp>(op)) {
    char part = unpack.getParts()[cast<OpResult>(value).getResultNumber()];
    bool key = part == 'q' || part == 'k';
    return views.index(b, key ? unpack.getKeyHeads() : unpack.getValueHeads());
  }
  if (auto conv = dyn_cast<Conv1dOp>(op))
    return headCount(conv.getInputs()[cast<OpResult>(value).getResultNumber()]);
  if (auto delta = dyn_cast<DeltaRuleOp>(op))
    return headCount(delta.getValue());
  return headCount(op->getOperand(0));
}

Value Emitter::slotAt(Value slotsOperand, Value row) {
  Value id =
      memref::LoadOp::create(b, loc, views.tensors.lookup(slotsOperand), row);
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), id);
}

/// The slot contract: not negative, not the null slot, below P.
Value Emitter::isLive(Value id, Value pool) {
  const PoolView &view = views.pools.find(pool)->second;
  using P = arith::CmpIPredicate;
  Value size = memref::DimOp::create(b, loc, view.memory, 0);
  // Unsigned: a negative id is past every end.
  Value inside = arith::CmpIOp::create(b, loc, P::ult, id, size);
  Value real = arith::CmpIOp::create(b, loc, P::ne, id, view.nullSlot);
  return arith::AndIOp::create(b, loc, inside, real);
}

/// First channel of a section's head in the convolution's channels.
Value Emitter::channel(Conv1dOp op, unsigned section, Value r) {
  Value first = index(0);
  for (unsigned i = 0; i <= section; ++i) {
    Value input = op.getInputs()[i];
    Value width = index(cast<RankedTensorType>(input.getType()).getDimSize(2));
    Value count = isKey(input) ? heads : mul(heads, ratio);
    if (i == section)
      count = isKey(input) ? h : headIndex(r);
    first = add(first, mul(width, count));
  }
  return first;
}

Value Emitter::loadCarry(const Carry &carry, Value r) {
  const PoolView &pool = views.pools.find(carry.pool)->second;
  // A row that starts from nothing reads no row of the tile.
  Value rows;
  if (carry.hasInitial) {
    Value flag = memref::LoadOp::create(
        b, loc, views.tensors.lookup(carry.hasInitial), n);
    rows = arith::SelectOp::create(b, loc, flag,
                                   index(carry.type.getDimSize(0)), index(0));
  }
  Value tile;
  if (auto conv = dyn_cast<Conv1dOp>(carry.op)) {
    SmallVector<Value> at = {slot, channel(conv, carry.section, r), index(0)};
    tile = tile::LoadOp::create(b, loc, carry.stored, pool.memory, at,
                                ArrayRef<int64_t>{2, 1}, rows);
  } else {
    SmallVector<Value> at = {slot, headIndex(r), index(0), index(0)};
    tile = tile::LoadOp::create(b, loc, carry.stored, pool.memory, at,
                                ArrayRef<int64_t>{2, 3}, rows);
  }
  return castTile(b, loc, tile, b.getF32Type());
}

void Emitter::storeCarry(const Carry &carry, Value tile, Value r) {
  const PoolView &pool = views.pools.find(carry.pool)->second;
  OpBuilder::InsertionGuard guard(b);
  Value to = slot;
  if (carry.writeSlots) {
    to = slotAt(carry.writeSlots, n);
    auto write = scf::IfOp::create(b, loc, isLive(to, carry.pool), false);
    b.setInsertionPointToStart(write.thenBlock());
  }
  tile = castTile(b, loc, tile, carry.stored.getElementType());
  if (auto conv = dyn_cast<Conv1dOp>(carry.op)) {
    SmallVector<Value> at = {to, channel(conv, carry.section, r), index(0)};
    tile::StoreOp::create(b, loc, tile, pool.memory, at,
                          ArrayRef<int64_t>{2, 1}, Value());
  } else {
    SmallVector<Value> at = {to, headIndex(r), index(0), index(0)};
    tile::StoreOp::create(b, loc, tile, pool.memory, at,
                          ArrayRef<int64_t>{2, 3}, Value());
  }
}

/// The f32 tile of a tensor for the current block of tokens.
Value Emitter::tileOf(Value value, Value t, Value valid, Value r) {
  if (Value tile = tiles.lookup(value))
    return tile;
  auto tensor = cast<RankedTensorType>(value.getType());
  Value view = operandViews.lookup(value);
  SmallVector<Value> at = {t, h};
  if (!isKey(value))
    at.push_back(r);
  SmallVector<int64_t> dims = {0}, shape = {blockTokens};
  if (tensor.getRank() == 3) {
    dims.push_back(at.size());
    at.push_back(index(0));
    shape.push_back(tensor.getDimSize(2));
  }
  Value tile = tile::LoadOp::create(
      b, loc, VectorType::get(shape, tensor.getElementType()), view, at, dims,
      valid);
  tile = castTile(b, loc, tile, b.getF32Type());
  tiles[value] = tile;
  return tile;
}

/// The weights of a section's head, `K x d` in f32.
Value Emitter::weightTile(Conv1dOp op, unsigned section, Value r) {
  auto type = cast<RankedTensorType>(op.getWeight().getType());
  auto input = cast<RankedTensorType>(op.getInputs()[section].getType());
  SmallVector<Value> at = {channel(op, section, r), index(0)};
  Value tile = tile::LoadOp::create(
      b, loc,
      VectorType::get({type.getDimSize(1), input.getDimSize(2)},
                      type.getElementType()),
      views.tensors.lookup(op.getWeight()), at, ArrayRef<int64_t>{1, 0},
      Value());
  return castTile(b, loc, tile, b.getF32Type());
}

SmallVector<Value> Emitter::emitTokens(Value t, Value valid, Value r,
                                       ArrayRef<Value> carried) {
  tiles.clear();
  SmallVector<Value> next(carried.begin(), carried.end());
  auto tile = [&](Value value) { return tileOf(value, t, valid, r); };
  auto scalar = [&](Value tensor, Value at) -> Value {
    Value x = memref::LoadOp::create(b, loc, views.tensors.lookup(tensor), at);
    if (x.getType().isF32())
      return x;
    return arith::ExtFOp::create(b, loc, b.getF32Type(), x);
  };
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    llvm::TypeSwitch<Operation *>(&op)
        .Case([&](Conv1dOp conv) {
          for (auto [i, carry] : llvm::enumerate(carries)) {
            if (carry.op != conv)
              continue;
            unsigned s = carry.section;
            Value input = tile(conv.getInputs()[s]);
            auto out = tile::Conv1dOp::create(
                b, loc, input.getType(), carried[i].getType(), input,
                carried[i], weights.lookup({conv, s}), biases.lookup({conv, s}),
                valid);
            next[i] = out.getNewWindow();
            tiles[conv.getResult(s)] =
                activateTile(b, loc, out.getResult(), conv.getActivation());
          }
        })
        .Case([&](L2NormOp norm) {
          tiles[norm.getResult()] = l2normTile(b, loc, tile(norm.getInput()),
                                               norm.getEps().convertToFloat());
        })
        .Case([&](GatesOp gates) {
          Value head = headIndex(r);
          Value bias;
          auto biasType = cast<RankedTensorType>(gates.getDtBias().getType());
          if (biasType.getRank() == 1) {
            bias = scalar(gates.getDtBias(), head);
          } else {
            SmallVector<Value> at = {head, index(0)};
            bias =
                tile::LoadOp::create(b, loc,
                                     VectorType::get({biasType.getDimSize(1)},
                                                     biasType.getElementType()),
                                     views.tensors.lookup(gates.getDtBias()),
                                     at, ArrayRef<int64_t>{1}, Value());
            bias = castTile(b, loc, bias, b.getF32Type());
          }
          tiles[gates.getLogDecay()] = logDecayTile(
              b, loc, tile(gates.getA()), scalar(gates.getALog(), head), bias,
              gates.getSoftplusThreshold().convertToFloat());
          tiles[gates.getBeta()] =
              betaTile(b, loc, tile(gates.getB()), gates.getDoubleBeta());
        })
        .Case([&](DeltaRuleOp delta) {
          unsigned i =
              llvm::find_if(carries,
                            [&](const Carry &c) { return c.op == delta; }) -
              carries.begin();
          Value query = scaleTile(b, loc, tile(delta.getQuery()),
                                  delta.getScaleOrDefault());
          Value value = tile(delta.getValue());
          auto scan = tile::DeltaScanOp::create(
              b, loc, carried[i].getType(), value.getType(), carried[i], query,
              tile(delta.getKey()), value, tile(delta.getLogDecay()),
              tile(delta.getBeta()), valid);
          next[i] = scan.getNewState();
          tiles[delta.getOutput()] = scan.getOutput();
        })
        .Case([&](GatedRMSNormOp norm) {
          auto type = cast<RankedTensorType>(norm.getWeight().getType());
          Value weight = tile::LoadOp::create(
              b, loc, VectorType::get(type.getShape(), type.getElementType()),
              views.tensors.lookup(norm.getWeight()), ValueRange{index(0)},
              ArrayRef<int64_t>{0}, Value());
          weight = castTile(b, loc, weight, b.getF32Type());
          tiles[norm.getResult()] =
              gatedNormTile(b, loc, tile(norm.getInput()), tile(norm.getGate()),
                            weight, norm);
        })
        // A row that is not live never comes here.
        .Case([&](MaskRowsOp mask) {
          tiles[mask.getResult()] = tile(mask.getInput());
        })
        // Rounding happens where the result is stored.
        .Case([&](CastOp cast) {
          tiles[cast.getResult()] = tile(cast.getInput());
        });
    // An op whose result is narrower than f32 rounds it.
    for (Value result : op.getResults()) {
      Value wide = tiles.lookup(result);
      Type element = getElementTypeOrSelf(result.getType());
      if (wide && !element.isF32() &&
          !llvm::all_of(result.getUsers(),
                        [](Operation *user) { return isa<YieldOp>(user); }))
        tiles[result] =
            castTile(b, loc, castTile(b, loc, wide, element), b.getF32Type());
    }
  }
  for (auto [number, value] : results) {
    auto type = cast<RankedTensorType>(value.getType());
    Value out = castTile(b, loc, tile(value), type.getElementType());
    Value view = operandViews.lookup(views.results[number]);
    SmallVector<Value> at = {t, h, r};
    SmallVector<int64_t> dims = {0};
    if (type.getRank() == 3) {
      dims.push_back(3);
      at.push_back(index(0));
    }
    tile::StoreOp::create(b, loc, out, view, at, dims, valid);
  }
  return next;
}

void Emitter::emitValueHead(Value r, MutableArrayRef<Value> keyCarries) {
  SmallVector<Value> start;
  for (auto [carry, held] : llvm::zip(carries, keyCarries)) {
    start.push_back(carry.perKeyHead ? held : loadCarry(carry, r));
    if (auto conv = dyn_cast<Conv1dOp>(carry.op)) {
      weights[{conv, carry.section}] = weightTile(conv, carry.section, r);
      if (Value bias = conv.getBias()) {
        auto type = cast<RankedTensorType>(bias.getType());
        Value tile = tile::LoadOp::create(
            b, loc,
            VectorType::get({carry.type.getDimSize(1)}, type.getElementType()),
            views.tensors.lookup(bias),
            ValueRange{channel(conv, carry.section, r)}, ArrayRef<int64_t>{0},
            Value());
        biases[{conv, carry.section}] = castTile(b, loc, tile, b.getF32Type());
      }
    }
  }
  SmallVector<Value> last;
  if (!cuSeqlens) {
    last = emitTokens(begin, index(1), r, start);
  } else {
    auto loop =
        scf::ForOp::create(b, loc, begin, end, index(blockTokens), start);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value t = loop.getInductionVar();
    Value left = arith::SubIOp::create(b, loc, end, t);
    Value valid = arith::MinUIOp::create(b, loc, left, index(blockTokens));
    SmallVector<Value> next =
        emitTokens(t, valid, r, SmallVector<Value>(loop.getRegionIterArgs()));
    scf::YieldOp::create(b, loc, next);
    last.assign(loop.getResults().begin(), loop.getResults().end());
  }
  for (auto [carry, value, held] : llvm::zip(carries, last, keyCarries)) {
    if (carry.perKeyHead)
      held = value;
    else
      storeCarry(carry, value, r);
  }
}

/// The live row: all value heads of key head `h`.
void Emitter::emitRow() {
  SmallVector<Value> first(carries.size());
  SmallVector<Value> init;
  Value zero = index(0);
  for (auto [carry, value] : llvm::zip(carries, first))
    if (carry.perKeyHead)
      init.push_back(value = loadCarry(carry, zero));
  auto loop = scf::ForOp::create(b, loc, zero, ratio, index(1), init);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> held = first;
    emitValueHead(loop.getInductionVar(), held);
    SmallVector<Value> yielded;
    for (auto [carry, value] : llvm::zip(carries, held))
      if (carry.perKeyHead)
        yielded.push_back(value);
    if (!init.empty())
      scf::YieldOp::create(b, loc, yielded);
  }
  unsigned next = 0;
  for (const Carry &carry : carries)
    if (carry.perKeyHead)
      storeCarry(carry, loop.getResult(next++), zero);
}

void Emitter::emitZeros() {
  auto heads = scf::ForOp::create(b, loc, index(0), ratio, index(1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(heads.getBody());
  auto loop = scf::ForOp::create(b, loc, begin, end, index(blockTokens));
  b.setInsertionPointToStart(loop.getBody());
  Value left = arith::SubIOp::create(b, loc, end, loop.getInductionVar());
  Value valid = arith::MinUIOp::create(b, loc, left, index(blockTokens));
  for (auto [number, value] : results) {
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape = {blockTokens}, dims = {0};
    SmallVector<Value> at = {loop.getInductionVar(), h,
                             heads.getInductionVar()};
    if (type.getRank() == 3) {
      shape.push_back(type.getDimSize(2));
      dims.push_back(3);
      at.push_back(index(0));
    }
    Value zero = arith::ConstantOp::create(
        b, loc, b.getFloatAttr(type.getElementType(), 0.0));
    Value tile = tile::FillOp::create(
        b, loc, VectorType::get(shape, type.getElementType()), zero);
    tile::StoreOp::create(b, loc, tile,
                          operandViews.lookup(views.results[number]), at, dims,
                          valid);
  }
}

LogicalResult Emitter::emit() {
  if (failed(checkKernelOperands(kernel)) || failed(analyse()))
    return failure();
  if (!cuSeqlens)
    blockTokens = 1;
  if (results.empty())
    return kernel.emitOpError("expects the entry to return a result of it");
  b.setInsertionPointToStart(&views.function.getBody().front());

  Value lead = rule ? Value(rule.getQuery()) : results.front().second;
  heads = headCount(lead);
  ratio = rule ? b.createOrFold<arith::DivUIOp>(loc, headCount(rule.getValue()),
                                                heads)
               : index(1);
  std::string headForm = getDimForm(lead, 1);
  std::string rowForm = getDimForm(hasRows ? slots : lead, 0);
  std::string valueForm = rule ? getDimForm(rule.getValue(), 1) : headForm;
  if (headForm.empty() || valueForm.empty() || rowForm.empty())
    return kernel.emitOpError("expects rows and heads that are static or in "
                              "'gdn.dims' of the entry's arguments");
  if (cuSeqlens)
    rowForm += " + 1"; // the block of the padding
  views.function->setAttr("gdn_tile.grid",
                          b.getStrArrayAttr({rowForm, headForm}));
  for (auto [number, value] : results)
    if (std::string form = getDimForm(value, 1); form != valueForm)
      return kernel.emitOpError("expects ")
             << valueForm << " heads, those of its "
             << (rule ? "values" : "first result") << ", in result " << number
             << " of the entry, but got " << form;

  // Views of all operands, before any control flow.
  for (Operation &op : kernel.getBody().front().without_terminator())
    for (auto [number, operand] : llvm::enumerate(op.getOperands())) {
      auto type = dyn_cast<RankedTensorType>(operand.getType());
      bool external =
          !operand.getDefiningOp() || operand.getDefiningOp<UnpackOp>();
      if (!type || !external || operandViews.contains(operand))
        continue;
      if (!isPerToken(&op, operand))
        continue;
      std::string form = getDimForm(operand, 1);
      const std::string &want = isKey(operand) ? headForm : valueForm;
      if (form != want)
        return op.emitOpError("expects ")
               << want << " heads, those of the "
               << (isKey(operand) ? "keys" : "values")
               << " of its kernel, in operand " << number << ", but got "
               << form;
      operandViews[operand] = isKey(operand)
                                  ? views.keyHeads(b, operand)
                                  : views.valueHeads(b, operand, ratio);
    }
  for (auto [number, value] : results)
    operandViews[views.results[number]] = views.resultHeads(b, number, ratio);

  n = tile::BlockIdOp::create(b, loc, b.getIndexType(), 0);
  h = tile::BlockIdOp::create(b, loc, b.getIndexType(), 1);
  Value live;
  if (!hasRows) {
    begin = n;
    end = add(n, index(1));
  } else if (!cuSeqlens) {
    begin = n;
    end = add(n, index(1));
    slot = slotAt(slots, n);
  } else {
    Value rows = memref::DimOp::create(b, loc, views.tensors.lookup(slots), 0);
    Value tokens = memref::DimOp::create(
        b, loc, operandViews.lookup(views.results.front()), 0);
    Value isRow =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, n, rows);
    // Bounds outside 0 .. T would reach past the buffers: clamp them.
    auto bound = [&](Value at, Value low) {
      Value raw = slotAt(cuSeqlens, at);
      Value high = arith::MinSIOp::create(b, loc, raw, tokens);
      return arith::MaxSIOp::create(b, loc, high, low);
    };
    begin = bound(n, index(0));
    Type type = b.getIndexType();
    auto row = scf::IfOp::create(b, loc, {type, type}, isRow, true);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(row.thenBlock());
      SmallVector<Value> values = {bound(add(n, index(1)), begin),
                                   slotAt(slots, n)};
      scf::YieldOp::create(b, loc, values);
      b.setInsertionPointToStart(row.elseBlock());
      SmallVector<Value> padding = {tokens, index(-1)};
      scf::YieldOp::create(b, loc, padding);
    }
    end = row.getResult(0);
    slot = row.getResult(1);
    live = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, begin, end);
  }
  for (Value pool : pools) {
    Value ok = isLive(slot, pool);
    live = live ? Value(arith::AndIOp::create(b, loc, live, ok)) : ok;
  }
  if (!live) {
    emitRow();
  } else {
    auto branch = scf::IfOp::create(b, loc, live, /*withElse=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    emitRow();
    b.setInsertionPointToStart(branch.elseBlock());
    emitZeros();
  }
  func::ReturnOp::create(b, loc);
  return success();
}

LogicalResult gdn::emitRecurrentKernel(EntryViews &views, KernelOp kernel,
                                       int64_t tokens) {
  return Emitter(views, kernel, tokens).emit();
}
