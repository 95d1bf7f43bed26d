/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The gated delta rule alone, without a layer around it: arrays of the caller
 * in a struct, by name. The conventions of calls and errors are those of
 * runtime.h; docs/spec/delta_rule.md has the mathematics.
 */

#ifndef GDN_C_RULE_H
#define GDN_C_RULE_H

#include "gdn-c/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The kernels of an image of --layout=ready or gated, on a device. Used by one
 *  thread at a time, and by one stream at a time. */
typedef struct gdnrt_rule gdnrt_rule;

/** Loads the entries `prefill` and `decode` of the image, or the one of them
 *  that it has. NOT_FOUND if it has neither, UNSUPPORTED if an entry wants an
 *  array that gdnrt_rule_args has not: a layer's convolution or norm. */
GDNRT_API gdnrt_status gdnrt_rule_create(gdnrt_device *device,
                                         const gdnrt_image *image,
                                         gdnrt_rule **rule, gdnrt_error *error);

/** Its launches must have ended. Graphs keep what they need of it. */
GDNRT_API void gdnrt_rule_destroy(gdnrt_rule *rule);

/** Arrays, in the types of the image. H are key heads, HV value heads, a
 *  multiple of H; T are tokens, N sequences, P slots. An array that is all
 *  zeros is left out. */
typedef struct gdnrt_rule_args {
  size_t struct_size;
  /** [T, H, dk], [T, H, dk] and [T, HV, dv]. */
  gdnrt_arg q, k, v;
  /** Of layout ready: the logarithm of the decay, [T, HV] or, for a decay of
   *  each channel, [T, HV, dk], and the strength, [T, HV]; f32. */
  gdnrt_arg log_decay, beta;
  /** Of layout gated, what they are made of: [T, HV] or [T, HV, dk], [T, HV],
   *  [HV], and [HV] or [HV, dk]. */
  gdnrt_arg a, b, A_log, dt_bias;
  /** [N + 1]: sequence n has the tokens cu_seqlens[n] to cu_seqlens[n + 1].
   *  They start at 0 or more, do not decrease, and end at T or less. Kernels
   *  clamp others to 0 and T, and take a sequence that ends ahead of its start
   *  for one without tokens; devices with debug_checks refuse them.
   *  Left out: a token for each slot, and the entry is decode. */
  gdnrt_arg cu_seqlens;
  /** [N]: the slot of each sequence. A sequence whose slot is negative, not
   *  below P, or state_pool.null_slot is skipped: its outputs are zeros. */
  gdnrt_arg slots;
  /** [N]: where states go, by default to where they came from. Entries of
   *  --write-slots have it. */
  gdnrt_arg write_slots;
  /** [N], i1: which sequences have a state; others begin with zeros. Prefill of
   *  --has-initial has it and needs it. */
  gdnrt_arg has_initial;
  /** [P, HV, dv, dk], changed in place. */
  gdnrt_arg state_pool;
  /** [T, HV, dv], written. */
  gdnrt_arg out;
} gdnrt_rule_args;
GDNRT_STRUCT(gdnrt_rule_args)

/** Launches the rule on `stream` (null on a CPU, which has then run). The
 *  scale of the output is dk ^ -0.5. All is checked before the launch: on
 *  failure nothing has changed. Memory to work in is taken where the variant
 *  that suits a call best needs more than those before; if the device has no
 *  more, another variant runs. None is taken on a stream that is being
 *  captured: a call of the same sizes has to come before the capture, or
 *  another variant runs, or it is UNSUPPORTED. */
GDNRT_API gdnrt_status gdnrt_rule_run(gdnrt_rule *rule,
                                      const gdnrt_rule_args *args, void *stream,
                                      gdnrt_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GDN_C_RULE_H */
