// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The entry that plans a batch whose arrays are on the device.
#ifndef GDN_LIB_MODEL_PLANENTRY_H
#define GDN_LIB_MODEL_PLANENTRY_H

#include "Signature.h"

#include "gdn/Model/ModelConfig.h"

namespace gdn {

/// Builds `plan`, which makes what verify and prefill of a mixed batch need
/// from the arrays of an engine. With slots it takes accepted counts.
void buildPlanEntry(mlir::OpBuilder &builder, const ModelConfig &config,
                    const EntryOptions &options, llvm::StringRef suffix);

} // namespace gdn

#endif // GDN_LIB_MODEL_PLANENTRY_H
