// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which parameter of a layer's kernel gets what in a step, by its name.

#include "gdnrt/layer_arguments.h"

#include <algorithm>
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
      {"state_scales", ParamRole::fixed},
      {"state_low", ParamRole::fixed},
      {"pending_keys", ParamRole::fixed},
      {"pending_deltas", ParamRole::fixed},
      {"pending_decays", ParamRole::fixed},
      {"pending_counts", ParamRole::fixed},
      {"pending_scales", ParamRole::fixed},
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
      {"is_prefill", ParamRole::isPrefill},
  };
  for (auto [name, role] : kRoles)
    if (param.name == name)
      return role;
  return std::nullopt;
}

bool LayerArguments::HeldArgument::operator==(const HeldArgument &other) const {
  return data == other.data && dtype == other.dtype && rank == other.rank &&
         nullSlot == other.nullSlot && sizes == other.sizes &&
         strides == other.strides;
}

Argument LayerArguments::HeldArgument::view() const {
  Argument argument;
  argument.data = data;
  argument.dtype = dtype;
  argument.rank = rank;
  argument.sizes = sizes.data();
  argument.strides = strides.data();
  argument.nullSlot = nullSlot;
  return argument;
}

LayerArguments::HeldArgument LayerArguments::hold(const gdnrt_arg &arg) {
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

/// Pools of pending tokens have the room that the entry was compiled for. Other
/// sizes are for the binding, which knows all arguments.
static Status checkRoom(const EntrySchema &entry, const ParamSchema &param,
                        const gdnrt_arg &given) {
  const std::optional<int64_t> room = entry.pendingRoom();
  const bool isPending =
      param.name == "pending_keys" || param.name == "pending_deltas" ||
      param.name == "pending_decays" || param.name == "pending_scales";
  if (!room || !isPending || given.rank < 3 || given.sizes[2] == *room)
    return {};
  return invalid(param.name, ": expected room for ", *room,
                 " tokens, those of ", entry.name, " (--defer-writes=", *room,
                 "), got ", given.sizes[2]);
}

/// Steps would be refused for another type, one by one.
static Status checkType(const EntrySchema &entry, const ParamSchema &param,
                        const gdnrt_arg &given) {
  const auto dtype = static_cast<DType>(given.dtype);
  if (dtype == param.dtype)
    return {};
  return invalid(param.name, ": expected dtype ", toString(param.dtype),
                 ", that of ", entry.name, ", got ", toString(dtype));
}

Result<LayerArguments> LayerArguments::make(const EntrySchema &entry,
                                            const gdnrt_named_arg *fixed,
                                            size_t count) {
  LayerArguments made(entry);
  std::vector<bool> given(entry.params.size());
  for (size_t i = 0; i < count; ++i) {
    // A layer's kernels differ in what they take.
    auto param = entry.findParam(fixed[i].name);
    if (!param)
      continue;
    for (auto *check : {checkType, checkRoom})
      if (Status s = check(entry, entry.params[*param], fixed[i].arg);
          !s.isOk())
        return s;
    given[*param] = true;
    made.held_[*param] = hold(fixed[i].arg);
    takeFirstPositions(entry.params[*param], made.held_[*param].sizes);
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
    made.roles_[p] = *role;
    made.present_ |= 1u << static_cast<unsigned>(*role);
    if (*role != ParamRole::fixed) {
      if (given[p])
        return invalid(param.name, ": expected an array of the layer, but ",
                       entry.name, " takes one in every step");
      made.varying_.push_back(p);
    } else if (!given[p] && !param.optional) {
      return invalid(param.name, ": the argument is missing, which ",
                     entry.name, " needs");
    }
  }
  made.arguments_.resize(made.varying_.size());
  return made;
}

const ParamSchema *LayerArguments::tokenParam(const char *name) const {
  auto param = entry().findParam(name);
  if (!param || roles_[*param] != ParamRole::token)
    return nullptr;
  return &entry().params[*param];
}

void LayerArguments::setVector(size_t param, const void *data, int64_t size,
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
}

void LayerArguments::setTable(size_t param, const int32_t *data, int64_t rows,
                              int64_t columns, int64_t stride) {
  HeldArgument next;
  next.data = const_cast<int32_t *>(data);
  next.dtype = static_cast<int32_t>(DType::i32);
  next.rank = 2;
  next.sizes[0] = rows;
  next.sizes[1] = columns;
  next.strides[0] = stride;
  next.strides[1] = 1;
  changed_ |= !(next == held_[param]);
  held_[param] = next;
}

/// The argument of the step for a parameter with one row per token.
Status LayerArguments::setTokens(size_t p, const gdnrt_named_arg *tokens,
                                 size_t count) {
  const ParamSchema &param = entry().params[p];
  const gdnrt_named_arg *given =
      std::find_if(tokens, tokens + count,
                   [&](const auto &each) { return param.name == each.name; });
  if (given == tokens + count) {
    if (param.optional)
      return {};
    return invalid(param.name, ": the argument is missing, which ",
                   entry().name, " needs");
  }
  HeldArgument next = hold(given->arg);
  changed_ |= !(next == held_[p]);
  held_[p] = next;
  return {};
}

/// Whether the entry can do what the step asks of states.
Status LayerArguments::checkStates(const gdnrt_gdn_metadata &m,
                                   const gdnrt_run &run) const {
  const int64_t first = run.first_row, rows = run.num_rows;
  const bool isMixed = m.run_is_prefill.data != nullptr;
  if ((run.kind == GDNRT_RUN_VERIFY || run.kind == GDNRT_RUN_PREFILL) &&
      isMixed != has(ParamRole::isPrefill))
    return failure(StatusCode::unsupported, entry().name, ": expected ",
                   isMixed ? "a parameter is_prefill (--mixed-batch), for the "
                             "step is one of a builder with mixed_batch"
                           : "a step of a builder with mixed_batch, for the "
                             "entry has is_prefill",
                   ", got none");
  if (run.kind == GDNRT_RUN_VERIFY || run.kind == GDNRT_RUN_COMMIT)
    return {};
  if (m.on_device) {
    // What the sequences are is not known here.
    for (auto [role, name, option] :
         {std::tuple(ParamRole::hasInitial, "has_initial", "--has-initial"),
          {ParamRole::writeSlots, "write_slots", "--write-slots"}})
      if (!has(role) && (role == ParamRole::hasInitial || m.moves_states))
        return failure(StatusCode::unsupported, entry().name,
                       ": expected a parameter ", name, " (", option,
                       "), for the arrays of the step are on the device, got "
                       "none");
    return {};
  }
  for (int64_t row = first; row < first + rows && !has(ParamRole::writeSlots);
       ++row)
    // A sequence that reads nothing writes nothing.
    if (m.non_spec_read_indices.data[row] != GDNRT_PAD_SLOT_ID &&
        m.non_spec_read_indices.data[row] != m.non_spec_state_indices.data[row])
      return failure(StatusCode::unsupported, entry().name, ": row ", row,
                     " reads slot ", m.non_spec_read_indices.data[row],
                     " and writes slot ", m.non_spec_state_indices.data[row],
                     ", but the entry has no write_slots");
  if (run.kind == GDNRT_RUN_DECODE)
    return {};
  for (int64_t row = first; row < first + rows && !has(ParamRole::hasInitial);
       ++row)
    if (!m.run_has_initial.data[row])
      return failure(StatusCode::unsupported, entry().name, ": row ", row,
                     " has no state to start from, but the entry has no "
                     "has_initial");
  if (!has(ParamRole::cuCheckpoints) && m.checkpoint_slots.size > 0)
    return failure(StatusCode::unsupported, entry().name,
                   ": the step keeps states on the way, but the entry has no "
                   "cu_checkpoints");
  return {};
}

/// Puts what the step has into the parameters that are not fixed.
Status LayerArguments::fill(const GDNMetadataView &step, const gdnrt_run &run,
                            const gdnrt_named_arg *tokens, size_t count) {
  const gdnrt_gdn_metadata &m = step.metadata;
  int64_t first = run.first_row, rows = run.num_rows;
  for (size_t p : varying_) {
    auto rowsOf = [&](const gdnrt_i32_array &array) {
      setVector(p, step.onDevice(array.data + first), rows, DType::i32);
    };
    auto tableOf = [&](const gdnrt_i32_array &array) {
      setTable(p,
               static_cast<const int32_t *>(
                   step.onDevice(array.data + first * m.num_spec_columns)),
               rows, m.num_spec_columns,
               m.spec_stride ? m.spec_stride : m.num_spec_columns);
    };
    const bool verifies = run.kind == GDNRT_RUN_VERIFY;
    const bool commits = run.kind == GDNRT_RUN_COMMIT;
    bool checkpoints = m.cu_checkpoints.data != nullptr;
    switch (roles_[p]) {
    case ParamRole::fixed:
      break;
    case ParamRole::token:
      if (Status s = setTokens(p, tokens, count); !s.isOk())
        return s;
      break;
    case ParamRole::slots:
      rowsOf(verifies  ? m.spec_slots
             : commits ? m.commit_slots
                       : m.non_spec_read_indices);
      break;
    case ParamRole::writeSlots:
      rowsOf(m.non_spec_state_indices);
      break;
    case ParamRole::cuSeqlens:
      setVector(p, step.onDevice(run.query_start_loc), rows + 1, DType::i32);
      break;
    case ParamRole::hasInitial:
      setVector(p, step.onDevice(m.run_has_initial.data + first), rows,
                DType::i1);
      break;
    case ParamRole::isPrefill:
      setVector(p,
                step.onDevice((verifies ? m.run_is_prefill.data
                                        : m.non_spec_is_prefill.data) +
                              first),
                m.run_is_prefill.data ? rows : 0, DType::i1);
      break;
    case ParamRole::tokenSlots:
      tableOf(commits ? m.commit_token_slots : m.spec_state_indices);
      break;
    case ParamRole::parents:
      tableOf(m.spec_parents);
      break;
    case ParamRole::numAccepted:
      rowsOf(commits ? m.commit_num_accepted : m.num_accepted_tokens);
      break;
    case ParamRole::cuCheckpoints:
      setVector(p,
                step.onDevice(checkpoints ? m.cu_checkpoints.data + first
                                          : m.zeros.data),
                rows + 1, DType::i32);
      break;
    case ParamRole::checkpointTokens:
      setVector(p, step.onDevice(m.checkpoint_tokens.data),
                m.checkpoint_tokens.size, DType::i32);
      break;
    case ParamRole::checkpointSlots:
      setVector(p, step.onDevice(m.checkpoint_slots.data),
                m.checkpoint_slots.size, DType::i32);
      break;
    }
  }
  return checkStates(m, run);
}

SlotRange LayerArguments::slotRange() const {
  auto pool = entry().findParam("state_pool");
  if (!pool)
    return {};
  return {held_[*pool].sizes[0], held_[*pool].nullSlot};
}

std::vector<const int64_t *> LayerArguments::fixedSizes() const {
  std::vector<const int64_t *> sizes(held_.size());
  for (size_t p = 0; p < held_.size(); ++p)
    if (roles_[p] == ParamRole::fixed &&
        held_[p].rank == entry().params[p].rank())
      sizes[p] = held_[p].sizes.data();
  return sizes;
}

std::vector<Argument> LayerArguments::all() const {
  std::vector<Argument> views;
  for (const HeldArgument &held : held_)
    views.push_back(held.view());
  return views;
}

const std::vector<Argument> &LayerArguments::varyingArguments() {
  for (size_t i = 0; i < varying_.size(); ++i)
    arguments_[i] = held_[varying_[i]].view();
  return arguments_;
}
