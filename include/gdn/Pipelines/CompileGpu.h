// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the GPU pipeline on a gdn module, up to any level, and makes code of the
// kernels.
#ifndef GDN_PIPELINES_COMPILEGPU_H
#define GDN_PIPELINES_COMPILEGPU_H

#include "gdn/Pipelines/CompileCpu.h"
#include "gdn/Pipelines/GpuPipeline.h"
#include "gdn/Target/Ptxas.h"

namespace gdn {

/// Levels below gdn that a module passes through on its way to a GPU.
enum class GpuLevel { gpu, nvvm };

/// How kernels are made.
struct GpuCompileOptions {
  GpuPipelineOptions pipeline;
  /// The assembler; without one, images carry PTX.
  std::optional<Ptxas> ptxas;
  /// False: a caller of digests alone, for whom nothing has to be assembled.
  bool needsCubin = true;
  /// An entry without code is an error, not a warning.
  bool needsAllEntries = false;
  /// Where compilations and their parts are kept, or null.
  const ContentCache *cache = nullptr;
};

/// The kernels of a module for one target.
struct GpuCode {
  llvm::SmallVector<EntryCode, 0>
      entries; // with digests, resources if assembled
  std::string ptx;
  std::optional<Cubin> cubin; // if there was an assembler
};

/// A copy of `source`, which stays as it is, lowered to `level`. A module that
/// has kernels already passes through. Warns of each entry for which there is
/// no kernel.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
lowerForGpu(mlir::ModuleOp source, const TargetModel &target, GpuLevel level,
            const GpuPipelineOptions &options, ConfigurePasses configure);

/// The code of all kernels of `source` for `target`; with a cache, what the
/// same compiler made of the same source. Fails also if a kernel spills
/// registers; see `checkReport`.
mlir::FailureOr<GpuCode> compileForGpu(mlir::ModuleOp source,
                                       const TargetModel &target,
                                       const GpuCompileOptions &options,
                                       ConfigurePasses configure);

/// The same as the codes of an image: a cubin, and PTX if it can run on later
/// chips or there is no assembler (which is a remark on `source`).
mlir::FailureOr<llvm::SmallVector<TargetCode, 0>>
makeGpuTargetCodes(mlir::ModuleOp source, const TargetModel &target,
                   const GpuCompileOptions &options, ConfigurePasses configure);

/// A table of kernels for people, one row each: what they take and how they are
/// launched. Sizes in bytes; a dash where no assembler was there to ask.
class KernelTable {
public:
  KernelTable();
  void add(const TargetModel &target, const GpuCode &code);
  std::string print() const;

private:
  std::vector<std::vector<std::string>> rows;
};

/// The machine code of `cubin` as text. Fails if nvdisasm is not installed.
llvm::Expected<std::string> disassemble(llvm::StringRef cubin);

} // namespace gdn

#endif // GDN_PIPELINES_COMPILEGPU_H
