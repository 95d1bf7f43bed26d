// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The link of devices whose copies have ended when they return.

#include "gdnrt/host_link.h"

#include "gdnrt/aligned_bytes.h"
#include "gdnrt/device.h"

#include <algorithm>

using namespace gdnrt;

StreamEvent::~StreamEvent() = default;
HostLink::~HostLink() = default;

Status HostLink::rowsToHost(void *to, const void *from, uint64_t bytes,
                            uint64_t rows, uint64_t distance, void *stream) {
  for (uint64_t row = 0; row < rows; ++row)
    if (Status s = toHost(static_cast<char *>(to) + row * bytes,
                          static_cast<const char *>(from) + row * distance,
                          bytes, stream);
        !s.isOk())
      return s;
  return {};
}

Status HostLink::rowsToDevice(void *to, const void *from, uint64_t bytes,
                              uint64_t rows, uint64_t distance, void *stream) {
  for (uint64_t row = 0; row < rows; ++row)
    if (Status s = toDevice(static_cast<char *>(to) + row * distance,
                            static_cast<const char *>(from) + row * bytes,
                            bytes, stream);
        !s.isOk())
      return s;
  return {};
}

namespace {

class EndedEvent final : public StreamEvent {
public:
  explicit EndedEvent(Device &device) : device_(device) {}
  // The device says which streams it has.
  Status record(void *stream) override { return device_.synchronize(stream); }
  Status orderAfter(void *stream) override {
    return device_.synchronize(stream);
  }
  Result<bool> isOver() override { return true; }
  Status synchronize() override { return {}; }

private:
  Device &device_;
};

class DirectLink final : public HostLink {
public:
  explicit DirectLink(Device &device) : device_(device) {}
  Result<void *> allocate(uint64_t bytes) override {
    void *data = allocateAligned(std::max<size_t>(bytes, 1)).release();
    if (!data)
      return failure(StatusCode::outOfMemory, "no memory for ", bytes,
                     " bytes of the host");
    return data;
  }
  Status free(void *data) override {
    AlignedBytes owner(static_cast<uint8_t *>(data));
    return {};
  }
  Result<std::shared_ptr<StreamEvent>> makeEvent() override {
    return std::shared_ptr<StreamEvent>(std::make_shared<EndedEvent>(device_));
  }
  Result<void *> makeStream() override { return static_cast<void *>(nullptr); }
  Status toHost(void *to, const void *from, uint64_t bytes, void *) override {
    return device_.read(to, from, bytes);
  }
  Status toDevice(void *to, const void *from, uint64_t bytes, void *) override {
    return device_.write(to, from, bytes);
  }
  Status call(void (*function)(void *), void *data, void *) override {
    function(data);
    return {};
  }

private:
  Device &device_;
};

} // namespace

Result<std::unique_ptr<HostLink>> Device::makeHostLink() {
  return std::unique_ptr<HostLink>(std::make_unique<DirectLink>(*this));
}
