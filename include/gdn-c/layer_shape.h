/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Shapes of a GatedDeltaNetAttention layer: its states, and what each rank of a
 * tensor-parallel group has of its weights. Conventions are those of runtime.h.
 */

#ifndef GDN_C_LAYER_SHAPE_H
#define GDN_C_LAYER_SHAPE_H

#include "gdn-c/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Heads of the whole layer, all ranks together. */
typedef struct gdnrt_layer_heads {
  size_t struct_size;
  int64_t num_key_heads;
  int64_t num_value_heads;
  int64_t key_dim;
  int64_t value_dim;
} gdnrt_layer_heads;
GDNRT_STRUCT(gdnrt_layer_heads)

/** The shapes of a slot's states on one of `tp` ranks. With `dim_first` the
 *  convolution's is [D / tp, width - 1 + num_spec], else [width - 1 + num_spec,
 *  D / tp]; D counts q, k and v. The recurrent state is [Hv / tp, dv, dk]. */
GDNRT_API gdnrt_status gdnrt_layer_state_shape(const gdnrt_layer_heads *heads,
                                               int64_t tp, int64_t conv_width,
                                               int64_t num_spec,
                                               int32_t dim_first,
                                               int64_t conv[2], int64_t ssm[3],
                                               gdnrt_error *error);

/** The dtypes of the states, from those of the configuration: -1 is "auto",
 *  which is the model's for the convolution and then that for the rule. */
GDNRT_API gdnrt_status gdnrt_layer_state_dtype(int32_t model_dtype,
                                               int32_t mamba_cache_dtype,
                                               int32_t mamba_ssm_cache_dtype,
                                               int32_t *conv, int32_t *ssm,
                                               gdnrt_error *error);

/** A range of indices along a dimension. */
typedef struct gdnrt_slice {
  int64_t begin;
  int64_t size;
} gdnrt_slice;

/** The most slices of one weight. */
#define GDNRT_MAX_SLICES 4

/** How the rows of in_proj_qkvz and in_proj_ba are ordered. */
typedef enum gdnrt_projection_order {
  /** One block per key head: its q, k, its value heads' v and z; b's, a's. */
  GDNRT_ORDER_INTERLEAVED = 0,
  /** Part after part: q, k, v, z; b, a. */
  GDNRT_ORDER_FLAT = 1
} gdnrt_projection_order;

/** What rank `rank` of `tp` has of a weight: the concatenation of `count`
 *  slices along dimension `axis`. Weights are in_proj_qkvz, in_proj_ba,
 *  in_proj_qkv, in_proj_z, in_proj_b, in_proj_a [out, in], conv1d [D, .. K],
 *  A_log, dt_bias [Hv], norm [dv] and out_proj [hidden, Hv * dv], whose
 *  results add up over the ranks. `order` matters to the first two alone. */
GDNRT_API gdnrt_status gdnrt_layer_weight_slices(
    const gdnrt_layer_heads *heads, const char *weight, int32_t order,
    int64_t tp, int64_t rank, int32_t *axis,
    gdnrt_slice slices[GDNRT_MAX_SLICES], size_t *count, gdnrt_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GDN_C_LAYER_SHAPE_H */
