// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slots that copies beside the caller's streams read or write, and the events
// at which those copies are over.

#ifndef GDNRT_SRC_POOL_SLOT_TRANSFERS_H
#define GDNRT_SRC_POOL_SLOT_TRANSFERS_H

#include "gdnrt/device.h"
#include "gdnrt/host_link.h"
#include "gdnrt/status.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace gdnrt {

/// Any number of threads may use it at once.
class SlotTransfers {
public:
  /// Takes memory for so many slots. Before that there are no transfers.
  void expect(int64_t numSlots);
  /// The slots are under way until `event` is over. Slots that two transfers
  /// use wait for the later one: it is in order after the earlier one.
  void note(const int32_t *slots, size_t count,
            const std::shared_ptr<StreamEvent> &event);
  /// Makes `stream` of the device wait for the transfers of the slots. Ignores
  /// padding and ids past the end. UNSUPPORTED if there are any and the stream
  /// is being captured.
  Status orderAfter(Device &device, const int32_t *slots, size_t count,
                    void *stream);

private:
  std::atomic<bool> isUsed_ = false;
  std::mutex lock_;
  /// By slot; null: nothing is under way.
  std::vector<std::shared_ptr<StreamEvent>> events_;
};

} // namespace gdnrt

#endif // GDNRT_SRC_POOL_SLOT_TRANSFERS_H
