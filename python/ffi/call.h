// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A call of a kernel from tvm-ffi: arguments arrive as DLPack tensors, and one
// binding is made at first and then given only what has changed.

#ifndef GDN_PYTHON_FFI_CALL_H
#define GDN_PYTHON_FFI_CALL_H

#include "gdn-c/runtime.h"

#include <tvm/ffi/c_api.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace gdn::ffi {

/// What went wrong: the kind that Python sees, and the message.
struct Failure {
  const char *kind = nullptr;
  std::string message;
};

/// Not for two threads at once, as a binding is: the second one fails.
class Call {
public:
  /// `kernel` outlives the last launch; `device` may end before the call does.
  /// Tensors lie on DLPack device `deviceType`, `deviceId`. Slot `nullSlot` of
  /// pools is no slot, -1 for none.
  Call(gdnrt_device *device, gdnrt_kernel *kernel, int32_t deviceType,
       int32_t deviceId, int64_t nullSlot, bool mayOverlap,
       bool batchInvariant);
  Call(const Call &) = delete;
  Call &operator=(const Call &) = delete;
  ~Call();

  /// Launches on the stream that tvm-ffi holds for the device: with tensors of
  /// PyTorch among the arguments, PyTorch's current one. `args` are tensors in
  /// the order of the entry's parameters; None leaves an optional one out.
  bool launch(const TVMFFIAny *args, int32_t count, Failure &failure);

  /// Bytes of the device that the call holds for the kernel to work in. They
  /// are taken when sizes outgrow them, after which the host waits for the
  /// device; so not while the stream is captured. Graphs keep the memory that
  /// they were captured with for as long as the process runs.
  uint64_t workspaceBytes() const { return workspaceSize; }

private:
  struct Param {
    std::string name;
    bool isPool;
  };
  /// An argument with its sizes and strides, to be compared with the next one.
  struct Bound {
    gdnrt_arg arg = {};
    int64_t sizes[GDNRT_MAX_RANK] = {};
    int64_t strides[GDNRT_MAX_RANK] = {};
    bool hasStrides = false;

    bool operator==(const Bound &other) const;
  };

  bool launchAlone(const TVMFFIAny *args, int32_t count, Failure &failure);
  bool read(const TVMFFIAny &value, const Param &param, Bound &bound,
            Failure &failure) const;
  bool bind(Failure &failure);
  bool provideWorkspace(Failure &failure);
  bool isCapturing(Failure &failure, bool &capturing) const;
  void *stream() const;

  gdnrt_device *device = nullptr; // a handle of its own
  gdnrt_kernel *kernel;
  int32_t deviceType, deviceId;
  int64_t nullSlot;
  bool mayOverlap, batchInvariant;
  gdnrt_binding *binding = nullptr;
  void *workspace = nullptr;
  uint64_t workspaceSize = 0;
  /// Whether a graph has a launch that works there.
  bool isInGraph = false;
  std::vector<Param> params;
  std::vector<Bound> bound, next;
  std::atomic<bool> isInUse = false;
};

} // namespace gdn::ffi

#endif // GDN_PYTHON_FFI_CALL_H
