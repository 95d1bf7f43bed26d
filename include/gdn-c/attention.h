/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Attention backends: the functions that a hybrid model calls in its layers,
 * for a step in which the scheduler gives each request one slot. The
 * conventions of calls and errors are those of runtime.h. Layers are those of
 * serving.h.
 *
 * Handles. A hybrid backend keeps the two backends that it is made of alive. A
 * layer belongs to the caller. A backend is used by one thread at a time. A
 * backend allocates memory when it is created, when graph state is created, and
 * when a batch has more requests than every batch before it.
 */

#ifndef GDN_C_ATTENTION_H
#define GDN_C_ATTENTION_H

#include "gdn-c/serving.h"

#ifdef __cplusplus
extern "C" {
#endif

/*===-- A batch -----------------------------------------------------------===*/

typedef enum gdnrt_forward_mode {
  /** Each request has the tokens of a prompt or of a part of it. */
  GDNRT_MODE_EXTEND = 0,
  /** Each request has one token. */
  GDNRT_MODE_DECODE = 1,
  /** Requests of both kinds. Handled as extend. */
  GDNRT_MODE_MIXED = 2,
  /** The rank has no requests in this step, but other ranks do. */
  GDNRT_MODE_IDLE = 3
} gdnrt_forward_mode;

/** Each returns 1 or 0. `is_extend` returns 1 for EXTEND and for MIXED. */
GDNRT_API int32_t gdnrt_forward_mode_is_extend(int32_t mode);
GDNRT_API int32_t gdnrt_forward_mode_is_decode(int32_t mode);
GDNRT_API int32_t gdnrt_forward_mode_is_idle(int32_t mode);
GDNRT_API int32_t gdnrt_forward_mode_is_decode_or_idle(int32_t mode);

/** The requests of a step. The arrays are in host memory and stay valid until
 *  the calls for this batch have returned. */
typedef struct gdnrt_forward_batch {
  size_t struct_size;
  /** A gdnrt_forward_mode. */
  int32_t forward_mode;
  int64_t batch_size;
  /** [batch_size]: the row of each request in req_to_token, which is also its
   *  slot. */
  const int64_t *req_pool_indices;
  /** [batch_size]: all tokens of each request, those of this step included. */
  const int32_t *seq_lens;
  int64_t seq_lens_sum;
  /** For extend only: the tokens of the step, in total and [batch_size] per
   *  request; then [batch_size] the tokens of each request before this step,
   *  and [batch_size] the index of each request's first token in the step. */
  int64_t extend_num_tokens;
  const int32_t *extend_seq_lens;
  const int32_t *extend_prefix_lens;
  const int32_t *extend_start_loc;
  /** [tokens]: token ids, positions, and the location in the cache to which the
   *  keys and values of each token are written. Linear attention does not read
   *  these arrays. */
  const int64_t *input_ids;
  const int64_t *positions;
  const int64_t *out_cache_loc;
  /** [rows, req_to_token_stride]: the locations of the keys and values of each
   *  request in the cache, by token. */
  const int32_t *req_to_token;
  int64_t req_to_token_stride;
  /** The stream of the device. Null on a CPU. */
  void *stream;
} gdnrt_forward_batch;
GDNRT_STRUCT(gdnrt_forward_batch)

/** A batch for a CUDA graph of DECODE, or of EXTEND, whose batches may have any
 *  requests within its bounds. The graph has `bs` rows; rows after the requests
 *  are padding. MIXED is handled as EXTEND. */
typedef struct gdnrt_graph_batch {
  size_t struct_size;
  int64_t bs;
  /** The tokens of the graph: bs for DECODE. For EXTEND the maximum of a batch;
   *  the tokens after those of the requests are padding, and their outputs are
   *  zeros. */
  int64_t num_tokens;
  /** [bs]: the slot of each request. Elements of padding rows are ignored. */
  const int64_t *req_pool_indices;
  /** [bs] or null. Linear attention does not read it. */
  const int32_t *seq_lens;
  int64_t seq_lens_sum;
  int32_t forward_mode;
  void *stream;
  /** The number of requests, from 0 to bs. They are the first rows. The rows
   *  after them are padding and get the null slot, whatever the arrays hold
   *  there. */
  int64_t num_reqs;
  /** [bs], for EXTEND: the tokens of each request in the step, num_tokens
   *  together at most. Elements of padding rows are ignored. */
  const int32_t *extend_seq_lens;
} gdnrt_graph_batch;
GDNRT_STRUCT(gdnrt_graph_batch)

/*===-- Full attention ----------------------------------------------------===*/

/** A layer of full attention. Head counts are those of one rank. */
typedef struct gdnrt_radix_attention {
  size_t struct_size;
  int64_t layer_id;
  int64_t tp_q_head_num;
  int64_t tp_k_head_num;
  int64_t tp_v_head_num;
  int64_t head_dim;
  int64_t v_head_dim;
  /** The factor of the scores. 0 means head_dim ^ -0.5. */
  double scaling;
  /** The keys [locations, tp_k_head_num, head_dim] and the values [locations,
   *  tp_v_head_num, v_head_dim] of the cache. */
  gdnrt_arg k_buffer;
  gdnrt_arg v_buffer;
} gdnrt_radix_attention;
GDNRT_STRUCT(gdnrt_radix_attention)

/** One call of a layer: q and k [tokens, heads * head_dim], v and out [tokens,
 *  heads * v_head_dim], or each with three dimensions [tokens, heads, dim].
 *  Null data of k and v means that the keys and values are in the cache
 *  already. */
typedef struct gdnrt_attention_call {
  size_t struct_size;
  const gdnrt_radix_attention *layer;
  gdnrt_arg q, k, v, out;
  int32_t save_kv_cache;
  /** Reserved: 0. */
  int32_t reserved;
} gdnrt_attention_call;
GDNRT_STRUCT(gdnrt_attention_call)

/** The functions of a backend that the caller implements. The first three must
 *  not be null (INVALID_ARGUMENT). A call of any other null function fails with
 *  UNSUPPORTED. A function that fails fills `error`. The structs that a
 *  function receives have the struct_size of this library, which may be older
 *  or newer than the backend: a function must not read members past that size.
 */
typedef struct gdnrt_attention_callbacks {
  size_t struct_size;
  void *context;
  gdnrt_status (*init_forward_metadata)(void *context,
                                        const gdnrt_forward_batch *batch,
                                        gdnrt_error *error);
  gdnrt_status (*forward_decode)(void *context,
                                 const gdnrt_attention_call *call,
                                 const gdnrt_forward_batch *batch,
                                 gdnrt_error *error);
  gdnrt_status (*forward_extend)(void *context,
                                 const gdnrt_attention_call *call,
                                 const gdnrt_forward_batch *batch,
                                 gdnrt_error *error);
  gdnrt_status (*get_cuda_graph_seq_len_fill_value)(void *context,
                                                    int64_t *value,
                                                    gdnrt_error *error);
  gdnrt_status (*init_cuda_graph_state)(void *context, int64_t max_bs,
                                        int64_t max_num_tokens,
                                        gdnrt_error *error);
  gdnrt_status (*init_forward_metadata_capture_cuda_graph)(
      void *context, const gdnrt_graph_batch *batch, gdnrt_error *error);
  gdnrt_status (*init_forward_metadata_replay_cuda_graph)(
      void *context, const gdnrt_graph_batch *batch, gdnrt_error *error);
  /** Called when the last user of the backend is destroyed, and never if it
   *  could not be created. May be null. */
  void (*destroy)(void *context);
} gdnrt_attention_callbacks;
GDNRT_STRUCT(gdnrt_attention_callbacks)

/*===-- Backends ----------------------------------------------------------===*/

typedef struct gdnrt_attention_backend gdnrt_attention_backend;

/** Creates a backend for linear attention on pooled states. It implements
 *  gdnrt_attention_forward_gdn; gdnrt_attention_forward_decode and
 *  gdnrt_attention_forward_extend are UNSUPPORTED. */
GDNRT_API gdnrt_status gdnrt_attention_backend_create_gdn(
    gdnrt_device *device, gdnrt_attention_backend **backend,
    gdnrt_error *error);

/** Creates a backend for full attention over a paged cache on a CPU, for tests
 *  and small models. Arrays are f32, bf16 or f16; sums are f32. UNSUPPORTED if
 *  `device` is not a CPU. */
GDNRT_API gdnrt_status gdnrt_attention_backend_create_paged(
    gdnrt_device *device, gdnrt_attention_backend **backend,
    gdnrt_error *error);

/** Creates a backend that calls the functions in `callbacks`. The struct is
 *  copied. */
GDNRT_API gdnrt_status gdnrt_attention_backend_create_custom(
    gdnrt_device *device, const gdnrt_attention_callbacks *callbacks,
    gdnrt_attention_backend **backend, gdnrt_error *error);

/** Creates a backend that uses `full` for full attention and `gdn` for linear
 *  attention, and keeps both alive. `full_attn_layer_ids` are the ids of the
 *  layers with full attention. The runtime stores them, as the original does,
 *  and does not use them. */
GDNRT_API gdnrt_status gdnrt_attention_backend_create_hybrid(
    const gdnrt_attention_backend *full, const gdnrt_attention_backend *gdn,
    const int64_t *full_attn_layer_ids, size_t count,
    gdnrt_attention_backend **backend, gdnrt_error *error);

/** Destroys the backend. A hybrid backend that uses it stays valid. */
GDNRT_API void
gdnrt_attention_backend_destroy(gdnrt_attention_backend *backend);

/** Prepares the backend for a batch. Called once per batch, before its layers.
 *  A batch that is IDLE leaves the metadata of linear attention as it is. */
GDNRT_API gdnrt_status gdnrt_attention_init_forward_metadata(
    gdnrt_attention_backend *backend, const gdnrt_forward_batch *batch,
    gdnrt_error *error);

/** Computes full attention as the mode of the batch says: forward_decode for
 *  DECODE, forward_extend for EXTEND and MIXED. For IDLE `out` is filled with
 *  zeros, and the backend is not called. */
GDNRT_API gdnrt_status gdnrt_attention_forward(gdnrt_attention_backend *backend,
                                               const gdnrt_attention_call *call,
                                               const gdnrt_forward_batch *batch,
                                               gdnrt_error *error);

/** Computes full attention for one token per request. */
GDNRT_API gdnrt_status gdnrt_attention_forward_decode(
    gdnrt_attention_backend *backend, const gdnrt_attention_call *call,
    const gdnrt_forward_batch *batch, gdnrt_error *error);

/** Computes full attention for the tokens of extend_seq_lens. */
GDNRT_API gdnrt_status gdnrt_attention_forward_extend(
    gdnrt_attention_backend *backend, const gdnrt_attention_call *call,
    const gdnrt_forward_batch *batch, gdnrt_error *error);

/** Computes linear attention as the mode of the batch says, with the slots that
 *  the last call of init_forward_metadata or of one of the two functions for
 *  graphs gave. `tokens` are the arrays that gdnrt_gdn_layer_forward takes. The
 *  state is always read from the slot, so the engine zeroes or restores the
 *  slot when it admits a request. If the batch is IDLE or has no tokens,
 *  outputs are filled with zeros.
 *
 *  INVALID_ARGUMENT if there was no such call or if it was for another mode.
 *  UNSUPPORTED if `backend` has no linear attention. */
GDNRT_API gdnrt_status gdnrt_attention_forward_gdn(
    gdnrt_attention_backend *backend, gdnrt_gdn_layer *layer,
    const gdnrt_forward_batch *batch, const gdnrt_named_arg *tokens,
    size_t count, gdnrt_error *error);

/** The metadata of linear attention from the last call of init_forward_metadata
 *  or of the functions for graphs: the slots [batch_size], and for extend
 *  `cu_seqlens` [batch_size + 1]. `cu_seqlens` is null for decode. The arrays
 *  belong to the backend and live as long as it; later calls overwrite them.
 *  Their addresses do not change between the capture and the replays of a
 *  graph. */
typedef struct gdnrt_gdn_forward_metadata {
  size_t struct_size;
  const int64_t *cache_indices;
  int64_t batch_size;
  const int64_t *cu_seqlens;
} gdnrt_gdn_forward_metadata;
GDNRT_STRUCT(gdnrt_gdn_forward_metadata)

/** Sets `*known` to 1 and fills `metadata`. Sets `*known` to 0 and leaves
 *  `metadata` unchanged if there is no metadata yet or if `backend` has no
 *  linear attention. */
GDNRT_API gdnrt_status gdnrt_attention_forward_metadata(
    const gdnrt_attention_backend *backend,
    gdnrt_gdn_forward_metadata *metadata, int32_t *known, gdnrt_error *error);

/** Gets the value that pads seq_lens in graphs. It is 1 for the backends of
 *  this library. */
GDNRT_API gdnrt_status gdnrt_attention_get_cuda_graph_seq_len_fill_value(
    gdnrt_attention_backend *backend, int64_t *value, gdnrt_error *error);

/** Allocates the arrays that graphs of up to max_bs rows read. Called before
 *  the first graph is captured. For linear attention a later call must not ask
 *  for more rows than the first (INVALID_ARGUMENT). max_num_tokens is the
 *  maximum of graphs of EXTEND. */
GDNRT_API gdnrt_status gdnrt_attention_init_cuda_graph_state(
    gdnrt_attention_backend *backend, int64_t max_bs, int64_t max_num_tokens,
    gdnrt_error *error);

/** Called before a graph is captured, and before each replay. For linear
 *  attention `batch->bs` is at most the max_bs of init_cuda_graph_state, and
 *  `batch->num_tokens` of EXTEND at most its max_num_tokens (INVALID_ARGUMENT).
 *  A graph is captured by gdnrt_attention_forward_gdn with the mode of the
 *  batch. The kernel that it records for EXTEND is chosen for bs rows, so a
 *  graph for few requests is faster than one for many. */
GDNRT_API gdnrt_status gdnrt_attention_init_forward_metadata_capture_cuda_graph(
    gdnrt_attention_backend *backend, const gdnrt_graph_batch *batch,
    gdnrt_error *error);

GDNRT_API gdnrt_status gdnrt_attention_init_forward_metadata_replay_cuda_graph(
    gdnrt_attention_backend *backend, const gdnrt_graph_batch *batch,
    gdnrt_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GDN_C_ATTENTION_H */
