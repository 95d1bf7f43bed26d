// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Facts about the chips that gdn makes code for, asked as capabilities. Nothing
// else in the compiler compares names of chips.
#ifndef GDN_TARGET_TARGETMODEL_H
#define GDN_TARGET_TARGETMODEL_H

#include "gdn/Support/FormCosts.h"
#include "gdn/Target/GpuFacts.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace gdn {

enum class TargetKind { cpu, nvptx };

/// One chip, or a level of chips, that code is made for. A value type.
///
/// Questions about vector registers are for CPUs, those about blocks and
/// instruction families for GPUs; a GPU has no vectors, a CPU has nothing that
/// a GPU is asked for.
class TargetModel {
public:
  /// The target of that name: a level (`x86-64-v3`), a CPU (`sapphirerapids`),
  /// `native` for the CPU this runs on, or a GPU (`sm_90a`).
  static llvm::Expected<TargetModel> get(llvm::StringRef name);

  /// Every name that `get` takes.
  static llvm::SmallVector<llvm::StringRef> knownNames();
  /// The names of GPUs alone.
  static llvm::SmallVector<llvm::StringRef> knownGpuNames();

  llvm::StringRef getName() const { return name; }
  TargetKind getKind() const {
    return gpu ? TargetKind::nvptx : TargetKind::cpu;
  }

  //===--------------------------------------------------------------------===//
  // CPUs
  //===--------------------------------------------------------------------===//

  /// Bits of a vector register.
  unsigned getVectorBits() const { return level == 4 ? 512 : 256; }
  /// f32 values that fill a vector register.
  unsigned getF32Lanes() const { return getVectorBits() / 32; }
  /// What a token and a chunk of the delta rule cost.
  FormCosts getFormCosts() const;
  /// Segments that a long sequence is cut into when workers would idle, and the
  /// mean tokens of a sequence from which that pays:
  /// docs/design/20261121-segments.md.
  int64_t getSequenceSegments() const { return 3; }
  int64_t getSegmentedSequenceTokens() const { return 512; }

  /// Names, as `__builtin_cpu_supports` knows them, of all that a machine must
  /// have to run the code. Empty for a GPU.
  llvm::SmallVector<std::string> getRequiredFeatures() const;

  //===--------------------------------------------------------------------===//
  // GPUs: instructions
  //===--------------------------------------------------------------------===//

  /// mma.sync on bf16 and f16 fragments, with ldmatrix.
  bool hasMmaSync() const { return gpu; }
  /// cp.async: 16 bytes from global to shared memory without registers.
  bool hasCpAsync() const { return gpu; }
  /// stmatrix: fragments to shared memory.
  bool hasStmatrix() const { return gpu && gpu->isHopperOrLater; }
  /// Bulk and tensor copies between global and shared memory, which count bytes
  /// on an mbarrier.
  bool hasTma() const { return gpu && gpu->isHopperOrLater; }
  /// Blocks that start together and see each other's shared memory.
  bool hasClusters() const { return gpu && gpu->isHopperOrLater; }
  /// setmaxnreg: warps hand registers to others.
  bool hasSetMaxRegister() const { return gpu && gpu->isHopperOrLater; }
  /// griddepcontrol: a kernel begins before the one ahead of it has ended.
  bool hasDependentLaunch() const { return gpu && gpu->isHopperOrLater; }
  /// wgmma: products of four warps, operands from shared memory.
  bool hasWgmma() const { return gpu && gpu->hasWgmma; }
  /// tcgen05: products with accumulators in tensor memory.
  bool hasTcgen05() const { return gpu && gpu->hasTcgen05; }
  /// Two f32 operations in one instruction (fma.rn.f32x2).
  bool hasPackedF32() const { return gpu && gpu->isBlackwell; }

  //===--------------------------------------------------------------------===//
  // GPUs: sizes
  //===--------------------------------------------------------------------===//

  /// Most bytes of shared memory of one block, static and dynamic together.
  unsigned getSharedBytesPerBlock() const {
    return gpu ? gpu->sharedBytesPerBlock : 0;
  }
  /// Bytes of shared memory that the blocks on an SM share; each block takes
  /// `getSharedBytesReserved` more than it asks for.
  unsigned getSharedBytesPerSm() const {
    return gpu ? gpu->sharedBytesPerBlock + 1024 : 0;
  }
  unsigned getSharedBytesReserved() const { return gpu ? 1024 : 0; }
  unsigned getMaxThreadsPerBlock() const { return gpu ? 1024 : 0; }
  unsigned getMaxBlocksPerSm() const { return gpu ? gpu->blocksPerSm : 0; }
  /// Blocks of a cluster that every chip of the target takes; 1 without
  /// clusters. How many SMs a chip has is not known ahead of time: launch rules
  /// ask the device.
  unsigned getMaxClusterBlocks() const { return hasClusters() ? 8 : 1; }
  /// SMs of the chip that choices inside of kernels, which ask no device, were
  /// measured on (H100 and H200 with SXM); 0 where none was.
  unsigned getMeasuredSms() const { return gpu && gpu->hasWgmma ? 132 : 0; }

  /// Blocks whose inputs a block of token-wise work prefetches ahead of theirs;
  /// measured on an H200.
  int64_t getBlocksAhead() const { return gpu ? gpufacts::blocksAhead : 0; }

  /// Registers of a thread from which both bytes of numbers are made by
  /// permutations, and numbers of both bytes; with fewer the words that are
  /// spilled for it cost more than the instructions saved. Measured on an H200
  /// (docs/design/20261127-states-in-planes.md); elsewhere the latter spill
  /// with 128, and no thread has 256.
  unsigned getBytesRegisters() const { return 96; }
  unsigned getNumbersRegisters() const {
    return gpu && gpu->hasWgmma ? 128 : 256;
  }

  //===--------------------------------------------------------------------===//
  // Code
  //===--------------------------------------------------------------------===//

  /// What LLVM calls the set of instructions, its options, the chip to schedule
  /// for, and the kind of machine.
  std::string getLlvmCpu() const;
  /// Of a GPU the version of PTX that the code is written in: the newest that
  /// LLVM 22 knows, the same for every GPU. It needs ptxas 13.0, and a driver
  /// of CUDA 13 where the driver assembles it.
  llvm::StringRef getLlvmFeatures() const { return gpu ? "+ptx90" : ""; }
  llvm::StringRef getLlvmTuneCpu() const { return tuneCpu; }
  llvm::StringRef getLlvmTriple() const {
    return gpu ? "nvptx64-nvidia-cuda" : "x86_64-unknown-linux-gnu";
  }
  /// True if PTX for this GPU also runs on later ones: the names with an `a`
  /// hold for one chip alone.
  bool runsOnLaterChips() const { return gpu && !gpu->isExact; }

  /// Sorts before targets that demand less, so that a device which takes the
  /// first code it can run takes the best. CPUs and GPUs are not compared.
  unsigned getRank() const { return gpu ? gpu->capability : level; }

private:
  /// What sets the GPUs of the table apart.
  struct Gpu {
    llvm::StringLiteral name;
    unsigned capability;  // compute capability, times 10
    bool isExact = false; // code for this chip alone
    bool isHopperOrLater = false;
    bool isBlackwell = false;
    bool hasWgmma = false;
    bool hasTcgen05 = false;
    unsigned sharedBytesPerBlock;
    unsigned blocksPerSm;
  };
  static const Gpu gpus[];

  TargetModel(std::string name, unsigned level, std::string tuneCpu)
      : name(std::move(name)), level(level), tuneCpu(std::move(tuneCpu)) {}
  explicit TargetModel(const Gpu &gpu)
      : name(gpu.name), tuneCpu(gpu.name), gpu(&gpu) {}

  std::string name;
  unsigned level = 0; // of the x86-64 psABI, 3 or 4; nothing beyond it is used
  std::string tuneCpu;
  const Gpu *gpu = nullptr; // null for a CPU
};

} // namespace gdn

#endif // GDN_TARGET_TARGETMODEL_H
