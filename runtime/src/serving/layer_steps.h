// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether a layer's kernels can run all steps of a builder.

#ifndef GDNRT_SERVING_LAYER_STEPS_H
#define GDNRT_SERVING_LAYER_STEPS_H

#include "gdnrt/status.h"

#include <cstdint>

namespace gdnrt {

class LayerKernel;
class MetadataBuilder;

/// The kernels of a layer, null where it has none, the gdnrt_verify_states of
/// the last two, and whether writes are deferred.
struct LayerKernels {
  const LayerKernel *decode, *prefill, *verify, *commit;
  int32_t verifyStates;
  bool defersWrites;
};

/// See gdnrt_gdn_layer_check_steps.
Status checkKernels(const LayerKernels &layer, const MetadataBuilder &builder);

} // namespace gdnrt

#endif // GDNRT_SERVING_LAYER_STEPS_H
