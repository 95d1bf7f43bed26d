// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Modules that are loaded into a CUDA context, and their kernels.

#ifndef GDNRT_CUDA_KERNEL_H
#define GDNRT_CUDA_KERNEL_H

#include "gdnrt/cuda_driver.h"
#include "gdnrt/entry_schema.h"
#include "gdnrt/image.h"
#include "gdnrt/tensor_map_encoder.h"

#include <memory>
#include <string>

namespace gdnrt::cuda {

/// A blob of an image that is loaded into a context. Unloaded with its last
/// user.
class LoadedModule {
public:
  /// Loads a cubin, or PTX, which the driver then assembles. Error messages
  /// begin with `what` and end with the log of the assembler.
  static ::gdnrt::Result<std::shared_ptr<LoadedModule>>
  load(std::shared_ptr<const DeviceContext> context,
       const ImageContents::Blob &blob, CodeFormat format,
       const std::string &what);
  LoadedModule(std::shared_ptr<const DeviceContext> context, Module module)
      : context_(std::move(context)), module_(module) {}
  ~LoadedModule();
  LoadedModule(const LoadedModule &) = delete;
  LoadedModule &operator=(const LoadedModule &) = delete;

  const DeviceContext &context() const { return *context_; }
  Module handle() const { return module_; }

private:
  std::shared_ptr<const DeviceContext> context_;
  Module module_;
};

/// The words of a launch are passed by value. Every GPU takes 4 KiB.
constexpr size_t kMostWords = 4096 / sizeof(int64_t);

/// The words after those of a binding: the address of the workspace and the
/// number of units.
constexpr size_t kExtraWords = 2;

/// The index of the first word of the tensor maps, which follow `numWords`
/// words.
constexpr size_t firstMapWord(size_t numWords) {
  return (numWords + kMapAlignmentWords - 1) / kMapAlignmentWords *
         kMapAlignmentWords;
}

/// A kernel that is ready for launches.
class Kernel {
public:
  /// Finds `symbol` and prepares it for launches with the parameters of
  /// `schema`. A launch passes `numWords` words and the tensor maps of the
  /// kernel. `what` names the entry in messages. The context is current.
  static ::gdnrt::Result<Kernel> make(std::shared_ptr<LoadedModule> module,
                                      const std::string &symbol,
                                      const LaunchSchema &schema,
                                      size_t numWords, int multiprocessors,
                                      const std::string &what);

  /// Launches `units` units, 1 or more. With `dependent` the kernel may begin
  /// before the previous kernel has ended, if its schema allows that.
  Status launch(const int64_t *words, int64_t units, Stream stream,
                bool dependent) const;

  /// The number of blocks of a launch of `units` units.
  int64_t numBlocks(int64_t units) const;

private:
  Kernel() = default;

  std::shared_ptr<LoadedModule> module_;
  Function function_ = nullptr;
  uint32_t threads_ = 0, sharedBytes_ = 0, cluster_ = 1;
  /// The maximum number of blocks. 0 means one block per unit.
  int64_t mostBlocks_ = 0;
  bool dependent_ = false;
  /// The entry and the symbol, for messages.
  std::string what_;
};

} // namespace gdnrt::cuda

#endif // GDNRT_CUDA_KERNEL_H
