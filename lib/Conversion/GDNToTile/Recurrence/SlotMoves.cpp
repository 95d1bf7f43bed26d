// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A slot is moved in pieces of so many bytes: rows of one head's state, or some
// channels of the convolution's inputs. A block serves one sequence of the
// batch and one piece of the first pool of states; of other pools it takes
// every so many pieces:
//
//   for each op, if its slots of the sequence are live:
//     for each piece of the block:  load (or zeros), store
//
// Channels come as (K-1) x channels, as the recurrence has them: either order
// in memory is then a matter of strides. Scales of a state's rows come as they
// lie, some heads x rows.
#include "Recurrence/SlotMoves.h"
#include "Program/CheckOperands.h"
#include "Program/Slots.h"

#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Support/LinearForm.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <numeric>

using namespace mlir;
using namespace gdn;

static constexpr int64_t maxPieceChannels = 128;
/// Blocks per sequence of a kernel without pools of states.
static constexpr int64_t blocksPerSequence = 8;

namespace {

/// How a pool's slot is cut.
struct Pieces {
  VectorType tile;
  SmallVector<int64_t> dims; // of the pool, those of the tile
  int64_t step;              // rows of a head, or channels or heads, per piece
  int64_t perHead;           // pieces of a head; 1 for channels and heads
};

class SlotMoves {
public:
  SlotMoves(EntryViews &views, KernelOp kernel, int64_t pieceBytes)
      : views(views), kernel(kernel), pieceBytes(pieceBytes),
        loc(kernel.getLoc()), b(kernel.getContext()) {}

  LogicalResult emit();

private:
  LogicalResult check(Operation *op);
  FailureOr<Pieces> choosePieces(Operation *op, PoolType pool, StringRef form);
  void emitGrid();
  void emitPieces(Operation *op, Value from, Value to);
  void emitPiece(Operation *op, Value from, Value to, Value head, Value part);

  static Value sourceOf(Operation *op) {
    auto copy = dyn_cast<PoolCopyOp>(op);
    return copy ? copy.getSource() : Value();
  }
  static Value targetOf(Operation *op) {
    if (auto copy = dyn_cast<PoolCopyOp>(op))
      return copy.getTarget();
    return cast<PoolZeroOp>(op).getPool();
  }
  static Value writeSlotsOf(Operation *op) {
    if (auto copy = dyn_cast<PoolCopyOp>(op))
      return copy.getWriteSlots();
    return cast<PoolZeroOp>(op).getSlots();
  }
  Value memory(Value pool) { return views.pools.find(pool)->second.memory; }
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value mul(Value x, Value y) {
    return b.createOrFold<arith::MulIOp>(loc, x, y);
  }
  Value blockId(int64_t axis) {
    return tile::BlockIdOp::create(b, loc, b.getIndexType(), axis);
  }

  EntryViews &views;
  KernelOp kernel;
  int64_t pieceBytes;
  Location loc;
  OpBuilder b;
  std::string sequenceForm;
  DenseMap<Operation *, Pieces> pieces;
  Operation *lead = nullptr; // whose states the grid counts
  Value n, head, part;       // of the block; head is null without a lead
  Value unit, units;         // of the sequence
};

} // namespace

static bool isMove(Operation &op) { return isa<PoolCopyOp, PoolZeroOp>(op); }

/// The largest divisor of `size` that is at most `limit`, at least 1.
static int64_t largestDivisor(int64_t size, int64_t limit) {
  int64_t divisor = std::max<int64_t>(1, std::min(size, limit));
  while (size % divisor != 0)
    --divisor;
  return divisor;
}

/// A number that divides every value of a form.
static int64_t divisorOf(StringRef text) {
  LinearForm form = llvm::cantFail(LinearForm::parse(text));
  int64_t divisor = form.getConstant();
  for (const LinearForm::Term &term : form.getTerms())
    divisor = std::gcd(divisor, term.coefficient);
  return std::max<int64_t>(1, divisor);
}

FailureOr<Pieces> SlotMoves::choosePieces(Operation *op, PoolType pool,
                                          StringRef form) {
  int64_t rank = pool.getRank();
  bool isStatic = rank == 3 || rank == 4;
  for (int64_t dim = 2; isStatic && dim < rank; ++dim)
    isStatic = !ShapedType::isDynamic(pool.getDimSize(dim));
  if (!isStatic)
    return op->emitOpError("expects a pool of rank 3 or 4 with static "
                           "dimensions from 2 on, but got ")
           << pool;
  Pieces cut;
  if (rank == 3) {
    cut.step = largestDivisor(divisorOf(form), maxPieceChannels);
    cut.perHead = 1;
    const int64_t inner = pool.getDimSize(2);
    const bool isWindow = inner <= cut.step;
    cut.dims =
        isWindow ? SmallVector<int64_t>{2, 1} : SmallVector<int64_t>{1, 2};
    cut.tile = isWindow
                   ? VectorType::get({inner, cut.step}, pool.getElementType())
                   : VectorType::get({cut.step, inner}, pool.getElementType());
    return cut;
  }
  // The columns of a tile lie side by side in the target.
  auto target = cast<MemRefType>(memory(targetOf(op)).getType());
  const bool isAcross = target.getStridesAndOffset().first[2] == 1;
  const int64_t rowDim = isAcross ? 3 : 2, columnDim = isAcross ? 2 : 3;
  int64_t rows = pool.getDimSize(rowDim), columns = pool.getDimSize(columnDim);
  int64_t rowBytes =
      columns * pool.getElementType().getIntOrFloatBitWidth() / 8;
  cut.step = largestDivisor(rows, pieceBytes / rowBytes);
  cut.perHead = rows / cut.step;
  cut.dims = {rowDim, columnDim};
  cut.tile = VectorType::get({cut.step, columns}, pool.getElementType());
  return cut;
}

LogicalResult SlotMoves::check(Operation *op) {
  if (!isMove(*op))
    return op->emitOpError("has no tile program beside ops that move slots");
  std::string sequences = getDimForm(writeSlotsOf(op), 0);
  if (sequenceForm.empty())
    sequenceForm = sequences;
  std::string form = getDimForm(targetOf(op), 1);
  if (auto copy = dyn_cast<PoolCopyOp>(op)) {
    std::string read = getDimForm(copy.getSlots(), 0);
    if (read != sequences)
      return op->emitOpError("expects 'write_slots' to be ")
             << read << ", as 'slots' are, but got " << sequences;
    if (std::string from = getDimForm(copy.getSource(), 1); from != form)
      return op->emitOpError("expects dim 1 of 'target' to be ")
             << from << ", that of 'source', but got " << form;
  }
  if (sequences != sequenceForm)
    return op->emitOpError("expects the ")
           << sequenceForm << " sequences of its kernel, but got " << sequences;
  auto pool = cast<PoolType>(targetOf(op).getType());
  FailureOr<Pieces> cut = choosePieces(op, pool, form);
  if (failed(cut))
    return failure();
  pieces[op] = *cut;
  if (!lead && pool.getRank() == 4)
    lead = op;
  return success();
}

void SlotMoves::emitGrid() {
  SmallVector<std::string> grid = {sequenceForm};
  n = blockId(0);
  if (lead) {
    int64_t perHead = pieces[lead].perHead;
    grid.push_back(getDimForm(targetOf(lead), 1));
    grid.push_back(std::to_string(perHead));
    head = blockId(1);
    part = blockId(2);
    Value count = index(perHead);
    unit = b.createOrFold<arith::AddIOp>(loc, mul(head, count), part);
    units = mul(b.createOrFold<memref::DimOp>(loc, memory(targetOf(lead)), 1),
                count);
  } else {
    grid.push_back(std::to_string(blocksPerSequence));
    unit = blockId(1);
    units = index(blocksPerSequence);
  }
  SmallVector<StringRef> forms(grid.begin(), grid.end());
  views.stage().setGrid(forms);
}

/// Piece `part` of a head, or of all channels, of which `head` is then null.
void SlotMoves::emitPiece(Operation *op, Value from, Value to, Value head,
                          Value part) {
  const Pieces &cut = pieces[op];
  Value first = mul(part, index(cut.step));
  auto at = [&](Value slot) -> SmallVector<Value> {
    if (head && cut.dims.front() == 3)
      return {slot, head, index(0), first};
    if (head)
      return {slot, head, first, index(0)};
    return {slot, first, index(0)};
  };
  Value piece;
  if (Value source = sourceOf(op)) {
    piece = tile::LoadOp::create(b, loc, cut.tile, memory(source), at(from),
                                 cut.dims, Value());
  } else {
    Value zero = arith::ConstantOp::create(
        b, loc, b.getZeroAttr(cut.tile.getElementType()));
    piece = tile::FillOp::create(b, loc, cut.tile, zero);
  }
  tile::StoreOp::create(b, loc, piece, memory(targetOf(op)), at(to), cut.dims,
                        Value());
}

/// The block's pieces of one pool.
void SlotMoves::emitPieces(Operation *op, Value from, Value to) {
  const Pieces &cut = pieces[op];
  bool hasHeads = cast<PoolType>(targetOf(op).getType()).getRank() == 4;
  if (lead && hasHeads && cut.perHead == pieces[lead].perHead &&
      getDimForm(targetOf(op), 1) == getDimForm(targetOf(lead), 1))
    return emitPiece(op, from, to, head, part);
  Value size = b.createOrFold<memref::DimOp>(loc, memory(targetOf(op)), 1);
  Value count =
      hasHeads ? mul(size, index(cut.perHead))
               : b.createOrFold<arith::DivUIOp>(loc, size, index(cut.step));
  auto loop = scf::ForOp::create(b, loc, unit, count, units);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value at = loop.getInductionVar();
  if (!hasHeads)
    return emitPiece(op, from, to, Value(), at);
  Value perHead = index(cut.perHead);
  emitPiece(op, from, to, b.createOrFold<arith::DivUIOp>(loc, at, perHead),
            b.createOrFold<arith::RemUIOp>(loc, at, perHead));
}

LogicalResult SlotMoves::emit() {
  SmallVector<Operation *> moves;
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    if (failed(check(&op)))
      return failure();
    moves.push_back(&op);
  }
  b.setInsertionPointToStart(&views.function.getBody().front());
  emitGrid();
  // All ids before the first store, so that none is read twice.
  struct Slots {
    Value from, to, live;
  };
  SmallVector<Slots> slots;
  for (Operation *op : moves) {
    Slots &own = slots.emplace_back();
    own.to = emitSlot(b, loc, views, writeSlotsOf(op), n);
    own.live = emitIsLive(b, loc, views, own.to, targetOf(op));
    auto copy = dyn_cast<PoolCopyOp>(op);
    if (!copy)
      continue;
    own.from = emitSlot(b, loc, views, copy.getSlots(), n);
    Value readable = emitIsLive(b, loc, views, own.from, copy.getSource());
    own.live = arith::AndIOp::create(b, loc, own.live, readable);
  }
  for (auto [op, own] : llvm::zip(moves, slots)) {
    auto branch = scf::IfOp::create(b, loc, own.live, /*withElse=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    emitPieces(op, own.from, own.to);
  }
  func::ReturnOp::create(b, loc);
  return success();
}

bool gdn::hasSlotMoves(KernelOp kernel) {
  return llvm::any_of(kernel.getBody().front(), isMove);
}

LogicalResult gdn::emitSlotMoves(EntryViews &views, KernelOp kernel,
                                 int64_t pieceBytes) {
  if (failed(checkKernelOperands(kernel)))
    return failure();
  return SlotMoves(views, kernel, pieceBytes).emit();
}
