// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From a model's configuration to a gdn module with the entries `prefill`,
// `decode`, `copy_slots`, `zero_slots` and, by choice, `verify`; see the page
// on entries and images.
#ifndef GDN_MODEL_ENTRYBUILDER_H
#define GDN_MODEL_ENTRYBUILDER_H

#include "gdn/Model/ModelConfig.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace gdn {

/// Builds a module with these entries for each of `variants`: `prefill`, over
/// ragged sequences; `decode`, one token per sequence; `copy_slots` and
/// `zero_slots`, on the pools of both; and where it says so `verify`, over
/// sequences of up to 8 tokens of which some may be refused. With several
/// variants the names get a suffix `_<io>_<state>`. Fails when an option does
/// not fit the model, and when two variants would have the same names.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
buildEntryModule(mlir::MLIRContext &context, const ModelConfig &config,
                 llvm::ArrayRef<EntryOptions> variants);

} // namespace gdn

#endif // GDN_MODEL_ENTRYBUILDER_H
