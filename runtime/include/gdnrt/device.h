// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The interface of a device: load the code of an entry, run the units of a
// binding in the order of a stream, wait, and work on memory. Any number of
// threads may use a device at once.

#ifndef GDNRT_DEVICE_H
#define GDNRT_DEVICE_H

#include "gdnrt/binding.h"
#include "gdnrt/host_link.h"
#include "gdnrt/image.h"
#include "gdnrt/ranges.h"
#include "gdnrt/status.h"
#include "gdnrt/tensor_map_encoder.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace gdnrt {

struct DeviceProperties {
  /// "cpu", "cuda" or "null".
  std::string kind;
  /// A text for people, for example "x86-64 CPU, 2 workers".
  std::string name;
  /// The values of Code.target (image.fbs) that the device can run.
  std::vector<std::string> targets;
  /// The features of the device that code may need.
  std::vector<std::string> features;
  int numWorkers = 0;
  /// Whether the host can read the memory of arguments.
  bool hostReadable = false;
};

/// The code of one entry, loaded and ready for launches. Everything that a
/// launch needs, such as scratch memory and handles, exists already.
class LoadedCode {
public:
  virtual ~LoadedCode();
  /// The schema of the code that the device chose.
  virtual const CodeSchema &schema() const = 0;
  /// Its index among the codes of the entry.
  virtual size_t codeIndex() const = 0;
  /// The encoder that makes the tensor maps of bindings. Null if the code has
  /// none.
  virtual const TensorMapEncoder *tensorMapEncoder() const { return nullptr; }
  /// Runs all units of `binding` in the order of `stream`. It may return before
  /// they have ended. The binding may be rebound as soon as it returns. With
  /// `capturing` false the caller knows that the stream is not being captured.
  virtual Status launch(const Binding &binding, void *stream,
                        bool capturing) = 0;
  Status launch(const Binding &binding, void *stream) {
    return launch(binding, stream, /*capturing=*/true);
  }
};

class Device {
public:
  virtual ~Device();
  virtual const DeviceProperties &properties() const = 0;
  /// Loads the first code of the entry that the device can run, or code
  /// `forcedCode` if it can run that one. The image is needed only during the
  /// call.
  virtual Result<std::unique_ptr<LoadedCode>>
  load(const Image &image, size_t entry, std::optional<size_t> forcedCode) = 0;
  Result<std::unique_ptr<LoadedCode>> load(const Image &image, size_t entry) {
    return load(image, entry, std::nullopt);
  }
  /// Waits until everything that was launched on `stream` has ended.
  virtual Status synchronize(void *stream) = 0;

  /// Whether `stream` is being captured into a graph, so that launches on it
  /// are recorded and do not run.
  virtual Result<bool> isCapturing(void *stream);

  /// If `stream` is being captured, keeps `object` alive as long as the graph.
  /// Does nothing if it is not captured or if the driver cannot keep objects.
  virtual Status keepForGraph(void *stream,
                              const std::shared_ptr<const void> &object);

  /// Sets `bytes` bytes of device memory to `value`, in the order of `stream`.
  virtual Status fill(void *data, uint8_t value, uint64_t bytes,
                      void *stream) = 0;
  /// The same for `rows` pieces of `bytes` bytes, each `distance` bytes, 0 or
  /// more, behind the one before it.
  virtual Status fillRows(void *data, uint8_t value, uint64_t bytes,
                          uint64_t rows, uint64_t distance, void *stream);
  /// Copies device memory to device memory, in the order of `stream`. The two
  /// ranges do not overlap.
  virtual Status copy(void *to, const void *from, uint64_t bytes,
                      void *stream) = 0;
  /// The same for `rows` pieces of `bytes` bytes, each `distance` bytes, not
  /// less than `bytes`, behind the one before it, in both.
  virtual Status copyRows(void *to, const void *from, uint64_t bytes,
                          uint64_t rows, uint64_t distance, void *stream);

  /// Copies from the host to the device in the order of `stream`. `from` has
  /// been read when this returns. UNSUPPORTED while the stream is being
  /// captured.
  virtual Status upload(void *to, const void *from, uint64_t bytes,
                        void *stream) = 0;

  /// Device memory for tools. A copy begins after everything on the null stream
  /// has ended, and has ended itself when it returns.
  virtual Result<void *> allocate(size_t bytes) = 0;
  virtual Status free(void *data) = 0;
  virtual Status write(void *to, const void *from, size_t bytes) = 0;
  virtual Status read(void *to, const void *from, size_t bytes) = 0;

  /// Makes copies between memory of the device and pinned memory of the host.
  /// The device outlives the link.
  virtual Result<std::unique_ptr<HostLink>> makeHostLink();

  /// Notes that slots are written by something other than a step of a layer: a
  /// copy, zeros. Called ahead of the launch.
  void notePoolWrite() { poolWrites_.fetch_add(1); }
  /// How many of them there were.
  uint64_t poolWrites() const { return poolWrites_.load(); }
  /// Whether a launch on `order`, a stream or the graph that it is captured
  /// into, has waited for the first `writes` of them, by `setOrdered`.
  bool isOrdered(void *order, uint64_t writes);
  void setOrdered(void *order, uint64_t writes);

  /// What marks ranges for a profiler; nothing by default.
  const Ranges &ranges() const { return ranges_; }
  void setRanges(const Ranges &ranges) { ranges_ = ranges; }

private:
  Ranges ranges_;
  std::atomic<uint64_t> poolWrites_ = 0;
  std::mutex orderedLock_;
  std::map<void *, uint64_t> ordered_;
};

/// UNSUPPORTED if `stream` is being captured into a graph. `what` (lower case)
/// is the name in the message of what cannot be captured.
Status refuseCapture(Device &device, void *stream, const char *what);
/// That status.
Status captureRefused(const char *what);

} // namespace gdnrt

#endif // GDNRT_DEVICE_H
