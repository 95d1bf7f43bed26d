// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Keys of generated code; see CodegenKey.h.
#include "CodegenKey.h"

#include "llvm/Bitcode/BitcodeWriter.h"

using namespace gdn;

ContentKey gdn::keyOfCodegen(llvm::StringRef kind, const llvm::Module &ir,
                             const TargetModel &target) {
  llvm::SmallString<0> bitcode;
  llvm::raw_svector_ostream stream(bitcode);
  llvm::WriteBitcodeToFile(ir, stream, /*ShouldPreserveUseListOrder=*/true);
  ContentKey key(kind);
  // The hash of the sources is made by CMake.
  key.add(GDN_CODEGEN_SOURCES).add(identityOfLlvm());
  key.add(target.getName()).add(target.getLlvmCpu());
  key.add(target.getLlvmTuneCpu()).add(target.getLlvmFeatures());
  return key.add(bitcode);
}
