// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C ABI of a layer's shapes.

#include "handles.h"
#include "sized_struct.h"

#include "gdnrt/layer_shape.h"

#include <algorithm>

using namespace gdnrt;

gdnrt_status gdnrt_layer_state_shape(const gdnrt_layer_heads *heads, int64_t tp,
                                     int64_t conv_width, int64_t num_spec,
                                     int32_t dim_first, int64_t conv[2],
                                     int64_t ssm[3], gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    gdnrt_layer_heads known;
    if (Status s = readStruct("heads", heads, known); !s.isOk())
      return s;
    if (!conv || !ssm)
      return nullPointer(conv ? "ssm" : "conv");
    auto shape =
        layerStateShape(known, tp, conv_width, num_spec, dim_first != 0);
    if (!shape.isOk())
      return shape.status();
    std::copy(shape->conv.begin(), shape->conv.end(), conv);
    std::copy(shape->ssm.begin(), shape->ssm.end(), ssm);
    return {};
  });
}

static bool isFloat(int32_t dtype) {
  return dtype == GDNRT_F32 || dtype == GDNRT_BF16 || dtype == GDNRT_F16;
}

gdnrt_status gdnrt_layer_state_dtype(int32_t model_dtype,
                                     int32_t mamba_cache_dtype,
                                     int32_t mamba_ssm_cache_dtype,
                                     int32_t *conv, int32_t *ssm,
                                     gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!conv || !ssm)
      return nullPointer(conv ? "ssm" : "conv");
    if (!isFloat(model_dtype))
      return invalid("model_dtype: expected f32, bf16 or f16, got ",
                     model_dtype);
    for (auto [name, dtype] :
         {std::pair("mamba_cache_dtype", mamba_cache_dtype),
          {"mamba_ssm_cache_dtype", mamba_ssm_cache_dtype}})
      if (dtype != -1 && !isFloat(dtype))
        return invalid(name, ": expected f32, bf16, f16 or -1, got ", dtype);
    *conv = mamba_cache_dtype == -1 ? model_dtype : mamba_cache_dtype;
    *ssm = mamba_ssm_cache_dtype == -1 ? *conv : mamba_ssm_cache_dtype;
    return {};
  });
}

/// What `shardOf` deals out, to the caller's arrays.
template <typename ShardOf>
static gdnrt_status
writeSlices(const gdnrt_layer_heads *heads, const char *weight, int32_t *axis,
            gdnrt_slice slices[GDNRT_MAX_SLICES], size_t *count,
            gdnrt_error *error, ShardOf shardOf) {
  return guarded(error, [&]() -> Status {
    gdnrt_layer_heads known;
    if (Status s = readStruct("heads", heads, known); !s.isOk())
      return s;
    if (!weight)
      return nullPointer("weight");
    if (!axis || !slices || !count)
      return nullPointer("axis, slices, count");
    auto shard = shardOf(known);
    if (!shard.isOk())
      return shard.status();
    *axis = shard->axis;
    *count = shard->slices.size();
    std::copy(shard->slices.begin(), shard->slices.end(), slices);
    return {};
  });
}

gdnrt_status gdnrt_layer_weight_slices(const gdnrt_layer_heads *heads,
                                       const char *weight, int32_t order,
                                       int64_t tp, int64_t rank, int32_t *axis,
                                       gdnrt_slice slices[GDNRT_MAX_SLICES],
                                       size_t *count, gdnrt_error *error) {
  return writeSlices(heads, weight, axis, slices, count, error,
                     [&](const gdnrt_layer_heads &known) {
                       return weightShard(known, weight, order, tp, rank);
                     });
}

gdnrt_status gdnrt_kda_weight_slices(const gdnrt_layer_heads *heads,
                                     const char *weight, int64_t tp,
                                     int64_t rank, int32_t *axis,
                                     gdnrt_slice slices[GDNRT_MAX_SLICES],
                                     size_t *count, gdnrt_error *error) {
  return writeSlices(heads, weight, axis, slices, count, error,
                     [&](const gdnrt_layer_heads &known) {
                       return kdaWeightShard(known, weight, tp, rank);
                     });
}

gdnrt_status gdnrt_rank_place(int64_t tp, int64_t cp, int64_t rank,
                              int64_t *tp_rank, int64_t *cp_rank,
                              gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!tp_rank || !cp_rank)
      return nullPointer("tp_rank, cp_rank");
    constexpr int64_t most = int64_t(1) << 20;
    for (auto [name, ranks] : {std::pair("tp", tp), {"cp", cp}})
      if (ranks < 1 || ranks > most)
        return invalid(name, ": expected 1 to ", most, ", got ", ranks);
    if (rank < 0 || rank >= tp * cp)
      return invalid("rank: expected 0 to ", tp * cp - 1, ", got ", rank);
    *tp_rank = rank % tp;
    *cp_rank = rank / tp;
    return {};
  });
}
