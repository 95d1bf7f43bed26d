// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes images (.gdnk): the manifest comes from the entries of the gdn
// module, the code from the targets that were compiled. Format:
// runtime/schema/image.fbs.
#ifndef GDN_TARGET_IMAGEWRITER_H
#define GDN_TARGET_IMAGEWRITER_H

#include "gdn/Target/CpuCodegen.h"
#include "gdn/Target/KernelInfo.h"

#include <cstdint>
#include <vector>

namespace gdn {

/// How to call the code of one entry.
struct EntryCode {
  std::string entry;                    // name of the gdn function
  std::string symbol;                   // exported by the blob
  llvm::SmallVector<std::string> sizes; // symbols, as the code takes them
  llvm::SmallVector<std::string> grid;  // linear forms; the product is units
  /// Linear forms in pairs: the first is a multiple of the second.
  llvm::SmallVector<std::string, 0> multiples;
  uint64_t scratchBytes = 0;

  // A kernel of a GPU has these, code for a CPU does not.
  std::optional<KernelLaunch> launch = std::nullopt;
  uint64_t words = 0; // of its parameter
  llvm::SmallVector<uint32_t> alignments = {};
  std::optional<KernelResources> resources = std::nullopt; // if ptxas was there
  std::string digest = {}; // of the kernel's PTX
};

/// What a blob holds.
enum class CodeFormat { sharedObject, cubin, ptx };

/// The code of all entries for one target.
struct TargetCode {
  std::string target = "x86-64";           // or a GPU
  llvm::SmallVector<std::string> features; // all of which a device must have
  CodeFormat format = CodeFormat::sharedObject;
  llvm::SmallVector<EntryCode, 0> entries;
  Bytes blob;
};

/// What a lowered module says about its entries: each `llvm.func` with
/// `gdn_tile.grid`, `gdn_tile.symbols`, and `gdn_tile.scratch_bytes` if it
/// needs scratch, or `gdn_gpu.launch` if it is a kernel.
mlir::FailureOr<llvm::SmallVector<EntryCode, 0>>
collectEntryCodes(mlir::ModuleOp lowered);

/// The bytes of an image with the entries of `source` and their codes, of
/// which a device takes the first that it can run; at least one. Fails with an
/// error on the entry that cannot be described or that some target has no code
/// for.
mlir::FailureOr<std::vector<uint8_t>>
buildImage(mlir::ModuleOp source, llvm::ArrayRef<TargetCode> targets);

} // namespace gdn

#endif // GDN_TARGET_IMAGEWRITER_H
