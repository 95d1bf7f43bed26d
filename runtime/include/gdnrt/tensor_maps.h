// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The maps that the kernels of a variant are launched with. They are made when
// what they depend on changes, so that a launch only copies them.

#ifndef GDNRT_TENSOR_MAPS_H
#define GDNRT_TENSOR_MAPS_H

#include "gdnrt/entry_schema.h"
#include "gdnrt/launch_plan.h"
#include "gdnrt/tensor_map_encoder.h"

#include <vector>

namespace gdnrt {

struct BoundParam;

class TensorMaps {
public:
  /// Takes all memory that `encode` needs; none without an encoder, which has
  /// to live as long as this.
  TensorMaps(const CodeSchema &code, const TensorMapEncoder *encoder);

  /// Whether there is anything to encode.
  bool areNeeded() const { return !words_.empty(); }

  /// Makes the maps of variant `index`, whose workspace is at `workspace`.
  /// `code` is that of construction.
  Status encode(const EntrySchema &entry, const CodeSchema &code, size_t index,
                const LaunchPlan &plan, const std::vector<BoundParam> &params,
                const std::vector<int64_t> &symbols, void *workspace);

  /// The maps of a stage, one after another, of the variant that was encoded
  /// last.
  const int64_t *ofStage(size_t stage) const {
    return words_.data() + firstWords_[stage];
  }

private:
  const TensorMapEncoder *encoder_;
  std::vector<MappedArray> arrays_;
  std::vector<int64_t> words_;
  /// By stage.
  std::vector<size_t> firstWords_;
};

} // namespace gdnrt

#endif // GDNRT_TENSOR_MAPS_H
