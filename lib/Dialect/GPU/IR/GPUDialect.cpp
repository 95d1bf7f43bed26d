// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registration of the gdn_gpu dialect.
#include "gdn/Dialect/GPU/IR/GPU.h"

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
