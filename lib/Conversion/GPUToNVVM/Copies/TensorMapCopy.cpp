// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dimensions of a map, fastest first: 64 elements, which are the 128 bytes of
// the swizzle; rows; these panels of a row; what else the view has, innermost
// first. So a box lies in shared memory as wide swizzled tiles do, panel by
// panel.
#include "Copies/TensorMapCopy.h"

#include "Kernel/Assembly.h"

#include "gdn/Dialect/Tile/IR/StageFields.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace gdn;

static constexpr int64_t wordBytes = 8, mapBytes = 128, mapAlignment = 64;

/// Boxes have elements of 16 bits, whatever the view has, so that 64 of them
/// are the bytes of the swizzle.
static constexpr int64_t elementBits = 16, panelElements = 64,
                         swizzleBytes = 128;
static_assert(panelElements * elementBits == swizzleBytes * 8,
              "a row of a panel is as long as the swizzle");

/// Whether one box has a tile's whole rows: panels that lie apart have one
/// each.
static bool hasAllPanels(gdn::gpu::BeginCopyOp copy) {
  gdn::gpu::SharedType buffer = copy.getBuffer().getType();
  return buffer.getApart() == 1 &&
         cast<MemRefType>(copy.getView().getType()).getShape().back() ==
             buffer.getShape().back();
}

TensorMaps::Box TensorMaps::boxOf(Operation *op) {
  if (auto out = dyn_cast<gdn::gpu::CopyOutOp>(op))
    return {cast<BlockArgument>(out.getView()), out.getDims().front(),
            out.getBuffer().getType().getShape().front(), /*pieces=*/1};
  auto copy = cast<gdn::gpu::BeginCopyOp>(op);
  gdn::gpu::SharedType buffer = copy.getBuffer().getType();
  return {cast<BlockArgument>(copy.getView()), copy.getDims().front(),
          buffer.getShape().front(), /*pieces=*/hasAllPanels(copy) ? 0 : 1};
}

TensorMaps::TensorMaps(func::FuncOp program) {
  auto add = [&](auto copy) {
    if (copy.getTensorMap() && !llvm::is_contained(boxes, boxOf(copy)))
      boxes.push_back(boxOf(copy));
  };
  program.walk([&](gdn::gpu::BeginCopyOp copy) { add(copy); });
  program.walk([&](gdn::gpu::CopyOutOp copy) { add(copy); });
}

int64_t TensorMaps::place(int64_t words) {
  if (isEmpty())
    return words;
  firstByte = llvm::alignTo(words * wordBytes, mapAlignment);
  return (firstByte + int64_t(boxes.size()) * mapBytes) / wordBytes;
}

ArrayAttr TensorMaps::describe(func::FuncOp program) const {
  OpBuilder b(program.getContext());
  tile::StageFields stage(program);
  const unsigned firstRegion = program.getNumArguments() - stage.countRegions();
  auto number = [&](StringRef name, int64_t value) {
    return b.getNamedAttr(name, b.getI64IntegerAttr(value));
  };
  SmallVector<Attribute> described;
  for (const Box &box : boxes) {
    SmallVector<NamedAttribute> fields = {number("rows_dim", box.rowsDim),
                                          number("rows", box.rows)};
    if (box.pieces != 0)
      fields.push_back(number("pieces", box.pieces));
    const unsigned argument = box.view.getArgNumber();
    if (argument >= firstRegion) {
      // The last size of a region is that of an element.
      auto region =
          cast<ArrayAttr>(stage.getWorkspace()[argument - firstRegion]);
      auto sizes = llvm::to_vector(region.getValue().drop_back());
      auto view = cast<MemRefType>(box.view.getType());
      const int64_t bits =
          view.getShape().back() * view.getElementTypeBitWidth();
      assert(!view.isDynamicDim(view.getRank() - 1) &&
             bits % (panelElements * elementBits) == 0 &&
             "boxes have whole panels");
      sizes.back() = b.getStringAttr(Twine(bits / elementBits));
      fields.push_back(number("region", argument - firstRegion));
      fields.push_back(b.getNamedAttr("sizes", b.getArrayAttr(sizes)));
    } else {
      auto before = program.getArgumentTypes().take_front(argument);
      fields.push_back(
          number("param", llvm::count_if(before, llvm::IsaPred<MemRefType>)));
    }
    described.push_back(b.getDictionaryAttr(fields));
  }
  return b.getArrayAttr(described);
}

/// By the name that LLVM gives the parameter: an address that it takes itself
/// is kept in registers from the start of the kernel on, through all roles.
Value TensorMaps::getMap(OpBuilder &b, Operation *copy,
                         LLVM::LLVMFuncOp kernel) const {
  const int64_t number = llvm::find(boxes, boxOf(copy)) - boxes.begin();
  Value parameter =
      emitAssembly(b, copy->getLoc(), b.getI64Type(), {},
                   ("{\n.reg .b64 at;\nmov.b64 at, " + kernel.getName() +
                    "_param_0;\ncvta.param.u64 $0, at;\n}")
                       .str(),
                   "=l", /*hasSideEffects=*/true);
  Arithmetic a{b, copy->getLoc()};
  return a.add(parameter, a.i64(firstByte + number * mapBytes));
}

/// Adds the coordinates of the box of the tile at `indices` of a view to
/// `operands`; `panel` is the first of its panels. They as text.
static std::string addCoordinates(Arithmetic &a, ValueRange indices,
                                  int64_t rowsDim, Value panel,
                                  SmallVectorImpl<Value> &operands) {
  const size_t first = operands.size();
  operands.append({a.i32(0), a.toI32(indices[rowsDim]), panel});
  for (int64_t i = int64_t(indices.size()) - 2; i >= 0; --i)
    if (i != rowsDim)
      operands.push_back(a.toI32(indices[i]));
  std::string text;
  for (size_t i = first; i < operands.size(); ++i)
    text += (i == first ? "$" : ", $") + std::to_string(i);
  return text;
}

/// The barrier of the channel counts the bytes.
static void emitBox(OpBuilder &b, gdn::gpu::BeginCopyOp copy,
                    const BlockThreads &threads, Value map, ValueRange indices,
                    Value buffer, Value barrier) {
  Location loc = copy.getLoc();
  Arithmetic a{b, loc};
  Value isFirst = a.both(a.isEqual(threads.warp, a.i32(0)),
                         a.isEqual(threads.lane, a.i32(0)));
  auto branch = scf::IfOp::create(b, loc, isFirst, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  // The bytes that are to come, ahead of the arrivals of the commit.
  gdn::gpu::SharedType tile = copy.getBuffer().getType();
  const int64_t bytes = tile.getBytes() / tile.getApart();
  emitAssembly(b, loc, Type(), {barrier, a.i32(bytes)},
               "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$0], $1;",
               "r,r,~{memory}", /*hasSideEffects=*/true);
  Value to = LLVM::PtrToIntOp::create(b, loc, b.getI32Type(), buffer);
  auto emitCopy = [&](Value to, Value panel) {
    SmallVector<Value> operands = {to, map, barrier};
    std::string coordinates =
        addCoordinates(a, indices, copy.getDims().front(), panel, operands);
    std::string constraints = "r,l,r";
    for (size_t i = 3; i < operands.size(); ++i)
      constraints += ",r";
    emitAssembly(b, loc, Type(), operands,
                 "cp.async.bulk.tensor." + std::to_string(operands.size() - 3) +
                     "d.shared::cluster.global.tile.mbarrier::complete_tx::"
                     "bytes [$0], [$1, {" +
                     coordinates + "}], [$2];",
                 constraints + ",~{memory}", /*hasSideEffects=*/true);
  };
  const int64_t columns = tile.getShape().back();
  if (hasAllPanels(copy))
    return emitCopy(to, a.i32(0));
  if (tile.getApart() == 1)
    return emitCopy(to, arith::DivUIOp::create(b, loc, a.toI32(indices.back()),
                                               a.i32(columns)));
  for (int64_t panel = 0; panel < tile.getRowBytes() / swizzleBytes; ++panel)
    emitCopy(a.add(to, a.i32(panel * tile.getPanelBytes())), a.i32(panel));
}

void gdn::emitTensorMapCopy(OpBuilder &b, gdn::gpu::BeginCopyOp copy,
                            const BlockThreads &threads, const TensorMaps &maps,
                            LLVM::LLVMFuncOp kernel, Channels &channels,
                            ValueRange indices, Value rows, Value buffer,
                            llvm::function_ref<void()> emitPieces) {
  Location loc = copy.getLoc();
  Arithmetic a{b, loc};
  auto emitWhole = [&] {
    Value map = maps.getMap(b, copy, kernel);
    Value barrier = channels.getFull(
        b, loc, copy.getBuffer().getDefiningOp<gdn::gpu::AcquireOp>());
    emitBox(b, copy, threads, map, indices, buffer, barrier);
  };
  if (!rows)
    return emitWhole();
  Value all = a.i64(copy.getBuffer().getType().getShape()[0]);
  Value isWhole = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge,
                                        a.toI64(rows), all);
  auto branch = scf::IfOp::create(b, loc, isWhole, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  emitWhole();
  b.setInsertionPointToStart(branch.elseBlock());
  emitPieces();
}

void gdn::emitTensorMapStore(OpBuilder &b, gdn::gpu::CopyOutOp copy,
                             Value isFirst, Value panel, const TensorMaps &maps,
                             LLVM::LLVMFuncOp kernel, ValueRange indices,
                             Value rows, Value buffer) {
  Location loc = copy.getLoc();
  Arithmetic a{b, loc};
  gdn::gpu::SharedType type = copy.getBuffer().getType();
  if (rows) // none or all
    isFirst =
        a.both(isFirst, arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt,
                                              a.toI64(rows), a.i64(0)));
  auto first = scf::IfOp::create(b, loc, isFirst, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(first.thenBlock());
  Value from = LLVM::PtrToIntOp::create(b, loc, b.getI32Type(), buffer);
  SmallVector<Value> operands = {
      a.add(from, a.mul(panel, a.i32(type.getPanelBytes()))),
      maps.getMap(b, copy, kernel)};
  Value column =
      arith::ShRUIOp::create(b, loc, a.toI32(indices.back()), a.i32(6));
  std::string coordinates = addCoordinates(a, indices, copy.getDims().front(),
                                           a.add(column, panel), operands);
  std::string constraints = "r,l";
  for (size_t i = 2; i < operands.size(); ++i)
    constraints += ",r";
  emitAssembly(b, loc, Type(), operands,
               "cp.async.bulk.tensor." + std::to_string(operands.size() - 2) +
                   "d.global.shared::cta.tile.bulk_group [$1, {" + coordinates +
                   "}], [$0]; cp.async.bulk.commit_group;",
               constraints + ",~{memory}", /*hasSideEffects=*/true);
}
