// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the meanings of instructions are made of: bits as numbers, loops over
// lanes, and the tables in which opcodes are looked up.

#ifndef GDN_TEST_PTX_LANEOPS_H
#define GDN_TEST_PTX_LANEOPS_H

#include "Machine.h"

#include <cmath>
#include <cstring>
#include <type_traits>

namespace ptx {

using Parts = std::vector<std::string>;

/// A bf16 by its bits.
struct BFloat {
  uint16_t bits;
};
using Half = _Float16;

template <typename T> T fromBits(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}
template <typename T> uint64_t toBits(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

inline float toFloat(BFloat value) {
  return fromBits<float>(uint64_t(value.bits) << 16);
}
inline float toFloat(Half value) { return static_cast<float>(value); }

/// Nearest, ties to even; a NaN becomes 0x7fff, as on a GPU.
inline BFloat toBFloat(float value) {
  uint32_t bits = static_cast<uint32_t>(toBits(value));
  if (value != value)
    return {0x7fff};
  return {static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};
}
inline Half toHalf(float value) { return static_cast<Half>(value); }

inline float flushed(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value)
                                                : value;
}

/// Calls f(lane) for the lanes of `mask`.
template <typename F> inline void forLanes(Mask mask, F f) {
  if (mask == kAllLanes) {
    for (unsigned lane = 0; lane < kLanes; ++lane)
      f(lane);
    return;
  }
  for (; mask; mask &= mask - 1)
    f(static_cast<unsigned>(__builtin_ctz(mask)));
}

/// result = Op()(operand 1 as T), with the type that Op gives.
template <typename T, typename Op>
Step unary(Warp &warp, const Instruction &i, Mask mask) {
  Lanes &to = warp.at(i.operands[0]);
  const Lanes &a = warp.at(i.operands[1]);
  forLanes(mask, [&](unsigned l) { to[l] = toBits(Op()(fromBits<T>(a[l]))); });
  return Step::next;
}

template <typename T, typename Op>
Step binary(Warp &warp, const Instruction &i, Mask mask) {
  Lanes &to = warp.at(i.operands[0]);
  const Lanes &a = warp.at(i.operands[1]), &b = warp.at(i.operands[2]);
  forLanes(mask, [&](unsigned l) {
    to[l] = toBits(Op()(fromBits<T>(a[l]), fromBits<T>(b[l])));
  });
  return Step::next;
}

template <typename T, typename Op>
Step ternary(Warp &warp, const Instruction &i, Mask mask) {
  Lanes &to = warp.at(i.operands[0]);
  const Lanes &a = warp.at(i.operands[1]), &b = warp.at(i.operands[2]),
              &c = warp.at(i.operands[3]);
  forLanes(mask, [&](unsigned l) {
    to[l] =
        toBits(Op()(fromBits<T>(a[l]), fromBits<T>(b[l]), fromBits<T>(c[l])));
  });
  return Step::next;
}

/// Whether `parts` has `part` behind the first.
inline bool has(const Parts &parts, const char *part) {
  for (size_t i = 1; i < parts.size(); ++i)
    if (parts[i] == part)
      return true;
  return false;
}

/// How far an atomic or a fence reaches; .sys is no further here than .gpu.
inline Scope scopeOf(const Parts &parts) {
  return has(parts, "cta")       ? Scope::block
         : has(parts, "cluster") ? Scope::cluster
                                 : Scope::gpu;
}

/// What the detail of an access or an atomic says: whether it is strong, and in
/// no race with others that are, and what order it makes; or that nobody writes
/// what it reads. The scope is beyond.
enum OrderBits : int64_t {
  kStrong = 1,
  kAcquires = 2,
  kReleases = 4,
  kConstant = 8,
  kScope = 16
};

inline int64_t orderOf(const Parts &parts) {
  const bool both = has(parts, "acq_rel");
  const int64_t order = (both || has(parts, "acquire") ? kAcquires : 0) |
                        (both || has(parts, "release") ? kReleases : 0);
  const bool isStrong = order || has(parts, "relaxed") ||
                        has(parts, "volatile") || has(parts, "mmio");
  return order | (isStrong ? kStrong : 0) | (has(parts, "nc") ? kConstant : 0) |
         static_cast<int64_t>(scopeOf(parts)) * kScope;
}

/// Whether the lanes that the warp has left are all here.
inline bool allHere(const Warp &warp, Mask mask) { return mask == warp.alive; }

// One per family; null for opcodes of others.
Execute findIntegerOp(const Parts &parts, Instruction &instruction);
Execute findFloatOp(const Parts &parts, Instruction &instruction);
Execute findConversion(const Parts &parts, Instruction &instruction);
Execute findComparison(const Parts &parts, Instruction &instruction);
Execute findMove(const Parts &parts, Instruction &instruction);
Execute findAccess(const Parts &parts, Instruction &instruction);
Execute findAtomic(const Parts &parts, Instruction &instruction);
Execute findControl(const Parts &parts, Instruction &instruction);
Execute findExchange(const Parts &parts, Instruction &instruction);
Execute findFragmentOp(const Parts &parts, Instruction &instruction);
Execute findGroupProduct(const Parts &parts, Instruction &instruction);
Execute findBarrier(const Parts &parts, Instruction &instruction);
Execute findCopy(const Parts &parts, Instruction &instruction);
Execute findTensorCopy(const Parts &parts, Instruction &instruction);

} // namespace ptx

#endif // GDN_TEST_PTX_LANEOPS_H
