// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads and stores of fragments. What a thread holds of a row are pieces of
// neighbouring columns, and there are up to three ways to them:
//
//   pieces    columns lie side by side: one access of up to 16 bytes per piece
//   columns   rows lie side by side, and the thread has all rows of its
//   columns:
//             it reads all of them at once and shuffles (windows whose steps
//             are the innermost dimension)
//   elements  anything else
//
// Which one holds is decided here as far as types say it, and by the block at
// run time for the rest: one branch, the same in all threads.
#include "Fragments/TileAccess.h"

#include "Copies/TileCopy.h"
#include "Kernel/Assembly.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace gdn;

static constexpr int64_t maxAccessBytes = 16;
static constexpr int64_t minCopyBytes = 4; // of an asynchronous copy

namespace {

class TileAccess {
public:
  /// `stored` is null for a load.
  TileAccess(OpBuilder &b, Location loc, const BlockThreads &threads,
             gdn::gpu::FragmentType type, const TileMemory &memory, Value rows,
             Value stored);

  /// The loaded elements; null for a store.
  Value emit();
  /// Copies to shared memory instead, where the thread's elements lie side by
  /// side, and takes them from there.
  void begin() {
    isBegun = true;
    listWays();
    choose(choices);
  }
  Value take();

private:
  enum class Way { pieces, columns, elements };
  struct Choice {
    Way way;
    Value condition; // null: it holds
  };

  void listWays();
  Value askAlignment(int64_t bytes, bool askRow);
  Value askStride(const Stride &stride, int64_t bytes, bool &isPossible);
  Value choose(ArrayRef<Choice> choices);
  Value emitWay(Way way);
  Value emitColumns();
  bool turnsLater();
  Value transpose(Value inMemoryOrder);
  Value emitRow(Way way, int64_t row);
  Value emitPiece(Way way, Value pointer, int64_t row, int64_t piece);
  Value emitElement(Value pointer, int64_t row, int64_t position,
                    int64_t offset);
  Value guarded(Value condition, VectorType type, function_ref<Value()> access);

  Value load(Value pointer, int64_t position, int64_t elements);
  Value getCopied(int64_t position);
  bool mayTurn();
  Value transposeIfAcross(Value all);
  void store(Value value, Value pointer);
  Value rowMask(int64_t row);
  Value advance(Value pointer, const Stride &stride, int64_t times);
  Value advance(Value pointer, const Stride &stride, Value times);
  Value zeros(VectorType type) {
    return arith::ConstantOp::create(b, loc, type, b.getZeroAttr(type));
  }
  VectorType vectorOf(int64_t size) {
    return VectorType::get({size}, type.getElementType());
  }
  /// Elements `first` to `first + size` of what is stored.
  Value part(int64_t first, int64_t size) {
    return vector::ExtractStridedSliceOp::create(
        b, loc, stored, ArrayRef<int64_t>{first}, ArrayRef<int64_t>{size},
        ArrayRef<int64_t>{1});
  }

  OpBuilder &b;
  Location loc;
  Arithmetic a;
  const BlockThreads &threads;
  gdn::gpu::FragmentType type;
  TileMemory memory;
  Value rowLimit; // index, or null
  Value stored;

  gdn::gpu::RowsAttr layout;
  int64_t bytes;                                 // of an element
  int64_t numRows = 1, numColumns = 1;           // of the tile
  int64_t localRows = 1, pieces = 1, vector = 1; // of the thread
  Value origin;                                  // the thread's first element
  SmallVector<Choice> choices;
  bool isTransposedLater = false; // columns come in the order of memory
  bool isBegun = false;           // copies instead of loads
};

} // namespace

TileAccess::TileAccess(OpBuilder &b, Location loc, const BlockThreads &threads,
                       gdn::gpu::FragmentType type, const TileMemory &memory,
                       Value rows, Value stored)
    : b(b), loc(loc), a{b, loc}, threads(threads), type(type), memory(memory),
      rowLimit(rows), stored(stored), layout(type.getRows()),
      bytes(type.getElementType().getIntOrFloatBitWidth() / 8) {
  origin = memory.pointer;
  if (!type.isPerColumn()) {
    numRows = type.getDimSize(0);
    localRows = layout.getLocalRows(numRows);
    origin = advance(origin, memory.row, threads.row(a, layout, numRows, 0));
  }
  if (!type.isPerRow()) {
    numColumns = type.getShape().back();
    pieces = layout.getPieces(numColumns);
    vector = layout.getVector();
    origin = advance(origin, memory.column, threads.column(a, layout));
  }
  // Of the addresses that a load of the same tile computed, only this one has
  // to stay until the store.
  if (stored && memory.isGlobal)
    origin = emitAssembly(b, loc, origin.getType(), origin, "", "=l,0",
                          /*hasSideEffects=*/false);
  APInt constant;
  if (rowLimit && matchPattern(rowLimit, m_ConstantInt(&constant)) &&
      constant.getSExtValue() >= numRows)
    rowLimit = nullptr;
}

Value TileAccess::advance(Value pointer, const Stride &stride, int64_t times) {
  if (times == 0)
    return pointer;
  SmallVector<LLVM::GEPArg, 1> offset;
  if (stride.known)
    offset.push_back(int32_t(*stride.known * times));
  else
    offset.push_back(a.mul(stride.value, a.i64(times)));
  return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(), pointer,
                             offset);
}

Value TileAccess::advance(Value pointer, const Stride &stride, Value times) {
  Value bytes = stride.known ? a.i64(*stride.known) : stride.value;
  Value offset = a.mul(a.toI64(times), bytes);
  return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{offset});
}

//===----------------------------------------------------------------------===//
// Which way
//===----------------------------------------------------------------------===//

/// True if `stride` is `bytes`: null if known, `isPossible` false if it is not.
Value TileAccess::askStride(const Stride &stride, int64_t bytes,
                            bool &isPossible) {
  if (stride.known) {
    isPossible &= *stride.known == bytes;
    return nullptr;
  }
  return a.isEqual(stride.value, a.i64(bytes));
}

/// True if `bytes` divide the address and, where asked, the row's stride.
Value TileAccess::askAlignment(int64_t bytes, bool askRow) {
  if (memory.aligned > 0 && memory.aligned % bytes == 0)
    return nullptr;
  Value bits = LLVM::PtrToIntOp::create(b, loc, b.getI64Type(), memory.pointer);
  if (askRow && !memory.row.isMultipleOf(bytes)) {
    Value stride =
        memory.row.known ? a.i64(*memory.row.known) : memory.row.value;
    bits = arith::OrIOp::create(b, loc, bits, stride);
  }
  bits = arith::AndIOp::create(b, loc, bits, a.i64(bytes - 1));
  return a.isEqual(bits, a.i64(0));
}

void TileAccess::listWays() {
  if (!type.isPerRow() && vector > 1) {
    bool isPossible = true;
    Value condition = askStride(memory.column, bytes, isPossible);
    if (isPossible) {
      int64_t access = std::min(vector * bytes, maxAccessBytes);
      bool askRow = type.getRank() == 2 && numRows > 1;
      condition = a.both(condition, askAlignment(access, askRow));
      choices.push_back({Way::pieces, condition});
      if (!condition)
        return;
    }
  }
  bool hasAllRows = type.getRank() == 2 && layout.getWarps() == 1 &&
                    layout.getGroups() == 1 && numRows > 1;
  if (hasAllRows && numColumns % vector == 0) {
    bool isPossible = true;
    Value condition = askStride(memory.row, bytes, isPossible);
    condition = a.both(condition,
                       askStride(memory.column, numRows * bytes, isPossible));
    if (isPossible) {
      int64_t access = std::min<int64_t>(
          maxAccessBytes, llvm::bit_floor(uint64_t(vector * numRows * bytes) &
                                          -uint64_t(vector * numRows * bytes)));
      condition = a.both(condition, askAlignment(access, /*askRow=*/false));
      if (rowLimit)
        condition =
            a.both(condition, a.isEqual(a.toI64(rowLimit), a.i64(numRows)));
      choices.push_back({Way::columns, condition});
      if (!condition)
        return;
    }
  }
  choices.push_back({Way::elements, nullptr});
}

Value TileAccess::choose(ArrayRef<Choice> choices) {
  Choice choice = choices.front();
  if (!choice.condition)
    return emitWay(choice.way);
  TypeRange results = {};
  VectorType local = getLocalType(type);
  Type carried = getCarriedType(local);
  if (!stored)
    results = carried;
  auto branch = scf::IfOp::create(b, loc, results, choice.condition,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  for (bool taken : {true, false}) {
    b.setInsertionPointToStart(taken ? branch.thenBlock() : branch.elseBlock());
    Value value = taken ? emitWay(choice.way) : choose(choices.drop_front());
    if (!stored)
      scf::YieldOp::create(b, loc, toCarried(b, loc, value));
  }
  if (stored)
    return nullptr;
  b.setInsertionPointAfter(branch);
  return fromCarried(b, loc, branch.getResult(0), local);
}

Value TileAccess::emit() {
  listWays();
  if (!turnsLater())
    return choose(choices);
  // What lies across memory is transposed behind the branch: inside, it
  // would wait for the loads, and whatever the program asks for next would
  // follow a turn around the memory later.
  isTransposedLater = true;
  return transposeIfAcross(choose(choices));
}

/// `all` as it was loaded, transposed if it lies across memory.
Value TileAccess::transposeIfAcross(Value all) {
  Value isAcross;
  for (const Choice &choice : choices) {
    if (choice.way == Way::columns) {
      isAcross = a.both(isAcross, choice.condition);
      break;
    }
    Value one = arith::ConstantOp::create(b, loc, b.getBoolAttr(true));
    Value isNot = arith::XOrIOp::create(b, loc, choice.condition, one);
    isAcross = a.both(isAcross, isNot);
  }
  // Hidden, or LLVM would take the answer back into the branch.
  Value answer = emitAssembly(
      b, loc, b.getI32Type(),
      arith::ExtUIOp::create(b, loc, b.getI32Type(), isAcross).getResult(), "",
      "=r,0", /*hasSideEffects=*/false);
  isAcross =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, answer, a.i32(0));
  VectorType local = getLocalType(type);
  auto words = cast<VectorType>(getCarriedType(local));
  Value transposed = vector::BitCastOp::create(b, loc, words, transpose(all));
  Value asItIs = vector::BitCastOp::create(b, loc, words, all);
  Value chosen = arith::SelectOp::create(b, loc, isAcross, transposed, asItIs);
  return fromCarried(b, loc, chosen, local);
}

/// Whether a load may find its rows side by side, or not.
bool TileAccess::turnsLater() {
  return !stored && choices.size() > 1 &&
         getCarriedType(getLocalType(type)) != getLocalType(type) && mayTurn();
}

bool TileAccess::mayTurn() {
  return llvm::any_of(choices, [](const Choice &choice) {
    return choice.way == Way::columns && choice.condition;
  });
}

Value TileAccess::take() {
  listWays();
  VectorType local = getLocalType(type);
  const int64_t count = local.getNumElements();
  const int64_t step =
      std::min(maxAccessBytes, count * bytes & -(count * bytes)) / bytes;
  Value all = zeros(local);
  for (int64_t at = 0; at < count; at += step) {
    Value part = LLVM::LoadOp::create(b, loc, vectorOf(step), getCopied(at),
                                      step * bytes);
    all = vector::InsertStridedSliceOp::create(
        b, loc, part, all, ArrayRef<int64_t>{at}, ArrayRef<int64_t>{1});
  }
  if (mayTurn())
    return transposeIfAcross(all);
  return choices.front().way == Way::columns ? transpose(all) : all;
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

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
  return LLVM::GEPOp::create(b, loc, memory.begun.getType(), b.getI8Type(),
                             memory.begun, ArrayRef<LLVM::GEPArg>{offset});
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

/// Chunks in the order of memory as the thread's elements.
Value TileAccess::transpose(Value inMemoryOrder) {
  SmallVector<int64_t> from(getLocalType(type).getNumElements());
  for (int64_t piece = 0; piece < pieces; ++piece)
    for (int64_t e = 0; e < vector; ++e)
      for (int64_t row = 0; row < numRows; ++row)
        from[(row * pieces + piece) * vector + e] =
            (piece * vector + e) * numRows + row;
  return vector::ShuffleOp::create(b, loc, inMemoryOrder, inMemoryOrder, from);
}

Value gdn::loadFragment(OpBuilder &b, Location loc, const BlockThreads &threads,
                        gdn::gpu::FragmentType type, const TileMemory &memory,
                        Value rows) {
  if (memory.begun) {
    emitAwaitCopies(b, loc);
    return TileAccess(b, loc, threads, type, memory, rows, nullptr).take();
  }
  return TileAccess(b, loc, threads, type, memory, rows, nullptr).emit();
}

void gdn::beginFragment(OpBuilder &b, Location loc, const BlockThreads &threads,
                        gdn::gpu::FragmentType type, const TileMemory &memory) {
  TileAccess(b, loc, threads, type, memory, nullptr, nullptr).begin();
  emitEndOfCopies(b, loc);
}

void gdn::storeFragment(OpBuilder &b, Location loc, const BlockThreads &threads,
                        gdn::gpu::FragmentType type, Value local,
                        const TileMemory &memory, Value rows) {
  OpBuilder::InsertionGuard guard(b);
  if (Value isWriter = threads.isWriter(Arithmetic{b, loc}, type)) {
    auto branch = scf::IfOp::create(b, loc, isWriter, /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  TileAccess(b, loc, threads, type, memory, rows, local).emit();
}
