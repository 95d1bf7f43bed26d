// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Views that several blocks read and one of them writes. Which blocks do is in
// the indices: what comes from a coordinate of the block by a division alone is
// the same in several of them, also where it comes through shared memory, as
// the coordinates of a unit do that one role hands to the others. Such a store
// has to be in a branch that the last reader takes, and that one must have
// waited for the loads of the view.
#include "CheckOrder.h"
#include "GlobalAccess.h"
#include "SharedAccess.h"

#include "gdn/Dialect/GPU/IR/GPU.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

namespace {

/// What an index has of a coordinate of the block.
struct Parts {
  bool whole = false, quotient = false, rest = false;
  bool isShared() const { return quotient && !rest && !whole; }
};

constexpr unsigned maxAxes = 3;
using PartsByAxis = std::array<Parts, maxAxes>;

class LastReaderCheck {
public:
  explicit LastReaderCheck(FunctionOpInterface function);
  LogicalResult run();

private:
  SmallVector<Value> getSources(Value value) const;
  const PartsByAxis &getParts(Value value);
  bool isSharedByBlocks(const GlobalAccess &access);
  SmallVector<Value> getSharedIndices(const GlobalAccess &access);
  Operation *getAnswer(Operation *store);
  void findAnswers(Value condition);
  Operation *getAsked(Operation *answer);
  Operation *getDivision(Value index);
  Operation *getOwnBranch(Operation *op);
  LogicalResult checkStore(const GlobalAccess &store);
  bool waitsFor(Operation *asked, const GlobalAccess &load);

  FunctionOpInterface function;
  llvm::DenseMap<Value, PartsByAxis> parts;
  llvm::DenseMap<Operation *, unsigned> places; // in the order of the text
  SmallVector<GlobalAccess> accesses;
  SmallVector<Operation *> barriers, answers;
  /// What is stored into each shared tile or channel.
  llvm::DenseMap<Value, SmallVector<Value>> stored;
  llvm::DenseSet<Value> visited;
};

} // namespace

/// The values that `value` may be, or is computed from, in registers; none of
/// conditions.
static SmallVector<Value> getSourcesInRegisters(Value value) {
  SmallVector<Value> sources;
  Operation *op = value.getDefiningOp();
  if (!op) {
    auto argument = cast<BlockArgument>(value);
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (loop && argument == loop.getInductionVar())
      sources.push_back(loop.getLowerBound());
    else if (loop)
      sources.push_back(loop.getTiedLoopInit(argument)->get());
    return sources;
  }
  unsigned number = cast<OpResult>(value).getResultNumber();
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return {select.getTrueValue(), select.getFalseValue()};
  if (op->getNumRegions() == 0)
    return llvm::to_vector(op->getOperands());
  for (Region &region : op->getRegions())
    if (!region.empty() &&
        region.front().back().hasTrait<OpTrait::IsTerminator>() &&
        number < region.front().back().getNumOperands())
      sources.push_back(region.front().back().getOperand(number));
  return sources;
}

/// The tile or channel that `buffer` is of, whichever side of the channel.
static Value getTileOrChannel(Value buffer) {
  Value tile = getSharedTile(buffer);
  if (auto acquire = tile.getDefiningOp<gdn::gpu::AcquireOp>())
    return acquire.getChannel();
  if (auto receive = tile.getDefiningOp<gdn::gpu::ReceiveOp>())
    return receive.getChannel();
  if (auto commit = tile.getDefiningOp<gdn::gpu::CommitOp>())
    return commit.getChannel();
  return tile;
}

/// The same, and of what is loaded from shared memory what is stored there.
SmallVector<Value> LastReaderCheck::getSources(Value value) const {
  SmallVector<Value> sources = getSourcesInRegisters(value);
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<gdn::gpu::LoadSharedElementOp, gdn::gpu::LoadSharedOp>(
          op))
    llvm::append_range(sources,
                       stored.lookup(getTileOrChannel(op->getOperand(0))));
  return sources;
}

LastReaderCheck::LastReaderCheck(FunctionOpInterface function)
    : function(function) {
  unsigned place = 0;
  function->walk<WalkOrder::PreOrder>([&](Operation *op) {
    places[op] = place++;
    if (GlobalAccess access = GlobalAccess::get(op);
        access.op && !access.isScalar)
      accesses.push_back(access);
    if (isa<gdn::gpu::BarrierOp>(op))
      barriers.push_back(op);
    if (auto store = dyn_cast<gdn::gpu::StoreSharedOp>(op))
      stored[getTileOrChannel(store.getBuffer())].push_back(store.getTile());
  });
}

const PartsByAxis &LastReaderCheck::getParts(Value value) {
  if (auto found = parts.find(value); found != parts.end())
    return found->second;
  parts[value] = {}; // of a value that comes round
  PartsByAxis all;
  if (auto id = value.getDefiningOp<gdn::gpu::BlockIdOp>()) {
    if (id.getAxis() < maxAxes)
      all[id.getAxis()].whole = true;
    return parts[value] = all;
  }
  const bool divides = value.getDefiningOp<arith::DivUIOp>() ||
                       value.getDefiningOp<arith::DivSIOp>();
  const bool takesRest = value.getDefiningOp<arith::RemUIOp>() ||
                         value.getDefiningOp<arith::RemSIOp>();
  for (Value source : getSources(value)) {
    const PartsByAxis of = getParts(source);
    for (auto [mine, its] : llvm::zip_equal(all, of)) {
      mine.whole |= its.whole && !divides && !takesRest;
      mine.quotient |= its.quotient || (its.whole && divides);
      mine.rest |= its.rest || (its.whole && takesRest);
    }
  }
  return parts[value] = all;
}

bool LastReaderCheck::isSharedByBlocks(const GlobalAccess &access) {
  PartsByAxis all;
  for (Value index : access.indices)
    for (auto [mine, its] : llvm::zip_equal(all, getParts(index))) {
      mine.whole |= its.whole;
      mine.quotient |= its.quotient;
      mine.rest |= its.rest;
    }
  return llvm::any_of(all, [](Parts of) { return of.isShared(); });
}

SmallVector<Value>
LastReaderCheck::getSharedIndices(const GlobalAccess &access) {
  SmallVector<Value> indices;
  for (Value index : access.indices)
    if (llvm::any_of(getParts(index), [](Parts of) { return of.isShared(); }))
      indices.push_back(index);
  return indices;
}

/// The division that makes `index` the same in several blocks.
Operation *LastReaderCheck::getDivision(Value index) {
  SmallVector<Value> left = {index};
  llvm::DenseSet<Value> seen;
  while (!left.empty()) {
    Value value = left.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    if (Operation *op = value.getDefiningOp();
        isa_and_nonnull<arith::DivUIOp, arith::DivSIOp>(op) &&
        llvm::any_of(getParts(value), [](Parts of) { return of.isShared(); }))
      return op;
    llvm::append_range(left, getSources(value));
  }
  return nullptr;
}

/// Collects the answers that `condition` is computed from.
void LastReaderCheck::findAnswers(Value condition) {
  if (!visited.insert(condition).second)
    return;
  Operation *op = condition.getDefiningOp();
  if (isa_and_nonnull<gdn::gpu::LastReaderOp, gdn::gpu::IsLastOp>(op)) {
    answers.push_back(op);
    return;
  }
  for (Value source : getSources(condition))
    findAnswers(source);
}

/// The answer that lets the program come to `store`; null for none.
Operation *LastReaderCheck::getAnswer(Operation *store) {
  answers.clear();
  visited.clear();
  for (Operation *at = store; at != function; at = at->getParentOp())
    if (auto branch = dyn_cast<scf::IfOp>(at->getParentOp()))
      findAnswers(branch.getCondition());
  return answers.empty() ? nullptr : answers.front();
}

/// The op that counts the block among the readers.
Operation *LastReaderCheck::getAsked(Operation *answer) {
  auto last = dyn_cast<gdn::gpu::IsLastOp>(answer);
  if (!last)
    return answer;
  SmallVector<Value> left = {last.getTicket()};
  while (!left.empty()) {
    Value value = left.pop_back_val();
    if (auto take = value.getDefiningOp<gdn::gpu::TakeTicketOp>())
      return take;
    llvm::append_range(left, getSources(value));
  }
  return answer;
}

/// Whether the loaded value is there before `asked` counts: it is one of those
/// that it comes after, or all warps have met in between.
bool LastReaderCheck::waitsFor(Operation *asked, const GlobalAccess &load) {
  ValueRange after;
  if (auto last = dyn_cast<gdn::gpu::LastReaderOp>(asked))
    after = last.getAfter();
  if (auto take = dyn_cast<gdn::gpu::TakeTicketOp>(asked))
    after = take.getAfter();
  SmallVector<Value> left(after);
  llvm::DenseSet<Value> seen;
  while (!left.empty()) {
    Value value = left.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    if (value.getDefiningOp() == load.op)
      return true;
    llvm::append_range(left, getSourcesInRegisters(value));
  }
  const unsigned from = places[load.op], to = places[asked];
  return llvm::any_of(barriers, [&](Operation *barrier) {
    return from < places[barrier] && places[barrier] < to;
  });
}

/// The outermost branch around `op` that one block of those that share views
/// takes, as its coordinate says; null for none.
Operation *LastReaderCheck::getOwnBranch(Operation *op) {
  Operation *own = nullptr;
  for (Operation *at = op; at != function; at = at->getParentOp())
    if (auto branch = dyn_cast<scf::IfOp>(at->getParentOp());
        branch && llvm::any_of(getParts(branch.getCondition()),
                               [](Parts of) { return of.rest; }))
      own = branch;
  return own;
}

LogicalResult LastReaderCheck::checkStore(const GlobalAccess &store) {
  SmallVector<Value> shared = getSharedIndices(store);
  Operation *own = getOwnBranch(store.op);
  Operation *answer = getAnswer(store.op);
  for (const GlobalAccess &load : accesses) {
    if (load.writes || load.root != store.root ||
        isa<gdn::gpu::BeginLoadOp>(load.op) || !isSharedByBlocks(load) ||
        getSharedIndices(load) != shared || !areInSamePlane(store, load) ||
        (own && own->isAncestor(load.op)))
      continue;
    if (!answer) { // store_c4
      InFlightDiagnostic diag = store.op->emitOpError(
          "expects a branch that a gdn_gpu.last_reader or gdn_gpu.is_last "
          "takes around it, since other blocks read what it writes");
      diag.attachNote(load.op->getLoc()) << "read here";
      return diag;
    }
    Operation *asked = getAsked(answer);
    if (waitsFor(asked, load))
      continue;
    // last_reader_c2, take_ticket_c3
    InFlightDiagnostic diag = asked->emitOpError(
        "expects to be after what was loaded of the view that the last block "
        "writes, by 'after' or a gdn_gpu.barrier");
    diag.attachNote(load.op->getLoc()) << "loaded here";
    diag.attachNote(store.op->getLoc()) << "written here";
    return diag;
  }
  if (answer || own)
    return success();
  InFlightDiagnostic diag = store.op->emitOpError( // store_c4
      "expects a branch that one block takes around it, by "
      "gdn_gpu.last_reader, gdn_gpu.is_last or its coordinate, since other "
      "blocks write the same elements");
  if (Operation *divided = getDivision(shared.front()))
    diag.attachNote(divided->getLoc())
        << "the same in several blocks by this division";
  return diag;
}

LogicalResult LastReaderCheck::run() {
  for (const GlobalAccess &access : accesses)
    if (access.writes && isSharedByBlocks(access) && failed(checkStore(access)))
      return failure();
  return success();
}

LogicalResult gdn::checkLastReaders(FunctionOpInterface function) {
  return LastReaderCheck(function).run();
}
