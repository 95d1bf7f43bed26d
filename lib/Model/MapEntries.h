// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The entries that combine and apply maps of tokens, for sequences that are
// spread over ranks.
#ifndef GDN_LIB_MODEL_MAPENTRIES_H
#define GDN_LIB_MODEL_MAPENTRIES_H

#include "gdn/Model/EntryOptions.h"
#include "gdn/Model/ModelConfig.h"

#include "mlir/IR/Builders.h"

namespace gdn {

/// Builds `combine_maps`, from maps of segments to one of each sequence, and
/// `apply_maps`, from those of ranks to states.
void buildMapEntries(mlir::OpBuilder &builder, const ModelConfig &config,
                     const EntryOptions &options, llvm::StringRef suffix);

} // namespace gdn

#endif // GDN_LIB_MODEL_MAPENTRIES_H
