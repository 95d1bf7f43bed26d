// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the calls of the driver without a GPU share: handles, the memory, and
// what a stream that is captured records.
#ifndef GDN_TEST_PTX_DRIVERSTATE_H
#define GDN_TEST_PTX_DRIVERSTATE_H

#include "Machine.h"

#include "gdnrt/cuda_abi.h"

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace gdnrt::cuda {
struct OpaqueContext {
  int device = 0;
};
struct OpaqueModule {
  const ptx::Program *program = nullptr;
  std::vector<std::unique_ptr<OpaqueFunction>> functions;
};
struct OpaqueFunction {
  /// Null once the module is unloaded, for what was recorded before.
  std::shared_ptr<const ptx::Kernel *> kernel;
  int dynamicSharedBytes = 48 << 10;
};
struct OpaqueUserObject {
  std::shared_ptr<void> held;
};
struct OpaqueGraph {
  std::vector<std::function<Result()>> work;
  /// The streams that are captured into it, the first one's first.
  std::vector<OpaqueStream *> streams;
  /// User objects that it and what is instantiated from it keep alive.
  std::vector<std::shared_ptr<void>> held;
};
struct OpaqueStream {
  /// What is recorded while the stream is captured.
  std::shared_ptr<OpaqueGraph> recorded;
};

constexpr Result kInvalidValue = 1;
constexpr Result kCaptureUnsupported = 900;

/// What a process keeps; never destroyed, as a driver's is not.
struct State {
  ptx::Memory memory;
  OpaqueContext primary;
  OpaqueStream defaultStream;
  std::mutex lock;
  /// Of memory and of work: one call at a time.
  std::recursive_mutex turn;
  std::string lastFault = "nothing went wrong";
};

inline State &state() {
  static State *it = new State;
  return *it;
}

/// Runs `work` now, or records it if the stream is captured.
inline Result submit(Stream stream, std::function<Result()> work) {
  const std::lock_guard guard(state().turn);
  OpaqueStream &target = stream ? *stream : state().defaultStream;
  if (target.recorded) {
    target.recorded->work.push_back(std::move(work));
    return 0;
  }
  return work();
}

} // namespace gdnrt::cuda

#endif // GDN_TEST_PTX_DRIVERSTATE_H
