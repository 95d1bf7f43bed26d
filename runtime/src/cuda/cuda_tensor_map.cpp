// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From an array and its boxes to cuTensorMapEncodeTiled. What the driver would
// refuse without a reason is looked at here.

#include "gdnrt/cuda_tensor_map.h"

#include <algorithm>
#include <cstring>

using namespace gdnrt;
using namespace gdnrt::cuda;

// What the driver takes.
static constexpr int64_t kArrayAlignment = 16;
// Coordinates have 32 bits with a sign.
static constexpr int64_t kMostElements = int64_t{1} << 31;
static constexpr int64_t kStrideEnd = int64_t{1} << 40;

static constexpr int64_t kElementBytes = 2;
static constexpr int64_t kPieceBytes = kBoxPieceColumns * kElementBytes;

static std::string describe(const MappedArray &array) {
  return array.param
             ? *array.param
             : "region " + std::to_string(array.region) + " of the workspace";
}

/// The bytes from one element of dimension `d` to the next, as the driver takes
/// them.
static Status strideOf(const MappedArray &array, int d, uint64_t &bytes) {
  // There is no next one, so the caller's stride may be anything.
  if (array.sizes[d] == 1) {
    bytes = kPieceBytes;
    return {};
  }
  int64_t stride = array.strides[d];
  if (stride < 0 || stride >= kStrideEnd / kElementBytes)
    return invalid(describe(array), ": expected the stride of dim ", d,
                   " to be from 0 to less than ", kStrideEnd / kElementBytes,
                   " where boxes are copied, got ", stride);
  if (stride * kElementBytes % kArrayAlignment != 0)
    return invalid(describe(array), ": expected the stride of dim ", d,
                   " to be a multiple of ", kArrayAlignment,
                   " bytes where boxes are copied, got ",
                   stride * kElementBytes);
  bytes = static_cast<uint64_t>(stride * kElementBytes);
  return {};
}

Status CudaTensorMapEncoder::encodeOne(const MappedArray &array,
                                       int64_t *map) const {
  constexpr size_t kMostRank = kMaxMappedRank + 1;
  int columns = array.rank - 1;
  if (array.strides[columns] != 1)
    return invalid(describe(array), ": expected stride 1 in dim ", columns,
                   " where boxes are copied, got ", array.strides[columns]);
  if (uint64_t past = reinterpret_cast<uintptr_t>(array.data) % kArrayAlignment)
    return invalid(describe(array), ": expected data aligned to ",
                   kArrayAlignment,
                   " bytes where boxes are copied, got an address ", past,
                   " past a multiple");

  uint64_t sizes[kMostRank] = {kBoxPieceColumns};
  uint64_t strides[kMostRank - 1] = {};
  uint32_t box[kMostRank] = {kBoxPieceColumns};
  uint32_t elementStrides[kMostRank] = {1};
  uint32_t rank = 1;
  auto add = [&](uint64_t size, uint64_t stride, uint32_t inBox) {
    strides[rank - 1] = stride;
    sizes[rank] = size;
    box[rank] = inBox;
    elementStrides[rank] = 1;
    ++rank;
  };
  auto addDim = [&](int d, uint32_t inBox) -> Status {
    if (array.sizes[d] > kMostElements)
      return invalid(describe(array), ": expected dim ", d, " to be at most ",
                     kMostElements, " where boxes are copied, got ",
                     array.sizes[d]);
    uint64_t stride = 0;
    if (Status status = strideOf(array, d, stride); !status.isOk())
      return status;
    add(static_cast<uint64_t>(array.sizes[d]), stride, inBox);
    return {};
  };
  if (Status status = addDim(array.rowsDim, array.rows); !status.isOk())
    return status;
  uint64_t pieces =
      static_cast<uint64_t>(array.sizes[columns] / kBoxPieceColumns);
  add(pieces, kPieceBytes,
      array.pieces ? array.pieces : static_cast<uint32_t>(pieces));
  for (int d = columns - 1; d >= 0; --d)
    if (d != array.rowsDim)
      if (Status status = addDim(d, 1); !status.isOk())
        return status;

  const Driver &driver = context_->driver();
  TensorMap encoded = {}; // aligned as the driver wants it
  cuda::Result result = driver.tensorMapEncode(
      &encoded, kTensorMapUint16, rank, array.data, sizes, strides, box,
      elementStrides, kTensorMapNoInterleave, kTensorMapSwizzle128,
      kTensorMapPromote256, kTensorMapFillZeros);
  if (result != kSuccess) {
    std::string text = what_ + ": " + describe(array) + ", ";
    for (int d = 0; d < array.rank; ++d)
      text += (d ? " x " : "") + std::to_string(array.sizes[d]);
    text += " with strides";
    for (int d = 0; d < array.rank; ++d)
      text += (d ? ", " : " ") + std::to_string(array.strides[d]);
    return driver.check(result, "cuTensorMapEncodeTiled", text);
  }
  std::memcpy(map, &encoded, sizeof(encoded));
  return {};
}

Status CudaTensorMapEncoder::encode(const MappedArray *arrays, size_t count,
                                    int64_t *maps) const {
  CurrentContext current(*context_);
  if (!current.status().isOk())
    return current.status();
  for (size_t i = 0; i < count; ++i) {
    const MappedArray &array = arrays[i];
    int64_t *map = maps + i * kMapWords;
    if (!array.data ||
        std::count(array.sizes, array.sizes + array.rank, 0) != 0) {
      std::fill_n(map, kMapWords, 0);
      continue;
    }
    if (Status status = encodeOne(array, map); !status.isOk())
      return status;
  }
  return {};
}
