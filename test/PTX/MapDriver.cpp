// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuTensorMapEncodeTiled, which takes what the driver's documentation allows
// and, of that, what kernels here use.

#include "TensorMap.h"

#include "gdnrt/cuda_abi.h"

#include <cstring>

using gdnrt::cuda::Result;

static constexpr Result kInvalidValue = 1;

// NOLINTNEXTLINE(readability-identifier-naming): the name of the driver
extern "C" __attribute__((visibility("default"))) Result cuTensorMapEncodeTiled(
    gdnrt::cuda::TensorMap *map, int type, uint32_t rank, void *address,
    const uint64_t *sizes, const uint64_t *strides, const uint32_t *box,
    const uint32_t *elementStrides, int interleave, int swizzle, int promotion,
    int fill) {
  ptx::TensorMap made;
  made.address = reinterpret_cast<uint64_t>(address);
  made.rank = rank;
  if (!map ||
      reinterpret_cast<uint64_t>(map) % alignof(gdnrt::cuda::TensorMap) != 0 ||
      type != gdnrt::cuda::kTensorMapUint16 || rank < 3 ||
      rank > ptx::TensorMap::kMostRank || !address || made.address % 16 != 0 ||
      interleave != gdnrt::cuda::kTensorMapNoInterleave ||
      swizzle != gdnrt::cuda::kTensorMapSwizzle128 || promotion < 0 ||
      promotion > gdnrt::cuda::kTensorMapPromote256 ||
      fill != gdnrt::cuda::kTensorMapFillZeros)
    return kInvalidValue;
  for (uint32_t d = 0; d < rank; ++d) {
    if (sizes[d] < 1 || sizes[d] > uint64_t{1} << 32 || box[d] < 1 ||
        box[d] > 256 || elementStrides[d] != 1)
      return kInvalidValue;
    if (d > 0 &&
        (strides[d - 1] % 16 != 0 || strides[d - 1] >= uint64_t{1} << 40))
      return kInvalidValue;
    made.sizes[d] = sizes[d];
    made.strides[d] = d > 0 ? strides[d - 1] : 0;
    made.box[d] = box[d];
  }
  // A wider one would not be swizzled as a whole.
  if (box[0] * ptx::TensorMap::kElementBytes != ptx::TensorMap::kPieceBytes)
    return kInvalidValue;
  std::memcpy(map, &made, sizeof(made));
  return 0;
}
