// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Schedules: tile programs to blocks of GPU threads; documented in Passes.td.
#ifndef GDN_SCHEDULE_PASSES_H
#define GDN_SCHEDULE_PASSES_H

#include "gdn/Target/GpuFacts.h"

#include "mlir/Pass/Pass.h"

namespace gdn {
#define GEN_PASS_DECL
#include "gdn/Schedule/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "gdn/Schedule/Passes.h.inc"
} // namespace gdn

#endif // GDN_SCHEDULE_PASSES_H
