// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads the driver's library and turns its results into statuses.

#include "gdnrt/cuda_driver.h"

#include <dlfcn.h>
#include <new>
#include <string>

using namespace gdnrt;
using namespace gdnrt::cuda;

// cuLaunchKernelEx with clusters came with 11.8; 12.0 is the first release
// whose driver loads what current assemblers write for sm_90a.
static constexpr int kOldestVersion = 12000;

static StatusCode codeOf(cuda::Result result) {
  switch (result) {
  case kOutOfMemory:
    return StatusCode::outOfMemory;
  case kInvalidImage:
  case kInvalidPtx:
    return StatusCode::corrupt;
  case kNoDevice:
  case kNoBinaryForGpu:
  case kNoJitCompiler:
  case kUnsupportedPtxVersion:
    return StatusCode::unsupported;
  default:
    return StatusCode::deviceError;
  }
}

Status Driver::check(cuda::Result result, const char *call,
                     std::string_view what) const {
  if (result == kSuccess)
    return {};
  const char *name = nullptr, *text = nullptr;
  if (errorName(result, &name) != kSuccess || !name)
    name = "unknown error";
  if (errorString(result, &text) != kSuccess || !text)
    text = "no description";
  try {
    return failure(codeOf(result), what, ": ", call, ": ", name, " (", result,
                   "): ", text);
  } catch (const std::bad_alloc &) {
    // Destructors come here, too, and let nothing out.
    return Status(codeOf(result), std::string());
  }
}

static std::string loaderMessage() {
  const char *message = dlerror();
  return message ? message : "unknown error";
}

::gdnrt::Result<std::shared_ptr<const Driver>>
Driver::load(const char *library) {
  // NODELETE: threads of the driver may outlive every device.
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!handle)
    return failure(StatusCode::unsupported,
                   "cuda: no driver: ", loaderMessage());
  auto driver = std::make_shared<Driver>();
  const char *missing = nullptr;
#define GDNRT_CUDA_FIND(MEMBER, SYMBOL, PARAMETERS)                            \
  driver->MEMBER =                                                             \
      reinterpret_cast<decltype(driver->MEMBER)>(dlsym(handle, #SYMBOL));
#define GDNRT_CUDA_DEMAND(MEMBER, SYMBOL, PARAMETERS)                          \
  if (!driver->MEMBER && !missing)                                             \
    missing = #SYMBOL;
  GDNRT_CUDA_REQUIRED(GDNRT_CUDA_FIND)
  GDNRT_CUDA_OPTIONAL(GDNRT_CUDA_FIND)
  GDNRT_CUDA_REQUIRED(GDNRT_CUDA_DEMAND)
#undef GDNRT_CUDA_FIND
#undef GDNRT_CUDA_DEMAND
  dlclose(handle);
  if (missing)
    return failure(StatusCode::unsupported, "cuda: ", library, " lacks ",
                   missing, "; expected the driver of CUDA 12.0 or later");
  if (Status s = driver->check(driver->driverVersion(&driver->version),
                               "cuDriverGetVersion", "cuda");
      !s.isOk())
    return s;
  if (driver->version < kOldestVersion)
    return failure(StatusCode::unsupported,
                   "cuda: expected the driver of CUDA 12.0 or later, got ",
                   driver->version / 1000, ".", driver->version % 1000 / 10);
  if (Status s = driver->check(driver->init(0), "cuInit", "cuda"); !s.isOk())
    return s;
  return std::shared_ptr<const Driver>(std::move(driver));
}
