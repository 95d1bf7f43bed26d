// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes images (.gdnk): the manifest comes from the entries of the gdn
// module, the code from the targets that were compiled. Format:
// runtime/schema/image.fbs.
#ifndef GDN_TARGET_IMAGEWRITER_H
#define GDN_TARGET_IMAGEWRITER_H

#include "gdn/Support/Conditions.h"
#include "gdn/Target/CpuCodegen.h"
#include "gdn/Target/KernelInfo.h"

#include <cstdint>
#include <vector>

namespace gdn {

/// Factors of a product, linear forms as text.
using FormProduct = llvm::SmallVector<std::string, 0>;

/// One pass of a variant over its grid.
struct StageCode {
  std::string symbol; // exported by the blob
  FormProduct grid;   // the product is units
  uint64_t scratchBytes = 0;

  // A kernel of a GPU has these, code for a CPU does not.
  std::optional<KernelLaunch> launch = std::nullopt;
  uint64_t words = 0;                                      // of its parameter
  std::optional<KernelResources> resources = std::nullopt; // if ptxas was there
  std::string kernel = {}; // its own name; another one may have its code
};

/// One way to do the work of an entry; see runtime/schema/image.fbs.
struct VariantCode {
  std::string name;
  llvm::SmallVector<StageCode, 0> stages;
  llvm::SmallVector<FormProduct, 0> workspace; // bytes of each region
  /// When a device takes it: over the symbols and "workers".
  Conditions conditions;
  /// When a batch-invariant launch takes it: if all of one of them holds. None:
  /// it is not for such launches.
  llvm::SmallVector<llvm::SmallVector<Inequality>> anyBatch = {};
  /// What it asks of each parameter of the entry, or none.
  llvm::SmallVector<KernelLayout, 0> layouts = {};
  /// Variants with the same text give a row the same bits: by default those of
  /// the one-pass program.
  std::string bits = "rows";
};

/// How to call the code of one entry.
struct EntryCode {
  std::string entry;                       // name of the gdn function
  llvm::SmallVector<std::string, 0> sizes; // symbols, as the code takes them
  /// Linear forms in pairs: the first is a multiple of the second.
  llvm::SmallVector<std::string, 0> multiples;
  /// In order of preference; the last has no conditions, and for a CPU no
  /// workspace.
  llvm::SmallVector<VariantCode, 0> variants;
  /// What the lowering decided: facts for people and tools, by name.
  llvm::SmallVector<std::pair<std::string, std::string>, 0> facts = {};
  /// What kernels demand: bytes, one per parameter of the entry, or none.
  llvm::SmallVector<uint32_t, 0> alignments = {};

  /// Identifies the kernels that the compiler asked for, also those that ptxas
  /// makes the entry do without. Empty for a CPU.
  std::string digest = {};
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
/// a grid in `gdn_tile.stage`, and `gdn_gpu.launch` if it is a kernel. With
/// `stage_of` it is a stage of the variant `variant` of that entry, or of
/// several, in the order in which they are preferred; else the entry's variant
/// "rows".
mlir::FailureOr<llvm::SmallVector<EntryCode, 0>>
collectEntryCodes(mlir::ModuleOp lowered);

/// The bytes of an image with the entries of `source` and their codes, of
/// which a device takes the first that it can run; at least one. An entry may
/// lack code for some targets; one without any is left out, with a remark.
/// Fails with an error on the entry that cannot be described.
mlir::FailureOr<std::vector<uint8_t>>
buildImage(mlir::ModuleOp source, llvm::ArrayRef<TargetCode> targets);

} // namespace gdn

#endif // GDN_TARGET_IMAGEWRITER_H
