// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verification of gdn.kernel.
#include "gdn/Dialect/GDN/IR/GDN.h"

using namespace mlir;
using namespace gdn;

LogicalResult KernelOp::verifyRegions() { return success(); }
