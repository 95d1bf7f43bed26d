// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bulk copies of boxes through maps that lie among a kernel's parameters.

#include "LaneOps.h"
#include "TensorMap.h"

using namespace ptx;

/// The map at a generic address, or at a place in the parameters.
static TensorMap mapAt(Warp &warp, uint64_t address, unsigned lane) {
  const Launch &launch = warp.block->cluster->launch;
  uint64_t offset = address >> 48 ? address - kParameterWindow : address;
  const Parameter *owner = nullptr;
  for (const Parameter &parameter : launch.kernel->parameters)
    if (offset >= parameter.offset &&
        offset - parameter.offset < parameter.bytes)
      owner = &parameter;
  if (!owner)
    throw Fault("a tensor map outside of the parameters");
  if (owner->align % 64)
    throw Fault("a tensor map in a parameter that is aligned to " +
                std::to_string(owner->align) + " bytes, and not to 64");
  TensorMap map;
  for (unsigned half = 0; half < 2; ++half)
    std::memcpy(reinterpret_cast<char *>(&map) + half * 64,
                warp.resolve(Space::parameter, offset + half * 64, 64,
                             static_cast<int>(lane), Use::read),
                64);
  if (map.magic != TensorMap::kMagic)
    throw Fault("no tensor map at byte " + std::to_string(offset) +
                " of the parameters");
  return map;
}

namespace {
/// A box: which row of 128 bytes comes next, and where it is in memory.
struct BoxRows {
  BoxRows(const TensorMap &map, const int64_t *begin)
      : map(map), begin(begin) {}

  /// The address of the row's first element, whose own coordinate is not
  /// counted; whether the other coordinates are within the array.
  bool find(uint64_t &address) const {
    address = map.address;
    bool isInside = true;
    for (uint32_t d = 1; d < map.rank; ++d) {
      int64_t at = begin[d] + at_[d];
      isInside &= at >= 0 && static_cast<uint64_t>(at) < map.sizes[d];
      address += static_cast<uint64_t>(at) * map.strides[d];
    }
    return isInside;
  }
  /// The next row, those of dimension 1 first; false behind the last one.
  bool advance() {
    for (uint32_t d = 1; d < map.rank; ++d) {
      if (++at_[d] < map.box[d])
        return true;
      at_[d] = 0;
    }
    return false;
  }

  const TensorMap &map;
  const int64_t *begin;

private:
  uint32_t at_[TensorMap::kMostRank] = {};
};
} // namespace

/// cp.async.bulk.tensor [to], [map, {coordinates}], [barrier], or where it
/// stores [map, {coordinates}], [from].
template <bool stores>
static Step copyBox(Warp &warp, const Instruction &i, Mask mask) {
  constexpr unsigned kChunk = 16, kElement = TensorMap::kElementBytes;
  uint32_t rank = static_cast<uint32_t>(i.detail);
  Cluster &cluster = *warp.block->cluster;
  forLanes(mask, [&](unsigned l) {
    auto address = [&](const Operand &operand) {
      return warp.at(operand)[l] + static_cast<uint64_t>(operand.offset);
    };
    const size_t mapAt0 = stores ? 0 : 1;
    TensorMap map = mapAt(warp, address(i.operands[mapAt0]), l);
    if (map.rank != rank)
      throw Fault("a tensor map of " + std::to_string(map.rank) +
                  " dimensions");
    uint64_t shared = address(i.operands[stores ? 1 + rank : 0]);
    if (shared % TensorMap::kPieceBytes)
      throw Fault("a box lies at an address that is not a multiple of 128");
    int64_t begin[TensorMap::kMostRank];
    for (uint32_t d = 0; d < rank; ++d)
      begin[d] = static_cast<int32_t>(warp.at(i.operands[mapAt0 + 1 + d])[l]);

    BulkCopy copy;
    if (stores)
      beginBulkStore(warp, copy, l);
    else
      beginBulkCopy(warp, copy, address(i.operands[2 + rank]), l);
    const Access side = warp.sideOf(copy.agent, copy.time, l, /*isAsync=*/true);
    auto access = [&](Space space, uint64_t place, unsigned bytes, Use use) {
      if (space == Space::shared && place >> 48)
        space = Space::generic;
      char *found = nullptr;
      warp.accessAs(side, [&] {
        found = warp.resolve(space, place, bytes, static_cast<int>(l), use);
      });
      return found;
    };
    BoxRows rows(map, begin);
    auto isInside = [&](int64_t column) {
      return column >= 0 && static_cast<uint64_t>(column) < map.sizes[0];
    };
    do {
      uint64_t row = 0;
      bool hasRow = rows.find(row);
      for (unsigned byte = 0; byte < TensorMap::kPieceBytes; byte += kChunk) {
        // The swizzle goes by addresses: bits 7 to 9 change bits 4 to 6.
        uint64_t place = (shared + byte) ^ (shared >> 3 & 0x70);
        char *near = access(Space::shared, place, kChunk,
                            stores ? Use::read : Use::write);
        auto add = [&](unsigned offset, bool hasData, unsigned bytes) {
          char *far = nullptr;
          if (hasData)
            far = access(Space::global,
                         row + static_cast<uint64_t>(begin[0]) * kElement +
                             byte + offset,
                         bytes, stores ? Use::write : Use::read);
          if (!stores)
            copy.pieces.push_back({near + offset, far, bytes});
          else if (far)
            copy.pieces.push_back({far, near + offset, bytes});
        };
        int64_t first = begin[0] + byte / kElement,
                last = first + kChunk / kElement - 1;
        if (!hasRow || !(isInside(first) || isInside(last))) {
          add(0, false, kChunk);
        } else if (isInside(first) && isInside(last) && begin[0] % 8 == 0) {
          add(0, true, kChunk);
        } else {
          for (unsigned e = 0; e < kChunk / kElement; ++e)
            add(e * kElement, isInside(first + e), kElement);
        }
      }
      shared += TensorMap::kPieceBytes;
    } while (rows.advance());
    cluster.bulk.push_back(std::move(copy));
  });
  return Step::next;
}

Execute ptx::findTensorCopy(const Parts &parts, Instruction &instruction) {
  // cp.async.bulk.tensor.4d.shared::cluster.global{.tile}.mbarrier...
  // cp.async.bulk.tensor.4d.global.shared::cta{.tile}.bulk_group
  if (parts.size() < 8 || parts.size() > 9 ||
      (parts.size() == 9 && parts[7] != "tile"))
    return nullptr;
  const bool stores = parts[5] == "global" && parts[6] == "shared::cta" &&
                      parts.back() == "bulk_group";
  if (!stores &&
      (parts[5].compare(0, 6, "shared") != 0 || parts[6] != "global" ||
       parts.back() != "mbarrier::complete_tx::bytes"))
    return nullptr;
  const std::string &rank = parts[4];
  if (rank != "3d" && rank != "4d" && rank != "5d")
    return nullptr;
  instruction.detail = rank[0] - '0';
  if (instruction.operands.size() !=
      (stores ? 2u : 3u) + static_cast<size_t>(instruction.detail))
    return nullptr;
  return stores ? copyBox<true> : copyBox<false>;
}
