/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Pools of states: memory for the states of many sequences in all layers of a
 * model, and who owns which slot of it.
 *
 * Slots. Slot 0 is the null slot: it belongs to nobody, and kernels skip
 * sequences that name it. Slots 1 to num_requests are for requests, num_track
 * more behind them for states that a cache keeps. A full pool is no error: it
 * is an outcome of the functions that take slots, which then take none.
 *
 * Owners. Who took a slot owns it until he frees it. A slot that is freed may
 * be taken again at once, while what was launched before still uses it: the
 * next owner's work has to follow on the same stream, or behind it.
 *
 * Threads. All functions but create and destroy may be called by any number of
 * threads at once. Memory is worked on in the order of the stream that a call
 * is given, on a CPU (stream null) within the call.
 *
 * Memory. Nothing is allocated after a pool is made, except for the messages
 * of errors.
 */

#ifndef GDN_C_STATE_POOL_H
#define GDN_C_STATE_POOL_H

#include "gdn-c/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/*===-- What a pool has room for ------------------------------------------===*/

/** How the window of a slot lies in memory. Kernels see [channels, positions]
 *  in both. */
typedef enum gdnrt_conv_layout {
  /** [channels, positions] */
  GDNRT_CONV_DS = 0,
  /** [positions, channels] */
  GDNRT_CONV_SD = 1
} gdnrt_conv_layout;

/** Heads are those of one rank; the window has
 *  D = 2 * num_key_heads * key_dim + num_value_heads * value_dim channels. */
typedef struct gdnrt_state_pool_options {
  size_t struct_size;
  int64_t num_layers;
  int64_t num_requests;
  int64_t num_track;
  int64_t num_key_heads;
  int64_t num_value_heads;
  int64_t key_dim;
  int64_t value_dim;
  /** K: positions of the convolution's kernel. Kernels keep K - 1. */
  int64_t conv_width;
  /** Positions that the memory of a window has beyond K - 1. */
  int64_t conv_extra;
  /** Elements from one slot and one layer to the next; 0: dense, layer after
   *  layer. */
  int64_t state_slot_stride;
  int64_t state_layer_stride;
  int64_t conv_slot_stride;
  int64_t conv_layer_stride;
  /** A gdnrt_dtype: GDNRT_F32, GDNRT_BF16 or GDNRT_F16. */
  int32_t state_dtype;
  int32_t conv_dtype;
  /** A gdnrt_conv_layout. */
  int32_t conv_layout;
  /** 1: a slot that is named has to be in use, and slots that are freed are
   *  filled with NaN. */
  int32_t debug_checks;
  /** 1: somebody else gives out the slots for requests. They all count as in
   *  use, and taking or freeing one is an INVALID_ARGUMENT. */
  int32_t foreign_requests;
  /** S: tokens of a verify step that may be pending in a slot; 0: none, and no
   *  memory for their keys, deltas and decays. Otherwise conv_extra is S, or 0,
   *  which then means S. */
  int64_t pending_tokens;
  /** 1: their decays are per channel of the key. */
  int32_t decay_per_channel;
  /** 0. */
  int32_t reserved;
} gdnrt_state_pool_options;
GDNRT_STRUCT(gdnrt_state_pool_options)

/** The bytes that such a pool takes. Strides count. */
GDNRT_API gdnrt_status
gdnrt_state_pool_bytes(const gdnrt_state_pool_options *options, uint64_t *bytes,
                       gdnrt_error *error);

/** The largest num_requests with which such a pool, num_requests aside, takes
 *  at most `bytes` bytes; 0 if there is none. */
GDNRT_API gdnrt_status gdnrt_state_pool_requests_that_fit(
    const gdnrt_state_pool_options *options, uint64_t bytes, int64_t *requests,
    gdnrt_error *error);

/*===-- Pools -------------------------------------------------------------===*/

typedef struct gdnrt_state_pool gdnrt_state_pool;

/** Makes a pool in memory that it takes from the device, all of it zero. The
 *  device may be destroyed before it. */
GDNRT_API gdnrt_status gdnrt_state_pool_create(
    gdnrt_device *device, const gdnrt_state_pool_options *options,
    gdnrt_state_pool **pool, gdnrt_error *error);

/** Makes a pool in memory of the caller, which has to outlive it and keeps what
 *  it holds. `states` and `convs` are one array per layer: [P, Hv, dv, dk] and
 *  [P, D, K - 1 or more], P = 1 + num_requests + num_track, any of f32, bf16
 *  and f16, all layers alike. The elements of a slot have to be dense, in any
 *  order of the axes; between slots there may be gaps, where other arrays may
 *  lie. Strides, dtypes, conv_layout and conv_extra of `options` are not looked
 *  at. Memory of pending tokens is taken from the device. */
GDNRT_API gdnrt_status gdnrt_state_pool_wrap(
    gdnrt_device *device, const gdnrt_state_pool_options *options,
    const gdnrt_arg *states, const gdnrt_arg *convs, gdnrt_state_pool **pool,
    gdnrt_error *error);

/** Destroys the pool and frees memory that it took. What was launched on its
 *  slots must have run. */
GDNRT_API void gdnrt_state_pool_destroy(gdnrt_state_pool *pool);

/** Counts at the time of the call. */
typedef struct gdnrt_state_pool_info {
  size_t struct_size;
  /** P, the null slot included. */
  int64_t num_slots;
  int64_t free_requests;
  int64_t used_requests;
  int64_t free_track;
  int64_t used_track;
  /** Bytes of all memory of slots. */
  uint64_t bytes;
} gdnrt_state_pool_info;
GDNRT_STRUCT(gdnrt_state_pool_info)

/** Describes the pool. */
GDNRT_API gdnrt_status gdnrt_state_pool_describe(const gdnrt_state_pool *pool,
                                                 gdnrt_state_pool_info *info,
                                                 gdnrt_error *error);

/** Which memory of a layer. */
typedef enum gdnrt_pool_buffer {
  /** [P, Hv, dv, dk] */
  GDNRT_POOL_STATE = 0,
  /** [P, D, K - 1] */
  GDNRT_POOL_CONV = 1,
  /** [P, D, K - 1 + conv_extra] */
  GDNRT_POOL_CONV_HISTORY = 2,
  /** Of pending tokens, f32: [P, Hk, S, dk] */
  GDNRT_POOL_PENDING_KEYS = 3,
  /** [P, Hv, S, dv] */
  GDNRT_POOL_PENDING_DELTAS = 4,
  /** [P, Hv, S], per channel [P, Hv, S, dk] */
  GDNRT_POOL_PENDING_DECAYS = 5
} gdnrt_pool_buffer;

/** A layer's memory as an argument of kernels. Its sizes and strides are the
 *  pool's, and like the address stay as they are until it is destroyed. */
GDNRT_API gdnrt_status gdnrt_state_pool_view(const gdnrt_state_pool *pool,
                                             int32_t buffer, int64_t layer,
                                             gdnrt_arg *view,
                                             gdnrt_error *error);

/*===-- Owning slots ------------------------------------------------------===*/

/** Takes `count` slots for requests and writes their ids to `slots`; `*taken`
 *  is 1, or 0 where fewer are free, and then none is taken. With `zero` their
 *  memory is zeroed in the order of `stream`; otherwise it holds anything. */
GDNRT_API gdnrt_status gdnrt_state_pool_allocate(gdnrt_state_pool *pool,
                                                 size_t count, int32_t zero,
                                                 void *stream, int32_t *slots,
                                                 int32_t *taken,
                                                 gdnrt_error *error);

/** The same for track slots. */
GDNRT_API gdnrt_status gdnrt_state_pool_allocate_track(
    gdnrt_state_pool *pool, size_t count, int32_t zero, void *stream,
    int32_t *slots, int32_t *taken, gdnrt_error *error);

/** Gives back slots of either kind: all of them, or none where one is not in
 *  use, is padding or is named twice. The stream matters for debug checks. */
GDNRT_API gdnrt_status gdnrt_state_pool_free(gdnrt_state_pool *pool,
                                             const int32_t *slots, size_t count,
                                             void *stream, gdnrt_error *error);

/** Takes a slot for a request and copies all of `source` to it; `*taken` is 0
 *  where none is free. */
GDNRT_API gdnrt_status gdnrt_state_pool_fork(gdnrt_state_pool *pool,
                                             int32_t source, void *stream,
                                             int32_t *slot, int32_t *taken,
                                             gdnrt_error *error);

/*===-- The memory of slots -----------------------------------------------===*/

/* Ids that are negative or the null slot are padding and are passed over. Ids
 * past the end, and with debug checks slots that are free, are an
 * INVALID_ARGUMENT, and then nothing is done. */

/** Zeroes slots, all layers and all memory of them. */
GDNRT_API gdnrt_status gdnrt_state_pool_reset(gdnrt_state_pool *pool,
                                              const int32_t *slots,
                                              size_t count, void *stream,
                                              gdnrt_error *error);

/** Copies slot from[i] to slot to[i], all layers and all memory of them, with
 *  what is pending. Pairs of one slot twice are passed over; a target that is
 * also a source or another target is an INVALID_ARGUMENT. */
GDNRT_API gdnrt_status gdnrt_state_pool_copy(gdnrt_state_pool *pool,
                                             const int32_t *from,
                                             const int32_t *to, size_t count,
                                             void *stream, gdnrt_error *error);

/** Lets the entries copy_slots and zero_slots of an image, kernels of the
 * pool's device, copy and zero states and windows: one launch per layer for up
 * to 256 slots. They serve the first stream that asks for it; on others, on a
 * stream that is captured, and for what entries do not know (history, pending
 * tokens, NaN of debug checks), the device fills and copies. Called before
 * others use the pool; takes the memory that launches need. */
GDNRT_API gdnrt_status gdnrt_state_pool_use_kernels(
    gdnrt_state_pool *pool, const gdnrt_kernel *copy_slots,
    const gdnrt_kernel *zero_slots, gdnrt_error *error);

/** For debugging: an INVALID_ARGUMENT unless the ids of a batch, padding aside,
 *  are in use and each occurs once. */
GDNRT_API gdnrt_status gdnrt_state_pool_check_batch(gdnrt_state_pool *pool,
                                                    const int32_t *slots,
                                                    size_t count,
                                                    gdnrt_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GDN_C_STATE_POOL_H */
