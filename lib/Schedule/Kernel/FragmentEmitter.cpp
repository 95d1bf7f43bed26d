// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tile ops to fragment ops, one for one. A tile of rank 1 that a body uses
// whole is `per_column`; if it comes from elementwise work, that work is done
// where it is used, on the row.
#include "Kernel/FragmentEmitter.h"
#include "Kernel/OperandRoles.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace gdn;

gpu::RowsAttr gdn::getWarpRows(MLIRContext *context, int64_t columns) {
  int64_t vector = llvm::PowerOf2Ceil(llvm::divideCeil(columns, 32));
  return gpu::RowsAttr::get(context, /*warps=*/1, /*lanes=*/32,
                            std::min<int64_t>(vector, 8));
}

/// True if some body uses the whole of a rank-1 tile as one row, or a
/// convolution does.
static bool isRow(Value tile) {
  return llvm::any_of(tile.getUsers(), [&](Operation *user) {
    if (!isa<tile::TileDialect>(user->getDialect()))
      return true;
    if (auto conv = dyn_cast<tile::Conv1dOp>(user))
      return conv.getBias() == tile;
    // An elementwise map of a row makes a row.
    auto map = dyn_cast<tile::MapRowsOp>(user);
    return map && llvm::any_of(map.getResults(), [](Value result) {
             return cast<VectorType>(result.getType()).getRank() == 1 &&
                    isRow(result);
           });
  });
}

VectorType FragmentEmitter::tileType(Value tile) const {
  auto type = cast<VectorType>(tile.getType());
  if (!isInGroup(tile))
    return type;
  SmallVector<int64_t> shape(type.getShape());
  shape[0] = group->count;
  return VectorType::get(shape, type.getElementType());
}

gpu::FragmentType FragmentEmitter::typeOf(Value tile) const {
  VectorType type = tileType(tile);
  MLIRContext *context = type.getContext();
  auto rowsOf = [&](VectorType matrix) {
    return rows ? rows : getWarpRows(context, matrix.getDimSize(1));
  };
  if (type.getRank() == 2)
    return gpu::FragmentType::get(type, rowsOf(type));
  if (isRow(tile))
    return gpu::FragmentType::get(
        type,
        gpu::PerColumnAttr::get(
            context, rows ? rows : getWarpRows(context, type.getDimSize(0))));
  // One value per row of the matrices that it is used with; of several tokens
  // that no matrix is used with, a lane has one each, and so it has of as many
  // as there are lanes.
  gpu::RowsAttr layout = rows ? rows : getWarpRows(context, 1);
  if (!rows && ((isInGroup(tile) && group->count > 1) ||
                type.getDimSize(0) == gpu::warpThreads))
    layout =
        gpu::RowsAttr::get(context, /*warps=*/1, /*lanes=*/1, /*vector=*/1);
  // Those that it is made with come first, then those that it is used with.
  SmallVector<Operation *> maps(tile.getUsers());
  maps.insert(maps.begin(), tile.getDefiningOp());
  for (Operation *op : maps)
    if (auto map = dyn_cast_or_null<tile::MapRowsOp>(op))
      for (Value other : map.getInputs())
        if (auto matrix = cast<VectorType>(other.getType());
            matrix.getRank() == 2)
          layout = rowsOf(matrix);
  return gpu::FragmentType::get(type, gpu::PerRowAttr::get(context, layout));
}

Value FragmentEmitter::scalar(Value value) {
  if (Value known = scalars.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    scalar(operand);
  Operation *clone = b.clone(*op, scalars);
  return clone->getResult(cast<OpResult>(value).getResultNumber());
}

SmallVector<Value> FragmentEmitter::mapped(ValueRange values) {
  return llvm::map_to_vector(values,
                             [&](Value value) { return scalar(value); });
}

/// A tile of rank 1 as one row, in the body of a map: elementwise work is
/// repeated on the row, everything else is in `rowOf`.
Value FragmentEmitter::inlineRow(Value tile, DenseMap<Value, Value> &rowOf) {
  if (Value row = rowOf.lookup(tile))
    return row;
  auto map = tile.getDefiningOp<tile::MapRowsOp>();
  Block &body = map.getBody().front();
  int64_t size = cast<VectorType>(tile.getType()).getDimSize(0);
  IRMapping mapping;
  for (auto [arg, input] :
       llvm::zip(body.getArguments().drop_front(), map.getInputs()))
    mapping.map(arg, inlineRow(input, rowOf));
  for (Operation &op : body.without_terminator()) {
    SmallVector<Value> operands;
    for (Value operand : op.getOperands()) {
      if (!mapping.contains(operand))
        mapping.map(operand, vector::BroadcastOp::create(
                                 b, op.getLoc(),
                                 VectorType::get({size}, operand.getType()),
                                 scalar(operand)));
      operands.push_back(mapping.lookup(operand));
    }
    SmallVector<Type> types;
    for (Type type : op.getResultTypes())
      types.push_back(VectorType::get({size}, type));
    Operation *row = b.create(op.getLoc(), op.getName().getIdentifier(),
                              operands, types, op.getAttrs());
    mapping.map(op.getResults(), row->getResults());
  }
  unsigned number = cast<OpResult>(tile).getResultNumber();
  return rowOf[tile] = mapping.lookup(body.getTerminator()->getOperand(number));
}

/// The tiles that stand behind a row: those of a body that are no elementwise
/// work on others.
static void collectRowSources(Value tile, SetVector<Value> &sources) {
  auto map = tile.getDefiningOp<tile::MapRowsOp>();
  if (!map) {
    sources.insert(tile);
    return;
  }
  for (Value input : map.getInputs())
    collectRowSources(input, sources);
}

void FragmentEmitter::emitMap(tile::MapRowsOp map) {
  Location loc = map.getLoc();
  // A row that bodies use whole is computed there.
  if (llvm::all_of(map.getResults(), [](Value result) {
        return cast<VectorType>(result.getType()).getRank() == 1 &&
               isRow(result);
      }))
    return;
  SetVector<Value> captured, sources;
  for (Value tile : getUsedTiles(map))
    if (!llvm::is_contained(map.getInputs(), tile)) {
      captured.insert(tile);
      collectRowSources(tile, sources);
    }
  SmallVector<Value> inputs;
  for (Value input : map.getInputs())
    inputs.push_back(fragments.lookup(input));
  for (Value source : sources)
    inputs.push_back(fragments.lookup(source));
  SmallVector<Type> types;
  for (Value result : map.getResults())
    types.push_back(typeOf(result));

  Block &from = map.getBody().front();
  // Scalars that the body uses are computed before it.
  map.getBody().walk([&](Operation *op) {
    for (Value operand : op->getOperands())
      if (!isa<VectorType>(operand.getType()) &&
          !map.getBody().isAncestor(operand.getParentRegion()))
        scalar(operand);
  });
  auto result = gpu::MapRowsOp::create(b, loc, types, inputs);
  OpBuilder::InsertionGuard guard(b);
  Block *body = result.openBody(b);
  IRMapping mapping = scalars;
  for (auto [i, arg] : llvm::enumerate(from.getArguments()))
    mapping.map(arg, body->getArgument(i));
  DenseMap<Value, Value> rowOf;
  for (auto [source, arg] : llvm::zip(
           sources, body->getArguments().drop_front(from.getNumArguments())))
    rowOf[source] = arg;
  for (Value tile : captured)
    mapping.map(tile, inlineRow(tile, rowOf));
  for (Operation &op : from.without_terminator()) {
    for (Value operand : op.getOperands())
      if (Operation *constant = operand.getDefiningOp();
          constant && isa<VectorType>(operand.getType()) &&
          constant->hasTrait<OpTrait::ConstantLike>() &&
          !mapping.contains(operand))
        b.clone(*constant, mapping);
    b.clone(op, mapping);
  }
  SmallVector<Value> yielded;
  for (Value value : from.getTerminator()->getOperands())
    yielded.push_back(mapping.lookup(value));
  gpu::YieldOp::create(b, loc, yielded);
  for (auto [tile, fragment] : llvm::zip(map.getResults(), result.getResults()))
    fragments[tile] = fragment;
}

void FragmentEmitter::emit(Operation *op) {
  Location loc = op->getLoc();
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](tile::LoadOp load) {
        Value view = scalar(load.getView());
        Value rowCount = load.getRows() ? scalar(load.getRows()) : Value();
        if (isInGroup(load.getTile()))
          rowCount = group->valid;
        fragments[load.getTile()] = gpu::LoadOp::create(
            b, loc, typeOf(load.getTile()), view, mapped(load.getIndices()),
            load.getDims(), rowCount, begun.lookup(load.getTile()),
            getAlignment(view));
      })
      .Case([&](tile::FillOp fill) {
        fragments[fill.getTile()] = gpu::FillOp::create(
            b, loc, typeOf(fill.getTile()), scalar(fill.getValue()));
      })
      .Case([&](tile::MapRowsOp map) { emitMap(map); })
      .Case([&](tile::Conv1dOp conv) {
        Value bias =
            conv.getBias() ? fragments.lookup(conv.getBias()) : Value();
        auto result = gpu::Conv1dOp::create(
            b, loc, typeOf(conv.getResult()), typeOf(conv.getNewWindow()),
            fragments.lookup(conv.getInput()),
            fragments.lookup(conv.getWindow()),
            fragments.lookup(conv.getWeight()), bias,
            isInGroup(conv.getInput()) ? group->valid
                                       : scalar(conv.getValid()));
        fragments[conv.getResult()] = result.getResult();
        fragments[conv.getNewWindow()] = result.getNewWindow();
      });
}

void FragmentEmitter::emitPrefetch(tile::LoadOp load) {
  gpu::PrefetchOp::create(b, load.getLoc(), scalar(load.getView()),
                          mapped(load.getIndices()), load.getDims(),
                          typeOf(load.getTile()));
}

bool FragmentEmitter::mayBegin(tile::LoadOp load) const {
  gpu::FragmentType type = typeOf(load.getTile());
  APInt rows;
  bool isWhole =
      !load.getRows() || (matchPattern(load.getRows(), m_ConstantInt(&rows)) &&
                          rows == type.getDimSize(0));
  // Copies on the side have 4 bytes at least.
  int64_t bytes = type.getElementType().getIntOrFloatBitWidth() / 8;
  return isWhole && type.getRows().getWarps() == 1 &&
         type.getRows().getVector() * bytes >= 4 &&
         type.getLocalSize() * gpu::warpThreads ==
             cast<VectorType>(load.getTile().getType()).getNumElements();
}

void FragmentEmitter::emitBegin(tile::LoadOp load, Value buffer) {
  gpu::BeginLoadOp::create(b, load.getLoc(), scalar(load.getView()),
                           mapped(load.getIndices()), load.getDims(), buffer,
                           typeOf(load.getTile()));
}

/// What was loaded of the views that `branch` writes.
SmallVector<Value> FragmentEmitter::getReads(Operation *branch,
                                             ArrayRef<Operation *> loads) {
  SetVector<Value> views;
  branch->walk([&](tile::StoreOp store) { views.insert(store.getView()); });
  SmallVector<Value> reads;
  for (Operation *load : loads)
    if (auto read = dyn_cast<tile::LoadOp>(load);
        read && views.contains(read.getView()))
      reads.push_back(fragments.lookup(read.getTile()));
  return reads;
}

Value FragmentEmitter::emitTicket(Operation *op, ArrayRef<Operation *> loads) {
  auto branch = dyn_cast<scf::IfOp>(op);
  auto last = branch
                  ? branch.getCondition().getDefiningOp<tile::LastInGroupOp>()
                  : tile::LastInGroupOp();
  if (!last)
    return nullptr;
  return gpu::TakeTicketOp::create(
      b, op->getLoc(), b.getI32Type(), scalar(last.getGroup()),
      scalar(last.getCount()), getReads(op, loads));
}

bool gdn::hasIdleLanes(Value fragment) {
  auto type = cast<gpu::FragmentType>(fragment.getType());
  gpu::RowsAttr rows = type.getRows();
  return type.getShape().back() < rows.getLanes() * rows.getVector();
}

/// Whether `branch` loads from a view that it stores to.
static bool storesWhatItLoads(scf::IfOp branch) {
  SmallPtrSet<Value, 4> loaded;
  branch.walk([&](tile::LoadOp load) { loaded.insert(load.getView()); });
  return branch
      .walk([&](tile::StoreOp store) {
        return loaded.contains(store.getView()) ? WalkResult::interrupt()
                                                : WalkResult::advance();
      })
      .wasInterrupted();
}

void FragmentEmitter::emitStores(Operation *op, ArrayRef<Operation *> loads) {
  if (auto store = dyn_cast<tile::StoreOp>(op)) {
    Value view = scalar(store.getView());
    Value rowCount = store.getRows() ? scalar(store.getRows()) : Value();
    if (isInGroup(store.getTile()))
      rowCount = rowCount ? arith::MinUIOp::create(b, op->getLoc(), rowCount,
                                                   group->valid)
                                .getResult()
                          : group->valid;
    gpu::StoreOp::create(b, op->getLoc(), fragments.lookup(store.getTile()),
                         view, mapped(store.getIndices()), store.getDims(),
                         rowCount, getAlignment(view));
    return;
  }
  auto branch = cast<scf::IfOp>(op);
  Value condition;
  if (auto last = branch.getCondition().getDefiningOp<tile::LastInGroupOp>();
      last && !scalars.contains(last.getLast())) {
    if (Value ticket = tickets.lookup(op))
      condition = gpu::IsLastOp::create(b, op->getLoc(), b.getI1Type(), ticket,
                                        scalar(last.getCount()));
    else
      condition = gpu::LastReaderOp::create(
          b, op->getLoc(), b.getI1Type(), scalar(last.getGroup()),
          scalar(last.getCount()), getReads(op, loads));
  } else {
    condition = scalar(branch.getCondition());
  }
  auto result =
      scf::IfOp::create(b, op->getLoc(), condition, /*withElse=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(result.thenBlock());
  emitBranch(branch, loads);
}

void FragmentEmitter::emitBranch(scf::IfOp branch,
                                 ArrayRef<Operation *> loads) {
  IRMapping outside = scalars;
  bool hasMet = !storesWhatItLoads(branch);
  for (Operation &inner : branch.thenBlock()->without_terminator()) {
    bool stores = isa<tile::StoreOp>(inner);
    inner.walk([&](tile::StoreOp) { stores = true; });
    // Several lanes may have loaded what one of them stores.
    if (stores && !std::exchange(hasMet, true))
      gpu::WarpBarrierOp::create(b, inner.getLoc());
    if (stores)
      emitStores(&inner, loads);
    else if (makesTile(&inner))
      emit(&inner);
    else
      copyScalar(b, &inner, scalars);
  }
  scalars = outside; // what was computed inside ends with it
}
