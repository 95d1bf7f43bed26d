// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The part of the C ABI of the CUDA driver that the runtime uses. It is
// declared here so that the build needs no CUDA toolkit. The names are those of
// the runtime. The numbers and layouts are those that the driver documents and
// keeps stable.

#ifndef GDNRT_CUDA_ABI_H
#define GDNRT_CUDA_ABI_H

#include <cstddef>
#include <cstdint>

namespace gdnrt::cuda {

/// CUresult: 0 is success.
using Result = int;
/// CUdevice: a number.
using Device = int;
/// CUdeviceptr: an address in device memory.
using Address = uint64_t;
/// Opaque handles; a null stream is the legacy default stream.
using Context = struct OpaqueContext *;
using Module = struct OpaqueModule *;
using Function = struct OpaqueFunction *;
using Stream = struct OpaqueStream *;
using Event = struct OpaqueEvent *;
using Graph = struct OpaqueGraph *;
using UserObject = struct OpaqueUserObject *;

// Values of CUresult that the runtime handles in different ways.
constexpr Result kSuccess = 0;
constexpr Result kOutOfMemory = 2;
constexpr Result kDeinitialized = 4;
constexpr Result kNoDevice = 100;
constexpr Result kInvalidImage = 200;
constexpr Result kNoBinaryForGpu = 209;
constexpr Result kInvalidPtx = 218;
constexpr Result kNoJitCompiler = 221;
constexpr Result kUnsupportedPtxVersion = 222;
constexpr Result kNotFound = 500;
constexpr Result kNotReady = 600;

// CUdevice_attribute.
constexpr int kMultiprocessorCount = 16;
constexpr int kMajor = 75;
constexpr int kMinor = 76;
constexpr int kMaxSharedBytesOptIn = 97;

// CUfunction_attribute.
constexpr int kFunctionMaxThreads = 0;
constexpr int kFunctionDynamicSharedBytes = 8;
constexpr int kFunctionNonPortableCluster = 14;

// CUjit_option.
constexpr int kJitInfoLog = 3;
constexpr int kJitInfoLogBytes = 4;
constexpr int kJitErrorLog = 5;
constexpr int kJitErrorLogBytes = 6;

// CUstreamCaptureMode and CUstreamCaptureStatus.
constexpr int kCaptureRelaxed = 2;
constexpr int kCaptureActive = 1;

// CUstream_flags and CUevent_flags.
constexpr unsigned kStreamNonBlocking = 1;
constexpr unsigned kEventWithoutTiming = 2;

// CUuserObject_flags and CUuserObjectRetain_flags.
constexpr unsigned kUserObjectNoDestructorSync = 1;
constexpr unsigned kGraphUserObjectMove = 1;

// CUlaunchAttributeID.
constexpr int kClusterDimension = 4;
constexpr int kProgrammaticStreamSerialization = 6;

// CUtensorMapDataType, CUtensorMapInterleave, CUtensorMapSwizzle,
// CUtensorMapL2promotion and CUtensorMapFloatOOBfill.
constexpr int kTensorMapUint16 = 1;
constexpr int kTensorMapNoInterleave = 0;
constexpr int kTensorMapSwizzle128 = 3;
constexpr int kTensorMapPromote256 = 3;
constexpr int kTensorMapFillZeros = 0;

// CUmemorytype.
constexpr int kMemoryHost = 1;
constexpr int kMemoryDevice = 2;

/// One side of a CUDA_MEMCPY2D.
struct CopySide {
  size_t xInBytes = 0, y = 0;
  int type = 0;
  void *host = nullptr;
  Address device = 0;
  void *array = nullptr;
  size_t pitch = 0;
};

/// CUDA_MEMCPY2D.
struct RowCopy {
  CopySide from, to;
  size_t widthInBytes = 0, height = 0;
};
static_assert(sizeof(RowCopy) == 128 && offsetof(RowCopy, to) == 56 &&
                  offsetof(RowCopy, widthInBytes) == 112,
              "the layout of CUDA_MEMCPY2D");

/// CUtensorMap, opaque.
struct alignas(64) TensorMap {
  uint64_t words[16];
};
static_assert(sizeof(TensorMap) == 128, "the size of CUtensorMap");

/// CUlaunchAttribute: an id, padding to 8 bytes, a union of 64 bytes.
struct LaunchAttribute {
  int id;
  char padding[4];
  union {
    char bytes[64];
    struct {
      uint32_t x, y, z;
    } cluster;
    int allowed;
  } value;
};
static_assert(sizeof(LaunchAttribute) == 72 &&
                  offsetof(LaunchAttribute, value) == 8,
              "the layout of CUlaunchAttribute");

/// CUlaunchConfig.
struct LaunchConfig {
  uint32_t gridX, gridY, gridZ;
  uint32_t blockX, blockY, blockZ;
  uint32_t sharedBytes;
  Stream stream;
  LaunchAttribute *attributes;
  uint32_t numAttributes;
};
static_assert(sizeof(LaunchConfig) == 56 &&
                  offsetof(LaunchConfig, stream) == 32 &&
                  offsetof(LaunchConfig, numAttributes) == 48,
              "the layout of CUlaunchConfig");

} // namespace gdnrt::cuda

/// Entry points of the driver: X(member, exported symbol, parameters). All
/// return a CUresult.
#define GDNRT_CUDA_REQUIRED(X)                                                 \
  X(init, cuInit, (unsigned flags))                                            \
  X(driverVersion, cuDriverGetVersion, (int *version))                         \
  X(errorName, cuGetErrorName, (Result result, const char **text))             \
  X(errorString, cuGetErrorString, (Result result, const char **text))         \
  X(deviceCount, cuDeviceGetCount, (int *count))                               \
  X(deviceGet, cuDeviceGet, (Device * device, int ordinal))                    \
  X(deviceName, cuDeviceGetName, (char *name, int size, Device device))        \
  X(deviceAttribute, cuDeviceGetAttribute,                                     \
    (int *value, int attribute, Device device))                                \
  X(primaryRetain, cuDevicePrimaryCtxRetain,                                   \
    (Context * context, Device device))                                        \
  X(primaryRelease, cuDevicePrimaryCtxRelease_v2, (Device device))             \
  X(contextCurrent, cuCtxGetCurrent, (Context * context))                      \
  X(contextDevice, cuCtxGetDevice, (Device * device))                          \
  X(contextPush, cuCtxPushCurrent_v2, (Context context))                       \
  X(contextPop, cuCtxPopCurrent_v2, (Context * context))                       \
  X(moduleLoad, cuModuleLoadDataEx,                                            \
    (Module * module, const void *data, unsigned numOptions, int *options,     \
     void **values))                                                           \
  X(moduleUnload, cuModuleUnload, (Module module))                             \
  X(moduleFunction, cuModuleGetFunction,                                       \
    (Function * function, Module module, const char *name))                    \
  X(functionGet, cuFuncGetAttribute,                                           \
    (int *value, int attribute, Function function))                            \
  X(functionSet, cuFuncSetAttribute,                                           \
    (Function function, int attribute, int value))                             \
  X(launch, cuLaunchKernelEx,                                                  \
    (const LaunchConfig *config, Function function, void **parameters,         \
     void **extra))                                                            \
  X(exchangeCaptureMode, cuThreadExchangeStreamCaptureMode, (int *mode))       \
  X(streamSynchronize, cuStreamSynchronize, (Stream stream))                   \
  X(memoryAllocate, cuMemAlloc_v2, (Address * address, size_t bytes))          \
  X(memoryFree, cuMemFree_v2, (Address address))                               \
  X(copyToDevice, cuMemcpyHtoDAsync_v2,                                        \
    (Address to, const void *from, size_t bytes, Stream stream))               \
  X(copyToHost, cuMemcpyDtoHAsync_v2,                                          \
    (void *to, Address from, size_t bytes, Stream stream))                     \
  X(copyOnDevice, cuMemcpyDtoDAsync_v2,                                        \
    (Address to, Address from, size_t bytes, Stream stream))                   \
  X(memorySet, cuMemsetD8Async,                                                \
    (Address address, unsigned char value, size_t bytes, Stream stream))       \
  X(memorySetRows, cuMemsetD2D8Async,                                          \
    (Address address, size_t distance, unsigned char value, size_t bytes,      \
     size_t rows, Stream stream))

/// Entry points that older drivers do not have, or that few programs need. They
/// are null where a driver lacks them.
#define GDNRT_CUDA_OPTIONAL(X)                                                 \
  X(functionLoad, cuFuncLoad, (Function function))                             \
  X(streamIsCapturing, cuStreamIsCapturing, (Stream stream, int *status))      \
  X(streamCaptureInfo, cuStreamGetCaptureInfo_v2,                              \
    (Stream stream, int *status, uint64_t *id, Graph *graph,                   \
     const void **dependencies, size_t *count))                                \
  X(userObjectCreate, cuUserObjectCreate,                                      \
    (UserObject * object, void *data, void (*destroy)(void *),                 \
     unsigned references, unsigned flags))                                     \
  X(userObjectRelease, cuUserObjectRelease,                                    \
    (UserObject object, unsigned count))                                       \
  X(graphRetain, cuGraphRetainUserObject,                                      \
    (Graph graph, UserObject object, unsigned count, unsigned flags))          \
  X(functionParameter, cuFuncGetParamInfo,                                     \
    (Function function, size_t index, size_t *offset, size_t *bytes))          \
  X(hostAllocate, cuMemHostAlloc, (void **data, size_t bytes, unsigned flags)) \
  X(hostFree, cuMemFreeHost, (void *data))                                     \
  X(copyRows, cuMemcpy2DAsync_v2, (const RowCopy *copy, Stream stream))        \
  X(launchHost, cuLaunchHostFunc,                                              \
    (Stream stream, void (*function)(void *), void *data))                     \
  X(streamCreate, cuStreamCreate, (Stream * stream, unsigned flags))           \
  X(streamDestroy, cuStreamDestroy_v2, (Stream stream))                        \
  X(streamWaitEvent, cuStreamWaitEvent,                                        \
    (Stream stream, Event event, unsigned flags))                              \
  X(eventCreate, cuEventCreate, (Event * event, unsigned flags))               \
  X(eventDestroy, cuEventDestroy_v2, (Event event))                            \
  X(eventRecord, cuEventRecord, (Event event, Stream stream))                  \
  X(eventQuery, cuEventQuery, (Event event))                                   \
  X(eventSynchronize, cuEventSynchronize, (Event event))                       \
  X(tensorMapEncode, cuTensorMapEncodeTiled,                                   \
    (TensorMap * map, int type, uint32_t rank, void *address,                  \
     const uint64_t *sizes, const uint64_t *strides, const uint32_t *box,      \
     const uint32_t *elementStrides, int interleave, int swizzle,              \
     int promotion, int fill))

#endif // GDNRT_CUDA_ABI_H
