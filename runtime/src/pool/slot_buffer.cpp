// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layouts of slots, and work on them in as few calls of the device as the
// layout allows.

#include "gdnrt/slot_buffer.h"

#include <algorithm>

using namespace gdnrt;

SlotWork::~SlotWork() = default;

Argument SlotBuffer::view(size_t layer) const {
  Argument argument;
  argument.data = layers[layer];
  argument.dtype = static_cast<int32_t>(dtype);
  argument.rank = static_cast<int32_t>(sizes.size());
  argument.sizes = sizes.data();
  argument.strides = strides.data();
  argument.nullSlot = 0;
  return argument;
}

size_t SlotBuffer::endOfRun(size_t layer) const {
  size_t end = layer + 1;
  while (end < layers.size() && layers[end] == layers[end - 1] + slotBytes)
    ++end;
  return end;
}

uint64_t SlotBuffer::layerDistance() const {
  if (layers.size() < 2 || layers[1] < layers[0] + slotBytes)
    return 0;
  const auto distance = static_cast<uint64_t>(layers[1] - layers[0]);
  for (size_t layer = 2; layer < layers.size(); ++layer)
    if (layers[layer] != layers[layer - 1] + distance)
      return 0;
  return distance;
}

Status gdnrt::finishSlotBuffer(SlotBuffer &buffer) {
  // Axes of a slot by stride: each has to begin where the ones before it end.
  std::vector<size_t> axes;
  for (size_t d = 1; d < buffer.sizes.size(); ++d)
    if (buffer.sizes[d] != 1)
      axes.push_back(d);
  std::sort(axes.begin(), axes.end(), [&](size_t a, size_t b) {
    return buffer.strides[a] < buffer.strides[b];
  });
  int64_t elements = 1;
  for (size_t d : axes) {
    if (buffer.strides[d] != elements)
      return invalid("state_pool: ", buffer.name, ": expected stride ",
                     elements, " of dim ", d,
                     ", as the elements of a slot are dense, got ",
                     buffer.strides[d]);
    elements *= buffer.sizes[d];
  }
  if (buffer.numSlots() > 1 && buffer.strides[0] < elements)
    return invalid("state_pool: ", buffer.name,
                   ": expected a slot stride of at least ", elements,
                   " elements, got ", buffer.strides[0]);
  buffer.slotBytes = elements * sizeInBytes(buffer.dtype);
  buffer.slotStrideBytes = buffer.strides[0] * sizeInBytes(buffer.dtype);
  return {};
}

namespace {

class DeviceSlotWork final : public SlotWork {
public:
  explicit DeviceSlotWork(std::shared_ptr<Device> device)
      : device_(std::move(device)) {}

  Status fill(const SlotBuffer &buffer, const int32_t *slots, size_t count,
              uint8_t value, void *stream) override;
  Status copy(const SlotBuffer &buffer, const int32_t *from, const int32_t *to,
              size_t count, void *stream) override;

private:
  std::shared_ptr<Device> device_;
};

} // namespace

Status DeviceSlotWork::fill(const SlotBuffer &buffer, const int32_t *slots,
                            size_t count, uint8_t value, void *stream) {
  const bool slotsTouch = buffer.slotStrideBytes == buffer.slotBytes;
  for (size_t first = 0, end; first < count; first = end) {
    end = first + 1;
    if (slots[first] <= 0)
      continue;
    while (slotsTouch && end < count && slots[end] == slots[end - 1] + 1)
      ++end;
    for (size_t layer = 0, next; layer < buffer.layers.size(); layer = next) {
      next = slotsTouch ? layer + 1 : buffer.endOfRun(layer);
      auto bytes = static_cast<uint64_t>(buffer.slotBytes) * (end - first) *
                   (next - layer);
      if (Status status = device_->fill(buffer.at(layer, slots[first]), value,
                                        bytes, stream);
          !status.isOk())
        return status;
    }
  }
  return {};
}

Status DeviceSlotWork::copy(const SlotBuffer &buffer, const int32_t *from,
                            const int32_t *to, size_t count, void *stream) {
  for (size_t i = 0; i < count; ++i) {
    if (from[i] <= 0 || to[i] <= 0 || from[i] == to[i])
      continue;
    const auto slotBytes = static_cast<uint64_t>(buffer.slotBytes);
    if (const uint64_t distance = buffer.layerDistance();
        distance > slotBytes) {
      if (Status status = device_->copyRows(
              buffer.at(0, to[i]), buffer.at(0, from[i]), slotBytes,
              buffer.layers.size(), distance, stream);
          !status.isOk())
        return status;
      continue;
    }
    for (size_t layer = 0, next; layer < buffer.layers.size(); layer = next) {
      next = buffer.endOfRun(layer);
      auto bytes = static_cast<uint64_t>(buffer.slotBytes) * (next - layer);
      if (Status status =
              device_->copy(buffer.at(layer, to[i]), buffer.at(layer, from[i]),
                            bytes, stream);
          !status.isOk())
        return status;
    }
  }
  return {};
}

std::unique_ptr<SlotWork>
gdnrt::makeDeviceSlotWork(std::shared_ptr<Device> device) {
  return std::make_unique<DeviceSlotWork>(std::move(device));
}
