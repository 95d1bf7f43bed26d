// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registration of the gdn_gpu dialect, and what its attributes say of a
// function.
#include "gdn/Dialect/GPU/IR/GPU.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace gdn::gpu;

#include "gdn/Dialect/GPU/IR/GPUDialect.cpp.inc"

namespace {
/// Names a layout once per module.
struct LayoutAliases final : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;

  AliasResult getAlias(Attribute attr, raw_ostream &os) const override {
    if (!isa<RowsAttr>(attr))
      return AliasResult::NoAlias;
    os << "rows";
    return AliasResult::FinalAlias;
  }
};
} // namespace

void GPUDialect::initialize() {
  addInterfaces<LayoutAliases>();
  registerLayoutsAndTypes();
  addOperations<
#define GET_OP_LIST
#include "gdn/Dialect/GPU/IR/GPUOps.cpp.inc"
      >();
}

/// Checks that `attribute` is an integer from `least` to `most`.
static LogicalResult verifyNumber(Operation *op, NamedAttribute attribute,
                                  int64_t least, int64_t most) {
  auto number = dyn_cast<IntegerAttr>(attribute.getValue());
  if (number && number.getInt() >= least && number.getInt() <= most)
    return success();
  return op->emitOpError("expects '")
         << attribute.getName().getValue() << "' to be an integer from "
         << least << " to " << most << ", but got " << attribute.getValue();
}

LogicalResult GPUDialect::verifyOperationAttribute(Operation *op,
                                                   NamedAttribute attribute) {
  StringRef name = attribute.getName().getValue();
  if (!isa<FunctionOpInterface>(op))
    return op->emitOpError("expects '") << name << "' on a function only";
  if (name == "gdn_gpu.threads") {
    if (failed(verifyNumber(op, attribute, warpThreads, 1024)))
      return failure();
    int64_t threads = cast<IntegerAttr>(attribute.getValue()).getInt();
    if (threads % warpThreads != 0)
      return op->emitOpError("expects '")
             << name << "' to be whole warps of " << warpThreads
             << " threads, but got " << threads;
    return success();
  }
  if (name == "gdn_gpu.min_blocks")
    return verifyNumber(op, attribute, 1, 32);
  if (name == "gdn_gpu.cluster")
    return verifyNumber(op, attribute, 1, 8);
  if (name == "gdn_gpu.blocks_per_sm")
    return verifyNumber(op, attribute, 0, 32);
  if (name == "gdn_gpu.counters") {
    auto forms = dyn_cast<ArrayAttr>(attribute.getValue());
    if (!forms || !llvm::all_of(forms, llvm::IsaPred<StringAttr>))
      return op->emitOpError("expects '")
             << name << "' to be an array of strings, but got "
             << attribute.getValue();
  }
  if (name == "gdn_gpu.launch" && !isa<DictionaryAttr>(attribute.getValue()))
    return op->emitOpError("expects '")
           << name << "' to be a dictionary, but got " << attribute.getValue();
  return success();
}
