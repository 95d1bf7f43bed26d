// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Conversion passes; documented in Passes.td.
#ifndef GDN_CONVERSION_PASSES_H
#define GDN_CONVERSION_PASSES_H

#include "gdn/Conversion/Precision.h"

#include "mlir/Pass/Pass.h"

namespace gdn {
#define GEN_PASS_DECL
#include "gdn/Conversion/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "gdn/Conversion/Passes.h.inc"
} // namespace gdn

#endif // GDN_CONVERSION_PASSES_H
