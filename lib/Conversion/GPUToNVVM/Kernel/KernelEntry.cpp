// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Words to views, blocks to units. The words of a bound call are, for each
// argument of the program in order, the pointer, sizes and strides of a memref
// or the value of a null slot, then the symbols, the workspace and the number
// of units (page on entries and images); tensor maps follow. They lie in the
// parameter space: each is read where it is used.
#include "Kernel/KernelEntry.h"

#include "Fragments/SharedMatrix.h"

#include "gdn/Conversion/CallWords.h"
#include "gdn/Conversion/FormCode.h"
#include "gdn/Dialect/Tile/IR/StageFields.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

/// The size of an axis of the grid, an i32.
static Value getAxisSize(OpBuilder &b, func::FuncOp source,
                         const IRMapping &arguments, StringRef form) {
  ArrayAttr symbols = tile::StageFields(source).getSymbols();
  SmallVector<Value> values;
  for (Value argument : source.getArguments().take_front(symbols.size()))
    values.push_back(arguments.lookup(argument));
  return arith::IndexCastOp::create(
      b, source.getLoc(), b.getI32Type(),
      emitForm(b, source.getLoc(), form, symbols, values));
}

/// Coordinates of `unit`, an i32: the last axis runs fastest. There are fewer
/// than 2^31 units, so that 32 bits are enough, and far faster to divide.
static SmallVector<Value> splitUnit(OpBuilder &b, func::FuncOp source,
                                    const IRMapping &arguments, Value unit) {
  Arithmetic a{b, source.getLoc()};
  ArrayAttr grid = tile::StageFields(source).getGrid();
  SmallVector<Value> ids(grid.size());
  for (int64_t axis = int64_t(grid.size()) - 1; axis >= 0; --axis) {
    if (axis == 0) {
      ids[0] = a.toIndex(unit);
      break;
    }
    Value size = getAxisSize(b, source, arguments,
                             cast<StringAttr>(grid[axis]).getValue());
    ids[axis] = a.toIndex(arith::RemUIOp::create(b, a.loc, unit, size));
    unit = arith::DivUIOp::create(b, a.loc, unit, size);
  }
  return ids;
}

/// True if the whole program runs for each unit of a block; else there is one
/// unit, or roles take them by themselves.
static bool isPersistent(func::FuncOp source) {
  bool hasUnits = false;
  source.walk([&](gdn::gpu::UnitsOp) { hasUnits = true; });
  if (hasUnits)
    return false;
  return gdn::gpu::KernelFields(source).getBlocksPerSm() > 0;
}

static unsigned countRegions(Operation *stage) {
  return tile::StageFields(stage).countRegions();
}

/// The most regions of a stage of the entry that `source` belongs to: a call
/// has words for those of any variant.
static unsigned countCallRegions(func::FuncOp source) {
  auto entryOf = [](Operation *stage) {
    StringAttr owner = tile::StageFields(stage).getStageOf();
    return owner ? owner : SymbolTable::getSymbolName(stage);
  };
  unsigned most = countRegions(source);
  for (Operation &op : *source->getBlock())
    if (isa<func::FuncOp, LLVM::LLVMFuncOp>(op) &&
        entryOf(&op) == entryOf(source))
      most = std::max(most, countRegions(&op));
  return most;
}

/// Bytes that an argument of a variant for aligned arrays promises.
static int64_t promisedAlignment(BlockArgument arg) {
  auto source = cast<func::FuncOp>(arg.getOwner()->getParentOp());
  auto bytes = source.getArgAttrOfType<IntegerAttr>(arg.getArgNumber(),
                                                    "gdn_gpu.alignment");
  return bytes && gdn::gpu::KernelFields(source).getPromised() ? bytes.getInt()
                                                               : 0;
}

KernelEntry gdn::beginKernel(OpBuilder &b, func::FuncOp source) {
  Location loc = source.getLoc();
  MLIRContext *context = source.getContext();
  tile::StageFields stage(source);
  unsigned numRegions = countRegions(source);
  unsigned numCallRegions = countCallRegions(source);
  int64_t numWords = 2 + numCallRegions;
  for (Type type : source.getArgumentTypes().drop_back(numRegions))
    numWords += WordReader::count(type);

  KernelEntry entry;
  entry.tensorMaps = TensorMaps(source);
  numWords = entry.tensorMaps.place(numWords);

  b.setInsertionPoint(source);
  auto pointer = LLVM::LLVMPointerType::get(context);
  auto type =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), {pointer});
  entry.kernel = LLVM::LLVMFuncOp::create(b, loc, source.getName(), type);
  auto words = LLVM::LLVMArrayType::get(b.getI64Type(), numWords);
  entry.kernel.setArgAttr(0, LLVM::LLVMDialect::getByValAttrName(),
                          TypeAttr::get(words));
  entry.kernel.setArgAttr(
      0, LLVM::LLVMDialect::getAlignAttrName(),
      b.getI64IntegerAttr(entry.tensorMaps.isEmpty() ? 8 : 64));
  entry.kernel.setArgAttr(0, NVVM::NVVMDialect::getGridConstantAttrName(),
                          b.getUnitAttr());
  if (auto cluster = gdn::gpu::KernelFields(source).getCluster())
    entry.kernel->setAttr(NVVM::NVVMDialect::getClusterDimAttrName(),
                          b.getDenseI32ArrayAttr({int32_t(*cluster), 1, 1}));
  Block *block = entry.kernel.addEntryBlock(b);
  b.setInsertionPointToStart(block);

  WordReader reader(b, loc, block->getArgument(0));
  (void)reader.arguments(source.getArguments(), stage.getSymbols(),
                         stage.getWorkspace(), promisedAlignment,
                         entry.arguments);
  for (unsigned i = numRegions; i < numCallRegions; ++i)
    (void)reader.word(); // of other variants
  entry.workspace = reader.word();
  entry.units = reader.word();

  Arithmetic a{b, loc};
  Type i32 = b.getI32Type();
  Value thread = NVVM::ThreadIdXOp::create(b, loc, i32);
  entry.threads.lane =
      arith::AndIOp::create(b, loc, thread, a.i32(gdn::gpu::warpThreads - 1));
  entry.threads.warp = arith::ShRUIOp::create(b, loc, thread, a.i32(5));
  Value unit = NVVM::BlockIdXOp::create(b, loc, i32);
  if (isPersistent(source)) {
    Value end = arith::TruncIOp::create(b, loc, i32, entry.units);
    Value step = NVVM::GridDimXOp::create(b, loc, i32);
    auto loop = scf::ForOp::create(b, loc, unit, end, step);
    LLVM::ReturnOp::create(b, loc, ValueRange());
    b.setInsertionPointToStart(loop.getBody());
    unit = loop.getInductionVar();
  }
  entry.blockIds = splitUnit(b, source, entry.arguments, unit);
  return entry;
}

SmallVector<Value> gdn::beginUnits(OpBuilder &b, const KernelEntry &entry,
                                   func::FuncOp source,
                                   gdn::gpu::UnitsOp units) {
  Location loc = units.getLoc();
  Arithmetic a{b, loc};
  Type i32 = b.getI32Type();
  Value first = NVVM::BlockIdXOp::create(b, loc, i32);
  Value blocks = NVVM::GridDimXOp::create(b, loc, i32);
  Value end, step = blocks;
  if (units.getContiguous()) {
    auto share = [&](Value block) -> Value {
      Value before = arith::DivUIOp::create(
          b, loc, a.mul(a.toI64(block), entry.units), a.toI64(blocks));
      return arith::TruncIOp::create(b, loc, i32, before);
    };
    end = share(a.add(first, a.i32(1)));
    first = share(first);
    step = a.i32(1);
  } else {
    end = arith::TruncIOp::create(b, loc, i32, entry.units);
  }
  if (units.getTaken()) {
    auto loop = scf::WhileOp::create(b, loc, TypeRange{i32}, ValueRange{first});
    Block *before = b.createBlock(&loop.getBefore(), {}, {i32}, {loc});
    Value unit = before->getArgument(0);
    scf::ConditionOp::create(b, loc, a.isLess(unit, end), ValueRange{unit});
    Block *after = b.createBlock(&loop.getAfter(), {}, {i32}, {loc});
    return splitUnit(b, source, entry.arguments, after->getArgument(0));
  }
  auto loop = scf::ForOp::create(b, loc, first, end, step);
  b.setInsertionPointToStart(loop.getBody());
  return splitUnit(b, source, entry.arguments, loop.getInductionVar());
}

void gdn::finishKernel(OpBuilder &b, KernelEntry &entry, func::FuncOp source,
                       int64_t sharedBytes, bool isDependent) {
  Location loc = source.getLoc();
  LLVM::LLVMFuncOp kernel = entry.kernel;
  // What lies in a block is there as long as the other may ask for it.
  if (gdn::gpu::KernelFields(source).getCluster())
    emitClusterBarrier(b, loc);
  if (isPersistent(source)) {
    // The next unit stores into the tiles that this one loads from.
    NVVM::Barrier0Op::create(b, loc);
  } else {
    LLVM::ReturnOp::create(b, loc, ValueRange());
  }
  gdn::gpu::KernelFields fields(source);
  const auto threads = int32_t(fields.getThreads());
  SmallVector<NamedAttribute> launch = {
      b.getNamedAttr("threads", b.getI32IntegerAttr(threads)),
      b.getNamedAttr("shared_bytes", b.getI64IntegerAttr(sharedBytes)),
      b.getNamedAttr("cluster", b.getI32IntegerAttr(
                                    int32_t(fields.getCluster().value_or(1)))),
      b.getNamedAttr("blocks_per_sm",
                     b.getI32IntegerAttr(int32_t(fields.getBlocksPerSm()))),
      b.getNamedAttr("dependent", b.getBoolAttr(isDependent))};
  ArrayAttr counters = fields.getCounters();
  if (!counters) // groups of units that look for their last member
    counters = tile::StageFields(source).getGroups();
  if (counters)
    launch.push_back(b.getNamedAttr("counters", counters));
  if (!entry.tensorMaps.isEmpty())
    launch.push_back(
        b.getNamedAttr("tensor_maps", entry.tensorMaps.describe(source)));
  // What parameters promise: bytes (0: their elements' size) and, for a variant
  // that not every call can take, strides (0: any).
  SmallVector<int64_t> alignments;
  SmallVector<Attribute> layouts;
  ArrayAttr workspace = tile::StageFields(source).getWorkspace();
  for (BlockArgument arg :
       source.getArguments().drop_back(workspace ? workspace.size() : 0)) {
    if (!isa<MemRefType>(arg.getType()))
      continue;
    auto bytes = source.getArgAttrOfType<IntegerAttr>(arg.getArgNumber(),
                                                      "gdn_gpu.alignment");
    alignments.push_back(bytes ? bytes.getInt() : 0);
    SmallVector<int64_t> layout = {alignments.back()};
    if (bytes)
      for (int64_t stride :
           cast<MemRefType>(arg.getType()).getStridesAndOffset().first)
        layout.push_back(ShapedType::isDynamic(stride) ? 0 : stride);
    layouts.push_back(b.getDenseI64ArrayAttr(layout));
  }
  if (gdn::gpu::KernelFields(source).getPromised())
    kernel->setAttr("gdn_gpu.layouts", b.getArrayAttr(layouts));
  else
    kernel->setAttr("gdn_gpu.alignments", b.getDenseI64ArrayAttr(alignments));
  kernel->setAttr("gdn_gpu.launch", b.getDictionaryAttr(launch));
  for (NamedAttribute attr : source->getDiscardableAttrs())
    if (attr.getName() == tile::StageFields::name ||
        attr.getName() == "gdn_gpu.allow" ||
        attr.getName() == "gdn_gpu.fewer_blocks")
      kernel->setAttr(attr.getName(), attr.getValue());
  kernel->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), b.getUnitAttr());
  kernel->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                  b.getDenseI32ArrayAttr({threads}));
  if (auto blocks = int32_t(fields.getMinBlocks()))
    kernel->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                    b.getI32IntegerAttr(blocks));
  source.erase();
}
