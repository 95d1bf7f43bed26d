// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is known about a GPU kernel besides its code: how it is launched, which
// its function's attributes say, and what it takes, which ptxas says.
#ifndef GDN_TARGET_KERNELINFO_H
#define GDN_TARGET_KERNELINFO_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <cstdint>
#include <optional>
#include <string>

namespace gdn {

/// A tensor map of a kernel: of an argument or of a region of the workspace.
struct KernelTensorMap {
  int32_t param = -1, region = -1; // one of them
  /// Of a region, in elements: linear forms.
  llvm::SmallVector<std::string> sizes;
  /// The dimension of which a box has `rows`.
  uint32_t rowsDim = 0, rows = 0;
  uint32_t pieces = 0; // of 64 columns; 0: all
};

/// What a call promises of an argument of a kernel.
struct KernelLayout {
  /// Bytes that divide the address and the strides that are open; 0: none.
  uint32_t alignment = 0;
  /// Of each dimension, in elements; 0: open. None: all are.
  llvm::SmallVector<int64_t> strides;

  bool operator==(const KernelLayout &other) const {
    return alignment == other.alignment && strides == other.strides;
  }
};

/// How a kernel is launched: the attribute `gdn_gpu.launch`.
struct KernelLaunch {
  uint32_t threads = 0;     // of a block
  uint64_t sharedBytes = 0; // dynamic, of a block
  uint32_t cluster = 1;     // blocks
  /// 0: a block per unit; k > 0: min(units, k * SMs) blocks.
  uint32_t blocksPerSm = 0;
  /// Executes griddepcontrol.wait before it touches memory that the kernel
  /// ahead of it may write.
  bool dependent = false;
  /// Linear forms; their product is the number of zeroed u32 counters.
  llvm::SmallVector<std::string> counters;
  /// Behind the words of its parameter, at a multiple of 64 bytes.
  llvm::SmallVector<KernelTensorMap> tensorMaps;
};

/// What ptxas says about a kernel. Sizes in bytes.
struct KernelResources {
  uint32_t registers = 0; // of a thread
  uint32_t staticShared = 0;
  uint32_t stack = 0;
  uint32_t spillStores = 0;
  uint32_t spillLoads = 0;
  uint32_t code = 0;
};

/// True for a function that is launched on a GPU.
bool isKernel(mlir::LLVM::LLVMFuncOp func);

/// Reads `gdn_gpu.launch`:
///   {threads = 256 : i32, shared_bytes = 0 : i64, cluster = 1 : i32,
///    blocks_per_sm = 0 : i32, dependent = false, counters = ["2*N", "Hk"],
///    tensor_maps = [{param = 1, rows_dim = 0, rows = 64},
///             {region = 0, sizes = ["T", "64"], rows_dim = 0, rows = 64}]}
/// of which only `threads` has to be there; counters may also be one string
/// that is a product of numbers and symbols, "2*N*Hk". Fails with an error on
/// the function.
mlir::FailureOr<KernelLaunch> readLaunch(mlir::LLVM::LLVMFuncOp kernel);

/// The 64-bit words of the kernel's parameter. Fails with an error on the
/// function unless it takes one by-value array of i64 in constant memory.
mlir::FailureOr<uint64_t> readParameterWords(mlir::LLVM::LLVMFuncOp kernel);

/// Whether that array begins at a multiple of 64 bytes, as tensor maps behind
/// it want.
bool hasAlignedParameter(mlir::LLVM::LLVMFuncOp kernel);

/// Reads `gdn_gpu.alignments`, an array<i64> of bytes, one per parameter of the
/// entry; empty without it. Fails with an error on the function.
mlir::FailureOr<llvm::SmallVector<uint32_t>>
readAlignments(mlir::LLVM::LLVMFuncOp kernel);

/// Reads `gdn_gpu.layouts`, an array of an array<i64> for each parameter of the
/// entry, its alignment and its strides: [array<i64: 16, 0, 1>, array<i64: 0>].
/// Calls that do not promise this take another variant. Empty without it. Fails
/// with an error on the function.
mlir::FailureOr<llvm::SmallVector<KernelLayout, 0>>
readLayouts(mlir::LLVM::LLVMFuncOp kernel);

/// The measured reason for which the kernel may have `what`: "spills" or the
/// number of a warning, "C7510". From `gdn_gpu.allow`, a string
/// "<what>: <reason>" or an array of such. None without it.
std::optional<std::string> readAllowance(mlir::LLVM::LLVMFuncOp kernel,
                                         llvm::StringRef what);

/// True if the kernel may store or load so many bytes of spilled registers:
/// none, or as `gdn_gpu.allow` says under "spills" or "spills up to <n> bytes".
bool allowsSpills(mlir::LLVM::LLVMFuncOp kernel, uint64_t bytes);

} // namespace gdn

#endif // GDN_TARGET_KERNELINFO_H
