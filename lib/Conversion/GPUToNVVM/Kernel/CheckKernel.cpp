// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Everything that convert-gdn-gpu-to-nvvm takes for granted.
#include "Kernel/CheckKernel.h"

#include "gdn/Conversion/CallWords.h"
#include "gdn/Dialect/GPU/IR/GPU.h"
#include "gdn/Dialect/Tile/IR/StageFields.h"
#include "gdn/Support/LinearForm.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

static LogicalResult checkSignature(func::FuncOp function) {
  ArrayAttr symbols = tile::StageFields(function).getSymbols(),
            grid = tile::StageFields(function).getGrid();
  if (!symbols || !grid)
    return function.emitOpError(
        "expects 'grid' of 'gdn_tile.stage' and 'symbols' of 'gdn_tile.stage' "
        "on a function with 'threads' of 'gdn_gpu.kernel'");
  // Units become coordinates by division: sizes have to be at hand.
  for (auto [axis, form] : llvm::enumerate(grid.getAsRange<StringAttr>())) {
    auto isKnownTerm = [&](const LinearForm::Term &term) {
      return llvm::is_contained(
          symbols, StringAttr::get(function.getContext(), term.symbol));
    };
    llvm::Expected<LinearForm> size = LinearForm::parse(form.getValue());
    if (size && llvm::all_of(size->getTerms(), isKnownTerm))
      continue;
    llvm::consumeError(size.takeError());
    return function.emitOpError("expects axis ")
           << axis
           << " of 'grid' of 'gdn_tile.stage' to be a linear form of the "
              "symbols, "
           << "but got '" << form.getValue() << "'";
  }
  auto numIndices = llvm::find_if(function.getArgumentTypes(),
                                  [](Type type) { return !type.isIndex(); }) -
                    function.getArgumentTypes().begin();
  if (numIndices < int64_t(symbols.size()))
    return function.emitOpError("expects an index as first arguments for each "
                                "of its symbols, which are ")
           << symbols.size() << ", but got " << numIndices;
  return checkReadsWords(function, "a kernel");
}

/// True for ops that the lowering rewrites or copies.
static bool isKnown(Operation *op) {
  return isa<gdn::gpu::GPUDialect, arith::ArithDialect, math::MathDialect>(
             op->getDialect()) ||
         isa<scf::ForOp, scf::IfOp, scf::YieldOp, func::ReturnOp,
             memref::LoadOp, memref::DimOp, memref::CastOp,
             memref::ReinterpretCastOp, memref::SubViewOp,
             memref::ExpandShapeOp, memref::ExtractStridedMetadataOp>(op);
}

static LogicalResult checkOp(Operation *op) {
  if (!isKnown(op))
    return op->emitOpError("has no code on a GPU");
  for (Value value : llvm::concat<Value>(op->getOperands(), op->getResults())) {
    Type type = value.getType();
    bool mayPass = isa<gdn::gpu::GPUDialect, scf::SCFDialect>(op->getDialect());
    if (isa<gdn::gpu::FragmentType, gdn::gpu::SharedType>(type) && !mayPass)
      return op->emitOpError("expects to be a gdn_gpu op or of scf to use ")
             << type;
    if (isa<gdn::gpu::SharedType>(type) &&
        isa<scf::SCFDialect>(op->getDialect()))
      return op->emitOpError("expects shared tiles to be used directly, not "
                             "carried");
    if (isa<VectorType>(type) && !op->hasTrait<OpTrait::ConstantLike>())
      return op->emitOpError("expects vectors inside gdn_gpu.map_rows only");
  }
  return success();
}

LogicalResult gdn::checkKernel(func::FuncOp function, bool hasBulkCopies) {
  if (failed(checkSignature(function)))
    return failure();
  for (auto channel : function.getBody().getOps<gdn::gpu::ChannelOp>())
    if (!hasBulkCopies)
      return channel.emitOpError("has no code on a target without bulk copies");
  WalkResult walk =
      function.getBody().walk<WalkOrder::PreOrder>([](Operation *op) {
        if (failed(checkOp(op)))
          return WalkResult::interrupt();
        // Its verifier knows what is in it.
        return gdn::gpu::hasArithmetic(op) ? WalkResult::skip()
                                           : WalkResult::advance();
      });
  return failure(walk.wasInterrupted());
}
