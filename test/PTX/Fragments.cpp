// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrices whose elements lie in the lanes of a warp: ldmatrix, stmatrix,
// movmatrix and mma.sync. Products are summed in f32 in the order of k.

#include "LaneOps.h"

using namespace ptx;

/// ldmatrix.sync.aligned.m8n8.x4[.trans].shared.b16 {d...}, [address]
template <bool transposes, bool stores>
static Step moveTiles(Warp &warp, const Instruction &i, Mask mask) {
  if (!allHere(warp, mask) || mask != kAllLanes)
    return Step::waits;
  unsigned count = static_cast<unsigned>(i.operands.size() - 1);
  const Operand &place = i.operands[stores ? 0 : count];
  if (!stores)
    warp.beginLoad(i, count);
  char *rows[32];
  for (unsigned row = 0; row < 8 * count; ++row) {
    uint64_t address =
        warp.at(place)[row] + static_cast<uint64_t>(place.offset);
    // All lanes have something of each row.
    rows[row] = warp.resolve(Space::shared, address & 0xffffffff, 16,
                             kWholeWarp, stores ? Use::write : Use::read);
  }
  for (unsigned tile = 0; tile < count; ++tile) {
    Lanes &values = warp.at(i.operands[tile + (stores ? 1 : 0)]);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      uint64_t word = 0;
      for (unsigned half = 0; half < 2; ++half) {
        unsigned row = lane / 4, column = lane % 4 * 2 + half;
        if (transposes)
          std::swap(row, column);
        char *element = rows[tile * 8 + row] + 2 * column;
        uint16_t bits = static_cast<uint16_t>(values[lane] >> (16 * half));
        if (stores)
          std::memcpy(element, &bits, 2);
        else
          std::memcpy(&bits, element, 2);
        word |= uint64_t(bits) << (16 * half);
      }
      if (!stores)
        values[lane] = word;
    }
  }
  return Step::next;
}

/// movmatrix: the transpose of an 8 x 8 fragment.
static Step transpose(Warp &warp, const Instruction &i, Mask mask) {
  if (mask != kAllLanes)
    return Step::waits;
  const Lanes from = warp.at(i.operands[1]);
  Lanes &to = warp.at(i.operands[0]);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    to[lane] = 0;
    for (unsigned half = 0; half < 2; ++half) {
      unsigned row = lane % 4 * 2 + half, column = lane / 4;
      uint64_t word = from[row * 4 + column / 2];
      to[lane] |= ((word >> (16 * (column % 2))) & 0xffff) << (16 * half);
    }
  }
  return Step::next;
}

static float element(uint64_t word, unsigned half, char type) {
  uint16_t bits = static_cast<uint16_t>(word >> (16 * half));
  return type == 'b' ? toFloat(BFloat{bits}) : toFloat(fromBits<Half>(bits));
}

/// mma.sync.aligned.m16n8k16 and m16n8k8 of f16 or bf16, sums in f32.
template <unsigned depth>
static Step multiply(Warp &warp, const Instruction &i, Mask mask) {
  if (mask != kAllLanes)
    return Step::waits;
  warp.exchange();
  constexpr unsigned numA = depth / 4, numB = depth / 8;
  char type = static_cast<char>(i.detail);
  float a[16][depth], b[8][depth];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    unsigned group = lane / 4, pair = lane % 4 * 2;
    for (unsigned half = 0; half < 2; ++half) {
      for (unsigned k = 0; k < numA; ++k)
        a[group + 8 * (k % 2)][pair + half + 8 * (k / 2)] =
            element(warp.at(i.operands[4 + k])[lane], half, type);
      for (unsigned k = 0; k < numB; ++k)
        b[group][pair + half + 8 * k] =
            element(warp.at(i.operands[4 + numA + k])[lane], half, type);
    }
  }
  for (unsigned k = 0; k < 4; ++k) {
    Lanes &to = warp.at(i.operands[k]);
    const Lanes &add = warp.at(i.operands[4 + numA + numB + k]);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      unsigned row = lane / 4 + 8 * (k / 2), column = lane % 4 * 2 + k % 2;
      float sum = 0;
      for (unsigned inner = 0; inner < depth; ++inner)
        sum += a[row][inner] * b[column][inner];
      to[lane] = toBits(fromBits<float>(add[lane]) + sum);
    }
  }
  return Step::next;
}

/// mma.sync.aligned.m16n8k8 of tf32, which has the upper 19 bits of a word;
/// sums in f32.
static Step multiplyTf32(Warp &warp, const Instruction &i, Mask mask) {
  if (mask != kAllLanes)
    return Step::waits;
  warp.exchange();
  auto value = [&](unsigned operand, unsigned lane) {
    return fromBits<float>(warp.at(i.operands[operand])[lane] & 0xffffe000);
  };
  float a[16][8], b[8][8];
  for (unsigned lane = 0; lane < kLanes; ++lane)
    for (unsigned k = 0; k < 4; ++k) {
      a[lane / 4 + 8 * (k % 2)][lane % 4 + 4 * (k / 2)] = value(4 + k, lane);
      if (k < 2)
        b[lane / 4][lane % 4 + 4 * k] = value(8 + k, lane);
    }
  for (unsigned k = 0; k < 4; ++k) {
    Lanes &to = warp.at(i.operands[k]);
    const Lanes &add = warp.at(i.operands[10 + k]);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      unsigned row = lane / 4 + 8 * (k / 2), column = lane % 4 * 2 + k % 2;
      float sum = 0;
      for (unsigned inner = 0; inner < 8; ++inner)
        sum += a[row][inner] * b[column][inner];
      to[lane] = toBits(fromBits<float>(add[lane]) + sum);
    }
  }
  return Step::next;
}

/// mma.sync.aligned.m16n8k32 of u8 or s8 with s8, sums in s32.
template <typename Left>
static Step multiplyBytes(Warp &warp, const Instruction &i, Mask mask) {
  if (mask != kAllLanes)
    return Step::waits;
  warp.exchange();
  auto byte = [&](unsigned operand, unsigned lane, unsigned at) {
    return static_cast<uint8_t>(warp.at(i.operands[operand])[lane] >> (8 * at));
  };
  int32_t a[16][32], b[8][32];
  for (unsigned lane = 0; lane < kLanes; ++lane)
    for (unsigned at = 0; at < 4; ++at) {
      unsigned inner = lane % 4 * 4 + at;
      for (unsigned k = 0; k < 4; ++k)
        a[lane / 4 + 8 * (k % 2)][inner + 16 * (k / 2)] =
            static_cast<Left>(byte(4 + k, lane, at));
      for (unsigned k = 0; k < 2; ++k)
        b[lane / 4][inner + 16 * k] =
            static_cast<int8_t>(byte(8 + k, lane, at));
    }
  for (unsigned k = 0; k < 4; ++k) {
    Lanes &to = warp.at(i.operands[k]);
    const Lanes &add = warp.at(i.operands[10 + k]);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      unsigned row = lane / 4 + 8 * (k / 2), column = lane % 4 * 2 + k % 2;
      auto sum = static_cast<uint32_t>(add[lane]);
      for (unsigned inner = 0; inner < 32; ++inner)
        sum += static_cast<uint32_t>(a[row][inner] * b[column][inner]);
      to[lane] = sum;
    }
  }
  return Step::next;
}

Execute ptx::findFragmentOp(const Parts &parts, Instruction &instruction) {
  const std::string &op = parts[0];
  bool transposes = has(parts, "trans");
  if (op == "ldmatrix" && has(parts, "m8n8") && parts.back() == "b16")
    return transposes ? moveTiles<true, false> : moveTiles<false, false>;
  if (op == "stmatrix" && has(parts, "m8n8") && parts.back() == "b16")
    return transposes ? moveTiles<true, true> : moveTiles<false, true>;
  if (op == "movmatrix")
    return transpose;
  if (op == "mma" && has(parts, "m16n8k8") && has(parts, "row") &&
      has(parts, "col") && parts[parts.size() - 4] == "f32" &&
      parts[parts.size() - 3] == "tf32" && parts[parts.size() - 2] == "tf32" &&
      parts.back() == "f32")
    return multiplyTf32;
  if (op == "mma" && has(parts, "m16n8k32") && has(parts, "row") &&
      has(parts, "col") && parts[parts.size() - 4] == "s32" &&
      parts[parts.size() - 2] == "s8" && parts.back() == "s32") {
    if (parts[parts.size() - 3] == "u8")
      return multiplyBytes<uint8_t>;
    if (parts[parts.size() - 3] == "s8")
      return multiplyBytes<int8_t>;
  }
  if (op == "mma" && has(parts, "row") && has(parts, "col") &&
      parts[parts.size() - 4] == "f32" && parts.back() == "f32" &&
      parts[parts.size() - 3] == parts[parts.size() - 2] &&
      (has(parts, "bf16") || has(parts, "f16"))) {
    instruction.detail = has(parts, "bf16") ? int64_t{'b'} : int64_t{'h'};
    if (has(parts, "m16n8k16"))
      return multiply<16>;
    if (has(parts, "m16n8k8"))
      return multiply<8>;
  }
  return nullptr;
}
