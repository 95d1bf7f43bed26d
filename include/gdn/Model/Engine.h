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

/// The same for pools in which no states after tokens are written, those in
/// planes and those with deferred writes: drafts stay pending. With deferred
/// writes a row also writes the slot that it reads, and has a state to begin
/// from unless it is a prefill.
EntryOptions getPendingEntryOptions(Engine engine, bool defersWrites);

} // namespace gdn

#endif // GDN_MODEL_ENGINE_H
