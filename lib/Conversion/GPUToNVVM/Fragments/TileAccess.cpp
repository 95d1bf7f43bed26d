// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads and stores of fragments. What a thread holds of a row are pieces of
// neighbouring columns, and there are up to four ways to them:
//
//   pieces    columns lie side by side: one access of up to 16 bytes per piece
//   columns   rows lie side by side, and the thread has all rows of its
//   columns:
//             it reads all of them at once and shuffles (windows whose steps
//             are the innermost dimension)
//   runs      rows lie side by side, and those of the thread are neighbours:
//   one
//             access of up to 16 bytes per column and run of rows (states that
//             lie as [dk, dv])
//   elements  anything else
//
// Which one holds is decided here as far as types say it, and by the block at
// run time for the rest: one branch, the same in all threads.
#include "Fragments/TileWays.h"

#include "Copies/TileCopy.h"
#include "Kernel/Assembly.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace gdn;

Value Stride::advance(const Arithmetic &a, Value pointer, Value count) const {
  Value bytes = get(a);
  return a.advance(pointer, a.mul(a.toI64(count), bytes));
}

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
    origin = memory.row.advance(a, origin, threads.row(a, layout, numRows, 0));
  }
  if (!type.isPerRow()) {
    numColumns = type.getShape().back();
    pieces = layout.getPieces(numColumns);
    vector = layout.getVector();
    origin = memory.column.advance(a, origin, threads.column(a, layout));
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
  if (stride.known)
    return a.advance(pointer, *stride.known * times);
  return a.advance(pointer, a.mul(stride.value, a.i64(times)));
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

/// True if `bytes` divide the address and, unless it is null, the stride
/// `other`.
Value TileAccess::askAlignment(int64_t bytes, const Stride *other) {
  if (memory.aligned > 0 && memory.aligned % bytes == 0)
    return nullptr;
  Value bits = LLVM::PtrToIntOp::create(b, loc, b.getI64Type(), memory.pointer);
  if (other && !other->isMultipleOf(bytes)) {
    Value stride = other->known ? a.i64(*other->known) : other->value;
    bits = arith::OrIOp::create(b, loc, bits, stride);
  }
  bits = arith::AndIOp::create(b, loc, bits, a.i64(bytes - 1));
  return a.isEqual(bits, a.i64(0));
}

/// True if the rows of a thread are a run in memory, and none of them is past
/// the tile.
bool TileAccess::hasRuns() {
  return type.getRank() == 2 && layout.getTall() && !rowLimit &&
         memory.row.known == bytes &&
         localRows * layout.getWarps() * layout.getGroups() == numRows &&
         numColumns % (layout.getLanes() * vector) == 0;
}

void TileAccess::listWays() {
  if (hasRuns()) {
    int64_t access = std::min<int64_t>(
        maxAccessBytes, (localRows * bytes) & -(localRows * bytes));
    Value condition = askAlignment(access, &memory.column);
    choices.push_back({Way::runs, condition});
    if (condition)
      choices.push_back({Way::elements, nullptr});
    return;
  }
  // Columns do not lie side by side where rows do.
  bool isAcross =
      type.getRank() == 2 && numRows > 1 && memory.row.known == bytes;
  if (!type.isPerRow() && vector > 1 && !isAcross) {
    bool isPossible = true;
    Value condition = askStride(memory.column, bytes, isPossible);
    if (isPossible) {
      int64_t access = std::min(vector * bytes, maxAccessBytes);
      bool askRow = type.getRank() == 2 && numRows > 1;
      condition = a.both(condition,
                         askAlignment(access, askRow ? &memory.row : nullptr));
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
      condition = a.both(condition, askAlignment(access, nullptr));
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

Value gdn::loadFragment(OpBuilder &b, Location loc, const BlockThreads &threads,
                        gdn::gpu::FragmentType type, const TileMemory &memory,
                        Value rows) {
  if (memory.begun) {
    emitAwaitCopies(b, loc);
    return TileAccess(b, loc, threads, type, memory, rows, nullptr).take();
  }
  return TileAccess(b, loc, threads, type, memory, rows, nullptr).emit();
}

Value gdn::loadFragmentIf(OpBuilder &b, Location loc,
                          const BlockThreads &threads,
                          gdn::gpu::FragmentType type, const TileMemory &memory,
                          Value rows) {
  Arithmetic a{b, loc};
  VectorType local = getLocalType(type);
  Value isSome = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                       a.toI64(rows), a.i64(0));
  auto branch = scf::IfOp::create(b, loc, getCarriedType(local), isSome,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  for (bool taken : {true, false}) {
    b.setInsertionPointToStart(taken ? branch.thenBlock() : branch.elseBlock());
    Value value =
        taken
            ? TileAccess(b, loc, threads, type, memory, nullptr, nullptr).emit()
            : arith::ConstantOp::create(b, loc, local, b.getZeroAttr(local))
                  .getResult();
    scf::YieldOp::create(b, loc, toCarried(b, loc, value));
  }
  b.setInsertionPointAfter(branch);
  return fromCarried(b, loc, branch.getResult(0), local);
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
