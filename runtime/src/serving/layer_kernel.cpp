// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One kernel of a layer: its binding, its workspace, and the launch.

#include "gdnrt/layer_kernel.h"

#include "gdnrt/launch_plan.h"
#include "gdnrt/slot_check.h"
#include "gdnrt/step_arrays.h"

#include <algorithm>
#include <utility>

using namespace gdnrt;

Result<std::unique_ptr<LayerKernel>>
LayerKernel::make(std::shared_ptr<LoadedKernel> kernel,
                  const gdnrt_named_arg *fixed, size_t count) {
  auto arguments = LayerArguments::make(*kernel->entry, fixed, count);
  if (!arguments.isOk())
    return arguments.status();
  std::unique_ptr<LayerKernel> made(
      new LayerKernel(std::move(kernel), std::move(*arguments)));
  if (Status s = made->layerSymbols_.solveSome(made->arguments_.fixedSizes());
      !s.isOk())
    return s;
  return made;
}

Status LayerKernel::bind() {
  if (!binding_) {
    const std::vector<Argument> all = arguments_.all();
    auto bound = Binding::make(
        kernel_->entry, kernel_->code->schema(), all.data(), all.size(),
        device().properties().numWorkers, kernel_->code->tensorMapEncoder());
    if (bound.isOk()) {
      binding_ = std::move(*bound);
      binding_->setBatchInvariant(batchInvariant_);
    }
    return bound.status();
  }
  const std::vector<size_t> &varying = arguments_.varying();
  return binding_->rebind(varying.data(), arguments_.varyingArguments().data(),
                          varying.size());
}

void LayerKernel::setBatchInvariant(bool wanted) {
  batchInvariant_ = wanted;
  if (binding_)
    binding_->setBatchInvariant(wanted);
}

/// Symbols by what a layer knows: sizes of the arrays that it has, and what it
/// is told of a step. Any other is what steps have most of.
std::vector<int64_t> LayerKernel::symbolsOf(int64_t rows,
                                            int64_t tokens) const {
  const EntrySchema &schema = entry();
  std::vector<int64_t> values(schema.symbols.size(), rows);
  for (size_t s = 0; s < values.size(); ++s)
    if (auto known = layerSymbols_.value(s))
      values[s] = *known;
  for (auto [name, value] : {std::pair("N", rows), {"T", tokens}})
    if (auto symbol = schema.findSymbol(name))
      values[*symbol] = value;
  return values;
}

std::optional<int64_t> LayerKernel::keptTokens() const {
  const auto symbol = entry().findSymbol("S");
  if (!symbol || !entry().findParam("pending_keys"))
    return std::nullopt;
  return symbolsOf(/*rows=*/0, /*tokens=*/0)[*symbol];
}

Status LayerKernel::addWorkspace(int64_t rows, int64_t tokens,
                                 gdnrt_workspace_size &size) const {
  const EntrySchema &schema = entry();
  const CodeSchema &code = kernel_->code->schema();
  if (schema.findParam("is_prefill"))
    rows += kPaddingRows;
  LaunchPlan plan(schema, code);
  if (Status s = plan.update(schema, code, symbolsOf(rows, tokens),
                             device().properties().numWorkers);
      !s.isOk())
    return s;
  // A smaller step may do its work in another way than the largest.
  uint64_t counters = 0, regions = 0;
  constexpr uint64_t kAlign = kWorkspaceAlignment;
  for (const LaunchPlan::Variant &variant : plan.variants()) {
    if (!variant.workspaceBytes)
      continue;
    uint64_t own = (variant.counterBytes + kAlign - 1) / kAlign * kAlign;
    counters = std::max(counters, own);
    regions = std::max(regions, *variant.workspaceBytes -
                                    std::min(own, *variant.workspaceBytes));
  }
  uint64_t before = size.total_bytes - size.counter_bytes;
  size.counter_bytes = std::max(size.counter_bytes, counters);
  size.total_bytes = size.counter_bytes + std::max(before, regions);
  return {};
}

/// Whether the kernel ahead on the stream is not one that writes slots which
/// this kernel reads before it waits: copies, zeros and commits come between
/// steps. One launch that waits for all before it is enough for all layers on
/// its stream.
bool LayerKernel::mayOverlap(const LaunchStream &stream) const {
  if (!allowsDependent_ || kernel_->debugChecks)
    return false;
  const uint64_t writes = device().poolWrites();
  return (writes == lastWrites_ &&
          (writes == 0 || stream.order() == lastOrder_)) ||
         device().isOrdered(stream.order(), writes);
}

/// Everything but the launch: arguments and the shared workspace.
Status LayerKernel::prepare(const GDNMetadataView &step, const gdnrt_run &run,
                            const gdnrt_named_arg *tokens, size_t count,
                            const LaunchStream &stream) {
  prepared_ = nullptr;
  if (Status s = arguments_.fill(step, run, tokens, count); !s.isOk())
    return s;
  if (arguments_.isChanged() || !binding_)
    if (Status s = bind(); !s.isOk())
      return s;
  arguments_.markBound();
  if (run.kind == GDNRT_RUN_PREFILL && step.metadata.run_is_prefill.data)
    if (Status s =
            binding_->expectSequences(step.metadata.num_expected_prefills);
        !s.isOk())
      return s;
  return workspaces_.give(device(), *binding_, stream);
}

Status LayerKernel::checkCapture(const GDNMetadataView &step,
                                 const gdnrt_run &run,
                                 const gdnrt_named_arg *tokens, size_t count,
                                 const LaunchStream &stream) {
  if (kernel_->debugChecks)
    return failure(StatusCode::unsupported, entry().name,
                   ": expected a device without debug checks, which wait for "
                   "the stream, got a stream that is captured");
  const bool isPlain =
      run.kind == GDNRT_RUN_DECODE || run.kind == GDNRT_RUN_PREFILL;
  if (run.kind == GDNRT_RUN_PREFILL && !step.metadata.prefill_is_bounded &&
      !entry().findParam("has_initial"))
    return failure(StatusCode::unsupported, entry().name,
                   ": expected an entry with has_initial in a graph, for rows "
                   "of later steps may have no state");
  if (isPlain && step.metadata.moves_states &&
      !entry().findParam("write_slots"))
    return failure(StatusCode::unsupported, entry().name,
                   ": expected an entry with write_slots in a graph, for rows "
                   "of later steps may read another slot than they write");
  if (Status s = prepare(step, run, tokens, count, stream); !s.isOk())
    return s;
  if (Status s = binding_->checkVariant(); !s.isOk()) {
    if (binding_->hasPlace())
      return s;
    return failure(StatusCode::unsupported, entry().name,
                   ": expected a step of as many rows ahead of the capture, or "
                   "a workspace that is shared: ",
                   s.message());
  }
  return {};
}

Status LayerKernel::check(const GDNMetadataView &step, const gdnrt_run &run,
                          const gdnrt_named_arg *tokens, size_t count,
                          const LaunchStream &stream) {
  if (Status s = prepare(step, run, tokens, count, stream); !s.isOk())
    return s;
  if (Status s = binding_->checkVariant(); !s.isOk()) {
    if (workspaces_.isShared(stream) || binding_->hasPlace())
      return s;
    if (Status taken =
            workspaces_.take(kernel_->device, *binding_, stream.stream);
        !taken.isOk())
      return taken;
  }
  if (kernel_->debugChecks) {
    bool host = device().properties().hostReadable;
    if (Status s = host ? Status() : device().synchronize(stream.stream);
        !s.isOk())
      return s;
    if (auto slots = checkSlots(*binding_, host ? nullptr : &device());
        !slots.isOk())
      return slots.status();
  }
  prepared_ = &run;
  return {};
}

Status LayerKernel::launch(const GDNMetadataView &step, const gdnrt_run &run,
                           const gdnrt_named_arg *tokens, size_t count,
                           const LaunchStream &stream) {
  const Range range(device().ranges(), entry().name.c_str());
  // Runs of one kernel share its binding, which has the one checked last.
  if (prepared_ != &run)
    if (Status s = prepare(step, run, tokens, count, stream); !s.isOk())
      return s;
  prepared_ = nullptr;
  // A graph keeps the workspace that it was captured with.
  if (stream.capturing)
    if (auto kept = workspaces_.kept(stream))
      if (Status s = device().keepForGraph(stream.stream, kept); !s.isOk())
        return s;
  // Asked now: a commit of this step is launched behind the checks of all runs.
  binding_->allowDependentLaunch(mayOverlap(stream));
  // Read first: what is noted from here on is not behind this launch.
  const uint64_t writes = device().poolWrites();
  const bool waits = !binding_->allowsDependentLaunch();
  if (kernel_->entry->movesStates())
    device().notePoolWrite();
  if (Status s =
          kernel_->code->launch(*binding_, stream.stream, stream.capturing);
      !s.isOk())
    return s;
  if (waits && allowsDependent_)
    device().setOrdered(stream.order(), writes);
  lastWrites_ = writes;
  lastOrder_ = stream.order();
  return {};
}
