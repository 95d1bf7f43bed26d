// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Places by one walk in program order. Every tile gets scratch of its own
// unless a rule below shows that it can share.
#include "TilePlaces.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace gdn;

static bool isTile(Value value) { return isa<VectorType>(value.getType()); }

unsigned TilePlaces::addScratch(VectorType type) {
  Place place;
  place.type = type;
  place.offset = scratchBytes;
  int64_t bytes =
      type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
  scratchBytes += llvm::alignTo(bytes, 64);
  places.push_back(place);
  return places.size() - 1;
}

/// True if the tile's rows are whole, contiguous rows of the view.
template <typename OpTy> static bool isWholeRows(OpTy op) {
  auto view = cast<MemRefType>(op.getView().getType());
  SmallVector<int64_t> strides;
  int64_t offset;
  ArrayRef<int64_t> dims = op.getDims();
  return !op.getRows() && dims.size() == 2 && dims[0] == view.getRank() - 2 &&
         dims[1] == view.getRank() - 1 &&
         view.getDimSize(dims[1]) == op.getTile().getType().getDimSize(1) &&
         succeeded(view.getStridesAndOffset(strides, offset)) &&
         strides.back() == 1;
}

/// The argument of the function that a view is cut from.
static Value rootOf(Value view) {
  while (Operation *op = view.getDefiningOp()) {
    if (!isa<memref::ReinterpretCastOp, memref::CastOp, memref::SubViewOp,
             memref::ExtractStridedMetadataOp>(op))
      break;
    view = op->getOperand(0);
  }
  return view;
}

/// True if an op strictly between `from` and `to` in one block may touch the
/// memory of `view` in the given way. Views of different arguments do not
/// overlap where one of them is written: binding checks that.
template <typename Effect>
static bool touchesMemory(Operation *from, Operation *to, Value view) {
  Value root = rootOf(view);
  for (Operation *op = from->getNextNode(); op && op != to;
       op = op->getNextNode()) {
    if (isMemoryEffectFree(op))
      continue;
    auto interface = dyn_cast<MemoryEffectOpInterface>(op);
    if (!interface)
      return true;
    SmallVector<MemoryEffects::EffectInstance> effects;
    interface.getEffects(effects);
    for (const MemoryEffects::EffectInstance &effect : effects)
      if (isa<Effect>(effect.getEffect()) &&
          (!effect.getValue() || rootOf(effect.getValue()) == root))
        return true;
  }
  return false;
}

/// A load whose only use reads it row by row, with no write in between, stays
/// where it is.
void TilePlaces::assignLoad(tile::LoadOp load) {
  Value tile = load.getTile();
  Operation *user = tile.hasOneUse() ? *tile.user_begin() : nullptr;
  auto scan = dyn_cast_or_null<tile::DeltaScanOp>(user);
  bool oneToken =
      scan && cast<VectorType>(scan.getKey().getType()).getDimSize(0) == 1;
  if (oneToken && scan.getState() == tile &&
      user->getBlock() == load->getBlock() && isWholeRows(load) &&
      !touchesMemory<MemoryEffects::Write>(load, user, load.getView())) {
    Place place;
    place.kind = Place::LoadedView;
    place.type = load.getTile().getType();
    place.access = load;
    places.push_back(place);
    of[tile] = places.size() - 1;
    ++numInPlace;
    return;
  }
  of[tile] = addScratch(load.getTile().getType());
}

/// The new state of one token goes straight to the view that stores it.
void TilePlaces::assignScan(tile::DeltaScanOp scan) {
  Value next = scan.getNewState();
  if (places[of[scan.getState()]].kind == Place::LoadedView) {
    auto store = next.hasOneUse() ? dyn_cast<tile::StoreOp>(*next.user_begin())
                                  : tile::StoreOp();
    // The scan's own state operand does not move; the indices must be known.
    auto indicesKnown = [&] {
      for (Value index : store.getIndices())
        if (Operation *def = index.getDefiningOp())
          if (def->getBlock() == scan->getBlock() &&
              !def->isBeforeInBlock(scan))
            return false;
      return true;
    };
    if (store && store->getBlock() == scan->getBlock() && isWholeRows(store) &&
        indicesKnown() &&
        !touchesMemory<MemoryEffects::Read>(scan, store, store.getView())) {
      Place place;
      place.kind = Place::StoredView;
      place.type = scan.getNewState().getType();
      place.access = store;
      places.push_back(place);
      of[next] = places.size() - 1;
      ++numInPlace;
      return;
    }
    of[next] = addScratch(scan.getNewState().getType());
    return;
  }
  if (!takeOver(next, scan.getState()))
    of[next] = addScratch(scan.getNewState().getType());
}

bool TilePlaces::takeOver(Value result, Value operand) {
  if (!operand.hasOneUse() || !has(operand) ||
      operand.getType() != result.getType() ||
      places[of[operand]].kind != Place::Scratch)
    return false;
  // A value from outside a loop is read again by the next iteration.
  if (operand.getParentBlock() != result.getParentBlock())
    return false;
  of[result] = of[operand];
  ++numInPlace;
  return true;
}

LogicalResult TilePlaces::assignLoop(scf::ForOp loop) {
  for (auto [init, arg, result] : llvm::zip(
           loop.getInitArgs(), loop.getRegionIterArgs(), loop.getResults())) {
    if (!isTile(init))
      continue;
    bool owned = init.hasOneUse() && has(init) &&
                 places[of[init]].kind == Place::Scratch &&
                 init.getParentBlock() == loop->getBlock();
    of[arg] = owned ? of[init] : addScratch(cast<VectorType>(init.getType()));
    of[result] = of[arg];
    numInPlace += owned;
  }
  return success();
}

FailureOr<TilePlaces> TilePlaces::assign(func::FuncOp function) {
  TilePlaces places;
  WalkResult walk = function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto map = dyn_cast<tile::MapRowsOp>(op)) {
      for (Value result : map.getResults()) {
        bool taken = llvm::any_of(map.getInputs(), [&](Value input) {
          // One result per place, and only where no other result has it.
          if (llvm::any_of(map.getResults(), [&](Value other) {
                return places.has(other) && places.has(input) &&
                       places[other] == places[input];
              }))
            return false;
          return places.takeOver(result, input);
        });
        if (!taken)
          places.of[result] =
              places.addScratch(cast<VectorType>(result.getType()));
      }
      return WalkResult::skip(); // the body works on rows, not tiles
    }
    if (auto load = dyn_cast<tile::LoadOp>(op)) {
      places.assignLoad(load);
    } else if (auto fill = dyn_cast<tile::FillOp>(op)) {
      places.of[fill.getTile()] = places.addScratch(fill.getTile().getType());
    } else if (auto conv = dyn_cast<tile::Conv1dOp>(op)) {
      places.of[conv.getResult()] =
          places.addScratch(conv.getResult().getType());
      if (!places.takeOver(conv.getNewWindow(), conv.getWindow()))
        places.of[conv.getNewWindow()] =
            places.addScratch(conv.getNewWindow().getType());
    } else if (auto scan = dyn_cast<tile::DeltaScanOp>(op)) {
      places.of[scan.getOutput()] =
          places.addScratch(scan.getOutput().getType());
      places.assignScan(scan);
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      (void)places.assignLoop(loop);
    } else if (!op->hasTrait<OpTrait::ConstantLike>() &&
               !isa<scf::YieldOp>(op) &&
               llvm::any_of(op->getResults(), isTile)) {
      op->emitOpError("expects to be a gdn_tile op or scf.for to have a tile "
                      "as its result");
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  return places;
}
