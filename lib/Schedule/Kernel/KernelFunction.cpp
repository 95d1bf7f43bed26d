// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Control flow and block ids go from a tile program to a kernel as they are;
// what a schedule makes of tiles it puts into the copies of the blocks.
#include "Kernel/KernelFunction.h"

#include "gdn/Target/GpuFacts.h"

using namespace mlir;
using namespace gdn;

static constexpr StringLiteral alignmentName = "gdn_gpu.alignment";

LogicalResult gdn::checkThreads(Operation *module, int64_t threads,
                                int64_t least) {
  if (threads % gpu::warpThreads == 0 && threads >= least &&
      threads <= gpufacts::maxThreadsPerBlock)
    return success();
  return module->emitError("expects the option 'threads' to be a multiple of ")
         << gpu::warpThreads << " from " << least << " to "
         << gpufacts::maxThreadsPerBlock << ", but got " << threads;
}

func::FuncOp gdn::createKernel(OpBuilder &b, func::FuncOp source,
                               IRMapping &mapping) {
  b.setInsertionPoint(source);
  auto kernel = cast<func::FuncOp>(source->cloneWithoutRegions());
  b.insert(kernel);
  Block *entry = kernel.addEntryBlock();
  b.setInsertionPointToStart(entry);
  mapping.map(source.getArguments(), entry->getArguments());
  return kernel;
}

void gdn::copyBlockId(OpBuilder &b, tile::BlockIdOp id, IRMapping &mapping) {
  mapping.map(
      id.getResult(),
      gpu::BlockIdOp::create(b, id.getLoc(), b.getIndexType(), id.getAxis()));
}

void gdn::copyScalar(OpBuilder &b, Operation *op, IRMapping &mapping) {
  if (auto id = dyn_cast<tile::BlockIdOp>(op))
    copyBlockId(b, id, mapping);
  else if (auto store = dyn_cast<memref::StoreOp>(op))
    gpu::StoreElementOp::create(
        b, op->getLoc(), mapping.lookupOrDefault(store.getValue()),
        mapping.lookupOrDefault(store.getMemRef()),
        llvm::map_to_vector(store.getIndices(), [&](Value index) {
          return mapping.lookupOrDefault(index);
        }));
  else if (!isa<tile::TileDialect>(op->getDialect()))
    b.clone(*op, mapping);
}

void gdn::copyWithRegions(OpBuilder &b, Operation *op, IRMapping &mapping,
                          function_ref<void(Block &from, Block &to)> emitBody) {
  Operation *copy = op->cloneWithoutRegions(mapping);
  b.insert(copy);
  OpBuilder::InsertionGuard guard(b);
  for (auto [from, to] : llvm::zip(op->getRegions(), copy->getRegions())) {
    if (from.empty())
      continue;
    Block &body = from.front();
    Block *block = b.createBlock(
        &to, {}, body.getArgumentTypes(),
        SmallVector<Location>(body.getNumArguments(), op->getLoc()));
    mapping.map(body.getArguments(), block->getArguments());
    emitBody(body, *block);
    b.clone(*body.getTerminator(), mapping);
  }
}

int64_t gdn::getAlignment(Value view) {
  auto arg = dyn_cast<BlockArgument>(view);
  auto func = arg ? dyn_cast<func::FuncOp>(arg.getOwner()->getParentOp())
                  : func::FuncOp();
  auto known = func ? func.getArgAttrOfType<IntegerAttr>(arg.getArgNumber(),
                                                         alignmentName)
                    : IntegerAttr();
  return known ? known.getInt() : 0;
}

void gdn::setAlignment(func::FuncOp kernel, Value view, int64_t bytes) {
  if (auto arg = dyn_cast<BlockArgument>(view))
    kernel.setArgAttr(arg.getArgNumber(), alignmentName,
                      OpBuilder(kernel).getI64IntegerAttr(bytes));
}

bool gdn::liesAcross(Value view, ArrayRef<int64_t> dims) {
  if (dims.size() != 2)
    return false;
  auto [strides, offset] =
      cast<MemRefType>(view.getType()).getStridesAndOffset();
  return strides[dims.front()] == 1 && strides[dims.back()] != 1;
}
