// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The order of stages of an entry, of which one may begin while those ahead of
// it run. Each has waited where it ends, so who waits for the last one ahead
// has waited for all of them. What is left is what a stage reads ahead of its
// wait, and whom it lets begin ahead of it.
#include "CheckOrder.h"

#include "gdn/Dialect/GPU/IR/GPU.h"
#include "gdn/Dialect/Tile/IR/StageFields.h"
#include "gdn/Support/LinearForm.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace gdn;

namespace {

class VariantWalk {
public:
  explicit VariantWalk(VariantStages &variant) : variant(variant) {}
  LogicalResult run();

private:
  LogicalResult checkReads(func::FuncOp stage, const AheadOfWait &ahead);
  LogicalResult checkRelease(size_t number, const AheadOfWait &ahead);
  void addWritten(func::FuncOp stage);
  InFlightDiagnostic needsAwait(Operation *op);

  VariantStages &variant;
  /// By what they write, the last stage ahead and where it does.
  llvm::StringMap<Operation *> written;
};

} // namespace

static func::FuncOp getStage(Operation *op) {
  return op->getParentOfType<func::FuncOp>();
}

void VariantWalk::addWritten(func::FuncOp stage) {
  stage->walk([&](Operation *op) {
    GlobalAccess access = GlobalAccess::get(op);
    std::string name = access.writes ? describeInEntry(access.root) : "";
    if (!name.empty())
      written[name] = op;
  });
}

InFlightDiagnostic VariantWalk::needsAwait(Operation *op) {
  return op->emitOpError("expects a gdn_gpu.await_launch before it on every "
                         "way, since in variant '")
         << variant.variant.getValue() << "' ";
}

/// await_launch_c5
LogicalResult VariantWalk::checkReads(func::FuncOp stage,
                                      const AheadOfWait &ahead) {
  for (const GlobalAccess &access : ahead.accesses) {
    Operation *writer = written.lookup(describeInEntry(access.root));
    if (!writer)
      continue;
    InFlightDiagnostic diag = needsAwait(access.op)
                              << "stage '" << getStage(writer).getName()
                              << "' is ahead of this one, may still run, and "
                                 "writes "
                              << describeInEntry(access.root);
    diag.attachNote(writer->getLoc()) << "written here";
    return diag;
  }
  return success();
}

/// Whether `stage` has a block where `other` has one: a launch without blocks
/// is none. Sizes that nobody says are unknown.
static bool hasBlocksWith(func::FuncOp stage, func::FuncOp other) {
  ArrayAttr grid = tile::StageFields(stage).getGrid();
  ArrayAttr others = tile::StageFields(other).getGrid();
  return !grid || !others || llvm::all_of(grid, [&](Attribute form) {
    llvm::Expected<LinearForm> size =
        LinearForm::parse(cast<StringAttr>(form).getValue());
    if (!size) {
      llvm::consumeError(size.takeError());
      return false;
    }
    const bool isPositive =
        size->getConstant() > 0 &&
        llvm::all_of(size->getTerms(), [](const LinearForm::Term &term) {
          return term.coefficient > 0;
        });
    return isPositive || llvm::is_contained(others, form);
  });
}

static bool awaitsSignals(func::FuncOp stage) {
  return stage
      ->walk([](gpu::AwaitSignalsOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

/// release_launch_c3
LogicalResult VariantWalk::checkRelease(size_t number,
                                        const AheadOfWait &ahead) {
  if (!ahead.release)
    return success();
  func::FuncOp stage = variant.stages[number];
  ArrayRef<func::FuncOp> behind =
      ArrayRef(variant.stages).drop_front(number + 1);
  if (behind.empty())
    return needsAwait(ahead.release)
           << "no stage is behind this one: the next launch may begin behind "
              "it, and waits for this one alone";
  func::FuncOp next = behind.front();
  if (llvm::none_of(behind, [&](func::FuncOp other) {
        return hasBlocksWith(other, stage);
      }))
    return needsAwait(ahead.release)
           << "stage '" << next.getName()
           << "' behind this one may have no blocks where this one has some: "
              "the next launch may begin behind it, and waits for this one "
              "alone";
  if (tile::StageFields(next).overlapsWith(tile::Neighbour::last))
    return needsAwait(ahead.release)
           << "stage '" << next.getName()
           << "' begins behind it, and overlaps with this one: it reads what "
              "stages ahead of both have written, and does not wait for these";
  if (awaitsSignals(next))
    return needsAwait(ahead.release)
           << "stage '" << next.getName()
           << "' begins behind it, and awaits signals: stages ahead of both "
              "may not have cleared its counters yet";
  return success();
}

LogicalResult VariantWalk::run() {
  for (auto [number, stage] : llvm::enumerate(variant.stages)) {
    tile::StageFields fields(stage);
    if (number == 0 && fields.getAwaitsStage())
      return stage.emitOpError("expects a stage ahead of it in variant '")
             << variant.variant.getValue()
             << "', since its gdn_tile.stage has awaits_stage, but is the "
                "first one";
    AheadOfWait ahead = getAheadOfWait(stage);
    // Of two that overlap the second reads nothing that the first writes; the
    // first begins behind those ahead of both.
    if (fields.overlapsWith(tile::Neighbour::last))
      ahead.accesses.clear();
    if (failed(checkReads(stage, ahead)) || failed(checkRelease(number, ahead)))
      return failure();
    addWritten(stage);
  }
  return success();
}

SmallVector<VariantStages> gdn::getVariantStages(ModuleOp module) {
  llvm::MapVector<std::pair<StringAttr, StringAttr>, VariantStages> variants;
  for (auto stage : module.getOps<func::FuncOp>()) {
    tile::StageFields fields(stage);
    if (StringAttr entry = fields.getStageOf())
      for (StringAttr name : fields.getVariants()) {
        VariantStages &variant = variants[{entry, name}];
        variant.entry = entry;
        variant.variant = name;
        variant.stages.push_back(stage);
      }
  }
  return llvm::to_vector(llvm::make_second_range(variants));
}

/// A function that is alone is a part of an entry.
LogicalResult gdn::checkStages(ModuleOp module) {
  SmallVector<VariantStages> variants = getVariantStages(module);
  llvm::DenseMap<StringAttr, llvm::DenseSet<Operation *>> entries;
  for (VariantStages &variant : variants)
    for (func::FuncOp stage : variant.stages)
      entries[variant.entry].insert(stage);
  for (VariantStages &variant : variants)
    if (entries[variant.entry].size() > 1 && failed(VariantWalk(variant).run()))
      return failure();
  return success();
}
