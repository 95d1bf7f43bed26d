// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pools of a layer's kernels, from a state pool.

#ifndef GDNRT_LAYER_POOLS_H
#define GDNRT_LAYER_POOLS_H

#include "gdnrt/loaded_kernel.h"
#include "gdnrt/state_pool.h"

#include "gdn-c/serving.h"

#include <memory>
#include <vector>

namespace gdnrt {

/// The arrays of layer `layer` of `pool` that kernels have as parameters, for
/// GDNLayer::make. `kernels` are all but prefill; each may be null. Fails if
/// the pool does not keep what they keep.
Result<std::vector<gdnrt_named_arg>>
poolArguments(const StatePool &pool, int64_t layer,
              const std::shared_ptr<LoadedKernel> &prefill,
              std::vector<std::shared_ptr<LoadedKernel>> kernels);

} // namespace gdnrt

#endif // GDNRT_LAYER_POOLS_H
