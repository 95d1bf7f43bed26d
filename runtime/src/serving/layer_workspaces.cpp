// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which memory a launch on a stream works in.

#include "gdnrt/layer_workspaces.h"

#include <algorithm>
#include <utility>

using namespace gdnrt;

void LayerWorkspaces::share(std::shared_ptr<const Workspace> workspace) {
  shared_ = std::move(workspace);
  given_ = std::nullopt;
}

void LayerWorkspaces::shareOn(void *stream,
                              std::shared_ptr<const Workspace> workspace) {
  auto isOf = [&](const Shared &each) { return each.stream == stream; };
  sharedOn_.erase(std::remove_if(sharedOn_.begin(), sharedOn_.end(), isOf),
                  sharedOn_.end());
  if (workspace)
    sharedOn_.push_back({stream, std::move(workspace)});
  given_ = std::nullopt;
}

const std::shared_ptr<const Workspace> *
LayerWorkspaces::sharedOn(void *stream) const {
  for (const Shared &each : sharedOn_)
    if (each.stream == stream)
      return &each.workspace;
  return shared_ ? &shared_ : nullptr;
}

Status LayerWorkspaces::give(Device &device, Binding &binding,
                             const LaunchStream &stream) {
  if (const auto *shared = sharedOn(stream.stream)) {
    if (given_ == *shared)
      return {};
    const gdnrt_workspace_size &size = (*shared)->size();
    if (Status s = binding.shareWorkspace((*shared)->data(), size.total_bytes,
                                          size.counter_bytes);
        !s.isOk())
      return s;
    given_ = *shared;
    givesOwn_ = false;
    return {};
  }
  if (given_ && givesOwn_ && stream.capturing)
    return {};
  const Own *own = nullptr;
  for (const Own &each : own_)
    if (each.stream == stream.stream && !stream.capturing)
      own = &each;
  const std::shared_ptr<const void> wanted = own ? own->memory : nullptr;
  if (given_ == wanted)
    return {};
  if (Status s = binding.setWorkspace(own ? own->memory.get() : nullptr,
                                      own ? own->bytes : 0);
      !s.isOk())
    return s;
  given_ = wanted;
  givesOwn_ = true;
  // What was there before has no other use for the counters' place.
  return own ? device.fill(own->memory.get(), 0,
                           binding.bytesToZero(own->bytes), stream.stream)
             : Status();
}

Status LayerWorkspaces::take(const std::shared_ptr<Device> &device,
                             Binding &binding, void *stream) {
  auto needed = binding.workspaceBytes();
  if (!needed.isOk())
    return needed.status();
  uint64_t bytes = 4096;
  while (bytes < *needed)
    bytes *= 2;
  auto memory = device->allocate(bytes);
  if (!memory.isOk())
    return memory.status();
  std::shared_ptr<void> owner(
      *memory, [device](void *data) { (void)device->free(data); });
  if (Status s = binding.setWorkspace(*memory, bytes); !s.isOk())
    return s;
  given_ = owner;
  givesOwn_ = true;
  own_.push_back({stream, std::move(owner), bytes});
  return device->fill(*memory, 0, binding.bytesToZero(bytes), stream);
}

Status LayerWorkspaces::prefer(const std::shared_ptr<Device> &device,
                               Binding &binding, const LaunchStream &stream) {
  if (stream.capturing || isShared(stream))
    return {};
  auto needed = binding.workspaceBytes();
  if (!needed.isOk() || *needed <= binding.workspaceSize())
    return {};
  Status taken = take(device, binding, stream.stream);
  return taken.code() == StatusCode::outOfMemory ? Status() : taken;
}

std::shared_ptr<const void>
LayerWorkspaces::kept(const LaunchStream &stream) const {
  if (const auto *shared = sharedOn(stream.stream))
    return *shared;
  return given_.value_or(nullptr);
}
