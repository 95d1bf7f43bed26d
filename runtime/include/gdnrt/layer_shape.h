// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shapes of a layer's states, and the shares that ranks have of its weights.
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

/// Positive sizes, Hv a multiple of Hk, both of `tp`, 0 <= rank < tp.
Status checkLayerHeads(const LayerHeads &heads, int64_t tp, int64_t rank = 0);

struct LayerStateShape {
  std::array<int64_t, 2> conv;
  std::array<int64_t, 3> ssm;
};
Result<LayerStateShape> layerStateShape(const LayerHeads &heads, int64_t tp,
                                        int64_t convWidth, int64_t numSpec,
                                        bool dimFirst);

/// Slices along `axis`, to be concatenated.
struct WeightShard {
  int32_t axis = 0;
  std::vector<gdnrt_slice> slices;
};
Result<WeightShard> weightShard(const LayerHeads &heads,
                                std::string_view weight, int32_t order,
                                int64_t tp, int64_t rank);

} // namespace gdnrt

#endif // GDNRT_LAYER_SHAPE_H
