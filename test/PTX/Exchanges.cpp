// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values that lanes of a warp give each other: shfl, vote, match, redux,
// elect, and bar.warp. All lanes that take part have to be there.

#include "LaneOps.h"

#include <algorithm>

using namespace ptx;

/// Lanes that the instruction names in operand `index`, of those alive.
static Mask members(Warp &warp, const Instruction &i, size_t index, Mask mask) {
  unsigned lane = static_cast<unsigned>(__builtin_ctz(mask));
  return static_cast<Mask>(warp.at(i.operands[index])[lane]) & warp.alive;
}

/// shfl.sync.bfly d|p, a, b, c, members
static Step shuffle(Warp &warp, const Instruction &i, Mask mask) {
  bool hasFlag = i.groups.size() == 6;
  size_t first = hasFlag ? 2 : 1;
  if (members(warp, i, first + 3, mask) & ~mask)
    return Step::waits;
  warp.exchange();
  Lanes from = warp.at(i.operands[first]);
  const Lanes &by = warp.at(i.operands[first + 1]),
              &how = warp.at(i.operands[first + 2]);
  forLanes(mask, [&](unsigned l) {
    unsigned b = by[l] & 31, c = how[l] & 31, segment = (how[l] >> 8) & 31;
    unsigned most = (l & segment) | (c & ~segment), least = l & segment;
    int source = 0;
    bool holds = false;
    switch (i.detail) {
    case 'u':
      source = static_cast<int>(l) - static_cast<int>(b);
      holds = source >= static_cast<int>(most);
      break;
    case 'd':
      source = static_cast<int>(l + b);
      holds = source <= static_cast<int>(most);
      break;
    case 'b':
      source = static_cast<int>(l ^ b);
      holds = source <= static_cast<int>(most);
      break;
    default:
      source = static_cast<int>(least | (b & ~segment));
      holds = source <= static_cast<int>(most);
    }
    unsigned at = holds ? static_cast<unsigned>(source) : l;
    if (!(mask >> at & 1))
      throw Fault("lane " + std::to_string(l) + " reads lane " +
                  std::to_string(at) + ", which is not there");
    warp.at(i.operands[0])[l] = from[at];
    if (hasFlag && i.operands[1].value >= 0)
      warp.at(i.operands[1])[l] = holds;
  });
  return Step::next;
}

/// vote.sync.{any,all,uni,ballot} d, a, members
static Step vote(Warp &warp, const Instruction &i, Mask mask) {
  Mask wanted = members(warp, i, 2, mask);
  if (wanted & ~mask)
    return Step::waits;
  warp.exchange();
  Mask yes = 0;
  forLanes(mask, [&](unsigned l) {
    yes |= static_cast<Mask>(warp.at(i.operands[1])[l] & 1) << l;
  });
  uint64_t result = i.detail == 'a'   ? yes == wanted
                    : i.detail == 'y' ? yes != 0
                    : i.detail == 'u' ? yes == 0 || yes == wanted
                                      : yes;
  forLanes(mask, [&](unsigned l) { warp.at(i.operands[0])[l] = result; });
  return Step::next;
}

/// redux.sync.add.s32 d, a, members
template <typename T>
static Step reduce(Warp &warp, const Instruction &i, Mask mask) {
  if (members(warp, i, 2, mask) & ~mask)
    return Step::waits;
  warp.exchange();
  bool isFirst = true;
  T result{};
  forLanes(mask, [&](unsigned l) {
    T value = fromBits<T>(warp.at(i.operands[1])[l]);
    if (isFirst)
      result = value;
    else
      result = i.detail == '+'   ? T(result + value)
               : i.detail == '<' ? std::min(result, value)
               : i.detail == '>' ? std::max(result, value)
               : i.detail == '&' ? T(result & value)
               : i.detail == '|' ? T(result | value)
                                 : T(result ^ value);
    isFirst = false;
  });
  forLanes(mask,
           [&](unsigned l) { warp.at(i.operands[0])[l] = toBits(result); });
  return Step::next;
}

/// elect.sync d|p, members: the lowest lane.
static Step elect(Warp &warp, const Instruction &i, Mask mask) {
  Mask wanted = members(warp, i, 2, mask);
  if (wanted & ~mask)
    return Step::waits;
  unsigned chosen = static_cast<unsigned>(__builtin_ctz(wanted));
  forLanes(mask, [&](unsigned l) {
    if (i.operands[0].value >= 0)
      warp.at(i.operands[0])[l] = chosen;
    warp.at(i.operands[1])[l] = l == chosen;
  });
  return Step::next;
}

/// Lanes that are elsewhere count as in order, too.
static Step meet(Warp &warp, const Instruction &i, Mask mask) {
  if (members(warp, i, 0, mask) & ~mask)
    return Step::waits;
  warp.meet();
  return Step::next;
}

static Step active(Warp &warp, const Instruction &i, Mask mask) {
  forLanes(mask, [&](unsigned l) { warp.at(i.operands[0])[l] = mask; });
  return Step::next;
}

Execute ptx::findExchange(const Parts &parts, Instruction &instruction) {
  const std::string &op = parts[0];
  if (op == "shfl" && parts.size() == 4) {
    instruction.detail = static_cast<unsigned char>(parts[2][0]);
    return shuffle;
  }
  if (op == "vote" && parts.size() == 4) {
    const char how = parts[2] == "any" ? 'y' : parts[2][0];
    instruction.detail = static_cast<unsigned char>(how);
    return vote;
  }
  if (op == "redux" && parts.size() == 4) {
    const std::string &how = parts[2];
    const char sign = how == "add"   ? '+'
                      : how == "min" ? '<'
                      : how == "max" ? '>'
                      : how == "and" ? '&'
                      : how == "or"  ? '|'
                                     : '^';
    instruction.detail = static_cast<unsigned char>(sign);
    return parts[3] == "s32" ? reduce<int32_t> : reduce<uint32_t>;
  }
  if (op == "elect")
    return elect;
  if (op == "activemask")
    return active;
  if ((op == "bar" || op == "barrier") && has(parts, "warp"))
    return meet;
  return nullptr;
}
