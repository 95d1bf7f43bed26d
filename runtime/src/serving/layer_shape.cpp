// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every weight is a row of sections, and a rank has its part of each: heads are
// dealt out whole, a key head together with its value heads.

#include "gdnrt/layer_shape.h"

#include <algorithm>
#include <initializer_list>

using namespace gdnrt;

Status gdnrt::checkLayerHeads(const LayerHeads &heads, int64_t tp,
                              int64_t rank) {
  constexpr int64_t kMost = 1 << 20;
  for (auto [name, value] : {std::pair("num_key_heads", heads.num_key_heads),
                             {"num_value_heads", heads.num_value_heads},
                             {"key_dim", heads.key_dim},
                             {"value_dim", heads.value_dim},
                             {"tp", tp}})
    if (value < 1 || value > kMost)
      return invalid(name, ": expected 1 to ", kMost, ", got ", value);
  if (heads.num_value_heads % heads.num_key_heads != 0)
    return invalid("num_value_heads: expected a multiple of ",
                   heads.num_key_heads, ", the key heads, got ",
                   heads.num_value_heads);
  for (auto [name, value] : {std::pair("num_key_heads", heads.num_key_heads),
                             {"num_value_heads", heads.num_value_heads}})
    if (value % tp != 0)
      return invalid(name, ": expected a multiple of ", tp, ", the ranks, got ",
                     value);
  if (rank < 0 || rank >= tp)
    return invalid("rank: expected 0 to ", tp - 1, ", got ", rank);
  return {};
}

Result<LayerStateShape> gdnrt::layerStateShape(const LayerHeads &heads,
                                               int64_t tp, int64_t convWidth,
                                               int64_t numSpec, bool dimFirst) {
  if (Status s = checkLayerHeads(heads, tp); !s.isOk())
    return s;
  if (convWidth < 1)
    return invalid("conv_width: expected 1 or more, got ", convWidth);
  if (numSpec < 0)
    return invalid("num_spec: expected 0 or more, got ", numSpec);
  int64_t channels = (2 * heads.num_key_heads * heads.key_dim +
                      heads.num_value_heads * heads.value_dim) /
                     tp;
  int64_t positions = convWidth - 1 + numSpec;
  LayerStateShape shape;
  shape.conv = {positions, channels};
  if (dimFirst)
    shape.conv = {channels, positions};
  shape.ssm = {heads.num_value_heads / tp, heads.value_dim, heads.key_dim};
  return shape;
}

/// The sections of a weight along the dimension that is dealt out.
static Result<std::vector<int64_t>>
sectionsOf(const LayerHeads &heads, std::string_view weight, int32_t order) {
  int64_t hv = heads.num_value_heads;
  int64_t keys = heads.num_key_heads * heads.key_dim;
  int64_t values = hv * heads.value_dim;
  using Sections = std::vector<int64_t>;
  if (order != GDNRT_ORDER_INTERLEAVED && order != GDNRT_ORDER_FLAT)
    return invalid("order: expected 0 or 1, got ", order);
  bool flat = order == GDNRT_ORDER_FLAT;
  if (weight == "in_proj_qkvz")
    return flat ? Sections{keys, keys, values, values}
                : Sections{2 * (keys + values)};
  if (weight == "in_proj_ba")
    return flat ? Sections{hv, hv} : Sections{2 * hv};
  if (weight == "in_proj_qkv" || weight == "conv1d")
    return Sections{keys, keys, values};
  if (weight == "in_proj_z" || weight == "out_proj")
    return Sections{values};
  if (weight == "in_proj_b" || weight == "in_proj_a" || weight == "A_log" ||
      weight == "dt_bias")
    return Sections{hv};
  return failure(StatusCode::notFound, weight,
                 ": no weight of the layer; there are in_proj_qkvz, "
                 "in_proj_ba, in_proj_qkv, in_proj_z, in_proj_b, in_proj_a, "
                 "conv1d, A_log, dt_bias, norm, out_proj");
}

Result<WeightShard> gdnrt::weightShard(const LayerHeads &heads,
                                       std::string_view weight, int32_t order,
                                       int64_t tp, int64_t rank) {
  if (Status s = checkLayerHeads(heads, tp, rank); !s.isOk())
    return s;
  WeightShard shard;
  if (weight == "norm") {
    shard.slices.push_back({0, heads.value_dim});
    return shard;
  }
  auto sections = sectionsOf(heads, weight, order);
  if (!sections.isOk())
    return sections.status();
  shard.axis = weight == "out_proj" ? 1 : 0;
  int64_t start = 0;
  for (int64_t size : *sections) {
    shard.slices.push_back({start + rank * (size / tp), size / tp});
    start += size;
  }
  return shard;
}

Result<WeightShard> gdnrt::kdaWeightShard(const LayerHeads &heads,
                                          std::string_view weight, int64_t tp,
                                          int64_t rank) {
  if (Status s = checkLayerHeads(heads, tp, rank); !s.isOk())
    return s;
  const int64_t num = heads.num_value_heads;
  if (heads.num_key_heads != num)
    return invalid("num_key_heads: expected num_value_heads, which is ", num,
                   ", got ", heads.num_key_heads);
  WeightShard shard;
  if (weight == "f_a_proj" || weight == "g_a_proj" || weight == "o_norm") {
    shard.slices.push_back({0, heads.value_dim});
    return shard;
  }
  const int64_t keys = num * heads.key_dim, values = num * heads.value_dim;
  std::vector<int64_t> sections;
  auto isOneOf = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), weight) != names.end();
  };
  if (weight == "conv1d")
    sections = {keys, keys, values};
  else if (isOneOf({"q_proj", "k_proj", "q_conv1d", "k_conv1d", "f_proj",
                    "f_b_proj", "dt_bias"}))
    sections = {keys};
  else if (isOneOf({"v_proj", "v_conv1d", "g_proj", "g_b_proj", "o_proj"}))
    sections = {values};
  else if (isOneOf({"b_proj", "A_log"}))
    sections = {num};
  else
    return failure(StatusCode::notFound, weight,
                   ": no weight of a layer of KDA");
  shard.axis = weight == "o_proj" ? 1 : 0;
  int64_t start = 0;
  for (int64_t size : sections) {
    shard.slices.push_back({start + rank * (size / tp), size / tp});
    start += size;
  }
  return shard;
}
