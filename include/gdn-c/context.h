/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Context parallelism: prefill of sequences whose tokens are spread over ranks.
 * Rank r has the tokens of each sequence that follow those of rank r - 1, and
 * may have none. The results are those of one call, with states from pools and
 * to pools (docs/design/20261129-context-entries.md).
 *
 * A plan is made once for a batch, and run for each layer. All ranks make the
 * same plans and runs in the same order, with pools of their own that hold the
 * same states in the slots of the batch; afterwards they hold the same bits
 * again. An image has what a plan needs if gdn-compile made it with
 * --layout=ready --outputs=core --segment-maps --combine-maps.
 */

#ifndef GDN_C_CONTEXT_H
#define GDN_C_CONTEXT_H

#include "gdn-c/exchange.h"
#include "gdn-c/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The kernels of an image on a device, and the exchange of its rank. Used by
 *  one thread at a time. */
typedef struct gdnrt_context gdnrt_context;

/** Loads the entries. NOT_FOUND if the image lacks one, or the variant
 *  segment-maps of prefill. INVALID_ARGUMENT if the exchange is for memory of
 *  the host and the device has its own, or the other way. Nothing is exchanged.
 *  The exchange outlives the context and its plans. */
GDNRT_API gdnrt_status gdnrt_context_create(gdnrt_device *device,
                                            const gdnrt_image *image,
                                            gdnrt_exchange *exchange,
                                            gdnrt_context **context,
                                            gdnrt_error *error);

/** Destroys a context. Its plans stay valid. */
GDNRT_API void gdnrt_context_destroy(gdnrt_context *context);

/** A batch over ranks, and the memory that its runs work in. Used by one thread
 *  at a time, and by one stream at a time. */
typedef struct gdnrt_context_plan gdnrt_context_plan;

typedef struct gdnrt_context_options {
  size_t struct_size;
  /** Value heads, HV. */
  int64_t num_heads;
  /** Slots of the pools, P. */
  int64_t num_slots;
  /** Rows of q here, T: at least starts[num_sequences]. */
  int64_t num_tokens;
  /** Sequences of the batch, N. The same on all ranks, as what follows, but for
   *  `starts`. */
  int64_t num_sequences;
  /** [N + 1], memory of the host as all arrays here: sequence n has the rows
   *  starts[n] to starts[n + 1] of this rank. Other rows have outputs of 0. */
  const int64_t *starts;
  /** [N]: the slot that a sequence goes on from. One whose slot is negative,
   *  not below P or null_slot is skipped, and its outputs are 0. */
  const int64_t *slots;
  /** [N]: where last states go; null: to `slots`. Slots that are none, as
   *  above, get no state. A slot is written by one sequence, and read by no
   *  other. */
  const int64_t *write_slots;
  /** [N]: 0 for sequences that begin with zeros; null: none does. */
  const uint8_t *has_initial;
  /** -1 for none. */
  int64_t null_slot;
  /** Into about how many segments this rank cuts its tokens, so that as many
   *  times HV fill the device; 0: 4. */
  int32_t num_segments;
  /** Reserved: 0. */
  int32_t reserved;
  /** [N + 1], or null for no checkpoints, as are the two below: sequence n has
   *  the checkpoints cu_checkpoints[n] to cu_checkpoints[n + 1]. The same on
   * all ranks, as they. */
  const int64_t *cu_checkpoints;
  /** [cu_checkpoints[N]]: after how many tokens of the sequence, on whichever
   *  rank that is, its state goes to the slot of the checkpoint. Ascending in a
   *  sequence; those that are no multiples of 64, do not ascend or are behind
   *  the sequence's end are skipped. */
  const int64_t *checkpoint_tokens;
  /** [cu_checkpoints[N]]: a slot that nothing else writes; skipped if it is
   *  none, as above. */
  const int64_t *checkpoint_slots;
} gdnrt_context_options;
GDNRT_STRUCT(gdnrt_context_options)

/** Makes a plan. Ranks exchange sizes here and wait for each other: with NCCL
 *  through memory of the device on its null stream. Memory for runs is taken.
 *  If the arguments of a rank are wrong, if ranks differ in what has to be the
 *  same, or if a slot would be written twice or read by another sequence, all
 *  ranks fail with INVALID_ARGUMENT; if a rank has no memory, all fail with
 *  OUT_OF_MEMORY. A rank that does not come is an error as exchange.h says. */
GDNRT_API gdnrt_status gdnrt_context_plan_create(
    const gdnrt_context *context, const gdnrt_context_options *options,
    gdnrt_context_plan **plan, gdnrt_error *error);

/** Its runs, and graphs that have some, must have ended for good. */
GDNRT_API void gdnrt_context_plan_destroy(gdnrt_context_plan *plan);

/** The bytes of device memory that a plan holds, without what its outputs work
 *  in, and the bytes that a rank sends in a run. Either may be null. The first
 *  run takes more memory where maps are made of chunks that another kernel
 *  prepares, as on GPUs with a decay for each channel. */
GDNRT_API gdnrt_status gdnrt_context_plan_sizes(const gdnrt_context_plan *plan,
                                                uint64_t *memory_bytes,
                                                uint64_t *sent_bytes,
                                                gdnrt_error *error);

/** Arrays of this rank, in the types of the image. */
typedef struct gdnrt_context_args {
  size_t struct_size;
  /** [T, H, dk], [T, H, dk] and [T, HV, dv]. */
  gdnrt_arg q, k, v;
  /** The logarithm of the decay, [T, HV] or [T, HV, dk], and the strength, [T,
   *  HV]; f32. */
  gdnrt_arg log_decay, beta;
  /** [P, HV, dv, dk], changed in place; its null slot is that of the plan. */
  gdnrt_arg state_pool;
  /** [T, HV, dv], written. */
  gdnrt_arg out;
} gdnrt_context_args;
GDNRT_STRUCT(gdnrt_context_args)

/** Launches a prefill on `stream` (null on a CPU, which has then run): maps,
 *  the exchange, states and outputs; with checkpoints a second exchange, of
 *  their states. The scale of the output is dk ^ -0.5.
 *  Nothing waits for the device. Arrays are checked before anything is launched
 * or sent; then other ranks wait for this one, and fail after their time-out.
 *  A stream may be being captured if a run came before: UNSUPPORTED otherwise,
 *  where memory to work in has to be taken. */
GDNRT_API gdnrt_status gdnrt_context_plan_run(gdnrt_context_plan *plan,
                                              const gdnrt_context_args *args,
                                              void *stream, gdnrt_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GDN_C_CONTEXT_H */
