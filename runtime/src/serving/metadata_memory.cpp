// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The memory of a builder, taken once, and the checks of what it is given.

#include "gdnrt/metadata_builder.h"

#include <algorithm>
#include <limits>

using namespace gdnrt;

constexpr int64_t kMost = std::numeric_limits<int32_t>::max() / 256;
constexpr int64_t kMostColumns = 64;
// Tokens of a sequence that can stay pending: verify skips sequences of more.
constexpr int64_t kMostPending = 8;

static Status checkRange(const char *name, int64_t value, int64_t from,
                         int64_t to) {
  if (value < from || value > to)
    return invalid(name, ": expected ", from, " to ", to, ", got ", value);
  return {};
}

Result<std::unique_ptr<MetadataBuilder>>
MetadataBuilder::make(const MetadataOptions &options) {
  for (const Status &s :
       {checkRange("max_num_seqs", options.max_num_seqs, 1, kMost),
        checkRange("max_num_tokens", options.max_num_tokens, 1, kMost),
        checkRange("num_speculative_tokens", options.num_speculative_tokens, 0,
                   (options.verify_states == GDNRT_VERIFY_LAZY ? kMostPending
                                                               : kMostColumns) -
                       1),
        checkRange("mamba_cache_mode", options.mamba_cache_mode,
                   GDNRT_CACHE_NONE, GDNRT_CACHE_ALL),
        checkRange("verify_states", options.verify_states, GDNRT_VERIFY_SLOTS,
                   GDNRT_VERIFY_BUFFER),
        checkRange("max_cudagraph_capture_size",
                   options.max_cudagraph_capture_size, 0, kMost)})
    if (!s.isOk())
      return s;
  if (options.pad_slot != GDNRT_NULL_BLOCK_ID &&
      options.pad_slot != GDNRT_PAD_SLOT_ID)
    return invalid("pad_slot: expected ", GDNRT_NULL_BLOCK_ID, " or ",
                   GDNRT_PAD_SLOT_ID, ", got ", options.pad_slot);
  if (options.mamba_cache_mode != GDNRT_CACHE_NONE && options.block_size < 1)
    return invalid("block_size: expected tokens of a block, got ",
                   options.block_size);
  if (options.mamba_cache_mode == GDNRT_CACHE_ALL) {
    if (options.block_size % GDNRT_CHUNK_SIZE != 0)
      return invalid("block_size: expected a multiple of ", GDNRT_CHUNK_SIZE,
                     " with the cache mode all, got ", options.block_size);
    if (options.num_speculative_tokens > 0)
      return failure(StatusCode::unsupported,
                     "num_speculative_tokens: expected 0 with the cache mode "
                     "all, got ",
                     options.num_speculative_tokens);
  }
  auto builder = std::unique_ptr<MetadataBuilder>(new MetadataBuilder(options));
  builder->allocate();
  return builder;
}

MetadataBuilder::MetadataBuilder(const MetadataOptions &options)
    : options_(options), numColumns_(options.num_speculative_tokens + 1) {
  maxGraphRows_ = options.max_num_seqs * numColumns_;
  if (options.max_cudagraph_capture_size > 0)
    maxGraphRows_ = std::min(maxGraphRows_, options.max_cudagraph_capture_size);
  maxRows_ = std::max(options.max_num_seqs, maxGraphRows_);
}

namespace {
/// Hands out parts of the arena: first counts, then addresses.
struct Layout {
  int32_t *base;
  size_t used = 0;
  int32_t *take(int64_t count) {
    size_t first = used;
    // Whole cache lines, and so alignment for any vector load.
    used += (static_cast<size_t>(count) + 15) / 16 * 16;
    return base + (base ? first : 0);
  }
  uint8_t *takeBytes(int64_t count) {
    return reinterpret_cast<uint8_t *>(take((count + 3) / 4));
  }
};
} // namespace

void MetadataBuilder::allocate() {
  int64_t rows = maxRows_, tokens = options_.max_num_tokens;
  bool all = options_.mamba_cache_mode == GDNRT_CACHE_ALL;
  bool oneSlot = options_.verify_states != GDNRT_VERIFY_SLOTS;
  bool tree = options_.verify_states == GDNRT_VERIFY_TREE;
  bool buffer = options_.verify_states == GDNRT_VERIFY_BUFFER;
  int64_t checkpoints =
      all ? tokens / options_.block_size + options_.max_num_seqs : 0;
  int64_t convBlocks =
      2 * std::max<int64_t>(1024, tokens / GDNRT_CONV_BLOCK + rows);
  auto takeSpec = [&](Layout &layout) {
    specSlots_ = layout.take(rows * numColumns_);
    specStarts_ = layout.take(rows + 1);
    specAccepted_ = layout.take(rows);
    specRowSlots_ = layout.take(oneSlot ? rows : 0);
    specParents_ = layout.take(tree ? rows * numColumns_ : 0);
    commitSlots_ = layout.take(hasCommits() ? rows : 0);
    commitAccepted_ = layout.take(hasCommits() ? rows : 0);
    commitTokenSlots_ = layout.take(buffer ? rows * numColumns_ : 0);
  };
  const bool verifies = options_.num_speculative_tokens > 0;
  // First what a graph of decode or verify reads, whatever the step that is
  // replayed; then what only prefills read; then what no kernel reads.
  auto layOut = [&](Layout layout) {
    readSlots_ = layout.take(rows);
    writeSlots_ = layout.take(rows);
    hasInitial_ = layout.takeBytes(rows);
    if (verifies)
      takeSpec(layout);
    graphInts_ = layout.used;
    nonSpecStarts_ = layout.take(rows + 1);
    runStarts_ = layout.take(2 * rows + 1);
    zeros_ = layout.take(rows + 1);
    checkpointStarts_ = layout.take(rows + 1);
    checkpointTokens_ = layout.take(checkpoints);
    checkpointSlots_ = layout.take(checkpoints);
    deviceInts_ = layout.used;
    if (!verifies)
      takeSpec(layout);
    nonSpecAccepted_ = layout.take(rows);
    specMasks_ = layout.takeBytes(rows);
    specTokens_ = layout.take(tokens);
    nonSpecTokens_ = layout.take(tokens);
    tailStarts_ = layout.take(rows + 1);
    chunkIndices_ = layout.take(2 * (tokens / GDNRT_CHUNK_SIZE + rows));
    chunkOffsets_ = layout.take(rows + 1);
    convNums_ = layout.take(rows);
    batchPtr_ = layout.take(convBlocks);
    tokenChunkOffsetPtr_ = layout.take(convBlocks);
    return layout.used;
  };
  // A vector's data may begin within a cache line, so there is one more.
  constexpr size_t kLine = 16;
  arenaInts_ = layOut({nullptr});
  arena_.assign(arenaInts_ + kLine, 0);
  uintptr_t address = reinterpret_cast<uintptr_t>(arena_.data());
  const size_t before = (64 - address % 64) % 64 / sizeof(int32_t);
  layOut({arena_.data() + before});
  filled_ = {rows, rows, rows};
  padTails();
  runs_.reserve(static_cast<size_t>(rows) + 2);
  rowOfNonSpec_.assign(static_cast<size_t>(rows), 0);
  captureLengths_.assign(static_cast<size_t>(rows), 0);
  captureAccepted_.assign(static_cast<size_t>(rows), 0);
  captureDrafts_.assign(static_cast<size_t>(rows), 0);
  captureTokens_.assign(static_cast<size_t>(numColumns_), GDNRT_PAD_SLOT_ID);
}

Status MetadataBuilder::check(const CommonMetadata &common) const {
  if (Status s =
          checkRange("num_reqs", common.num_reqs, 0, options_.max_num_seqs);
      !s.isOk())
    return s;
  if (Status s = checkRange("num_actual_tokens", common.num_actual_tokens, 0,
                            options_.max_num_tokens);
      !s.isOk())
    return s;
  if (!common.query_start_loc)
    return invalid("query_start_loc: expected an array, got null");
  if (common.num_reqs > 0 && !common.seq_lens)
    return invalid("seq_lens: expected an array, got null");
  if (common.num_reqs > 0 && !common.block_table)
    return invalid("block_table: expected an array, got null");
  const int32_t *starts = common.query_start_loc;
  if (starts[0] != 0)
    return invalid("query_start_loc: expected to start at 0, got ", starts[0]);
  for (int64_t row = 0; row < common.num_reqs; ++row) {
    if (starts[row + 1] < starts[row])
      return invalid("query_start_loc: expected element ", row + 1,
                     " to be at least ", starts[row], ", got ",
                     starts[row + 1]);
    if (int64_t tokens = starts[row + 1] - starts[row];
        tokens > 0 && common.seq_lens[row] < tokens)
      return invalid("seq_lens: expected at least ", tokens, " in row ", row,
                     ", the tokens of the step, got ", common.seq_lens[row]);
  }
  if (starts[common.num_reqs] > common.num_actual_tokens)
    return invalid("query_start_loc: expected to end at ",
                   common.num_actual_tokens, " at most, got ",
                   starts[common.num_reqs]);
  return checkTable(common);
}

/// Every column that a sequence with tokens needs is in the table.
Status MetadataBuilder::checkTable(const CommonMetadata &common) const {
  if (common.num_reqs > 1 &&
      common.block_table_stride < common.block_table_columns)
    return invalid("block_table: expected rows at least ",
                   common.block_table_columns, " apart, got ",
                   common.block_table_stride);
  int64_t columns =
      options_.verify_states == GDNRT_VERIFY_SLOTS ? numColumns_ : 1;
  for (int64_t row = 0; row < common.num_reqs; ++row) {
    int64_t tokens =
        common.query_start_loc[row + 1] - common.query_start_loc[row];
    if (tokens == 0)
      continue;
    int64_t block = 0, last = common.seq_lens[row];
    if (options_.mamba_cache_mode != GDNRT_CACHE_NONE)
      block = (last - 1) / options_.block_size;
    if (block + columns > common.block_table_columns)
      return invalid("block_table: expected at least ", block + columns,
                     " columns for row ", row, " of ", last, " tokens, got ",
                     common.block_table_columns);
    int64_t done = last - tokens;
    if (options_.mamba_cache_mode == GDNRT_CACHE_ALL &&
        done % options_.block_size != 0 &&
        (done / options_.block_size + 1) * options_.block_size < last)
      return invalid("seq_lens: expected row ", row,
                     " to start or end at the end of a block of ",
                     options_.block_size, " tokens, got tokens ", done, " to ",
                     last);
  }
  return {};
}
