// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pinned memory, copies, events and host functions of the CUDA driver.

#include "gdnrt/cuda_host_link.h"

#include <algorithm>
#include <mutex>
#include <vector>

using namespace gdnrt;

namespace {

cuda::Stream toStream(void *stream) {
  return static_cast<cuda::Stream>(stream);
}

class CudaEvent final : public StreamEvent {
public:
  CudaEvent(std::shared_ptr<const cuda::DeviceContext> context,
            cuda::Event event)
      : context_(std::move(context)), event_(event) {}
  ~CudaEvent() override {
    const cuda::CurrentContext current(*context_);
    if (current.status().isOk())
      (void)context_->driver().eventDestroy(event_);
  }
  Status record(void *stream) override {
    return with([&](const cuda::Driver &cu) {
      return cu.check(cu.eventRecord(event_, toStream(stream)), "cuEventRecord",
                      "event");
    });
  }
  Status orderAfter(void *stream) override {
    return with([&](const cuda::Driver &cu) {
      return cu.check(cu.streamWaitEvent(toStream(stream), event_, 0),
                      "cuStreamWaitEvent", "event");
    });
  }
  ::gdnrt::Result<bool> isOver() override {
    bool isOver = false;
    Status status = with([&](const cuda::Driver &cu) -> Status {
      // Another thread may be capturing a graph.
      const cuda::RelaxedCapture relaxed(cu);
      const cuda::Result result = cu.eventQuery(event_);
      isOver = result == cuda::kSuccess;
      return result == cuda::kNotReady
                 ? Status()
                 : cu.check(result, "cuEventQuery", "event");
    });
    if (!status.isOk())
      return status;
    return isOver;
  }
  Status synchronize() override {
    return with([&](const cuda::Driver &cu) {
      const cuda::RelaxedCapture relaxed(cu);
      return cu.check(cu.eventSynchronize(event_), "cuEventSynchronize",
                      "event");
    });
  }

private:
  template <typename Body> Status with(Body &&body) const {
    const cuda::CurrentContext current(*context_);
    return current.status().isOk() ? body(context_->driver())
                                   : current.status();
  }

  std::shared_ptr<const cuda::DeviceContext> context_;
  cuda::Event event_;
};

class CudaHostLink final : public HostLink {
public:
  explicit CudaHostLink(std::shared_ptr<const cuda::DeviceContext> context)
      : context_(std::move(context)) {}
  ~CudaHostLink() override {
    const cuda::CurrentContext current(*context_);
    for (cuda::Stream stream : streams_)
      if (current.status().isOk())
        (void)context_->driver().streamDestroy(stream);
  }

  ::gdnrt::Result<void *> allocate(uint64_t bytes) override {
    void *data = nullptr;
    Status status = with([&](const cuda::Driver &cu) {
      const cuda::RelaxedCapture relaxed(cu);
      return cu.check(
          cu.hostAllocate(&data, std::max<size_t>(bytes, 1), /*flags=*/0),
          "cuMemHostAlloc", std::to_string(bytes) + " bytes of the host");
    });
    if (!status.isOk())
      return status;
    return data;
  }
  Status free(void *data) override {
    return with([&](const cuda::Driver &cu) {
      const cuda::RelaxedCapture relaxed(cu);
      return cu.check(cu.hostFree(data), "cuMemFreeHost", "free");
    });
  }
  ::gdnrt::Result<std::shared_ptr<StreamEvent>> makeEvent() override {
    cuda::Event event = nullptr;
    Status status = with([&](const cuda::Driver &cu) {
      const cuda::RelaxedCapture relaxed(cu);
      return cu.check(cu.eventCreate(&event, cuda::kEventWithoutTiming),
                      "cuEventCreate", "event");
    });
    if (!status.isOk())
      return status;
    return std::shared_ptr<StreamEvent>(
        std::make_shared<CudaEvent>(context_, event));
  }
  ::gdnrt::Result<void *> makeStream() override {
    cuda::Stream stream = nullptr;
    Status status = with([&](const cuda::Driver &cu) {
      const cuda::RelaxedCapture relaxed(cu);
      return cu.check(cu.streamCreate(&stream, cuda::kStreamNonBlocking),
                      "cuStreamCreate", "stream");
    });
    if (!status.isOk())
      return status;
    std::lock_guard<std::mutex> guard(lock_);
    streams_.push_back(stream);
    return static_cast<void *>(stream);
  }
  Status toHost(void *to, const void *from, uint64_t bytes,
                void *stream) override {
    return with([&](const cuda::Driver &cu) {
      return cu.check(cu.copyToHost(to, reinterpret_cast<uintptr_t>(from),
                                    bytes, toStream(stream)),
                      "cuMemcpyDtoHAsync", "store");
    });
  }
  Status toDevice(void *to, const void *from, uint64_t bytes,
                  void *stream) override {
    return with([&](const cuda::Driver &cu) {
      return cu.check(cu.copyToDevice(reinterpret_cast<uintptr_t>(to), from,
                                      bytes, toStream(stream)),
                      "cuMemcpyHtoDAsync", "load");
    });
  }
  Status rowsToHost(void *to, const void *from, uint64_t bytes, uint64_t rows,
                    uint64_t distance, void *stream) override {
    if (!takesRows(rows, distance))
      return HostLink::rowsToHost(to, from, bytes, rows, distance, stream);
    cuda::RowCopy copy;
    copy.from = onDevice(from, distance);
    copy.to = onHost(to, bytes);
    return copyRows(copy, bytes, rows, stream, "store");
  }
  Status rowsToDevice(void *to, const void *from, uint64_t bytes, uint64_t rows,
                      uint64_t distance, void *stream) override {
    if (!takesRows(rows, distance))
      return HostLink::rowsToDevice(to, from, bytes, rows, distance, stream);
    cuda::RowCopy copy;
    copy.from = onHost(from, bytes);
    copy.to = onDevice(to, distance);
    return copyRows(copy, bytes, rows, stream, "load");
  }
  Status call(void (*function)(void *), void *data, void *stream) override {
    return with([&](const cuda::Driver &cu) {
      return cu.check(cu.launchHost(toStream(stream), function, data),
                      "cuLaunchHostFunc", "host function");
    });
  }

private:
  template <typename Body> Status with(Body &&body) const {
    const cuda::CurrentContext current(*context_);
    return current.status().isOk() ? body(context_->driver())
                                   : current.status();
  }
  /// Whether one copy of the driver can take the rows.
  bool takesRows(uint64_t rows, uint64_t distance) const {
    return rows > 1 && context_->driver().takesRows(distance);
  }
  static cuda::CopySide onHost(const void *data, uint64_t pitch) {
    cuda::CopySide side;
    side.type = cuda::kMemoryHost;
    // The driver writes one of the two sides.
    side.host = const_cast<void *>(data);
    side.pitch = pitch;
    return side;
  }
  static cuda::CopySide onDevice(const void *data, uint64_t pitch) {
    cuda::CopySide side;
    side.type = cuda::kMemoryDevice;
    side.device = reinterpret_cast<uintptr_t>(data);
    side.pitch = pitch;
    return side;
  }
  Status copyRows(cuda::RowCopy &copy, uint64_t bytes, uint64_t rows,
                  void *stream, const char *what) {
    copy.widthInBytes = bytes;
    copy.height = rows;
    return with([&](const cuda::Driver &cu) {
      return cu.check(cu.copyRows(&copy, toStream(stream)), "cuMemcpy2DAsync",
                      what);
    });
  }

  std::shared_ptr<const cuda::DeviceContext> context_;
  std::mutex lock_;
  std::vector<cuda::Stream> streams_;
};

} // namespace

::gdnrt::Result<std::unique_ptr<HostLink>>
cuda::makeHostLink(std::shared_ptr<const DeviceContext> context) {
  const Driver &driver = context->driver();
  const std::pair<const char *, bool> wanted[] = {
      {"cuMemHostAlloc", driver.hostAllocate != nullptr},
      {"cuMemFreeHost", driver.hostFree != nullptr},
      {"cuStreamCreate", driver.streamCreate != nullptr},
      {"cuStreamDestroy_v2", driver.streamDestroy != nullptr},
      {"cuStreamWaitEvent", driver.streamWaitEvent != nullptr},
      {"cuEventCreate", driver.eventCreate != nullptr},
      {"cuEventDestroy_v2", driver.eventDestroy != nullptr},
      {"cuEventRecord", driver.eventRecord != nullptr},
      {"cuEventQuery", driver.eventQuery != nullptr},
      {"cuEventSynchronize", driver.eventSynchronize != nullptr},
      {"cuLaunchHostFunc", driver.launchHost != nullptr}};
  for (auto [name, isThere] : wanted)
    if (!isThere)
      return failure(StatusCode::unsupported,
                     "copies beside streams: expected a driver with ", name,
                     ", got one without");
  return std::unique_ptr<HostLink>(
      std::make_unique<CudaHostLink>(std::move(context)));
}
