/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Shapes of a GatedDeltaNetAttention layer: the shapes of its states, and the
 * part of its weights that each rank of a tensor-parallel group holds. The
 * conventions of calls and errors are those of runtime.h.
 */

#ifndef GDN_C_LAYER_SHAPE_H
#define GDN_C_LAYER_SHAPE_H

#include "gdn-c/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The heads of the whole layer, over all ranks. Each value is from 1 to 2^20,
 *  and num_value_heads is a multiple of num_key_heads. */
typedef struct gdnrt_layer_heads {
  size_t struct_size;
  int64_t num_key_heads;
  int64_t num_value_heads;
  int64_t key_dim;
  int64_t value_dim;
} gdnrt_layer_heads;
GDNRT_STRUCT(gdnrt_layer_heads)

/** The shapes of the states in one slot, on one of `tp` ranks. The window of
 *  the convolution is [D / tp, width - 1 + num_spec] if `dim_first` is 1, else
 *  [width - 1 + num_spec, D / tp]. D is the number of channels of q, k and v
 *  together. The recurrent state is [Hv / tp, dv, dk]. Both numbers of heads
 *  must be multiples of `tp` (INVALID_ARGUMENT). */
GDNRT_API gdnrt_status gdnrt_layer_state_shape(const gdnrt_layer_heads *heads,
                                               int64_t tp, int64_t conv_width,
                                               int64_t num_spec,
                                               int32_t dim_first,
                                               int64_t conv[2], int64_t ssm[3],
                                               gdnrt_error *error);

/** The dtypes of the states, from the dtypes of the configuration: f32, bf16 or
 *  f16, or -1 for "auto". "auto" for mamba_cache_dtype means model_dtype.
 *  "auto" for mamba_ssm_cache_dtype means the dtype of the convolution's
 *  window. */
GDNRT_API gdnrt_status gdnrt_layer_state_dtype(int32_t model_dtype,
                                               int32_t mamba_cache_dtype,
                                               int32_t mamba_ssm_cache_dtype,
                                               int32_t *conv, int32_t *ssm,
                                               gdnrt_error *error);

/** A range of indices along one dimension. */
typedef struct gdnrt_slice {
  int64_t begin;
  int64_t size;
} gdnrt_slice;

/** The maximum number of slices of one weight. */
#define GDNRT_MAX_SLICES 4

/** The order of the rows of in_proj_qkvz and in_proj_ba. */
typedef enum gdnrt_projection_order {
  /** One block of rows per key head. A block of in_proj_qkvz has q and k of the
   *  key head, then v and then z of its value heads. A block of in_proj_ba has
   *  b and then a of its value heads. */
  GDNRT_ORDER_INTERLEAVED = 0,
  /** All rows of one part, then all rows of the next: q, k, v, z; and b, a. */
  GDNRT_ORDER_FLAT = 1
} gdnrt_projection_order;

/** The part of a weight that rank `rank` of `tp` holds: the concatenation of
 *  `count` slices along dimension `axis`. Weights are in_proj_qkvz, in_proj_ba,
 *  in_proj_qkv, in_proj_z, in_proj_b, in_proj_a [out, in], conv1d [D, .. K],
 *  A_log, dt_bias [Hv], norm [dv] and out_proj [hidden, Hv * dv]. Every rank
 *  holds the whole norm. The results of out_proj are summed over the ranks.
 *  `order` matters only for in_proj_qkvz and in_proj_ba. NOT_FOUND for another
 *  name. */
GDNRT_API gdnrt_status gdnrt_layer_weight_slices(
    const gdnrt_layer_heads *heads, const char *weight, int32_t order,
    int64_t tp, int64_t rank, int32_t *axis,
    gdnrt_slice slices[GDNRT_MAX_SLICES], size_t *count, gdnrt_error *error);

/** As above, for a layer with a decay of each channel (KDA), whose
 *  num_key_heads and num_value_heads are equal. Weights are q_proj, k_proj,
 *  v_proj, q_conv1d, k_conv1d, v_conv1d, conv1d (q, k, v), f_proj, f_b_proj,
 *  dt_bias (a value of each channel of a key), g_proj, g_b_proj, b_proj, A_log,
 *  o_proj, which is summed as out_proj is; and f_a_proj, g_a_proj and o_norm,
 * of which every rank holds all, with head_dim = value_dim rows. */
GDNRT_API gdnrt_status gdnrt_kda_weight_slices(
    const gdnrt_layer_heads *heads, const char *weight, int64_t tp,
    int64_t rank, int32_t *axis, gdnrt_slice slices[GDNRT_MAX_SLICES],
    size_t *count, gdnrt_error *error);

/** Where rank `rank` of tp * cp is if heads are dealt out to `tp` ranks and the
 *  tokens of sequences to `cp`: `*tp_rank` = rank % tp, `*cp_rank` = rank / tp.
 *  Ranks of one cp_rank sum the results of out_proj; ranks of one tp_rank have
 *  the same heads and make one exchange (exchange.h). So cp_rank is the color
 *  of the communicator of the sum, and tp_rank that of the exchange. */
GDNRT_API gdnrt_status gdnrt_rank_place(int64_t tp, int64_t cp, int64_t rank,
                                        int64_t *tp_rank, int64_t *cp_rank,
                                        gdnrt_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GDN_C_LAYER_SHAPE_H */
