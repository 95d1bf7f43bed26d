// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One buffer of a pool: the memory of all slots for one purpose, such as the
// states, in all layers. Also the functions that fill and copy slots without
// kernels.

#ifndef GDNRT_SLOT_BUFFER_H
#define GDNRT_SLOT_BUFFER_H

#include "gdnrt/binding.h"
#include "gdnrt/device.h"
#include "gdnrt/status.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace gdnrt {

/// The memory of `layers.size()` layers with `sizes[0]` slots each. Sizes and
/// strides are those of one layer as kernels see it, in elements, with the slot
/// axis first. The elements of a slot are dense: slot `p` of layer `l` is the
/// `slotBytes` bytes at `layers[l] + p * slotStrideBytes`.
struct SlotBuffer {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> sizes, strides;
  std::vector<uint8_t *> layers;
  int64_t slotStrideBytes = 0;
  int64_t slotBytes = 0;

  int64_t numSlots() const { return sizes[0]; }
  uint8_t *at(size_t layer, int32_t slot) const {
    return layers[layer] + slot * slotStrideBytes;
  }
  /// The end of the layers from `layer` on whose memory of one slot is one
  /// piece.
  size_t endOfRun(size_t layer) const;
  /// The bytes from the memory of a slot in one layer to that in the next, if
  /// they are the same for all layers and not less than slotBytes; otherwise 0.
  uint64_t layerDistance() const;
  /// The layer as an argument of a kernel. Its sizes and strides point into the
  /// buffer.
  Argument view(size_t layer) const;
};

/// Checks that the elements of a slot are dense and that slots do not overlap.
/// Sets the members that follow from sizes and strides.
Status finishSlotBuffer(SlotBuffer &buffer);

/// Fills and copies whole slots, in all layers, in the order of a stream. An id
/// is a slot of the buffer, or padding, which is ignored.
class SlotWork {
public:
  virtual ~SlotWork();
  /// Sets all bytes of the slots to `value`.
  virtual Status fill(const SlotBuffer &buffer, const int32_t *slots,
                      size_t count, uint8_t value, void *stream) = 0;
  /// Copies slot from[i] to slot to[i]. No target may be a source or the target
  /// of another pair.
  virtual Status copy(const SlotBuffer &buffer, const int32_t *from,
                      const int32_t *to, size_t count, void *stream) = 0;
};

/// Fills and copies with the functions of the device: one call per slot and run
/// of layers that are adjacent in memory; a copy takes one call where layers
/// are equally far apart. Consecutive slots that are adjacent are filled by one
/// call.
std::unique_ptr<SlotWork> makeDeviceSlotWork(std::shared_ptr<Device> device);

} // namespace gdnrt

#endif // GDNRT_SLOT_BUFFER_H
