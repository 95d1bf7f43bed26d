/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Pools of states: memory for the states of many sequences in all layers of a
 * model, and the ownership of its slots.
 *
 * Slots. Slot 0 is the null slot. Nobody owns it, and kernels skip sequences
 * that name it. Slots 1 to num_requests are for requests. The num_track slots
 * after them, the track slots, are for states that a cache keeps. A full pool
 * is not an error: a function that takes slots then takes none and reports that
 * in an output.
 *
 * Owners. The caller that takes a slot owns it until it frees the slot. A freed
 * slot may be taken again at once, while earlier launches still use it: the
 * work of the next owner must follow on the same stream, or on a stream that
 * waits for that work.
 *
 * Threads. Any number of threads may call any functions at once, except create
 * and destroy. A function works on memory in the order of the stream that it is
 * given. On a CPU, where the stream is null, the work has ended when the
 * function returns.
 *
 * Memory. After it is created, a pool allocates memory only in
 * gdnrt_state_pool_use_kernels, gdnrt_state_pool_has_pending and for error
 * messages.
 */

#ifndef GDN_C_STATE_POOL_H
#define GDN_C_STATE_POOL_H

#include "gdn-c/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/*===-- What a pool has room for ------------------------------------------===*/

/** The layout of a slot's window in memory. Kernels see [channels, positions]
 *  with either layout. */
typedef enum gdnrt_conv_layout {
  /** [channels, positions] */
  GDNRT_CONV_DS = 0,
  /** [positions, channels] */
  GDNRT_CONV_SD = 1
} gdnrt_conv_layout;

/** The size of a pool. Head counts are those of one rank. The window has D = 2
 *  * num_key_heads * key_dim + num_value_heads * value_dim channels. A value
 *  out of range is an INVALID_ARGUMENT: num_layers, heads and dims are 1 to
 *  2^20, num_requests and num_track 0 to 2^30. */
typedef struct gdnrt_state_pool_options {
  size_t struct_size;
  int64_t num_layers;
  int64_t num_requests;
  int64_t num_track;
  int64_t num_key_heads;
  int64_t num_value_heads;
  int64_t key_dim;
  int64_t value_dim;
  /** K, the width of the convolution, 2 or more. A window holds K - 1
   *  positions. */
  int64_t conv_width;
  /** The number of positions that the memory of a window has in addition to K -
   *  1. */
  int64_t conv_extra;
  /** Elements from one slot to the next, and from one layer to the next. 0
   *  means dense: all slots of a layer, then the next layer. */
  int64_t state_slot_stride;
  int64_t state_layer_stride;
  int64_t conv_slot_stride;
  int64_t conv_layer_stride;
  /** Each a gdnrt_dtype: GDNRT_F32, GDNRT_BF16 or GDNRT_F16. state_dtype is
   *  GDNRT_F32 with state_planes. */
  int32_t state_dtype;
  int32_t conv_dtype;
  /** A gdnrt_conv_layout. */
  int32_t conv_layout;
  /** 1: a call that names a slot that is not in use is an INVALID_ARGUMENT, and
   *  freed slots are filled with NaN. */
  int32_t debug_checks;
  /** 1: the caller hands out the slots for requests itself. They all count as
   *  in use, and taking or freeing one through the pool is an INVALID_ARGUMENT.
   */
  int32_t foreign_requests;
  /** S, the maximum number of tokens that may be pending in a slot. 0: none,
   *  and the pool has no memory for their keys, deltas and decays. If S is not
   *  0, conv_extra is S, unless writes are deferred; 0 there means S as well.
   */
  int64_t pending_tokens;
  /** 1: the decays of pending tokens are per channel of the key (KDA). */
  int32_t decay_per_channel;
  /** 1: for kernels with deferred writes (gdn-compile --defer-writes=S), which
   *  count the pending tokens of a slot themselves: the pool has memory for the
   *  counts, and conv_extra does not depend on S. pending_tokens is then 1 or
   *  more. A slot that is allocated, with zeros or without, has nothing
   *  pending. */
  int32_t deferred_writes;
  /** 0: states are numbers of state_dtype. 2 or 1: states are in so many planes
   *  of bytes, for kernels of gdn-compile --state=i8x2 or i8x2_upper, or of
   *  --state=i8. 1 needs deferred_writes. GDNRT_POOL_STATE is then the upper
   *  plane, and there are GDNRT_POOL_STATE_SCALES and, with 2,
   *  GDNRT_POOL_STATE_LOW. An element is scale * ((upper - 128) + (low - 128) /
   *  256), without the second term for 1; a row whose scale is 0 is zero
   *  whatever its bytes are. The strides of states are those of both planes;
   *  scales are dense. */
  int32_t state_planes;
  /** The gdnrt_dtype of keys and deltas of pending tokens: GDNRT_F32, or with
   *  deferred_writes GDNRT_F16, for kernels of gdn-compile --pending=f16. There
   *  is GDNRT_POOL_PENDING_SCALES then, and a delta is its numbers times the
   *  token's scale. */
  int32_t pending_dtype;
} gdnrt_state_pool_options;
GDNRT_STRUCT(gdnrt_state_pool_options)

/** The bytes that a pool with these options takes, including the gaps that
 *  strides leave. */
GDNRT_API gdnrt_status
gdnrt_state_pool_bytes(const gdnrt_state_pool_options *options, uint64_t *bytes,
                       gdnrt_error *error);

/** The largest num_requests with which a pool with these options takes at most
 *  `bytes` bytes. `options->num_requests` is ignored. 0 if not even one request
 *  fits. */
GDNRT_API gdnrt_status gdnrt_state_pool_requests_that_fit(
    const gdnrt_state_pool_options *options, uint64_t bytes, int64_t *requests,
    gdnrt_error *error);

/*===-- Pools -------------------------------------------------------------===*/

typedef struct gdnrt_state_pool gdnrt_state_pool;

/** Creates a pool in memory that it allocates on the device and fills with
 *  zeros. The device may be destroyed before the pool. */
GDNRT_API gdnrt_status gdnrt_state_pool_create(
    gdnrt_device *device, const gdnrt_state_pool_options *options,
    gdnrt_state_pool **pool, gdnrt_error *error);

/** Creates a pool in memory of the caller, which must outlive the pool. The
 *  contents stay as they are. state_planes is 0. `states` and `convs` have one
 * array per layer: [P, Hv, dv, dk] and [P, D, K - 1 or more], with P = 1 +
 * num_requests + num_track, each f32, bf16 or f16. Dtype, sizes and strides are
 * the same in all layers. The elements of a slot must be dense, in any order of
 * the axes. There may be gaps between slots, and other arrays may lie in them.
 * The strides, dtypes, conv_layout and conv_extra of `options` are ignored.
 * With pending tokens, `convs` have exactly K - 1 + S positions (with deferred
 *  writes K - 1 or more), and the memory for keys, deltas, decays and counts is
 *  allocated on the device. */
GDNRT_API gdnrt_status gdnrt_state_pool_wrap(
    gdnrt_device *device, const gdnrt_state_pool_options *options,
    const gdnrt_arg *states, const gdnrt_arg *convs, gdnrt_state_pool **pool,
    gdnrt_error *error);

/** Destroys the pool and frees the memory that it allocated. Launches that use
 *  its slots must have ended. */
GDNRT_API void gdnrt_state_pool_destroy(gdnrt_state_pool *pool);

/** The number of slots by use, at the time of the call. */
typedef struct gdnrt_state_pool_info {
  size_t struct_size;
  /** P, all slots, the null slot included. */
  int64_t num_slots;
  int64_t free_requests;
  int64_t used_requests;
  int64_t free_track;
  int64_t used_track;
  /** The bytes of all slots, in all layers and buffers. */
  uint64_t bytes;
} gdnrt_state_pool_info;
GDNRT_STRUCT(gdnrt_state_pool_info)

/** Describes the pool. */
GDNRT_API gdnrt_status gdnrt_state_pool_describe(const gdnrt_state_pool *pool,
                                                 gdnrt_state_pool_info *info,
                                                 gdnrt_error *error);

/** The buffers of a layer. Those of pending tokens are f32, with the exceptions
 *  of keys and deltas with pending_dtype, and their counts i32. */
typedef enum gdnrt_pool_buffer {
  /** [P, Hv, dv, dk]; with state_planes the upper plane, u8 */
  GDNRT_POOL_STATE = 0,
  /** [P, D, K - 1] */
  GDNRT_POOL_CONV = 1,
  /** [P, D, K - 1 + conv_extra] */
  GDNRT_POOL_CONV_HISTORY = 2,
  /** [P, Hk, S, dk] */
  GDNRT_POOL_PENDING_KEYS = 3,
  /** [P, Hv, S, dv] */
  GDNRT_POOL_PENDING_DELTAS = 4,
  /** [P, Hv, S], or [P, Hv, S, dk] with decays per channel */
  GDNRT_POOL_PENDING_DECAYS = 5,
  /** [P, Hk], with deferred writes: the tokens pending in a slot's key head */
  GDNRT_POOL_PENDING_COUNTS = 6,
  /** [P, Hv, dv], f32, with state_planes: one for each row of dk elements */
  GDNRT_POOL_STATE_SCALES = 7,
  /** [P, Hv, dv, dk], u8, with state_planes 2 */
  GDNRT_POOL_STATE_LOW = 8,
  /** [P, Hv, S], f32, with pending_dtype GDNRT_F16: a power of two for each
   *  delta */
  GDNRT_POOL_PENDING_SCALES = 9
} gdnrt_pool_buffer;

/** Fills `view` with a buffer of layer `layer` as an argument of kernels, with
 *  the null slot. `view->sizes` and `view->strides` point into the pool. They
 *  and `view->data` stay valid and unchanged until the pool is destroyed.
 *  INVALID_ARGUMENT for a buffer that the pool does not have. */
GDNRT_API gdnrt_status gdnrt_state_pool_view(const gdnrt_state_pool *pool,
                                             int32_t buffer, int64_t layer,
                                             gdnrt_arg *view,
                                             gdnrt_error *error);

/*===-- Owning slots ------------------------------------------------------===*/

/** Takes `count` slots for requests, writes their ids to `slots` and sets
 *  `*taken` to 1. If fewer are free, it takes none and sets `*taken` to 0. If
 *  `zero` is 1, the slots are filled with zeros in the order of `stream`.
 *  Otherwise their contents are undefined. */
GDNRT_API gdnrt_status gdnrt_state_pool_allocate(gdnrt_state_pool *pool,
                                                 size_t count, int32_t zero,
                                                 void *stream, int32_t *slots,
                                                 int32_t *taken,
                                                 gdnrt_error *error);

/** As gdnrt_state_pool_allocate, for track slots. */
GDNRT_API gdnrt_status gdnrt_state_pool_allocate_track(
    gdnrt_state_pool *pool, size_t count, int32_t zero, void *stream,
    int32_t *slots, int32_t *taken, gdnrt_error *error);

/** Frees slots of either kind. If one of them is not in use, is padding or is
 *  named twice, none is freed (INVALID_ARGUMENT). `stream` is used only with
 *  debug checks, to fill the slots with NaN. */
GDNRT_API gdnrt_status gdnrt_state_pool_free(gdnrt_state_pool *pool,
                                             const int32_t *slots, size_t count,
                                             void *stream, gdnrt_error *error);

/** Takes a slot for a request, copies all of slot `source` to it in the order
 *  of `stream`, and sets `*taken` to 1. If no slot is free, sets `*taken` to 0.
 */
GDNRT_API gdnrt_status gdnrt_state_pool_fork(gdnrt_state_pool *pool,
                                             int32_t source, void *stream,
                                             int32_t *slot, int32_t *taken,
                                             gdnrt_error *error);

/*===-- The memory of slots -----------------------------------------------===*/

/* In the functions below, an id that is negative or the null slot is padding
 * and is ignored. An id past the end, or with debug checks a slot that is free,
 * is an INVALID_ARGUMENT, and then nothing is done. */

/** Fills slots with zeros, in all layers and buffers. A slot may be named
 *  twice. */
GDNRT_API gdnrt_status gdnrt_state_pool_reset(gdnrt_state_pool *pool,
                                              const int32_t *slots,
                                              size_t count, void *stream,
                                              gdnrt_error *error);

/** Copies slot from[i] to slot to[i], in all layers and buffers, pending tokens
 *  included. A pair with from[i] equal to to[i] is ignored. A target that is
 *  also a source or the target of another pair is an INVALID_ARGUMENT. */
GDNRT_API gdnrt_status gdnrt_state_pool_copy(gdnrt_state_pool *pool,
                                             const int32_t *from,
                                             const int32_t *to, size_t count,
                                             void *stream, gdnrt_error *error);

/** Says for each slot whether tokens are pending in it, so that its state lacks
 *  them: sets pending[i] to 1 if a count of slot slots[i] is not 0 in some
 *  layer, else to 0. Tokens of a verify step count from the next step on, which
 *  says how many of them were accepted. The call waits for `stream` and copies
 *  the counts of all slots to the host, so it is not for every step;
 *  UNSUPPORTED on a stream that is being captured. It allocates host memory.
 *  INVALID_ARGUMENT for a pool without deferred_writes. */
GDNRT_API gdnrt_status gdnrt_state_pool_has_pending(gdnrt_state_pool *pool,
                                                    const int32_t *slots,
                                                    size_t count, void *stream,
                                                    uint8_t *pending,
                                                    gdnrt_error *error);

/** Makes the pool copy and zero states and windows with the entries copy_slots
 *  and zero_slots of an image, up to 256 slots in a launch. A launch takes all
 *  layers if those of each buffer are equally far apart in memory, as in pools
 *  that gdnrt_state_pool_create makes; else each layer has its own. Both are
 *  kernels of the pool's device. One slot takes nothing but its launch, also
 *  on a stream that is being captured. Ids of several go to the device ahead of
 *  the launch, on the first stream that asks for such work; on others, and in a
 *  capture, slots that follow one another have a launch. The pool uses the fill
 *  and copy functions of the device for what the entries do not know: windows
 *  with more than K - 1 positions, pending tokens, and the NaN of debug checks.
 *  INVALID_ARGUMENT for entries with other state_planes. Called before other
 *  threads use the pool. Allocates the memory that the launches need: 4 bytes
 *  for each layer of each slot, and of 512 more. */
GDNRT_API gdnrt_status gdnrt_state_pool_use_kernels(
    gdnrt_state_pool *pool, const gdnrt_kernel *copy_slots,
    const gdnrt_kernel *zero_slots, gdnrt_error *error);

/** For debugging. INVALID_ARGUMENT unless every id of a batch that is not
 *  padding is in use and occurs once. */
GDNRT_API gdnrt_status gdnrt_state_pool_check_batch(gdnrt_state_pool *pool,
                                                    const int32_t *slots,
                                                    size_t count,
                                                    gdnrt_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GDN_C_STATE_POOL_H */
