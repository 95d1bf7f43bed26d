// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mov, with packing and unpacking of vectors, and changes of address space.

#include "LaneOps.h"

using namespace ptx;

static Step copy(Warp &warp, const Instruction &i, Mask mask) {
  Lanes &to = warp.at(i.operands[0]);
  const Lanes &from = warp.at(i.operands[1]);
  uint64_t keep = static_cast<uint64_t>(i.detail);
  int64_t offset = i.operands[1].offset;
  forLanes(mask, [&](unsigned l) {
    to[l] = (from[l] + static_cast<uint64_t>(offset)) & keep;
  });
  return Step::next;
}

/// mov.b64 d, {a, b, ...}: a has the lowest bits.
static Step pack(Warp &warp, const Instruction &i, Mask mask) {
  Lanes &to = warp.at(i.operands[0]);
  size_t count = i.operands.size() - 1;
  unsigned width =
      static_cast<unsigned>(i.detail) / static_cast<unsigned>(count);
  forLanes(mask, [&](unsigned l) {
    uint64_t bits = 0;
    for (size_t k = 0; k < count; ++k) {
      uint64_t part = warp.at(i.operands[1 + k])[l];
      bits |= (part & (~uint64_t(0) >> (64 - width)))
              << (width * static_cast<unsigned>(k));
    }
    to[l] = bits;
  });
  return Step::next;
}

static Step unpack(Warp &warp, const Instruction &i, Mask mask) {
  size_t count = i.operands.size() - 1;
  unsigned width =
      static_cast<unsigned>(i.detail) / static_cast<unsigned>(count);
  forLanes(mask, [&](unsigned l) {
    uint64_t bits = warp.at(i.operands[count])[l];
    for (size_t k = 0; k < count; ++k)
      if (i.operands[k].value >= 0)
        warp.at(i.operands[k])[l] =
            (bits >> (width * static_cast<unsigned>(k))) &
            (~uint64_t(0) >> (64 - width));
  });
  return Step::next;
}

/// Adds or takes away the beginning of a window of generic addresses.
static Step moveWindow(Warp &warp, const Instruction &i, Mask mask) {
  Lanes &to = warp.at(i.operands[0]);
  const Lanes &from = warp.at(i.operands[1]);
  forLanes(mask, [&](unsigned l) {
    to[l] = from[l] + static_cast<uint64_t>(i.detail);
  });
  return Step::next;
}

/// mapa: an address of this block's shared memory in that of another.
static Step mapAddress(Warp &warp, const Instruction &i, Mask mask) {
  Lanes &to = warp.at(i.operands[0]);
  const Lanes &from = warp.at(i.operands[1]), &rank = warp.at(i.operands[2]);
  forLanes(mask, [&](unsigned l) {
    to[l] = (from[l] & ((uint64_t(1) << kSharedRankBit) - 1)) |
            rank[l] << kSharedRankBit;
  });
  return Step::next;
}

static unsigned bitsOf(const std::string &type) {
  size_t digit = type.find_first_of("0123456789");
  return digit == std::string::npos
             ? 1
             : static_cast<unsigned>(std::stoul(type.substr(digit)));
}

Execute ptx::findMove(const Parts &parts, Instruction &instruction) {
  const std::string &op = parts[0];
  if (op == "mov") {
    unsigned bits = bitsOf(parts.back());
    const std::vector<int> &groups = instruction.groups;
    if (groups.size() == 2 && (groups[0] > 1 || groups[1] > 1)) {
      instruction.detail = bits;
      return groups[0] > 1 ? unpack : pack;
    }
    instruction.detail =
        bits >= 64 ? -1 : static_cast<int64_t>((uint64_t(1) << bits) - 1);
    return copy;
  }
  if (op == "cvta") {
    uint64_t window = has(parts, "shared") || has(parts, "shared::cta")
                          ? kSharedWindow
                      : has(parts, "local") ? kLocalWindow
                      : has(parts, "param") ? kParameterWindow
                                            : 0;
    instruction.detail =
        static_cast<int64_t>(has(parts, "to") ? ~window + 1 : window);
    return moveWindow;
  }
  if (op == "mapa")
    return mapAddress;
  return nullptr;
}
