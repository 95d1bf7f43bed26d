// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A record has the buffers of a pool one after another, each at a cache line.

#include "gdnrt/state_record.h"

#include <algorithm>
#include <cstring>

using namespace gdnrt;

std::pair<int64_t, int64_t> RankShare::rangeOf(int64_t heads, int64_t tpSize,
                                               int64_t tpRank) {
  if (heads >= tpSize)
    return {tpRank * (heads / tpSize), heads / tpSize};
  return {tpRank / (tpSize / heads), 1};
}

Status gdnrt::checkShare(const char *what, const RankShare &share) {
  for (auto [name, value] : {std::pair("tp_size", share.tpSize),
                             {"total_key_heads", share.keyHeads},
                             {"total_value_heads", share.valueHeads}})
    if (value < 1 || value > kMostRanks)
      return invalid(what, ": ", name, ": expected 1 to ", kMostRanks, ", got ",
                     value);
  if (share.tpRank < 0 || share.tpRank >= share.tpSize)
    return invalid(what, ": tp_rank: expected 0 to ", share.tpSize - 1,
                   ", got ", share.tpRank);
  if (share.valueHeads % share.keyHeads != 0)
    return invalid(what, ": total_value_heads: expected a multiple of ",
                   share.keyHeads, ", the key heads, got ", share.valueHeads);
  if (share.valueHeads % share.tpSize != 0)
    return invalid(what, ": total_value_heads: expected a multiple of ",
                   share.tpSize, ", the ranks, got ", share.valueHeads);
  if (share.keyHeads % share.tpSize != 0 && share.tpSize % share.keyHeads != 0)
    return invalid(what,
                   ": total_key_heads: expected a multiple or a divisor "
                   "of ",
                   share.tpSize, ", the ranks, got ", share.keyHeads);
  return {};
}

int64_t RecordBuffer::rowElements() const {
  int64_t elements = 1;
  for (size_t d = 1; d < sizes.size(); ++d)
    elements *= sizes[d];
  return elements;
}

bool RecordBuffer::isRowMajor() const {
  int64_t dense = 1;
  for (size_t d = sizes.size(); d-- > 0; dense *= sizes[d])
    if (sizes[d] != 1 && strides[d] != dense)
      return false;
  return true;
}

/// Calls `visit` with the offsets of each element in rows and in memory.
template <typename Visit>
static void forEachElement(const RecordBuffer &buffer, int64_t first,
                           int64_t count, Visit &&visit) {
  std::vector<int64_t> index(buffer.sizes.size());
  const int64_t bytes = buffer.elementBytes();
  const int64_t elements = count * buffer.rowElements();
  index[0] = first;
  for (int64_t i = 0; i < elements; ++i) {
    int64_t offset = 0;
    for (size_t d = 0; d < index.size(); ++d)
      offset += index[d] * buffer.strides[d];
    visit(i * bytes, offset * bytes, static_cast<size_t>(bytes));
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < buffer.sizes[d] || d == 0)
        break;
      index[d] = 0;
    }
  }
}

void gdnrt::packRows(const RecordBuffer &buffer, const uint8_t *memory,
                     int64_t first, int64_t count, uint8_t *rows) {
  const int64_t rowBytes = buffer.rowElements() * buffer.elementBytes();
  if (buffer.isRowMajor())
    std::memcpy(rows, memory + first * rowBytes,
                static_cast<size_t>(count * rowBytes));
  else
    forEachElement(buffer, first, count,
                   [&](int64_t row, int64_t offset, size_t bytes) {
                     std::memcpy(rows + row, memory + offset, bytes);
                   });
}

void gdnrt::unpackRows(const RecordBuffer &buffer, const uint8_t *rows,
                       int64_t first, int64_t count, uint8_t *memory) {
  const int64_t rowBytes = buffer.rowElements() * buffer.elementBytes();
  if (buffer.isRowMajor())
    std::memcpy(memory + first * rowBytes, rows,
                static_cast<size_t>(count * rowBytes));
  else
    forEachElement(buffer, first, count,
                   [&](int64_t row, int64_t offset, size_t bytes) {
                     std::memcpy(memory + offset, rows + row, bytes);
                   });
}

StateFormat gdnrt::formatOf(const StatePoolShape &shape) {
  if (shape.statePlanes > 0)
    return shape.statePlanes == 2 ? StateFormat::i8x2 : StateFormat::i8;
  return shape.stateDType == DType::bf16  ? StateFormat::bf16
         : shape.stateDType == DType::f16 ? StateFormat::f16
                                          : StateFormat::f32;
}

static std::vector<RowSection> sectionsOf(PoolBuffer kind,
                                          const StatePoolShape &shape) {
  switch (kind) {
  case PoolBuffer::conv:
  case PoolBuffer::convHistory:
    return {
        {true, shape.keyDim}, {true, shape.keyDim}, {false, shape.valueDim}};
  case PoolBuffer::pendingKeys:
  case PoolBuffer::pendingCounts:
    return {{true, 1}};
  default:
    return {{false, 1}};
  }
}

const RecordBuffer *StateRecord::find(PoolBuffer kind) const {
  for (const RecordBuffer &buffer : buffers)
    if (buffer.kind == kind)
      return &buffer;
  return nullptr;
}

NarrowState StateRecord::stateAt(uint8_t *base, int64_t layer) const {
  auto at = [&](PoolBuffer kind) -> uint8_t * {
    const RecordBuffer *buffer = find(kind);
    return buffer ? base + buffer->at(layer) : nullptr;
  };
  NarrowState state;
  state.elements = at(PoolBuffer::state);
  state.scales = reinterpret_cast<float *>(at(PoolBuffer::stateScales));
  state.low = at(PoolBuffer::stateLow);
  return state;
}

Result<StateRecord> StateRecord::make(const StatePool &pool,
                                      StateFormat format) {
  const StatePoolShape &shape = pool.shape();
  const StateFormat given = formatOf(shape);
  StateRecord record;
  record.format = format;
  record.layers = shape.numLayers;
  record.isNarrowed = format != given;
  if (record.isNarrowed && given != StateFormat::f32)
    return invalid("host_tier: format: expected ", toString(given),
                   ", that of the pool, as only states of f32 are rounded, "
                   "got ",
                   toString(format));
  auto add = [&](RecordBuffer buffer) {
    constexpr uint64_t line = 64;
    uint64_t elements = 1;
    for (int64_t size : buffer.sizes)
      elements *= static_cast<uint64_t>(size);
    buffer.sections = sectionsOf(buffer.kind, shape);
    buffer.offset = (record.bytes + line - 1) / line * line;
    buffer.layerBytes = elements * static_cast<uint64_t>(buffer.elementBytes());
    record.bytes = buffer.offset +
                   buffer.layerBytes * static_cast<uint64_t>(record.layers);
    record.buffers.push_back(std::move(buffer));
  };
  for (size_t i = 0; i < pool.buffers().size(); ++i) {
    const SlotBuffer &source = pool.buffers()[i];
    RecordBuffer buffer;
    buffer.kind = pool.kinds()[i];
    buffer.dtype = source.dtype;
    buffer.sizes.assign(source.sizes.begin() + 1, source.sizes.end());
    buffer.strides.assign(source.strides.begin() + 1, source.strides.end());
    buffer.source = static_cast<int>(i);
    if (buffer.kind == PoolBuffer::state && record.isNarrowed) {
      buffer.source = -1;
      buffer.dtype = format == StateFormat::bf16  ? DType::bf16
                     : format == StateFormat::f16 ? DType::f16
                                                  : DType::u8;
      if (planesOf(format) > 0 && !buffer.isRowMajor())
        return invalid(
            "host_tier: format: expected states [Hv, dv, dk] in that "
            "order in memory for planes, got another order");
    }
    add(std::move(buffer));
  }
  if (!record.isNarrowed || planesOf(format) == 0)
    return record;
  RecordBuffer planes = record.buffers[0];
  if (planesOf(format) == 2) {
    planes.kind = PoolBuffer::stateLow;
    add(planes);
  }
  planes.kind = PoolBuffer::stateScales;
  planes.dtype = DType::f32;
  planes.sizes.pop_back();
  planes.strides = {shape.valueDim, 1};
  add(std::move(planes));
  return record;
}
