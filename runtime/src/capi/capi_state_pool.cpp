// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C ABI of state pools.

#include "serving_handles.h"

using namespace gdnrt;

static Status toOptions(const gdnrt_state_pool_options *options,
                        StatePoolShape &shape, StatePoolOptions &others) {
  gdnrt_state_pool_options known;
  if (Status s = readStruct("options", options, known); !s.isOk())
    return s;
  if (known.conv_layout != GDNRT_CONV_DS && known.conv_layout != GDNRT_CONV_SD)
    return invalid("state_pool: conv_layout: expected 0 (DS) or 1 (SD), got ",
                   known.conv_layout);
  const struct {
    const char *name;
    int32_t dtype;
  } dtypes[] = {{"state_dtype", known.state_dtype},
                {"conv_dtype", known.conv_dtype},
                {"pending_dtype", known.pending_dtype}};
  for (const auto &each : dtypes)
    if (each.dtype < GDNRT_F32 || each.dtype > GDNRT_U8)
      return invalid("state_pool: ", each.name,
                     ": expected f32, bf16 or f16, got the unknown dtype ",
                     each.dtype);
  shape.numLayers = known.num_layers;
  shape.numRequests = known.num_requests;
  shape.numTrack = known.num_track;
  shape.keyHeads = known.num_key_heads;
  shape.valueHeads = known.num_value_heads;
  shape.keyDim = known.key_dim;
  shape.valueDim = known.value_dim;
  shape.convWidth = known.conv_width;
  shape.convExtra = known.conv_extra;
  shape.pendingTokens = known.pending_tokens;
  shape.decayPerChannel = known.decay_per_channel != 0;
  shape.deferredWrites = known.deferred_writes != 0;
  shape.pendingDType = static_cast<DType>(known.pending_dtype);
  shape.statePlanes = known.state_planes;
  shape.stateSlotStride = known.state_slot_stride;
  shape.stateLayerStride = known.state_layer_stride;
  shape.convSlotStride = known.conv_slot_stride;
  shape.convLayerStride = known.conv_layer_stride;
  shape.stateDType = static_cast<DType>(known.state_dtype);
  shape.convDType = static_cast<DType>(known.conv_dtype);
  shape.convLayout = static_cast<ConvLayout>(known.conv_layout);
  others.debugChecks = known.debug_checks != 0;
  others.foreignRequests = known.foreign_requests != 0;
  return {};
}

/// INVALID_ARGUMENT if there is no pool, or no ids although there are some.
static Status checkSlots(const gdnrt_state_pool *pool, const int32_t *slots,
                         size_t count) {
  if (!pool)
    return nullPointer("pool");
  if (!slots && count != 0)
    return nullPointer("slots");
  return {};
}

gdnrt_status gdnrt_state_pool_bytes(const gdnrt_state_pool_options *options,
                                    uint64_t *bytes, gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!bytes)
      return nullPointer("bytes");
    StatePoolShape shape;
    StatePoolOptions others;
    if (Status status = toOptions(options, shape, others); !status.isOk())
      return status;
    auto needed = statePoolBytes(shape);
    if (needed.isOk())
      *bytes = *needed;
    return needed.status();
  });
}

gdnrt_status
gdnrt_state_pool_requests_that_fit(const gdnrt_state_pool_options *options,
                                   uint64_t bytes, int64_t *requests,
                                   gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!requests)
      return nullPointer("requests");
    StatePoolShape shape;
    StatePoolOptions others;
    if (Status status = toOptions(options, shape, others); !status.isOk())
      return status;
    auto fit = requestsThatFit(shape, bytes);
    if (fit.isOk())
      *requests = *fit;
    return fit.status();
  });
}

gdnrt_status gdnrt_state_pool_create(gdnrt_device *device,
                                     const gdnrt_state_pool_options *options,
                                     gdnrt_state_pool **pool,
                                     gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!device)
      return nullPointer("device");
    if (!pool)
      return nullPointer("pool");
    StatePoolShape shape;
    StatePoolOptions others;
    if (Status status = toOptions(options, shape, others); !status.isOk())
      return status;
    auto made = StatePool::make(device->device, shape, others);
    if (!made.isOk())
      return made.status();
    device->log(GDNRT_LOG_INFO, "state pool: ", shape.numSlots(), " slots, ",
                (*made)->memoryBytes(), " bytes");
    *pool = new gdnrt_state_pool{std::move(*made)};
    return {};
  });
}

gdnrt_status gdnrt_state_pool_wrap(gdnrt_device *device,
                                   const gdnrt_state_pool_options *options,
                                   const gdnrt_arg *states,
                                   const gdnrt_arg *convs,
                                   gdnrt_state_pool **pool,
                                   gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!device)
      return nullPointer("device");
    if (!states)
      return nullPointer("states");
    if (!convs)
      return nullPointer("convs");
    if (!pool)
      return nullPointer("pool");
    StatePoolShape shape;
    StatePoolOptions others;
    if (Status status = toOptions(options, shape, others); !status.isOk())
      return status;
    // More are refused, without a look at any.
    const int64_t layers = shape.numLayers > kMostLayers ? 0 : shape.numLayers;
    std::vector<Argument> arguments[2];
    for (int64_t layer = 0; layer < layers; ++layer) {
      arguments[0].push_back(toArgument(states[layer]));
      arguments[1].push_back(toArgument(convs[layer]));
    }
    auto made = StatePool::wrap(device->device, shape, arguments[0].data(),
                                arguments[1].data(), others);
    if (made.isOk())
      *pool = new gdnrt_state_pool{std::move(*made)};
    return made.status();
  });
}

void gdnrt_state_pool_destroy(gdnrt_state_pool *pool) { delete pool; }

gdnrt_status gdnrt_state_pool_describe(const gdnrt_state_pool *pool,
                                       gdnrt_state_pool_info *info,
                                       gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!pool)
      return nullPointer("pool");
    if (Status s = checkStruct("info", info); !s.isOk())
      return s;
    const StatePool &described = *pool->pool;
    gdnrt_state_pool_info filled = gdnrt_state_pool_info_default();
    filled.num_slots = described.numSlots();
    filled.free_requests = described.numFree(SlotKind::request);
    filled.used_requests = described.numInUse(SlotKind::request);
    filled.free_track = described.numFree(SlotKind::track);
    filled.used_track = described.numInUse(SlotKind::track);
    filled.bytes = described.memoryBytes();
    writeStruct(filled, info);
    return {};
  });
}

gdnrt_status gdnrt_state_pool_view(const gdnrt_state_pool *pool, int32_t buffer,
                                   int64_t layer, gdnrt_arg *view,
                                   gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!pool)
      return nullPointer("pool");
    if (!view)
      return nullPointer("view");
    if (buffer < GDNRT_POOL_STATE || buffer > GDNRT_POOL_PENDING_SCALES)
      return invalid("state_pool: buffer: expected ", int(GDNRT_POOL_STATE),
                     " to ", int(GDNRT_POOL_PENDING_SCALES), ", got ", buffer);
    auto seen = pool->pool->view(static_cast<PoolBuffer>(buffer), layer);
    if (!seen.isOk())
      return seen.status();
    view->data = seen->data;
    view->dtype = seen->dtype;
    view->rank = seen->rank;
    view->sizes = seen->sizes;
    view->strides = seen->strides;
    view->null_slot = seen->nullSlot;
    return {};
  });
}

static gdnrt_status allocate(gdnrt_state_pool *pool, SlotKind kind,
                             size_t count, int32_t zero, void *stream,
                             int32_t *slots, int32_t *taken,
                             gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (Status status = checkSlots(pool, slots, count); !status.isOk())
      return status;
    if (!taken)
      return nullPointer("taken");
    auto got = pool->pool->allocate(kind, count, slots, zero != 0, stream);
    if (got.isOk())
      *taken = *got ? 1 : 0;
    return got.status();
  });
}

gdnrt_status gdnrt_state_pool_allocate(gdnrt_state_pool *pool, size_t count,
                                       int32_t zero, void *stream,
                                       int32_t *slots, int32_t *taken,
                                       gdnrt_error *error) {
  return allocate(pool, SlotKind::request, count, zero, stream, slots, taken,
                  error);
}

gdnrt_status gdnrt_state_pool_allocate_track(gdnrt_state_pool *pool,
                                             size_t count, int32_t zero,
                                             void *stream, int32_t *slots,
                                             int32_t *taken,
                                             gdnrt_error *error) {
  return allocate(pool, SlotKind::track, count, zero, stream, slots, taken,
                  error);
}

gdnrt_status gdnrt_state_pool_free(gdnrt_state_pool *pool, const int32_t *slots,
                                   size_t count, void *stream,
                                   gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (Status status = checkSlots(pool, slots, count); !status.isOk())
      return status;
    return pool->pool->free(slots, count, stream);
  });
}

gdnrt_status gdnrt_state_pool_fork(gdnrt_state_pool *pool, int32_t source,
                                   void *stream, int32_t *slot, int32_t *taken,
                                   gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!pool)
      return nullPointer("pool");
    if (!slot)
      return nullPointer("slot");
    if (!taken)
      return nullPointer("taken");
    auto got = pool->pool->fork(source, slot, stream);
    if (got.isOk())
      *taken = *got ? 1 : 0;
    return got.status();
  });
}

gdnrt_status gdnrt_state_pool_reset(gdnrt_state_pool *pool,
                                    const int32_t *slots, size_t count,
                                    void *stream, gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (Status status = checkSlots(pool, slots, count); !status.isOk())
      return status;
    return pool->pool->reset(slots, count, stream);
  });
}

gdnrt_status gdnrt_state_pool_copy(gdnrt_state_pool *pool, const int32_t *from,
                                   const int32_t *to, size_t count,
                                   void *stream, gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!pool)
      return nullPointer("pool");
    if (!from && count != 0)
      return nullPointer("from");
    if (!to && count != 0)
      return nullPointer("to");
    return pool->pool->copy(from, to, count, stream);
  });
}

gdnrt_status gdnrt_state_pool_has_pending(gdnrt_state_pool *pool,
                                          const int32_t *slots, size_t count,
                                          void *stream, uint8_t *pending,
                                          gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (Status status = checkSlots(pool, slots, count); !status.isOk())
      return status;
    if (!pending && count != 0)
      return nullPointer("pending");
    return pool->pool->hasPending(slots, count, stream, pending);
  });
}

gdnrt_status gdnrt_state_pool_use_kernels(gdnrt_state_pool *pool,
                                          const gdnrt_kernel *copy_slots,
                                          const gdnrt_kernel *zero_slots,
                                          gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!pool)
      return nullPointer("pool");
    if (!copy_slots)
      return nullPointer("copy_slots");
    if (!zero_slots)
      return nullPointer("zero_slots");
    return pool->pool->useKernels(copy_slots->loaded, zero_slots->loaded);
  });
}

gdnrt_status gdnrt_state_pool_check_batch(gdnrt_state_pool *pool,
                                          const int32_t *slots, size_t count,
                                          gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (Status status = checkSlots(pool, slots, count); !status.isOk())
      return status;
    return pool->pool->checkBatch(slots, count);
  });
}
