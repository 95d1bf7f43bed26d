// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pending tokens into states, without any tokens of this step. A block serves
// one sequence and one value head, and some channels of the convolution:
//
//   a = num_accepted[n]; is it from 1 to S, and the sequence's slot live?
//   live:  state = fold of the first a pending tokens into the state
//          for each block of channels, from block h on, in steps of Hv:
//            columns a .. a+window-1 to columns 0 .. window-1
//
// With counts of tokens that are pending over several steps a block serves a
// key head, whose count it resets:
//
//   live:  m = counts[slot,h] + num_accepted[n]
//          m > 0:  for each value head of the key head: state, as above
//                  counts[slot,h] = 0
#include "Recurrence/CommitKernel.h"
#include "Program/CheckOperands.h"
#include "Program/PendingTokens.h"
#include "Program/Slots.h"
#include "Program/StatePlanes.h"
#include "Program/TokenOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

/// Channels of the convolution that a block moves at once.
static constexpr int64_t blockChannels = 64;

namespace {
class CommitKernel {
public:
  CommitKernel(EntryViews &views, KernelOp kernel)
      : views(views), kernel(kernel), loc(kernel.getLoc()),
        b(kernel.getContext()) {}

  LogicalResult collect();
  void emit();

private:
  LogicalResult takeSequences(Operation *op, Value opSlots, Value opAccepted);
  void emitGrid();
  Value emitLive();
  void emitRule(Value head, Value count);
  void emitKeyHead();
  void emitWindow();
  Value counts() { return rule ? rule.getCounts() : Value(); }

  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  PoolView view(Value pool) { return views.pools.find(pool)->second; }
  Value dim(Value pool, int64_t d) {
    return memref::DimOp::create(b, loc, view(pool).memory, d);
  }
  Value elementAt(Value tensor, Value at) {
    Value id = memref::LoadOp::create(b, loc, views.tensors.lookup(tensor), at);
    return arith::IndexCastOp::create(b, loc, b.getIndexType(), id);
  }

  EntryViews &views;
  KernelOp kernel;
  Location loc;
  OpBuilder b;
  CommitDeltaRuleOp rule; // at least one of both
  CommitConv1dOp conv;
  Operation *first = nullptr;
  Value slots, accepted;           // gdn operands
  Value n, h, blocks, slot, count; // of the block
};
} // namespace

LogicalResult CommitKernel::takeSequences(Operation *op, Value opSlots,
                                          Value opAccepted) {
  if (!first) {
    first = op;
    slots = opSlots;
    accepted = opAccepted;
    return success();
  }
  if (slots == opSlots && accepted == opAccepted)
    return success();
  InFlightDiagnostic diag = op->emitOpError(
      "expects the slots and accepted tokens of the other op in its kernel");
  diag.attachNote(first->getLoc()) << "other op";
  return diag;
}

LogicalResult CommitKernel::collect() {
  auto take = [&](auto &known, auto op) -> LogicalResult {
    if (known)
      return op.emitOpError("expects to be the only one of its kernel");
    known = op;
    return takeSequences(op, op.getSlots(), op.getNumAccepted());
  };
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    auto delta = dyn_cast<CommitDeltaRuleOp>(op);
    if (failed(delta ? take(rule, delta)
                     : take(conv, cast<CommitConv1dOp>(op))))
      return failure();
  }
  return success();
}

void CommitKernel::emitGrid() {
  std::string headForm = rule ? getDimForm(rule.getPool(), 1) : "1";
  std::string keyForm = rule ? getDimForm(rule.getKeys(), 1) : "1";
  views.stage().setGrid({getDimForm(slots, 0), counts() ? keyForm : headForm});
  if (rule && keyForm != headForm) // value heads come in whole groups
    views.stage().setMultiples({headForm, keyForm});
}

/// Whether something is accepted of the sequence, and no pool skips its slot.
Value CommitKernel::emitLive() {
  using P = arith::CmpIPredicate;
  // Unsigned: nothing accepted, and a negative count, are above every number
  // of steps. Where slots have counts, nothing has to be accepted.
  Value last =
      counts() ? count : arith::SubIOp::create(b, loc, count, index(1));
  Value live;
  auto need = [&](Value ok) {
    live = live ? Value(arith::AndIOp::create(b, loc, live, ok)) : ok;
  };
  auto needBelow = [&](Value x, Value size) {
    need(arith::CmpIOp::create(b, loc, P::ult, x, size));
  };
  needBelow(last, index(mostPendingTokens + (counts() ? 1 : 0)));
  SmallVector<Value> pools;
  if (rule) {
    if (!counts())
      needBelow(last, dim(rule.getKeys(), 2));
    pools = {rule.getPool(), rule.getKeys(), rule.getDeltas(),
             rule.getDecays()};
    for (Value more : {Value(counts()), Value(rule.getPendingScales()),
                       Value(rule.getStateScales()), Value(rule.getStateLow())})
      if (more)
        pools.push_back(more);
  }
  if (conv) {
    needBelow(last, arith::SubIOp::create(
                        b, loc, dim(conv.getPool(), 2),
                        index(conv.getWindow() - (counts() ? 1 : 0))));
    pools.push_back(conv.getPool());
  }
  for (Value pool : pools) {
    needBelow(slot, dim(pool, 0));
    need(arith::CmpIOp::create(b, loc, P::ne, slot, view(pool).nullSlot));
  }
  return live;
}

/// All value heads of key head `h`, and that nothing is pending any more.
void CommitKernel::emitKeyHead() {
  Value at = memref::LoadOp::create(b, loc, view(counts()).memory,
                                    ValueRange{slot, h});
  Value pending = arith::IndexCastOp::create(b, loc, b.getIndexType(), at);
  // Unsigned: a count that is none leaves the memory of the pools alone.
  Value all = arith::MinUIOp::create(
      b, loc, arith::AddIOp::create(b, loc, count, pending),
      dim(rule.getKeys(), 2));
  OpBuilder::InsertionGuard guard(b);
  Value isSome =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, all, index(0));
  auto some = scf::IfOp::create(b, loc, isSome, /*withElse=*/false);
  b.setInsertionPointToStart(some.thenBlock());
  Value ratio = arith::DivUIOp::create(b, loc, dim(rule.getPool(), 1), blocks);
  auto loop = scf::ForOp::create(b, loc, index(0), ratio, index(1));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    emitRule(arith::AddIOp::create(b, loc,
                                   arith::MulIOp::create(b, loc, h, ratio),
                                   loop.getInductionVar()),
             all);
  }
  Value none = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0));
  memref::StoreOp::create(b, loc, none, view(counts()).memory,
                          ValueRange{slot, h});
}

/// The first `count` pending tokens into the state of value head `head`.
void CommitKernel::emitRule(Value head, Value count) {
  PoolType type = rule.getPool().getType();
  auto stored =
      VectorType::get(type.getShape().drop_front(2), type.getElementType());
  SmallVector<Value> at = {slot, head, index(0), index(0)};
  auto memoryOf = [&](Value pool) {
    return pool ? view(pool).memory : Value();
  };
  const StateMemory memory = {memoryOf(rule.getPool()),
                              memoryOf(rule.getStateScales()),
                              memoryOf(rule.getStateLow())};
  Value state = loadState(b, loc, memory, stored, at, /*rows=*/Value());
  state = castTile(b, loc, state, b.getF32Type());
  Value ratio = arith::DivUIOp::create(b, loc, dim(rule.getPool(), 1),
                                       dim(rule.getKeys(), 1));
  PendingBuffer buffer = {view(rule.getKeys()),
                          view(rule.getDeltas()),
                          view(rule.getDecays()),
                          rule.getPendingScales()
                              ? std::optional(view(rule.getPendingScales()))
                              : std::nullopt,
                          slot,
                          arith::DivUIOp::create(b, loc, head, ratio),
                          head};
  PendingTiles pending =
      loadPending(b, loc, buffer, count, rule.getKeys().getType(),
                  rule.getDeltas().getType(), rule.getDecays().getType());
  state =
      tile::DeltaFoldOp::create(b, loc, state.getType(), state, pending.keys,
                                pending.deltas, pending.decays, count);
  StoredState rounded =
      roundState(b, loc, memory, state, type.getElementType());
  storeState(b, loc, memory, rounded, at);
}

void CommitKernel::emitWindow() {
  PoolType type = conv.getPool().getType();
  Value memory = view(conv.getPool()).memory;
  auto tile = VectorType::get({blockChannels, int64_t(conv.getWindow())},
                              type.getElementType());
  Value width = index(blockChannels), channels = dim(conv.getPool(), 1);
  auto loop = scf::ForOp::create(
      b, loc, arith::MulIOp::create(b, loc, h, width), channels,
      arith::MulIOp::create(b, loc, blocks, width));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value c = loop.getInductionVar();
  Value left = arith::SubIOp::create(b, loc, channels, c);
  Value rows = arith::MinUIOp::create(b, loc, left, width);
  Value window =
      tile::LoadOp::create(b, loc, tile, memory, ValueRange{slot, c, count},
                           ArrayRef<int64_t>{1, 2}, rows);
  tile::StoreOp::create(b, loc, window, memory, ValueRange{slot, c, index(0)},
                        ArrayRef<int64_t>{1, 2}, rows);
}

void CommitKernel::emit() {
  emitGrid();
  b.setInsertionPointToStart(&views.function.getBody().front());
  blocks = !rule      ? index(1)
           : counts() ? dim(rule.getKeys(), 1)
                      : dim(rule.getPool(), 1);
  n = tile::BlockIdOp::create(b, loc, b.getIndexType(), 0);
  h = tile::BlockIdOp::create(b, loc, b.getIndexType(), 1);
  slot = emitSlot(b, loc, views, slots, n);
  count = accepted ? elementAt(accepted, n) : index(0);
  auto branch = scf::IfOp::create(b, loc, emitLive(), /*withElse=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    if (counts())
      emitKeyHead();
    else if (rule)
      emitRule(h, count);
    if (conv)
      emitWindow();
  }
  func::ReturnOp::create(b, loc);
}

bool gdn::isCommitKernel(KernelOp kernel) {
  auto ops = kernel.getBody().front().without_terminator();
  return !ops.empty() &&
         llvm::all_of(ops, llvm::IsaPred<CommitConv1dOp, CommitDeltaRuleOp>);
}

LogicalResult gdn::emitCommitKernel(EntryViews &views, KernelOp kernel) {
  CommitKernel program(views, kernel);
  if (failed(checkKernelOperands(kernel)) || failed(program.collect()))
    return failure();
  program.emit();
  return success();
}
