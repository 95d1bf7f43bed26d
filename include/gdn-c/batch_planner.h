/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The metadata of a step whose arrays are on the device: lengths, slots and
 * accepted counts of a mixed batch, which the host need not know. The kernel
 * `plan` of an image of gdn-compile --mixed-batch makes from them what verify,
 * prefill and commits read, ahead of the layers, without a copy and without
 * waiting for the device. metadata.h is the same for arrays of the host.
 */

#ifndef GDN_C_BATCH_PLANNER_H
#define GDN_C_BATCH_PLANNER_H

#include "gdn-c/metadata.h"
#include "gdn-c/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Used by one thread at a time, and by one stream at a time. */
typedef struct gdnrt_batch_planner gdnrt_batch_planner;

typedef struct gdnrt_batch_planner_options {
  size_t struct_size;
  /** The maximum number of sequences in a batch, 1 to 2^23 - 1. */
  int64_t max_num_seqs;
  /** S, the maximum number of drafts of a sequence in a step. */
  int64_t num_speculative_tokens;
  /** A gdnrt_verify_states, as the image has it. */
  int32_t verify_states;
  /** Reserved: 0. */
  int32_t reserved;
} gdnrt_batch_planner_options;
GDNRT_STRUCT(gdnrt_batch_planner_options)

/** A step. The sizes are of the host, and a graph is for all batches within
 *  them. The arrays are in memory of the device and are read in the order of
 *  the stream, by `plan` and by the layers of the step. A sequence without
 *  tokens pads the batch: all its other elements are ignored.
 *
 *  A sequence is skipped, so that its outputs are zeros and no state changes,
 * if it ends past num_tokens, if it has more tokens in this step than on all,
 * if its count or one of its slots is out of range, or if it is verified and
 * has more than 1 + S tokens. */
typedef struct gdnrt_device_batch {
  size_t struct_size;
  /** The number of sequences, padding included. */
  int64_t num_seqs;
  /** The number of tokens, padding included. The outputs of padding are zeros.
   *  The sequences behind the last one with tokens share the work; without
   *  them one block of each kernel has it for each head. */
  int64_t num_tokens;
  /** The maximum number of sequences of prefill among them: those without
   *  drafts, but with SLOTS not those that go on by one token. 0 means
   * num_seqs. If there are more, the tokens of the last ones are not written.
   */
  int64_t max_num_prefills;
  /** [num_seqs + 1]: the first token of each sequence. A start below one ahead
   *  of it counts as that one, so that rows of padding may have zeros. */
  const int32_t *query_start_loc;
  /** [num_seqs]: all tokens of each request, those of this step included. */
  const int32_t *seq_lens;
  /** [num_seqs, block_table_columns]: slots, of which a sequence has those in
   *  columns 0 to S with SLOTS, and the one in column 0 otherwise. Rows are
   *  block_table_stride elements apart. */
  const int32_t *block_table;
  int64_t block_table_columns;
  int64_t block_table_stride;
  /** [num_seqs]: how many tokens of the previous step of each request were
   *  accepted, 1 to 1 + S. With LAZY and BUFFER 0 says that no tokens wait for
   * a commit. Ignored with TREE, and for a request without tokens before this
   *  step, unless it has drafts. */
  const int32_t *num_accepted_tokens;
  /** [num_seqs]: the number of drafts of each sequence, or a negative number
   *  for a sequence that is not verified. */
  const int32_t *num_decode_draft_tokens;
  /** [num_seqs, 1 + S], with TREE and BUFFER, and parents with TREE: as in
   *  gdnrt_common_metadata. */
  const int32_t *token_slots;
  const int32_t *parents;
  int64_t token_slots_stride;
} gdnrt_device_batch;
GDNRT_STRUCT(gdnrt_device_batch)

/** Creates a planner, with its arrays on the device of `plan`, which it keeps
 *  alive. NOT_FOUND if `plan` is no such kernel. */
GDNRT_API gdnrt_status gdnrt_batch_planner_create(
    gdnrt_kernel *plan, const gdnrt_batch_planner_options *options,
    gdnrt_batch_planner **planner, gdnrt_error *error);

/** Destroys the planner. Graphs that were captured with it keep its arrays. */
GDNRT_API void gdnrt_batch_planner_destroy(gdnrt_batch_planner *planner);

/** Launches `plan` on `stream`, which may be captured, and says in `metadata`
 *  what layers do in the step: a launch of verify and one of prefill over all
 *  sequences, with LAZY and BUFFER a commit ahead of them. If the image has
 *  deferred writes, the commit is of all sequences of prefill, as with a
 * builder that has deferred_writes. The metadata is for gdnrt_gdn_layer_forward
 * on the same stream, with any device_arena, and is valid until the next call.
 * Allocates nothing, copies nothing and waits for nothing after its first call.
 * On failure nothing is launched and `metadata` is unchanged. */
GDNRT_API gdnrt_status gdnrt_batch_planner_plan(gdnrt_batch_planner *planner,
                                                const gdnrt_device_batch *batch,
                                                void *stream,
                                                gdnrt_gdn_metadata *metadata,
                                                gdnrt_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GDN_C_BATCH_PLANNER_H */
