/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The metadata of a step of the scheduler, which the host makes. serving.h says
 * what holds of arrays, sequences and threads.
 */

#ifndef GDN_C_METADATA_H
#define GDN_C_METADATA_H

#include "gdn-c/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/*===-- Constants of the originals ----------------------------------------===*/

/** An id that is no slot of any pool. Kernels skip sequences with it. */
#define GDNRT_PAD_SLOT_ID (-1)
/** The null slot, which padding rows have. */
#define GDNRT_NULL_BLOCK_ID 0
/** The tokens of a chunk in chunk_indices and chunk_offsets. */
#define GDNRT_CHUNK_SIZE 64
/** The tokens of a block in the metadata of the convolution. */
#define GDNRT_CONV_BLOCK 8

/** Which columns of its row of the block table hold the states of a request. */
typedef enum gdnrt_mamba_cache_mode {
  /** Columns 0 to S. Without speculation (S = 0) that is one slot; with S
   *  drafts per step it is 1 + S slots. */
  GDNRT_CACHE_NONE = 0,
  /** The column of the block that has the last token, and the S columns after
   *  it; see gdnrt_align_states_before. */
  GDNRT_CACHE_ALIGN = 1,
  /** One column per block. A step reads the column of the last computed token,
   *  writes the column of its own last token, and keeps the states at the ends
   *  of the blocks between them. A sequence whose step begins inside a block
   *  and ends behind it is two sequences of the arrays: up to the end of the
   *  block, and from there; see non_spec_rows. block_size is a multiple of 64,
   *  and speculation is UNSUPPORTED. */
  GDNRT_CACHE_ALL = 2
} gdnrt_mamba_cache_mode;

/** How the entry verify keeps the states of tokens that may be rejected: option
 *  --verify of gdn-compile. A sequence has 1 + S slots with SLOTS, and one slot
 *  with the other kinds. Accepted counts begin at 1 with SLOTS. They begin at 0
 *  with LAZY and BUFFER, where a count is the number of tokens that a commit
 *  has still to put into the state. */
typedef enum gdnrt_verify_states {
  /** The states after the tokens are written to the slots in columns 0 to S.
   *  The next step of the sequence begins with the state in column num_accepted
   *  - 1. */
  GDNRT_VERIFY_SLOTS = 0,
  /** The states after the tokens are written to token_slots, slots of the pool.
   *  Each token names its parent. The engine makes the slot of the last
   *  accepted token the slot of the sequence. */
  GDNRT_VERIFY_TREE = 1,
  /** Tokens stay pending in the slot of the sequence, at most 8 of them. The
   *  next step of the sequence puts the accepted tokens into the state: verify
   *  does so itself, decode and prefill need a commit before them. */
  GDNRT_VERIFY_LAZY = 2,
  /** The states after the tokens are written to token_slots, slots of a buffer.
   *  The next step of the sequence begins with a commit, which copies one of
   *  these states to the sequence's slot. Until then the slots in the buffer
   *  belong to the sequence. */
  GDNRT_VERIFY_BUFFER = 3
} gdnrt_verify_states;

/*===-- Metadata of a step ------------------------------------------------===*/

typedef struct gdnrt_metadata_options {
  size_t struct_size;
  /** The maximum number of sequences in a step, 1 to 2^23 - 1. */
  int64_t max_num_seqs;
  /** The maximum number of tokens in a step, 1 to 2^23 - 1. */
  int64_t max_num_tokens;
  /** S, the maximum number of drafts of a sequence in a step. 0 means no
   *  speculation. 1 + S is at most 64, with LAZY at most 8. */
  int64_t num_speculative_tokens;
  /** 1: a step that has only decodes, or only verified sequences, is padded for
   *  a CUDA graph. */
  int32_t use_full_cuda_graph;
  /** A gdnrt_mamba_cache_mode. */
  int32_t mamba_cache_mode;
  /** The maximum number of rows of a graph, in addition to the bound
   *  max_num_seqs * (1 + S). 0 means that only that bound holds. */
  int64_t max_cudagraph_capture_size;
  /** The tokens of a block, for the modes ALIGN and ALL. */
  int64_t block_size;
  /** The slot of padding rows: GDNRT_NULL_BLOCK_ID or GDNRT_PAD_SLOT_ID. */
  int32_t pad_slot;
  /** A gdnrt_verify_states. */
  int32_t verify_states;
  /** 1: the sequences of a step stay where they are, whatever they are: a step
   *  is one launch of verify and one of prefill over the same arrays, each of
   *  which leaves the sequences of the other alone. For kernels of gdn-compile
   *  --mixed-batch. Verified sequences are those of verify, and with SLOTS
   *  those that decode one token; all others are those of prefill. With
   *  use_full_cuda_graph every step is padded to num_padded_reqs sequences and
   *  num_actual_tokens tokens, so that one graph takes any mix within these. */
  int32_t mixed_batch;
  /** 1: for kernels with deferred writes (gdn-compile --defer-writes), which
   *  keep tokens pending in a slot over several steps. Every step with prefills
   *  begins with a commit of their slots, so that nothing is pending in them: a
   *  sequence that goes on gets all its tokens into its state, and one that
   *  begins is rid of what the owner of the slot before left. What is verified
   *  is verified as LAZY; without speculation and mixed_batch, verify_states is
   *  ignored. Mode ALL is UNSUPPORTED. */
  int32_t deferred_writes;
  /** With mixed_batch and use_full_cuda_graph: the maximum number of sequences
   *  of prefill in a step that a graph is replayed for, up to num_padded_reqs.
   *  0 means that there may be as many as sequences. A graph for few of them
   *  launches fewer blocks, of the variant of prefill for so many. A step of
   *  more with num_padded_reqs 0 fits no graph. */
  int64_t max_num_prefills;
} gdnrt_metadata_options;
GDNRT_STRUCT(gdnrt_metadata_options)

/** A step as the scheduler describes it. All arrays are in host memory and are
 *  read during the call only. */
typedef struct gdnrt_common_metadata {
  size_t struct_size;
  int64_t num_reqs;
  /** The number of tokens in the step, including tokens of the padding of a
   *  graph. */
  int64_t num_actual_tokens;
  /** [num_reqs + 1]: the first token of each sequence. Begins with 0, never
   *  decreases, and ends with num_actual_tokens or less. */
  const int32_t *query_start_loc;
  /** [num_reqs]: all tokens of each request, those of this step included. */
  const int32_t *seq_lens;
  /** [num_reqs, block_table_columns]: slots. Rows are block_table_stride
   *  elements apart. */
  const int32_t *block_table;
  int64_t block_table_columns;
  int64_t block_table_stride;
  /** [num_reqs]: how many tokens of the request's previous step were accepted,
   *  1 to 1 + S. With LAZY and BUFFER 0 says that no tokens wait for a commit.
   *  Null is allowed without speculation, in a step in which no sequence has
   *  tokens before this step, and with TREE, which ignores the array. */
  const int32_t *num_accepted_tokens;
  /** [num_reqs] or null: the number of drafts of each sequence in this step, or
   *  -1 for a sequence that is not verified. A sequence with 0 drafts is
   *  verified as well. One exception: with SLOTS, if no sequence of the step
   *  has a draft, all of them are decoded, which gives the same states. */
  const int32_t *num_decode_draft_tokens;
  /** The number of rows to which the arrays of a graph are padded. 0 means
   *  num_reqs, or num_actual_tokens if that is larger and all sequences decode.
   *  With any value, the elements after the sequences of the step are padding,
   *  up to the end of every array that a graph reads. */
  int64_t num_padded_reqs;
  /** [num_reqs, 1 + S], for TREE and BUFFER: the slots to which the states
   *  after the tokens of each sequence are written. Rows are token_slots_stride
   *  elements apart. With BUFFER a commit reads the states of the sequence's
   *  previous step from the same slots. Rows of sequences that need no such
   *  slots are ignored. Null if no sequence needs them. */
  const int32_t *token_slots;
  /** [num_reqs, 1 + S], for TREE: the parent of each token, as an index in its
   *  sequence, or -1 for none. The same stride. */
  const int32_t *parents;
  int64_t token_slots_stride;
} gdnrt_common_metadata;
GDNRT_STRUCT(gdnrt_common_metadata)

/** An array of a step. Null `data` means that the step has no such array (None
 *  in Python). An array without elements has `data`. */
typedef struct gdnrt_i32_array {
  const int32_t *data;
  int64_t size;
} gdnrt_i32_array;

typedef struct gdnrt_bool_array {
  const uint8_t *data;
  int64_t size;
} gdnrt_bool_array;

typedef enum gdnrt_run_kind {
  /** One token per sequence: num_tokens is num_rows. */
  GDNRT_RUN_DECODE = 0,
  GDNRT_RUN_PREFILL = 1,
  GDNRT_RUN_VERIFY = 2,
  /** A launch without tokens, before all other runs. Its sequences are those of
   *  commit_slots. */
  GDNRT_RUN_COMMIT = 3
} gdnrt_run_kind;

/** Consecutive sequences of one kind in a step, which are one launch. */
typedef struct gdnrt_run {
  /** A gdnrt_run_kind. */
  int32_t kind;
  /** For prefill: 1 if a sequence of the run begins with a state. */
  int32_t reads_state;
  int64_t first_token;
  int64_t num_tokens;
  /** The first sequence and the number of sequences, as indices of the arrays
   *  of the kind: spec_* for verify, commit_* for commit, non_spec_* for the
   *  other kinds. */
  int64_t first_row;
  int64_t num_rows;
  /** For prefill and verify: [num_rows + 1], the first token of each sequence
   *  within the run, from 0. Otherwise null. */
  const int32_t *query_start_loc;
} gdnrt_run;

/** What a layer does in a step. The arrays belong to the builder. They are
 *  valid until its next build, which overwrites them. */
typedef struct gdnrt_gdn_metadata {
  size_t struct_size;
  int64_t num_prefills;
  int64_t num_prefill_tokens;
  int64_t num_decodes;
  int64_t num_decode_tokens;
  int64_t num_spec_decodes;
  int64_t num_spec_decode_tokens;
  int64_t num_actual_tokens;

  /** [sequences that are not verified], if the step has prefills: 1 if the
   *  sequence has a state to begin with. */
  gdnrt_bool_array has_initial_state;
  /** [chunks, 2], if the step has prefills: the sequence, and the index of the
   *  chunk in the sequence. */
  gdnrt_i32_array chunk_indices;
  /** [sequences that are not verified + 1], if the step has prefills: the first
   *  chunk of each sequence. */
  gdnrt_i32_array chunk_offsets;

  gdnrt_i32_array spec_query_start_loc;
  gdnrt_i32_array non_spec_query_start_loc;
  /** [verified sequences, num_spec_columns]: the slots of the states after the
   *  tokens. num_spec_columns is 1 + S. Absent with LAZY. */
  gdnrt_i32_array spec_state_indices;
  int64_t num_spec_columns;
  /** [sequences that are not verified]: the slots that the sequences write. */
  gdnrt_i32_array non_spec_state_indices;
  gdnrt_bool_array spec_sequence_masks;
  gdnrt_i32_array spec_token_indx;
  gdnrt_i32_array non_spec_token_indx;
  /** [verified sequences]: the accepted counts. In a step without verified
   *  sequences: the counts of all sequences, if they were given. */
  gdnrt_i32_array num_accepted_tokens;

  /** [sequences that are not verified], if accepted counts were given: the
   *  slots that the sequences read, and the counts. */
  gdnrt_i32_array spec_decode_src_indices;
  gdnrt_i32_array non_spec_num_accepted;

  /** The prefills, which come after the decodes, of a step without verified
   *  sequences. Tokens count from 0. */
  gdnrt_i32_array prefill_query_start_loc;
  gdnrt_i32_array prefill_state_indices;
  gdnrt_bool_array prefill_has_initial_state;

  /** Blocks of GDNRT_CONV_BLOCK tokens for the convolution. conv_nums has the
   *  number of blocks of each sequence, and conv_total is their sum. For each
   *  block, batch_ptr has the sequence and token_chunk_offset_ptr has the index
   *  of the block in the sequence; the elements after conv_total are -1. */
  gdnrt_i32_array conv_nums;
  int64_t conv_total;
  gdnrt_i32_array batch_ptr;
  gdnrt_i32_array token_chunk_offset_ptr;

  /** Mode ALL: the states at the ends of blocks inside a sequence, which
   *  prefill keeps, by sequence of non_spec_state_indices. The arrays are those
   *  of the checkpoints of a kernel. */
  gdnrt_i32_array cu_checkpoints;
  gdnrt_i32_array checkpoint_tokens;
  gdnrt_i32_array checkpoint_slots;

  /** A gdnrt_verify_states. spec_slots [verified sequences], with other kinds
   *  than SLOTS: the slots of the sequences. spec_parents [verified sequences,
   *  num_spec_columns], with TREE: the parents of the tokens. */
  int64_t verify_states;
  gdnrt_i32_array spec_slots;
  gdnrt_i32_array spec_parents;
  /** With LAZY, BUFFER and deferred writes: the slots of the sequences of a
   *  commit, and how many tokens of the previous step it puts into the state of
   *  each, those that the slot counts aside. With BUFFER also the slots of the
   *  states after these tokens, [sequences, num_spec_columns]. */
  gdnrt_i32_array commit_slots;
  gdnrt_i32_array commit_num_accepted;
  gdnrt_i32_array commit_token_slots;

  /** [sequences that are not verified], if there are any: the slots from which
   *  the sequences read their state. For a sequence without a state it is the
   *  slot that the sequence writes. */
  gdnrt_i32_array non_spec_read_indices;
  /** Zeros, at least one more than the step has sequences: the cu_checkpoints
   *  of a kernel that can keep states, in a step that asks for none. */
  gdnrt_i32_array zeros;
  /** As has_initial_state, also in steps without prefills. */
  gdnrt_bool_array run_has_initial;
  const gdnrt_run *runs;
  int64_t num_runs;
  /** The tokens of all runs. The tokens after them are padding. */
  int64_t num_run_tokens;

  /** All arrays are in the `arena_bytes` bytes at `arena`. The arrays that
   *  kernels read (slots, counts, query_start_loc, has_initial, checkpoints)
   *  are in the first `device_bytes` of them, which differ from step to step:
   *  all that a graph of decode or verify reads, and if the step has prefills,
   *  what these read. */
  const void *arena;
  size_t arena_bytes;
  size_t device_bytes;

  /** 1 if any step of this builder may have a sequence that reads another slot
   *  than it writes (SLOTS with speculation, and mode ALL). A graph then needs
   *  a decode kernel with the parameter write_slots. */
  int32_t moves_states;
  /** 1 if launches of prefill have the bounds of a graph, so that they may be
   *  captured: they are right for all batches within them, in which every
   *  sequence has a state. Those of mixed batches always may. */
  int32_t prefill_is_bounded;
  /** With mixed_batch: 1 for the sequences of prefill, 0 for those of verify.
   *  The arrays spec_*, those of verify, then have all sequences of the step,
   *  in its order. What belongs to prefill is not read. Absent otherwise. */
  gdnrt_bool_array run_is_prefill;
  /** With mixed_batch: the arrays non_spec_* have the sequences of prefill in
   *  the order of the step, and one element for all sequences of verify between
   *  two of them: 1 for the former, 0 for the latter, of which prefill reads
   *  nothing else. Absent otherwise. */
  gdnrt_bool_array non_spec_is_prefill;
  /** With mixed_batch: the number of sequences for which a layer chooses the
   *  variant of prefill. In a graph it is max_num_prefills. */
  int64_t num_expected_prefills;
  /** The distance between rows of spec_state_indices and spec_parents, in
   *  elements. 0 means num_spec_columns. */
  int64_t spec_stride;
  /** 1: the arrays, query_start_loc of the runs included, are in memory of the
   *  device, and not in an arena; see batch_planner.h. */
  int64_t on_device;
  /** What the builder knows of uploads; see gdnrt_metadata_upload_changed. */
  void *uploaded;
  /** 1: the step is one of a builder with deferred_writes. */
  int64_t deferred_writes;
  /** Mode ALL: [sequences of non_spec_state_indices], the row of the step that
   *  each of them belongs to, if a row is two sequences. The second reads the
   *  slot that the first writes, and begins a run, whose launch has to wait for
   *  the run before. Counts of prefills are those of sequences. The array is
   *  not in `arena`. Absent otherwise. */
  gdnrt_i32_array non_spec_rows;
} gdnrt_gdn_metadata;
GDNRT_STRUCT(gdnrt_gdn_metadata)

typedef struct gdnrt_metadata_builder gdnrt_metadata_builder;

/** Creates a builder and allocates all of its memory. */
GDNRT_API gdnrt_status gdnrt_metadata_builder_create(
    const gdnrt_metadata_options *options, gdnrt_metadata_builder **builder,
    gdnrt_error *error);

/** Destroys the builder and the arrays of its metadata. */
GDNRT_API void gdnrt_metadata_builder_destroy(gdnrt_metadata_builder *builder);

/** The maximum number of tokens of a sequence that a scheduler may treat as a
 *  decode: 1 + S. Schedulers put such sequences first. 0 if `builder` is null.
 */
GDNRT_API int64_t gdnrt_metadata_builder_reorder_batch_threshold(
    const gdnrt_metadata_builder *builder);

/** The maximum number of rows of a graph. 0 if `builder` is null. */
GDNRT_API int64_t gdnrt_metadata_builder_decode_cudagraph_max_bs(
    const gdnrt_metadata_builder *builder);

/** Makes the metadata of a step. A `common` that contradicts itself or the
 *  options is an INVALID_ARGUMENT. Then `metadata` is unchanged, but the
 *  contents of the arrays of the previous step are undefined. */
GDNRT_API gdnrt_status gdnrt_metadata_builder_build(
    gdnrt_metadata_builder *builder, const gdnrt_common_metadata *common,
    gdnrt_gdn_metadata *metadata, gdnrt_error *error);

/** Makes the metadata for the capture of a graph. Sequences of one token give a
 *  decode graph, sequences of 1 + S tokens a verify graph. Accepted counts and
 *  drafts of `common` are ignored. INVALID_ARGUMENT if there are more sequences
 *  or tokens than a graph can have rows. */
GDNRT_API gdnrt_status gdnrt_metadata_builder_build_for_cudagraph_capture(
    gdnrt_metadata_builder *builder, const gdnrt_common_metadata *common,
    gdnrt_gdn_metadata *metadata, gdnrt_error *error);

/** Makes the metadata of a step that has nothing but a commit: it puts the
 *  tokens that are pending in slots[i] into the state, for i < count, after
 *  which any kernel or the engine may read that state. num_accepted[i] tokens
 *  of the last step of the slot, a verify, are among them; null: the last step
 *  of no slot was a verify. The accepted count of a sequence is 0 after that.
 *  Slots that are negative or pad_slot are padding. For builders with LAZY or
 *  with deferred_writes (UNSUPPORTED with others). gdnrt_gdn_layer_forward
 *  takes it without tokens. INVALID_ARGUMENT for more than max_num_seqs slots,
 *  for a slot that is named twice and is not padding, and for a count that is
 *  not from 0 to 1 + S. */
GDNRT_API gdnrt_status gdnrt_metadata_builder_build_commit(
    gdnrt_metadata_builder *builder, const int32_t *slots,
    const int32_t *num_accepted, int64_t count, gdnrt_gdn_metadata *metadata,
    gdnrt_error *error);

/** Mode ALIGN: finds the states that must be copied before a step, from slot
 *  from[i] to slot to[i] for i < count, as gdnrt_state_pool_copy takes them.
 *  Called before build. The states of a request begin in the column of the
 *  block that has its last token. So when a request grows into another block,
 *  its state must be copied to the column of that block.
 *
 *  `columns` [num_reqs] belongs to the engine: the column in which the states
 *  of each request began in its last step, or -1 for a request without a step
 *  so far. The state of such a request, if it has tokens before this step, is
 *  the state at the end of a cached prefix, in the column of the prefix's last
 *  block. The call sets `columns` to the columns of this step. `accepted`
 *  [num_reqs] are the counts that build gets, null without speculation. With
 *  SLOTS the call sets the count to 1 for sequences whose state moves. `from`
 *  and `to` have room for num_reqs slots. On failure only `from` and `to` have
 *  changed. INVALID_ARGUMENT in other modes. */
GDNRT_API gdnrt_status gdnrt_align_states_before(
    const gdnrt_metadata_builder *builder, const gdnrt_common_metadata *common,
    int32_t *columns, int32_t *accepted, int32_t *from, int32_t *to,
    int64_t *count, gdnrt_error *error);

/** As gdnrt_align_states_before, but called after a step with drafts, when its
 *  accepted counts are known: finds the states that must be copied to the
 *  columns of blocks that the accepted tokens have filled, so that other
 *  requests can begin with them. `accepted` are the counts of this step, which
 *  the next step gets. The call sets the count to 1 where the state that the
 *  next step begins with has moved. Without speculation the count of copies is
 *  0. UNSUPPORTED with speculation of another kind than SLOTS. */
GDNRT_API gdnrt_status gdnrt_align_states_after(
    const gdnrt_metadata_builder *builder, const gdnrt_common_metadata *common,
    int32_t *columns, int32_t *accepted, int32_t *from, int32_t *to,
    int64_t *count, gdnrt_error *error);

/** Finds, for requests between two steps, the column of the block table whose
 *  slot has the request's state: what is stored if the request is preempted or
 *  goes elsewhere (host_tier.h). No other column has anything that the request
 *  needs; in mode ALL the columns before it are prefixes.
 *
 *  num_tokens[i] are the tokens of request i so far, those that were accepted.
 *  For a request without tokens the column is -1: it has no state. `starts` are
 *  the `columns` of gdnrt_align_states_before, in mode ALIGN; null in other
 *  modes. `accepted` are the counts that the next build would get. Null without
 *  speculation.
 *
 *  A state that comes back goes to the column of the request's last token, (n -
 *  1) / block_size, or to column 0 in mode NONE; with ALIGN that is its
 *  `columns` as well. Its count is then 1 with SLOTS, and as before with LAZY,
 *  whose pending tokens are in the slot. With BUFFER the states after tokens
 *  are elsewhere, so a commit comes first: a count other than 0 is an
 *  INVALID_ARGUMENT. With TREE the column is that of a sequence that is not
 *  verified, which the engine may have changed. */
GDNRT_API gdnrt_status gdnrt_state_columns(
    const gdnrt_metadata_builder *builder, const int32_t *num_tokens,
    const int32_t *starts, const int32_t *accepted, int64_t count,
    int32_t *columns, gdnrt_error *error);

/** Copies the arrays that kernels read to `device_arena`, device memory of
 *  arena_bytes bytes, in the order of `stream`. UNSUPPORTED while the stream is
 *  being captured: copy before each replay instead. The addresses in a graph
 *  stay valid for all steps of the builder. */
GDNRT_API gdnrt_status gdnrt_metadata_upload(gdnrt_device *device,
                                             const gdnrt_gdn_metadata *metadata,
                                             void *device_arena, void *stream,
                                             gdnrt_error *error);

/** As gdnrt_metadata_upload, but copies nothing if `device_arena` has the
 * arrays of the step already: if the last upload of the builder by this
 * function was of the same bytes, to the same arena, on the same stream. Most
 * steps that decode without speculation are like the step before. Nobody else
 * may write the arena, and it must not be freed before the builder is
 * destroyed. */
GDNRT_API gdnrt_status gdnrt_metadata_upload_changed(
    gdnrt_device *device, const gdnrt_gdn_metadata *metadata,
    void *device_arena, void *stream, gdnrt_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GDN_C_METADATA_H */
