// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All of a slot in one block of host memory: where each buffer of each layer
// is, and which heads of the model it belongs to.

#ifndef GDNRT_STATE_RECORD_H
#define GDNRT_STATE_RECORD_H

#include "gdnrt/narrow_state.h"
#include "gdnrt/state_pool.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace gdnrt {

/// The most ranks, and the most heads of a model.
constexpr int64_t kMostRanks = 1 << 20;

/// Which heads of the whole model a rank has.
struct RankShare {
  int64_t tpSize = 1, tpRank = 0;
  /// Heads of the whole model.
  int64_t keyHeads = 0, valueHeads = 0;

  /// The first head of a rank, and the number of its heads, of `heads` in all.
  /// Ranks that outnumber heads have one each, several the same.
  static std::pair<int64_t, int64_t> rangeOf(int64_t heads, int64_t tpSize,
                                             int64_t tpRank);
  std::pair<int64_t, int64_t> keys() const {
    return rangeOf(keyHeads, tpSize, tpRank);
  }
  std::pair<int64_t, int64_t> values() const {
    return rangeOf(valueHeads, tpSize, tpRank);
  }
};

/// Fails unless heads can be dealt out to the ranks. `what` begins messages.
Status checkShare(const char *what, const RankShare &share);

/// A part of the first axis of a buffer: so many rows for each key head or
/// value head of the rank.
struct RowSection {
  bool isOfKeys = false;
  int64_t rowsPerHead = 1;
};

/// One buffer of a slot.
struct RecordBuffer {
  PoolBuffer kind = PoolBuffer::state;
  DType dtype = DType::f32;
  /// Of a slot as kernels see it, and the distances in the record, in elements.
  /// The elements are dense.
  std::vector<int64_t> sizes, strides;
  std::vector<RowSection> sections;
  /// Bytes to the first layer, and of each layer.
  uint64_t offset = 0, layerBytes = 0;
  /// The buffer of the pool that has the same bytes; -1 if they are made.
  int source = -1;

  int64_t elementBytes() const { return sizeInBytes(dtype); }
  /// Elements of one index of the first axis.
  int64_t rowElements() const;
  /// Whether the elements are in the order of their indices.
  bool isRowMajor() const;
  uint64_t at(int64_t layer) const {
    return offset + static_cast<uint64_t>(layer) * layerBytes;
  }
};

/// Copies rows of a layer at `memory`, in its order, to `rows`, in the order of
/// the indices; or back.
void packRows(const RecordBuffer &buffer, const uint8_t *memory, int64_t first,
              int64_t count, uint8_t *rows);
void unpackRows(const RecordBuffer &buffer, const uint8_t *rows, int64_t first,
                int64_t count, uint8_t *memory);

struct StateRecord {
  /// The buffers of a slot of `pool`, states in `format`. INVALID_ARGUMENT if
  /// the pool's states are not of f32 and `format` is another than theirs.
  static Result<StateRecord> make(const StatePool &pool, StateFormat format);

  std::vector<RecordBuffer> buffers;
  StateFormat format = StateFormat::f32;
  int64_t layers = 0;
  uint64_t bytes = 0;
  /// Whether states are rounded on their way: those of the pool are f32.
  bool isNarrowed = false;

  const RecordBuffer *find(PoolBuffer kind) const;
  /// The state of a layer in a record at `base`.
  NarrowState stateAt(uint8_t *base, int64_t layer) const;
};

/// What the states of the pool are.
StateFormat formatOf(const StatePoolShape &shape);

} // namespace gdnrt

#endif // GDNRT_STATE_RECORD_H
