// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies between the memory of a device and of its host, in the order of
// streams, and events by which one stream waits for another. On devices whose
// work has ended when a call returns, streams are null and events always over.

#ifndef GDNRT_HOST_LINK_H
#define GDNRT_HOST_LINK_H

#include "gdnrt/status.h"

#include <cstdint>
#include <memory>

namespace gdnrt {

/// A point in the order of a stream. Before it is recorded, it is over.
class StreamEvent {
public:
  virtual ~StreamEvent();
  /// The event is over when what was launched on `stream` so far has ended.
  virtual Status record(void *stream) = 0;
  /// What is launched on `stream` from now on begins when the event, as it was
  /// recorded last, is over.
  virtual Status orderAfter(void *stream) = 0;
  virtual Result<bool> isOver() = 0;
  /// Returns when the event is over.
  virtual Status synchronize() = 0;
};

/// Memory of the host that the device reads and writes in copies, and those
/// copies. Any number of threads may use it at once.
class HostLink {
public:
  virtual ~HostLink();
  /// Memory of the host that no swapping moves, at a multiple of 64 bytes.
  virtual Result<void *> allocate(uint64_t bytes) = 0;
  virtual Status free(void *data) = 0;
  virtual Result<std::shared_ptr<StreamEvent>> makeEvent() = 0;
  /// A stream that nobody else has; null where there is one queue. It is
  /// destroyed with the link.
  virtual Result<void *> makeStream() = 0;
  /// Copies memory of the device to memory of `allocate`, in the order of
  /// `stream`.
  virtual Status toHost(void *to, const void *from, uint64_t bytes,
                        void *stream) = 0;
  /// Copies the other way.
  virtual Status toDevice(void *to, const void *from, uint64_t bytes,
                          void *stream) = 0;
  /// The same for `rows` pieces of `bytes` bytes, those of the device
  /// `distance` bytes, `bytes` or more, from one to the next; on the host they
  /// are dense.
  virtual Status rowsToHost(void *to, const void *from, uint64_t bytes,
                            uint64_t rows, uint64_t distance, void *stream);
  virtual Status rowsToDevice(void *to, const void *from, uint64_t bytes,
                              uint64_t rows, uint64_t distance, void *stream);
  /// Calls a function in the order of `stream`. It must not use the device.
  virtual Status call(void (*function)(void *), void *data, void *stream) = 0;
};

} // namespace gdnrt

#endif // GDNRT_HOST_LINK_H
