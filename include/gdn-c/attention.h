/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Attention backends: what a hybrid model calls in its layers, in a step whose
 * scheduler names one slot per request. Conventions are those of runtime.h,
 * layers are those of serving.h.
 *
 * Handles. A hybrid backend keeps alive what it is made of; layers are the
 * caller's. A backend is used by one thread at a time. It takes memory when it
 * is made, when graph state is made, and when a batch is larger than all
 * before.
 */

#ifndef GDN_C_ATTENTION_H
#define GDN_C_ATTENTION_H

#include "gdn-c/serving.h"

#ifdef __cplusplus
extern "C" {
#endif

/*===-- A batch -----------------------------------------------------------===*/

typedef enum gdnrt_forward_mode {
  /** Prompts or pieces of them. */
  GDNRT_MODE_EXTEND = 0,
  /** One token per request. */
  GDNRT_MODE_DECODE = 1,
  /** Both; as extend. */
  GDNRT_MODE_MIXED = 2,
  /** Nothing to do, while other ranks work. */
  GDNRT_MODE_IDLE = 3
} gdnrt_forward_mode;

/** 1 for extend and mixed. */
GDNRT_API int32_t gdnrt_forward_mode_is_extend(int32_t mode);
GDNRT_API int32_t gdnrt_forward_mode_is_decode(int32_t mode);
GDNRT_API int32_t gdnrt_forward_mode_is_idle(int32_t mode);
GDNRT_API int32_t gdnrt_forward_mode_is_decode_or_idle(int32_t mode);

/** Arrays lie in memory of the host, and hold while the batch is worked on. */
typedef struct gdnrt_forward_batch {
  size_t struct_size;
  /** A gdnrt_forward_mode. */
  int32_t forward_mode;
  int64_t batch_size;
  /** [batch_size]: of each request the row of req_to_token, and its slot. */
  const int64_t *req_pool_indices;
  /** [batch_size]: tokens of the request with those of the step. */
  const int32_t *seq_lens;
  int64_t seq_lens_sum;
  /** Of extend: tokens of the step, all and [batch_size]; those before; where
   *  each request's begin. */
  int64_t extend_num_tokens;
  const int32_t *extend_seq_lens;
  const int32_t *extend_prefix_lens;
  const int32_t *extend_start_loc;
  /** [tokens]: ids, positions, and where keys and values go. The linear side
   *  looks at none of them. */
  const int64_t *input_ids;
  const int64_t *positions;
  const int64_t *out_cache_loc;
  /** [.., req_to_token_stride]: where the keys and values of a request are. */
  const int32_t *req_to_token;
  int64_t req_to_token_stride;
  /** The stream of the device; null on a CPU. */
  void *stream;
} gdnrt_forward_batch;
GDNRT_STRUCT(gdnrt_forward_batch)

/** A batch of decode in a graph, of `bs` rows with padding behind. */
typedef struct gdnrt_graph_batch {
  size_t struct_size;
  int64_t bs;
  int64_t num_tokens;
  /** [bs]: slots; of padding anything. */
  const int64_t *req_pool_indices;
  /** [bs] or null; the linear side does not look at it. */
  const int32_t *seq_lens;
  int64_t seq_lens_sum;
  int32_t forward_mode;
  void *stream;
  /** Requests, 0 .. bs: the first rows. Those behind are padding, whatever the
   *  arrays say there, and get the null slot. */
  int64_t num_reqs;
} gdnrt_graph_batch;
GDNRT_STRUCT(gdnrt_graph_batch)

/*===-- Full attention ----------------------------------------------------===*/

/** A layer of full attention, heads of one rank. */
typedef struct gdnrt_radix_attention {
  size_t struct_size;
  int64_t layer_id;
  int64_t tp_q_head_num;
  int64_t tp_k_head_num;
  int64_t tp_v_head_num;
  int64_t head_dim;
  int64_t v_head_dim;
  /** Of the scores; 0 means head_dim ^ -0.5. */
  double scaling;
  /** Keys [locations, tp_k_head_num, head_dim] and values [locations,
   *  tp_v_head_num, v_head_dim] of the cache. */
  gdnrt_arg k_buffer;
  gdnrt_arg v_buffer;
} gdnrt_radix_attention;
GDNRT_STRUCT(gdnrt_radix_attention)

/** One call of a layer: q, k [tokens, heads * head_dim], v and out [tokens,
 *  heads * v_head_dim]. Null data of k and v: they are in the cache. */
typedef struct gdnrt_attention_call {
  size_t struct_size;
  const gdnrt_radix_attention *layer;
  gdnrt_arg q, k, v, out;
  int32_t save_kv_cache;
  /** 0. */
  int32_t reserved;
} gdnrt_attention_call;
GDNRT_STRUCT(gdnrt_attention_call)

/** What a backend of the caller's is made of; null members refuse with
 *  UNSUPPORTED, and the first three may not be null. Failing members fill
 *  `error`. The structs that they get have the struct_size of the library,
 * which may be older or newer than the backend: members that a size does not
 * reach are not there. */
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
  /** When the last user of the backend is gone; may be null. */
  void (*destroy)(void *context);
} gdnrt_attention_callbacks;
GDNRT_STRUCT(gdnrt_attention_callbacks)

/*===-- Backends ----------------------------------------------------------===*/

typedef struct gdnrt_attention_backend gdnrt_attention_backend;

/** Linear attention on pooled states: forward_gdn alone. */
GDNRT_API gdnrt_status gdnrt_attention_backend_create_gdn(
    gdnrt_device *device, gdnrt_attention_backend **backend,
    gdnrt_error *error);

/** Attention over a paged cache on a CPU, for tests and small models. f32, bf16
 *  and f16; sums in f32. */
GDNRT_API gdnrt_status gdnrt_attention_backend_create_paged(
    gdnrt_device *device, gdnrt_attention_backend **backend,
    gdnrt_error *error);

/** A backend of the caller's. */
GDNRT_API gdnrt_status gdnrt_attention_backend_create_custom(
    gdnrt_device *device, const gdnrt_attention_callbacks *callbacks,
    gdnrt_attention_backend **backend, gdnrt_error *error);

/** Full attention by `full`, linear attention by `gdn`. The layer ids are those
 *  of full attention; they are for people, as in the original. */
GDNRT_API gdnrt_status gdnrt_attention_backend_create_hybrid(
    const gdnrt_attention_backend *full, const gdnrt_attention_backend *gdn,
    const int64_t *full_attn_layer_ids, size_t count,
    gdnrt_attention_backend **backend, gdnrt_error *error);

GDNRT_API void
gdnrt_attention_backend_destroy(gdnrt_attention_backend *backend);

/** Once per batch, before its layers. */
GDNRT_API gdnrt_status gdnrt_attention_init_forward_metadata(
    gdnrt_attention_backend *backend, const gdnrt_forward_batch *batch,
    gdnrt_error *error);

/** Full attention by the mode of the batch. IDLE: `out` becomes zero, and the
 *  backend is not asked. */
GDNRT_API gdnrt_status gdnrt_attention_forward(gdnrt_attention_backend *backend,
                                               const gdnrt_attention_call *call,
                                               const gdnrt_forward_batch *batch,
                                               gdnrt_error *error);

GDNRT_API gdnrt_status gdnrt_attention_forward_decode(
    gdnrt_attention_backend *backend, const gdnrt_attention_call *call,
    const gdnrt_forward_batch *batch, gdnrt_error *error);

GDNRT_API gdnrt_status gdnrt_attention_forward_extend(
    gdnrt_attention_backend *backend, const gdnrt_attention_call *call,
    const gdnrt_forward_batch *batch, gdnrt_error *error);

/** Linear attention by the mode of the batch, from the slots that
 *  init_forward_metadata or a graph's calls named; `tokens` are those of
 *  gdnrt_gdn_layer_forward. The state is read from the slot always: admission
 *  zeroes or restores it. IDLE or no tokens: outputs become zero. */
GDNRT_API gdnrt_status gdnrt_attention_forward_gdn(
    gdnrt_attention_backend *backend, gdnrt_gdn_layer *layer,
    const gdnrt_forward_batch *batch, const gdnrt_named_arg *tokens,
    size_t count, gdnrt_error *error);

/** What the linear side was told last. `cu_seqlens` is null unless the batch
 *  was extend. Arrays stay where they are between capture and replay. */
typedef struct gdnrt_gdn_forward_metadata {
  size_t struct_size;
  const int64_t *cache_indices;
  int64_t batch_size;
  const int64_t *cu_seqlens;
} gdnrt_gdn_forward_metadata;
GDNRT_STRUCT(gdnrt_gdn_forward_metadata)

/** `*known` is 0, and `metadata` unchanged, as long as there is none, or if
 *  `backend` has no linear side. */
GDNRT_API gdnrt_status gdnrt_attention_forward_metadata(
    const gdnrt_attention_backend *backend,
    gdnrt_gdn_forward_metadata *metadata, int32_t *known, gdnrt_error *error);

/** What pads seq_lens in graphs; 1 for backends here. */
GDNRT_API gdnrt_status gdnrt_attention_get_cuda_graph_seq_len_fill_value(
    gdnrt_attention_backend *backend, int64_t *value, gdnrt_error *error);

GDNRT_API gdnrt_status gdnrt_attention_init_cuda_graph_state(
    gdnrt_attention_backend *backend, int64_t max_bs, int64_t max_num_tokens,
    gdnrt_error *error);

/** Before a graph of decode is captured, and before each replay. */
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
