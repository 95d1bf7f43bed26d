// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A block serves one sequence. It goes through all sequences, since where an
// element of the lists lies depends on the sequences ahead of it, and how many
// there are on all:
//
//   for each sequence:  count elements, those ahead of the block's sequence too
//   store the flag of the sequence, and the element that begins with it
//   if the block's number is that of an element behind the last: store it
//
// So every element of every list is stored by one block, and no block waits for
// another one.
#include "Recurrence/BatchPlan.h"
#include "Program/Slots.h"

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

using P = arith::CmpIPredicate;

namespace {

class BatchPlan {
public:
  BatchPlan(EntryViews &views, KernelOp kernel, PlanBatchOp op)
      : views(views), kernel(kernel), op(op), loc(op.getLoc()),
        b(op.getContext()) {}

  void emit();

private:
  /// What a sequence is, from its tokens, which end at `next`.
  struct Sequence {
    Value first, next, tokens, hasTokens, isPrefill;
  };
  /// What the loop over all sequences finds.
  struct Totals {
    Value before; // elements that begin ahead of the block's sequence
    Value begins; // whether one begins with it
    Value count;  // of all elements
    Value end;    // of the last tokens
  };

  Sequence read(Value n, Value first);
  Totals countElements();
  void storeElement(const Sequence &own, Value at);
  void storePadding(const Totals &totals);
  Value readSlot(Value column, Value isAllowed);
  Value readLastSlot(const Sequence &own, Value hasInitial);

  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value flag(bool value) {
    return arith::ConstantOp::create(b, loc, b.getBoolAttr(value));
  }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
  Value sub(Value x, Value y) { return arith::SubIOp::create(b, loc, x, y); }
  Value both(Value x, Value y) { return arith::AndIOp::create(b, loc, x, y); }
  Value either(Value x, Value y) { return arith::OrIOp::create(b, loc, x, y); }
  Value no(Value x) { return arith::XOrIOp::create(b, loc, x, flag(true)); }
  Value compare(P how, Value x, Value y) {
    return arith::CmpIOp::create(b, loc, how, x, y);
  }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, loc, condition, x, y);
  }
  Value element(Value tensor, ValueRange at) {
    return emitElement(b, loc, views, tensor, at);
  }
  /// Stores an index or a flag as element `at` of the result, wherever the
  /// entry gives it.
  void store(Value value, Value result, Value at);
  scf::IfOp enterIf(Value condition) {
    auto branch = scf::IfOp::create(b, loc, condition, /*withElse=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
    return branch;
  }

  EntryViews &views;
  KernelOp kernel;
  PlanBatchOp op;
  Location loc;
  OpBuilder b;
  Value n, numSequences;
};

} // namespace

/// The views that receive a result of the kernel's op.
static SmallVector<Value> getResultViews(const EntryViews &views,
                                         KernelOp kernel, Value result) {
  Operation *yield = kernel.getBody().front().getTerminator();
  Operation *end = kernel->getBlock()->getTerminator();
  SmallVector<Value> found;
  for (auto [yielded, given] :
       llvm::zip(yield->getOperands(), kernel.getResults()))
    for (auto [returned, view] : llvm::zip(end->getOperands(), views.results))
      if (yielded == result && returned == given)
        found.push_back(view);
  return found;
}

void BatchPlan::store(Value value, Value result, Value at) {
  Type element = getElementTypeOrSelf(result);
  SmallVector<Value> found = getResultViews(views, kernel, result);
  if (!found.empty() && value.getType().isIndex())
    value = arith::IndexCastOp::create(b, loc, element, value);
  for (Value view : found)
    memref::StoreOp::create(b, loc, value, view, at);
}

BatchPlan::Sequence BatchPlan::read(Value n, Value first) {
  Value zero = index(0), one = index(1);
  Sequence s;
  s.first = first;
  s.next = element(op.getQueryStartLoc(), add(n, one));
  s.tokens = sub(s.next, first);
  s.hasTokens = compare(P::sgt, s.tokens, zero);
  Value isVerified = compare(P::sge, element(op.getDrafts(), n), zero);
  if (op.getAccepted()) {
    Value goesOn = compare(P::sgt, element(op.getSeqLens(), n), one);
    isVerified =
        either(isVerified, both(compare(P::eq, s.tokens, one), goesOn));
  }
  s.isPrefill = both(s.hasTokens, no(isVerified));
  return s;
}

BatchPlan::Totals BatchPlan::countElements() {
  Value zero = index(0), none = flag(false);
  Value start = element(op.getQueryStartLoc(), zero);
  // Whether the last element is one of verified sequences, which grows.
  auto loop =
      scf::ForOp::create(b, loc, zero, numSequences, index(1),
                         ValueRange{start, zero, zero, none, none, zero});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  auto state = loop.getRegionIterArgs();
  Value i = loop.getInductionVar(), count = state[1], isOpen = state[3];
  Sequence s = read(i, state[0]);
  Value begins = both(s.hasTokens, either(s.isPrefill, no(isOpen)));
  Value next = add(count, select(begins, index(1), zero));
  scf::YieldOp::create(
      b, loc,
      ValueRange{s.next, next, select(compare(P::ult, i, n), next, state[2]),
                 select(s.hasTokens, no(s.isPrefill), isOpen),
                 select(compare(P::eq, i, n), begins, state[4]),
                 select(s.hasTokens, s.next, state[5])});
  return {loop.getResult(2), loop.getResult(4), loop.getResult(1),
          loop.getResult(5)};
}

/// The slot in that column of the block's sequence; -1 if the table has no such
/// column or it may not be read.
Value BatchPlan::readSlot(Value column, Value isAllowed) {
  Value columns = memref::DimOp::create(
      b, loc, views.tensors.lookup(op.getBlockTable()), 1);
  // Unsigned: a negative column is past every end.
  Value isColumn = compare(P::ult, column, columns);
  auto id = scf::IfOp::create(b, loc, {b.getIndexType()},
                              both(isColumn, isAllowed), true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(id.thenBlock());
  scf::YieldOp::create(b, loc, element(op.getBlockTable(), {n, column}));
  b.setInsertionPointToStart(id.elseBlock());
  scf::YieldOp::create(b, loc, index(-1));
  return id.getResult(0);
}

/// The slot of the state after the last accepted token; -1 if there is none.
Value BatchPlan::readLastSlot(const Sequence &own, Value hasInitial) {
  Value column = index(0);
  if (op.getAccepted()) {
    Value last = sub(element(op.getAccepted(), n), index(1));
    column = select(hasInitial, last, column);
  }
  return readSlot(column,
                  compare(P::sge, element(op.getSeqLens(), n), own.tokens));
}

/// The element `at`, which begins with the block's sequence.
void BatchPlan::storeElement(const Sequence &own, Value at) {
  store(own.first, op.getCuSeqlens(), at);
  store(own.isPrefill, op.getTaken(), at);
  auto branch = scf::IfOp::create(b, loc, own.isPrefill, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  Value hasInitial = compare(P::sgt, element(op.getSeqLens(), n), own.tokens);
  store(hasInitial, op.getHasInitial(), at);
  store(readSlot(index(0), flag(true)), op.getWriteSlots(), at);
  store(readLastSlot(own, hasInitial), op.getSlots(), at);
  b.setInsertionPointToStart(branch.elseBlock());
  store(flag(true), op.getHasInitial(), at);
  store(index(-1), op.getWriteSlots(), at);
  store(index(-1), op.getSlots(), at);
}

/// The element with the block's number, if it is behind the last one.
void BatchPlan::storePadding(const Totals &totals) {
  {
    OpBuilder::InsertionGuard guard(b);
    enterIf(compare(P::uge, n, totals.count));
    store(totals.end, op.getCuSeqlens(), n);
    store(flag(false), op.getTaken(), n);
    store(flag(true), op.getHasInitial(), n);
    store(index(-1), op.getWriteSlots(), n);
    store(index(-1), op.getSlots(), n);
  }
  OpBuilder::InsertionGuard guard(b);
  enterIf(compare(P::eq, n, index(0)));
  store(totals.end, op.getCuSeqlens(), numSequences);
}

void BatchPlan::emit() {
  b.setInsertionPointToStart(&views.function.getBody().front());
  std::string form = getDimForm(op.getSeqLens(), 0);
  views.stage().setGrid({StringRef(form)});
  n = tile::BlockIdOp::create(b, loc, b.getIndexType(), 0);
  numSequences = views.size(b, loc, op.getSeqLens(), 0);
  Totals totals = countElements();
  Sequence own = read(n, element(op.getQueryStartLoc(), n));
  store(own.isPrefill, op.getIsPrefill(), n);
  {
    OpBuilder::InsertionGuard guard(b);
    enterIf(totals.begins);
    storeElement(own, totals.before);
  }
  storePadding(totals);
  func::ReturnOp::create(b, loc);
}

bool gdn::plansBatch(KernelOp kernel) {
  return isa<PlanBatchOp>(kernel.getBody().front().front());
}

LogicalResult gdn::emitBatchPlan(EntryViews &views, KernelOp kernel) {
  Block &body = kernel.getBody().front();
  auto op = cast<PlanBatchOp>(body.front());
  if (op->getNextNode() != body.getTerminator())
    return op.emitOpError("expects to be the only op of its kernel");
  for (OpOperand &use : op->getOpOperands())
    if (!views.tensors.contains(use.get()))
      return op.emitOpError("expects operand ")
             << use.getOperandNumber()
             << " to be an argument of the entry on the way to tiles";
  BatchPlan(views, kernel, op).emit();
  return success();
}
