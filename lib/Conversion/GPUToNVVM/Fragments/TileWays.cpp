// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The accesses of a load or store of a fragment, row by row and piece by piece.
#include "Fragments/TileWays.h"

#include "Copies/TileCopy.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace gdn;

static constexpr int64_t minCopyBytes = 4; // of an asynchronous copy

/// Keeps `loaded` where it is: LLVM would move it to the block of its first
/// use, behind the work that should hide its latency. No instruction comes of
/// it.
static void pin(OpBuilder &b, Location loc, Value loaded) {
  Value first = loaded;
  if (isa<VectorType>(first.getType()))
    first = vector::ExtractOp::create(b, loc, first, 0);
  bool isHalf = first.getType().getIntOrFloatBitWidth() == 16;
  if (isHalf)
    first = arith::BitcastOp::create(b, loc, b.getI16Type(), first);
  emitAssembly(b, loc, Type(), first, "", isHalf ? "h" : "f",
               /*hasSideEffects=*/true);
}

/// Where the thread's element `position` is copied to.
Value TileAccess::getCopied(int64_t position) {
  const int64_t size = getLocalType(type).getNumElements() * bytes;
  Value offset =
      a.add(a.mul(threads.lane, a.i32(size)), a.i32(position * bytes));
  return a.advance(memory.begun, offset);
}

Value TileAccess::load(Value pointer, int64_t position, int64_t elements) {
  Type loaded = elements == 1 ? type.getElementType() : vectorOf(elements);
  const int64_t size = elements * bytes;
  if (isBegun && size >= minCopyBytes) {
    NVVM::CpAsyncOp::create(b, loc, getCopied(position), pointer, size,
                            size == maxAccessBytes
                                ? NVVM::LoadCacheModifierKind::CG
                                : NVVM::LoadCacheModifierKind::CA,
                            Value());
    return arith::ConstantOp::create(b, loc, loaded, b.getZeroAttr(loaded));
  }
  Value value = LLVM::LoadOp::create(
      b, loc, loaded, pointer, /*alignment=*/size,
      /*isVolatile=*/false, /*isNonTemporal=*/false, memory.isInvariant);
  if (isBegun)
    LLVM::StoreOp::create(b, loc, value, getCopied(position), size);
  else if (memory.isGlobal)
    pin(b, loc, value);
  return value;
}

void TileAccess::store(Value value, Value pointer) {
  int64_t elements = 1;
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    elements = vector.getNumElements();
  LLVM::StoreOp::create(b, loc, value, pointer, /*alignment=*/elements * bytes);
}

/// True if position `row` holds a row to be accessed; null if it always does.
Value TileAccess::rowMask(int64_t row) {
  if (type.isPerColumn())
    return nullptr;
  Value number = threads.row(a, layout, numRows, row);
  if (rowLimit)
    return a.isLess(a.toI64(number), a.toI64(rowLimit));
  if (localRows * layout.getWarps() * layout.getGroups() == numRows)
    return nullptr;
  return a.isLess(number, a.i32(numRows));
}

/// `access` under a condition; for loads, zeros where it does not hold.
Value TileAccess::guarded(Value condition, VectorType type,
                          function_ref<Value()> access) {
  if (!condition)
    return access();
  TypeRange results = {};
  Type carried = getCarriedType(type);
  if (!stored)
    results = carried;
  auto branch =
      scf::IfOp::create(b, loc, results, condition, /*withElse=*/!stored);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  Value value = access();
  if (stored)
    return nullptr;
  scf::YieldOp::create(b, loc, toCarried(b, loc, value));
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(
      b, loc,
      arith::ConstantOp::create(b, loc, b.getZeroAttr(carried)).getResult());
  b.setInsertionPointAfter(branch);
  return fromCarried(b, loc, branch.getResult(0), type);
}

Value TileAccess::emitWay(Way way) {
  if (way == Way::columns)
    return emitColumns();
  if (way == Way::runs)
    return emitRuns();
  int64_t columns = pieces * vector;
  Value local = stored ? Value() : zeros(getLocalType(type));
  for (int64_t row = 0; row < localRows; ++row) {
    Value part = guarded(rowMask(row), vectorOf(columns),
                         [&] { return emitRow(way, row); });
    if (!stored)
      local = vector::InsertStridedSliceOp::create(
          b, loc, part, local, ArrayRef<int64_t>{row * columns},
          ArrayRef<int64_t>{1});
  }
  return local;
}

Value TileAccess::emitRow(Way way, int64_t row) {
  Value pointer = advance(origin, memory.row, row * layout.getRowStep());
  Value local = stored ? Value() : zeros(vectorOf(pieces * vector));
  for (int64_t piece = 0; piece < pieces; ++piece) {
    int64_t first = piece * layout.getLanes() * vector;
    Value mask;
    bool isCut =
        !type.isPerRow() && first + layout.getLanes() * vector > numColumns;
    bool isCutInside = isCut && numColumns % vector != 0;
    if (isCut && !isCutInside)
      mask = a.isLess(threads.column(a, layout), a.i32(numColumns - first));
    Value part = guarded(mask, vectorOf(vector), [&] {
      return emitPiece(isCutInside ? Way::elements : way, pointer, row, piece);
    });
    if (!stored)
      local = vector::InsertStridedSliceOp::create(
          b, loc, part, local, ArrayRef<int64_t>{piece * vector},
          ArrayRef<int64_t>{1});
  }
  return local;
}

Value TileAccess::emitPiece(Way way, Value pointer, int64_t row,
                            int64_t piece) {
  int64_t first = piece * layout.getLanes() * vector;
  int64_t position = (row * pieces + piece) * vector;
  int64_t step =
      way == Way::pieces ? std::min(vector, maxAccessBytes / bytes) : 1;
  // Seen from here, the columns of a piece lie side by side.
  Stride column = memory.column;
  if (way == Way::pieces)
    column = {bytes, nullptr};
  bool isCutInside = !type.isPerRow() && numColumns % vector != 0 &&
                     first + layout.getLanes() * vector > numColumns;
  Value local = stored ? Value() : zeros(vectorOf(vector));
  for (int64_t e = 0; e < vector; e += step) {
    Value mask;
    if (isCutInside)
      mask = a.isLess(threads.column(a, layout), a.i32(numColumns - first - e));
    Value part = guarded(mask, vectorOf(step), [&]() -> Value {
      Value at = advance(pointer, column, first + e);
      if (!stored) {
        Value loaded = load(at, position + e, step);
        if (step == 1)
          loaded = vector::BroadcastOp::create(b, loc, vectorOf(1), loaded);
        return loaded;
      }
      Value value = this->part(position + e, step);
      if (step == 1)
        value = vector::ExtractOp::create(b, loc, value, 0);
      store(value, at);
      return nullptr;
    });
    if (!stored)
      local = vector::InsertStridedSliceOp::create(
          b, loc, part, local, ArrayRef<int64_t>{e}, ArrayRef<int64_t>{1});
  }
  return local;
}

/// All rows of a piece's columns at once: element (row, e) of a piece is the
/// `e * rows + row`th of what lies side by side.
Value TileAccess::emitColumns() {
  int64_t chunk = vector * numRows;
  int64_t step =
      std::min<int64_t>(maxAccessBytes, (chunk * bytes) & -(chunk * bytes)) /
      bytes;
  Value local = stored ? Value() : zeros(getLocalType(type));
  SmallVector<int64_t>
      order; // positions of a chunk's elements, in memory's order
  for (int64_t piece = 0; piece < pieces; ++piece) {
    int64_t first = piece * layout.getLanes() * vector;
    order.clear();
    for (int64_t e = 0; e < vector; ++e)
      for (int64_t row = 0; row < numRows; ++row)
        order.push_back((row * pieces + piece) * vector + e);
    Value mask;
    if (first + layout.getLanes() * vector > numColumns)
      mask = a.isLess(threads.column(a, layout), a.i32(numColumns - first));
    Stride element = {bytes, nullptr};
    Value all = guarded(mask, vectorOf(chunk), [&]() -> Value {
      Value values =
          stored ? vector::ShuffleOp::create(b, loc, stored, stored, order)
                       .getResult()
                 : zeros(vectorOf(chunk));
      for (int64_t at = 0; at < chunk; at += step) {
        Value pointer = advance(origin, element, first * numRows + at);
        if (stored) {
          Value part = vector::ExtractStridedSliceOp::create(
              b, loc, values, ArrayRef<int64_t>{at}, ArrayRef<int64_t>{step},
              ArrayRef<int64_t>{1});
          if (step == 1)
            part = vector::ExtractOp::create(b, loc, part, 0);
          store(part, pointer);
          continue;
        }
        Value part = load(pointer, piece * chunk + at, step);
        if (step == 1)
          part = vector::BroadcastOp::create(b, loc, vectorOf(1), part);
        values = vector::InsertStridedSliceOp::create(
            b, loc, part, values, ArrayRef<int64_t>{at}, ArrayRef<int64_t>{1});
      }
      return values;
    });
    if (stored)
      continue;
    if (isTransposedLater || isBegun) {
      local = vector::InsertStridedSliceOp::create(
          b, loc, all, local, ArrayRef<int64_t>{piece * chunk},
          ArrayRef<int64_t>{1});
      continue;
    }
    // Position by position: from this chunk, or what is there already.
    int64_t size = getLocalType(type).getNumElements();
    SmallVector<int64_t> from(size);
    for (int64_t position = 0; position < size; ++position)
      from[position] = position;
    for (auto [index, position] : llvm::enumerate(order))
      from[position] = size + index;
    local = vector::ShuffleOp::create(b, loc, local, all, from);
  }
  return local;
}

/// The thread's rows of one column after another.
Value TileAccess::emitRuns() {
  const int64_t step =
      std::min<int64_t>(maxAccessBytes,
                        (localRows * bytes) & -(localRows * bytes)) /
      bytes;
  SmallVector<int64_t> order; // positions in memory's order
  for (int64_t piece = 0; piece < pieces; ++piece)
    for (int64_t e = 0; e < vector; ++e)
      for (int64_t row = 0; row < localRows; ++row)
        order.push_back((row * pieces + piece) * vector + e);
  Value all =
      stored
          ? vector::ShuffleOp::create(b, loc, stored, stored, order).getResult()
          : zeros(getLocalType(type));
  for (int64_t at = 0; at < int64_t(order.size()); at += step) {
    const int64_t column = at / localRows;
    const int64_t first =
        column / vector * layout.getLanes() * vector + column % vector;
    Value pointer = advance(advance(origin, memory.column, first), memory.row,
                            at % localRows);
    if (stored) {
      Value part = vector::ExtractStridedSliceOp::create(
          b, loc, all, ArrayRef<int64_t>{at}, ArrayRef<int64_t>{step},
          ArrayRef<int64_t>{1});
      if (step == 1)
        part = vector::ExtractOp::create(b, loc, part, 0);
      store(part, pointer);
      continue;
    }
    Value part = load(pointer, at, step);
    if (step == 1)
      part = vector::BroadcastOp::create(b, loc, vectorOf(1), part);
    all = vector::InsertStridedSliceOp::create(
        b, loc, part, all, ArrayRef<int64_t>{at}, ArrayRef<int64_t>{1});
  }
  return stored ? Value() : transpose(all);
}

/// Chunks in the order of memory as the thread's elements.
Value TileAccess::transpose(Value inMemoryOrder) {
  SmallVector<int64_t> from(getLocalType(type).getNumElements());
  for (int64_t piece = 0; piece < pieces; ++piece)
    for (int64_t e = 0; e < vector; ++e)
      for (int64_t row = 0; row < localRows; ++row)
        from[(row * pieces + piece) * vector + e] =
            (piece * vector + e) * localRows + row;
  return vector::ShuffleOp::create(b, loc, inMemoryOrder, inMemoryOrder, from);
}
