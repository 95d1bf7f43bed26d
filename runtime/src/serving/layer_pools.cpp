// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which buffer of a state pool is which parameter, and whether the pool keeps
// what the kernels keep.

#include "gdnrt/layer_pools.h"

#include <algorithm>

using namespace gdnrt;

/// The pool holds in its slots what the kernel, which is not prefill, leaves
/// there.
static Status checkKernel(const StatePool &pool, const EntrySchema &entry) {
  const StatePoolShape &shape = pool.shape();
  const std::optional<int64_t> room = entry.pendingRoom();
  if (room && !shape.deferredWrites)
    return invalid("state_pool: expected one with deferred_writes, for ",
                   entry.name, " keeps tokens pending (--defer-writes=", *room,
                   "), got one without");
  if (room && shape.pendingTokens != *room)
    return invalid("state_pool: pending_tokens: expected ", *room,
                   ", the room of ", entry.name, " (--defer-writes), got ",
                   shape.pendingTokens);
  if (const auto keys = entry.findParam("pending_keys");
      room && keys && entry.params[*keys].dtype != shape.pendingDType)
    return invalid("state_pool: pending_dtype: expected ",
                   toString(entry.params[*keys].dtype), ", that of ",
                   entry.name, " (--pending), got ",
                   toString(shape.pendingDType));
  if (!room && shape.deferredWrites)
    return invalid("state_pool: expected one without deferred_writes, for ",
                   entry.name, " does not count pending tokens, got one with");
  if (room && entry.findParam("num_accepted") && shape.convExtra == 0)
    return invalid("state_pool: conv_extra: expected the most tokens of a "
                   "sequence of verify, whose inputs ",
                   entry.name, " keeps, got 0");
  return {};
}

Result<std::vector<gdnrt_named_arg>>
gdnrt::poolArguments(const StatePool &pool, int64_t layer,
                     const std::shared_ptr<LoadedKernel> &prefill,
                     std::vector<std::shared_ptr<LoadedKernel>> kernels) {
  for (const auto &kernel : kernels)
    if (kernel)
      if (Status s = checkKernel(pool, *kernel->entry); !s.isOk())
        return s;
  kernels.push_back(prefill);
  for (const auto &kernel : kernels) {
    if (!kernel)
      continue;
    if (kernel->device->properties().kind != pool.device().properties().kind)
      return invalid("state_pool: expected memory of the device of ",
                     kernel->entry->name);
    if (Status s = pool.checkPlanes(*kernel->entry); !s.isOk())
      return s;
  }
  static constexpr std::pair<const char *, PoolBuffer> kBuffers[] = {
      {"state_pool", PoolBuffer::state},
      {"state_scales", PoolBuffer::stateScales},
      {"state_low", PoolBuffer::stateLow},
      {"conv_pool", PoolBuffer::convHistory},
      {"pending_keys", PoolBuffer::pendingKeys},
      {"pending_deltas", PoolBuffer::pendingDeltas},
      {"pending_decays", PoolBuffer::pendingDecays},
      {"pending_counts", PoolBuffer::pendingCounts},
      {"pending_scales", PoolBuffer::pendingScales}};
  std::vector<gdnrt_named_arg> arguments;
  for (auto [name, buffer] : kBuffers) {
    const bool isTaken = std::any_of(
        kernels.begin(), kernels.end(), [name = name](const auto &kernel) {
          return kernel && kernel->entry->findParam(name);
        });
    if (!isTaken)
      continue;
    auto seen = pool.view(buffer, layer);
    if (!seen.isOk())
      return seen.status();
    gdnrt_arg arg = {};
    arg.data = seen->data;
    arg.dtype = seen->dtype;
    arg.rank = seen->rank;
    arg.sizes = seen->sizes;
    arg.strides = seen->strides;
    arg.null_slot = seen->nullSlot;
    arguments.push_back({name, arg});
  }
  return arguments;
}
