// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C ABI of attention backends.

#include "serving_handles.h"

#include "gdnrt/attention_backend.h"

using namespace gdnrt;

struct gdnrt_attention_backend {
  std::shared_ptr<AttentionBackend> backend;
};

int32_t gdnrt_forward_mode_is_extend(int32_t mode) { return isExtend(mode); }
int32_t gdnrt_forward_mode_is_decode(int32_t mode) { return isDecode(mode); }
int32_t gdnrt_forward_mode_is_idle(int32_t mode) { return isIdle(mode); }
int32_t gdnrt_forward_mode_is_decode_or_idle(int32_t mode) {
  return isDecode(mode) || isIdle(mode);
}

gdnrt_status
gdnrt_attention_backend_create_gdn(gdnrt_device *device,
                                   gdnrt_attention_backend **backend,
                                   gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!device)
      return nullPointer("device");
    if (!backend)
      return nullPointer("backend");
    *backend = new gdnrt_attention_backend{makeGDNBackend(device->device)};
    return {};
  });
}

gdnrt_status
gdnrt_attention_backend_create_paged(gdnrt_device *device,
                                     gdnrt_attention_backend **backend,
                                     gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!device)
      return nullPointer("device");
    if (!backend)
      return nullPointer("backend");
    auto made = makePagedBackend(device->device);
    if (made.isOk())
      *backend = new gdnrt_attention_backend{*made};
    return made.status();
  });
}

gdnrt_status gdnrt_attention_backend_create_custom(
    gdnrt_device *device, const gdnrt_attention_callbacks *callbacks,
    gdnrt_attention_backend **backend, gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!device)
      return nullPointer("device");
    if (!backend)
      return nullPointer("backend");
    gdnrt_attention_callbacks given;
    if (Status s = readStruct("callbacks", callbacks, given); !s.isOk())
      return s;
    // First what may fail: a backend that is made and lost calls `destroy`.
    auto handle = std::make_unique<gdnrt_attention_backend>();
    auto made = makeCustomBackend(device->device, given);
    if (!made.isOk())
      return made.status();
    handle->backend = *made;
    *backend = handle.release();
    return {};
  });
}

gdnrt_status gdnrt_attention_backend_create_hybrid(
    const gdnrt_attention_backend *full, const gdnrt_attention_backend *gdn,
    const int64_t *full_attn_layer_ids, size_t count,
    gdnrt_attention_backend **backend, gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!full || !gdn)
      return nullPointer(full ? "gdn" : "full");
    if (!full_attn_layer_ids && count != 0)
      return nullPointer("full_attn_layer_ids");
    if (!backend)
      return nullPointer("backend");
    *backend = new gdnrt_attention_backend{std::make_shared<HybridAttnBackend>(
        full->backend, gdn->backend,
        std::set<int64_t>(full_attn_layer_ids, full_attn_layer_ids + count))};
    return {};
  });
}

void gdnrt_attention_backend_destroy(gdnrt_attention_backend *backend) {
  delete backend;
}

gdnrt_status
gdnrt_attention_init_forward_metadata(gdnrt_attention_backend *backend,
                                      const gdnrt_forward_batch *batch,
                                      gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!backend)
      return nullPointer("backend");
    ForwardBatch known;
    if (Status s = readStruct("batch", batch, known); !s.isOk())
      return s;
    return backend->backend->initForwardMetadata(known);
  });
}

static gdnrt_status
attend(gdnrt_attention_backend *backend, const gdnrt_attention_call *call,
       const gdnrt_forward_batch *batch, gdnrt_error *error,
       Status (AttentionBackend::*how)(const AttentionCall &,
                                       const ForwardBatch &)) {
  return guarded(error, [&]() -> Status {
    if (!backend)
      return nullPointer("backend");
    ForwardBatch batchKnown;
    if (Status s = readStruct("batch", batch, batchKnown); !s.isOk())
      return s;
    AttentionCall known;
    if (Status s = readStruct("call", call, known); !s.isOk())
      return s;
    gdnrt_radix_attention layer;
    if (known.layer) {
      if (Status s = readStruct("layer", known.layer, layer); !s.isOk())
        return s;
      known.layer = &layer;
    }
    const gdnrt_named_arg arrays[] = {
        {"q", known.q}, {"k", known.k}, {"v", known.v}, {"out", known.out}};
    if (Status s = checkNamedArgs("call", arrays, 4); !s.isOk())
      return s;
    if (known.out.rank < 1)
      return invalid("out: expected a rank of 2 or 3, got 0");
    return (backend->backend.get()->*how)(known, batchKnown);
  });
}

gdnrt_status gdnrt_attention_forward(gdnrt_attention_backend *backend,
                                     const gdnrt_attention_call *call,
                                     const gdnrt_forward_batch *batch,
                                     gdnrt_error *error) {
  return attend(backend, call, batch, error, &AttentionBackend::forward);
}

gdnrt_status gdnrt_attention_forward_decode(gdnrt_attention_backend *backend,
                                            const gdnrt_attention_call *call,
                                            const gdnrt_forward_batch *batch,
                                            gdnrt_error *error) {
  return attend(backend, call, batch, error, &AttentionBackend::forwardDecode);
}

gdnrt_status gdnrt_attention_forward_extend(gdnrt_attention_backend *backend,
                                            const gdnrt_attention_call *call,
                                            const gdnrt_forward_batch *batch,
                                            gdnrt_error *error) {
  return attend(backend, call, batch, error, &AttentionBackend::forwardExtend);
}

gdnrt_status gdnrt_attention_forward_gdn(gdnrt_attention_backend *backend,
                                         gdnrt_gdn_layer *layer,
                                         const gdnrt_forward_batch *batch,
                                         const gdnrt_named_arg *tokens,
                                         size_t count, gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!backend)
      return nullPointer("backend");
    ForwardBatch known;
    if (Status s = readStruct("batch", batch, known); !s.isOk())
      return s;
    if (!layer)
      return nullPointer("layer");
    if (Status s = checkNamedArgs("tokens", tokens, count); !s.isOk())
      return s;
    return backend->backend->forwardGdn(*layer->layer, known, tokens, count);
  });
}

gdnrt_status
gdnrt_attention_forward_metadata(const gdnrt_attention_backend *backend,
                                 gdnrt_gdn_forward_metadata *metadata,
                                 int32_t *known, gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!backend)
      return nullPointer("backend");
    if (Status s = checkStruct("metadata", metadata); !s.isOk())
      return s;
    if (!known)
      return nullPointer("known");
    const GDNForwardMetadata *found = backend->backend->forwardMetadata();
    if (found)
      writeStruct(*found, metadata);
    *known = found ? 1 : 0;
    return {};
  });
}

gdnrt_status gdnrt_attention_get_cuda_graph_seq_len_fill_value(
    gdnrt_attention_backend *backend, int64_t *value, gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!backend || !value)
      return nullPointer(backend ? "value" : "backend");
    auto found = backend->backend->getCudaGraphSeqLenFillValue();
    if (found.isOk())
      *value = *found;
    return found.status();
  });
}

gdnrt_status
gdnrt_attention_init_cuda_graph_state(gdnrt_attention_backend *backend,
                                      int64_t max_bs, int64_t max_num_tokens,
                                      gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!backend)
      return nullPointer("backend");
    return backend->backend->initCudaGraphState(max_bs, max_num_tokens);
  });
}

gdnrt_status gdnrt_attention_init_forward_metadata_capture_cuda_graph(
    gdnrt_attention_backend *backend, const gdnrt_graph_batch *batch,
    gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!backend)
      return nullPointer("backend");
    GraphBatch known;
    if (Status s = readStruct("batch", batch, known); !s.isOk())
      return s;
    return backend->backend->initForwardMetadataCaptureCudaGraph(known);
  });
}

gdnrt_status gdnrt_attention_init_forward_metadata_replay_cuda_graph(
    gdnrt_attention_backend *backend, const gdnrt_graph_batch *batch,
    gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!backend)
      return nullPointer("backend");
    GraphBatch known;
    if (Status s = readStruct("batch", batch, known); !s.isOk())
      return s;
    return backend->backend->initForwardMetadataReplayCudaGraph(known);
  });
}
