// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The memory of a builder's steps, the runs of a step, and what lies behind its
// sequences.

#include "gdnrt/step_arrays.h"

#include <algorithm>

using namespace gdnrt;

StepArrays::StepArrays(const MetadataOptions &options)
    : options(options), numColumns(options.num_speculative_tokens + 1) {
  // The only kind that there is.
  if (options.deferred_writes)
    this->options.verify_states = GDNRT_VERIFY_LAZY;
  maxGraphRows = options.max_num_seqs * numColumns;
  if (options.max_cudagraph_capture_size > 0)
    maxGraphRows = std::min(maxGraphRows, options.max_cudagraph_capture_size);
  maxPaddedRows = std::max(options.max_num_seqs, maxGraphRows);
  maxRows = maxPaddedRows + (options.mixed_batch ? kPaddingRows : 0);
  if (options.mamba_cache_mode == GDNRT_CACHE_ALL)
    maxRows += options.max_num_seqs;
  allocate();
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

void StepArrays::allocate() {
  int64_t rows = maxRows, tokens = options.max_num_tokens;
  bool all = options.mamba_cache_mode == GDNRT_CACHE_ALL;
  bool oneSlot = options.verify_states != GDNRT_VERIFY_SLOTS;
  bool tree = options.verify_states == GDNRT_VERIFY_TREE;
  bool buffer = options.verify_states == GDNRT_VERIFY_BUFFER;
  int64_t checkpoints =
      all ? tokens / options.block_size + options.max_num_seqs : 0;
  int64_t convBlocks =
      2 * std::max<int64_t>(1024, tokens / GDNRT_CONV_BLOCK + rows);
  const bool mixed = options.mixed_batch != 0;
  auto takeSpec = [&](Layout &layout) {
    specSlots = layout.take(rows * numColumns);
    specStarts = layout.take(rows + 1);
    specAccepted = layout.take(rows);
    specRowSlots = layout.take(oneSlot ? rows : 0);
    specParents = layout.take(tree ? rows * numColumns : 0);
  };
  auto takeCommits = [&](Layout &layout) {
    commitSlots = layout.take(hasCommits() ? rows : 0);
    commitAccepted = layout.take(hasCommits() ? rows : 0);
    commitTokenSlots = layout.take(buffer ? rows * numColumns : 0);
  };
  const bool verifies = options.num_speculative_tokens > 0 || mixed;
  // First what a graph of decode or verify reads, whatever the step that is
  // replayed; then what only prefills read; then what no kernel reads.
  auto layOut = [&](Layout layout) {
    readSlots = layout.take(rows);
    writeSlots = layout.take(rows);
    hasInitial = layout.takeBytes(rows);
    isPrefill = layout.takeBytes(mixed ? rows : 0);
    nonSpecIsPrefill = layout.takeBytes(mixed ? rows : 0);
    if (mixed)
      nonSpecStarts = layout.take(rows + 1);
    if (verifies) {
      takeSpec(layout);
      takeCommits(layout);
    }
    graphInts = layout.used;
    if (!mixed)
      nonSpecStarts = layout.take(rows + 1);
    if (!verifies)
      takeCommits(layout);
    runStarts = layout.take(2 * rows + 1);
    zeros = layout.take(rows + 1);
    checkpointStarts = layout.take(rows + 1);
    checkpointTokens = layout.take(checkpoints);
    checkpointSlots = layout.take(checkpoints);
    deviceInts = layout.used;
    if (!verifies)
      takeSpec(layout);
    nonSpecAccepted = layout.take(rows);
    specMasks = layout.takeBytes(rows);
    specTokens = layout.take(tokens);
    nonSpecTokens = layout.take(tokens);
    tailStarts = layout.take(rows + 1);
    chunkIndices = layout.take(2 * (tokens / GDNRT_CHUNK_SIZE + rows));
    chunkOffsets = layout.take(rows + 1);
    convNums = layout.take(rows);
    batchPtr = layout.take(convBlocks);
    tokenChunkOffsetPtr = layout.take(convBlocks);
    return layout.used;
  };
  // A vector's data may begin within a cache line, so there is one more.
  constexpr size_t kLine = 16;
  arenaInts = layOut({nullptr});
  arena.assign(arenaInts + kLine, 0);
  uploaded.copy.assign(deviceInts, 0);
  uintptr_t address = reinterpret_cast<uintptr_t>(arena.data());
  const size_t before = (64 - address % 64) % 64 / sizeof(int32_t);
  layOut({arena.data() + before});
  filled = {rows, rows, rows};
  padTails();
  runs.reserve(static_cast<size_t>(rows) + 2);
  for (auto *each : {&rowOfNonSpec, &firstOfNonSpec, &lastOfNonSpec})
    each->assign(static_cast<size_t>(rows), 0);
  captureLengths.assign(static_cast<size_t>(rows), 0);
  captureAccepted.assign(static_cast<size_t>(rows), 0);
  captureDrafts.assign(static_cast<size_t>(rows), 0);
  captureTokens.assign(static_cast<size_t>(numColumns), GDNRT_PAD_SLOT_ID);
}

const int32_t *StepArrays::stateColumns(const CommonMetadata &common,
                                        int64_t row) const {
  const int32_t *columns = common.block_table + row * common.block_table_stride;
  if (options.mamba_cache_mode == GDNRT_CACHE_ALIGN)
    columns +=
        std::max<int64_t>(common.seq_lens[row] - 1, 0) / options.block_size;
  return columns;
}

bool StepArrays::hasCommits() const {
  return options.deferred_writes ||
         (options.num_speculative_tokens > 0 &&
          (options.verify_states == GDNRT_VERIFY_LAZY ||
           options.verify_states == GDNRT_VERIFY_BUFFER));
}

bool StepArrays::isCount(int32_t accepted) const {
  return options.verify_states == GDNRT_VERIFY_TREE ||
         (accepted >= (hasCommits() ? 0 : 1) && accepted <= numColumns);
}

void StepArrays::clearRuns(GDNMetadata &m) {
  runs.clear();
  m.num_runs = 0;
}

void StepArrays::addRun(GDNMetadata &m, int32_t kind, int64_t firstToken,
                        int64_t numTokens, int64_t firstRow, int64_t numRows) {
  gdnrt_run run = {};
  run.kind = kind;
  run.first_token = firstToken;
  run.num_tokens = numTokens;
  run.first_row = firstRow;
  run.num_rows = numRows;
  if (kind == GDNRT_RUN_PREFILL || kind == GDNRT_RUN_VERIFY) {
    const int32_t *starts =
        kind == GDNRT_RUN_VERIFY ? specStarts : nonSpecStarts;
    run.query_start_loc = starts;
    if (firstRow != 0) {
      // Sequences of a launch count from 0, on a slice of the tokens.
      int32_t *own = runStarts + numRunStarts;
      for (int64_t i = 0; i <= numRows; ++i)
        own[i] = starts[firstRow + i] - starts[firstRow];
      numRunStarts += numRows + 1;
      run.query_start_loc = own;
    }
  }
  if (kind == GDNRT_RUN_PREFILL)
    run.reads_state =
        std::any_of(hasInitial + firstRow, hasInitial + firstRow + numRows,
                    [](uint8_t has) { return has != 0; });
  runs.push_back(run);
  m.runs = runs.data();
  m.num_runs = static_cast<int64_t>(runs.size());
}

void StepArrays::padTails() {
  const int32_t noCount = hasCommits() ? 0 : 1;
  auto fill = [](auto *array, int64_t from, int64_t to, auto value) {
    if (from < to)
      std::fill(array + from, array + to, value);
  };
  auto padStarts = [&](int32_t *starts, int64_t rows) {
    fill(starts, rows + 1, maxRows + 1, starts[rows]);
  };
  int64_t from = used.nonSpec, to = filled.nonSpec;
  fill(readSlots, from, to, options.pad_slot);
  fill(writeSlots, from, to, options.pad_slot);
  fill(nonSpecAccepted, from, to, noCount);
  fill(hasInitial, from, to, uint8_t{1});
  if (options.mixed_batch)
    fill(nonSpecIsPrefill, from, to, uint8_t{0});
  padStarts(nonSpecStarts, from);

  from = used.spec, to = filled.spec;
  if (options.mixed_batch)
    fill(isPrefill, from, to, uint8_t{0});
  fill(specAccepted, from, to, noCount);
  fill(specSlots, from * numColumns, to * numColumns, options.pad_slot);
  if (options.verify_states != GDNRT_VERIFY_SLOTS)
    fill(specRowSlots, from, to, options.pad_slot);
  if (options.verify_states == GDNRT_VERIFY_TREE)
    fill(specParents, from * numColumns, to * numColumns, int32_t{-1});
  padStarts(specStarts, from);

  if (hasCommits()) {
    from = used.commits, to = filled.commits;
    fill(commitSlots, from, to, options.pad_slot);
    fill(commitAccepted, from, to, int32_t{0});
    if (options.verify_states == GDNRT_VERIFY_BUFFER)
      fill(commitTokenSlots, from * numColumns, to * numColumns,
           options.pad_slot);
  }
  filled = used;
}
