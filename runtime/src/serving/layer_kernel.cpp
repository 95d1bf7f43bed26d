// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One kernel of a layer: which parameter gets what in a step, and the launch.

#include "gdnrt/gdn_layer.h"
#include "gdnrt/slot_check.h"

#include <algorithm>
#include <cstring>
#include <utility>

using namespace gdnrt;

/// Names are those of the design of entries.
static std::optional<ParamRole> roleOf(const ParamSchema &param) {
  static constexpr std::pair<const char *, ParamRole> kRoles[] = {
      {"qkvz", ParamRole::token},
      {"ba", ParamRole::token},
      {"qkv", ParamRole::token},
      {"q", ParamRole::token},
      {"k", ParamRole::token},
      {"v", ParamRole::token},
      {"z", ParamRole::token},
      {"b", ParamRole::token},
      {"a", ParamRole::token},
      {"log_decay", ParamRole::token},
      {"beta", ParamRole::token},
      {"core", ParamRole::token},
      {"out", ParamRole::token},
      {"conv_weight", ParamRole::fixed},
      {"A_log", ParamRole::fixed},
      {"dt_bias", ParamRole::fixed},
      {"norm_weight", ParamRole::fixed},
      {"norm_constants", ParamRole::fixed},
      {"conv_pool", ParamRole::fixed},
      {"state_pool", ParamRole::fixed},
      {"pending_keys", ParamRole::fixed},
      {"pending_deltas", ParamRole::fixed},
      {"pending_decays", ParamRole::fixed},
      {"token_conv_pool", ParamRole::fixed},
      {"token_state_pool", ParamRole::fixed},
      {"slots", ParamRole::slots},
      {"write_slots", ParamRole::writeSlots},
      {"cu_seqlens", ParamRole::cuSeqlens},
      {"has_initial", ParamRole::hasInitial},
      {"token_slots", ParamRole::tokenSlots},
      {"num_accepted", ParamRole::numAccepted},
      {"cu_checkpoints", ParamRole::cuCheckpoints},
      {"checkpoint_tokens", ParamRole::checkpointTokens},
      {"checkpoint_slots", ParamRole::checkpointSlots},
      {"parents", ParamRole::parents},
  };
  for (auto [name, role] : kRoles)
    if (param.name == name)
      return role;
  return std::nullopt;
}

bool LayerKernel::HeldArgument::operator==(const HeldArgument &other) const {
  return data == other.data && dtype == other.dtype && rank == other.rank &&
         nullSlot == other.nullSlot && sizes == other.sizes &&
         strides == other.strides;
}

Argument LayerKernel::HeldArgument::view() const {
  Argument argument;
  argument.data = data;
  argument.dtype = dtype;
  argument.rank = rank;
  argument.sizes = sizes.data();
  argument.strides = strides.data();
  argument.nullSlot = nullSlot;
  return argument;
}

LayerKernel::HeldArgument LayerKernel::hold(const gdnrt_arg &arg) {
  HeldArgument held;
  held.data = arg.data;
  held.dtype = arg.dtype;
  held.rank = arg.rank;
  held.nullSlot = arg.null_slot;
  // A rank that no parameter has is refused by the binding.
  int rank = std::clamp(arg.rank, 0, kMaxRank);
  int64_t dense = 1;
  for (int d = rank; d-- > 0;) {
    held.sizes[d] = arg.sizes[d];
    held.strides[d] = arg.strides ? arg.strides[d] : dense;
    dense *= arg.sizes[d];
  }
  return held;
}

LayerKernel::LayerKernel(std::shared_ptr<LoadedKernel> kernel)
    : kernel_(std::move(kernel)), roles_(kernel_->entry->params.size()),
      held_(roles_.size()) {}

/// Windows of kernels that keep more positions begin with those of the others.
static void takeFirstPositions(const ParamSchema &param,
                               std::array<int64_t, kMaxRank> &sizes) {
  if (param.name == "conv_pool" && param.rank() == 3 &&
      param.dims[2].terms.empty())
    sizes[2] = std::min(sizes[2], param.dims[2].constant);
}

static bool isOfSlots(ParamRole role) {
  return role == ParamRole::slots || role == ParamRole::writeSlots ||
         role == ParamRole::tokenSlots || role == ParamRole::checkpointSlots;
}

Result<std::unique_ptr<LayerKernel>>
LayerKernel::make(std::shared_ptr<LoadedKernel> kernel,
                  const gdnrt_named_arg *fixed, size_t count) {
  auto made = std::unique_ptr<LayerKernel>(new LayerKernel(std::move(kernel)));
  const EntrySchema &entry = made->entry();
  std::vector<bool> given(entry.params.size());
  for (size_t i = 0; i < count; ++i) {
    // A layer's kernels differ in what they take.
    auto param = entry.findParam(fixed[i].name);
    if (!param)
      continue;
    given[*param] = true;
    made->held_[*param] = hold(fixed[i].arg);
    takeFirstPositions(entry.params[*param], made->held_[*param].sizes);
  }
  for (size_t p = 0; p < entry.params.size(); ++p) {
    const ParamSchema &param = entry.params[p];
    auto role = roleOf(param);
    if (!role)
      return failure(StatusCode::unsupported, entry.name, ": ", param.name,
                     ": a layer has nothing for this parameter");
    if (isOfSlots(*role) && param.dtype != DType::i32)
      return failure(StatusCode::unsupported, entry.name, ": ", param.name,
                     ": expected an entry with ids of i32, got ",
                     toString(param.dtype));
    made->roles_[p] = *role;
    if (*role != ParamRole::fixed) {
      if (given[p])
        return invalid(param.name, ": expected an array of the layer, but ",
                       entry.name, " takes one in every step");
      made->varying_.push_back(p);
    } else if (!given[p] && !param.optional) {
      return invalid(param.name, ": the argument is missing, which ",
                     entry.name, " needs");
    }
  }
  made->arguments_.resize(made->varying_.size());
  return made;
}

const ParamSchema *LayerKernel::tokenParam(const char *name) const {
  auto param = entry().findParam(name);
  if (!param || roles_[*param] != ParamRole::token)
    return nullptr;
  return &entry().params[*param];
}

Status LayerKernel::setVector(size_t param, const void *data, int64_t size,
                              DType dtype) {
  HeldArgument next;
  // Bindings do not write what the entry only reads.
  next.data = const_cast<void *>(data);
  next.dtype = static_cast<int32_t>(dtype);
  next.rank = 1;
  next.sizes[0] = size;
  next.strides[0] = 1;
  changed_ |= !(next == held_[param]);
  held_[param] = next;
  return {};
}

void LayerKernel::setTable(size_t param, const int32_t *data, int64_t rows,
                           int64_t columns) {
  HeldArgument next;
  next.data = const_cast<int32_t *>(data);
  next.dtype = static_cast<int32_t>(DType::i32);
  next.rank = 2;
  next.sizes[0] = rows;
  next.sizes[1] = next.strides[0] = columns;
  next.strides[1] = 1;
  changed_ |= !(next == held_[param]);
  held_[param] = next;
}

/// Puts what the step has into the parameters that are not fixed.
Status LayerKernel::fill(const GDNMetadataView &step, const gdnrt_run &run,
                         const gdnrt_named_arg *tokens, size_t count) {
  const gdnrt_gdn_metadata &m = step.metadata;
  int64_t first = run.first_row, rows = run.num_rows;
  bool movesState = false, wantsStart = false, readsAll = true;
  for (size_t p : varying_) {
    const ParamSchema &param = entry().params[p];
    auto rowsOf = [&](const gdnrt_i32_array &array) {
      return setVector(p, step.onDevice(array.data + first), rows, DType::i32);
    };
    auto tableOf = [&](const gdnrt_i32_array &array) {
      setTable(p,
               static_cast<const int32_t *>(
                   step.onDevice(array.data + first * m.num_spec_columns)),
               rows, m.num_spec_columns);
    };
    const bool verifies = run.kind == GDNRT_RUN_VERIFY;
    const bool commits = run.kind == GDNRT_RUN_COMMIT;
    bool checkpoints = m.cu_checkpoints.data != nullptr;
    switch (roles_[p]) {
    case ParamRole::fixed:
      break;
    case ParamRole::token: {
      const gdnrt_named_arg *given =
          std::find_if(tokens, tokens + count, [&](const auto &each) {
            return param.name == each.name;
          });
      if (given == tokens + count) {
        if (param.optional)
          continue;
        return invalid(param.name, ": the argument is missing, which ",
                       entry().name, " needs");
      }
      HeldArgument next = hold(given->arg);
      changed_ |= !(next == held_[p]);
      held_[p] = next;
      break;
    }
    case ParamRole::slots:
      (void)rowsOf(verifies  ? m.spec_slots
                   : commits ? m.commit_slots
                             : m.non_spec_read_indices);
      break;
    case ParamRole::writeSlots:
      movesState = true;
      (void)rowsOf(m.non_spec_state_indices);
      break;
    case ParamRole::cuSeqlens:
      (void)setVector(p, step.onDevice(run.query_start_loc), rows + 1,
                      DType::i32);
      break;
    case ParamRole::hasInitial:
      wantsStart = true;
      (void)setVector(p, step.onDevice(m.run_has_initial.data + first), rows,
                      DType::i1);
      break;
    case ParamRole::tokenSlots:
      tableOf(commits ? m.commit_token_slots : m.spec_state_indices);
      break;
    case ParamRole::parents:
      tableOf(m.spec_parents);
      break;
    case ParamRole::numAccepted:
      (void)rowsOf(commits ? m.commit_num_accepted : m.num_accepted_tokens);
      break;
    case ParamRole::cuCheckpoints:
      readsAll = false;
      (void)setVector(p,
                      step.onDevice(checkpoints ? m.cu_checkpoints.data + first
                                                : m.zeros.data),
                      rows + 1, DType::i32);
      break;
    case ParamRole::checkpointTokens:
      (void)setVector(p, step.onDevice(m.checkpoint_tokens.data),
                      m.checkpoint_tokens.size, DType::i32);
      break;
    case ParamRole::checkpointSlots:
      (void)setVector(p, step.onDevice(m.checkpoint_slots.data),
                      m.checkpoint_slots.size, DType::i32);
      break;
    }
  }
  if (run.kind == GDNRT_RUN_VERIFY || run.kind == GDNRT_RUN_COMMIT)
    return {};
  for (int64_t row = first; row < first + rows && !movesState; ++row)
    // A sequence that reads nothing writes nothing.
    if (m.non_spec_read_indices.data[row] != GDNRT_PAD_SLOT_ID &&
        m.non_spec_read_indices.data[row] != m.non_spec_state_indices.data[row])
      return failure(StatusCode::unsupported, entry().name, ": row ", row,
                     " reads slot ", m.non_spec_read_indices.data[row],
                     " and writes slot ", m.non_spec_state_indices.data[row],
                     ", but the entry has no write_slots");
  if (run.kind == GDNRT_RUN_DECODE)
    return {};
  for (int64_t row = first; row < first + rows && !wantsStart; ++row)
    if (!m.run_has_initial.data[row])
      return failure(StatusCode::unsupported, entry().name, ": row ", row,
                     " has no state to start from, but the entry has no "
                     "has_initial");
  if (readsAll && m.checkpoint_slots.size > 0)
    return failure(StatusCode::unsupported, entry().name,
                   ": the step keeps states on the way, but the entry has no "
                   "cu_checkpoints");
  return {};
}

SlotRange LayerKernel::slotRange() const {
  auto pool = entry().findParam("state_pool");
  if (!pool)
    return {};
  return {held_[*pool].sizes[0], held_[*pool].nullSlot};
}

Status LayerKernel::bind() {
  if (!binding_) {
    std::vector<Argument> all(held_.size());
    for (size_t p = 0; p < held_.size(); ++p)
      all[p] = held_[p].view();
    auto bound = Binding::make(
        kernel_->entry, kernel_->code->schema(), all.data(), all.size(),
        device().properties().numWorkers, kernel_->code->tensorMapEncoder());
    if (bound.isOk()) {
      binding_ = std::move(*bound);
      binding_->setBatchInvariant(batchInvariant_);
    }
    return bound.status();
  }
  for (size_t i = 0; i < varying_.size(); ++i)
    arguments_[i] = held_[varying_[i]].view();
  return binding_->rebind(varying_.data(), arguments_.data(), varying_.size());
}

void LayerKernel::setBatchInvariant(bool wanted) {
  batchInvariant_ = wanted;
  if (binding_)
    binding_->setBatchInvariant(wanted);
}

/// Takes memory for a kernel that has no way to work in place, for more
/// sequences than it is asked for now.
Status LayerKernel::giveWorkspace(void *stream) {
  auto needed = binding_->workspaceBytes();
  if (!needed.isOk())
    return needed.status();
  uint64_t bytes = 4096;
  while (bytes < *needed)
    bytes *= 2;
  auto memory = device().allocate(bytes);
  if (!memory.isOk())
    return memory.status();
  std::shared_ptr<void> owner(*memory, [device = kernel_->device](void *data) {
    (void)device->free(data);
  });
  if (Status s = binding_->setWorkspace(*memory, bytes); !s.isOk())
    return s;
  workspaces_.push_back(std::move(owner));
  return device().fill(*memory, 0, binding_->bytesToZero(bytes), stream);
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

/// Everything but the launch: arguments, the shared workspace, and whether the
/// launch may begin early.
Status LayerKernel::prepare(const GDNMetadataView &step, const gdnrt_run &run,
                            const gdnrt_named_arg *tokens, size_t count,
                            const LaunchStream &stream) {
  prepared_ = nullptr;
  if (Status s = fill(step, run, tokens, count); !s.isOk())
    return s;
  if (changed_ || !binding_)
    if (Status s = bind(); !s.isOk())
      return s;
  changed_ = false;
  binding_->allowDependentLaunch(mayOverlap(stream));
  if (!shared_ || sharesWorkspace_)
    return {};
  const gdnrt_workspace_size &size = shared_->size();
  if (Status s = binding_->shareWorkspace(shared_->data(), size.total_bytes,
                                          size.counter_bytes);
      !s.isOk())
    return s;
  sharesWorkspace_ = true;
  return {};
}

Status LayerKernel::checkCapture(const GDNMetadataView &step,
                                 const gdnrt_run &run,
                                 const gdnrt_named_arg *tokens, size_t count,
                                 const LaunchStream &stream) {
  if (kernel_->debugChecks)
    return failure(StatusCode::unsupported, entry().name,
                   ": expected a device without debug checks, which wait for "
                   "the stream, got a stream that is captured");
  if (run.kind == GDNRT_RUN_DECODE && step.metadata.moves_states &&
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
    if (shared_ || binding_->hasPlace())
      return s;
    if (Status taken = giveWorkspace(stream.stream); !taken.isOk())
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

/// A graph keeps the workspace that it was captured with.
Status LayerKernel::keepForGraph(void *stream) {
  if (sharesWorkspace_)
    return device().keepForGraph(stream, shared_);
  if (!workspaces_.empty())
    return device().keepForGraph(stream, workspaces_.back());
  return {};
}

Status LayerKernel::launch(const GDNMetadataView &step, const gdnrt_run &run,
                           const gdnrt_named_arg *tokens, size_t count,
                           const LaunchStream &stream) {
  // Runs of one kernel share its binding, which has the one checked last.
  if (prepared_ != &run)
    if (Status s = prepare(step, run, tokens, count, stream); !s.isOk())
      return s;
  prepared_ = nullptr;
  if (stream.capturing)
    if (Status s = keepForGraph(stream.stream); !s.isOk())
      return s;
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
