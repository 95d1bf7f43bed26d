// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C ABI of bindings and launches.

#include "handles.h"
#include "sized_struct.h"

using namespace gdnrt;

static Status makeBinding(const gdnrt_kernel &kernel,
                          const std::vector<Argument> &args,
                          gdnrt_binding **binding) {
  const std::shared_ptr<LoadedKernel> &loaded = kernel.loaded;
  auto bound =
      Binding::make(loaded->entry, loaded->code->schema(), args.data(),
                    args.size(), loaded->device->properties().numWorkers,
                    loaded->code->tensorMapEncoder());
  if (bound.isOk())
    *binding = new gdnrt_binding{loaded, std::move(*bound), SlotReport()};
  return bound.status();
}

gdnrt_status gdnrt_kernel_bind(gdnrt_kernel *kernel, const gdnrt_arg *args,
                               size_t count, gdnrt_binding **binding,
                               gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!kernel)
      return nullPointer("kernel");
    if (!args && count != 0)
      return nullPointer("args");
    if (!binding)
      return nullPointer("binding");
    const EntrySchema &entry = *kernel->loaded->entry;
    if (count != entry.params.size())
      return invalid(entry.name, ": expected ", entry.params.size(),
                     " arguments, got ", count);
    std::vector<Argument> ordered(count);
    for (size_t i = 0; i < count; ++i)
      ordered[i] = toArgument(args[i]);
    return makeBinding(*kernel, ordered, binding);
  });
}

gdnrt_status gdnrt_kernel_bind_named(gdnrt_kernel *kernel,
                                     const gdnrt_named_arg *args, size_t count,
                                     gdnrt_binding **binding,
                                     gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!kernel)
      return nullPointer("kernel");
    if (!args && count != 0)
      return nullPointer("args");
    if (!binding)
      return nullPointer("binding");
    const EntrySchema &entry = *kernel->loaded->entry;
    // An Argument of all zeros is an optional one that is left out.
    std::vector<Argument> ordered(entry.params.size());
    std::vector<bool> given(entry.params.size());
    for (size_t i = 0; i < count; ++i) {
      if (!args[i].name)
        return nullPointer("args: name");
      auto param = entry.findParam(args[i].name);
      if (!param)
        return unknownParam(entry, args[i].name);
      if (given[*param])
        return invalid(args[i].name, ": the argument is given twice");
      given[*param] = true;
      ordered[*param] = toArgument(args[i].arg);
    }
    for (size_t p = 0; p < given.size(); ++p)
      if (!given[p] && !entry.params[p].optional)
        return invalid(entry.params[p].name, ": the argument is missing");
    return makeBinding(*kernel, ordered, binding);
  });
}

gdnrt_status gdnrt_binding_rebind(gdnrt_binding *binding, const size_t *params,
                                  const gdnrt_arg *args, size_t count,
                                  gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!binding)
      return nullPointer("binding");
    if (!params && count != 0)
      return nullPointer("params");
    if (!args && count != 0)
      return nullPointer("args");
    Binding &bound = *binding->binding;
    // Few arguments are the rule; they need no memory.
    constexpr size_t kFew = 16;
    Argument few[kFew];
    std::vector<Argument> many(count > kFew ? count : 0);
    Argument *converted = count > kFew ? many.data() : few;
    for (size_t i = 0; i < count; ++i)
      converted[i] = toArgument(args[i]);
    return bound.rebind(params, converted, count);
  });
}

void gdnrt_binding_destroy(gdnrt_binding *binding) { delete binding; }

gdnrt_status gdnrt_binding_symbol(const gdnrt_binding *binding,
                                  const char *name, int64_t *value,
                                  gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!binding)
      return nullPointer("binding");
    if (!name)
      return nullPointer("name");
    if (!value)
      return nullPointer("value");
    const EntrySchema &entry = binding->binding->entry();
    auto symbol = entry.findSymbol(name);
    if (!symbol)
      return failure(StatusCode::notFound, name, ": ", entry.name,
                     " has no such symbol; it has: ",
                     entry.symbols.empty() ? "none" : joinNames(entry.symbols));
    *value = binding->binding->symbol(*symbol);
    return {};
  });
}

gdnrt_status gdnrt_binding_workspace_bytes(const gdnrt_binding *binding,
                                           uint64_t *bytes,
                                           gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!binding)
      return nullPointer("binding");
    if (!bytes)
      return nullPointer("bytes");
    auto needed = binding->binding->workspaceBytes();
    if (needed.isOk())
      *bytes = *needed;
    return needed.status();
  });
}

gdnrt_status gdnrt_binding_set_workspace(gdnrt_binding *binding, void *data,
                                         uint64_t bytes, void *stream,
                                         gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!binding)
      return nullPointer("binding");
    if (Status status = binding->binding->setWorkspace(data, bytes);
        !status.isOk())
      return status;
    uint64_t zeros = binding->binding->bytesToZero(bytes);
    if (zeros == 0)
      return {};
    Status zeroed = binding->kernel->device->fill(data, 0, zeros, stream);
    if (!zeroed.isOk() && !binding->binding->setWorkspace(nullptr, 0).isOk())
      return failure(StatusCode::internal, "workspace: cannot be taken away");
    return zeroed;
  });
}

gdnrt_status gdnrt_binding_force_variant(gdnrt_binding *binding, int64_t index,
                                         gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!binding)
      return nullPointer("binding");
    if (index < -1)
      return invalid("index: expected -1 or a variant, got ", index);
    std::optional<size_t> forced;
    if (index >= 0)
      forced = static_cast<size_t>(index);
    return binding->binding->forceVariant(forced);
  });
}

gdnrt_status gdnrt_binding_force_stage(gdnrt_binding *binding, int64_t index,
                                       gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!binding)
      return nullPointer("binding");
    if (index < -1)
      return invalid("index: expected -1 or a stage, got ", index);
    std::optional<size_t> stage;
    if (index >= 0)
      stage = static_cast<size_t>(index);
    binding->binding->forceStage(stage);
    return {};
  });
}

gdnrt_status gdnrt_binding_set_batch_invariant(gdnrt_binding *binding,
                                               int32_t wanted,
                                               gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!binding)
      return nullPointer("binding");
    binding->binding->setBatchInvariant(wanted != 0);
    return {};
  });
}

gdnrt_status gdnrt_binding_expect_sequences(gdnrt_binding *binding,
                                            int64_t sequences,
                                            gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!binding)
      return nullPointer("binding");
    return binding->binding->expectSequences(sequences);
  });
}

size_t gdnrt_binding_variant(const gdnrt_binding *binding) {
  return binding ? binding->binding->variant() : 0;
}

int64_t gdnrt_binding_units(const gdnrt_binding *binding) {
  return binding ? binding->binding->units() : 0;
}

gdnrt_status gdnrt_binding_allow_dependent_launch(gdnrt_binding *binding,
                                                  int32_t allowed,
                                                  gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!binding)
      return nullPointer("binding");
    binding->binding->allowDependentLaunch(allowed != 0);
    return {};
  });
}

/// The ids as they are when all that `stream` was given has run.
static Result<SlotReport> readSlots(const gdnrt_binding &binding,
                                    void *stream) {
  Device &device = *binding.kernel->device;
  if (device.properties().hostReadable)
    return checkSlots(*binding.binding, nullptr);
  if (Status status = refuseCapture(device, stream, "debug checks");
      !status.isOk())
    return status;
  if (Status status = device.synchronize(stream); !status.isOk())
    return status;
  return checkSlots(*binding.binding, &device);
}

gdnrt_status gdnrt_launch(gdnrt_binding *binding, void *stream,
                          gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!binding)
      return nullPointer("binding");
    const Range range(binding->kernel->device->ranges(),
                      binding->kernel->entry->name.c_str());
    if (binding->kernel->debugChecks) {
      binding->lastReport = SlotReport();
      auto counted = readSlots(*binding, stream);
      if (!counted.isOk())
        return counted.status();
      binding->lastReport = *counted;
    }
    if (binding->binding->entry().movesStates())
      binding->kernel->device->notePoolWrite();
    return binding->kernel->code->launch(*binding->binding, stream);
  });
}

static gdnrt_slot_report toC(const SlotReport &counted) {
  gdnrt_slot_report report = gdnrt_slot_report_default();
  report.live = counted.live;
  report.skipped_negative = counted.skippedNegative;
  report.skipped_null = counted.skippedNull;
  report.skipped_past_end = counted.skippedPastEnd;
  return report;
}

gdnrt_status gdnrt_binding_check_slots(const gdnrt_binding *binding,
                                       gdnrt_slot_report *report,
                                       gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!binding)
      return nullPointer("binding");
    if (Status s = checkStruct("report", report); !s.isOk())
      return s;
    auto counted = readSlots(*binding, nullptr);
    if (counted.isOk())
      writeStruct(toC(*counted), report);
    return counted.status();
  });
}

gdnrt_status gdnrt_binding_slot_report(const gdnrt_binding *binding,
                                       gdnrt_slot_report *report,
                                       gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!binding)
      return nullPointer("binding");
    if (Status s = checkStruct("report", report); !s.isOk())
      return s;
    writeStruct(toC(binding->lastReport), report);
    return {};
  });
}
