// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A block serves one sequence. It goes through all sequences, since where an
// element of prefill's lists lies depends on the sequences ahead of it, and how
// many there are on all:
//
//   for each sequence:  count elements, those ahead of the block's sequence too
//   store what verify and a commit read of the sequence
//   store the element that begins with it
//   if the block's number is that of an element behind the last: store it
//
// So every element of every result is stored by one block, and no block waits
// for another one.
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
  /// What a sequence is, from where it begins and what is said of it.
  struct Sequence {
    Value first, next, length, hasTokens, isPrefill;
  };
  /// What the loop over all sequences finds.
  struct Totals {
    Value end;    // of all tokens of sequences
    Value count;  // of elements
    Value isOpen; // whether the last element is a gap
    Value live;   // of the last sequence with tokens the number, plus 1
    Value first;  // of the block's sequence
    Value before; // elements that begin ahead of the block's sequence
    Value begins; // whether one begins with it
  };
  /// More of the block's sequence: whether it begins and is valid.
  struct Facts {
    Value goesOn, count, isValid;
  };

  Sequence read(Value i, Value first);
  Totals readAll();
  Facts check(const Sequence &own);
  void findPadding(const Totals &totals);
  void storeVerified(const Sequence &own, const Facts &facts,
                     const Totals &totals);
  void storeCommit(const Sequence &own, const Facts &facts);
  void storeElement(const Sequence &own, const Facts &facts, Value at);
  void storeElementsBehind(const Totals &totals);
  Value readSlot(Value column, Value isAllowed);

  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value flag(bool value) {
    return arith::ConstantOp::create(b, loc, b.getBoolAttr(value));
  }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
  Value sub(Value x, Value y) { return arith::SubIOp::create(b, loc, x, y); }
  Value least(Value x, Value y) { return arith::MinSIOp::create(b, loc, x, y); }
  Value most(Value x, Value y) { return arith::MaxSIOp::create(b, loc, x, y); }
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
  Value n, numSequences, tokens, columns;
  /// Where the tokens of all sequences end, and those that sequences behind
  /// them share; how many tokens each of these has.
  Value end, last, share;
};

} // namespace

void BatchPlan::store(Value value, Value result, Value at) {
  Type element = getElementTypeOrSelf(result);
  SmallVector<Value> found = getResultViews(views, kernel, result);
  if (!found.empty() && value.getType().isIndex())
    value = arith::IndexCastOp::create(b, loc, element, value);
  for (Value view : found)
    memref::StoreOp::create(b, loc, value, view, at);
}

BatchPlan::Sequence BatchPlan::read(Value i, Value first) {
  Value zero = index(0), one = index(1);
  Sequence s;
  s.first = first;
  s.next = most(first, element(op.getQueryStartLoc(), add(i, one)));
  s.length = sub(s.next, first);
  s.hasTokens = compare(P::sgt, s.length, zero);
  Value isVerified = compare(P::sge, element(op.getDrafts(), i), zero);
  if (op.countsSlots()) {
    Value goesOn = compare(P::sgt, element(op.getSeqLens(), i), one);
    isVerified =
        either(isVerified, both(compare(P::eq, s.length, one), goesOn));
  }
  s.isPrefill = both(s.hasTokens, no(isVerified));
  return s;
}

BatchPlan::Totals BatchPlan::readAll() {
  Value zero = index(0), none = flag(false);
  Value start = most(zero, element(op.getQueryStartLoc(), zero));
  auto loop =
      scf::ForOp::create(b, loc, zero, numSequences, index(1),
                         ValueRange{start, zero, none, zero, zero, zero, none});
  auto ends = loop.getResults();
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  auto so = loop.getRegionIterArgs();
  Value i = loop.getInductionVar(), isOwn = compare(P::eq, i, n);
  Sequence s = read(i, so[0]);
  Value begins = both(s.hasTokens, either(s.isPrefill, no(so[2])));
  Value count = add(so[1], select(begins, index(1), zero));
  scf::YieldOp::create(b, loc,
                       ValueRange{s.next, count,
                                  select(s.hasTokens, no(s.isPrefill), so[2]),
                                  select(s.hasTokens, add(i, index(1)), so[3]),
                                  select(isOwn, s.first, so[4]),
                                  select(compare(P::ult, i, n), count, so[5]),
                                  select(isOwn, begins, so[6])});
  return {ends[0], ends[1], ends[2], ends[3], ends[4], ends[5], ends[6]};
}

BatchPlan::Facts BatchPlan::check(const Sequence &own) {
  Value all = element(op.getSeqLens(), n);
  Facts facts;
  facts.goesOn = compare(P::sgt, all, own.length);
  facts.count = op.getAccepted() ? element(op.getAccepted(), n) : index(1);
  facts.isValid = both(own.hasTokens, both(compare(P::sle, own.length, all),
                                           compare(P::sle, own.next, tokens)));
  Value isShort = compare(P::sle, own.length, columns);
  facts.isValid = both(facts.isValid, either(own.isPrefill, isShort));
  if (!op.getAccepted())
    return facts;
  // Unsigned: a count below its range is above all.
  Value isCount = op.countsSlots()
                      ? compare(P::ult, sub(facts.count, index(1)), columns)
                      : compare(P::ule, facts.count, columns);
  Value needsNone = both(own.isPrefill, no(facts.goesOn));
  facts.isValid = both(facts.isValid, either(isCount, needsNone));
  return facts;
}

/// What sequences behind the last one with tokens have of the padding.
void BatchPlan::findPadding(const Totals &totals) {
  Value sharers = sub(numSequences, totals.live);
  Value some = most(sharers, index(1));
  end = least(tokens, totals.end);
  share = arith::DivUIOp::create(
      b, loc, add(sub(tokens, end), sub(some, index(1))), some);
  last = select(compare(P::sgt, sharers, index(0)), tokens, end);
}

/// The slot in that column of the block's sequence; -1 if the table has no such
/// column or it may not be read.
Value BatchPlan::readSlot(Value column, Value isAllowed) {
  Value width = memref::DimOp::create(
      b, loc, views.tensors.lookup(op.getBlockTable()), 1);
  // Unsigned: a negative column is past every end.
  Value isColumn = compare(P::ult, column, width);
  auto id = scf::IfOp::create(b, loc, {b.getIndexType()},
                              both(isColumn, isAllowed), true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(id.thenBlock());
  scf::YieldOp::create(b, loc, element(op.getBlockTable(), {n, column}));
  b.setInsertionPointToStart(id.elseBlock());
  scf::YieldOp::create(b, loc, index(-1));
  return id.getResult(0);
}

void BatchPlan::storeVerified(const Sequence &own, const Facts &facts,
                              const Totals &totals) {
  Value isOwn = both(facts.isValid, no(own.isPrefill));
  store(own.isPrefill, op.getIsPrefill(), n);
  Value behind = sub(n, totals.live);
  Value shared = add(end, arith::MulIOp::create(b, loc, behind, share));
  Value start = select(compare(P::ult, n, totals.live), own.first, shared);
  store(least(tokens, start), op.getVerifyCuSeqlens(), n);
  store(readSlot(index(0), isOwn), op.getVerifySlots(), n);
  store(select(isOwn, facts.count, index(0)), op.getVerifyAccepted(), n);
}

void BatchPlan::storeCommit(const Sequence &own, const Facts &facts) {
  Value commits = flag(false);
  Value accepted = facts.count;
  if (op.getCommits() == Commits::counted) {
    commits = both(facts.isValid, own.isPrefill);
    accepted = select(facts.goesOn, accepted, index(0));
  } else if (op.getCommits() != Commits::none) {
    Value waits = compare(P::sgt, facts.count, index(0));
    commits = both(facts.isValid, both(facts.goesOn, waits));
    if (op.getCommits() == Commits::prefill)
      commits = both(commits, own.isPrefill);
  }
  store(readSlot(index(0), commits), op.getCommitSlots(), n);
  store(select(commits, accepted, index(0)), op.getCommitAccepted(), n);
}

/// The element `at`, which begins with the block's sequence.
void BatchPlan::storeElement(const Sequence &own, const Facts &facts,
                             Value at) {
  Value isOwn = both(facts.isValid, own.isPrefill);
  store(least(tokens, own.first), op.getPrefillCuSeqlens(), at);
  store(own.isPrefill, op.getPrefillTaken(), at);
  store(either(no(own.isPrefill), facts.goesOn), op.getPrefillHasInitial(), at);
  store(readSlot(index(0), isOwn), op.getPrefillWriteSlots(), at);
  Value column = index(0);
  if (op.countsSlots())
    column = select(facts.goesOn, sub(facts.count, index(1)), column);
  store(readSlot(column, isOwn), op.getPrefillSlots(), at);
}

/// The element with the block's number, if it is behind those of sequences: the
/// first one has what is padding, unless that belongs to a gap.
void BatchPlan::storeElementsBehind(const Totals &totals) {
  {
    OpBuilder::InsertionGuard guard(b);
    enterIf(compare(P::uge, n, totals.count));
    Value isNext = compare(P::eq, n, totals.count);
    store(select(both(isNext, no(totals.isOpen)), end, last),
          op.getPrefillCuSeqlens(), n);
    store(flag(false), op.getPrefillTaken(), n);
    store(flag(true), op.getPrefillHasInitial(), n);
    store(index(-1), op.getPrefillWriteSlots(), n);
    store(index(-1), op.getPrefillSlots(), n);
  }
  OpBuilder::InsertionGuard guard(b);
  enterIf(compare(P::eq, n, index(0)));
  store(last, op.getPrefillCuSeqlens(), numSequences);
  store(last, op.getVerifyCuSeqlens(), numSequences);
}

void BatchPlan::emit() {
  b.setInsertionPointToStart(&views.function.getBody().front());
  std::string form = getDimForm(op.getSeqLens(), 0);
  views.stage().setGrid({StringRef(form)});
  n = tile::BlockIdOp::create(b, loc, b.getIndexType(), 0);
  numSequences = views.size(b, loc, op.getSeqLens(), 0);
  tokens = views.index(b, op.getTokens());
  columns = views.index(b, op.getColumns());
  Totals totals = readAll();
  findPadding(totals);
  Sequence own = read(n, totals.first);
  Facts facts = check(own);
  storeVerified(own, facts, totals);
  storeCommit(own, facts);
  {
    OpBuilder::InsertionGuard guard(b);
    enterIf(totals.begins);
    storeElement(own, facts, totals.before);
  }
  storeElementsBehind(totals);
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
  // An index is a symbol or a constant: nothing else stands outside of kernels.
  for (OpOperand &use : op->getOpOperands())
    if (isa<RankedTensorType>(use.get().getType()) &&
        !views.tensors.contains(use.get()))
      return op.emitOpError("expects operand ")
             << use.getOperandNumber()
             << " to be an argument of the entry on the way to tiles";
  BatchPlan(views, kernel, op).emit();
  return success();
}
