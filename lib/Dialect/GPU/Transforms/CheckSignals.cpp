// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Signals between stages of an entry: what one stage awaits, those ahead of it
// clear and add up to. Of each function the check sees its counters, how much
// its blocks add to one, and of which turns of a loop it does; not which chunks
// those are.
#include "CheckOrder.h"
#include "GlobalAccess.h"

#include "gdn/Dialect/GPU/IR/GPU.h"
#include "gdn/Dialect/Tile/IR/StageFields.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

namespace {

/// What a stage awaits of those ahead of it in a variant.
class AwaitedCounters {
public:
  AwaitedCounters(gpu::AwaitSignalsOp await, ArrayRef<func::FuncOp> ahead);
  LogicalResult check();

private:
  SmallVector<gpu::SignalOp> findSignals(func::FuncOp stage);
  bool areClearedBy(func::FuncOp stage);
  LogicalResult checkSilent(func::FuncOp stage);
  LogicalResult checkAmount(gpu::SignalOp signal);
  LogicalResult checkTurns(ArrayRef<gpu::SignalOp> signals);
  InFlightDiagnostic refuse(Operation *op);

  gpu::AwaitSignalsOp await;
  ArrayRef<func::FuncOp> ahead;
  func::FuncOp follower;
  std::string counters; // in words
  DenseSet<StringAttr> read;
};

} // namespace

AwaitedCounters::AwaitedCounters(gpu::AwaitSignalsOp await,
                                 ArrayRef<func::FuncOp> ahead)
    : await(await), ahead(ahead),
      follower(await->getParentOfType<func::FuncOp>()),
      counters(describeInEntry(await.getView())) {
  follower.walk([&](Operation *op) {
    if (GlobalAccess access = GlobalAccess::get(op); access.op)
      if (StringAttr name = getNameInCall(access.root); name && !access.writes)
        read.insert(name);
  });
}

InFlightDiagnostic AwaitedCounters::refuse(Operation *op) {
  InFlightDiagnostic diag = op->emitOpError();
  if (op != await.getOperation())
    diag.attachNote(await.getLoc())
        << "stage '" << follower.getName() << "' awaits " << await.getTotal()
        << " of a counter here";
  return diag;
}

SmallVector<gpu::SignalOp> AwaitedCounters::findSignals(func::FuncOp stage) {
  SmallVector<gpu::SignalOp> signals;
  stage.walk([&](gpu::SignalOp signal) {
    if (describeInEntry(signal.getView()) == counters)
      signals.push_back(signal);
  });
  return signals;
}

bool AwaitedCounters::areClearedBy(func::FuncOp stage) {
  return stage
      .walk([&](Operation *op) {
        GlobalAccess access = GlobalAccess::get(op);
        return access.op && access.writes &&
                       describeInEntry(access.root) == counters
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// A stage without signals writes nothing that the follower reads.
LogicalResult AwaitedCounters::checkSilent(func::FuncOp stage) {
  StringAttr shared;
  stage.walk([&](Operation *op) {
    if (GlobalAccess access = GlobalAccess::get(op); access.op && access.writes)
      if (StringAttr name = getNameInCall(access.root);
          name && read.contains(name))
        shared = name;
  });
  if (!shared)
    return success();
  return refuse(stage) << "expects stage '" << stage.getName()
                       << "', which writes '" << shared.getValue()
                       << "', to signal " << counters << ", of which stage '"
                       << follower.getName() << "' awaits " << await.getTotal()
                       << ", but got no gdn_gpu.signal";
}

/// The warps of one block that run `op` at the same time.
static int64_t countSignalling(Operation *op) {
  auto warps = op->getParentOfType<gpu::WarpsOp>();
  return warps && !op->getParentOfType<gpu::EachWarpOp>() ? warps.getCount()
                                                          : 1;
}

LogicalResult AwaitedCounters::checkAmount(gpu::SignalOp signal) {
  auto stage = signal->getParentOfType<func::FuncOp>();
  const int64_t warps = countSignalling(signal),
                blocks = tile::StageFields(stage).getSameChunks(),
                total = int64_t(signal.getAmount()) * warps * blocks;
  if (total == int64_t(await.getTotal()))
    return success();
  return refuse(signal) << "expects stage '" << stage.getName()
                        << "' to add up to " << await.getTotal()
                        << " in a counter of " << counters << ", which stage '"
                        << follower.getName() << "' awaits, but got " << total
                        << ", " << signal.getAmount() << " of " << warps
                        << " warps in " << blocks
                        << " blocks with the same chunks";
}

/// How many turns ahead of its own one in a loop says something of; 0 if it
/// does of its own, or is in none.
static int64_t getLag(gpu::SignalOp signal) {
  auto loop = signal->getParentOfType<scf::ForOp>();
  std::optional<int64_t> step =
      loop ? getConstantIntValue(loop.getStep()) : std::nullopt;
  if (!step)
    return 0;
  SmallVector<Value> left(signal.getIndices());
  DenseSet<Value> seen;
  while (!left.empty()) {
    Value value = left.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!seen.insert(value).second || !op || !loop->isAncestor(op))
      continue;
    if (auto difference = dyn_cast<arith::SubIOp>(op);
        difference && difference.getLhs() == loop.getInductionVar())
      if (std::optional<int64_t> ahead =
              getConstantIntValue(difference.getRhs()))
        return *ahead / *step;
    llvm::append_range(left, op->getOperands());
  }
  return 0;
}

/// Of how many of the last turns one says something; 0 if of any number.
static int64_t getLast(gpu::SignalOp signal) {
  Operation *least =
      signal.getCount() ? signal.getCount().getDefiningOp() : nullptr;
  if (!isa_and_nonnull<arith::MinSIOp, arith::MinUIOp>(least))
    return 0;
  for (Value operand : least->getOperands())
    if (std::optional<int64_t> most = getConstantIntValue(operand))
      return *most;
  return 0;
}

/// One of them says something of all turns; or one in a loop of all but the
/// last, and one behind it of those.
LogicalResult AwaitedCounters::checkTurns(ArrayRef<gpu::SignalOp> signals) {
  gpu::SignalOp late, last;
  for (gpu::SignalOp signal : signals) {
    if (getLast(signal) != 0)
      last = signal;
    else if (getLag(signal) != 0)
      late = signal;
    else
      return success();
  }
  const int64_t turns = last ? getLast(last) : getLag(late);
  if (last && late && getLag(late) == turns)
    return success();
  gpu::SignalOp one = last ? last : late;
  InFlightDiagnostic diag =
      refuse(one) << "expects another gdn_gpu.signal of " << counters
                  << " in stage '"
                  << one->getParentOfType<func::FuncOp>().getName() << "', "
                  << (last ? "in a loop, of the turns ahead of the last "
                           : "behind the loop, of the last ")
                  << turns << ", of which this one says nothing, but got ";
  if (last && late)
    diag << "one of those ahead of the last " << getLag(late);
  else
    diag << "none";
  return diag;
}

LogicalResult AwaitedCounters::check() {
  std::optional<size_t> first; // that signals
  for (auto [i, stage] : llvm::enumerate(ahead)) {
    SmallVector<gpu::SignalOp> signals = findSignals(stage);
    if (signals.empty()) {
      if (failed(checkSilent(stage)))
        return failure();
      continue;
    }
    first = first.value_or(i);
    for (gpu::SignalOp signal : signals)
      if (failed(checkAmount(signal)))
        return failure();
    if (failed(checkTurns(signals)))
      return failure();
  }
  if (!first)
    return refuse(await) << "expects a stage ahead of '" << follower.getName()
                         << "' to signal " << counters << ", but got none";
  func::FuncOp telling = ahead[*first];
  if (!llvm::any_of(ahead.take_front(*first),
                    [&](func::FuncOp stage) { return areClearedBy(stage); }))
    return refuse(await) << "expects a stage ahead of '" << telling.getName()
                         << "', which signals, to clear " << counters
                         << ", but got none";
  return success();
}

/// await_signals_c4, signal_c4. A function that is alone is a part of an entry.
LogicalResult gdn::checkSignals(ModuleOp module) {
  SmallVector<VariantStages> variants = getVariantStages(module);
  for (VariantStages &variant : variants)
    for (auto [i, stage] : llvm::enumerate(variant.stages)) {
      SmallVector<gpu::AwaitSignalsOp> awaits;
      stage.walk([&](gpu::AwaitSignalsOp await) { awaits.push_back(await); });
      for (gpu::AwaitSignalsOp await : awaits)
        if (i != 0 && failed(AwaitedCounters(
                                 await, ArrayRef(variant.stages).take_front(i))
                                 .check()))
          return failure();
    }
  return success();
}
