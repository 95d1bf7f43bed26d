// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a tool needs that has LLVM inside. lld initialises every target of LLVM:
// those that gdn has no kernels for do nothing here, and their code stays out.
// Its link-time optimiser asks for Polly. libstdc++ calls a function that glibc
// has since 2.36; with one of our own, older systems will do.
#include "llvm/Plugins/PassPlugin.h"

#include <cstdint>
#include <cstdlib>
#include <sys/random.h>

// The targets of Debian's LLVM but X86 and NVPTX. One that is missing here is
// linked in, and works.
#define OTHER_TARGETS(X)                                                       \
  X(AArch64)                                                                   \
  X(AMDGPU)                                                                    \
  X(ARM)                                                                       \
  X(AVR)                                                                       \
  X(BPF)                                                                       \
  X(Hexagon)                                                                   \
  X(Lanai)                                                                     \
  X(LoongArch)                                                                 \
  X(M68k)                                                                      \
  X(MSP430)                                                                    \
  X(Mips)                                                                      \
  X(PowerPC)                                                                   \
  X(RISCV)                                                                     \
  X(SPIRV)                                                                     \
  X(Sparc)                                                                     \
  X(SystemZ)                                                                   \
  X(VE)                                                                        \
  X(WebAssembly)                                                               \
  X(XCore)                                                                     \
  X(Xtensa)

#define DO_NOTHING(name)                                                       \
  extern "C" void LLVMInitialize##name##TargetInfo() {}                        \
  extern "C" void LLVMInitialize##name##Target() {}                            \
  extern "C" void LLVMInitialize##name##TargetMC() {}                          \
  extern "C" void LLVMInitialize##name##AsmParser() {}                         \
  extern "C" void LLVMInitialize##name##AsmPrinter() {}
OTHER_TARGETS(DO_NOTHING)

llvm::PassPluginLibraryInfo getPollyPluginInfo() { return {}; }

extern "C" uint32_t arc4random() {
  uint32_t number = 0;
  if (getrandom(&number, sizeof(number), 0) != ssize_t(sizeof(number)))
    abort();
  return number;
}
