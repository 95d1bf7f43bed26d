// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads cubins and PTX. What the driver's assembler says goes into messages.

#include "gdnrt/cuda_kernel.h"

using namespace gdnrt;
using namespace gdnrt::cuda;

/// Trims what the assembler wrote into one line for a message.
static std::string inOneLine(std::string log) {
  log.resize(log.find_last_not_of(" \n\t") + 1);
  for (size_t at = 0; (at = log.find('\n', at)) != std::string::npos; at += 2)
    log.replace(at, 1, "; ");
  return log;
}

::gdnrt::Result<std::shared_ptr<LoadedModule>>
LoadedModule::load(std::shared_ptr<const DeviceContext> context,
                   const ImageContents::Blob &blob, CodeFormat format,
                   const std::string &what) {
  const Driver &driver = context->driver();
  Module module = nullptr;
  if (format == CodeFormat::cubin) {
    if (Status s = driver.check(
            driver.moduleLoad(&module, blob.data, 0, nullptr, nullptr),
            "cuModuleLoadDataEx", what);
        !s.isOk())
      return s;
    return std::make_shared<LoadedModule>(std::move(context), module);
  }
  // The driver takes PTX as a C string, and a blob need not end with a 0.
  std::string text(reinterpret_cast<const char *>(blob.data), blob.size);
  constexpr size_t kLogBytes = 8192;
  std::string info(kLogBytes, '\0'), errors(kLogBytes, '\0');
  int options[] = {kJitInfoLog, kJitInfoLogBytes, kJitErrorLog,
                   kJitErrorLogBytes};
  // The driver takes sizes in the place of pointers.
  auto asPointer = [](size_t value) { return reinterpret_cast<void *>(value); };
  void *values[] = {info.data(), asPointer(kLogBytes), errors.data(),
                    asPointer(kLogBytes)};
  cuda::Result result =
      driver.moduleLoad(&module, text.c_str(), 4, options, values);
  Status s = driver.check(result, "cuModuleLoadDataEx", what);
  if (s.isOk())
    return std::make_shared<LoadedModule>(std::move(context), module);
  std::string log = inOneLine(errors.c_str());
  if (log.empty())
    log = inOneLine(info.c_str());
  if (log.empty())
    return s;
  return failure(s.code(), s.message(), ": ", log);
}

LoadedModule::~LoadedModule() {
  // At the end of the process this fails, and nothing is left to unload.
  CurrentContext current(*context_);
  // Another thread may be capturing a graph.
  RelaxedCapture relaxed(context_->driver());
  if (current.status().isOk())
    context_->driver().moduleUnload(module_);
}
