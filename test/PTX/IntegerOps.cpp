// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic and logic on integers.

#include "LaneOps.h"

#include <algorithm>

using namespace ptx;

namespace {
// Sums, differences and products wrap around, whatever their sign.
struct Add {
  template <typename T> T operator()(T a, T b) {
    return T(uint64_t(a) + uint64_t(b));
  }
};
struct Sub {
  template <typename T> T operator()(T a, T b) {
    return T(uint64_t(a) - uint64_t(b));
  }
};
struct MulLow {
  template <typename T> T operator()(T a, T b) {
    return T(uint64_t(a) * uint64_t(b));
  }
};
struct MulHigh {
  template <typename T> T operator()(T a, T b) {
    if constexpr (std::is_signed_v<T>)
      return T((__int128(a) * b) >> (8 * sizeof(T)));
    else
      return T((static_cast<unsigned __int128>(a) * b) >> (8 * sizeof(T)));
  }
};
struct MadLow {
  template <typename T> T operator()(T a, T b, T c) {
    return T(uint64_t(a) * uint64_t(b) + uint64_t(c));
  }
};
// By 0 a GPU gives all ones.
struct Div {
  template <typename T> T operator()(T a, T b) {
    if (b == 0 || (std::is_signed_v<T> && b == T(-1)))
      return b == 0 ? T(-1) : T(0 - uint64_t(a));
    return T(a / b);
  }
};
struct Rem {
  template <typename T> T operator()(T a, T b) {
    if (b == 0 || (std::is_signed_v<T> && b == T(-1)))
      return b == 0 ? a : T(0);
    return T(a % b);
  }
};
struct Min {
  template <typename T> T operator()(T a, T b) { return std::min(a, b); }
};
struct Max {
  template <typename T> T operator()(T a, T b) { return std::max(a, b); }
};
struct Neg {
  template <typename T> T operator()(T a) { return T(0 - uint64_t(a)); }
};
struct Abs {
  template <typename T> T operator()(T a) {
    return a < T(0) ? T(0 - uint64_t(a)) : a;
  }
};
struct And {
  template <typename T> T operator()(T a, T b) { return a & b; }
};
struct Or {
  template <typename T> T operator()(T a, T b) { return a | b; }
};
struct Xor {
  template <typename T> T operator()(T a, T b) { return a ^ b; }
};
struct Not {
  template <typename T> T operator()(T a) { return T(~a); }
};
struct NotPredicate {
  uint8_t operator()(uint8_t a) { return !a; }
};
struct Clz {
  template <typename T> uint32_t operator()(T a) {
    if (a == 0)
      return 8 * sizeof(T);
    return static_cast<uint32_t>(__builtin_clzll(a)) - (64 - 8 * sizeof(T));
  }
};
struct Popc {
  template <typename T> uint32_t operator()(T a) {
    return static_cast<uint32_t>(__builtin_popcountll(a));
  }
};
struct Brev {
  template <typename T> T operator()(T a) {
    T reversed = 0;
    for (unsigned bit = 0; bit < 8 * sizeof(T); ++bit)
      reversed |= T((a >> bit) & 1) << (8 * sizeof(T) - 1 - bit);
    return reversed;
  }
};
} // namespace

/// Shifts take their amount from 32 bits and clamp it.
template <typename T, bool isLeft>
static Step shift(Warp &warp, const Instruction &i, Mask mask) {
  Lanes &to = warp.at(i.operands[0]);
  const Lanes &a = warp.at(i.operands[1]), &b = warp.at(i.operands[2]);
  constexpr uint32_t kBits = 8 * sizeof(T);
  forLanes(mask, [&](unsigned l) {
    uint32_t by = static_cast<uint32_t>(b[l]);
    T value = fromBits<T>(a[l]);
    if (isLeft)
      value = by >= kBits ? T(0) : T(uint64_t(value) << by);
    else
      value = by >= kBits ? T(value < T(0) ? -1 : 0) : T(value >> by);
    to[l] = toBits(value);
  });
  return Step::next;
}

template <typename T, typename Wide>
static Step mulWide(Warp &warp, const Instruction &i, Mask mask) {
  Lanes &to = warp.at(i.operands[0]);
  const Lanes &a = warp.at(i.operands[1]), &b = warp.at(i.operands[2]);
  bool adds = i.operands.size() > 3;
  forLanes(mask, [&](unsigned l) {
    Wide product = Wide(Wide(fromBits<T>(a[l])) * Wide(fromBits<T>(b[l])));
    if (adds)
      product = Wide(uint64_t(product) +
                     uint64_t(fromBits<Wide>(warp.at(i.operands[3])[l])));
    to[l] = toBits(product);
  });
  return Step::next;
}

template <typename T>
static Step bitExtract(Warp &warp, const Instruction &i, Mask mask) {
  Lanes &to = warp.at(i.operands[0]);
  const Lanes &a = warp.at(i.operands[1]), &at = warp.at(i.operands[2]),
              &count = warp.at(i.operands[3]);
  forLanes(mask, [&](unsigned l) {
    unsigned begin = at[l] & 0xff, length = count[l] & 0xff;
    uint64_t bits = begin >= 64 ? 0 : a[l] >> begin;
    if (length < 64)
      bits &= (uint64_t(1) << length) - 1;
    if (std::is_signed_v<T> && length > 0 && length < 64 &&
        (bits >> (length - 1) & 1))
      bits |= ~uint64_t(0) << length;
    to[l] = toBits(static_cast<T>(bits));
  });
  return Step::next;
}

/// prmt.b32: picks four of eight bytes.
static Step permute(Warp &warp, const Instruction &i, Mask mask) {
  Lanes &to = warp.at(i.operands[0]);
  const Lanes &a = warp.at(i.operands[1]), &b = warp.at(i.operands[2]),
              &how = warp.at(i.operands[3]);
  forLanes(mask, [&](unsigned l) {
    uint64_t bytes = (b[l] << 32) | (a[l] & 0xffffffff), result = 0;
    for (unsigned k = 0; k < 4; ++k) {
      unsigned pick = (how[l] >> (4 * k)) & 0xf;
      uint64_t byte = (bytes >> (8 * (pick & 7))) & 0xff;
      if (pick & 8)
        byte = byte & 0x80 ? 0xff : 0;
      result |= byte << (8 * k);
    }
    to[l] = result;
  });
  return Step::next;
}

/// lop3.b32: any function of three bits.
static Step logic3(Warp &warp, const Instruction &i, Mask mask) {
  Lanes &to = warp.at(i.operands[0]);
  const Lanes &a = warp.at(i.operands[1]), &b = warp.at(i.operands[2]),
              &c = warp.at(i.operands[3]), &table = warp.at(i.operands[4]);
  forLanes(mask, [&](unsigned l) {
    uint64_t result = 0;
    for (unsigned row = 0; row < 8; ++row)
      if (table[l] >> row & 1)
        result |= (row & 4 ? a[l] : ~a[l]) & (row & 2 ? b[l] : ~b[l]) &
                  (row & 1 ? c[l] : ~c[l]);
    to[l] = result & 0xffffffff;
  });
  return Step::next;
}

/// shf.l / shf.r, wrap or clamp: a funnel of two words.
template <bool isLeft, bool wraps>
static Step funnel(Warp &warp, const Instruction &i, Mask mask) {
  Lanes &to = warp.at(i.operands[0]);
  const Lanes &a = warp.at(i.operands[1]), &b = warp.at(i.operands[2]),
              &by = warp.at(i.operands[3]);
  forLanes(mask, [&](unsigned l) {
    unsigned n = wraps ? by[l] & 31 : std::min<uint64_t>(by[l], 32);
    uint64_t both = (b[l] << 32) | (a[l] & 0xffffffff);
    to[l] = (isLeft ? (n == 0 ? both >> 32 : both << n >> 32) : both >> n) &
            0xffffffff;
  });
  return Step::next;
}

template <template <typename> class Pick>
static Execute byType(const std::string &type) {
  if (type == "s32")
    return Pick<int32_t>::get();
  if (type == "u32" || type == "b32")
    return Pick<uint32_t>::get();
  if (type == "s64")
    return Pick<int64_t>::get();
  if (type == "u64" || type == "b64")
    return Pick<uint64_t>::get();
  if (type == "s16")
    return Pick<int16_t>::get();
  if (type == "u16" || type == "b16")
    return Pick<uint16_t>::get();
  return nullptr;
}

#define PTX_PICK(NAME, FUNCTION)                                               \
  template <typename T> struct NAME {                                          \
    static Execute get() { return FUNCTION; }                                  \
  };
namespace {
PTX_PICK(PickAdd, (binary<T, Add>))
PTX_PICK(PickSub, (binary<T, Sub>))
PTX_PICK(PickMulLow, (binary<T, MulLow>))
PTX_PICK(PickMulHigh, (binary<T, MulHigh>))
PTX_PICK(PickMadLow, (ternary<T, MadLow>))
PTX_PICK(PickDiv, (binary<T, Div>))
PTX_PICK(PickRem, (binary<T, Rem>))
PTX_PICK(PickMin, (binary<T, Min>))
PTX_PICK(PickMax, (binary<T, Max>))
PTX_PICK(PickNeg, (unary<T, Neg>))
PTX_PICK(PickAbs, (unary<T, Abs>))
PTX_PICK(PickAnd, (binary<T, And>))
PTX_PICK(PickOr, (binary<T, Or>))
PTX_PICK(PickXor, (binary<T, Xor>))
PTX_PICK(PickNot, (unary<T, Not>))
PTX_PICK(PickClz, (unary<std::make_unsigned_t<T>, Clz>))
PTX_PICK(PickPopc, (unary<std::make_unsigned_t<T>, Popc>))
PTX_PICK(PickBrev, (unary<std::make_unsigned_t<T>, Brev>))
PTX_PICK(PickShl, (shift<T, true>))
PTX_PICK(PickShr, (shift<T, false>))
PTX_PICK(PickBfe, (bitExtract<T>))
} // namespace

Execute ptx::findIntegerOp(const Parts &parts, Instruction &) {
  const std::string &op = parts[0], &type = parts.back();
  bool isPredicate = type == "pred";
  if (op == "and")
    return isPredicate ? binary<uint8_t, And> : byType<PickAnd>(type);
  if (op == "or")
    return isPredicate ? binary<uint8_t, Or> : byType<PickOr>(type);
  if (op == "xor")
    return isPredicate ? binary<uint8_t, Xor> : byType<PickXor>(type);
  if (op == "not")
    return isPredicate ? unary<uint8_t, NotPredicate> : byType<PickNot>(type);
  if (op == "mul" || op == "mad") {
    bool adds = op == "mad";
    if (has(parts, "wide")) {
      if (type == "s32")
        return mulWide<int32_t, int64_t>;
      if (type == "u32")
        return mulWide<uint32_t, uint64_t>;
      if (type == "s16")
        return mulWide<int16_t, int32_t>;
      if (type == "u16")
        return mulWide<uint16_t, uint32_t>;
    }
    if (has(parts, "lo"))
      return adds ? byType<PickMadLow>(type) : byType<PickMulLow>(type);
    if (has(parts, "hi") && !adds)
      return byType<PickMulHigh>(type);
    return nullptr;
  }
  if (op == "add" && parts.size() == 2)
    return byType<PickAdd>(type);
  if (op == "sub" && parts.size() == 2)
    return byType<PickSub>(type);
  if (op == "div" && parts.size() == 2)
    return byType<PickDiv>(type);
  if (op == "rem")
    return byType<PickRem>(type);
  if (op == "min" && parts.size() == 2)
    return byType<PickMin>(type);
  if (op == "max" && parts.size() == 2)
    return byType<PickMax>(type);
  if (op == "neg")
    return byType<PickNeg>(type);
  if (op == "abs")
    return byType<PickAbs>(type);
  if (op == "shl")
    return byType<PickShl>(type);
  if (op == "shr")
    return byType<PickShr>(type);
  if (op == "clz")
    return byType<PickClz>(type);
  if (op == "popc")
    return byType<PickPopc>(type);
  if (op == "brev")
    return byType<PickBrev>(type);
  if (op == "bfe")
    return byType<PickBfe>(type);
  if (op == "prmt")
    return permute;
  if (op == "lop3")
    return logic3;
  if (op == "shf" && parts.size() == 4) {
    bool wraps = parts[2] == "wrap";
    if (parts[1] == "l")
      return wraps ? funnel<true, true> : funnel<true, false>;
    return wraps ? funnel<false, true> : funnel<false, false>;
  }
  return nullptr;
}
