// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The memory that all slots of a pool have for one purpose, in all layers, and
// the work on it that is no kernel of a layer: filling and copying slots.

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

/// Memory of `layers.size()` layers with `sizes[0]` slots each. Sizes and
/// strides are those of one layer as kernels see it, the slot axis first, in
/// elements. The elements of a slot are dense: slot `p` of layer `l` is the
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
  /// The layer as an argument of a kernel; its sizes and strides are borrowed.
  Argument view(size_t layer) const;
};

/// Checks that the elements of a slot are dense and that neither slots nor
/// layers overlap, and fills in what follows from sizes and strides.
Status finishSlotBuffer(SlotBuffer &buffer);

/// Work on whole slots, all layers, in the order of a stream. Ids are valid.
class SlotWork {
public:
  virtual ~SlotWork();
  /// Sets all bytes of the slots to `value`.
  virtual Status fill(const SlotBuffer &buffer, const int32_t *slots,
                      size_t count, uint8_t value, void *stream) = 0;
  /// Copies slot from[i] to to[i]; no target is also a source or another
  /// target.
  virtual Status copy(const SlotBuffer &buffer, const int32_t *from,
                      const int32_t *to, size_t count, void *stream) = 0;
};

/// With the device's fill and copy: one call per slot and run of layers that
/// touch.
std::unique_ptr<SlotWork> makeDeviceSlotWork(std::shared_ptr<Device> device);

} // namespace gdnrt

#endif // GDNRT_SLOT_BUFFER_H
