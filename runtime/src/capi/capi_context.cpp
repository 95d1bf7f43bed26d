// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C ABI of plans of context parallelism.

#include "exchange_handle.h"
#include "handles.h"
#include "sized_struct.h"

#include "gdn-c/context.h"
#include "gdnrt/context_plan.h"

#include <memory>

using namespace gdnrt;

struct gdnrt_context {
  ContextKernels kernels;
};

struct gdnrt_context_plan {
  std::unique_ptr<ContextPlan> plan;
};

/// Reads arrays of the host.
static Status toBatch(const gdnrt_context_options &given, ContextBatch &batch) {
  const int64_t count = given.num_sequences;
  if (count < 0 || count > INT32_MAX)
    return invalid("num_sequences: expected 0 to ", INT32_MAX, ", got ", count);
  if (!given.starts)
    return nullPointer("starts");
  if (count != 0 && !given.slots)
    return nullPointer("slots");
  if (given.num_slots > INT32_MAX)
    return invalid("num_slots: expected at most ", INT32_MAX, ", got ",
                   given.num_slots);
  batch.heads = given.num_heads;
  batch.slots = given.num_slots;
  batch.tokens = given.num_tokens;
  batch.nullSlot = given.null_slot;
  if (given.num_segments != 0)
    batch.segments = given.num_segments;
  batch.starts.assign(given.starts, given.starts + count + 1);
  if (count == 0)
    return {};
  if (given.cu_checkpoints) {
    const int64_t *starts = given.cu_checkpoints;
    batch.checkpointStarts.assign(starts, starts + count + 1);
    const int64_t last = batch.checkpointStarts.back();
    if (last > 0 && !given.checkpoint_tokens)
      return nullPointer("checkpoint_tokens");
    if (last > 0 && !given.checkpoint_slots)
      return nullPointer("checkpoint_slots");
    if (last > INT32_MAX)
      return invalid("cu_checkpoints: expected at most ", INT32_MAX,
                     " as element ", count, ", got ", last);
    if (last > 0) {
      batch.checkpointTokens.assign(given.checkpoint_tokens,
                                    given.checkpoint_tokens + last);
      batch.checkpointSlots.assign(given.checkpoint_slots,
                                   given.checkpoint_slots + last);
    }
  }
  batch.readSlots.assign(given.slots, given.slots + count);
  const int64_t *targets = given.write_slots ? given.write_slots : given.slots;
  batch.writeSlots.assign(targets, targets + count);
  for (int64_t n = 0; n < count; ++n)
    batch.hasInitial.push_back(
        !given.has_initial || given.has_initial[n] != 0 ? 1 : 0);
  return {};
}

static Status readBatch(const gdnrt_context_options *options,
                        ContextBatch &batch) {
  gdnrt_context_options known;
  if (Status s = readStruct("options", options, known); !s.isOk())
    return s;
  return toBatch(known, batch);
}

static Status loadEntries(const gdnrt_device &device, const Image &image,
                          ContextKernels &kernels) {
  for (auto [name, kernel] : {std::pair("prefill", &kernels.prefill),
                              {"combine_maps", &kernels.combine},
                              {"apply_maps", &kernels.apply}}) {
    auto index = image.findEntry(name);
    if (!index.isOk())
      return index.status();
    auto loaded = loadKernel(device, image, *index, std::nullopt);
    if (!loaded.isOk())
      return loaded.status();
    *kernel = std::move(*loaded);
  }
  return {};
}

gdnrt_status gdnrt_context_create(gdnrt_device *device,
                                  const gdnrt_image *image,
                                  gdnrt_exchange *exchange,
                                  gdnrt_context **context, gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!device)
      return nullPointer("device");
    if (!image)
      return nullPointer("image");
    if (!exchange)
      return nullPointer("exchange");
    if (!context)
      return nullPointer("context");
    const bool isOfHost = device->device->properties().hostReadable;
    if (exchange->exchange->isOfHost() != isOfHost) {
      const char *memory[] = {"a device", "the host"};
      return invalid(
          "exchange: expected one for memory of ", memory[isOfHost],
          ", where the device has its arrays, got one for memory of ",
          memory[!isOfHost]);
    }
    ContextKernels kernels;
    kernels.device = device->device;
    kernels.exchange = exchange->exchange.get();
    if (Status s = loadEntries(*device, *image->image, kernels); !s.isOk())
      return s;
    if (Status s = kernels.takeSizes(); !s.isOk())
      return s;
    auto heads = ContextHeads::make(kernels.device, *kernels.exchange);
    if (!heads.isOk())
      return heads.status();
    kernels.heads = std::move(*heads);
    *context = new gdnrt_context{std::move(kernels)};
    return {};
  });
}

void gdnrt_context_destroy(gdnrt_context *context) { delete context; }

gdnrt_status gdnrt_context_plan_create(const gdnrt_context *context,
                                       const gdnrt_context_options *options,
                                       gdnrt_context_plan **plan,
                                       gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!context)
      return nullPointer("context");
    // Other ranks have to hear of what fails here.
    ContextBatch batch;
    std::unique_ptr<gdnrt_context_plan> handle;
    Status own = withoutThrow([&]() -> Status {
      if (!plan)
        return nullPointer("plan");
      handle = std::make_unique<gdnrt_context_plan>();
      return readBatch(options, batch);
    });
    auto made = ContextPlan::make(context->kernels, batch, std::move(own));
    if (!made.isOk())
      return made.status();
    handle->plan = std::move(*made);
    *plan = handle.release();
    return {};
  });
}

void gdnrt_context_plan_destroy(gdnrt_context_plan *plan) { delete plan; }

gdnrt_status gdnrt_context_plan_sizes(const gdnrt_context_plan *plan,
                                      uint64_t *memory_bytes,
                                      uint64_t *sent_bytes,
                                      gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!plan)
      return nullPointer("plan");
    if (memory_bytes)
      *memory_bytes = plan->plan->memoryBytes();
    if (sent_bytes)
      *sent_bytes = plan->plan->sentBytes();
    return {};
  });
}

gdnrt_status gdnrt_context_plan_run(gdnrt_context_plan *plan,
                                    const gdnrt_context_args *args,
                                    void *stream, gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!plan)
      return nullPointer("plan");
    gdnrt_context_args known;
    if (Status s = readStruct("args", args, known); !s.isOk())
      return s;
    return plan->plan->run(known, stream);
  });
}
