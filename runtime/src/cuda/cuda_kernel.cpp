// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From what an image says about a launch to cuLaunchKernelEx.

#include "gdnrt/cuda_kernel.h"

#include <algorithm>
#include <cstdint>

using namespace gdnrt;
using namespace gdnrt::cuda;

/// Clusters up to this size work on every GPU that has clusters.
static constexpr uint32_t kPortableCluster = 8;

::gdnrt::Result<Kernel> Kernel::make(std::shared_ptr<LoadedModule> module,
                                     const std::string &symbol,
                                     const LaunchSchema &schema,
                                     size_t numWords, int multiprocessors,
                                     const std::string &what) {
  const Driver &driver = module->context().driver();
  Kernel kernel;
  kernel.what_ = what + ": " + symbol;
  if (!schema.tensorMaps.empty())
    numWords = firstMapWord(numWords) + schema.tensorMaps.size() * kMapWords;
  if (numWords > kMostWords)
    return failure(StatusCode::unsupported, what, ": expected at most ",
                   kMostWords, " words of arguments, got ", numWords);
  cuda::Result found = driver.moduleFunction(&kernel.function_,
                                             module->handle(), symbol.c_str());
  if (found == kNotFound)
    return failure(StatusCode::corrupt, what, ": the code does not export ",
                   symbol);
  if (Status s = driver.check(found, "cuModuleGetFunction", kernel.what_);
      !s.isOk())
    return s;

  // Without this a lazily loading driver would load at the first launch.
  if (driver.functionLoad)
    if (Status s = driver.check(driver.functionLoad(kernel.function_),
                                "cuFuncLoad", kernel.what_);
        !s.isOk())
      return s;
  if (driver.functionParameter) {
    size_t offset = 0, bytes = 0;
    if (Status s = driver.check(
            driver.functionParameter(kernel.function_, 0, &offset, &bytes),
            "cuFuncGetParamInfo", kernel.what_);
        !s.isOk())
      return s;
    if (bytes != numWords * sizeof(int64_t))
      return failure(StatusCode::corrupt, kernel.what_, ": expected ",
                     numWords * sizeof(int64_t),
                     " bytes of parameters, and the kernel takes ", bytes);
  }
  int most = 0;
  if (Status s = driver.check(
          driver.functionGet(&most, kFunctionMaxThreads, kernel.function_),
          "cuFuncGetAttribute", kernel.what_);
      !s.isOk())
    return s;
  if (static_cast<uint32_t>(most) < schema.threads)
    return failure(StatusCode::unsupported, kernel.what_,
                   ": expected blocks "
                   "of at most ",
                   most, " threads on this GPU, got ", schema.threads);
  auto set = [&](int attribute, uint64_t value) {
    int narrow = static_cast<int>(std::min<uint64_t>(value, INT32_MAX));
    return driver.check(driver.functionSet(kernel.function_, attribute, narrow),
                        "cuFuncSetAttribute", kernel.what_);
  };
  if (schema.sharedBytes > 0)
    if (Status s = set(kFunctionDynamicSharedBytes, schema.sharedBytes);
        !s.isOk())
      return failure(s.code(), s.message(), "; ", schema.sharedBytes,
                     " bytes of dynamic shared memory");
  if (schema.cluster > kPortableCluster)
    if (Status s = set(kFunctionNonPortableCluster, 1); !s.isOk())
      return s;

  kernel.module_ = std::move(module);
  kernel.threads_ = schema.threads;
  kernel.sharedBytes_ = static_cast<uint32_t>(schema.sharedBytes);
  kernel.cluster_ = schema.cluster;
  kernel.mostBlocks_ = int64_t{schema.blocksPerSm} * multiprocessors;
  kernel.dependent_ = schema.dependent;
  return kernel;
}

int64_t Kernel::numBlocks(int64_t units) const {
  int64_t blocks = mostBlocks_ > 0 ? std::min(units, mostBlocks_) : units;
  int64_t past = blocks % cluster_;
  return past == 0 ? blocks : blocks + (cluster_ - past);
}

Status Kernel::launch(const int64_t *words, int64_t units, Stream stream,
                      bool dependent) const {
  if (units > INT32_MAX - kPortableCluster * 2)
    return invalid(what_, ": expected at most ",
                   INT32_MAX - kPortableCluster * 2, " units, got ", units);
  LaunchAttribute attributes[2];
  uint32_t numAttributes = 0;
  if (cluster_ > 1) {
    LaunchAttribute &attribute = attributes[numAttributes++];
    attribute = {};
    attribute.id = kClusterDimension;
    attribute.value.cluster = {cluster_, 1, 1};
  }
  if (dependent && dependent_) {
    LaunchAttribute &attribute = attributes[numAttributes++];
    attribute = {};
    attribute.id = kProgrammaticStreamSerialization;
    attribute.value.allowed = 1;
  }
  LaunchConfig config = {};
  config.gridX = static_cast<uint32_t>(numBlocks(units));
  config.gridY = config.gridZ = 1;
  config.blockX = threads_;
  config.blockY = config.blockZ = 1;
  config.sharedBytes = sharedBytes_;
  config.stream = stream;
  config.attributes = attributes;
  config.numAttributes = numAttributes;
  // The driver reads the words during the call.
  void *parameters[] = {const_cast<int64_t *>(words)};
  const Driver &driver = module_->context().driver();
  return driver.check(driver.launch(&config, function_, parameters, nullptr),
                      "cuLaunchKernelEx", what_);
}
