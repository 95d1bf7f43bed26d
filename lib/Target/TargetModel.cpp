// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of targets, and detection of the machine this runs on.
#include "gdn/Target/TargetModel.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/TargetParser/Host.h"

using namespace gdn;

namespace {
/// A CPU is the level that it reaches, scheduled for that chip.
struct KnownTarget {
  llvm::StringLiteral name;
  unsigned level;
  llvm::StringLiteral tuneCpu;
};
} // namespace

static constexpr KnownTarget knownTargets[] = {
    {"x86-64-v3", 3, "generic"},
    {"x86-64-v4", 4, "generic"},
    {"haswell", 3, "haswell"},
    {"skylake", 3, "skylake"},
    {"alderlake", 3, "alderlake"},
    {"znver2", 3, "znver2"},
    {"znver3", 3, "znver3"},
    {"skylake-avx512", 4, "skylake-avx512"},
    {"cascadelake", 4, "cascadelake"},
    {"icelake-server", 4, "icelake-server"},
    {"sapphirerapids", 4, "sapphirerapids"},
    {"graniterapids", 4, "graniterapids"},
    {"znver4", 4, "znver4"},
    {"znver5", 4, "znver5"},
};

// Shared memory, threads and blocks: the tables of compute capabilities in the
// CUDA C++ programming guide. Instructions: the PTX manual; a unit test asks
// ptxas. sm_103a does have tcgen05, but LLVM 22's verifier refuses it there.
const TargetModel::Gpu TargetModel::gpus[] = {
    {.name = "sm_80",
     .capability = 80,
     .sharedBytesPerBlock = 163 * 1024,
     .blocksPerSm = 32},
    {.name = "sm_86",
     .capability = 86,
     .sharedBytesPerBlock = 99 * 1024,
     .blocksPerSm = 16},
    {.name = "sm_89",
     .capability = 89,
     .sharedBytesPerBlock = 99 * 1024,
     .blocksPerSm = 24},
    {.name = "sm_90a",
     .capability = 90,
     .isExact = true,
     .isHopperOrLater = true,
     .hasWgmma = true,
     .sharedBytesPerBlock = 227 * 1024,
     .blocksPerSm = 32},
    {.name = "sm_100a",
     .capability = 100,
     .isExact = true,
     .isHopperOrLater = true,
     .isBlackwell = true,
     .hasTcgen05 = true,
     .sharedBytesPerBlock = 227 * 1024,
     .blocksPerSm = 32},
    {.name = "sm_103a",
     .capability = 103,
     .isExact = true,
     .isHopperOrLater = true,
     .isBlackwell = true,
     .sharedBytesPerBlock = 227 * 1024,
     .blocksPerSm = 32},
    {.name = "sm_120a",
     .capability = 120,
     .isExact = true,
     .isHopperOrLater = true,
     .isBlackwell = true,
     .sharedBytesPerBlock = 99 * 1024,
     .blocksPerSm = 24},
};

// What the psABI's levels add, by LLVM's names.
static constexpr llvm::StringLiteral level3[] = {
    "cx16", "popcnt", "sse3", "ssse3", "sse4.1", "sse4.2", "avx",
    "avx2", "bmi",    "bmi2", "f16c",  "fma",    "lzcnt",  "movbe"};
static constexpr llvm::StringLiteral level4[] = {
    "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"};

/// The highest level of this machine; 0 if it is below level 3.
static unsigned detectLevel() {
  auto features = llvm::sys::getHostCPUFeatures();
  auto hasAll = [&](llvm::ArrayRef<llvm::StringLiteral> names) {
    return llvm::all_of(
        names, [&](llvm::StringRef name) { return features.lookup(name); });
  };
  if (!hasAll(level3))
    return 0;
  return hasAll(level4) ? 4 : 3;
}

llvm::SmallVector<llvm::StringRef> TargetModel::knownNames() {
  llvm::SmallVector<llvm::StringRef> names = {"native"};
  for (const KnownTarget &target : knownTargets)
    names.push_back(target.name);
  names.append(knownGpuNames());
  return names;
}

llvm::SmallVector<llvm::StringRef> TargetModel::knownGpuNames() {
  llvm::SmallVector<llvm::StringRef> names;
  for (const Gpu &gpu : gpus)
    names.push_back(gpu.name);
  return names;
}

llvm::Expected<TargetModel> TargetModel::get(llvm::StringRef name) {
  if (name == "native") {
    unsigned level = detectLevel();
    if (level == 0)
      return llvm::createStringError(
          "target native: expects a CPU of the level x86-64-v3 or higher, but "
          "this machine's CPU is below it");
    return TargetModel("native", level, llvm::sys::getHostCPUName().str());
  }
  for (const KnownTarget &target : knownTargets)
    if (target.name == name)
      return TargetModel(name.str(), target.level, target.tuneCpu.str());
  for (const Gpu &gpu : gpus)
    if (gpu.name == name)
      return TargetModel(gpu);
  return llvm::createStringError(
      llvm::formatv("unknown target '{0}'; known targets: {1}", name,
                    llvm::join(knownNames(), ", ")));
}

std::string TargetModel::getLlvmCpu() const {
  if (gpu)
    return name;
  return llvm::formatv("x86-64-v{0}", level);
}

llvm::SmallVector<std::string> TargetModel::getRequiredFeatures() const {
  if (gpu)
    return {};
  return {getLlvmCpu()};
}

// Fitted to measurements of tools/scripts/bench_forms.py by the length of
// vectors, with which the number of registers goes; how well the choice does is
// in runtime/bench/results/cpu-forms-*.json.
FormCosts TargetModel::getFormCosts() const {
  if (level == 4)
    return {3.9, 0.77, 1.1, 12, 1.18, 0.00648, 0.92, 1.16, 1.1, 0.34};
  return {2.9, 0.51, 0.34, 10, 1.01, 0.01083, 1, 1, 1.93, 0.25};
}
