// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The launches of a step: one for each run, on slices of the arrays; rows of
// the outputs behind the last run are zeroed.

#include "gdnrt/gdn_layer.h"
#include "gdnrt/zero_rows.h"
#include "layer_steps.h"

#include <algorithm>
#include <cstring>

using namespace gdnrt;

/// How an entry verify or commit keeps states, by its parameters.
static int32_t statesOf(const EntrySchema &entry) {
  return entry.findParam("parents")            ? GDNRT_VERIFY_TREE
         : entry.findParam("pending_keys")     ? GDNRT_VERIFY_LAZY
         : entry.findParam("token_state_pool") ? GDNRT_VERIFY_BUFFER
                                               : GDNRT_VERIFY_SLOTS;
}

const char *gdnrt::nameOfVerifyStates(int64_t states) {
  static const char *const kNames[] = {"slots", "tree", "lazy", "buffer"};
  return states >= 0 && states < 4 ? kNames[states] : "unknown";
}

Result<std::unique_ptr<GDNLayer>> GDNLayer::make(
    std::shared_ptr<LoadedKernel> decode, std::shared_ptr<LoadedKernel> prefill,
    std::shared_ptr<LoadedKernel> verify, std::shared_ptr<LoadedKernel> commit,
    const gdnrt_named_arg *fixed, size_t count) {
  auto layer = std::unique_ptr<GDNLayer>(new GDNLayer());
  for (auto [kernel, target] : {std::pair(&decode, &layer->decode_),
                                {&prefill, &layer->prefill_},
                                {&verify, &layer->verify_},
                                {&commit, &layer->commit_}}) {
    if (!*kernel)
      continue;
    if (layer->device_ && layer->device_ != (*kernel)->device)
      return invalid((*kernel)->entry->name,
                     ": expected a kernel of the device of the others");
    layer->device_ = (*kernel)->device;
    auto made = LayerKernel::make(*kernel, fixed, count);
    if (!made.isOk())
      return made.status();
    *target = std::move(*made);
  }
  if (!layer->device_)
    return invalid("kernels: expected at least one");
  for (size_t i = 0; i < count; ++i) {
    bool known = false;
    for (const auto *kernel :
         {&layer->decode_, &layer->prefill_, &layer->verify_, &layer->commit_})
      known |= *kernel && (*kernel)->entry().findParam(fixed[i].name);
    if (!known)
      return failure(StatusCode::notFound, fixed[i].name,
                     ": no kernel of the layer has this parameter");
  }
  for (const auto *kernel : {&layer->commit_, &layer->verify_})
    if (*kernel)
      layer->verifyStates_ = statesOf((*kernel)->entry());
  if (Status s = layer->checkDeferred(); !s.isOk())
    return s;
  return layer;
}

/// Kernels of one layer agree on what a slot holds.
Status GDNLayer::checkDeferred() {
  const LayerKernel *first = nullptr;
  for (const auto *kernel : {&decode_, &verify_, &commit_}) {
    if (!*kernel)
      continue;
    const bool defers = (*kernel)->entry().pendingRoom().has_value();
    if (first && defers != defersWrites_)
      return invalid((*kernel)->entry().name, ": expected a kernel with",
                     defersWrites_ ? "" : "out", " deferred writes, as ",
                     first->entry().name, " of the layer is, got one with",
                     defers ? "" : "out");
    first = kernel->get();
    defersWrites_ = defers;
  }
  if (defersWrites_ && verify_ && commit_ &&
      !commit_->entry().findParam("num_accepted"))
    return invalid(commit_->entry().name,
                   ": expected a parameter num_accepted (--verify=lazy), for "
                   "tokens of ",
                   verify_->entry().name, " may wait, got none");
  return {};
}

void GDNLayer::setBatchInvariant(bool wanted) {
  for (const auto *kernel : {&decode_, &prefill_, &verify_, &commit_})
    if (*kernel)
      (*kernel)->setBatchInvariant(wanted);
}

void GDNLayer::allowDependentLaunch(bool allowed) {
  for (const auto *kernel : {&decode_, &prefill_, &verify_, &commit_})
    if (*kernel)
      (*kernel)->allowDependentLaunch(allowed);
}

LayerKernel *GDNLayer::kernelFor(int32_t kind) const {
  switch (kind) {
  case GDNRT_RUN_DECODE:
    return decode_.get();
  case GDNRT_RUN_PREFILL:
    return prefill_.get();
  case GDNRT_RUN_COMMIT:
    return commit_.get();
  default:
    return verify_.get();
  }
}

static const char *nameOf(int32_t kind) {
  switch (kind) {
  case GDNRT_RUN_DECODE:
    return "decode";
  case GDNRT_RUN_PREFILL:
    return "prefill";
  case GDNRT_RUN_COMMIT:
    return "commit";
  default:
    return "verify";
  }
}

/// Names are known, and there are rows for all tokens of the step.
Status GDNLayer::checkTokens(const gdnrt_named_arg *tokens, size_t count,
                             int64_t needed) const {
  for (size_t i = 0; i < count; ++i) {
    const gdnrt_named_arg &each = tokens[i];
    if (!each.name)
      return invalid("tokens: expected a name, got null");
    bool known = false;
    for (const auto *kernel : {&decode_, &prefill_, &verify_})
      known |= *kernel && (*kernel)->tokenParam(each.name);
    if (!known)
      return failure(StatusCode::notFound, each.name,
                     ": no kernel of the layer takes this in every step");
    if (each.arg.rank < 1 || each.arg.rank > kMaxRank || !each.arg.sizes)
      return invalid(each.name, ": expected a rank of 1 to ", kMaxRank,
                     ", got ", each.arg.rank);
    if (each.arg.sizes[0] < needed)
      return invalid(each.name, ": expected at least ", needed,
                     " rows, the tokens of the step, got ", each.arg.sizes[0]);
    if (isWritten(each.name))
      if (Status s = checkRowsToZero(each.name, each.arg, needed); !s.isOk())
        return s;
  }
  return {};
}

/// Nothing is launched if a part of the step cannot be.
Status GDNLayer::checkRuns(const gdnrt_gdn_metadata &metadata) const {
  if (metadata.num_runs > 0 && (metadata.deferred_writes != 0) != defersWrites_)
    return invalid("metadata: expected deferred_writes ", int(defersWrites_),
                   ", as the kernels of the layer have ",
                   defersWrites_ ? "deferred writes" : "none", ", got ",
                   metadata.deferred_writes);
  for (int64_t r = 0; r < metadata.num_runs; ++r) {
    const gdnrt_run &run = metadata.runs[r];
    if (!kernelFor(run.kind))
      return failure(StatusCode::unsupported, nameOf(run.kind),
                     ": the step has ", run.num_rows,
                     " rows of that kind, but the layer has no such kernel");
    bool keepsStates =
        run.kind == GDNRT_RUN_VERIFY || run.kind == GDNRT_RUN_COMMIT;
    if (keepsStates && metadata.verify_states != verifyStates_)
      return invalid("metadata: expected the verify states ",
                     nameOfVerifyStates(verifyStates_),
                     ", those of the kernel, got ",
                     nameOfVerifyStates(metadata.verify_states));
    // The kernel skips longer sequences.
    const int64_t most = kernelFor(run.kind)->entry().maxRowTokens;
    if (run.kind != GDNRT_RUN_VERIFY || most == 0 || metadata.on_device)
      continue;
    const uint8_t *isPrefill = metadata.run_is_prefill.data;
    const bool hasTable = metadata.verify_states == GDNRT_VERIFY_SLOTS;
    auto isSkipped = [&](int64_t row) {
      row += run.first_row;
      return (isPrefill && isPrefill[row]) ||
             (hasTable ? metadata.spec_state_indices
                             .data[row * metadata.num_spec_columns]
                       : metadata.spec_slots.data[row]) < 0;
    };
    for (int64_t row = 0; row < run.num_rows; ++row)
      if (int64_t tokens =
              run.query_start_loc[row + 1] - run.query_start_loc[row];
          tokens > most && !isSkipped(row))
        return invalid("verify: expected at most ", most,
                       " tokens in a row, which ", verify_->entry().name,
                       " is compiled for, got ", tokens, " in row ",
                       run.first_row + row);
  }
  return {};
}

/// The rows of the tokens that belong to a run.
void GDNLayer::slice(const gdnrt_run &run, const gdnrt_named_arg *tokens,
                     size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const gdnrt_arg &arg = tokens[i].arg;
    int64_t dense = 1;
    for (int d = arg.rank; d-- > 0;) {
      sizes_[i][d] = arg.sizes[d];
      strides_[i][d] = arg.strides ? arg.strides[d] : dense;
      dense *= arg.sizes[d];
    }
    sizes_[i][0] = run.num_tokens;
    slices_[i] = tokens[i];
    slices_[i].arg.sizes = sizes_[i].data();
    slices_[i].arg.strides = strides_[i].data();
    if (arg.data)
      slices_[i].arg.data = static_cast<char *>(arg.data) +
                            run.first_token * strides_[i][0] *
                                sizeInBytes(static_cast<DType>(arg.dtype));
  }
}

/// All of a step, before any of it is recorded.
Status GDNLayer::checkCapture(const GDNMetadataView &step,
                              const gdnrt_named_arg *tokens, size_t count,
                              const LaunchStream &stream) {
  for (int64_t r = 0; r < step.metadata.num_runs; ++r) {
    const gdnrt_run &run = step.metadata.runs[r];
    if (run.kind == GDNRT_RUN_PREFILL && !step.metadata.run_is_prefill.data &&
        !step.metadata.prefill_is_bounded)
      return failure(StatusCode::unsupported,
                     "prefill: expected a step of decode or verify, one of a "
                     "builder with mixed_batch or of a graph's batch, on a "
                     "stream that is captured, got ",
                     run.num_rows, " rows of that kind");
    slice(run, tokens, count);
    if (Status s = kernelFor(run.kind)->checkCapture(step, run, slices_.data(),
                                                     count, stream);
        !s.isOk())
      return s;
  }
  return {};
}

/// All of a step, before any of it is launched.
Status GDNLayer::checkLaunches(const GDNMetadataView &step,
                               const gdnrt_named_arg *tokens, size_t count,
                               const LaunchStream &stream) {
  // The last one checked of each kernel is the first one launched.
  bool wantsSlots = false;
  SlotRange range;
  for (int64_t r = step.metadata.num_runs; r-- > 0;) {
    const gdnrt_run &run = step.metadata.runs[r];
    LayerKernel &kernel = *kernelFor(run.kind);
    slice(run, tokens, count);
    if (Status s = kernel.check(step, run, slices_.data(), count, stream);
        !s.isOk())
      return s;
    wantsSlots |= kernel.hasDebugChecks();
    range = kernel.slotRange();
  }
  // Arrays on the device have been looked at launch by launch.
  return wantsSlots && !step.metadata.on_device
             ? checkStepSlots(step.metadata, range)
             : Status();
}

/// Whether a kernel of the layer writes the array.
bool GDNLayer::isWritten(const char *name) const {
  for (const auto *kernel : {&decode_, &prefill_, &verify_})
    if (*kernel)
      if (const ParamSchema *param = (*kernel)->tokenParam(name);
          param && param->isWritten())
        return true;
  return false;
}

/// Whether the run begins with a row's second sequence, which reads the slot
/// that the run before writes.
static bool goesOn(const gdnrt_gdn_metadata &m, const gdnrt_run &run) {
  const int32_t *rows = m.non_spec_rows.data;
  return rows && run.first_row > 0 &&
         rows[run.first_row] == rows[run.first_row - 1];
}

Status GDNLayer::forward(const gdnrt_gdn_metadata *metadata,
                         const void *deviceArena, const gdnrt_named_arg *tokens,
                         size_t count, void *stream) {
  const Range range(device_->ranges(), "gdn.layer");
  int64_t needed = metadata ? metadata->num_run_tokens : 0;
  if (needed < 0)
    return invalid("metadata: num_run_tokens: expected 0 or more, got ",
                   needed);
  if (metadata && metadata->num_runs > 0 && !metadata->runs)
    return invalid("metadata: runs: expected a pointer to ", metadata->num_runs,
                   ", got null");
  if (Status s = checkTokens(tokens, count, needed); !s.isOk())
    return s;
  if (!device_->properties().hostReadable && !deviceArena && metadata &&
      metadata->num_runs > 0 && !metadata->on_device)
    return invalid("device_arena: expected the metadata in memory of the "
                   "device, got null");
  if (metadata)
    if (Status s = checkRuns(*metadata); !s.isOk())
      return s;
  if (sizes_.size() < count) {
    slices_.resize(count);
    strides_.resize(count);
    sizes_.resize(count); // says how many there are
  }
  if (metadata) {
    const GDNMetadataView step = {*metadata, deviceArena};
    auto capturing = device_->isCapturing(stream);
    if (!capturing.isOk())
      return capturing.status();
    const LaunchStream ordered = {stream, *capturing};
    if (Status s = *capturing ? checkCapture(step, tokens, count, ordered)
                              : checkLaunches(step, tokens, count, ordered);
        !s.isOk())
      return s;
    for (int64_t r = 0; r < metadata->num_runs; ++r) {
      const gdnrt_run &run = metadata->runs[r];
      slice(run, tokens, count);
      // Its launch has to wait for the run before.
      if (goesOn(*metadata, run))
        device_->notePoolWrite();
      if (Status s = kernelFor(run.kind)->launch(step, run, slices_.data(),
                                                 count, ordered);
          !s.isOk())
        return s;
    }
  }
  for (size_t i = 0; i < count; ++i)
    if (isWritten(tokens[i].name))
      if (Status s =
              zeroRows(*device_, tokens[i].name, tokens[i].arg, needed, stream);
          !s.isOk())
        return s;
  return {};
}

Status
GDNLayer::shareWorkspace(const std::shared_ptr<const Workspace> &workspace,
                         const std::optional<void *> &stream) {
  if (workspace && &workspace->device() != device_.get())
    return invalid("workspace: expected one of the layer's device");
  for (const auto *kernel : {&decode_, &prefill_, &verify_, &commit_}) {
    if (!*kernel)
      continue;
    if (stream)
      (*kernel)->workspaces().shareOn(*stream, workspace);
    else
      (*kernel)->workspaces().share(workspace);
  }
  return {};
}

Status GDNLayer::addWorkspace(int64_t rows, int64_t tokens,
                              gdnrt_workspace_size &size) const {
  if (rows < 0 || tokens < 0)
    return invalid("workspace: expected at least 0 rows and tokens, got ", rows,
                   " and ", tokens);
  if (size.counter_bytes > size.total_bytes)
    return invalid("workspace: expected at most ", size.total_bytes,
                   " bytes of counters, got ", size.counter_bytes);
  for (const auto *kernel : {&decode_, &prefill_, &verify_, &commit_})
    if (*kernel)
      if (Status s = (*kernel)->addWorkspace(rows, tokens, size); !s.isOk())
        return s;
  return {};
}

Status GDNLayer::checkSteps(const MetadataBuilder &builder) const {
  return checkKernels({decode_.get(), prefill_.get(), verify_.get(),
                       commit_.get(), verifyStates_, defersWrites_},
                      builder);
}
