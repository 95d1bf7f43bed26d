// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a builder checks: its options once, and every step before anything is
// filled.

#include "batch_limits.h"
#include "gdnrt/gdn_layer.h"
#include "step_fields.h"

using namespace gdnrt;

// Tokens of a sequence that can stay pending: verify skips sequences of more.
constexpr int64_t kMostPending = 8;

/// Kernels with deferred writes verify in one way, and write the slot that they
/// read.
static Status checkDeferred(const MetadataOptions &options) {
  if (!options.deferred_writes)
    return {};
  const bool verifies =
      options.num_speculative_tokens > 0 || options.mixed_batch;
  if (verifies && options.verify_states != GDNRT_VERIFY_LAZY)
    return failure(StatusCode::unsupported,
                   "verify_states: expected lazy with deferred_writes, got ",
                   nameOfVerifyStates(options.verify_states));
  if (options.mamba_cache_mode == GDNRT_CACHE_ALL)
    return failure(StatusCode::unsupported,
                   "deferred_writes: expected 0 with the cache mode all, whose "
                   "sequences write another slot than they read, got ",
                   options.deferred_writes);
  return {};
}

Status gdnrt::checkOptions(const MetadataOptions &options) {
  for (const Status &s :
       {checkRange("max_num_seqs", options.max_num_seqs, 1, kMost),
        checkRange("max_num_tokens", options.max_num_tokens, 1, kMost),
        checkRange("num_speculative_tokens", options.num_speculative_tokens, 0,
                   (options.verify_states == GDNRT_VERIFY_LAZY ? kMostPending
                                                               : kMostColumns) -
                       1),
        checkRange("mamba_cache_mode", options.mamba_cache_mode,
                   GDNRT_CACHE_NONE, GDNRT_CACHE_ALL),
        checkRange("mixed_batch", options.mixed_batch, 0, 1),
        checkRange("deferred_writes", options.deferred_writes, 0, 1),
        checkRange("max_num_prefills", options.max_num_prefills, 0, kMost),
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
  if (options.max_num_prefills != 0 &&
      (options.mixed_batch == 0 || options.use_full_cuda_graph == 0))
    return invalid("max_num_prefills: expected 0 without mixed_batch and "
                   "use_full_cuda_graph, got ",
                   options.max_num_prefills);
  if (Status s = checkDeferred(options); !s.isOk())
    return s;
  if (options.mamba_cache_mode == GDNRT_CACHE_ALL) {
    if (options.block_size % GDNRT_CHUNK_SIZE != 0)
      return invalid("block_size: expected a multiple of ", GDNRT_CHUNK_SIZE,
                     " with the cache mode all, got ", options.block_size);
    if (options.num_speculative_tokens > 0)
      return failure(StatusCode::unsupported,
                     "num_speculative_tokens: expected 0 with the cache mode "
                     "all, got ",
                     options.num_speculative_tokens);
    if (options.mixed_batch)
      return failure(StatusCode::unsupported,
                     "mixed_batch: expected 0 with the cache mode all, whose "
                     "sequences write another slot than they read, got ",
                     options.mixed_batch);
  }
  return {};
}

/// Every column that a sequence with tokens needs is in the table.
static Status checkTable(const StepArrays &arrays,
                         const CommonMetadata &common) {
  if (common.num_reqs > 1 &&
      common.block_table_stride < common.block_table_columns)
    return invalid("block_table: expected rows at least ",
                   common.block_table_columns, " apart, got ",
                   common.block_table_stride);
  int64_t columns = arrays.options.verify_states == GDNRT_VERIFY_SLOTS
                        ? arrays.numColumns
                        : 1;
  for (int64_t row = 0; row < common.num_reqs; ++row) {
    int64_t tokens =
        common.query_start_loc[row + 1] - common.query_start_loc[row];
    if (tokens == 0)
      continue;
    int64_t block = 0, last = common.seq_lens[row];
    if (arrays.options.mamba_cache_mode != GDNRT_CACHE_NONE)
      block = (last - 1) / arrays.options.block_size;
    if (block + columns > common.block_table_columns)
      return invalid("block_table: expected at least ", block + columns,
                     " columns for row ", row, " of ", last, " tokens, got ",
                     common.block_table_columns);
  }
  return {};
}

Status gdnrt::checkStep(const StepArrays &arrays,
                        const CommonMetadata &common) {
  if (Status s = checkRange("num_reqs", common.num_reqs, 0,
                            arrays.options.max_num_seqs);
      !s.isOk())
    return s;
  if (Status s = checkRange("num_actual_tokens", common.num_actual_tokens, 0,
                            arrays.options.max_num_tokens);
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
  return checkTable(arrays, common);
}

/// Sequences that go on from a state need to know how many tokens of the step
/// before were right: whatever is taken instead is wrong for some.
Status gdnrt::checkCounts(const StepArrays &arrays,
                          const CommonMetadata &common) {
  if (arrays.options.num_speculative_tokens == 0 ||
      common.num_accepted_tokens ||
      arrays.options.verify_states == GDNRT_VERIFY_TREE)
    return {};
  for (int64_t row = 0; row < common.num_reqs; ++row) {
    int64_t tokens =
        common.query_start_loc[row + 1] - common.query_start_loc[row];
    if (tokens > 0 && common.seq_lens[row] > tokens)
      return invalid("num_accepted_tokens: expected counts, for row ", row,
                     " goes on behind ", common.seq_lens[row] - tokens,
                     " tokens, got null");
  }
  return {};
}
