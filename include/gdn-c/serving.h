/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Serving: from a scheduler's step to launches. Metadata of a step, made on the
 * host, and the core of a layer. Conventions of calls, errors and handles are
 * those of runtime.h.
 *
 * Arrays are row-major. A "sequence" is a request of the step; its tokens are
 * query_start_loc[i] <= t < query_start_loc[i + 1].
 *
 * Threads. A builder is used by one thread at a time. It takes no memory after
 * it was made, and its arrays keep their addresses.
 */

#ifndef GDN_C_SERVING_H
#define GDN_C_SERVING_H

#include "gdn-c/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/*===-- Constants of the originals ----------------------------------------===*/

/** A slot id that was never any slot; kernels skip it. */
#define GDNRT_PAD_SLOT_ID (-1)
/** The null slot: padding rows are there. */
#define GDNRT_NULL_BLOCK_ID 0
/** Tokens of a chunk in chunk_indices and chunk_offsets. */
#define GDNRT_CHUNK_SIZE 64
/** Tokens of a block in the convolution's metadata. */
#define GDNRT_CONV_BLOCK 8

/** Where in its row of the block table a request has its state. */
typedef enum gdnrt_mamba_cache_mode {
  /** Columns 0 .. S: one slot, or one per speculated token. */
  GDNRT_CACHE_NONE = 0,
  /** Columns from the block of the last token on; see
   *  gdnrt_align_states_before. */
  GDNRT_CACHE_ALIGN = 1,
  /** One column per block: read that of the last computed token, write that of
   *  the last scheduled one, keep those between. A sequence that starts inside
   *  a block ends in it, or at its end. */
  GDNRT_CACHE_ALL = 2
} gdnrt_mamba_cache_mode;

/** How the kernel verify keeps what may be taken back: gdn-compile's --verify.
 *  Its sequences have one slot each, but with SLOTS 1 + S, and accepted counts
 *  begin at 1 with SLOTS, at 0 with LAZY and BUFFER, where a count says how
 *  many tokens wait for a commit. */
typedef enum gdnrt_verify_states {
  /** States after tokens go to columns 0 .. S; the sequence goes on from column
   *  num_accepted - 1. */
  GDNRT_VERIFY_SLOTS = 0,
  /** They go to token_slots of the pool, and tokens have parents. The engine
   *  makes the slot after the last accepted token the sequence's. */
  GDNRT_VERIFY_TREE = 1,
  /** Tokens stay pending in the slot, at most 8 of a sequence. The sequence's
   *  next step takes accepted ones in: verify by itself, others behind a
   *  commit. */
  GDNRT_VERIFY_LAZY = 2,
  /** States go to token_slots of a buffer; the sequence's next step begins with
   *  a commit, so that they are the sequence's until then. */
  GDNRT_VERIFY_BUFFER = 3
} gdnrt_verify_states;

/*===-- Metadata of a step ------------------------------------------------===*/

typedef struct gdnrt_metadata_options {
  size_t struct_size;
  /** The most sequences of a step. */
  int64_t max_num_seqs;
  /** The most tokens of a step. */
  int64_t max_num_tokens;
  /** S; 0 means no speculation. 1 + S is at most 64. */
  int64_t num_speculative_tokens;
  /** 1: steps of decode or of verify alone are padded for graphs. */
  int32_t use_full_cuda_graph;
  /** A gdnrt_mamba_cache_mode. */
  int32_t mamba_cache_mode;
  /** The most rows that a graph has; 0 means no bound but max_num_seqs * (1 +
   *  S). */
  int64_t max_cudagraph_capture_size;
  /** Tokens of a block; of modes align and all. */
  int64_t block_size;
  /** The slot of padding rows: GDNRT_NULL_BLOCK_ID or GDNRT_PAD_SLOT_ID. */
  int32_t pad_slot;
  /** A gdnrt_verify_states. */
  int32_t verify_states;
} gdnrt_metadata_options;
GDNRT_STRUCT(gdnrt_metadata_options)

/** What the scheduler knows of a step. Memory of the host, read during the
 *  call only. */
typedef struct gdnrt_common_metadata {
  size_t struct_size;
  int64_t num_reqs;
  /** The tokens of the step, those of a graph's padding included. */
  int64_t num_actual_tokens;
  /** [num_reqs + 1], from 0, never falling, to num_actual_tokens at most. */
  const int32_t *query_start_loc;
  /** [num_reqs]: tokens of the request with those of this step. */
  const int32_t *seq_lens;
  /** [num_reqs, block_table_columns] with rows block_table_stride apart. */
  const int32_t *block_table;
  int64_t block_table_columns;
  int64_t block_table_stride;
  /** [num_reqs]: tokens of the step before that were right, 1 .. 1 + S, with
   *  LAZY and BUFFER 0 where none wait for a commit. Null without speculation,
   *  where no sequence has tokens before this step, and with TREE, which does
   *  not look at it. */
  const int32_t *num_accepted_tokens;
  /** [num_reqs]: drafts of this step, or -1 for sequences that are not
   *  verified; or null. A sequence with 0 drafts is verified; with SLOTS it is
   *  decoded if no sequence of the step has any, which gives the same
   *  states. */
  const int32_t *num_decode_draft_tokens;
  /** Rows that arrays of a graph's size are padded to; 0 means num_reqs, or
   *  num_actual_tokens where those are more and sequences decode. Whatever it
   *  says, elements behind the sequences of a step are padding up to the end of
   *  every array that a graph reads. */
  int64_t num_padded_reqs;
  /** [num_reqs, 1 + S] with rows token_slots_stride apart, of TREE and BUFFER:
   *  where the states after a sequence's tokens go; with BUFFER those of its
   *  step before are there as well. Of sequences that need none anything, or
   *  null. */
  const int32_t *token_slots;
  /** The same of TREE: the tokens' parents within the sequence, -1 for none. */
  const int32_t *parents;
  int64_t token_slots_stride;
} gdnrt_common_metadata;
GDNRT_STRUCT(gdnrt_common_metadata)

/** `data` null: there is no such array in this step (Python's None). An empty
 *  array has data. */
typedef struct gdnrt_i32_array {
  const int32_t *data;
  int64_t size;
} gdnrt_i32_array;

typedef struct gdnrt_bool_array {
  const uint8_t *data;
  int64_t size;
} gdnrt_bool_array;

typedef enum gdnrt_run_kind {
  /** One token per sequence; tokens and sequences are the same. */
  GDNRT_RUN_DECODE = 0,
  GDNRT_RUN_PREFILL = 1,
  GDNRT_RUN_VERIFY = 2,
  /** No tokens; before all others. Sequences are those of commit_slots. */
  GDNRT_RUN_COMMIT = 3
} gdnrt_run_kind;

/** Sequences of one kind that follow each other in the step: one launch. */
typedef struct gdnrt_run {
  /** A gdnrt_run_kind. */
  int32_t kind;
  /** 1 if a sequence has a state to start from; of prefill. */
  int32_t reads_state;
  int64_t first_token;
  int64_t num_tokens;
  /** Both count sequences, in the arrays of its kind: spec_* for verify,
   *  non_spec_* for others. */
  int64_t first_row;
  int64_t num_rows;
  /** [num_rows + 1] from 0; of prefill and verify. */
  const int32_t *query_start_loc;
} gdnrt_run;

/** What a layer does in a step. Arrays belong to the builder and hold until its
 *  next build; after that their addresses hold something else. */
typedef struct gdnrt_gdn_metadata {
  size_t struct_size;
  int64_t num_prefills;
  int64_t num_prefill_tokens;
  int64_t num_decodes;
  int64_t num_decode_tokens;
  int64_t num_spec_decodes;
  int64_t num_spec_decode_tokens;
  int64_t num_actual_tokens;

  /** [sequences that are not verified]; where there are prefills. */
  gdnrt_bool_array has_initial_state;
  /** [chunks, 2]: the sequence and its chunk; where there are prefills. */
  gdnrt_i32_array chunk_indices;
  /** [sequences that are not verified + 1]. */
  gdnrt_i32_array chunk_offsets;

  gdnrt_i32_array spec_query_start_loc;
  gdnrt_i32_array non_spec_query_start_loc;
  /** [verified sequences, num_spec_columns], which is 1 + S: slots of the
   *  states after tokens. None with LAZY. */
  gdnrt_i32_array spec_state_indices;
  int64_t num_spec_columns;
  /** [sequences that are not verified]: the slots that sequences write. */
  gdnrt_i32_array non_spec_state_indices;
  gdnrt_bool_array spec_sequence_masks;
  gdnrt_i32_array spec_token_indx;
  gdnrt_i32_array non_spec_token_indx;
  /** Of the verified sequences; without any, of all sequences if they were
   *  given. */
  gdnrt_i32_array num_accepted_tokens;

  /** The sequences that are not verified, where accepted counts were given: the
   *  slots that they read, and the counts. */
  gdnrt_i32_array spec_decode_src_indices;
  gdnrt_i32_array non_spec_num_accepted;

  /** The prefills behind the decodes of a batch without verified sequences. */
  gdnrt_i32_array prefill_query_start_loc;
  gdnrt_i32_array prefill_state_indices;
  gdnrt_bool_array prefill_has_initial_state;

  /** Of blocks of GDNRT_CONV_BLOCK tokens: blocks of each sequence; the
   *  sequence and the number within the sequence of each block, followed by -1
   *  up to size. */
  gdnrt_i32_array conv_nums;
  int64_t conv_total;
  gdnrt_i32_array batch_ptr;
  gdnrt_i32_array token_chunk_offset_ptr;

  /** Mode all: states at the ends of blocks that a prefill passes, by sequence
   *  of non_spec_state_indices. The shape is that of a kernel's checkpoints. */
  gdnrt_i32_array cu_checkpoints;
  gdnrt_i32_array checkpoint_tokens;
  gdnrt_i32_array checkpoint_slots;

  /** A gdnrt_verify_states. Other than SLOTS: the slots of the verified
   *  sequences; with TREE: parents, [verified sequences, num_spec_columns]. */
  int64_t verify_states;
  gdnrt_i32_array spec_slots;
  gdnrt_i32_array spec_parents;
  /** Where a step begins with a commit, LAZY and BUFFER: slots, how many tokens
   *  of the step before go into each, and with BUFFER where their states are,
   *  [sequences, num_spec_columns]. */
  gdnrt_i32_array commit_slots;
  gdnrt_i32_array commit_num_accepted;
  gdnrt_i32_array commit_token_slots;

  /** Always there unless empty: the slots that sequences which are not verified
   *  read their state from; a sequence without one has its slot to write
   *  here. */
  gdnrt_i32_array non_spec_read_indices;
  /** At least as many as sequences and one more: cu_checkpoints of kernels that
   *  could keep states where none is asked for. */
  gdnrt_i32_array zeros;
  /** has_initial_state, whether or not there are prefills. */
  gdnrt_bool_array run_has_initial;
  const gdnrt_run *runs;
  int64_t num_runs;
  /** The tokens of all runs: what lies behind is padding. */
  int64_t num_run_tokens;

  /** All arrays lie in `arena_bytes` bytes from `arena` on; what a device
   *  needs (slots, counts, query_start_loc, has_initial, checkpoints) in the
   *  first `device_bytes` of them. */
  const void *arena;
  size_t arena_bytes;
  size_t device_bytes;

  /** 1 if a step of this builder may have sequences that read another slot than
   *  they write (SLOTS with speculation, mode all): what a graph captures then
   *  needs a decode kernel with write_slots. */
  int32_t moves_states;
  /** 0. */
  int32_t reserved;
} gdnrt_gdn_metadata;
GDNRT_STRUCT(gdnrt_gdn_metadata)

typedef struct gdnrt_metadata_builder gdnrt_metadata_builder;

/** Makes a builder; takes all of its memory. */
GDNRT_API gdnrt_status gdnrt_metadata_builder_create(
    const gdnrt_metadata_options *options, gdnrt_metadata_builder **builder,
    gdnrt_error *error);

GDNRT_API void gdnrt_metadata_builder_destroy(gdnrt_metadata_builder *builder);

/** Up to how many tokens a sequence is decode-like: 1 + S. Schedulers put such
 *  sequences first. 0 for null. */
GDNRT_API int64_t gdnrt_metadata_builder_reorder_batch_threshold(
    const gdnrt_metadata_builder *builder);

/** The most rows that a graph's arrays have: M. 0 for null. */
GDNRT_API int64_t gdnrt_metadata_builder_decode_cudagraph_max_bs(
    const gdnrt_metadata_builder *builder);

/** The metadata of a step. What makes no sense is an INVALID_ARGUMENT; then
 *  `metadata` is unchanged, but the arrays of the step before hold anything. */
GDNRT_API gdnrt_status gdnrt_metadata_builder_build(
    gdnrt_metadata_builder *builder, const gdnrt_common_metadata *common,
    gdnrt_gdn_metadata *metadata, gdnrt_error *error);

/** The metadata to capture a graph with: sequences of one token make the graph
 *  of decode, sequences of 1 + S that of verify. Accepted counts and drafts of
 *  `common` are not looked at. */
GDNRT_API gdnrt_status gdnrt_metadata_builder_build_for_cudagraph_capture(
    gdnrt_metadata_builder *builder, const gdnrt_common_metadata *common,
    gdnrt_gdn_metadata *metadata, gdnrt_error *error);

/** Mode align: which states have to be copied ahead of a step, from from[i] to
 *  to[i], as gdnrt_state_pool_copy takes them; called before build. A request's
 *  states begin in the column of the block of its last token, so one that grows
 *  into another block takes its state along.
 *
 *  `columns` [num_reqs] is the engine's: where each request's states began in
 *  its last step, -1 for one that has had none (its state is then that at the
 *  end of a prefix, in the column of the prefix' last block). It becomes that
 *  of this step. `accepted` [num_reqs], null without speculation, are the
 *  counts that build gets; with SLOTS they become 1 in sequences that move.
 *  `from` and `to` have room for num_reqs slots. On failure only they have
 *  changed. */
GDNRT_API gdnrt_status gdnrt_align_states_before(
    const gdnrt_metadata_builder *builder, const gdnrt_common_metadata *common,
    int32_t *columns, int32_t *accepted, int32_t *from, int32_t *to,
    int64_t *count, gdnrt_error *error);

/** The same behind a step of drafts, once their counts are known: which states
 *  go to the columns of blocks that the accepted tokens have filled, so that
 *  others can start there. `accepted` are the counts of this step, for the next
 *  one; they become 1 where what the next step starts from has moved. Without
 *  speculation nothing has to move. UNSUPPORTED with other kinds than SLOTS. */
GDNRT_API gdnrt_status gdnrt_align_states_after(
    const gdnrt_metadata_builder *builder, const gdnrt_common_metadata *common,
    int32_t *columns, int32_t *accepted, int32_t *from, int32_t *to,
    int64_t *count, gdnrt_error *error);

/** Copies what kernels read of the metadata to `device_arena`, memory of the
 *  device for arena_bytes bytes, in the order of `stream`. Not within the
 *  capture of a graph: a replay copies first. The addresses in a graph stay
 *  good for all steps of the builder. */
GDNRT_API gdnrt_status gdnrt_metadata_upload(gdnrt_device *device,
                                             const gdnrt_gdn_metadata *metadata,
                                             void *device_arena, void *stream,
                                             gdnrt_error *error);

/*===-- Layers ------------------------------------------------------------===*/

/** The core of one GatedDeltaNetAttention layer: its kernels, weights and
 *  pools. Used by one thread at a time. Takes memory at the first launch of
 *  each kernel, and of the device where a kernel cannot work in place and has
 *  more sequences than before: so an engine warms up with its largest batch. */
typedef struct gdnrt_gdn_layer gdnrt_gdn_layer;

/** Kernels for the kinds of sequences; null: such sequences are refused
 *  (UNSUPPORTED), and nothing of their step is launched. `commit` is that of
 *  images whose verify is LAZY or BUFFER. */
typedef struct gdnrt_gdn_kernels {
  size_t struct_size;
  gdnrt_kernel *decode;
  gdnrt_kernel *prefill;
  gdnrt_kernel *verify;
  gdnrt_kernel *commit;
} gdnrt_gdn_kernels;
GDNRT_STRUCT(gdnrt_gdn_kernels)

/** Makes a layer of kernels of one device and the arrays that never change:
 *  conv_weight, A_log, dt_bias, norm_weight, conv_pool, state_pool, and what
 *  verify keeps states in (pending_keys, pending_deltas, pending_decays, or
 *  token_conv_pool, token_state_pool), as far as the kernels take them. The
 *  arrays stay the caller's. conv_pool is that of the kernel with the most
 *  positions; others get the first ones. */
GDNRT_API gdnrt_status gdnrt_gdn_layer_create(const gdnrt_gdn_kernels *kernels,
                                              const gdnrt_named_arg *fixed,
                                              size_t count,
                                              gdnrt_gdn_layer **layer,
                                              gdnrt_error *error);

/** Whether the layer can serve every step that the builder makes metadata for:
 *  UNSUPPORTED if not, with all that its kernels lack and the options of
 *  gdn-compile that they were to be made with. For engines that want to know
 *  when they start; forward checks each step by itself. */
GDNRT_API gdnrt_status gdnrt_gdn_layer_check_steps(
    const gdnrt_gdn_layer *layer, const gdnrt_metadata_builder *builder,
    gdnrt_error *error);

/** Destroys the layer. Its launches must have run; graphs keep alive what they
 *  need of its kernels and of the memory that it took to work in. */
GDNRT_API void gdnrt_gdn_layer_destroy(gdnrt_gdn_layer *layer);

/** Runs the core over a step. `tokens` are the projections and outputs, one row
 *  per token: qkvz and ba, or what else the kernels take, and core or out. Rows
 *  of the outputs behind the step's tokens become zero; there may be rows of
 *  the inputs behind them as well.
 *
 *  `device_arena` is where gdnrt_metadata_upload put the metadata; a CPU takes
 *  null and reads the builder's. `metadata` null is a profile run: outputs
 *  become zero, and no pool is touched.
 *
 *  Sequences of prefills start from their slot where has_initial_state says so,
 *  which needs kernels with has_initial. The first token of a request is a
 *  prefill as well: a graph of decode may be replayed for a step with such
 * sequences, and no longer ones, if its kernel takes has_initial (gdn-compile
 *  --decode-initial); another one would read the slot. Sequences that read and
 * write different slots need kernels with write_slots. Metadata of verified
 * sequences has to be of the kernel's gdnrt_verify_states.
 *
 *  Everything is checked, and memory taken, before the first launch: a step
 *  that is refused has changed nothing.
 *
 *  Graphs. A step of decode, verify and commit on a stream that is captured is
 *  recorded; metadata, and what the workspace needs, has to be there before.
 *  Prefills, devices with debug checks and kernels that would take memory now
 *  are UNSUPPORTED, and nothing is recorded. */
GDNRT_API gdnrt_status gdnrt_gdn_layer_forward(
    gdnrt_gdn_layer *layer, const gdnrt_gdn_metadata *metadata,
    const void *device_arena, const gdnrt_named_arg *tokens, size_t count,
    void *stream, gdnrt_error *error);

/*===-- One workspace for the layers of a model ---------------------------===*/

/* Kernels may need memory to work in, or go faster with some. A layer takes
 * for itself what a kernel cannot do without. Layers that run one after another
 * may share one block instead, in which the largest need of any of them is the
 * size of all; it is taken once and never grows, and graphs need no step ahead
 * of their capture that takes memory. Launches take what is fastest in it. */

typedef struct gdnrt_workspace gdnrt_workspace;

/** What launches need, in bytes; a model adds total_bytes to its account. */
typedef struct gdnrt_workspace_size {
  size_t struct_size;
  /** Of counters, the first bytes, which are zero between launches. A multiple
   *  of 64. */
  uint64_t counter_bytes;
  uint64_t total_bytes;
} gdnrt_workspace_size;
GDNRT_STRUCT(gdnrt_workspace_size)

/** Raises `size`, a gdnrt_workspace_size_default() at first, to what all
 * kernels of the layer need for the runs of steps of up to `rows` sequences and
 * `tokens` tokens, however they do their work. Asked of each layer, it gives
 * the size for all. */
GDNRT_API gdnrt_status gdnrt_gdn_layer_workspace_size(
    const gdnrt_gdn_layer *layer, int64_t rows, int64_t tokens,
    gdnrt_workspace_size *size, gdnrt_error *error);

/** Takes the memory from the device, which may be destroyed before it. The
 *  total may be smaller than layers asked for: launches then do with what
 *  fits. */
GDNRT_API gdnrt_status gdnrt_workspace_create(gdnrt_device *device,
                                              const gdnrt_workspace_size *size,
                                              gdnrt_workspace **workspace,
                                              gdnrt_error *error);

/** The same in memory of the caller's: total_bytes of the device at `data`,
 *  64-byte aligned, which stay his and have to be there as long as layers share
 *  the workspace and graphs that were captured with it are replayed. Counters
 *  are zeroed in the order of `stream` (null on a CPU), which is not captured;
 *  launches follow on it or behind it, and nobody else writes to the memory
 *  between the first and the last of them. */
GDNRT_API gdnrt_status gdnrt_workspace_wrap(gdnrt_device *device,
                                            const gdnrt_workspace_size *size,
                                            void *data, void *stream,
                                            gdnrt_workspace **workspace,
                                            gdnrt_error *error);

/** Destroys the handle; memory that was taken lives as long as layers share it.
 */
GDNRT_API void gdnrt_workspace_destroy(gdnrt_workspace *workspace);

/** Whether a sequence's results are the same bits in any step; off at first.
 *  See gdnrt_binding_set_batch_invariant, which says what it costs. */
GDNRT_API gdnrt_status gdnrt_gdn_layer_set_batch_invariant(
    gdnrt_gdn_layer *layer, int32_t wanted, gdnrt_error *error);

/** From its next launch on the layer works in `workspace`, of its device. All
 *  layers that do must run in the order of one stream. Null: in its own again.
 *  Graphs work in the one that they were captured with, and keep it alive if
 *  its memory was taken; see gdnrt_device_create_cuda. */
GDNRT_API gdnrt_status gdnrt_gdn_layer_share_workspace(
    gdnrt_gdn_layer *layer, const gdnrt_workspace *workspace,
    gdnrt_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GDN_C_SERVING_H */
