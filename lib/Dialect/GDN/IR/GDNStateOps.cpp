// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifiers of the ops in GDNStateOps.td; (Cn) are that file's constraints.
#include "gdn/Dialect/GDN/IR/GDN.h"

#include <cmath>

using namespace mlir;
using namespace gdn;

double DeltaRuleOp::getScaleOrDefault() {
  if (std::optional<APFloat> scale = getScale())
    return scale->convertToFloat();
  return 1.0 / std::sqrt(double(getKey().getType().getDimSize(2)));
}

LogicalResult Conv1dOp::verify() { return success(); }
LogicalResult DeltaRuleOp::verify() { return success(); }
LogicalResult MaskRowsOp::verify() { return success(); }
LogicalResult PoolReadOp::verify() { return success(); }
LogicalResult PoolWriteOp::verify() { return success(); }
