// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Engines that serve layers, and the entries that each of them needs.
#ifndef GDN_MODEL_ENGINE_H
#define GDN_MODEL_ENGINE_H

#include "gdn/Model/EntryOptions.h"

namespace gdn {

enum class Engine {
  vllm,   // GDNAttentionMetadataBuilder, GatedDeltaNetAttention
  sglang, // a backend on pooled states, with a cache of prefixes and drafts
  pymllm, // GDNAttnBackend
  c       // gdnrt_metadata_builder and gdnrt_gdn_layer
};

/// What the engine's steps ask of entries: parameters, packing, outputs and the
/// kind of verify. The rest is as it is by default.
EntryOptions getEntryOptions(Engine engine);

} // namespace gdn

#endif // GDN_MODEL_ENGINE_H
