// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The shapes of a layer's states, and the parts of its weights that ranks hold.
// See gdn-c/layer_shape.h.

#ifndef GDNRT_LAYER_SHAPE_H
#define GDNRT_LAYER_SHAPE_H

#include "gdn-c/layer_shape.h"
#include "gdnrt/status.h"

#include <array>
#include <string_view>
#include <vector>

namespace gdnrt {

using LayerHeads = gdnrt_layer_heads;

/// Checks that all sizes are 1 to 2^20, that Hv is a multiple of Hk, that both
/// are multiples of `tp`, and that 0 <= rank < tp.
Status checkLayerHeads(const LayerHeads &heads, int64_t tp, int64_t rank = 0);

struct LayerStateShape {
  std::array<int64_t, 2> conv;
  std::array<int64_t, 3> ssm;
};
Result<LayerStateShape> layerStateShape(const LayerHeads &heads, int64_t tp,
                                        int64_t convWidth, int64_t numSpec,
                                        bool dimFirst);

/// The part of a weight that one rank holds: the concatenation of the slices
/// along `axis`.
struct WeightShard {
  int32_t axis = 0;
  std::vector<gdnrt_slice> slices;
};
Result<WeightShard> weightShard(const LayerHeads &heads,
                                std::string_view weight, int32_t order,
                                int64_t tp, int64_t rank);
/// As above, of a layer with a decay of each channel.
Result<WeightShard> kdaWeightShard(const LayerHeads &heads,
                                   std::string_view weight, int64_t tp,
                                   int64_t rank);

} // namespace gdnrt

#endif // GDNRT_LAYER_SHAPE_H
