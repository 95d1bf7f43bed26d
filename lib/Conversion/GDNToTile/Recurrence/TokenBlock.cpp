// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each gdn op on the tiles of one block of tokens. Everything is f32 between
// load and store; a value that the program shows in a narrower type is rounded
// to it.
#include "Recurrence/TokenBlock.h"
#include "Program/PendingTokens.h"
#include "Program/TokenOps.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace gdn;

TokenBlock::TokenBlock(TileProgram &program, Value r)
    : p(program), b(program.b), loc(program.loc), r(r) {
  for (const Carry &carry : p.parts.carries) {
    auto conv = dyn_cast<Conv1dOp>(carry.op);
    if (!conv)
      continue;
    weights[{conv, carry.section}] = weightTile(conv, carry.section);
    if (Value bias = conv.getBias()) {
      auto type = cast<RankedTensorType>(bias.getType());
      auto [first, count] = channelsOf(conv, carry.section);
      Value tile = tile::LoadOp::create(
          b, loc, VectorType::get({count}, type.getElementType()),
          p.views.tensors.lookup(bias), ValueRange{first}, ArrayRef<int64_t>{0},
          Value());
      biases[{conv, carry.section}] = castTile(b, loc, tile, b.getF32Type());
    }
  }
}

/// The channels of a section's head, of values those that the block has: the
/// first, and how many.
std::pair<Value, int64_t> TokenBlock::channelsOf(Conv1dOp op,
                                                 unsigned section) {
  Value input = op.getInputs()[section], first = p.channel(op, section, r);
  int64_t count = cast<RankedTensorType>(input.getType()).getDimSize(2);
  return p.parts.isKey(input)
             ? std::pair(first, count)
             : std::pair(p.add(first, p.valueStart()), p.valueCount(count));
}

/// The weights of these channels, `K x d` in f32.
Value TokenBlock::weightTile(Conv1dOp op, unsigned section) {
  auto type = cast<RankedTensorType>(op.getWeight().getType());
  auto [first, count] = channelsOf(op, section);
  SmallVector<Value> at = {first, p.index(0)};
  Value tile = tile::LoadOp::create(
      b, loc,
      VectorType::get({type.getDimSize(1), count}, type.getElementType()),
      p.views.tensors.lookup(op.getWeight()), at, ArrayRef<int64_t>{1, 0},
      Value());
  return castTile(b, loc, tile, b.getF32Type());
}

/// The f32 tile of a value for this block of tokens; loads an operand once.
Value TokenBlock::tileOf(Value value) {
  if (Value tile = tiles.lookup(value))
    return tile;
  if (Value tile = held.lookup(value))
    return tiles[value] = castTile(b, loc, tile, b.getF32Type());
  auto tensor = cast<RankedTensorType>(value.getType());
  SmallVector<Value> at = {t, p.h};
  if (!p.parts.isKey(value))
    at.push_back(r);
  SmallVector<int64_t> dims = {0}, shape = {p.blockTokens};
  if (tensor.getRank() == 3) {
    dims.push_back(at.size());
    const bool isKey = p.parts.isKey(value);
    at.push_back(isKey ? p.index(0) : p.valueStart());
    shape.push_back(isKey ? tensor.getDimSize(2)
                          : p.valueCount(tensor.getDimSize(2)));
  }
  Value tile = tile::LoadOp::create(
      b, loc, VectorType::get(shape, tensor.getElementType()),
      p.operandViews.lookup(value), at, dims, valid);
  return tiles[value] = castTile(b, loc, tile, b.getF32Type());
}

/// The last dimension of a tensor at `at`, as one f32 row.
Value TokenBlock::rowTile(Value tensor, ArrayRef<Value> at) {
  auto type = cast<RankedTensorType>(tensor.getType());
  int64_t last = type.getRank() - 1;
  Value tile = tile::LoadOp::create(
      b, loc, VectorType::get({type.getDimSize(last)}, type.getElementType()),
      p.views.tensors.lookup(tensor), at, ArrayRef<int64_t>{last}, Value());
  return castTile(b, loc, tile, b.getF32Type());
}

/// One element, in f32.
Value TokenBlock::scalar(Value tensor, Value at) {
  Value x = memref::LoadOp::create(b, loc, p.views.tensors.lookup(tensor), at);
  if (x.getType().isF32())
    return x;
  return arith::ExtFOp::create(b, loc, b.getF32Type(), x);
}

/// Whether channels have a decay each.
static bool isPerChannel(GatesOp gates) {
  return cast<RankedTensorType>(gates.getDtBias().getType()).getRank() == 2;
}

void TokenBlock::holdGateWeights() {
  KernelOp kernel = p.parts.kernel;
  Value head = p.headIndex(r);
  for (auto gates : kernel.getBody().front().getOps<GatesOp>())
    if (isPerChannel(gates))
      gateWeights[gates] = {rowTile(gates.getDtBias(), {head, p.index(0)}),
                            gates.getALog() ? scalar(gates.getALog(), head)
                                            : Value()};
}

void TokenBlock::emitGates(GatesOp gates, function_ref<bool(Value)> isNeeded) {
  if (isNeeded(gates.getLogDecay())) {
    const bool perChannel = isPerChannel(gates);
    auto [bias, aLog] = gateWeights.lookup(gates);
    Value head = bias ? Value() : p.headIndex(r);
    if (!bias)
      bias = perChannel ? rowTile(gates.getDtBias(), {head, p.index(0)})
                        : scalar(gates.getDtBias(), head);
    Value a = tileOf(gates.getA());
    if (head && gates.getALog())
      aLog = scalar(gates.getALog(), head);
    tiles[gates.getLogDecay()] =
        logDecayTile(b, loc, a, aLog, bias, gates,
                     /*fast=*/perChannel && p.fastExponentials);
  }
  if (isNeeded(gates.getBeta()))
    tiles[gates.getBeta()] =
        betaTile(b, loc, tileOf(gates.getB()), gates.getDoubleBeta());
}

/// The tile of a value of the entry's result `number`, in its type.
void TokenBlock::storeResult(unsigned number, Value tile, bool fullUntilLast) {
  Value view = p.operandViews.lookup(p.views.results[number]);
  Type element = cast<MemRefType>(view.getType()).getElementType();
  SmallVector<Value> at = {t, p.h, r};
  SmallVector<int64_t> dims = {0};
  if (cast<VectorType>(tile.getType()).getRank() == 2) {
    dims.push_back(3);
    at.push_back(p.valueStart());
  }
  tile::StoreOp::create(b, loc, castTile(b, loc, tile, element), view, at, dims,
                        valid, fullUntilLast);
}

/// As where it is not where the outputs are made, of what they would have been
/// rounded to on the way, which is the result's type.
void TokenBlock::emitNormOfOutputs(GatedRMSNormOp norm, ValueRange constants) {
  auto type = cast<RankedTensorType>(norm.getResult().getType());
  const int64_t width = type.getDimSize(2);
  Value gate = tileOf(norm.getGate());
  Value weight = p.views.tensors.lookup(norm.getWeight());
  Type element = cast<MemRefType>(weight.getType()).getElementType();
  Value ofColumns = tile::LoadOp::create(
      b, loc, VectorType::get({p.valueCount(width)}, element), weight,
      ValueRange{p.valueStart()}, ArrayRef<int64_t>{0}, Value());
  tiles[norm.getResult()] = normOfOutputs(
      b, loc, roundTile(b, loc, tileOf(norm.getInput()), type.getElementType()),
      roundTile(b, loc, gate, getElementTypeOrSelf(norm.getGate().getType())),
      castTile(b, loc, ofColumns, b.getF32Type()), constants, norm, width);
}

void TokenBlock::storeResults() {
  for (auto [number, value] : p.parts.results)
    storeResult(number, tileOf(value));
}

/// Keeps the inputs of a section behind the window.
void TokenBlock::storePendingInput(const Carry &carry, Value input) {
  auto conv = cast<Conv1dOp>(carry.op);
  Value memory = p.views.pools.find(carry.pool)->second.memory;
  Value window = p.index(carry.type.getDimSize(0));
  Value columns = memref::DimOp::create(b, loc, memory, 2);
  Value at = arith::SubIOp::create(b, loc, t, p.begin);
  Value rows = emitPendingRows(b, loc, at, valid,
                               arith::SubIOp::create(b, loc, columns, window));
  OpBuilder::InsertionGuard guard(b);
  if (carry.perKeyHead)
    b.setInsertionPointToStart(
        scf::IfOp::create(b, loc, p.keyWriter, false).thenBlock());
  tile::StoreOp::create(
      b, loc, castTile(b, loc, input, carry.stored.getElementType()), memory,
      ValueRange{p.slot, p.channel(conv, carry.section, r), p.add(window, at)},
      ArrayRef<int64_t>{2, 1}, rows);
}

/// Keeps what the next step needs to put these tokens into the state.
void TokenBlock::storePending(RuleOpInterface rule, Value key, Value deltas,
                              Value logDecay) {
  PendingBuffer buffer = pendingBufferOf(p, r);
  Value at = arith::SubIOp::create(b, loc, t, p.begin);
  if (p.firstPending)
    at = p.add(at, p.firstPending);
  Value rows = emitPendingRows(
      b, loc, at, valid, memref::DimOp::create(b, loc, buffer.keys.memory, 2));
  auto store = [&](Value tile, const PoolView &pool, Value head) {
    SmallVector<Value> indices = {buffer.slot, head, at};
    SmallVector<int64_t> dims = {2};
    if (cast<VectorType>(tile.getType()).getRank() == 2) {
      indices.push_back(p.index(0));
      dims.push_back(3);
    }
    tile::StoreOp::create(b, loc, tile, pool.memory, indices, dims, rows);
  };
  auto elementOf = [](const PoolView &pool) {
    return getElementTypeOrSelf(pool.memory.getType());
  };
  auto [kept, scales] = roundDeltas(b, loc, deltas, elementOf(buffer.deltas));
  store(kept, buffer.deltas, buffer.valueHead);
  if (scales)
    store(scales, *buffer.scales, buffer.valueHead);
  store(logDecay, buffer.decays, buffer.valueHead);
  key = castTile(b, loc, key, elementOf(buffer.keys));
  // With counts all blocks of the key head have read by now.
  Value writer = p.keyWriter;
  if (p.parts.isDeferredStep() && !writer)
    writer = p.isLastOfGroup(p.countShared() - 1);
  OpBuilder::InsertionGuard guard(b);
  if (writer) {
    p.keyBranch = scf::IfOp::create(b, loc, writer, false);
    b.setInsertionPointToStart(p.keyBranch.thenBlock());
  }
  store(key, buffer.keys, buffer.keyHead);
  if (p.parts.isDeferredStep())
    storePendingCount(p, valid);
}

/// The state after the tokens, and the tile of the rule's output. With `map`
/// there is no output, but the map's next tile.
Value TokenBlock::emitRule(RuleOpInterface rule, Value state, Value *map) {
  // A map has no use for queries: what would come of them is dropped.
  Value query = tileOf(map ? rule.getKey() : rule.getQuery());
  double scale = rule.getScaleOrDefault();
  if (!p.chunked)
    query = scaleTile(b, loc, query, scale);
  Value value = tileOf(rule.getValue()), key = tileOf(rule.getKey());
  Value logDecay = tileOf(rule.getLogDecay());
  Value beta = rule.getBeta() ? tileOf(rule.getBeta()) : Value();
  if (p.parts.isDeferredStep()) {
    const Carry &carry = *llvm::find_if(
        p.parts.carries, [&](const Carry &c) { return c.op == rule; });
    auto replay =
        emitReplay(p, carry, r, {query, key, value}, {logDecay, beta}, valid);
    tiles[rule.getOutput()] = replay.getOutput();
    storePending(rule, key, replay.getDeltas(), logDecay);
    return state;
  }
  if (!p.chunked) {
    Type deltas = rule.getNumAccepted() ? value.getType() : Type();
    Value erase = rule.getErase() ? tileOf(rule.getErase()) : Value();
    auto scan = tile::DeltaScanOp::create(
        b, loc, state.getType(), value.getType(), deltas, state, query, key,
        value, logDecay, beta, erase, valid);
    tiles[rule.getOutput()] = scan.getOutput();
    if (deltas)
      storePending(rule, key, scan.getDeltas(), logDecay);
    return scan.getNewState();
  }
  auto emitForm = [&](Value before, const Chunk &chunk) {
    return emitChunkOfRule(b, loc, before, chunk, p.chunkTypes);
  };
  Chunk chunk = {query, key, value, logDecay, beta, valid, scale};
  ChunkResult result = emitForm(state, chunk);
  if (!map) {
    tiles[rule.getOutput()] = result.output;
    return result.state;
  }
  // The same without values, which leaves what is linear in the state. Scores
  // and their inverse are the same ops on the same tiles, emitted once more.
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
  chunk.value = tile::FillOp::create(b, loc, key.getType(), zero);
  *map = emitForm(*map, chunk).state;
  return result.state;
}

Value TokenBlock::emitWindow(const Carry &carry, Value window, Value token,
                             Value count) {
  t = token;
  valid = count;
  tiles.clear();
  auto conv = cast<Conv1dOp>(carry.op);
  Value input = tileOf(conv.getInputs()[carry.section]);
  auto next =
      tile::Conv1dOp::create(b, loc, input.getType(), window.getType(), input,
                             window, weights.lookup({conv, carry.section}),
                             biases.lookup({conv, carry.section}), valid);
  return next.getNewWindow();
}

SmallVector<Value> TokenBlock::emit(Value firstToken, Value numValid,
                                    ArrayRef<Value> carried) {
  t = firstToken;
  valid = numValid;
  tiles.clear();
  SmallVector<Value> next(carried.begin(), carried.end());
  emitOps(next, [](Value) { return true; });
  storeResults();
  return next;
}

SmallVector<Value> TokenBlock::emitMap(Value firstToken, Value numValid,
                                       ArrayRef<Value> carried, Value &map) {
  t = firstToken;
  valid = numValid;
  tiles.clear();
  SmallVector<Value> next(carried.begin(), carried.end());
  llvm::DenseSet<Value> needed = p.parts.stateInputs();
  RuleOpInterface rule = p.parts.rule;
  needed.insert(rule.getOutput());
  emitOps(next, [&](Value value) { return needed.contains(value); }, &map);
  return next;
}

SmallVector<Value> TokenBlock::emitInputs(Value firstToken, Value numValid,
                                          ArrayRef<Value> wanted,
                                          SmallVectorImpl<Value> &carried) {
  t = firstToken;
  valid = numValid;
  tiles.clear();
  llvm::DenseSet<Value> needed =
      p.parts.inputsOf(SmallVector<Value>(wanted.begin(), wanted.end()));
  emitOps(carried, [&](Value value) { return needed.contains(value); });
  return llvm::map_to_vector(wanted,
                             [&](Value value) { return tileOf(value); });
}

void TokenBlock::emitRuleResults(Value firstToken, Value numValid, Value output,
                                 const NormOperands *stage, Type handedOn,
                                 bool fullUntilLast) {
  t = firstToken;
  valid = numValid;
  tiles.clear();
  llvm::DenseSet<Value> before = p.parts.ruleInputs();
  RuleOpInterface rule = p.parts.rule;
  if (handedOn)
    output =
        castTile(b, loc, castTile(b, loc, output, handedOn), b.getF32Type());
  tiles[rule.getOutput()] = output;
  roundToShown(rule.getOutput());
  before.insert(rule.getOutput());
  SmallVector<Value> carried;
  auto isWanted = [&](Value value) {
    return !before.contains(value) && !(stage && stage->behind.contains(value));
  };
  emitOps(carried, isWanted);
  for (auto [number, value] : p.parts.results) {
    if (!stage || !stage->behind.contains(value))
      storeResult(number, tileOf(value), fullUntilLast);
    else if (number == stage->inputResult)
      storeResult(number, tileOf(GatedRMSNormOp(stage->norm).getInput()),
                  fullUntilLast);
  }
}

void TokenBlock::emitNormResults(Value firstToken, Value numValid,
                                 const NormOperands &stage) {
  t = firstToken;
  valid = numValid;
  tiles.clear();
  SmallVector<Value> carried;
  emitOps(carried, [&](Value value) { return stage.behind.contains(value); });
  for (auto [number, value] : p.parts.results)
    if (stage.behind.contains(value))
      storeResult(number, tileOf(value));
}

/// What the program shows in a narrower type is rounded to it, unless it is
/// stored at once, which rounds.
void TokenBlock::roundToShown(Value result) {
  Type element = getElementTypeOrSelf(result.getType());
  Value wide = tiles.lookup(result);
  if (!wide || element.isF32() ||
      llvm::all_of(result.getUsers(), llvm::IsaPred<YieldOp>))
    return;
  Value rounded = castTile(b, loc, wide, element);
  tiles[result] = castTile(b, loc, rounded, b.getF32Type());
}

/// The kernel's ops in order, those with results that are needed. `carried`
/// holds the tiles before the tokens and receives those after them.
void TokenBlock::emitOps(SmallVectorImpl<Value> &carried,
                         function_ref<bool(Value)> isNeeded, Value *map) {
  SmallVector<Value> next(carried.begin(), carried.end());
  for (Operation &op :
       KernelOp(p.parts.kernel).getBody().front().without_terminator()) {
    if (llvm::none_of(op.getResults(), isNeeded))
      continue;
    llvm::TypeSwitch<Operation *>(&op)
        .Case([&](Conv1dOp conv) {
          for (auto [i, carry] : llvm::enumerate(p.parts.carries)) {
            if (carry.op != conv)
              continue;
            unsigned s = carry.section;
            if (!isNeeded(conv.getResult(s)))
              continue;
            Value input = tileOf(conv.getInputs()[s]);
            if (conv.getNumAccepted())
              storePendingInput(carry, input);
            auto out = tile::Conv1dOp::create(
                b, loc, input.getType(), carried[i].getType(), input,
                carried[i], weights.lookup({conv, s}), biases.lookup({conv, s}),
                valid);
            next[i] = out.getNewWindow();
            tiles[conv.getResult(s)] =
                activateTile(b, loc, out.getResult(), conv.getActivation(),
                             p.fastExponentials);
          }
        })
        .Case([&](L2NormOp norm) {
          tiles[norm.getResult()] = l2normTile(b, loc, tileOf(norm.getInput()),
                                               norm.getEps().convertToFloat());
        })
        .Case([&](GatesOp gates) { emitGates(gates, isNeeded); })
        .Case([&](RuleOpInterface rule) {
          auto carry = llvm::find_if(
              p.parts.carries, [&](const Carry &c) { return c.op == rule; });
          unsigned i = carry - p.parts.carries.begin();
          next[i] = emitRule(rule, carried[i], map);
        })
        .Case([&](GatedRMSNormOp norm) {
          SmallVector<Value> constants;
          if (Value given = norm.getConstants())
            constants = {scalar(given, p.index(0)), scalar(given, p.index(1))};
          if (p.normsOutputs)
            return emitNormOfOutputs(norm, constants);
          tiles[norm.getResult()] = gatedNormTile(
              b, loc, tileOf(norm.getInput()), tileOf(norm.getGate()),
              rowTile(norm.getWeight(), {p.index(0)}), constants, norm,
              p.fastExponentials);
        })
        // A sequence that is not live never comes here.
        .Case([&](MaskSequencesOp mask) {
          tiles[mask.getResult()] = tileOf(mask.getInput());
        })
        .Case([&](CastOp cast) {
          tiles[cast.getResult()] = tileOf(cast.getInput());
        });
    for (Value result : op.getResults())
      roundToShown(result);
  }
  carried.assign(next.begin(), next.end());
}
