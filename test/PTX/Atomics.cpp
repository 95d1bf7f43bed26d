// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// atom and red: blocks run on several threads, so these are real atomics.

#include "LaneOps.h"

#include <algorithm>

using namespace ptx;

namespace {
struct Add {
  template <typename T> T operator()(T old, T a, T) { return T(old + a); }
};
struct Inc {
  template <typename T> T operator()(T old, T a, T) {
    return old >= a ? T(0) : T(old + 1);
  }
};
struct Dec {
  template <typename T> T operator()(T old, T a, T) {
    return old == 0 || old > a ? a : T(old - 1);
  }
};
struct Min {
  template <typename T> T operator()(T old, T a, T) { return std::min(old, a); }
};
struct Max {
  template <typename T> T operator()(T old, T a, T) { return std::max(old, a); }
};
struct And {
  template <typename T> T operator()(T old, T a, T) { return old & a; }
};
struct Or {
  template <typename T> T operator()(T old, T a, T) { return old | a; }
};
struct Exchange {
  template <typename T> T operator()(T, T a, T) { return a; }
};
struct CompareAndSwap {
  template <typename T> T operator()(T old, T a, T b) {
    return old == a ? b : old;
  }
};
} // namespace

template <Space space, typename T, typename Op, bool gives>
static Step atomic(Warp &warp, const Instruction &i, Mask mask) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  size_t first = gives ? 1 : 0;
  const Operand &place = i.operands[first], &a = i.operands[first + 1];
  bool hasThird = i.operands.size() > first + 2;
  forLanes(mask, [&](unsigned l) {
    uint64_t address = warp.at(place)[l] + static_cast<uint64_t>(place.offset);
    Bits *data = reinterpret_cast<Bits *>(warp.resolve(
        space, address, sizeof(T), static_cast<int>(l), Use::barrier));
    T second = hasThird ? fromBits<T>(warp.at(i.operands[first + 2])[l]) : T(0);
    Bits old = __atomic_load_n(data, __ATOMIC_SEQ_CST), now;
    auto change = [&] {
      do
        now = static_cast<Bits>(
            toBits(Op()(fromBits<T>(old), fromBits<T>(warp.at(a)[l]), second)));
      while (!__atomic_compare_exchange_n(data, &old, now, false,
                                          __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    };
    if (reinterpret_cast<uint64_t>(data) == address) {
      watchGlobal(warp, address, sizeof(T), l, Use::strongWrite);
      const Scope scope = static_cast<Scope>(i.detail / kScope);
      warp.block->cluster->memory.races().withTold(address, [&](Told &told) {
        change();
        // Of one that gives no value nothing is learned.
        if (gives)
          learnByAtomic(warp, told, l, scope, i.detail & kAcquires);
        tellByAtomic(warp, told, l, scope, i.detail & kReleases);
      });
    } else {
      change();
    }
    if (gives && i.operands[0].value >= 0)
      warp.at(i.operands[0])[l] = old;
  });
  return Step::next;
}

template <typename T, typename Op>
static Execute ofSpace(const Parts &parts, bool gives) {
  if (has(parts, "shared") || has(parts, "shared::cta"))
    return gives ? atomic<Space::shared, T, Op, true>
                 : atomic<Space::shared, T, Op, false>;
  return gives ? atomic<Space::generic, T, Op, true>
               : atomic<Space::generic, T, Op, false>;
}

template <typename T> static Execute integer(const Parts &parts, bool gives) {
  if (has(parts, "add"))
    return ofSpace<T, Add>(parts, gives);
  if (has(parts, "inc"))
    return ofSpace<T, Inc>(parts, gives);
  if (has(parts, "dec"))
    return ofSpace<T, Dec>(parts, gives);
  if (has(parts, "min"))
    return ofSpace<T, Min>(parts, gives);
  if (has(parts, "max"))
    return ofSpace<T, Max>(parts, gives);
  if (has(parts, "and"))
    return ofSpace<T, And>(parts, gives);
  if (has(parts, "or"))
    return ofSpace<T, Or>(parts, gives);
  if (has(parts, "exch"))
    return ofSpace<T, Exchange>(parts, gives);
  if (has(parts, "cas"))
    return ofSpace<T, CompareAndSwap>(parts, gives);
  return nullptr;
}

Execute ptx::findAtomic(const Parts &parts, Instruction &instruction) {
  if (parts[0] != "atom" && parts[0] != "red")
    return nullptr;
  instruction.detail = orderOf(parts);
  bool gives = parts[0] == "atom";
  const std::string &type = parts.back();
  if (type == "u32" || type == "b32")
    return integer<uint32_t>(parts, gives);
  if (type == "s32")
    return integer<int32_t>(parts, gives);
  if (type == "u64" || type == "b64")
    return integer<uint64_t>(parts, gives);
  if (type == "f32" && has(parts, "add"))
    return ofSpace<float, Add>(parts, gives);
  return nullptr;
}
