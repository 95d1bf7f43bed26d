// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `plan` writes is the planner's; the rest of what kernels read are the
// engine's own arrays.

#include "gdnrt/batch_planner.h"

#include "batch_limits.h"
#include "gdnrt/gdn_layer.h"

#include <algorithm>
#include <cstring>
#include <utility>

using namespace gdnrt;

constexpr size_t kAlign = 64;

/// The kind of verify for which an entry plans, by what it gives.
static int32_t plannedStates(const EntrySchema &entry) {
  const bool hasSlots = entry.findParam("verify_slots").has_value();
  const bool hasCounts = entry.findParam("verify_accepted").has_value();
  const bool commits = entry.findParam("commit_slots").has_value();
  return !hasSlots   ? GDNRT_VERIFY_SLOTS
         : !commits  ? GDNRT_VERIFY_TREE
         : hasCounts ? GDNRT_VERIFY_LAZY
                     : GDNRT_VERIFY_BUFFER;
}

/// Whether the entry is of an image with deferred writes: it then commits the
/// slots of all prefills.
static bool plansDeferred(const EntrySchema &entry) {
  return std::any_of(
      entry.attributes.begin(), entry.attributes.end(),
      [](const auto &fact) { return fact.first == "defer_writes"; });
}

Result<std::unique_ptr<BatchPlanner>>
BatchPlanner::make(std::shared_ptr<LoadedKernel> plan,
                   const gdnrt_batch_planner_options &options) {
  for (const Status &s :
       {checkRange("max_num_seqs", options.max_num_seqs, 1, kMost),
        checkRange("num_speculative_tokens", options.num_speculative_tokens, 0,
                   kMostColumns - 1),
        checkRange("verify_states", options.verify_states, GDNRT_VERIFY_SLOTS,
                   GDNRT_VERIFY_BUFFER)})
    if (!s.isOk())
      return s;
  const EntrySchema &entry = *plan->entry;
  for (const char *name :
       {"query_start_loc", "seq_lens", "block_table", "num_drafts", "limits",
        "is_prefill", "verify_cu_seqlens", "prefill_cu_seqlens",
        "prefill_slots", "prefill_write_slots", "prefill_has_initial",
        "prefill_taken"})
    if (!entry.findParam(name))
      return failure(StatusCode::notFound, entry.name,
                     ": expected the kernel plan (--mixed-batch), got one "
                     "without the parameter ",
                     name);
  if (const int32_t states = plannedStates(entry);
      states != options.verify_states)
    return invalid("verify_states: expected ", nameOfVerifyStates(states),
                   " for ", entry.name, ", got ",
                   nameOfVerifyStates(options.verify_states));
  if (DType ids = entry.params[*entry.findParam("block_table")].dtype;
      ids != DType::i32)
    return failure(StatusCode::unsupported, entry.name,
                   ": expected a kernel with ids of i32, got ", toString(ids));
  std::unique_ptr<BatchPlanner> planner(
      new BatchPlanner(std::move(plan), options));
  if (Status s = planner->takeMemory(); !s.isOk())
    return s;
  return planner;
}

Status BatchPlanner::takeMemory() {
  const auto rows = static_cast<size_t>(options_.max_num_seqs);
  auto rounded = [](size_t bytes) {
    return (bytes + kAlign - 1) / kAlign * kAlign;
  };
  const size_t flags = rounded(rows), ids = rounded(rows * sizeof(int32_t)),
               bounds = rounded((rows + 1) * sizeof(int32_t));
  const size_t bytes = 3 * flags + 6 * ids + 3 * bounds;
  auto memory = device().allocate(bytes);
  if (!memory.isOk())
    return memory.status();
  memory_ = std::shared_ptr<void>(
      *memory, [device = plan_->device](void *at) { (void)device->free(at); });
  auto *next = static_cast<uint8_t *>(*memory);
  auto take = [&](size_t size) { return std::exchange(next, next + size); };
  isPrefill_ = take(flags);
  hasInitial_ = take(flags);
  taken_ = take(flags);
  for (int32_t **list : {&verifySlots_, &verifyAccepted_, &slots_, &writeSlots_,
                         &commitSlots_, &commitAccepted_})
    *list = reinterpret_cast<int32_t *>(take(ids));
  for (int32_t **list : {&verifyCuSeqlens_, &cuSeqlens_, &zeros_})
    *list = reinterpret_cast<int32_t *>(take(bounds));
  // What a launch reads before any plan has run is no garbage.
  const std::vector<uint8_t> zero(bytes, 0);
  return device().write(*memory, zero.data(), bytes);
}

Status BatchPlanner::check(const gdnrt_device_batch &batch) const {
  const int64_t least = isKind(GDNRT_VERIFY_SLOTS) ? columns() : 1;
  for (const Status &s :
       {checkRange("num_seqs", batch.num_seqs, 0, options_.max_num_seqs),
        checkRange("num_tokens", batch.num_tokens, 0, kMost),
        checkRange("max_num_prefills", batch.max_num_prefills, 0,
                   batch.num_seqs)})
    if (!s.isOk())
      return s;
  if (batch.num_seqs == 0)
    return {};
  if (batch.block_table_columns < least)
    return invalid("block_table: expected at least ", least, " columns, got ",
                   batch.block_table_columns);
  if (batch.num_seqs > 1 &&
      batch.block_table_stride < batch.block_table_columns)
    return invalid("block_table: expected rows at least ",
                   batch.block_table_columns, " apart, got ",
                   batch.block_table_stride);
  if (hasTokenSlots() && batch.num_seqs > 1 &&
      batch.token_slots_stride < columns())
    return invalid("token_slots: expected rows at least ", columns(),
                   " apart, got ", batch.token_slots_stride);
  for (auto [name, array, isNeeded] :
       {std::tuple("query_start_loc", batch.query_start_loc, true),
        {"seq_lens", batch.seq_lens, true},
        {"block_table", batch.block_table, true},
        {"num_decode_draft_tokens", batch.num_decode_draft_tokens, true},
        {"num_accepted_tokens", batch.num_accepted_tokens, hasCounts()},
        {"token_slots", batch.token_slots, hasTokenSlots()},
        {"parents", batch.parents, isKind(GDNRT_VERIFY_TREE)}})
    if (isNeeded && !array)
      return invalid(name, ": expected an array, got null");
  return {};
}

/// The arguments of `plan` by their names.
Status BatchPlanner::bind(const gdnrt_device_batch &batch) {
  const EntrySchema &entry = *plan_->entry;
  const int64_t rows = batch.num_seqs;
  const int64_t lists[] = {rows}, bounds[] = {rows + 1}, dense[] = {1};
  const int64_t table[] = {rows, batch.block_table_columns};
  const int64_t strides[] = {batch.block_table_stride, 1};
  // Nothing of the array is read but its sizes.
  const int64_t limits[] = {batch.num_tokens, columns()}, same[] = {0, 1};
  const std::pair<const char *, const void *> arrays[] = {
      {"query_start_loc", batch.query_start_loc},
      {"seq_lens", batch.seq_lens},
      {"block_table", batch.block_table},
      {"num_drafts", batch.num_decode_draft_tokens},
      {"num_accepted", batch.num_accepted_tokens},
      {"limits", zeros_},
      {"is_prefill", isPrefill_},
      {"verify_cu_seqlens", verifyCuSeqlens_},
      {"verify_slots", verifySlots_},
      {"verify_accepted", verifyAccepted_},
      {"prefill_cu_seqlens", cuSeqlens_},
      {"prefill_slots", slots_},
      {"prefill_write_slots", writeSlots_},
      {"prefill_has_initial", hasInitial_},
      {"prefill_taken", taken_},
      {"commit_slots", commitSlots_},
      {"commit_accepted", commitAccepted_}};
  for (size_t p = 0; p < args_.size(); ++p) {
    const std::string &name = entry.params[p].name;
    Argument &arg = args_[p];
    const bool isTable = name == "block_table", isLimits = name == "limits";
    const bool isBounds = name == "query_start_loc" ||
                          name == "verify_cu_seqlens" ||
                          name == "prefill_cu_seqlens";
    arg.dtype = static_cast<int32_t>(entry.params[p].dtype);
    arg.rank = isTable || isLimits ? 2 : 1;
    arg.sizes = isTable ? table : isLimits ? limits : isBounds ? bounds : lists;
    arg.strides = isTable ? strides : isLimits ? same : dense;
    for (auto [of, data] : arrays)
      if (name == of)
        arg.data = const_cast<void *>(data);
    params_[p] = p;
  }
  if (binding_)
    return binding_->rebind(params_.data(), args_.data(), args_.size());
  auto bound = Binding::make(plan_->entry, plan_->code->schema(), args_.data(),
                             args_.size(), device().properties().numWorkers,
                             plan_->code->tensorMapEncoder());
  if (bound.isOk())
    binding_ = std::move(*bound);
  return bound.status();
}

void BatchPlanner::describeVerify(const gdnrt_device_batch &batch,
                                  gdnrt_gdn_metadata &m) {
  const int64_t rows = batch.num_seqs;
  m.run_is_prefill = {isPrefill_, rows};
  m.spec_query_start_loc = {verifyCuSeqlens_, rows + 1};
  m.num_accepted_tokens = {verifyAccepted_, rows};
  if (!isKind(GDNRT_VERIFY_SLOTS))
    m.spec_slots = {verifySlots_, rows};
  if (!isKind(GDNRT_VERIFY_LAZY)) {
    m.spec_state_indices = {hasTokenSlots() ? batch.token_slots
                                            : batch.block_table,
                            rows * columns()};
    m.spec_stride =
        hasTokenSlots() ? batch.token_slots_stride : batch.block_table_stride;
  }
  if (isKind(GDNRT_VERIFY_TREE))
    m.spec_parents = {batch.parents, rows * columns()};
  if (!hasCommits())
    return;
  m.commit_slots = {commitSlots_, rows};
  m.commit_num_accepted = {commitAccepted_, rows};
  if (isKind(GDNRT_VERIFY_BUFFER))
    m.commit_token_slots = m.spec_state_indices;
}

/// A commit if there may be one, then verify and prefill.
void BatchPlanner::describeRuns(int64_t rows, int64_t elements,
                                gdnrt_gdn_metadata &m) {
  auto add = [&](gdnrt_run_kind kind, int64_t count, int64_t tokens,
                 const int32_t *starts) {
    gdnrt_run &run = runs_[static_cast<size_t>(m.num_runs++)];
    run = {};
    run.kind = kind;
    run.num_rows = count;
    run.num_tokens = tokens;
    run.query_start_loc = starts;
    run.reads_state = kind == GDNRT_RUN_PREFILL;
  };
  if (hasCommits())
    add(GDNRT_RUN_COMMIT, rows, 0, nullptr);
  add(GDNRT_RUN_VERIFY, rows, m.num_actual_tokens, verifyCuSeqlens_);
  add(GDNRT_RUN_PREFILL, elements, m.num_actual_tokens, cuSeqlens_);
  m.runs = runs_.data();
}

gdnrt_gdn_metadata BatchPlanner::describe(const gdnrt_device_batch &batch) {
  const int64_t rows = batch.num_seqs, tokens = batch.num_tokens;
  const int64_t most = batch.max_num_prefills;
  // Before, between and behind prefills are tokens of verify.
  const int64_t elements = most == 0 ? rows : std::min(rows, 2 * most + 1);
  gdnrt_gdn_metadata m = {};
  m.on_device = 1;
  m.num_actual_tokens = m.num_run_tokens = tokens;
  m.num_spec_columns = columns();
  m.verify_states = options_.verify_states;
  m.deferred_writes = plansDeferred(*plan_->entry);
  m.moves_states = isKind(GDNRT_VERIFY_SLOTS);
  m.num_expected_prefills = most;
  describeVerify(batch, m);
  m.non_spec_is_prefill = {taken_, elements};
  m.non_spec_query_start_loc = {cuSeqlens_, elements + 1};
  m.non_spec_read_indices = {slots_, elements};
  m.non_spec_state_indices = {writeSlots_, elements};
  m.run_has_initial = {hasInitial_, elements};
  m.zeros = {zeros_, options_.max_num_seqs + 1};
  if (rows == 0 || tokens == 0) {
    // Nothing is launched, so that all tokens are zeroed as padding is.
    m.num_run_tokens = 0;
    return m;
  }
  describeRuns(rows, elements, m);
  return m;
}

Status BatchPlanner::plan(const gdnrt_device_batch &batch, void *stream,
                          gdnrt_gdn_metadata &metadata) {
  if (Status s = check(batch); !s.isOk())
    return s;
  if (batch.num_seqs > 0) {
    auto capturing = device().isCapturing(stream);
    if (!capturing.isOk())
      return capturing.status();
    // Everything that is bound is in the struct, padding none.
    if (!binding_ || std::memcmp(&bound_, &batch, sizeof(batch)) != 0) {
      if (Status s = bind(batch); !s.isOk())
        return s;
      bound_ = batch;
    }
    if (*capturing)
      if (Status s = device().keepForGraph(stream, memory_); !s.isOk())
        return s;
    // Launches behind it read slots that it writes.
    device().notePoolWrite();
    if (Status s = plan_->code->launch(*binding_, stream, *capturing);
        !s.isOk())
      return s;
  }
  metadata = describe(batch);
  return {};
}
