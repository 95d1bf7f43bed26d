// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensor maps of the driver (CUtensorMap).

#ifndef GDNRT_CUDA_TENSOR_MAP_H
#define GDNRT_CUDA_TENSOR_MAP_H

#include "gdnrt/cuda_driver.h"
#include "gdnrt/tensor_map_encoder.h"

#include <memory>
#include <string>

namespace gdnrt::cuda {

static_assert(sizeof(TensorMap) == kMapWords * sizeof(int64_t) &&
                  alignof(TensorMap) == kMapAlignmentWords * sizeof(int64_t),
              "maps are laid out as the driver's");

/// Makes tensor maps of arrays whose rows are cut into pieces of 128 bytes. TMA
/// copies swizzle the pieces. The dimensions of a map are:
///
///   dimension 0   64 columns
///   dimension 1   rows
///   dimension 2   pieces of a row
///   then          the other dimensions of the array, innermost first
class CudaTensorMapEncoder final : public TensorMapEncoder {
public:
  /// `what` names the entry in messages.
  CudaTensorMapEncoder(std::shared_ptr<const DeviceContext> context,
                       std::string what)
      : context_(std::move(context)), what_(std::move(what)) {}

  Status encode(const MappedArray *arrays, size_t count,
                int64_t *maps) const override;

private:
  Status encodeOne(const MappedArray &array, int64_t *map) const;

  std::shared_ptr<const DeviceContext> context_;
  std::string what_;
};

} // namespace gdnrt::cuda

#endif // GDNRT_CUDA_TENSOR_MAP_H
