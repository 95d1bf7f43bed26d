// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C ABI of layers.

#include "serving_handles.h"

#include "gdnrt/layer_pools.h"

#include <string_view>
#include <vector>

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
    if (each.arg.dtype < GDNRT_F32 || each.arg.dtype > GDNRT_U8)
      return invalid(each.name, ": expected a dtype, got ", each.arg.dtype);
  }
  return {};
}

static std::shared_ptr<LoadedKernel> loaded(const gdnrt_kernel *kernel) {
  return kernel ? kernel->loaded : nullptr;
}

/// Of layer `layerIndex` of `pool`, unless that is null.
static Status makeLayer(const gdnrt_gdn_kernels *kernels,
                        const gdnrt_named_arg *fixed, size_t count,
                        const StatePool *pool, int64_t layerIndex,
                        gdnrt_gdn_layer **layer) {
  gdnrt_gdn_kernels known;
  if (Status s = readStruct("kernels", kernels, known); !s.isOk())
    return s;
  if (!layer)
    return nullPointer("layer");
  if (Status s = checkNamedArgs("fixed", fixed, count); !s.isOk())
    return s;
  const auto decode = loaded(known.decode), prefill = loaded(known.prefill),
             verify = loaded(known.verify), commit = loaded(known.commit);
  std::vector<gdnrt_named_arg> arrays(fixed, fixed + count);
  if (pool) {
    auto found =
        poolArguments(*pool, layerIndex, prefill, {decode, verify, commit});
    if (!found.isOk())
      return found.status();
    for (const gdnrt_named_arg &array : *found)
      for (size_t i = 0; i < count; ++i)
        if (std::string_view(fixed[i].name) == array.name)
          return invalid(array.name,
                         ": expected no array, for the layer has that of its "
                         "pool, got one");
    arrays.insert(arrays.end(), found->begin(), found->end());
  }
  auto made = GDNLayer::make(decode, prefill, verify, commit, arrays.data(),
                             arrays.size());
  if (made.isOk())
    *layer = new gdnrt_gdn_layer{std::move(*made)};
  return made.status();
}

gdnrt_status gdnrt_gdn_layer_create(const gdnrt_gdn_kernels *kernels,
                                    const gdnrt_named_arg *fixed, size_t count,
                                    gdnrt_gdn_layer **layer,
                                    gdnrt_error *error) {
  return guarded(error, [&] {
    return makeLayer(kernels, fixed, count, /*pool=*/nullptr, 0, layer);
  });
}

gdnrt_status gdnrt_gdn_layer_create_in_pool(
    const gdnrt_gdn_kernels *kernels, const gdnrt_named_arg *fixed,
    size_t count, const gdnrt_state_pool *pool, int64_t layer_index,
    gdnrt_gdn_layer **layer, gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!pool)
      return nullPointer("pool");
    return makeLayer(kernels, fixed, count, pool->pool.get(), layer_index,
                     layer);
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
    if (!metadata) // a profile run
      return layer->layer->forward(nullptr, device_arena, tokens, count,
                                   stream);
    gdnrt_gdn_metadata known;
    if (Status s = readStruct("metadata", metadata, known); !s.isOk())
      return s;
    return layer->layer->forward(&known, device_arena, tokens, count, stream);
  });
}

gdnrt_status gdnrt_gdn_layer_workspace_size(const gdnrt_gdn_layer *layer,
                                            int64_t rows, int64_t tokens,
                                            gdnrt_workspace_size *size,
                                            gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!layer)
      return nullPointer("layer");
    gdnrt_workspace_size raised;
    if (Status s = readStruct("size", size, raised); !s.isOk())
      return s;
    Status s = layer->layer->addWorkspace(rows, tokens, raised);
    if (s.isOk())
      writeStruct(raised, size);
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
    gdnrt_workspace_size known;
    if (Status s = readStruct("size", size, known); !s.isOk())
      return s;
    if (!workspace)
      return nullPointer("workspace");
    auto made = Workspace::make(device->device, known);
    if (!made.isOk())
      return made.status();
    device->log(GDNRT_LOG_INFO, "workspace: ", known.total_bytes, " bytes");
    *workspace = new gdnrt_workspace{std::move(*made)};
    return {};
  });
}

gdnrt_status gdnrt_workspace_wrap(gdnrt_device *device,
                                  const gdnrt_workspace_size *size, void *data,
                                  void *stream, gdnrt_workspace **workspace,
                                  gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!device)
      return nullPointer("device");
    gdnrt_workspace_size known;
    if (Status s = readStruct("size", size, known); !s.isOk())
      return s;
    if (!workspace)
      return nullPointer("workspace");
    auto made = Workspace::wrap(device->device, known, data, stream);
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

gdnrt_status gdnrt_gdn_layer_allow_dependent_launch(gdnrt_gdn_layer *layer,
                                                    int32_t allowed,
                                                    gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!layer)
      return nullPointer("layer");
    layer->layer->allowDependentLaunch(allowed != 0);
    return {};
  });
}

gdnrt_status
gdnrt_gdn_layer_share_workspace_on_stream(gdnrt_gdn_layer *layer,
                                          const gdnrt_workspace *workspace,
                                          void *stream, gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!layer)
      return nullPointer("layer");
    return layer->layer->shareWorkspace(
        workspace ? workspace->workspace : nullptr, stream);
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
