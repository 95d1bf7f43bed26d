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
      {"num_layers", shape.numLayers, 1, sizes},
      {"num_requests", shape.numRequests, 0, slots},
      {"num_track", shape.numTrack, 0, slots},
      {"num_key_heads", shape.keyHeads, 1, sizes},
      {"num_value_heads", shape.valueHeads, 1, sizes},
      {"key_dim", shape.keyDim, 1, sizes},
      {"value_dim", shape.valueDim, 1, sizes},
      {"conv_width", shape.convWidth, 2, sizes},
      {"conv_extra", shape.convExtra, 0, sizes},
  };
  for (const auto &number : numbers)
    if (number.value < number.least || number.value > number.most)
      return invalid("state_pool: ", number.name, ": expected ", number.least,
                     " to ", number.most, ", got ", number.value);
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

Result<PoolPlan> gdnrt::planPool(const StatePoolShape &shape) {
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
  PoolPlan plan;
  plan.state.buffer.name = "state";
  plan.state.buffer.dtype = shape.stateDType;
  plan.state.buffer.sizes = {shape.numSlots(), shape.valueHeads, shape.valueDim,
                             shape.keyDim};
  plan.state.buffer.strides = {0, shape.valueDim * shape.keyDim, shape.keyDim,
                               1};
  auto stateBytes =
      place(plan.state, shape, shape.stateSlotStride, shape.stateLayerStride);
  if (!stateBytes.isOk())
    return stateBytes.status();
  const int64_t positions = shape.convWidth - 1 + shape.convExtra;
  const bool isSD = shape.convLayout == ConvLayout::sd;
  plan.conv.buffer.name = "conv";
  plan.conv.buffer.dtype = shape.convDType;
  plan.conv.buffer.sizes = {shape.numSlots(), shape.channels(), positions};
  plan.conv.buffer.strides = {0, isSD ? 1 : positions,
                              isSD ? shape.channels() : 1};
  auto convBytes =
      place(plan.conv, shape, shape.convSlotStride, shape.convLayerStride);
  if (!convBytes.isOk())
    return convBytes.status();
  // Where the driver would have put a block of its own.
  constexpr uint64_t alignment = 256;
  plan.conv.offset = (*stateBytes + alignment - 1) / alignment * alignment;
  plan.bytes = plan.conv.offset + *convBytes;
  return plan;
}

Result<uint64_t> gdnrt::statePoolBytes(const StatePoolShape &shape) {
  auto plan = planPool(shape);
  if (!plan.isOk())
    return plan.status();
  return plan->bytes;
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
