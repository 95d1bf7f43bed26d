// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Structs of callers that are older or newer than the library: they begin with
// the size that they have there. Missing members are 0 and are not written,
// unknown ones must be 0. Decision:
// docs/design/20261125-c-interface-that-grows.md.

#ifndef GDNRT_SRC_CAPI_SIZED_STRUCT_H
#define GDNRT_SRC_CAPI_SIZED_STRUCT_H

#include "gdn-c/attention.h"
#include "gdn-c/batch_planner.h"
#include "gdn-c/context.h"
#include "gdn-c/exchange.h"
#include "gdn-c/host_tier.h"
#include "gdn-c/layer_shape.h"
#include "gdn-c/rule.h"
#include "gdn-c/runtime.h"
#include "gdn-c/serving.h"
#include "gdn-c/state_cache.h"
#include "gdn-c/state_pool.h"
#include "gdnrt/status.h"

#include <cstddef>
#include <type_traits>

/// All structs that may grow.
#define GDNRT_SIZED_STRUCTS(X)                                                 \
  X(gdnrt_param_info)                                                          \
  X(gdnrt_code_info)                                                           \
  X(gdnrt_variant_info)                                                        \
  X(gdnrt_cpu_options)                                                         \
  X(gdnrt_device_info)                                                         \
  X(gdnrt_cuda_options)                                                        \
  X(gdnrt_ranges)                                                              \
  X(gdnrt_slot_report)                                                         \
  X(gdnrt_metadata_options)                                                    \
  X(gdnrt_common_metadata)                                                     \
  X(gdnrt_gdn_metadata)                                                        \
  X(gdnrt_batch_planner_options)                                               \
  X(gdnrt_device_batch)                                                        \
  X(gdnrt_gdn_kernels)                                                         \
  X(gdnrt_workspace_size)                                                      \
  X(gdnrt_layer_heads)                                                         \
  X(gdnrt_forward_batch)                                                       \
  X(gdnrt_graph_batch)                                                         \
  X(gdnrt_radix_attention)                                                     \
  X(gdnrt_attention_call)                                                      \
  X(gdnrt_attention_callbacks)                                                 \
  X(gdnrt_gdn_forward_metadata)                                                \
  X(gdnrt_state_pool_options)                                                  \
  X(gdnrt_state_pool_info)                                                     \
  X(gdnrt_state_cache_options)                                                 \
  X(gdnrt_cache_tokens)                                                        \
  X(gdnrt_cache_match)                                                         \
  X(gdnrt_cache_lock)                                                          \
  X(gdnrt_cache_entry)                                                         \
  X(gdnrt_cache_inserted)                                                      \
  X(gdnrt_state_cache_policy)                                                  \
  X(gdnrt_cache_piece)                                                         \
  X(gdnrt_cache_node_info)                                                     \
  X(gdnrt_state_cache_info)                                                    \
  X(gdnrt_nccl_options)                                                        \
  X(gdnrt_host_tier_options)                                                   \
  X(gdnrt_host_tier_info)                                                      \
  X(gdnrt_state_tags)                                                          \
  X(gdnrt_rule_args)                                                           \
  X(gdnrt_context_options)                                                     \
  X(gdnrt_context_args)

namespace gdnrt {

constexpr size_t kLeastStructSize = 16, kMostStructSize = 4096;

/// "gdnrt_param_info"; there is none for a struct that cannot grow.
template <typename Struct> struct StructName;
#define GDNRT_STRUCT_NAME(STRUCT)                                              \
  template <> struct StructName<STRUCT> {                                      \
    static constexpr const char *value = #STRUCT;                              \
    static_assert(std::is_trivially_copyable_v<STRUCT>);                       \
    static_assert(offsetof(STRUCT, struct_size) == 0);                         \
    static_assert(sizeof(STRUCT) <= kMostStructSize && alignof(STRUCT) == 8);  \
  };
GDNRT_SIZED_STRUCTS(GDNRT_STRUCT_NAME)
#undef GDNRT_STRUCT_NAME

/// What the templates below do, for a struct of `knownSize` bytes.
Status checkSized(const char *what, const char *type, const void *given);
Status readSized(const char *what, const char *type, const void *given,
                 void *known, size_t knownSize);
void writeSized(const void *known, size_t knownSize, void *to);

/// Whether `given` (called `what` in messages) is there and has a size that a
/// struct can have. Asked of what a function fills before it does anything.
template <typename Struct>
Status checkStruct(const char *what, const Struct *given) {
  return checkSized(what, StructName<Struct>::value, given);
}

/// Whether a struct has a member `reserved`, to which a later version may give
/// a meaning.
template <typename Struct, typename = void>
struct HasReserved : std::false_type {};
template <typename Struct>
struct HasReserved<Struct, std::void_t<decltype(Struct::reserved)>>
    : std::true_type {};

/// Copies what the caller gave to `known`, where members that it lacks are 0
/// and struct_size is ours. UNSUPPORTED where it has others that are not 0, or
/// where `reserved` is not.
template <typename Struct>
Status readStruct(const char *what, const Struct *given, Struct &known) {
  Status status =
      readSized(what, StructName<Struct>::value, given, &known, sizeof(Struct));
  if constexpr (HasReserved<Struct>::value)
    if (status.isOk() && known.reserved != 0)
      return failure(StatusCode::unsupported, what, ": reserved of ",
                     StructName<Struct>::value, ": expected 0, got ",
                     known.reserved);
  return status;
}

/// Copies as much of `known` as the caller's struct, which was checked, has
/// room for; members behind those that we know become 0. Its struct_size stays.
template <typename Struct> void writeStruct(const Struct &known, Struct *to) {
  writeSized(&known, sizeof(Struct), to);
}

} // namespace gdnrt

#endif // GDNRT_SRC_CAPI_SIZED_STRUCT_H
