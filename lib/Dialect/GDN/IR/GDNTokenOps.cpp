// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifiers of the ops in GDNTokenOps.td; (Cn) are that file's constraints.
#include "gdn/Dialect/GDN/IR/GDN.h"

using namespace mlir;
using namespace gdn;

LogicalResult UnpackOp::verify() { return success(); }
LogicalResult GatesOp::verify() { return success(); }
LogicalResult L2NormOp::verify() { return success(); }
LogicalResult GatedRMSNormOp::verify() { return success(); }
LogicalResult CastOp::verify() { return success(); }
