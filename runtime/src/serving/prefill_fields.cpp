// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What prefills need besides slots: chunks of 64 tokens for the rule, blocks of
// 8 for the convolution, and the states at ends of cached blocks.

#include "step_fields.h"

#include <algorithm>

using namespace gdnrt;

/// The prefills alone, their tokens counted from 0.
static void addTail(StepArrays &arrays, GDNMetadata &m) {
  int64_t first = m.num_decodes, rows = m.num_prefills;
  for (int64_t i = 0; i <= rows; ++i)
    arrays.tailStarts[i] =
        arrays.nonSpecStarts[first + i] - arrays.nonSpecStarts[first];
  m.prefill_query_start_loc = {arrays.tailStarts, rows + 1};
  m.prefill_state_indices = {arrays.writeSlots + first, rows};
  m.prefill_has_initial_state = {arrays.hasInitial + first, rows};
}

/// Sequences are numbered as they are, so a sequence without tokens owns no
/// chunk and shifts nobody's number.
static void addChunks(StepArrays &arrays, GDNMetadata &m) {
  int64_t rows = m.non_spec_state_indices.size;
  int32_t count = 0;
  for (int64_t row = 0; row < rows; ++row) {
    arrays.chunkOffsets[row] = count;
    int32_t length = arrays.nonSpecStarts[row + 1] - arrays.nonSpecStarts[row];
    int32_t chunks = (length + GDNRT_CHUNK_SIZE - 1) / GDNRT_CHUNK_SIZE;
    for (int32_t chunk = 0; chunk < chunks; ++chunk, ++count) {
      arrays.chunkIndices[2 * count] = static_cast<int32_t>(row);
      arrays.chunkIndices[2 * count + 1] = chunk;
    }
  }
  arrays.chunkOffsets[rows] = count;
  m.chunk_indices = {arrays.chunkIndices, 2 * int64_t{count}};
  m.chunk_offsets = {arrays.chunkOffsets, rows + 1};
}

static void addConvBlocks(StepArrays &arrays, GDNMetadata &m) {
  int64_t rows = m.non_spec_state_indices.size, total = 0;
  for (int64_t row = 0; row < rows; ++row) {
    int32_t length = arrays.nonSpecStarts[row + 1] - arrays.nonSpecStarts[row];
    int32_t blocks = (length + GDNRT_CONV_BLOCK - 1) / GDNRT_CONV_BLOCK;
    arrays.convNums[row] = blocks;
    for (int32_t block = 0; block < blocks; ++block, ++total) {
      arrays.batchPtr[total] = static_cast<int32_t>(row);
      arrays.tokenChunkOffsetPtr[total] = block;
    }
  }
  int64_t size = 2 * std::max<int64_t>(1024, total);
  std::fill(arrays.batchPtr + total, arrays.batchPtr + size, -1);
  std::fill(arrays.tokenChunkOffsetPtr + total,
            arrays.tokenChunkOffsetPtr + size, -1);
  m.conv_nums = {arrays.convNums, rows};
  m.conv_total = total;
  m.batch_ptr = {arrays.batchPtr, size};
  m.token_chunk_offset_ptr = {arrays.tokenChunkOffsetPtr, size};
}

/// The ends of blocks that a sequence passes; its own end is in its slot to
/// write.
static void addCheckpoints(StepArrays &arrays, const CommonMetadata &common,
                           GDNMetadata &m) {
  int64_t rows = m.non_spec_state_indices.size;
  int32_t count = 0;
  for (int64_t i = 0; i < rows; ++i) {
    arrays.checkpointStarts[i] = count;
    const int64_t done = arrays.firstOfNonSpec[i];
    const int64_t last = arrays.lastOfNonSpec[i];
    if (done == last)
      continue;
    const int32_t *columns =
        arrays.stateColumns(common, arrays.rowOfNonSpec[i]);
    for (int64_t block = done / arrays.options.block_size;
         (block + 1) * arrays.options.block_size < last; ++block, ++count) {
      arrays.checkpointTokens[count] =
          static_cast<int32_t>((block + 1) * arrays.options.block_size - done);
      arrays.checkpointSlots[count] = columns[block];
    }
  }
  arrays.checkpointStarts[rows] = count;
  m.cu_checkpoints = {arrays.checkpointStarts, rows + 1};
  m.checkpoint_tokens = {arrays.checkpointTokens, count};
  m.checkpoint_slots = {arrays.checkpointSlots, count};
}

void gdnrt::addPrefillFields(StepArrays &arrays, const CommonMetadata &common,
                             GDNMetadata &m) {
  m.has_initial_state = {arrays.hasInitial, m.non_spec_state_indices.size};
  if (m.num_spec_decodes == 0)
    addTail(arrays, m);
  addChunks(arrays, m);
  addConvBlocks(arrays, m);
  if (arrays.options.mamba_cache_mode == GDNRT_CACHE_ALL)
    addCheckpoints(arrays, common, m);
}
