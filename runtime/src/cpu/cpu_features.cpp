// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One row per name. The ISA levels come first: they are what most codes ask.

#include "gdnrt/cpu_features.h"

using namespace gdnrt;

#if defined(__x86_64__)
#define GDNRT_CPU_FEATURES(ROW)                                                \
  ROW("x86-64")                                                                \
  ROW("x86-64-v2")                                                             \
  ROW("x86-64-v3")                                                             \
  ROW("x86-64-v4")                                                             \
  ROW("sse3")                                                                  \
  ROW("ssse3")                                                                 \
  ROW("sse4.1")                                                                \
  ROW("sse4.2")                                                                \
  ROW("popcnt")                                                                \
  ROW("avx")                                                                   \
  ROW("avx2")                                                                  \
  ROW("bmi")                                                                   \
  ROW("bmi2")                                                                  \
  ROW("fma")                                                                   \
  ROW("f16c")                                                                  \
  ROW("lzcnt")                                                                 \
  ROW("movbe")                                                                 \
  ROW("avx512f")                                                               \
  ROW("avx512vl")                                                              \
  ROW("avx512bw")                                                              \
  ROW("avx512dq")                                                              \
  ROW("avx512cd")                                                              \
  ROW("avx512vbmi")                                                            \
  ROW("avx512vbmi2")                                                           \
  ROW("avx512ifma")                                                            \
  ROW("avx512vnni")                                                            \
  ROW("avx512bf16")                                                            \
  ROW("avx512fp16")                                                            \
  ROW("avxvnni")                                                               \
  ROW("amx-tile")                                                              \
  ROW("amx-bf16")                                                              \
  ROW("amx-int8")
#else
#define GDNRT_CPU_FEATURES(ROW)
#endif

namespace {
struct Row {
  const char *name;
  bool isThere;
};
} // namespace

/// Asks the CPU once.
static const std::vector<Row> &featureTable() {
  static const std::vector<Row> table = {
#define GDNRT_ROW(NAME) {NAME, __builtin_cpu_supports(NAME) != 0},
      GDNRT_CPU_FEATURES(GDNRT_ROW)
#undef GDNRT_ROW
  };
  return table;
}

bool gdnrt::cpuHasFeature(std::string_view feature) {
  for (const Row &row : featureTable())
    if (feature == row.name)
      return row.isThere;
  return false;
}

std::vector<std::string> gdnrt::cpuFeatures() {
  std::vector<std::string> names;
  for (const Row &row : featureTable())
    if (row.isThere)
      names.push_back(row.name);
  return names;
}
