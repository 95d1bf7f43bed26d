// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layout and size of a pool. Products are taken of numbers that are checked
// one by one, in 128 bits where many meet.

#include "pool_shape.h"

#include <algorithm>

using namespace gdnrt;

/// More bytes than any machine has.
constexpr int64_t kMostBytes = int64_t{1} << 48;

static Status checkDType(DType dtype, const char *name) {
  if (dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16)
    return {};
  return invalid("state_pool: ", name, ": expected f32, bf16 or f16, got ",
                 toString(dtype));
}

Status gdnrt::checkShape(const StatePoolShape &shape) {
  // Ids of slots are i32.
  constexpr int64_t slots = int64_t{1} << 30, sizes = int64_t{1} << 20;
  const struct {
    const char *name;
    int64_t value, least, most;
  } numbers[] = {
      {"num_layers", shape.numLayers, 1, kMostLayers},
      {"num_requests", shape.numRequests, 0, slots},
      {"num_track", shape.numTrack, 0, slots},
      {"num_key_heads", shape.keyHeads, 1, sizes},
      {"num_value_heads", shape.valueHeads, 1, sizes},
      {"key_dim", shape.keyDim, 1, sizes},
      {"value_dim", shape.valueDim, 1, sizes},
      {"conv_width", shape.convWidth, 2, sizes},
      {"conv_extra", shape.convExtra, 0, sizes},
      {"pending_tokens", shape.pendingTokens, 0, sizes},
      {"state_planes", shape.statePlanes, 0, 2},
  };
  for (const auto &number : numbers)
    if (number.value < number.least || number.value > number.most)
      return invalid("state_pool: ", number.name, ": expected ", number.least,
                     " to ", number.most, ", got ", number.value);
  if (shape.deferredWrites && shape.pendingTokens == 0)
    return invalid("state_pool: pending_tokens: expected 1 or more with "
                   "deferred_writes, got 0");
  const bool isNarrow = shape.pendingDType == DType::f16;
  if (!isNarrow && shape.pendingDType != DType::f32)
    return invalid("state_pool: pending_dtype: expected f32 or f16, got ",
                   toString(shape.pendingDType));
  if (isNarrow && !shape.deferredWrites)
    return invalid("state_pool: pending_dtype: expected f32 without "
                   "deferred_writes, got f16");
  if (shape.keepsInputs() && shape.convExtra != 0 &&
      shape.convExtra != shape.pendingTokens)
    return invalid("state_pool: conv_extra: expected ", shape.pendingTokens,
                   ", the pending tokens, or 0, got ", shape.convExtra);
  if (shape.statePlanes == 1 && !shape.deferredWrites)
    return invalid("state_pool: state_planes: expected 2 without "
                   "deferred_writes, for one plane is too coarse for states "
                   "that are rounded at every token, got 1");
  if (shape.statePlanes > 0 && shape.stateDType != DType::f32)
    return invalid("state_pool: state_dtype: expected f32 with state_planes, "
                   "got ",
                   toString(shape.stateDType));
  if (Status status = checkDType(shape.stateDType, "state_dtype");
      !status.isOk())
    return status;
  return checkDType(shape.convDType, "conv_dtype");
}

/// Two axes, slots and layers, of blocks of `elements`: fills in strides that
/// are 0, and gives the elements from the first to the last.
static Result<int64_t> placeBlocks(const char *name, int64_t elements,
                                   int64_t slots, int64_t layers,
                                   int64_t &slotStride, int64_t &layerStride) {
  using Wide = __int128;
  if (slotStride == 0)
    slotStride = elements;
  if (layerStride == 0) {
    if (Wide(slots) * slotStride > kMostBytes)
      return failure(StatusCode::outOfMemory, "state_pool: ", name,
                     ": no memory for ", slots, " slots of ", slotStride,
                     " elements");
    layerStride = slots * slotStride;
  }
  const bool layersOutside = layerStride >= slotStride;
  const int64_t inner = layersOutside ? slotStride : layerStride;
  const int64_t outer = layersOutside ? layerStride : slotStride;
  const Wide span =
      Wide(layersOutside ? slots - 1 : layers - 1) * inner + elements;
  if (inner < elements)
    return invalid("state_pool: ", name, ": expected strides of at least ",
                   elements, " elements, got ", inner);
  if (outer < span)
    return invalid("state_pool: ", name, ": a ",
                   layersOutside ? "layer" : "slot", " stride of ", outer,
                   " elements makes blocks overlap, which reach over ",
                   span > kMostBytes ? kMostBytes : static_cast<int64_t>(span));
  const Wide all = Wide(layersOutside ? layers - 1 : slots - 1) * outer + span;
  if (all > kMostBytes)
    return failure(StatusCode::outOfMemory, "state_pool: ", name,
                   ": no memory for ", layers, " layers of ", slots,
                   " slots of ", elements, " elements");
  return static_cast<int64_t>(all);
}

static Result<uint64_t> place(BufferPlan &plan, const StatePoolShape &shape,
                              int64_t slotStride, int64_t layerStride) {
  SlotBuffer &buffer = plan.buffer;
  int64_t elements = 1;
  for (size_t d = 1; d < buffer.sizes.size(); ++d)
    if (__builtin_mul_overflow(elements, buffer.sizes[d], &elements) ||
        elements > kMostBytes)
      return failure(StatusCode::outOfMemory, "state_pool: ", buffer.name,
                     ": no memory for a slot");
  auto all = placeBlocks(buffer.name.c_str(), elements, shape.numSlots(),
                         shape.numLayers, slotStride, layerStride);
  if (!all.isOk())
    return all.status();
  buffer.strides[0] = slotStride;
  const int64_t bytes = sizeInBytes(buffer.dtype);
  plan.layerStrideBytes = layerStride * bytes;
  if (Status status = finishSlotBuffer(buffer); !status.isOk())
    return status;
  return static_cast<uint64_t>(*all * bytes);
}

uint64_t gdnrt::plannedBytes(const std::vector<BufferPlan> &plans,
                             size_t first) {
  if (first == plans.size())
    return 0;
  return plans.back().offset + plans.back().bytes - plans[first].offset;
}

Result<std::vector<BufferPlan>> gdnrt::planPool(const StatePoolShape &given) {
  StatePoolShape shape = given;
  if (Status status = checkShape(shape); !status.isOk())
    return status;
  const struct {
    const char *name;
    int64_t value;
  } strides[] = {
      {"state_slot_stride", shape.stateSlotStride},
      {"state_layer_stride", shape.stateLayerStride},
      {"conv_slot_stride", shape.convSlotStride},
      {"conv_layer_stride", shape.convLayerStride},
  };
  for (const auto &stride : strides)
    if (stride.value < 0 || stride.value > kMostBytes)
      return invalid("state_pool: ", stride.name, ": expected 0 to ",
                     kMostBytes, ", got ", stride.value);
  if (shape.keepsInputs())
    shape.convExtra = shape.pendingTokens;
  const int64_t positions = shape.convWidth - 1 + shape.convExtra;
  const int64_t pending = shape.pendingTokens;
  const bool isSD = shape.convLayout == ConvLayout::sd;
  std::vector<BufferPlan> plans;
  uint64_t end = 0;
  // `strides` of an element of a slot; none: row-major.
  auto add = [&](PoolBuffer kind, const char *name, DType dtype,
                 std::vector<int64_t> sizes, std::vector<int64_t> strides,
                 int64_t slotStride, int64_t layerStride) -> Status {
    BufferPlan plan;
    plan.kind = kind;
    SlotBuffer &buffer = plan.buffer;
    buffer.name = name;
    buffer.dtype = dtype;
    if (strides.empty()) {
      strides.assign(sizes.size(), 1);
      for (size_t d = sizes.size() - 1; d > 0; --d)
        strides[d - 1] = strides[d] * sizes[d];
    }
    buffer.sizes = std::move(sizes);
    buffer.sizes.insert(buffer.sizes.begin(), shape.numSlots());
    buffer.strides = std::move(strides);
    buffer.strides.insert(buffer.strides.begin(), 0);
    auto bytes = place(plan, shape, slotStride, layerStride);
    if (!bytes.isOk())
      return bytes.status();
    // Where the driver would have put a block of its own.
    constexpr uint64_t alignment = 256;
    plan.offset = (end + alignment - 1) / alignment * alignment;
    plan.bytes = *bytes;
    end = plan.offset + plan.bytes;
    plans.push_back(std::move(plan));
    return {};
  };
  const std::vector<int64_t> state = {shape.valueHeads, shape.valueDim,
                                      shape.keyDim};
  Status status = add(PoolBuffer::state, "state",
                      shape.statePlanes > 0 ? DType::u8 : shape.stateDType,
                      state, {}, shape.stateSlotStride, shape.stateLayerStride);
  if (status.isOk())
    status = add(PoolBuffer::convHistory, "conv", shape.convDType,
                 {shape.channels(), positions},
                 {isSD ? 1 : positions, isSD ? shape.channels() : 1},
                 shape.convSlotStride, shape.convLayerStride);
  if (status.isOk() && pending > 0)
    status = add(PoolBuffer::pendingKeys, "pending_keys", shape.pendingDType,
                 {shape.keyHeads, pending, shape.keyDim}, {}, 0, 0);
  if (status.isOk() && pending > 0)
    status =
        add(PoolBuffer::pendingDeltas, "pending_deltas", shape.pendingDType,
            {shape.valueHeads, pending, shape.valueDim}, {}, 0, 0);
  std::vector<int64_t> decays = {shape.valueHeads, pending};
  if (shape.decayPerChannel)
    decays.push_back(shape.keyDim);
  if (status.isOk() && pending > 0)
    status = add(PoolBuffer::pendingDecays, "pending_decays", DType::f32,
                 decays, {}, 0, 0);
  if (status.isOk() && shape.deferredWrites)
    status = add(PoolBuffer::pendingCounts, "pending_counts", DType::i32,
                 {shape.keyHeads}, {}, 0, 0);
  if (status.isOk() && shape.pendingDType == DType::f16)
    status = add(PoolBuffer::pendingScales, "pending_scales", DType::f32,
                 {shape.valueHeads, pending}, {}, 0, 0);
  if (status.isOk() && shape.statePlanes > 0)
    status = add(PoolBuffer::stateScales, "state_scales", DType::f32,
                 {shape.valueHeads, shape.valueDim}, {}, 0, 0);
  if (status.isOk() && shape.statePlanes == 2)
    status = add(PoolBuffer::stateLow, "state_low", DType::u8, state, {},
                 shape.stateSlotStride, shape.stateLayerStride);
  if (!status.isOk())
    return status;
  return plans;
}

Result<uint64_t> gdnrt::statePoolBytes(const StatePoolShape &shape) {
  auto plans = planPool(shape);
  if (!plans.isOk())
    return plans.status();
  return plannedBytes(*plans, 0);
}

Result<int64_t> gdnrt::requestsThatFit(StatePoolShape shape, uint64_t bytes) {
  shape.numRequests = 0;
  if (auto least = statePoolBytes(shape); !least.isOk())
    return least.status();
  // More slots never take fewer bytes; too many are an error.
  int64_t low = 0, high = (int64_t{1} << 30) + 1;
  while (high - low > 1) {
    shape.numRequests = low + (high - low) / 2;
    auto needed = statePoolBytes(shape);
    (needed.isOk() && *needed <= bytes ? low : high) = shape.numRequests;
  }
  return low;
}
