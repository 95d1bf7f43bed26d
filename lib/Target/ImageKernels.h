// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The part of an image's manifest that only kernels of a GPU have: launches,
// resources, alignments, digests.
#ifndef GDN_LIB_TARGET_IMAGEKERNELS_H
#define GDN_LIB_TARGET_IMAGEKERNELS_H

#include "gdn/Target/ImageWriter.h"
#include "gdnrt/image_generated.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gdn {

/// Adds what the kernel says about itself to `stage`, and its demands on the
/// entry's parameters to `alignments`, of which the strongest stays.
mlir::LogicalResult readKernel(mlir::LLVM::LLVMFuncOp kernel, StageCode &stage,
                               llvm::SmallVector<uint32_t, 0> &alignments);

/// Puts launch and resources of a stage of `entry` into the manifest. Fails
/// with an error on the function if the kernel's words are not those of the
/// entry, of `regions` of a workspace, and two more.
mlir::LogicalResult encodeKernel(mlir::func::FuncOp func,
                                 const StageCode &stage, size_t regions,
                                 const gdnrt::fb::EntryT &entry,
                                 gdnrt::fb::StageT &encoded);

/// Puts the alignments of the code's kernels into the manifest.
mlir::LogicalResult encodeAlignments(mlir::func::FuncOp func,
                                     const EntryCode &code,
                                     const gdnrt::fb::EntryT &entry,
                                     gdnrt::fb::CodeT &encoded);

/// Puts what a variant asks of the entry's parameters into the manifest.
mlir::LogicalResult encodeLayouts(mlir::func::FuncOp func,
                                  const VariantCode &variant,
                                  const gdnrt::fb::EntryT &entry,
                                  gdnrt::fb::VariantT &encoded);

/// Adds the attribute `gdn.digest.<target>` to the entry, once.
void addDigest(const TargetCode &target, const EntryCode &code,
               gdnrt::fb::EntryT &entry);

/// The forms of `what`, over `symbols`.
mlir::LogicalResult
encodeForms(mlir::func::FuncOp func, llvm::StringRef what,
            llvm::ArrayRef<std::string> forms,
            llvm::ArrayRef<std::string> symbols,
            std::vector<std::unique_ptr<gdnrt::fb::LinearFormT>> &encoded);

} // namespace gdn

#endif // GDN_LIB_TARGET_IMAGEKERNELS_H
