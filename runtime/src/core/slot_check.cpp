// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An id is live for a pool if it is not negative, not the pool's null slot and
// not past its end. A row that writes a slot must be the only one to touch it:
// without write_slots every live id is written, with them the read of one row
// must not be the write of another.

#include "gdnrt/slot_check.h"

#include "gdnrt/device.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <vector>

using namespace gdnrt;

namespace {

struct Pool {
  std::string name;
  int64_t numSlots;
  int64_t nullSlot;

  bool isLive(int64_t id) const {
    return id >= 0 && id != nullSlot && id < numSlots;
  }
};

/// Bytes from the lowest address of an array to its end, as one block of the
/// host, and where the element of indices 0 is in it.
struct HostCopy {
  std::vector<uint8_t> bytes;
  int64_t offset = 0;
};

Status copyToHost(const ParamSchema &schema, const BoundParam &bound,
                  Device &device, HostCopy &copy) {
  int64_t lowest = 0, highest = 0;
  for (int d = 0; d < schema.rank(); ++d) {
    int64_t reach = (bound.sizes[d] - 1) * bound.strides[d];
    (reach < 0 ? lowest : highest) += reach;
  }
  int64_t width = sizeInBytes(schema.dtype);
  copy.offset = -lowest * width;
  copy.bytes.resize(static_cast<size_t>((highest - lowest + 1) * width));
  return device.read(copy.bytes.data(),
                     static_cast<const uint8_t *>(bound.data) - copy.offset,
                     copy.bytes.size());
}

/// The ids in row-major order, whatever the strides and the width. `data` is
/// where the host can read them.
std::vector<int64_t> readIds(const ParamSchema &schema, const BoundParam &bound,
                             const void *data) {
  std::vector<int64_t> ids;
  int64_t index[kMaxRank] = {};
  for (int d = 0; d < schema.rank(); ++d)
    if (bound.sizes[d] == 0)
      return ids;
  for (;;) {
    int64_t offset = 0;
    for (int d = 0; d < schema.rank(); ++d)
      offset += index[d] * bound.strides[d];
    if (schema.dtype == DType::i32)
      ids.push_back(static_cast<const int32_t *>(data)[offset]);
    else
      ids.push_back(static_cast<const int64_t *>(data)[offset]);
    int d = schema.rank() - 1;
    while (d >= 0 && ++index[d] == bound.sizes[d])
      index[d--] = 0;
    if (d < 0)
      return ids;
  }
}

bool isSlotTensor(const ParamSchema &schema) {
  return schema.kind == ParamKind::tensor &&
         (schema.dtype == DType::i32 || schema.dtype == DType::i64);
}

Status checkWrites(const char *name, const std::vector<int64_t> &ids,
                   const Pool &pool,
                   std::unordered_map<int64_t, size_t> &writerOf) {
  for (size_t row = 0; row < ids.size(); ++row) {
    if (!pool.isLive(ids[row]))
      continue;
    auto [first, isNew] = writerOf.emplace(ids[row], row);
    if (!isNew)
      return invalid(name, ": rows ", first->second, " and ", row,
                     " both write slot ", ids[row], " of ", pool.name);
  }
  return {};
}

Status checkReads(const std::vector<int64_t> &ids, const Pool &pool,
                  const std::unordered_map<int64_t, size_t> &writerOf) {
  for (size_t row = 0; row < ids.size(); ++row) {
    if (!pool.isLive(ids[row]))
      continue;
    auto writer = writerOf.find(ids[row]);
    if (writer != writerOf.end() && writer->second != row)
      return invalid("slots: row ", row, " reads slot ", ids[row], " of ",
                     pool.name, ", which row ", writer->second, " writes");
  }
  return {};
}

} // namespace

Result<SlotReport> gdnrt::checkSlots(const Binding &binding, Device *device) {
  const EntrySchema &entry = binding.entry();
  SlotReport report;
  std::vector<Pool> pools;
  for (size_t p = 0; p < entry.params.size(); ++p)
    if (entry.params[p].kind == ParamKind::pool && binding.params()[p].present)
      pools.push_back({entry.params[p].name, binding.params()[p].sizes[0],
                       binding.params()[p].nullSlot});
  Status failed;
  auto idsOf = [&](const char *name) -> std::optional<std::vector<int64_t>> {
    std::optional<size_t> param = entry.findParam(name);
    if (!param || !isSlotTensor(entry.params[*param]) ||
        !binding.params()[*param].present)
      return std::nullopt;
    const ParamSchema &schema = entry.params[*param];
    const BoundParam &bound = binding.params()[*param];
    if (!device || std::count(bound.sizes, bound.sizes + schema.rank(), 0) != 0)
      return readIds(schema, bound, bound.data);
    HostCopy copy;
    if (Status status = copyToHost(schema, bound, *device, copy);
        !status.isOk()) {
      failed = status;
      return std::nullopt;
    }
    return readIds(schema, bound, copy.bytes.data() + copy.offset);
  };
  auto slots = idsOf("slots");
  auto writeSlots = idsOf("write_slots");
  if (!failed.isOk())
    return failed;
  if (pools.empty() || !slots)
    return report;

  const Pool *smallest = &pools[0];
  for (const Pool &pool : pools) {
    if (pool.numSlots < smallest->numSlots)
      smallest = &pool;
    std::unordered_map<int64_t, size_t> writerOf;
    Status status =
        writeSlots ? checkWrites("write_slots", *writeSlots, pool, writerOf)
                   : checkWrites("slots", *slots, pool, writerOf);
    if (status.isOk() && writeSlots)
      status = checkReads(*slots, pool, writerOf);
    if (!status.isOk())
      return status;
  }
  for (int64_t id : *slots) {
    if (id < 0)
      ++report.skippedNegative;
    else if (id == smallest->nullSlot)
      ++report.skippedNull;
    else if (id >= smallest->numSlots)
      ++report.skippedPastEnd;
    else
      ++report.live;
  }
  return report;
}
