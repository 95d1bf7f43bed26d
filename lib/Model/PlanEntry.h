// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The entry that plans a batch whose arrays are on the device.
#ifndef GDN_LIB_MODEL_PLANENTRY_H
#define GDN_LIB_MODEL_PLANENTRY_H

#include "Signature.h"

#include "gdn/Model/ModelConfig.h"

namespace gdn {

/// Builds `plan`, which makes what the launches of a mixed batch read from the
/// arrays of an engine. All kinds of verify but trees take accepted counts.
void buildPlanEntry(mlir::OpBuilder &builder, const ModelConfig &config,
                    const EntryOptions &options, llvm::StringRef suffix);

} // namespace gdn

#endif // GDN_LIB_MODEL_PLANENTRY_H
