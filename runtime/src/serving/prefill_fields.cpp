// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What prefills need besides slots: chunks of 64 tokens for the rule, blocks of
// 8 for the convolution, and the states at ends of cached blocks.

#include "gdnrt/metadata_builder.h"

#include <algorithm>

using namespace gdnrt;

void MetadataBuilder::addPrefillFields(const CommonMetadata &common,
                                       GDNMetadata &m) {
  m.has_initial_state = {hasInitial_, m.non_spec_state_indices.size};
  if (m.num_spec_decodes == 0)
    addTail(m);
  addChunks(m);
  addConvBlocks(m);
  if (options_.mamba_cache_mode == GDNRT_CACHE_ALL)
    addCheckpoints(common, m);
}

/// The prefills alone, their tokens counted from 0.
void MetadataBuilder::addTail(GDNMetadata &m) {
  int64_t first = m.num_decodes, rows = m.num_prefills;
  for (int64_t i = 0; i <= rows; ++i)
    tailStarts_[i] = nonSpecStarts_[first + i] - nonSpecStarts_[first];
  m.prefill_query_start_loc = {tailStarts_, rows + 1};
  m.prefill_state_indices = {writeSlots_ + first, rows};
  m.prefill_has_initial_state = {hasInitial_ + first, rows};
}

/// Sequences are numbered as they are, so a sequence without tokens owns no
/// chunk and shifts nobody's number.
void MetadataBuilder::addChunks(GDNMetadata &m) {
  int64_t rows = m.non_spec_state_indices.size;
  int32_t count = 0;
  for (int64_t row = 0; row < rows; ++row) {
    chunkOffsets_[row] = count;
    int32_t length = nonSpecStarts_[row + 1] - nonSpecStarts_[row];
    int32_t chunks = (length + GDNRT_CHUNK_SIZE - 1) / GDNRT_CHUNK_SIZE;
    for (int32_t chunk = 0; chunk < chunks; ++chunk, ++count) {
      chunkIndices_[2 * count] = static_cast<int32_t>(row);
      chunkIndices_[2 * count + 1] = chunk;
    }
  }
  chunkOffsets_[rows] = count;
  m.chunk_indices = {chunkIndices_, 2 * int64_t{count}};
  m.chunk_offsets = {chunkOffsets_, rows + 1};
}

void MetadataBuilder::addConvBlocks(GDNMetadata &m) {
  int64_t rows = m.non_spec_state_indices.size, total = 0;
  for (int64_t row = 0; row < rows; ++row) {
    int32_t length = nonSpecStarts_[row + 1] - nonSpecStarts_[row];
    int32_t blocks = (length + GDNRT_CONV_BLOCK - 1) / GDNRT_CONV_BLOCK;
    convNums_[row] = blocks;
    for (int32_t block = 0; block < blocks; ++block, ++total) {
      batchPtr_[total] = static_cast<int32_t>(row);
      tokenChunkOffsetPtr_[total] = block;
    }
  }
  int64_t size = 2 * std::max<int64_t>(1024, total);
  std::fill(batchPtr_ + total, batchPtr_ + size, -1);
  std::fill(tokenChunkOffsetPtr_ + total, tokenChunkOffsetPtr_ + size, -1);
  m.conv_nums = {convNums_, rows};
  m.conv_total = total;
  m.batch_ptr = {batchPtr_, size};
  m.token_chunk_offset_ptr = {tokenChunkOffsetPtr_, size};
}

/// The ends of blocks that a sequence passes; its own end is in its slot to
/// write.
void MetadataBuilder::addCheckpoints(const CommonMetadata &common,
                                     GDNMetadata &m) {
  int64_t rows = m.non_spec_state_indices.size;
  int32_t count = 0;
  for (int64_t i = 0; i < rows; ++i) {
    checkpointStarts_[i] = count;
    int64_t row = rowOfNonSpec_[i];
    int64_t length =
        common.query_start_loc[row + 1] - common.query_start_loc[row];
    if (length == 0)
      continue;
    int64_t last = common.seq_lens[row], done = last - length;
    const int32_t *columns = stateColumns(common, row);
    for (int64_t block = done / options_.block_size;
         (block + 1) * options_.block_size < last; ++block, ++count) {
      checkpointTokens_[count] =
          static_cast<int32_t>((block + 1) * options_.block_size - done);
      checkpointSlots_[count] = columns[block];
    }
  }
  checkpointStarts_[rows] = count;
  m.cu_checkpoints = {checkpointStarts_, rows + 1};
  m.checkpoint_tokens = {checkpointTokens_, count};
  m.checkpoint_slots = {checkpointSlots_, count};
}
