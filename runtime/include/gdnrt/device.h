// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the runtime asks of a device: load the code of an entry, run units of a
// bound call in the order of a stream, wait. Devices are used from any thread
// at once.

#ifndef GDNRT_DEVICE_H
#define GDNRT_DEVICE_H

#include "gdnrt/binding.h"
#include "gdnrt/image.h"
#include "gdnrt/status.h"
#include "gdnrt/tensor_map_encoder.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gdnrt {

struct DeviceProperties {
  /// "cpu", "cuda" or "null".
  std::string kind;
  /// For people, for example "x86-64 CPU, 2 workers".
  std::string name;
  /// Values of Code.target that the device runs.
  std::vector<std::string> targets;
  /// Features of codes that the device has.
  std::vector<std::string> features;
  int numWorkers = 0;
  /// Whether the host may read what arguments point at.
  bool hostReadable = false;
};

/// The code of one entry, loaded and ready. Whatever a launch needs (scratch,
/// handles) exists from here on.
class LoadedCode {
public:
  virtual ~LoadedCode();
  /// The code of the entry that the device chose.
  virtual const CodeSchema &schema() const = 0;
  /// Its index among the codes of the entry.
  virtual size_t codeIndex() const = 0;
  /// What makes the maps of bindings; null where code has no boxes.
  virtual const TensorMapEncoder *tensorMapEncoder() const { return nullptr; }
  /// Runs all units of `binding`, in the order of `stream`; may return before
  /// they ran. The words may be rebound as soon as it returns.
  virtual Status launch(const Binding &binding, void *stream) = 0;
};

class Device {
public:
  virtual ~Device();
  virtual const DeviceProperties &properties() const = 0;
  /// Loads the first code of the entry that the device can run, or code
  /// `forcedCode` if it can run that. Needs the image during the call only.
  virtual Result<std::unique_ptr<LoadedCode>>
  load(const Image &image, size_t entry, std::optional<size_t> forcedCode) = 0;
  Result<std::unique_ptr<LoadedCode>> load(const Image &image, size_t entry) {
    return load(image, entry, std::nullopt);
  }
  /// Waits for all that was launched on `stream`.
  virtual Status synchronize(void *stream) = 0;

  /// Whether launches on `stream` are recorded into a graph now instead of run.
  virtual Result<bool> isCapturing(void *stream);

  /// `object` lives as long as a graph that launches on `stream` are recorded
  /// into now, if they are and the driver can keep it.
  virtual Status keepForGraph(void *stream,
                              const std::shared_ptr<const void> &object);

  /// Sets every byte of memory of the device, in the order of `stream`.
  virtual Status fill(void *data, uint8_t value, uint64_t bytes,
                      void *stream) = 0;
  /// Copies within the device, in the order of `stream`; the two are apart.
  virtual Status copy(void *to, const void *from, uint64_t bytes,
                      void *stream) = 0;

  /// Copies from the host in the order of `stream`. `from` has been read when
  /// this returns; so it is refused where the stream is captured.
  virtual Status upload(void *to, const void *from, uint64_t bytes,
                        void *stream) = 0;

  /// Memory of the device for tools. Copies follow what runs on the null
  /// stream and have ended when they return.
  virtual Result<void *> allocate(size_t bytes) = 0;
  virtual Status free(void *data) = 0;
  virtual Status write(void *to, const void *from, size_t bytes) = 0;
  virtual Status read(void *to, const void *from, size_t bytes) = 0;
};

/// UNSUPPORTED where launches on `stream` are recorded into a graph, which
/// `what` (lower case, for the message) cannot be.
Status refuseCapture(Device &device, void *stream, const char *what);

} // namespace gdnrt

#endif // GDNRT_DEVICE_H
