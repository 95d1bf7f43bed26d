// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A stand-in for the CUDA driver: a library with its entry points whose device
// is host memory. It notes what it is asked, fails where a test wants it to,
// and hands launches to a function of the test.

#ifndef GDN_TEST_UNIT_RUNTIME_CUDA_FAKE_CUDA_H
#define GDN_TEST_UNIT_RUNTIME_CUDA_FAKE_CUDA_H

#include "gdnrt/cuda_abi.h"

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace gdnrt::test {

/// One launch as the driver saw it.
struct FakeLaunch {
  std::string kernel;
  cuda::LaunchConfig config = {};
  std::vector<cuda::LaunchAttribute> attributes;
  std::vector<int64_t> words;
  cuda::Context context = nullptr;
};

/// One map of boxes as it was asked for. Its first word is its number, from 1.
struct FakeMap {
  int type = 0, interleave = 0, swizzle = 0, promotion = 0, fill = 0;
  cuda::Address address = 0;
  std::vector<uint64_t> sizes, strides;
  std::vector<uint32_t> box, elementStrides;
  cuda::Context context = nullptr;
};

struct FakeCuda {
  // What the driver and its devices are.
  int version = 13000;
  int deviceCount = 2;
  int major = 9, minor = 0, multiprocessors = 132;
  int maxThreads = 1024;
  /// What the driver says about the size of a kernel's parameters.
  size_t parameterBytes = 0;
  /// The same for kernels that differ.
  std::map<std::string, size_t> parameterBytesOf;
  /// What the assembler writes into its error log.
  std::string assemblerLog;
  /// Whether streams are captured.
  bool isCapturing = false;
  /// What graphs hold: a destructor and its data. A test that destroys graphs
  /// calls them.
  std::vector<std::pair<void (*)(void *), void *>> userObjects;
  /// Runs instead of a kernel.
  std::function<void(const FakeLaunch &)> run;
  /// Runs when somebody waits for a stream, as work of that stream would that
  /// has not ended before.
  std::function<void(cuda::Stream)> finish;

  /// Results of calls by name, for as long as they stand here.
  std::map<std::string, cuda::Result> failures;
  /// How many of their calls succeed before.
  std::map<std::string, int> successes;

  // What happened.
  std::vector<std::string> calls;
  std::vector<FakeLaunch> launches;
  std::vector<FakeMap> maps;
  std::vector<std::string> modules;
  std::map<std::string, std::map<int, int>> functionAttributes;
  int retained = 0, loadedModules = 0;
  int64_t allocations = 0;
  /// Of memory of the host, and events, which exist now.
  int64_t pinned = 0, events = 0;
  void *lastPinned = nullptr;
  std::mutex lock;

  size_t bytesOf(const std::string &kernel) const {
    auto found = parameterBytesOf.find(kernel);
    return found == parameterBytesOf.end() ? parameterBytes : found->second;
  }
  /// Calls of that name so far.
  int count(const std::string &name) const;
};

/// The state of the stand-in that this program has loaded.
FakeCuda &fakeCuda();

/// Notes a call and says whether it is to fail.
cuda::Result noteFakeCall(const char *name);

/// Destroys all graphs, as a thread of the driver's would: no call of it until
/// the destructors have run.
void destroyFakeGraphs();

/// Forgets everything but what is loaded and retained.
void resetFakeCuda();

/// The context that is current on this thread, and a way to set one.
cuda::Context fakeCurrentContext();
void setFakeCurrentContext(cuda::Context context);

/// A context of device `device` that nobody retained.
cuda::Context fakeForeignContext(int device);

} // namespace gdnrt::test

#endif // GDN_TEST_UNIT_RUNTIME_CUDA_FAKE_CUDA_H
