// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which variants prefill has on a target, and when a launch takes which.
#ifndef GDN_LIB_PIPELINES_PREFILLPOLICY_H
#define GDN_LIB_PIPELINES_PREFILLPOLICY_H

#include "gdn/Target/TargetModel.h"

#include "llvm/ADT/SmallVector.h"

#include <string>

namespace gdn {

/// Texts of the option `variants` of convert-gdn-to-tile, in the order in which
/// launches ask for them.
llvm::SmallVector<std::string> getPrefillPolicy(const TargetModel &target);

} // namespace gdn

#endif // GDN_LIB_PIPELINES_PREFILLPOLICY_H
