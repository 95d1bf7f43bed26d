// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A libcuda.so.1 without a GPU: the entry points that the runtime, its tests
// and the Python package use, over kernels in PTX that the machine runs on
// the CPU. Everything is done when a call returns, except what a stream that
// is captured records. It stands for one GPU of compute capability 9.0 with
// few multiprocessors.

#include "Machine.h"

#include "gdnrt/cuda_abi.h"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#define EXPORT extern "C" __attribute__((visibility("default")))

using gdnrt::cuda::Address;
using gdnrt::cuda::Context;
using gdnrt::cuda::Device;
using gdnrt::cuda::Function;
using gdnrt::cuda::Graph;
using gdnrt::cuda::LaunchConfig;
using gdnrt::cuda::Module;
using gdnrt::cuda::Result;
using gdnrt::cuda::Stream;
using gdnrt::cuda::UserObject;

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
  /// User objects that it and what is instantiated from it keep alive.
  std::vector<std::shared_ptr<void>> held;
};
struct OpaqueStream {
  /// What is recorded while the stream is captured.
  std::unique_ptr<OpaqueGraph> recorded;
};
} // namespace gdnrt::cuda

namespace {

constexpr Result kInvalidValue = 1;
constexpr Result kIllegalState = 700; // CUDA_ERROR_ILLEGAL_ADDRESS
constexpr Result kCaptureUnsupported = 900;
constexpr int kMultiprocessors = 8;
constexpr int kMostSharedBytes = 227 << 10;

struct Event {
  std::chrono::steady_clock::time_point time;
};

/// What a process keeps; never destroyed, as a driver's is not.
struct State {
  ptx::Memory memory;
  gdnrt::cuda::OpaqueContext primary;
  gdnrt::cuda::OpaqueStream defaultStream;
  std::mutex lock;
  std::string lastFault = "nothing went wrong";
};

State &state() {
  static State *it = new State;
  return *it;
}

thread_local std::vector<Context> contexts;

/// Runs `work` now, or records it if the stream is captured.
Result submit(Stream stream, std::function<Result()> work) {
  gdnrt::cuda::OpaqueStream &target = stream ? *stream : state().defaultStream;
  if (target.recorded) {
    target.recorded->work.push_back(std::move(work));
    return 0;
  }
  return work();
}

Result report(const std::string &text) {
  std::lock_guard<std::mutex> guard(state().lock);
  state().lastFault = text;
  return kIllegalState;
}

/// Host addresses of the device's memory, or null.
char *deviceBytes(Address address, size_t bytes) {
  ptx::Range range = state().memory.find(address);
  return range.holds(address, bytes) ? reinterpret_cast<char *>(address)
                                     : nullptr;
}

} // namespace

//===----------------------------------------------------------------------===//
// The device and its contexts
//===----------------------------------------------------------------------===//

// NOLINTBEGIN(readability-identifier-naming): the names of the driver
EXPORT Result cuInit(unsigned) { return 0; }

EXPORT Result cuDriverGetVersion(int *version) {
  *version = 13000;
  return 0;
}

EXPORT Result cuGetErrorName(Result result, const char **text) {
  *text = result == kIllegalState              ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : result == kInvalidValue            ? "CUDA_ERROR_INVALID_VALUE"
          : result == gdnrt::cuda::kInvalidPtx ? "CUDA_ERROR_INVALID_PTX"
          : result == kCaptureUnsupported
              ? "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
              : "CUDA_ERROR_UNKNOWN";
  return 0;
}

EXPORT Result cuGetErrorString(Result result, const char **text) {
  static thread_local std::string message;
  std::lock_guard<std::mutex> guard(state().lock);
  message = result == kIllegalState ? state().lastFault : "an error";
  *text = message.c_str();
  return 0;
}

EXPORT Result cuDeviceGetCount(int *count) {
  *count = 1;
  return 0;
}

EXPORT Result cuDeviceGet(Device *device, int ordinal) {
  *device = 0;
  return ordinal == 0 ? 0 : 101;
}

EXPORT Result cuDeviceGetName(char *name, int size, Device) {
  std::snprintf(name, static_cast<size_t>(size), "PTX on the CPU");
  return 0;
}

EXPORT Result cuDeviceGetAttribute(int *value, int attribute, Device) {
  switch (attribute) {
  case gdnrt::cuda::kMultiprocessorCount:
    *value = kMultiprocessors;
    return 0;
  case gdnrt::cuda::kMajor:
    *value = 9;
    return 0;
  case gdnrt::cuda::kMinor:
    *value = 0;
    return 0;
  case gdnrt::cuda::kMaxSharedBytesOptIn:
    *value = kMostSharedBytes;
    return 0;
  default:
    *value = 0;
    return kInvalidValue;
  }
}

EXPORT Result cuDevicePrimaryCtxRetain(Context *context, Device) {
  *context = &state().primary;
  return 0;
}

EXPORT Result cuDevicePrimaryCtxRelease_v2(Device) { return 0; }

EXPORT Result cuCtxGetCurrent(Context *context) {
  *context = contexts.empty() ? nullptr : contexts.back();
  return 0;
}

EXPORT Result cuCtxSetCurrent(Context context) {
  if (contexts.empty())
    contexts.push_back(context);
  else
    contexts.back() = context;
  return 0;
}

EXPORT Result cuCtxGetDevice(Device *device) {
  *device = 0;
  return contexts.empty() || !contexts.back() ? 201 : 0;
}

EXPORT Result cuCtxPushCurrent_v2(Context context) {
  contexts.push_back(context);
  return 0;
}

EXPORT Result cuCtxPopCurrent_v2(Context *context) {
  if (contexts.empty())
    return 201;
  *context = contexts.back();
  contexts.pop_back();
  return 0;
}

EXPORT Result cuCtxSynchronize() { return 0; }

//===----------------------------------------------------------------------===//
// Modules and launches
//===----------------------------------------------------------------------===//

/// Programs do not change when they run: a text that is loaded again, as each
/// test of a suite does, is read once. What is read stays until the process
/// ends.
static const ptx::Program &programOf(const char *text) {
  static std::mutex lock;
  static auto &programs =
      *new std::map<std::string, std::unique_ptr<ptx::Program>>;
  std::lock_guard<std::mutex> guard(lock);
  std::unique_ptr<ptx::Program> &program = programs[text];
  if (!program)
    program = ptx::readProgram(text);
  return *program;
}

EXPORT Result cuModuleLoadDataEx(Module *module, const void *data,
                                 unsigned numOptions, int *options,
                                 void **values) {
  const char *text = static_cast<const char *>(data);
  if (std::memcmp(text, "\177ELF", 4) == 0)
    return gdnrt::cuda::kNoBinaryForGpu;
  try {
    auto loaded = std::make_unique<gdnrt::cuda::OpaqueModule>();
    loaded->program = &programOf(text);
    for (auto &kernel : loaded->program->kernels) {
      loaded->functions.push_back(
          std::make_unique<gdnrt::cuda::OpaqueFunction>());
      loaded->functions.back()->kernel =
          std::make_shared<const ptx::Kernel *>(kernel.get());
    }
    *module = loaded.release();
    return 0;
  } catch (const ptx::Fault &fault) {
    char *log = nullptr;
    size_t bytes = 0;
    for (unsigned i = 0; i < numOptions; ++i) {
      if (options[i] == gdnrt::cuda::kJitErrorLog)
        log = static_cast<char *>(values[i]);
      if (options[i] == gdnrt::cuda::kJitErrorLogBytes)
        bytes = reinterpret_cast<size_t>(values[i]);
    }
    if (log && bytes)
      std::snprintf(log, bytes, "%s", fault.what());
    return gdnrt::cuda::kInvalidPtx;
  }
}

EXPORT Result cuModuleUnload(Module module) {
  for (auto &function : module->functions)
    *function->kernel = nullptr;
  delete module;
  return 0;
}

EXPORT Result cuModuleGetFunction(Function *function, Module module,
                                  const char *name) {
  for (auto &one : module->functions)
    if ((*one->kernel)->name == name) {
      *function = one.get();
      return 0;
    }
  return gdnrt::cuda::kNotFound;
}

EXPORT Result cuFuncLoad(Function) { return 0; }

EXPORT Result cuFuncGetAttribute(int *value, int attribute, Function function) {
  if (attribute != gdnrt::cuda::kFunctionMaxThreads)
    return kInvalidValue;
  uint32_t required = (*function->kernel)->requiredThreads;
  *value = required ? static_cast<int>(required) : 1024;
  return 0;
}

EXPORT Result cuFuncSetAttribute(Function function, int attribute, int value) {
  if (attribute != gdnrt::cuda::kFunctionDynamicSharedBytes)
    return 0;
  if (value < 0 ||
      static_cast<size_t>(value) + (*function->kernel)->staticSharedBytes >
          kMostSharedBytes)
    return kInvalidValue;
  function->dynamicSharedBytes = value;
  return 0;
}

EXPORT Result cuFuncGetParamInfo(Function function, size_t index,
                                 size_t *offset, size_t *bytes) {
  const auto &parameters = (*function->kernel)->parameters;
  if (index >= parameters.size())
    return kInvalidValue;
  *offset = parameters[index].offset;
  *bytes = parameters[index].bytes;
  return 0;
}

EXPORT Result cuLaunchKernelEx(const LaunchConfig *config, Function function,
                               void **parameters, void **) {
  const ptx::Kernel &kernel = **function->kernel;
  auto launch = std::make_shared<ptx::Launch>();
  launch->kernel = &kernel;
  launch->grid = {config->gridX, config->gridY, config->gridZ};
  launch->threads = {config->blockX, config->blockY, config->blockZ};
  launch->dynamicSharedBytes = config->sharedBytes;
  for (uint32_t i = 0; i < config->numAttributes; ++i)
    if (config->attributes[i].id == gdnrt::cuda::kClusterDimension)
      launch->cluster = config->attributes[i].value.cluster.x;
  uint32_t threads = config->blockX * config->blockY * config->blockZ;
  if (config->gridX == 0 || config->gridX % launch->cluster || threads == 0 ||
      threads > 1024 ||
      (kernel.requiredThreads && threads != kernel.requiredThreads) ||
      config->sharedBytes > static_cast<uint32_t>(function->dynamicSharedBytes))
    return kInvalidValue;
  launch->parameters.resize(kernel.parameterBytes);
  for (size_t i = 0; i < kernel.parameters.size(); ++i)
    std::memcpy(launch->parameters.data() + kernel.parameters[i].offset,
                parameters[i], kernel.parameters[i].bytes);
  return submit(config->stream,
                [launch, loaded = function->kernel]() -> Result {
                  if (!*loaded)
                    return report("the module of " + launch->kernel->name +
                                  " is unloaded");
                  try {
                    ptx::runKernel(*launch, state().memory);
                    return 0;
                  } catch (const ptx::Fault &fault) {
                    return report(fault.what());
                  }
                });
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

EXPORT Result cuMemAlloc_v2(Address *address, size_t bytes) {
  if (bytes == 0)
    return kInvalidValue;
  *address = state().memory.allocate(bytes);
  return *address ? 0 : gdnrt::cuda::kOutOfMemory;
}

EXPORT Result cuMemFree_v2(Address address) {
  return state().memory.free(address) ? 0 : kInvalidValue;
}

EXPORT Result cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t bytes,
                                   Stream stream) {
  char *target = deviceBytes(to, bytes);
  if (!target)
    return kInvalidValue;
  return submit(stream, [=] {
    std::memcpy(target, from, bytes);
    return 0;
  });
}

EXPORT Result cuMemcpyDtoHAsync_v2(void *to, Address from, size_t bytes,
                                   Stream stream) {
  const char *source = deviceBytes(from, bytes);
  if (!source)
    return kInvalidValue;
  return submit(stream, [=] {
    std::memcpy(to, source, bytes);
    return 0;
  });
}

EXPORT Result cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes,
                                   Stream stream) {
  char *target = deviceBytes(to, bytes);
  const char *source = deviceBytes(from, bytes);
  if (!target || !source)
    return kInvalidValue;
  return submit(stream, [=] {
    std::memcpy(target, source, bytes);
    return 0;
  });
}

EXPORT Result cuMemsetD8Async(Address address, unsigned char value,
                              size_t bytes, Stream stream) {
  char *target = deviceBytes(address, bytes);
  if (!target)
    return kInvalidValue;
  return submit(stream, [=] {
    std::memset(target, value, bytes);
    return 0;
  });
}

//===----------------------------------------------------------------------===//
// Streams, events and graphs
//===----------------------------------------------------------------------===//

EXPORT Result cuStreamCreate(Stream *stream, unsigned) {
  *stream = new gdnrt::cuda::OpaqueStream;
  return 0;
}

EXPORT Result cuStreamDestroy_v2(Stream stream) {
  delete stream;
  return 0;
}

EXPORT Result cuStreamSynchronize(Stream stream) {
  return stream && stream->recorded ? kCaptureUnsupported : 0;
}

EXPORT Result cuThreadExchangeStreamCaptureMode(int *) { return 0; }

EXPORT Result cuStreamIsCapturing(Stream stream, int *status) {
  *status = stream && stream->recorded;
  return 0;
}

EXPORT Result cuStreamBeginCapture_v2(Stream stream, int) {
  if (!stream || stream->recorded)
    return kCaptureUnsupported;
  stream->recorded = std::make_unique<gdnrt::cuda::OpaqueGraph>();
  return 0;
}

EXPORT Result cuStreamEndCapture(Stream stream, Graph *graph) {
  if (!stream->recorded)
    return kCaptureUnsupported;
  *graph = stream->recorded.release();
  return 0;
}

EXPORT Result cuStreamGetCaptureInfo_v2(Stream stream, int *status, uint64_t *,
                                        Graph *graph, const void **, size_t *) {
  *status = stream && stream->recorded;
  *graph = *status ? stream->recorded.get() : nullptr;
  return 0;
}

EXPORT Result cuUserObjectCreate(UserObject *object, void *data,
                                 void (*destroy)(void *), unsigned, unsigned) {
  *object = new gdnrt::cuda::OpaqueUserObject{{data, destroy}};
  return 0;
}

EXPORT Result cuUserObjectRelease(UserObject object, unsigned) {
  delete object;
  return 0;
}

/// The reference of the caller becomes the graph's: what the runtime asks for.
EXPORT Result cuGraphRetainUserObject(Graph graph, UserObject object, unsigned,
                                      unsigned flags) {
  if (flags != gdnrt::cuda::kGraphUserObjectMove)
    return kInvalidValue;
  graph->held.push_back(std::move(object->held));
  delete object;
  return 0;
}

EXPORT Result cuGraphInstantiateWithFlags(Graph *executable, Graph graph,
                                          unsigned long long) {
  *executable = new gdnrt::cuda::OpaqueGraph(*graph);
  return 0;
}

EXPORT Result cuGraphLaunch(Graph executable, Stream) {
  for (auto &work : executable->work)
    if (Result result = work())
      return result;
  return 0;
}

EXPORT Result cuGraphDestroy(Graph graph) {
  delete graph;
  return 0;
}

EXPORT Result cuGraphExecDestroy(Graph executable) {
  delete executable;
  return 0;
}

EXPORT Result cuEventCreate(void **event, unsigned) {
  *event = new Event;
  return 0;
}

EXPORT Result cuEventDestroy_v2(void *event) {
  delete static_cast<Event *>(event);
  return 0;
}

EXPORT Result cuEventRecord(void *event, Stream) {
  static_cast<Event *>(event)->time = std::chrono::steady_clock::now();
  return 0;
}

EXPORT Result cuEventSynchronize(void *) { return 0; }

EXPORT Result cuEventElapsedTime(float *milliseconds, void *start, void *end) {
  *milliseconds =
      std::chrono::duration<float, std::milli>(
          static_cast<Event *>(end)->time - static_cast<Event *>(start)->time)
          .count();
  return 0;
}
// NOLINTEND(readability-identifier-naming)
