// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A workspace for all layers of a model, and its memory.

#include "gdnrt/workspace.h"

#include "gdnrt/launch_plan.h"

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
