// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pools of a layer, and the entries that move their slots.
#ifndef GDN_LIB_MODEL_POOLENTRIES_H
#define GDN_LIB_MODEL_POOLENTRIES_H

#include "Signature.h"

#include "gdn/Model/ModelConfig.h"

namespace gdn {

/// Adds `conv_pool`, unless the layout is ready, and `state_pool`.
void addPools(Signature &signature, mlir::OpBuilder &builder,
              const ModelConfig &config, const EntryOptions &options,
              llvm::StringRef prefix = "", llvm::StringRef slots = "P");

/// Says of an entry of which model and types it is: the facts of entries that
/// compute nothing of a layer.
void addTypeFacts(mlir::func::FuncOp func, const ModelConfig &config,
                  const EntryOptions &options);

/// Builds `copy_slots`, from `slots` to `write_slots` of both pools, and
/// `zero_slots`.
void buildPoolEntries(mlir::OpBuilder &builder, const ModelConfig &config,
                      const EntryOptions &options, llvm::StringRef suffix);

} // namespace gdn

#endif // GDN_LIB_MODEL_POOLENTRIES_H
