// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What CPUID says, and whether the operating system saves the registers. The
// compiler's __builtin_cpu_supports asks a table of its support library, which
// not every toolchain fills. One row per name.

#include "gdnrt/cpu_features.h"

#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

using namespace gdnrt;

namespace {
struct Feature {
  const char *name;
  bool isThere;
};
} // namespace

#if defined(__x86_64__)

namespace {
enum Register { kEax, kEbx, kEcx, kEdx };

/// Registers that the system has to save, as bits of XCR0: none, YMM, ZMM with
/// masks, tiles.
enum Saved : uint64_t { kNone = 0, kYmm = 0x6, kZmm = 0xe6, kTiles = 0x60000 };

struct Bit {
  const char *name;
  unsigned leaf, subleaf;
  Register from;
  int bit;
  Saved needs;
};

const Bit kBits[] = {
    {"sse3", 1, 0, kEcx, 0, kNone},
    {"ssse3", 1, 0, kEcx, 9, kNone},
    {"fma", 1, 0, kEcx, 12, kYmm},
    {"cx16", 1, 0, kEcx, 13, kNone},
    {"sse4.1", 1, 0, kEcx, 19, kNone},
    {"sse4.2", 1, 0, kEcx, 20, kNone},
    {"movbe", 1, 0, kEcx, 22, kNone},
    {"popcnt", 1, 0, kEcx, 23, kNone},
    {"avx", 1, 0, kEcx, 28, kYmm},
    {"f16c", 1, 0, kEcx, 29, kYmm},
    {"bmi", 7, 0, kEbx, 3, kNone},
    {"avx2", 7, 0, kEbx, 5, kYmm},
    {"bmi2", 7, 0, kEbx, 8, kNone},
    {"avx512f", 7, 0, kEbx, 16, kZmm},
    {"avx512dq", 7, 0, kEbx, 17, kZmm},
    {"avx512ifma", 7, 0, kEbx, 21, kZmm},
    {"avx512cd", 7, 0, kEbx, 28, kZmm},
    {"avx512bw", 7, 0, kEbx, 30, kZmm},
    {"avx512vl", 7, 0, kEbx, 31, kZmm},
    {"avx512vbmi", 7, 0, kEcx, 1, kZmm},
    {"avx512vbmi2", 7, 0, kEcx, 6, kZmm},
    {"avx512vnni", 7, 0, kEcx, 11, kZmm},
    {"amx-bf16", 7, 0, kEdx, 22, kTiles},
    {"avx512fp16", 7, 0, kEdx, 23, kZmm},
    {"amx-tile", 7, 0, kEdx, 24, kTiles},
    {"amx-int8", 7, 0, kEdx, 25, kTiles},
    {"avxvnni", 7, 1, kEax, 4, kYmm},
    {"avx512bf16", 7, 1, kEax, 5, kZmm},
    {"lahf", 0x80000001, 0, kEcx, 0, kNone},
    {"lzcnt", 0x80000001, 0, kEcx, 5, kNone},
};

/// What an ISA level of the psABI has beyond the one before it.
struct Level {
  const char *name;
  std::vector<const char *> adds;
};

const Level kLevels[] = {
    {"x86-64", {}},
    {"x86-64-v2",
     {"cx16", "lahf", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"}},
    {"x86-64-v3",
     {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"}},
    {"x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}},
};
} // namespace

/// XCR0, 0 where the system does not let programs read it.
static uint64_t savedRegisters() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  constexpr unsigned kOsxsave = 1u << 27;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & kOsxsave))
    return 0;
  __asm__("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
  return (uint64_t(edx) << 32) | eax;
}

static bool has(const std::vector<Feature> &features, std::string_view name) {
  for (const Feature &feature : features)
    if (name == feature.name)
      return feature.isThere;
  return false;
}

static std::vector<Feature> ask() {
  const uint64_t saved = savedRegisters();
  std::vector<Feature> features;
  for (const Bit &bit : kBits) {
    unsigned words[4] = {};
    bool known = __get_cpuid_count(bit.leaf, bit.subleaf, &words[kEax],
                                   &words[kEbx], &words[kEcx], &words[kEdx]);
    bool isThere = known && (words[bit.from] >> bit.bit & 1) &&
                   (saved & bit.needs) == bit.needs;
    features.push_back({bit.name, isThere});
  }
  std::vector<Feature> levels;
  bool isThere = true;
  for (const Level &level : kLevels) {
    for (const char *name : level.adds)
      isThere = isThere && has(features, name);
    levels.push_back({level.name, isThere});
  }
  // They come first: they are what most codes ask.
  features.insert(features.begin(), levels.begin(), levels.end());
  return features;
}

#else

static std::vector<Feature> ask() { return {}; }

#endif

/// Asks the CPU once.
static const std::vector<Feature> &featureTable() {
  static const std::vector<Feature> table = ask();
  return table;
}

bool gdnrt::cpuHasFeature(std::string_view name) {
  for (const Feature &feature : featureTable())
    if (name == feature.name)
      return feature.isThere;
  return false;
}

std::vector<std::string> gdnrt::cpuFeatures() {
  std::vector<std::string> names;
  for (const Feature &feature : featureTable())
    if (feature.isThere)
      names.push_back(feature.name);
  return names;
}
