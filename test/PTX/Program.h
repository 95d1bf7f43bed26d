// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A PTX module, read and decoded: kernels as lists of instructions whose
// operands are indices into the values of a warp. Registers, special
// registers, constants and addresses of symbols are all values, so that an
// instruction need not ask what its operands are.

#ifndef GDN_TEST_PTX_PROGRAM_H
#define GDN_TEST_PTX_PROGRAM_H

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace ptx {

constexpr int kLanes = 32;
/// One value: the bits of each lane, zero-extended.
using Lanes = std::array<uint64_t, kLanes>;
/// A set of lanes.
using Mask = uint32_t;
constexpr Mask kAllLanes = ~Mask(0);

/// What a program or its text did wrong.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What the scheduler does after an instruction.
enum class Step {
  next,    ///< go on
  jumped,  ///< the instruction's lanes are at `Instruction::target` now
  placed,  ///< the instruction has set the places of its lanes itself
  waits,   ///< again, once other lanes of the warp have come here
  barrier, ///< go on once the barrier of the block opens
  yields,  ///< go on, but let others run first: a wait that was in vain
  again    ///< the same once more, after others have run
};

struct Operand {
  /// Index among the values of a warp; -1 for `_`.
  int value = -1;
  /// Of an address: bytes to add to it.
  int64_t offset = 0;
};

struct Warp;
struct Instruction;
using Execute = Step (*)(Warp &, const Instruction &, Mask);

/// Of an instruction that changes nothing here, such as a hint.
inline Step nothing(Warp &, const Instruction &, Mask) { return Step::next; }

/// What an instruction was made of, as .loc says: a file, by its number, and a
/// line from 1; 0: nobody knows.
struct Origin {
  int file = 0, line = 0;
};

struct Instruction {
  Execute execute = nullptr;
  /// A predicate that a lane needs to take part, or -1.
  int guard = -1;
  bool isGuardNegated = false;
  /// Operands in their order, vectors and addresses taken apart.
  std::vector<Operand> operands;
  /// How many operands each one of the text has become.
  std::vector<int> groups;
  /// How many of them, the first, are results; set by analyze().
  unsigned numResults = 0;
  /// Of branches: the next instruction; of brx.idx: one per index.
  int target = -1;
  std::vector<int> targets;
  /// Lanes at the least one go on where those of a warp are apart; set by
  /// setTurns().
  int turn = 0;
  /// What an instruction's decoder keeps: a count, a shape.
  int64_t detail = 0;
  /// Whether it is a product of warpgroups, which takes sums that are under
  /// way.
  bool isProduct = false;
  /// Whether it gives a value another name, and nothing else.
  bool isMove = false;
  /// The line of the module's text, from 1, and the opcode.
  int line = 0;
  /// How many others are before it in that line.
  int part = 0;
  std::string opcode;
  Origin origin;
};

/// Paths by the numbers that .file gives them.
using Files = std::map<int, std::string>;

struct Parameter {
  std::string name;
  size_t offset = 0, bytes = 0, align = 1;
};

/// Registers that the hardware sets, in the order of the first values.
enum Special {
  kTidX,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kLaneid,
  kWarpid,
  kSmid,
  kLanemaskEq,
  kLanemaskLt,
  kLanemaskLe,
  kLanemaskGt,
  kLanemaskGe,
  kClusterCtaRank,
  kClusterNctaRank,
  kClusterIdX,
  kNclusterIdX,
  kClusterCtaIdX,
  kClusterNctaIdX,
  kDynamicSmemSize,
  kNumSpecials
};

struct Kernel {
  std::string name;
  std::vector<Parameter> parameters;
  size_t parameterBytes = 0;
  std::vector<Instruction> code;
  /// Values: specials, then registers and constants as they came.
  int numValues = kNumSpecials;
  /// Values that never change: index and bits.
  std::vector<std::pair<int, uint64_t>> constants;
  /// Addresses in shared memory among them.
  std::vector<std::pair<int, uint64_t>> sharedSymbols;
  /// Shared memory with a size; what has none begins after it.
  size_t staticSharedBytes = 0;
  size_t localBytes = 0;
  /// Threads that the kernel wants; 0: any.
  uint32_t requiredThreads = 0;
  /// The module's.
  std::shared_ptr<const Files> files;
  /// Lines of loads whose values atomics depend on, in order.
  std::vector<int> usedByAtomics;
  /// Whether it has products of warpgroups.
  bool hasProducts = false;
};

struct Program {
  std::string target;
  std::vector<std::unique_ptr<Kernel>> kernels;
};

/// Where the shared memory of a block begins in its address space: as on
/// Hopper, behind a kilobyte that the system keeps.
constexpr uint64_t kSharedBase = 1024;
/// From this bit on an address in shared memory has the rank of the block in
/// its cluster, also where a block names its own: as on Hopper.
constexpr int kSharedRankBit = 24;
/// Generic addresses of shared and of local memory and of parameters.
constexpr uint64_t kSharedWindow = uint64_t(0x7f01) << 48;
constexpr uint64_t kLocalWindow = uint64_t(0x7f02) << 48;
constexpr uint64_t kParameterWindow = uint64_t(0x7f03) << 48;

/// "gdn_gpu.store (decode.gpu.mlir:12)", without the op if the file cannot be
/// read; empty if nobody knows.
std::string nameOrigin(const Kernel &kernel, const Instruction &instruction);
/// "PTX line 12: st.shared.b32, from ", and that.
std::string describe(const Kernel &kernel, const Instruction &instruction);

/// Finds out what else a kernel has of its instructions, once all are there.
void analyze(Kernel &kernel);
void setTurns(Kernel &kernel);

/// Reads a module; throws a Fault that names the line.
std::unique_ptr<Program> readProgram(const std::string &text);

/// The function of an opcode, taken apart at its dots; null if nobody knows
/// it. May set fields of `instruction`.
Execute findOpcode(const std::vector<std::string> &parts,
                   Instruction &instruction);

} // namespace ptx

#endif // GDN_TEST_PTX_PROGRAM_H
