// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// setp and selp.

#include "LaneOps.h"

using namespace ptx;

namespace {
template <typename T> bool isUnordered(T a, T b) { return a != a || b != b; }
struct Eq {
  template <typename T> bool operator()(T a, T b) { return a == b; }
};
struct Ne {
  template <typename T> bool operator()(T a, T b) {
    return a != b && !isUnordered(a, b);
  }
};
struct Lt {
  template <typename T> bool operator()(T a, T b) { return a < b; }
};
struct Le {
  template <typename T> bool operator()(T a, T b) { return a <= b; }
};
struct Gt {
  template <typename T> bool operator()(T a, T b) { return a > b; }
};
struct Ge {
  template <typename T> bool operator()(T a, T b) { return a >= b; }
};
template <typename Op> struct OrUnordered {
  template <typename T> bool operator()(T a, T b) {
    return Op()(a, b) || isUnordered(a, b);
  }
};
struct Num {
  template <typename T> bool operator()(T a, T b) { return !isUnordered(a, b); }
};
struct Nan {
  template <typename T> bool operator()(T a, T b) { return isUnordered(a, b); }
};
} // namespace

template <typename T> static float compared(T value) { return toFloat(value); }
template <> float compared(float value) { return value; }
static double compared(double value) { return value; }

/// setp.lt.f32 p, a, b and setp.lt.and.f32 p, a, b, q.
template <typename T, typename Op>
static Step set(Warp &warp, const Instruction &i, Mask mask) {
  Lanes &to = warp.at(i.operands[0]);
  const Lanes &a = warp.at(i.operands[1]), &b = warp.at(i.operands[2]);
  forLanes(mask, [&](unsigned l) {
    if constexpr (std::is_integral_v<T>)
      to[l] = Op()(fromBits<T>(a[l]), fromBits<T>(b[l]));
    else
      to[l] = Op()(compared(fromBits<T>(a[l])), compared(fromBits<T>(b[l])));
  });
  if (i.operands.size() > 3) {
    const Lanes &with = warp.at(i.operands[3]);
    forLanes(mask, [&](unsigned l) {
      to[l] = i.detail == 'a'   ? to[l] & with[l]
              : i.detail == 'o' ? to[l] | with[l]
                                : to[l] ^ with[l];
    });
  }
  return Step::next;
}

template <typename T> static Execute ofComparison(const std::string &op) {
  if (op == "eq")
    return set<T, Eq>;
  if (op == "ne")
    return set<T, Ne>;
  if (op == "lt" || op == "lo")
    return set<T, Lt>;
  if (op == "le" || op == "ls")
    return set<T, Le>;
  if (op == "gt" || op == "hi")
    return set<T, Gt>;
  if (op == "ge" || op == "hs")
    return set<T, Ge>;
  if (op == "equ")
    return set<T, OrUnordered<Eq>>;
  if (op == "neu")
    return set<T, OrUnordered<Ne>>;
  if (op == "ltu")
    return set<T, OrUnordered<Lt>>;
  if (op == "leu")
    return set<T, OrUnordered<Le>>;
  if (op == "gtu")
    return set<T, OrUnordered<Gt>>;
  if (op == "geu")
    return set<T, OrUnordered<Ge>>;
  if (op == "num")
    return set<T, Num>;
  if (op == "nan")
    return set<T, Nan>;
  return nullptr;
}

static Step select(Warp &warp, const Instruction &i, Mask mask) {
  Lanes &to = warp.at(i.operands[0]);
  const Lanes &a = warp.at(i.operands[1]), &b = warp.at(i.operands[2]),
              &which = warp.at(i.operands[3]);
  forLanes(mask, [&](unsigned l) {
    to[l] = (which[l] ? a[l] : b[l]) & static_cast<uint64_t>(i.detail);
  });
  return Step::next;
}

Execute ptx::findComparison(const Parts &parts, Instruction &instruction) {
  const std::string &op = parts[0], &type = parts.back();
  if (op == "selp") {
    // An immediate may have more bits than the type.
    instruction.detail = type.find("64") != std::string::npos   ? int64_t(-1)
                         : type.find("32") != std::string::npos ? 0xffffffff
                                                                : 0xffff;
    return select;
  }
  if (op != "setp" || parts.size() < 3)
    return nullptr;
  if (has(parts, "and") || has(parts, "or") || has(parts, "xor"))
    instruction.detail = static_cast<unsigned char>(parts[2][0]);
  if (type == "s16")
    return ofComparison<int16_t>(parts[1]);
  if (type == "u16" || type == "b16")
    return ofComparison<uint16_t>(parts[1]);
  if (type == "s32")
    return ofComparison<int32_t>(parts[1]);
  if (type == "u32" || type == "b32")
    return ofComparison<uint32_t>(parts[1]);
  if (type == "s64")
    return ofComparison<int64_t>(parts[1]);
  if (type == "u64" || type == "b64")
    return ofComparison<uint64_t>(parts[1]);
  if (type == "f32")
    return ofComparison<float>(parts[1]);
  if (type == "f64")
    return ofComparison<double>(parts[1]);
  if (type == "f16")
    return ofComparison<Half>(parts[1]);
  if (type == "bf16")
    return ofComparison<BFloat>(parts[1]);
  return nullptr;
}
