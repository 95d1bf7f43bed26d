// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The entry points of the stand-in. Signatures come from the table of
// gdnrt/cuda_abi.h, so that a difference between the two does not compile.

#include "fake_cuda.h"

#include "fake_streams.h"

#include <cstdlib>
#include <cstring>

using namespace gdnrt::cuda;
using gdnrt::test::FakeCuda;

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace gdnrt::cuda {
struct OpaqueContext {
  int device;
};
struct OpaqueModule {
  std::string text;
};
struct OpaqueFunction {
  std::string name;
};
} // namespace gdnrt::cuda

// Contexts of up to four devices: the primary ones and foreign ones.
static OpaqueContext primaries[4] = {{0}, {1}, {2}, {3}};
static OpaqueContext foreigners[4] = {{0}, {1}, {2}, {3}};
static thread_local std::vector<Context> contextStack;

#if defined(__clang__)
#pragma clang diagnostic ignored "-Wexit-time-destructors"
#endif

FakeCuda &gdnrt::test::fakeCuda() {
  static FakeCuda *fake = new FakeCuda;
  return *fake;
}

int FakeCuda::count(const std::string &name) const {
  int found = 0;
  for (const std::string &call : calls)
    found += call == name;
  return found;
}

void gdnrt::test::destroyFakeGraphs() {
  auto objects = std::move(fakeCuda().userObjects);
  fakeCuda().userObjects.clear();
  for (auto [destroy, data] : objects)
    destroy(data);
}

void gdnrt::test::resetFakeCuda() {
  FakeCuda &fake = fakeCuda();
  FakeCuda fresh;
  std::lock_guard<std::mutex> guard(fake.lock);
  fake.version = fresh.version;
  fake.deviceCount = fresh.deviceCount;
  fake.major = fresh.major;
  fake.minor = fresh.minor;
  fake.multiprocessors = fresh.multiprocessors;
  fake.maxThreads = fresh.maxThreads;
  fake.parameterBytes = 0;
  fake.parameterBytesOf.clear();
  fake.isCapturing = false;
  fake.userObjects.clear();
  fake.assemblerLog.clear();
  fake.run = nullptr;
  fake.finish = nullptr;
  fake.failures.clear();
  fake.successes.clear();
  fake.calls.clear();
  fake.launches.clear();
  fake.maps.clear();
  fake.modules.clear();
  fake.functionAttributes.clear();
}

Context gdnrt::test::fakeCurrentContext() {
  return contextStack.empty() ? nullptr : contextStack.back();
}

void gdnrt::test::setFakeCurrentContext(Context context) {
  contextStack.clear();
  if (context)
    contextStack.push_back(context);
}

Context gdnrt::test::fakeForeignContext(int device) {
  return &foreigners[device];
}

/// Notes a call and says whether it is to fail.
gdnrt::cuda::Result gdnrt::test::noteFakeCall(const char *name) {
  FakeCuda &fake = gdnrt::test::fakeCuda();
  std::lock_guard<std::mutex> guard(fake.lock);
  fake.calls.emplace_back(name);
  auto found = fake.failures.find(name);
  if (found == fake.failures.end() || fake.successes[name]-- > 0)
    return kSuccess;
  return found->second;
}

#define NOTE(NAME)                                                             \
  if (gdnrt::cuda::Result failed = gdnrt::test::noteFakeCall(NAME);            \
      failed != kSuccess)                                                      \
  return failed

static FakeCuda &fake() { return gdnrt::test::fakeCuda(); }

EXPORT gdnrt::cuda::Result cuInit(unsigned) {
  NOTE("cuInit");
  return kSuccess;
}
EXPORT gdnrt::cuda::Result cuDriverGetVersion(int *version) {
  NOTE("cuDriverGetVersion");
  *version = fake().version;
  return kSuccess;
}
EXPORT gdnrt::cuda::Result cuGetErrorName(gdnrt::cuda::Result result,
                                          const char **text) {
  *text = result == kOutOfMemory  ? "CUDA_ERROR_OUT_OF_MEMORY"
          : result == 1           ? "CUDA_ERROR_INVALID_VALUE"
          : result == kInvalidPtx ? "CUDA_ERROR_INVALID_PTX"
                                  : nullptr;
  return *text ? kSuccess : 1;
}
EXPORT gdnrt::cuda::Result cuGetErrorString(gdnrt::cuda::Result result,
                                            const char **text) {
  *text = result == kOutOfMemory  ? "out of memory"
          : result == 1           ? "invalid argument"
          : result == kInvalidPtx ? "a PTX JIT compilation failed"
                                  : nullptr;
  return *text ? kSuccess : 1;
}
EXPORT gdnrt::cuda::Result cuDeviceGetCount(int *count) {
  NOTE("cuDeviceGetCount");
  *count = fake().deviceCount;
  return kSuccess;
}
EXPORT gdnrt::cuda::Result cuDeviceGet(Device *device, int ordinal) {
  NOTE("cuDeviceGet");
  *device = ordinal;
  return kSuccess;
}
EXPORT gdnrt::cuda::Result cuDeviceGetName(char *name, int size, Device) {
  NOTE("cuDeviceGetName");
  std::strncpy(name, "Fake GPU", static_cast<size_t>(size));
  return kSuccess;
}
EXPORT gdnrt::cuda::Result cuDeviceGetAttribute(int *value, int attribute,
                                                Device) {
  NOTE("cuDeviceGetAttribute");
  *value = attribute == kMajor                 ? fake().major
           : attribute == kMinor               ? fake().minor
           : attribute == kMultiprocessorCount ? fake().multiprocessors
                                               : 0;
  return kSuccess;
}
EXPORT gdnrt::cuda::Result cuDevicePrimaryCtxRetain(Context *context,
                                                    Device device) {
  NOTE("cuDevicePrimaryCtxRetain");
  *context = &primaries[device];
  ++fake().retained;
  return kSuccess;
}
EXPORT gdnrt::cuda::Result cuDevicePrimaryCtxRelease_v2(Device) {
  NOTE("cuDevicePrimaryCtxRelease");
  --fake().retained;
  return kSuccess;
}
EXPORT gdnrt::cuda::Result cuCtxGetCurrent(Context *context) {
  NOTE("cuCtxGetCurrent");
  *context = gdnrt::test::fakeCurrentContext();
  return kSuccess;
}
EXPORT gdnrt::cuda::Result cuCtxGetDevice(Device *device) {
  NOTE("cuCtxGetDevice");
  *device = contextStack.back()->device;
  return kSuccess;
}
EXPORT gdnrt::cuda::Result cuCtxPushCurrent_v2(Context context) {
  NOTE("cuCtxPushCurrent");
  contextStack.push_back(context);
  return kSuccess;
}
EXPORT gdnrt::cuda::Result cuCtxPopCurrent_v2(Context *context) {
  NOTE("cuCtxPopCurrent");
  *context = contextStack.back();
  contextStack.pop_back();
  return kSuccess;
}
EXPORT gdnrt::cuda::Result cuModuleLoadDataEx(Module *module, const void *data,
                                              unsigned numOptions, int *options,
                                              void **values) {
  for (unsigned i = 0; i < numOptions; ++i)
    if (options[i] == kJitErrorLog && !fake().assemblerLog.empty())
      std::strcpy(static_cast<char *>(values[i]), fake().assemblerLog.c_str());
  NOTE("cuModuleLoadDataEx");
  // Options come with PTX, which is text.
  *module = new OpaqueModule{
      numOptions ? std::string(static_cast<const char *>(data)) : "cubin"};
  std::lock_guard<std::mutex> guard(fake().lock);
  // A driver that is gone unloads nothing; that is no leak of ours.
  static auto &known = *new std::vector<Module>;
  known.push_back(*module);
  fake().modules.push_back((*module)->text);
  ++fake().loadedModules;
  return kSuccess;
}
EXPORT gdnrt::cuda::Result cuModuleUnload(Module module) {
  // Also where the test wants a failure: the test has no other way to it.
  delete module;
  NOTE("cuModuleUnload");
  std::lock_guard<std::mutex> guard(fake().lock);
  --fake().loadedModules;
  return kSuccess;
}
EXPORT gdnrt::cuda::Result cuModuleGetFunction(Function *function, Module,
                                               const char *name) {
  NOTE("cuModuleGetFunction");
  // Functions live as long as the process, as few as there are.
  static auto &functions = *new std::map<std::string, OpaqueFunction *>;
  std::lock_guard<std::mutex> guard(fake().lock);
  OpaqueFunction *&known = functions[name];
  if (!known)
    known = new OpaqueFunction{name};
  *function = known;
  return kSuccess;
}
EXPORT gdnrt::cuda::Result cuFuncGetAttribute(int *value, int attribute,
                                              Function) {
  NOTE("cuFuncGetAttribute");
  *value = attribute == kFunctionMaxThreads ? fake().maxThreads : 0;
  return kSuccess;
}
EXPORT gdnrt::cuda::Result cuFuncSetAttribute(Function function, int attribute,
                                              int value) {
  NOTE("cuFuncSetAttribute");
  std::lock_guard<std::mutex> guard(fake().lock);
  fake().functionAttributes[function->name][attribute] = value;
  return kSuccess;
}
#ifndef FAKE_CUDA_IS_OLD
EXPORT gdnrt::cuda::Result cuLaunchKernelEx(const LaunchConfig *config,
                                            Function function,
                                            void **parameters, void **extra) {
  NOTE("cuLaunchKernelEx");
  if (extra)
    return 1;
  gdnrt::test::FakeLaunch launch;
  launch.kernel = function->name;
  launch.config = *config;
  launch.attributes.assign(config->attributes,
                           config->attributes + config->numAttributes);
  const int64_t *words = static_cast<const int64_t *>(parameters[0]);
  const size_t count = fake().bytesOf(function->name) / sizeof(int64_t);
  launch.words.assign(words, words + count);
  launch.context = gdnrt::test::fakeCurrentContext();
  if (fake().run)
    fake().run(launch);
  std::lock_guard<std::mutex> guard(fake().lock);
  fake().launches.push_back(std::move(launch));
  return kSuccess;
}
#endif
EXPORT gdnrt::cuda::Result cuThreadExchangeStreamCaptureMode(int *mode) {
  NOTE("cuThreadExchangeStreamCaptureMode");
  static thread_local int current = 0;
  std::swap(current, *mode);
  return kSuccess;
}
EXPORT gdnrt::cuda::Result cuStreamSynchronize(Stream stream) {
  NOTE("cuStreamSynchronize");
  gdnrt::test::finishFakeStream(stream);
  if (fake().finish)
    fake().finish(stream);
  return kSuccess;
}
EXPORT gdnrt::cuda::Result cuMemAlloc_v2(Address *address, size_t bytes) {
  NOTE("cuMemAlloc");
  // Aligned as memory of the driver is.
  *address = reinterpret_cast<Address>(
      std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  std::lock_guard<std::mutex> guard(fake().lock);
  ++fake().allocations;
  return kSuccess;
}
EXPORT gdnrt::cuda::Result cuMemFree_v2(Address address) {
  NOTE("cuMemFree");
  std::free(reinterpret_cast<void *>(address));
  std::lock_guard<std::mutex> guard(fake().lock);
  --fake().allocations;
  return kSuccess;
}
EXPORT gdnrt::cuda::Result cuMemcpyHtoDAsync_v2(Address to, const void *from,
                                                size_t bytes, Stream stream) {
  NOTE("cuMemcpyHtoDAsync");
  gdnrt::test::runOnFakeStream(
      stream, [=] { std::memcpy(reinterpret_cast<void *>(to), from, bytes); });
  return kSuccess;
}
EXPORT gdnrt::cuda::Result cuMemcpyDtoHAsync_v2(void *to, Address from,
                                                size_t bytes, Stream stream) {
  NOTE("cuMemcpyDtoHAsync");
  gdnrt::test::runOnFakeStream(
      stream, [=] { std::memcpy(to, reinterpret_cast<void *>(from), bytes); });
  return kSuccess;
}
EXPORT gdnrt::cuda::Result cuMemcpyDtoDAsync_v2(Address to, Address from,
                                                size_t bytes, Stream stream) {
  NOTE("cuMemcpyDtoDAsync");
  gdnrt::test::runOnFakeStream(stream, [=] {
    std::memcpy(reinterpret_cast<void *>(to),
                reinterpret_cast<const void *>(from), bytes);
  });
  return kSuccess;
}
EXPORT gdnrt::cuda::Result cuMemsetD8Async(Address address, unsigned char value,
                                           size_t bytes, Stream stream) {
  NOTE("cuMemsetD8Async");
  gdnrt::test::runOnFakeStream(stream, [=] {
    std::memset(reinterpret_cast<void *>(address), value, bytes);
  });
  return kSuccess;
}
EXPORT gdnrt::cuda::Result cuMemsetD2D8Async(Address address, size_t distance,
                                             unsigned char value, size_t bytes,
                                             size_t rows, Stream stream) {
  NOTE("cuMemsetD2D8Async");
  gdnrt::test::runOnFakeStream(stream, [=] {
    for (size_t row = 0; row < rows; ++row)
      std::memset(reinterpret_cast<void *>(address + row * distance), value,
                  bytes);
  });
  return kSuccess;
}
EXPORT gdnrt::cuda::Result cuStreamIsCapturing(Stream, int *status) {
  NOTE("cuStreamIsCapturing");
  *status = fake().isCapturing;
  return kSuccess;
}
EXPORT gdnrt::cuda::Result cuStreamGetCaptureInfo_v2(Stream, int *status,
                                                     uint64_t *, Graph *graph,
                                                     const void **, size_t *) {
  NOTE("cuStreamGetCaptureInfo_v2");
  *status = fake().isCapturing;
  *graph = reinterpret_cast<Graph>(&fake().userObjects);
  return kSuccess;
}
EXPORT gdnrt::cuda::Result cuUserObjectCreate(UserObject *object, void *data,
                                              void (*destroy)(void *), unsigned,
                                              unsigned) {
  NOTE("cuUserObjectCreate");
  auto *made = new std::pair<void (*)(void *), void *>(destroy, data);
  *object = reinterpret_cast<UserObject>(made);
  return kSuccess;
}
EXPORT gdnrt::cuda::Result cuUserObjectRelease(UserObject object, unsigned) {
  NOTE("cuUserObjectRelease");
  auto *made = reinterpret_cast<std::pair<void (*)(void *), void *> *>(object);
  made->first(made->second);
  delete made;
  return kSuccess;
}
EXPORT gdnrt::cuda::Result cuGraphRetainUserObject(Graph, UserObject object,
                                                   unsigned, unsigned) {
  NOTE("cuGraphRetainUserObject");
  auto *made = reinterpret_cast<std::pair<void (*)(void *), void *> *>(object);
  fake().userObjects.push_back(*made);
  delete made;
  return kSuccess;
}
EXPORT gdnrt::cuda::Result cuFuncLoad(Function) {
  NOTE("cuFuncLoad");
  return kSuccess;
}
EXPORT gdnrt::cuda::Result cuFuncGetParamInfo(Function function, size_t,
                                              size_t *offset, size_t *bytes) {
  NOTE("cuFuncGetParamInfo");
  *offset = 0;
  *bytes = fake().bytesOf(function->name);
  return kSuccess;
}
#ifndef FAKE_CUDA_HAS_NO_MAPS
EXPORT gdnrt::cuda::Result
cuTensorMapEncodeTiled(TensorMap *map, int type, uint32_t rank, void *address,
                       const uint64_t *sizes, const uint64_t *strides,
                       const uint32_t *box, const uint32_t *elementStrides,
                       int interleave, int swizzle, int promotion, int fill) {
  NOTE("cuTensorMapEncodeTiled");
  gdnrt::test::FakeMap made;
  made.type = type;
  made.interleave = interleave;
  made.swizzle = swizzle;
  made.promotion = promotion;
  made.fill = fill;
  made.address = reinterpret_cast<Address>(address);
  made.sizes.assign(sizes, sizes + rank);
  made.strides.assign(strides, strides + rank - 1);
  made.box.assign(box, box + rank);
  made.elementStrides.assign(elementStrides, elementStrides + rank);
  made.context = gdnrt::test::fakeCurrentContext();
  std::lock_guard<std::mutex> guard(fake().lock);
  fake().maps.push_back(std::move(made));
  map->words[0] = fake().maps.size();
  return reinterpret_cast<uintptr_t>(map) % 64 == 0 ? kSuccess : 1;
}
#endif
