/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Serving: from a step of the scheduler to launches. metadata.h makes the
 * metadata of a step on the host, this header runs the core of a layer. The
 * conventions of calls, errors and handles are those of runtime.h.
 *
 * Arrays are row-major. A "sequence" is a request of the step. The tokens t of
 * sequence i are query_start_loc[i] <= t < query_start_loc[i + 1].
 *
 * Threads. A builder is used by one thread at a time. It allocates nothing
 * after it is created, and its arrays keep their addresses.
 */

#ifndef GDN_C_SERVING_H
#define GDN_C_SERVING_H

#include "gdn-c/batch_planner.h"
#include "gdn-c/metadata.h"
#include "gdn-c/runtime.h"
#include "gdn-c/state_pool.h"

#ifdef __cplusplus
extern "C" {
#endif

/*===-- Layers ------------------------------------------------------------===*/

/** The core of one GatedDeltaNetAttention layer: its kernels, weights and
 *  pools. A layer is used by one thread at a time. It allocates host memory at
 *  the first launch of each kernel. It allocates device memory if a kernel
 *  cannot run without a workspace and a step needs a larger one than all steps
 *  before. So an engine warms up with its largest batch. */
typedef struct gdnrt_gdn_layer gdnrt_gdn_layer;

/** The kernels by kind of run. Null means that the layer has no such kernel: a
 *  step that needs it is refused (UNSUPPORTED), and nothing of the step is
 *  launched. `commit` is needed with images whose verify is LAZY or BUFFER, or
 *  whose writes are deferred. */
typedef struct gdnrt_gdn_kernels {
  size_t struct_size;
  gdnrt_kernel *decode;
  gdnrt_kernel *prefill;
  gdnrt_kernel *verify;
  gdnrt_kernel *commit;
} gdnrt_gdn_kernels;
GDNRT_STRUCT(gdnrt_gdn_kernels)

/** Creates a layer from kernels of one device, at least one, and the arrays
 *  that never change: conv_weight, A_log, dt_bias, norm_weight, norm_constants
 *  (epsilon; 1 for silu, 0 for sigmoid), conv_pool, state_pool, and the pools
 *  in which verify keeps states (pending_keys, pending_deltas, pending_decays,
 *  or token_conv_pool, token_state_pool). With states in planes there are
 *  state_scales and state_low as well. With deferred writes decode has
 *  pending_keys, pending_deltas, pending_decays and pending_counts as well, and
 *  pending_scales if keys and deltas are f16 (--pending), and the metadata of
 * steps is that of a builder with deferred_writes (INVALID_ARGUMENT otherwise).
 * Kernels whose writes are deferred and others do not go together, but prefill
 * goes with both. Each kernel takes those of them that are its parameters. The
 * arrays stay the caller's, and the layer keeps the kernels alive. conv_pool is
 * the array for the kernel whose window has the most positions; the other
 * kernels get its first positions. INVALID_ARGUMENT if weights and pools are of
 * different head counts, or one of another type than a kernel takes. NOT_FOUND
 * for an array that no kernel has as a parameter.
 */
GDNRT_API gdnrt_status gdnrt_gdn_layer_create(const gdnrt_gdn_kernels *kernels,
                                              const gdnrt_named_arg *fixed,
                                              size_t count,
                                              gdnrt_gdn_layer **layer,
                                              gdnrt_error *error);

/** As gdnrt_gdn_layer_create, but the pools are those of layer `layer_index` of
 *  `pool`, which must outlive the layer: state_pool, conv_pool, for states in
 *  planes state_scales and state_low, and for kernels that keep tokens pending
 *  their keys, deltas, decays, counts and scales. `fixed` has the other arrays.
 *  INVALID_ARGUMENT for a pool that does not keep what the kernels keep: it has
 *  their types, and as many state_planes as they (--state); with deferred
 * writes it has deferred_writes, as many pending_tokens as the kernels
 * (--defer-writes), their pending_dtype (--pending), and with verify as many
 * conv_extra as a sequence of verify may have tokens. */
GDNRT_API gdnrt_status gdnrt_gdn_layer_create_in_pool(
    const gdnrt_gdn_kernels *kernels, const gdnrt_named_arg *fixed,
    size_t count, const gdnrt_state_pool *pool, int64_t layer_index,
    gdnrt_gdn_layer **layer, gdnrt_error *error);

/** Checks that the layer can serve every step for which the builder makes
 *  metadata. Otherwise UNSUPPORTED; the message lists everything that the
 *  kernels lack, with the options of gdn-compile that add it. For engines that
 *  check this at the start: forward checks each step by itself. */
GDNRT_API gdnrt_status gdnrt_gdn_layer_check_steps(
    const gdnrt_gdn_layer *layer, const gdnrt_metadata_builder *builder,
    gdnrt_error *error);

/** Destroys the layer. Its launches must have ended. Graphs keep the kernels
 *  and the workspaces that the layer allocated alive. */
GDNRT_API void gdnrt_gdn_layer_destroy(gdnrt_gdn_layer *layer);

/** Runs the core of the layer for a step. `tokens` are the projections and the
 *  outputs, with one row per token: qkvz and ba, or the other projections that
 *  the kernels take, and core or out. Each array has at least num_run_tokens
 *  rows. Rows of outputs after the tokens of the step are filled with zeros.
 *
 *  `device_arena` is the memory to which gdnrt_metadata_upload copied the
 *  metadata. On a CPU it is null, and kernels read the builder's arrays. Null
 *  `metadata` is a profile run: outputs are filled with zeros, and no pool is
 *  read or written.
 *
 *  A sequence of a prefill begins with the state in its slot if
 *  has_initial_state says so; for that the kernel needs the parameter
 *  has_initial. The first token of a request is a prefill as well. A decode
 *  graph may be replayed for a step with first tokens, but not with longer
 *  prefills, if its kernel has has_initial (option --decode-initial of
 *  gdn-compile); without has_initial it would read the old state in the slot.
 *  Sequences that read and write different slots need kernels with write_slots.
 *  The gdnrt_verify_states of the metadata and of the kernels must be the same.
 *
 *  Everything is checked, and all memory is allocated, before the first launch.
 *  A step that is refused has changed nothing.
 *
 *  Graphs. On a stream that is being captured, the launches of decode, verify
 *  and commit are recorded. The metadata and the memory for a workspace must
 *  exist before that. Prefills (but those of a builder with mixed_batch),
 *  devices with debug checks and kernels that would have to allocate are
 *  UNSUPPORTED, and nothing is recorded. A graph of a mixed batch may be
 *  replayed for any step of as many sequences and tokens, those of its padding
 *  included. */
GDNRT_API gdnrt_status gdnrt_gdn_layer_forward(
    gdnrt_gdn_layer *layer, const gdnrt_gdn_metadata *metadata,
    const void *device_arena, const gdnrt_named_arg *tokens, size_t count,
    void *stream, gdnrt_error *error);

/*===-- One workspace for the layers of a model ---------------------------===*/

/* A kernel may need a workspace, or may be faster with one. A layer allocates a
 * workspace only for a kernel that cannot run without it. Layers that run one
 * after another may share one workspace instead, whose size is the largest that
 * any of them needs. It is allocated once and never grows, so graphs need no
 * step before their capture. A launch takes the fastest variant that fits in
 * it. */

typedef struct gdnrt_workspace gdnrt_workspace;

/** The size of a workspace in bytes. A model adds total_bytes to the memory
 *  that it plans for. */
typedef struct gdnrt_workspace_size {
  size_t struct_size;
  /** The bytes of the counters, which are the first bytes of the workspace and
   *  are zero between launches. A multiple of 64, at most total_bytes. */
  uint64_t counter_bytes;
  uint64_t total_bytes;
} gdnrt_workspace_size;
GDNRT_STRUCT(gdnrt_workspace_size)

/** Raises `size` to what all kernels of the layer need for steps of up to
 *  `rows` sequences and `tokens` tokens, with any variant. `size` is a
 *  gdnrt_workspace_size_default() before the first call. Calls for each layer
 *  in turn give the size for all layers. */
GDNRT_API gdnrt_status gdnrt_gdn_layer_workspace_size(
    const gdnrt_gdn_layer *layer, int64_t rows, int64_t tokens,
    gdnrt_workspace_size *size, gdnrt_error *error);

/** Creates a workspace in memory that it allocates on the device. The device
 *  may be destroyed before the workspace. total_bytes may be less than the
 *  layers asked for: launches then take a variant that fits. */
GDNRT_API gdnrt_status gdnrt_workspace_create(gdnrt_device *device,
                                              const gdnrt_workspace_size *size,
                                              gdnrt_workspace **workspace,
                                              gdnrt_error *error);

/** Creates a workspace in memory of the caller: total_bytes of device memory at
 *  `data`, 64-byte aligned. The memory must stay valid as long as layers share
 *  the workspace and graphs that were captured with it are replayed. The call
 *  fills the counters with zeros in the order of `stream` (null on a CPU),
 *  which must not be in capture (UNSUPPORTED). Launches follow on that stream,
 *  or on a stream that waits for it. Nobody else writes to the memory between
 *  the first and the last launch. */
GDNRT_API gdnrt_status gdnrt_workspace_wrap(gdnrt_device *device,
                                            const gdnrt_workspace_size *size,
                                            void *data, void *stream,
                                            gdnrt_workspace **workspace,
                                            gdnrt_error *error);

/** Destroys the handle. Memory that the workspace allocated is freed when no
 *  layer and no graph uses it. */
GDNRT_API void gdnrt_workspace_destroy(gdnrt_workspace *workspace);

/** 1: the results of a sequence have the same bits in any step. 0, the default:
 *  they may differ in rounding. See gdnrt_binding_set_batch_invariant for the
 *  cost. */
GDNRT_API gdnrt_status gdnrt_gdn_layer_set_batch_invariant(
    gdnrt_gdn_layer *layer, int32_t wanted, gdnrt_error *error);

/** 1, the default: a launch of the layer may begin before the previous kernel
 * on the stream has ended (programmatic dependent launch), and waits for it by
 *  itself. The previous kernel, the projection as a rule, must not write what a
 *  kernel reads before that wait: the metadata, the slots of the pools that it
 *  names, or the weights. It may write the arrays of tokens. Launches behind
 *  copies, zeros and commits of this library wait for all that is ahead of
 *  them, and so do all launches on a device with debug checks. 0: every launch
 *  waits. */
GDNRT_API gdnrt_status gdnrt_gdn_layer_allow_dependent_launch(
    gdnrt_gdn_layer *layer, int32_t allowed, gdnrt_error *error);

/** Makes the layer use `workspace`, which is of the layer's device, from its
 *  next launch on. All layers that share a workspace must run in the order of
 *  one stream. Null: the layer uses workspaces of its own again, one for each
 *  stream. A graph uses the workspace that it was captured with, and keeps it
 *  alive if the workspace allocated its memory; see gdnrt_device_create_cuda.
 */
GDNRT_API gdnrt_status gdnrt_gdn_layer_share_workspace(
    gdnrt_gdn_layer *layer, const gdnrt_workspace *workspace,
    gdnrt_error *error);

/** The same for launches on `stream`, so that batches on several streams may
 *  overlap: layers that share it run in the order of that stream. Null:
 * launches on `stream` use what those on other streams use. A stream that is
 * captured is the stream of the capture. */
GDNRT_API gdnrt_status gdnrt_gdn_layer_share_workspace_on_stream(
    gdnrt_gdn_layer *layer, const gdnrt_workspace *workspace, void *stream,
    gdnrt_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GDN_C_SERVING_H */
