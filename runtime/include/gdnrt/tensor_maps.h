// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tensor maps with which the kernels of a variant are launched. They are
// made when an argument, the workspace or the variant changes, so a launch only
// copies them.

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
  /// Allocates all memory that `encode` needs. Allocates nothing without an
  /// encoder. The encoder must outlive this object.
  TensorMaps(const CodeSchema &code, const TensorMapEncoder *encoder);

  /// Whether there are tensor maps to make.
  bool areNeeded() const { return !words_.empty(); }

  /// Makes the tensor maps of variant `index`, whose workspace is at
  /// `workspace`. `code` is that of the constructor.
  Status encode(const EntrySchema &entry, const CodeSchema &code, size_t index,
                const LaunchPlan &plan, const std::vector<BoundParam> &params,
                const std::vector<int64_t> &symbols, void *workspace);

  /// The tensor maps of one stage, one after another, of the variant that
  /// `encode` made last.
  const int64_t *ofStage(size_t stage) const {
    return words_.data() + firstWords_[stage];
  }

private:
  const TensorMapEncoder *encoder_;
  std::vector<MappedArray> arrays_;
  std::vector<int64_t> words_;
  /// For each stage.
  std::vector<size_t> firstWords_;
};

} // namespace gdnrt

#endif // GDNRT_TENSOR_MAPS_H
