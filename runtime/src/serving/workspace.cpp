// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A workspace for all layers of a model: its memory, what a kernel needs of it
// for the largest step, and who works in it.

#include "gdnrt/workspace.h"

#include "gdnrt/gdn_layer.h"
#include "gdnrt/launch_plan.h"

#include <algorithm>

using namespace gdnrt;

static Status checkSize(const gdnrt_workspace_size &size) {
  if (size.counter_bytes > size.total_bytes ||
      size.counter_bytes % kWorkspaceAlignment != 0)
    return invalid("workspace: expected a multiple of ", kWorkspaceAlignment,
                   " bytes of counters, at most ", size.total_bytes, ", got ",
                   size.counter_bytes);
  return {};
}

Result<std::shared_ptr<const Workspace>>
Workspace::make(const std::shared_ptr<Device> &device,
                const gdnrt_workspace_size &size) {
  if (Status s = checkSize(size); !s.isOk())
    return s;
  auto memory = device->allocate(size.total_bytes);
  if (!memory.isOk())
    return memory.status();
  std::shared_ptr<const Workspace> workspace(
      new Workspace(device, *memory, size, /*isOwned=*/true));
  if (Status s = device->fill(*memory, 0, size.counter_bytes, nullptr);
      !s.isOk())
    return s;
  if (Status s = device->synchronize(nullptr); !s.isOk())
    return s;
  return workspace;
}

Result<std::shared_ptr<const Workspace>>
Workspace::wrap(const std::shared_ptr<Device> &device,
                const gdnrt_workspace_size &size, void *data, void *stream) {
  if (Status s = checkSize(size); !s.isOk())
    return s;
  if (!data && size.total_bytes != 0)
    return invalid("data: expected a pointer, got null");
  if (uint64_t past = reinterpret_cast<uintptr_t>(data) % kWorkspaceAlignment)
    return invalid("workspace: expected data aligned to ", kWorkspaceAlignment,
                   " bytes, got an address ", past, " past a multiple");
  // A graph would zero counters that its own launches leave zero.
  if (Status s = refuseCapture(*device, stream, "workspaces"); !s.isOk())
    return s;
  if (Status s = device->fill(data, 0, size.counter_bytes, stream); !s.isOk())
    return s;
  return std::shared_ptr<const Workspace>(
      new Workspace(device, data, size, /*isOwned=*/false));
}

Workspace::~Workspace() {
  if (isOwned_)
    (void)device_->free(data_);
}

Status LayerKernel::shareWorkspace(std::shared_ptr<const Workspace> workspace) {
  shared_ = std::move(workspace);
  if (sharesWorkspace_ && binding_)
    if (Status s = binding_->setWorkspace(nullptr, 0); !s.isOk())
      return s;
  sharesWorkspace_ = false;
  return {};
}

/// Symbols by what a layer knows: sizes of the arrays that it has, and what it
/// is told of a step. Any other is what steps have most of.
Status LayerKernel::addWorkspace(int64_t rows, int64_t tokens,
                                 gdnrt_workspace_size &size) const {
  const EntrySchema &schema = entry();
  std::vector<int64_t> values(schema.symbols.size(), rows);
  std::vector<bool> known(values.size());
  for (auto [name, value] : {std::pair("N", rows), {"T", tokens}})
    if (auto symbol = schema.findSymbol(name)) {
      values[*symbol] = value;
      known[*symbol] = true;
    }
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t p = 0; p < schema.params.size(); ++p)
      for (int d = 0; roles_[p] == ParamRole::fixed && d < held_[p].rank; ++d) {
        const LinearForm &form = schema.params[p].dims[d];
        int64_t rest = held_[p].sizes[d] - form.constant;
        const LinearForm::Term *unknown = nullptr;
        int unknowns = 0;
        for (const LinearForm::Term &term : form.terms) {
          if (known[term.symbol]) {
            rest -= term.coefficient * values[term.symbol];
          } else {
            unknown = &term;
            ++unknowns;
          }
        }
        if (unknowns != 1)
          continue;
        values[unknown->symbol] = rest / unknown->coefficient;
        known[unknown->symbol] = changed = true;
      }
  }
  const CodeSchema &code = kernel_->code->schema();
  LaunchPlan plan(schema, code);
  if (Status s =
          plan.update(schema, code, values, device().properties().numWorkers);
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

Status
GDNLayer::shareWorkspace(const std::shared_ptr<const Workspace> &workspace) {
  if (workspace && &workspace->device() != device_.get())
    return invalid("workspace: expected one of the layer's device");
  for (const auto *kernel : {&decode_, &prefill_, &verify_, &commit_})
    if (*kernel)
      if (Status s = (*kernel)->shareWorkspace(workspace); !s.isOk())
        return s;
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
