// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NVIDIA's assembler: PTX to the code of one chip, and what it says about
// every kernel.
#ifndef GDN_TARGET_PTXAS_H
#define GDN_TARGET_PTXAS_H

#include "gdn/Support/ContentCache.h"
#include "gdn/Target/KernelInfo.h"
#include "gdn/Target/TargetModel.h"

#include "llvm/ADT/StringMap.h"

namespace gdn {

/// Something ptxas warns of.
struct PtxasWarning {
  std::string kernel; // empty if it names none
  std::string code;   // "C7510", or empty
  std::string text;   // the line, without "ptxas"
};

/// What `ptxas -v` printed.
struct PtxasReport {
  llvm::StringMap<KernelResources> kernels; // `code` is not part of it
  std::vector<PtxasWarning> warnings;
};

/// Reads the output of `ptxas -v`. Lines that it does not know are passed over;
/// fails on a line that it does know and whose numbers are missing.
llvm::Expected<PtxasReport> parsePtxasOutput(llvm::StringRef output);

/// Code of one chip.
struct Cubin {
  std::string bytes; // an ELF file
  std::string said;  // what `report` was read from
  PtxasReport report;
};

/// Reads what ptxas said and the sizes in the ELF file. Fails if a kernel of
/// the code has no report.
llvm::Expected<Cubin> makeCubin(std::string bytes, std::string said);

/// An installed ptxas.
class Ptxas {
public:
  /// Asks the program at `path` for its version. Fails if it does not say one
  /// or is older than 13.0, the first that knows our version of PTX.
  static llvm::Expected<Ptxas> open(llvm::StringRef path);

  const std::string &getPath() const { return path; }
  /// "13.0.88".
  const std::string &getVersion() const { return version; }
  /// Version and size of the program's file, for keys of caches.
  std::string getIdentity() const;

  /// Assembles `ptx` for `target`. Fails with the lines that ptxas calls
  /// errors, after `seconds`, or when a kernel of the code has no report. With
  /// a cache, what this version made of the same PTX is taken from there.
  /// Locations in the PTX (`.loc`) become ones of the code.
  llvm::Expected<Cubin> assemble(llvm::StringRef ptx, const TargetModel &target,
                                 const ContentCache *cache = nullptr,
                                 unsigned seconds = 300) const;

private:
  Ptxas(std::string path, std::string version)
      : path(std::move(path)), version(std::move(version)) {}
  std::string path, version;
};

/// For how many blocks per SM the kernel asks to have registers
/// (`nvvm.minctasm`); null if it does not say.
mlir::IntegerAttr getBlocksPerSm(mlir::LLVM::LLVMFuncOp kernel);

/// Whether a kernel asks for a number of blocks per SM that takeFewerBlocks may
/// change.
bool mayTakeFewerBlocks(mlir::LLVM::LLVMFuncOp kernel);

/// Gives those kernels of `module` that spill, and whose blocks may be fewer
/// (`gdn_gpu.fewer_blocks`), the registers of an eighth less per SM, or of one
/// less, with a remark. The result is these kernels: they have to be assembled
/// again, with `nvvm.minctasm` as it is now.
llvm::SmallVector<mlir::LLVM::LLVMFuncOp>
takeFewerBlocks(mlir::ModuleOp module, const PtxasReport &report,
                const TargetModel &target);

/// Takes away those variants of entries that have a kernel which checkReport
/// refuses, and their kernels, with a warning: calls then take another variant.
/// Only where a variant for all calls is left, without a workspace if there was
/// one. True if there was one: the
/// module has to be assembled again.
bool leaveOutVariants(mlir::ModuleOp module, const PtxasReport &report,
                      const TargetModel &target);

/// Fails with an error on each kernel of `module` that spills registers or of
/// which ptxas warns by a number C75xx, unless `gdn_gpu.allow` says why.
mlir::LogicalResult checkReport(mlir::ModuleOp module,
                                const PtxasReport &report,
                                const TargetModel &target);

} // namespace gdn

#endif // GDN_TARGET_PTXAS_H
