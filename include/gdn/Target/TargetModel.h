// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Facts about the chips that gdn makes code for, asked as capabilities. Nothing
// else in the compiler compares names of chips.
#ifndef GDN_TARGET_TARGETMODEL_H
#define GDN_TARGET_TARGETMODEL_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace gdn {

enum class TargetKind { cpu, nvptx };

/// One chip, or a level of chips, that code is made for. A value type.
class TargetModel {
public:
  /// The target of that name: a level (`x86-64-v3`), a CPU (`sapphirerapids`),
  /// or `native` for the machine this runs on.
  static llvm::Expected<TargetModel> get(llvm::StringRef name);

  /// Every name that `get` takes.
  static llvm::SmallVector<llvm::StringRef> knownNames();

  llvm::StringRef getName() const { return name; }
  TargetKind getKind() const { return TargetKind::cpu; }

  /// Bits of a vector register.
  unsigned getVectorBits() const { return level == 4 ? 512 : 256; }
  /// f32 values that fill a vector register.
  unsigned getF32Lanes() const { return getVectorBits() / 32; }
  /// Number of vector registers.
  unsigned getVectorRegisters() const { return level == 4 ? 32 : 16; }
  /// Segments that a long row is cut into when workers would idle, and the mean
  /// tokens of a row from which that pays: docs/design/20261121-segments.md.
  int64_t getRowSegments() const { return 3; }
  int64_t getSegmentedRowTokens() const { return 512; }
  /// True if a multiplication and an addition take one instruction and one
  /// rounding. Without it every llvm.fma is a call of a library, so that the
  /// table has no such CPU.
  bool hasFma() const { return true; }
  /// True if f16 and f32 convert to each other in instructions; as above.
  bool hasF16Conversion() const { return true; }

  /// What LLVM calls the set of instructions, and the chip to schedule for.
  std::string getLlvmCpu() const;
  llvm::StringRef getLlvmTuneCpu() const { return tuneCpu; }
  llvm::StringRef getLlvmTriple() const { return "x86_64-unknown-linux-gnu"; }

  /// Names, as `__builtin_cpu_supports` knows them, of all that a machine must
  /// have to run the code.
  llvm::SmallVector<std::string> getRequiredFeatures() const;

  /// Sorts before targets that demand less, so that a device which takes the
  /// first code it can run takes the best.
  unsigned getRank() const { return level; }

private:
  TargetModel(std::string name, unsigned level, std::string tuneCpu)
      : name(std::move(name)), level(level), tuneCpu(std::move(tuneCpu)) {}

  std::string name;
  unsigned level; // of the x86-64 psABI, 3 or 4; nothing beyond it is used
  std::string tuneCpu;
};

} // namespace gdn

#endif // GDN_TARGET_TARGETMODEL_H
