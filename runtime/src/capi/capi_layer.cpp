// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C ABI of layers.

#include "serving_handles.h"

using namespace gdnrt;

Status gdnrt::checkNamedArgs(const char *what, const gdnrt_named_arg *args,
                             size_t count) {
  if (!args && count != 0)
    return nullPointer(what);
  for (size_t i = 0; i < count; ++i) {
    const gdnrt_named_arg &each = args[i];
    if (!each.name)
      return invalid(what, ": expected a name, got null");
    if (each.arg.rank < 0 || each.arg.rank > kMaxRank)
      return invalid(each.name, ": expected a rank of 0 to ", kMaxRank,
                     ", got ", each.arg.rank);
    if (each.arg.rank > 0 && !each.arg.sizes)
      return invalid(each.name, ": expected sizes, got null");
    if (each.arg.dtype < GDNRT_F32 || each.arg.dtype > GDNRT_F64)
      return invalid(each.name, ": expected a dtype, got ", each.arg.dtype);
  }
  return {};
}

gdnrt_status gdnrt_metadata_upload(gdnrt_device *device,
                                   const gdnrt_gdn_metadata *metadata,
                                   void *device_arena, void *stream,
                                   gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!device)
      return nullPointer("device");
    if (!metadata)
      return nullPointer("metadata");
    if (!device_arena)
      return nullPointer("device_arena");
    return device->device->upload(device_arena, metadata->arena,
                                  metadata->device_bytes, stream);
  });
}

gdnrt_status gdnrt_gdn_layer_create(const gdnrt_gdn_kernels *kernels,
                                    const gdnrt_named_arg *fixed, size_t count,
                                    gdnrt_gdn_layer **layer,
                                    gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!kernels)
      return nullPointer("kernels");
    if (!layer)
      return nullPointer("layer");
    if (Status s = checkNamedArgs("fixed", fixed, count); !s.isOk())
      return s;
    auto loaded = [](const gdnrt_kernel *kernel) {
      return kernel ? kernel->loaded : nullptr;
    };
    auto made = GDNLayer::make(
        loaded(kernels->decode), loaded(kernels->prefill),
        loaded(kernels->verify), loaded(kernels->commit), fixed, count);
    if (made.isOk())
      *layer = new gdnrt_gdn_layer{std::move(*made)};
    return made.status();
  });
}

gdnrt_status gdnrt_gdn_layer_check_steps(const gdnrt_gdn_layer *layer,
                                         const gdnrt_metadata_builder *builder,
                                         gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!layer)
      return nullPointer("layer");
    if (!builder)
      return nullPointer("builder");
    return layer->layer->checkSteps(*builder->builder);
  });
}

void gdnrt_gdn_layer_destroy(gdnrt_gdn_layer *layer) { delete layer; }

gdnrt_status gdnrt_gdn_layer_forward(gdnrt_gdn_layer *layer,
                                     const gdnrt_gdn_metadata *metadata,
                                     const void *device_arena,
                                     const gdnrt_named_arg *tokens,
                                     size_t count, void *stream,
                                     gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!layer)
      return nullPointer("layer");
    if (Status s = checkNamedArgs("tokens", tokens, count); !s.isOk())
      return s;
    return layer->layer->forward(metadata, device_arena, tokens, count, stream);
  });
}

gdnrt_status gdnrt_gdn_layer_workspace_size(const gdnrt_gdn_layer *layer,
                                            int64_t rows, int64_t tokens,
                                            gdnrt_workspace_size *size,
                                            gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!layer)
      return nullPointer("layer");
    if (!size)
      return nullPointer("size");
    gdnrt_workspace_size raised = *size;
    Status s = layer->layer->addWorkspace(rows, tokens, raised);
    if (s.isOk())
      *size = raised;
    return s;
  });
}

gdnrt_status gdnrt_workspace_create(gdnrt_device *device,
                                    const gdnrt_workspace_size *size,
                                    gdnrt_workspace **workspace,
                                    gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!device)
      return nullPointer("device");
    if (!size)
      return nullPointer("size");
    if (!workspace)
      return nullPointer("workspace");
    auto made = Workspace::make(device->device, *size);
    if (made.isOk())
      *workspace = new gdnrt_workspace{std::move(*made)};
    return made.status();
  });
}

void gdnrt_workspace_destroy(gdnrt_workspace *workspace) { delete workspace; }

gdnrt_status gdnrt_gdn_layer_set_batch_invariant(gdnrt_gdn_layer *layer,
                                                 int32_t wanted,
                                                 gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!layer)
      return nullPointer("layer");
    layer->layer->setBatchInvariant(wanted != 0);
    return {};
  });
}

gdnrt_status gdnrt_gdn_layer_share_workspace(gdnrt_gdn_layer *layer,
                                             const gdnrt_workspace *workspace,
                                             gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!layer)
      return nullPointer("layer");
    return layer->layer->shareWorkspace(workspace ? workspace->workspace
                                                  : nullptr);
  });
}
