// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An id is live for a pool if it is not negative, not the pool's null slot and
// not past its end. A row that writes a slot must be the only one to touch it:
// without write_slots every live id is written, with them the read of one row
// must not be the write of another; a row whose slot is skipped writes none,
// and in an entry that only moves slots one whose write slot is skipped reads
// none. A checkpoint that writes has a slot that nothing else reads or writes.
// With token_slots a row writes one slot after each of its tokens, and reads
// the one after its last accepted token; with parents it may not write the slot
// that it reads. A row without tokens, or of another entry in a mixed batch,
// has no slots: what its elements say may be stale. Starts of rows are in order
// and within the tokens.

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
  /// True if its slots are those of states after tokens, not those of rows.
  bool isOfTokens() const { return name.rfind("token_", 0) == 0; }
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
    if (schema.dtype == DType::i1)
      ids.push_back(static_cast<const uint8_t *>(data)[offset]);
    else if (schema.dtype == DType::i32)
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

/// Of ids, counts or flags.
bool isIntegerTensor(const ParamSchema &schema) {
  return schema.kind == ParamKind::tensor &&
         (schema.dtype == DType::i32 || schema.dtype == DType::i64 ||
          schema.dtype == DType::i1);
}

/// Starts of sequences are in order, and none is behind the last of `tokens`.
Status checkStarts(const std::vector<int64_t> &starts, int64_t tokens) {
  for (size_t n = 0; n < starts.size(); ++n) {
    const int64_t least = n == 0 ? 0 : starts[n - 1];
    if (starts[n] < least || starts[n] > tokens)
      return invalid("cu_seqlens: expected element ", n, " from ", least,
                     " to ", tokens, ", got ", starts[n]);
  }
  return {};
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
                  const std::unordered_map<int64_t, size_t> &writerOf,
                  bool hasParents) {
  for (size_t row = 0; row < ids.size(); ++row) {
    if (!pool.isLive(ids[row]))
      continue;
    auto writer = writerOf.find(ids[row]);
    if (writer != writerOf.end() && writer->second != row)
      return invalid("slots: row ", row, " reads slot ", ids[row], " of ",
                     pool.name, ", which row ", writer->second, " writes");
    if (writer != writerOf.end() && hasParents)
      return invalid("slots: row ", row, " reads slot ", ids[row], " of ",
                     pool.name, ", which it also writes, and has parents");
  }
  return {};
}

/// The slots of states after every token, `steps` for each row.
struct TokenSlots {
  std::vector<int64_t> table;
  size_t steps = 0;
  std::vector<int64_t> lengths; ///< tokens of each row

  /// What row `row` reads: its slot after `accepted` tokens, or -1.
  int64_t after(size_t row, int64_t accepted) const {
    if (accepted < 1 || accepted > static_cast<int64_t>(steps))
      return -1;
    const size_t at = row * steps + static_cast<size_t>(accepted - 1);
    return at < table.size() ? table[at] : -1;
  }
};

/// Fills `writerOf` with the rows that write each slot of `pool`; rows run if
/// their slot in `rowPool` is live.
Status checkTokenWrites(const TokenSlots &tokens,
                        const std::vector<int64_t> &slots, const Pool &rowPool,
                        const Pool &pool,
                        std::unordered_map<int64_t, size_t> &writerOf) {
  for (size_t row = 0; row < slots.size() && row < tokens.lengths.size();
       ++row) {
    if (!rowPool.isLive(slots[row]))
      continue;
    const int64_t length = std::clamp<int64_t>(
        tokens.lengths[row], 0, static_cast<int64_t>(tokens.steps));
    for (int64_t t = 1; t <= length; ++t) {
      const int64_t id = tokens.after(row, t);
      if (!pool.isLive(id))
        continue;
      auto [first, isNew] = writerOf.emplace(id, row);
      if (!isNew)
        return invalid("token_slots: rows ", first->second, " and ", row,
                       " both write slot ", id, " of ", pool.name);
    }
  }
  return {};
}

/// The integers that say where states inside rows go; see the page on slots.
struct Checkpoints {
  std::vector<int64_t> rowBounds; ///< cu_seqlens
  std::vector<int64_t> bounds, tokens, slots;
};

/// `writerOf` has the rows that write each slot, and stays as it is.
Status checkCheckpoints(const Checkpoints &checkpoints,
                        const std::vector<int64_t> &slots, const Pool &pool,
                        const std::unordered_map<int64_t, size_t> &writerOf) {
  std::unordered_map<int64_t, size_t> readerOf, first;
  for (size_t row = 0; row < slots.size(); ++row)
    readerOf.emplace(slots[row], row);
  const auto count = static_cast<int64_t>(
      std::min(checkpoints.tokens.size(), checkpoints.slots.size()));
  const size_t rows = std::min({slots.size() + 1, checkpoints.bounds.size(),
                                checkpoints.rowBounds.size()});
  for (size_t row = 0; row + 1 < rows; ++row) {
    if (!pool.isLive(slots[row]))
      continue;
    const int64_t length =
        checkpoints.rowBounds[row + 1] - checkpoints.rowBounds[row];
    int64_t last = 0; // counts rise
    int64_t from = std::clamp<int64_t>(checkpoints.bounds[row], 0, count);
    int64_t to = std::clamp(checkpoints.bounds[row + 1], from, count);
    for (auto c = static_cast<size_t>(from); c < static_cast<size_t>(to); ++c) {
      const int64_t tokens = checkpoints.tokens[c];
      const int64_t id = checkpoints.slots[c];
      if (tokens <= last || tokens > length || tokens % 64 != 0)
        continue;
      last = tokens;
      if (!pool.isLive(id))
        continue;
      auto [other, isNew] = first.emplace(id, c);
      if (!isNew)
        return invalid("checkpoint_slots: checkpoints ", other->second, " and ",
                       c, " both write slot ", id, " of ", pool.name);
      auto writer = writerOf.find(id);
      if (writer != writerOf.end())
        return invalid("checkpoint_slots: checkpoint ", c, " writes slot ", id,
                       " of ", pool.name, ", which row ", writer->second,
                       " writes");
      auto reader = readerOf.find(id);
      if (reader != readerOf.end())
        return invalid("checkpoint_slots: checkpoint ", c, " writes slot ", id,
                       " of ", pool.name, ", which row ", reader->second,
                       " reads");
    }
  }
  return {};
}

/// Tokens that can be pending in a pool, its dimension 2.
int64_t stepsOf(const Binding &binding, const char *pool) {
  std::optional<size_t> param = binding.entry().findParam(pool);
  return param && binding.params()[*param].present
             ? binding.params()[*param].sizes[2]
             : INT64_MAX;
}

/// Rows whose count is not from 0 to `steps` have no slot.
void skipUncounted(std::vector<int64_t> &slots,
                   const std::vector<int64_t> &accepted, int64_t steps) {
  for (size_t row = 0; row < slots.size() && row < accepted.size(); ++row)
    if (accepted[row] < 0 || accepted[row] > steps)
      slots[row] = -1;
}

/// Rows of verify that have no tokens, or that prefill takes, have no slot.
void skipUntaken(std::vector<int64_t> &slots,
                 const std::vector<int64_t> &lengths,
                 const std::vector<int64_t> &isPrefill) {
  for (size_t row = 0; row < slots.size(); ++row)
    if ((row < lengths.size() && lengths[row] <= 0) ||
        (row < isPrefill.size() && isPrefill[row] != 0))
      slots[row] = -1;
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
    if (!param || !isIntegerTensor(entry.params[*param]) ||
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
  auto orNone = [&](const char *name) {
    return idsOf(name).value_or(std::vector<int64_t>());
  };
  TokenSlots tokenSlots;
  auto table = idsOf("token_slots");
  if (table) {
    const size_t param = *entry.findParam("token_slots");
    if (entry.params[param].rank() == 2)
      tokenSlots.steps = static_cast<size_t>(binding.params()[param].sizes[1]);
    tokenSlots.table = std::move(*table);
    const std::vector<int64_t> bounds = orNone("cu_seqlens");
    for (size_t row = 0; row + 1 < bounds.size(); ++row)
      tokenSlots.lengths.push_back(bounds[row + 1] - bounds[row]);
    if (auto accepted = idsOf("num_accepted"); accepted && !slots) {
      slots.emplace();
      for (size_t row = 0; row < accepted->size(); ++row)
        slots->push_back(tokenSlots.after(row, (*accepted)[row]));
    }
  }
  if (auto accepted = idsOf("num_accepted"); accepted && slots && !table)
    skipUncounted(*slots, *accepted, stepsOf(binding, "pending_keys"));
  if (table && slots)
    skipUntaken(*slots, tokenSlots.lengths, orNone("is_prefill"));
  if (auto tokens = entry.findSymbol("T"))
    if (Status status =
            checkStarts(orNone("cu_seqlens"), binding.symbol(*tokens));
        !status.isOk())
      return status;
  if (!failed.isOk())
    return failed;
  if (pools.empty() || !slots)
    return report;
  // Rows' own pools first: they say which rows run.
  std::stable_sort(pools.begin(), pools.end(),
                   [](const Pool &a, const Pool &b) {
                     return a.isOfTokens() < b.isOfTokens();
                   });
  const bool hasTokenPools = pools.back().isOfTokens();
  const Checkpoints checkpoints = {
      orNone("cu_seqlens"), orNone("cu_checkpoints"),
      orNone("checkpoint_tokens"), orNone("checkpoint_slots")};

  const bool hasParents = entry.findParam("parents").has_value();
  const bool movesOnly = std::none_of(
      entry.params.begin(), entry.params.end(), [](const ParamSchema &param) {
        return param.kind == ParamKind::tensor && param.isWritten();
      });
  const Pool *smallest = &pools[0];
  for (const Pool &pool : pools) {
    std::unordered_map<int64_t, size_t> writerOf;
    if (pool.isOfTokens()) {
      Status status =
          checkTokenWrites(tokenSlots, *slots, *smallest, pool, writerOf);
      if (!status.isOk())
        return status;
      continue;
    }
    if (pool.numSlots < smallest->numSlots)
      smallest = &pool;
    // Beside pools for states after tokens only a commit, which has no row
    // bounds, writes here.
    if (hasTokenPools && !tokenSlots.lengths.empty())
      continue;
    std::vector<int64_t> reads = *slots, writes = writeSlots.value_or(reads);
    for (size_t row = 0; row < std::min(reads.size(), writes.size()); ++row) {
      const bool isWriter = pool.isLive(writes[row]);
      if (!pool.isLive(reads[row]))
        writes[row] = -1;
      if (movesOnly && !isWriter)
        reads[row] = -1;
    }
    const bool toTokens = table && !hasTokenPools;
    Status status =
        toTokens ? checkTokenWrites(tokenSlots, *slots, pool, pool, writerOf)
                 : checkWrites(writeSlots ? "write_slots" : "slots", writes,
                               pool, writerOf);
    if (status.isOk() && (writeSlots || toTokens))
      status = checkReads(reads, pool, writerOf, hasParents);
    if (status.isOk())
      status = checkCheckpoints(checkpoints, *slots, pool, writerOf);
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
