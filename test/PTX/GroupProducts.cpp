// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// wgmma: products of four warps, one side in shared memory by a descriptor. A
// warp makes its 16 rows when the instruction is issued, and its sums are there
// at once; the tile counts as read until the warp waits, so that who writes it
// too early is in a race.

#include "LaneOps.h"
#include "Paths.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

using namespace ptx;

namespace {

/// A tile in shared memory as a descriptor and `transposes` describe it.
struct Tile {
  Tile(uint64_t descriptor, bool isColumnMajor)
      : start((descriptor & 0x3fff) << 4),
        leading((descriptor >> 16 & 0x3fff) << 4),
        stride((descriptor >> 32 & 0x3fff) << 4), isColumnMajor(isColumnMajor) {
    switch (descriptor >> 62) {
    case 1:
      rowBytes = 128;
      break;
    case 2:
      rowBytes = 64;
      break;
    case 3:
      rowBytes = 32;
      break;
    default:
      throw Fault("a descriptor without a swizzle");
    }
  }

  /// Address of the element of column `n` of the product and inner index `k`.
  uint64_t at(unsigned n, unsigned k) const {
    uint64_t linear;
    if (isColumnMajor) { // columns of the product side by side
      unsigned perRow = rowBytes / 2;
      linear = start + n / perRow * leading + n % perRow * 2 + k / 8 * stride +
               k % 8 * rowBytes;
    } else {
      linear = start + n / 8 * stride + n % 8 * rowBytes + 2 * k;
    }
    // Pieces of 16 bytes by the number of the row of 128 bytes.
    return linear ^ ((linear >> 7 & (rowBytes / 16 - 1)) << 4);
  }

  uint64_t start, leading, stride;
  bool isColumnMajor;
  unsigned rowBytes = 0;
};

} // namespace

static float element(uint16_t bits, bool isBFloat) {
  return isBFloat ? toFloat(BFloat{bits}) : toFloat(fromBits<Half>(bits));
}

/// wgmma.mma_async.sync.aligned.m64nNk16.f32.T.T {d}, {a} or descriptor,
/// descriptor, scale-d, signs, transpositions.
static Step multiply(Warp &warp, const Instruction &i, Mask mask) {
  if (mask != kAllLanes)
    return Step::waits;
  unsigned columns = static_cast<unsigned>(i.detail & 0xffff);
  bool isBFloat = i.detail >> 16 & 1;
  unsigned sums = columns / 2;
  bool hasRegisters = i.groups[1] == 4;
  size_t next = sums + (hasRegisters ? 4 : 1);
  auto immediate = [&](size_t index) {
    return static_cast<int64_t>(warp.at(i.operands[index])[0]);
  };
  uint64_t descriptor = warp.at(i.operands[next])[0];
  bool adds = immediate(next + 1) & 1;
  if (immediate(next + 2) != 1 || immediate(next + 3) != 1)
    throw Fault("only products with positive signs are known");
  bool isAColumnMajor = !hasRegisters && immediate(next + 4) == 1;
  bool isBColumnMajor = immediate(next + (hasRegisters ? 4 : 5)) == 1;

  checkRegisters(warp, i, columns, hasRegisters);

  float a[16][16], b[16][256]; // b by inner index and column
  // A descriptor has no rank: it means the block's own memory.
  const uint64_t own = uint64_t(warp.block->rank) << kSharedRankBit;
  warp.exchange();
  const size_t agent =
      warp.block->cluster->agentOf(warp, Cluster::Side::products);
  warp.accessAs(
      warp.sideOf(agent, ++warp.groupTime, kWholeWarp,
                  /*isAsync=*/true),
      [&] {
        // f(n, k, element); eight at a time, which lie side by side in each
        // layout.
        auto read = [&](const Tile &tile, unsigned first, unsigned size,
                        auto f) {
          const bool isColumns = tile.isColumnMajor;
          for (unsigned n = 0; n < size; n += isColumns ? 8 : 1)
            for (unsigned k = 0; k < 16; k += isColumns ? 1 : 8) {
              uint16_t bits[8];
              std::memcpy(bits,
                          warp.resolve(Space::shared,
                                       own | tile.at(first + n, k), 16, 0,
                                       Use::read),
                          16);
              for (unsigned j = 0; j < 8; ++j)
                f(n + (isColumns ? j : 0), k + (isColumns ? 0 : j),
                  element(bits[j], isBFloat));
            }
        };
        read(Tile(descriptor, isBColumnMajor), 0, columns,
             [&](unsigned n, unsigned k, float value) { b[k][n] = value; });
        if (!hasRegisters)
          read(Tile(warp.at(i.operands[sums])[0], isAColumnMajor),
               static_cast<unsigned>(warp.index) % 4 * 16, 16,
               [&](unsigned row, unsigned k, float value) {
                 a[row][k] = value;
               });
      });
  if (hasRegisters)
    for (unsigned lane = 0; lane < kLanes; ++lane)
      for (unsigned part = 0; part < 4; ++part)
        for (unsigned half = 0; half < 2; ++half)
          a[lane / 4 + 8 * (part % 2)][lane % 4 * 2 + half + 8 * (part / 2)] =
              element(
                  static_cast<uint16_t>(
                      warp.at(i.operands[sums + part])[lane] >> (16 * half)),
                  isBFloat);
  float products[16][256] = {};
  for (unsigned row = 0; row < 16; ++row)
    for (unsigned k = 0; k < 16; ++k)
      for (unsigned column = 0; column < columns; ++column)
        products[row][column] += a[row][k] * b[k][column];
  warp.sums.resize(warp.values.size());
  for (unsigned at = 0; at < sums; ++at) {
    warp.sums[static_cast<size_t>(i.operands[at].value)] = {warp.groupTime,
                                                            i.line};
    Lanes &to = warp.at(i.operands[at]);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      unsigned row = lane / 4 + 8 * (at / 2 % 2);
      unsigned column = at / 4 * 8 + lane % 4 * 2 + at % 2;
      float sum = products[row][column];
      to[lane] = toBits(adds ? fromBits<float>(to[lane]) + sum : sum);
    }
  }
  return Step::next;
}

static Step fence(Warp &warp, const Instruction &, Mask mask) {
  if (mask != kAllLanes)
    return Step::waits;
  warp.registerFences.push_back(warp.edge);
  return Step::next;
}

/// Products up to the last group but n are done, and their tiles are free.
static Step waitForProducts(Warp &warp, const Instruction &i, Mask mask) {
  if (mask != kAllLanes)
    return Step::waits;
  size_t left = static_cast<size_t>(warp.at(i.operands[0])[0]);
  std::vector<uint32_t> &ends = warp.groupEnds;
  if (ends.size() > left) {
    size_t done = ends.size() - left;
    warp.groupDone = ends[done - 1];
    warp.learnEnd(warp.block->cluster->agentOf(warp, Cluster::Side::products),
                  ends[done - 1], /*isAsync=*/true, mask);
    ends.erase(ends.begin(), ends.begin() + static_cast<ptrdiff_t>(done));
  }
  return Step::next;
}

static Step commitProducts(Warp &warp, const Instruction &, Mask mask) {
  if (mask != kAllLanes)
    return Step::waits;
  warp.groupEnds.push_back(warp.groupTime);
  if (Paths *paths = Paths::current)
    paths->commit(warp.block->cluster->agentOf(warp, Cluster::Side::products),
                  warp.groupTime);
  return Step::next;
}

Execute ptx::findGroupProduct(const Parts &parts, Instruction &instruction) {
  if (parts[0] != "wgmma")
    return nullptr;
  if (parts[1] == "fence")
    return fence;
  if (parts[1] == "commit_group")
    return commitProducts;
  if (parts[1] == "wait_group")
    return waitForProducts;
  if (parts[1] != "mma_async" || parts.size() != 8 || parts[5] != "f32" ||
      parts[6] != parts[7] || (parts[6] != "bf16" && parts[6] != "f16"))
    return nullptr;
  // As in m64n128k16.
  const std::string &shape = parts[4];
  if (shape.rfind("m64n", 0) != 0)
    return nullptr;
  unsigned columns = 0;
  auto [rest, error] =
      std::from_chars(shape.data() + 4, shape.data() + shape.size(), columns);
  if (error != std::errc() || std::string(rest) != "k16" || columns % 8 ||
      columns > 256 || instruction.groups[0] != static_cast<int>(columns / 2))
    return nullptr;
  instruction.isProduct = true;
  instruction.detail = columns | (parts[6] == "bf16" ? 1 << 16 : 0);
  return multiply;
}
