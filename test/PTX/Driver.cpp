// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A libcuda.so.1 without a GPU: the entry points that the runtime, its tests
// and the Python package use, over kernels in PTX that the machine runs on
// the CPU. Everything is done when a call returns, except what a stream that
// is captured records. It stands for one GPU, of compute capability 9.0 unless
// GDN_PTX_CHIP says another, with few multiprocessors.

#include "DriverState.h"
#include "Paths.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

using gdnrt::cuda::Address;
using gdnrt::cuda::Context;
using gdnrt::cuda::Device;
using gdnrt::cuda::Function;
using gdnrt::cuda::Graph;
using gdnrt::cuda::kCaptureUnsupported;
using gdnrt::cuda::kInvalidValue;
using gdnrt::cuda::LaunchConfig;
using gdnrt::cuda::Module;
using gdnrt::cuda::Result;
using gdnrt::cuda::state;
using gdnrt::cuda::Stream;
using gdnrt::cuda::submit;
using gdnrt::cuda::UserObject;

namespace {

constexpr Result kIllegalState = 700; // CUDA_ERROR_ILLEGAL_ADDRESS
constexpr int kMultiprocessors = 8;

/// The chip that it stands for: that of sm_90, or GDN_PTX_CHIP=<sm number>.
int chip() {
  const char *name = std::getenv("GDN_PTX_CHIP");
  return name ? static_cast<int>(std::strtol(name, nullptr, 10)) : 90;
}

/// The most shared memory of a block: what chips of that number have.
int mostSharedBytes() {
  switch (chip()) {
  case 80:
    return 163 << 10;
  case 86:
  case 89:
  case 120:
    return 99 << 10;
  default:
    return 227 << 10;
  }
}

thread_local std::vector<Context> contexts;

Result report(const std::string &text) {
  std::lock_guard<std::mutex> guard(state().lock);
  state().lastFault = text;
  return kIllegalState;
}

/// Adds lines to the file that a variable names, if a script wants to read
/// them.
void append(const char *variable, const std::string &lines) {
  const char *name = std::getenv(variable);
  std::lock_guard<std::mutex> guard(state().lock);
  if (std::FILE *file = name ? std::fopen(name, "a") : nullptr) {
    std::fputs(lines.c_str(), file);
    std::fclose(file);
  }
}

/// Host addresses of the device's memory, or null.
char *deviceBytes(Address address, size_t bytes) {
  const std::lock_guard guard(state().turn);
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
    *value = chip() / 10;
    return 0;
  case gdnrt::cuda::kMinor:
    *value = chip() % 10;
    return 0;
  case gdnrt::cuda::kMaxSharedBytesOptIn:
    *value = mostSharedBytes();
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

EXPORT Result cuCtxSynchronize() {
  state().memory.races().settle();
  return 0;
}

//===----------------------------------------------------------------------===//
// Modules and launches
//===----------------------------------------------------------------------===//

/// GDN_PTX_EDIT="<line> <text>" has that line of a module replaced, so that a
/// script may take away what orders two accesses.
static std::string edited(const char *text) {
  const char *edit = std::getenv("GDN_PTX_EDIT");
  if (!edit)
    return text;
  std::string all = text;
  char *rest = nullptr;
  size_t begin = 0;
  for (long line = std::strtol(edit, &rest, 10); line > 1; --line)
    begin = all.find('\n', begin) + 1;
  return all.replace(begin, all.find('\n', begin) - begin, rest);
}

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
    program = ptx::readProgram(edited(text));
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
          static_cast<size_t>(mostSharedBytes()))
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

/// Runs a launch, with what orders its accesses in the file GDN_PTX_PATHS if
/// there is one.
static Result run(const ptx::Launch &launch) {
  std::unique_ptr<ptx::Paths> paths;
  if (std::getenv("GDN_PTX_PATHS"))
    paths = std::make_unique<ptx::Paths>(*launch.kernel);
  Result result = 0;
  try {
    ptx::runKernel(launch, state().memory, paths.get());
  } catch (const ptx::Findings &findings) {
    append("GDN_PTX_REPORT", findings.json(*launch.kernel));
    result = report(findings.what());
  } catch (const ptx::Fault &fault) {
    result = report(fault.what());
  }
  if (paths)
    append("GDN_PTX_PATHS", paths->json());
  return result;
}

EXPORT Result cuLaunchKernelEx(const LaunchConfig *config, Function function,
                               void **parameters, void **) {
  const ptx::Kernel &kernel = **function->kernel;
  auto launch = std::make_shared<ptx::Launch>();
  launch->kernel = &kernel;
  launch->grid = {config->gridX, config->gridY, config->gridZ};
  launch->threads = {config->blockX, config->blockY, config->blockZ};
  launch->dynamicSharedBytes = config->sharedBytes;
  // Verify with pending tokens reads rows behind the last one: its runs ask for
  // that not to be told.
  const char *unwritten = std::getenv("GDN_PTX_UNWRITTEN");
  launch->findsUnwritten = !unwritten || std::strcmp(unwritten, "0") != 0;
  const char *seed = std::getenv("GDN_PTX_SEED");
  launch->seed = seed ? std::strtoull(seed, nullptr, 10) : 0;
  const char *late = std::getenv("GDN_PTX_LATE");
  launch->late = late ? std::strtoull(late, nullptr, 0) : 0;
  const char *limit = std::getenv("GDN_PTX_LIMIT");
  launch->limit = limit ? std::strtoull(limit, nullptr, 10) : 0;
  for (uint32_t i = 0; i < config->numAttributes; ++i)
    if (config->attributes[i].id == gdnrt::cuda::kClusterDimension)
      launch->cluster = config->attributes[i].value.cluster.x;
    else if (config->attributes[i].id ==
             gdnrt::cuda::kProgrammaticStreamSerialization)
      launch->isDependent = config->attributes[i].value.allowed;
  launch->stream = config->stream;
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
                  return run(*launch);
                });
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

EXPORT Result cuMemAlloc_v2(Address *address, size_t bytes) {
  if (bytes == 0)
    return kInvalidValue;
  const std::lock_guard guard(state().turn);
  *address = state().memory.allocate(bytes);
  return *address ? 0 : gdnrt::cuda::kOutOfMemory;
}

EXPORT Result cuMemFree_v2(Address address) {
  const std::lock_guard guard(state().turn);
  state().memory.races().settle();
  return state().memory.free(address) ? 0 : kInvalidValue;
}

EXPORT Result cuMemcpy2DAsync_v2(const gdnrt::cuda::RowCopy *copy,
                                 Stream stream) {
  auto find = [&](const gdnrt::cuda::CopySide &side) -> char * {
    if (side.pitch < copy->widthInBytes || copy->height == 0)
      return nullptr;
    const size_t bytes = (copy->height - 1) * side.pitch + copy->widthInBytes;
    return side.type == gdnrt::cuda::kMemoryDevice
               ? deviceBytes(side.device, bytes)
               : static_cast<char *>(side.host);
  };
  char *to = find(copy->to);
  const char *from = find(copy->from);
  if (!to || !from)
    return kInvalidValue;
  return submit(stream, [=, copy = *copy] {
    state().memory.races().settle();
    for (size_t row = 0; row < copy.height; ++row)
      std::memcpy(to + row * copy.to.pitch, from + row * copy.from.pitch,
                  copy.widthInBytes);
    return 0;
  });
}

EXPORT Result cuMemHostAlloc(void **data, size_t bytes, unsigned) {
  *data = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  return *data ? 0 : gdnrt::cuda::kOutOfMemory;
}

EXPORT Result cuMemFreeHost(void *data) {
  std::free(data);
  return 0;
}

EXPORT Result cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t bytes,
                                   Stream stream) {
  char *target = deviceBytes(to, bytes);
  if (!target)
    return kInvalidValue;
  return submit(stream, [=] {
    state().memory.races().settle();
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
    state().memory.races().settle();
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
    state().memory.races().settle();
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
    state().memory.races().settle();
    std::memset(target, value, bytes);
    return 0;
  });
}

EXPORT Result cuMemsetD2D8Async(Address address, size_t distance,
                                unsigned char value, size_t bytes, size_t rows,
                                Stream stream) {
  if (rows == 0)
    return 0;
  char *target = deviceBytes(address, (rows - 1) * distance + bytes);
  if (!target || distance < bytes)
    return kInvalidValue;
  return submit(stream, [=] {
    state().memory.races().settle();
    for (size_t row = 0; row < rows; ++row)
      std::memset(target + row * distance, value, bytes);
    return 0;
  });
}

// NOLINTEND(readability-identifier-naming)
