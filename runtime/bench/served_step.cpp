// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arrays are made from the entries' schemas, and are zero: the host does not
// care what they hold.

#include "served_step.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

static void check(gdnrt_status status, const gdnrt_error &error) {
  if (status == GDNRT_OK)
    return;
  std::fprintf(stderr, "%s\n", error.message);
  std::exit(1);
}

/// What the step's metadata has, and no array of the layer or of tokens.
static bool isMetadata(const char *name) {
  for (const char *each :
       {"slots", "write_slots", "token_slots", "cu_seqlens", "has_initial",
        "num_accepted", "cu_checkpoints", "checkpoint_tokens",
        "checkpoint_slots", "parents", "is_prefill"})
    if (std::strcmp(name, each) == 0)
      return true;
  return false;
}

/// The value of "32*Hk + 16*Hv" and the like.
int64_t ServedStep::evaluate(const char *form) const {
  int64_t sum = 0, sign = 1;
  while (*form) {
    if (*form == ' ' || *form == '+' || *form == '-') {
      sign = *form == '-' ? -1 : *form == '+' ? 1 : sign;
      ++form;
      continue;
    }
    char *rest = nullptr;
    int64_t term = std::strtoll(form, &rest, 10);
    if (rest == form)
      term = 1;
    form = *rest == '*' ? rest + 1 : rest;
    const size_t length = std::strcspn(form, " ");
    const std::string symbol(form, length);
    form += length;
    term *= symbol == "N"    ? shape_.rows()
            : symbol == "T"  ? shape_.tokens()
            : symbol == "Hk" ? shape_.keyHeads
            : symbol == "Hv" ? shape_.valueHeads
            : symbol == "S"  ? shape_.columns
            : symbol == "B"  ? slotColumns_
                             : 1;
    sum += sign * term;
    sign = 1;
  }
  return sum;
}

ServedStep::ServedStep(gdnrt_device *device, const std::string &image,
                       const StepShape &shape, void *stream)
    : device_(device), shape_(shape), stream_(stream) {
  makeKernels(image);
  makePool();
  makeRows();
  if (shape_.isPlanned)
    makePlanner();
  else
    makeBuilder();
  makeTokens();
  makeLayers();
  synchronize();
}

ServedStep::~ServedStep() {
  synchronize();
  for (gdnrt_binding *binding : bindings_)
    gdnrt_binding_destroy(binding);
  for (gdnrt_gdn_layer *layer : layers_)
    gdnrt_gdn_layer_destroy(layer);
  gdnrt_workspace_destroy(workspace_);
  gdnrt_metadata_builder_destroy(builder_);
  gdnrt_batch_planner_destroy(planner_);
  gdnrt_kernel_destroy(plan_);
  gdnrt_state_pool_destroy(pool_);
  for (void *memory : memory_)
    gdnrt_device_free(device_, memory, nullptr);
  for (Kernel &each : kernels_)
    gdnrt_kernel_destroy(each.kernel);
  gdnrt_image_destroy(image_);
}

/// Of each kind the first entry: others have other types.
void ServedStep::makeKernels(const std::string &image) {
  gdnrt_error error;
  check(gdnrt_image_load_file(image.c_str(), &image_, &error), error);
  kernels_ = shape_.isMixed()
                 ? std::vector<Kernel>{{GDNRT_RUN_VERIFY}, {GDNRT_RUN_PREFILL}}
                 : std::vector<Kernel>{{GDNRT_RUN_DECODE}};
  for (Kernel &each : kernels_) {
    const std::string kind = each.kind == GDNRT_RUN_VERIFY    ? "verify"
                             : each.kind == GDNRT_RUN_PREFILL ? "prefill"
                                                              : "decode";
    std::string entry = kind;
    for (size_t i = gdnrt_image_entry_count(image_); i-- > 0;) {
      const std::string name = gdnrt_entry_name(gdnrt_image_entry(image_, i));
      if (name == kind || name.rfind(kind + "_", 0) == 0)
        entry = name;
    }
    check(gdnrt_kernel_create(device_, image_, entry.c_str(), &each.kernel,
                              &error),
          error);
  }
}

void ServedStep::makePool() {
  gdnrt_error error;
  slotColumns_ = shape_.isMixed() ? shape_.columns : 1;
  const gdnrt_entry *entry = gdnrt_kernel_entry(kernels_.front().kernel);
  gdnrt_state_pool_options options = gdnrt_state_pool_options_default();
  options.num_layers = shape_.layers;
  options.num_requests = shape_.rows() * slotColumns_;
  options.num_key_heads = shape_.keyHeads;
  options.num_value_heads = shape_.valueHeads;
  options.conv_layout = GDNRT_CONV_SD; // which GPUs are fastest with
  for (size_t p = 0; p < gdnrt_entry_param_count(entry); ++p) {
    gdnrt_param_info info = gdnrt_param_info_default();
    check(gdnrt_entry_param(entry, p, &info, &error), error);
    if (std::strcmp(info.name, "state_pool") == 0) {
      options.state_dtype = info.dtype;
      options.value_dim = evaluate(info.dims[2]);
      options.key_dim = evaluate(info.dims[3]);
    } else if (std::strcmp(info.name, "conv_pool") == 0) {
      options.conv_dtype = info.dtype;
      options.conv_width = evaluate(info.dims[2]) + 1;
    }
  }
  check(gdnrt_state_pool_create(device_, &options, &pool_, &error), error);
  slots_.resize(static_cast<size_t>(options.num_requests));
  int32_t taken = 0;
  check(gdnrt_state_pool_allocate(pool_, slots_.size(), 0, nullptr,
                                  slots_.data(), &taken, &error),
        error);
}

/// Sequences of the kinds in turns, as far as each reaches.
void ServedStep::makeRows() {
  struct Kind {
    int64_t count, tokens;
    int32_t drafts;
  };
  const Kind kinds[] = {{shape_.decodes, 1, 0},
                        {shape_.verifies, shape_.columns,
                         static_cast<int32_t>(shape_.columns - 1)},
                        {shape_.prefills, shape_.prompt, -1}};
  int64_t taken[3] = {};
  queryStartLoc_.push_back(0);
  for (int64_t row = 0; row < shape_.rows(); ++row) {
    // The kind of which the smallest share has come so far.
    size_t next = 0;
    double least = 2;
    for (size_t kind = 0; kind < 3; ++kind)
      if (taken[kind] < kinds[kind].count) {
        const double share = (static_cast<double>(taken[kind]) + 0.5) /
                             static_cast<double>(kinds[kind].count);
        if (share < least) {
          least = share;
          next = kind;
        }
      }
    ++taken[next];
    drafts_.push_back(kinds[next].drafts);
    const auto tokens = static_cast<int32_t>(kinds[next].tokens);
    queryStartLoc_.push_back(queryStartLoc_.back() + tokens);
    seqLens_.push_back(9 + tokens);
  }
  accepted_.assign(seqLens_.size(), 1);
}

void ServedStep::makeBuilder() {
  gdnrt_error error;
  gdnrt_metadata_options options = gdnrt_metadata_options_default();
  options.max_num_seqs = shape_.rows();
  options.max_num_tokens = shape_.tokens();
  options.num_speculative_tokens = slotColumns_ - 1;
  options.mixed_batch = shape_.isMixed();
  check(gdnrt_metadata_builder_create(&options, &builder_, &error), error);
}

/// Zeros, until the step is destroyed, where a workspace may lie: stand-ins of
/// drivers do not align.
void *ServedStep::allocate(int64_t bytes) {
  constexpr size_t alignment = 64;
  gdnrt_error error;
  void *data = nullptr;
  check(gdnrt_device_allocate(device_, static_cast<size_t>(bytes) + alignment,
                              &data, &error),
        error);
  memory_.push_back(data);
  const size_t past = reinterpret_cast<uintptr_t>(data) % alignment;
  if (past > 0)
    data = static_cast<char *>(data) + (alignment - past);
  const std::vector<char> zeros(1 << 20);
  for (int64_t done = 0; done < bytes;) {
    const int64_t part =
        std::min(bytes - done, static_cast<int64_t>(zeros.size()));
    check(gdnrt_device_write(device_, static_cast<char *>(data) + done,
                             zeros.data(), static_cast<size_t>(part), &error),
          error);
    done += part;
  }
  return data;
}

void ServedStep::makePlanner() {
  gdnrt_error error;
  check(gdnrt_kernel_create(device_, image_, "plan", &plan_, &error), error);
  gdnrt_batch_planner_options options = gdnrt_batch_planner_options_default();
  options.max_num_seqs = shape_.rows();
  options.num_speculative_tokens = shape_.columns - 1;
  check(gdnrt_batch_planner_create(plan_, &options, &planner_, &error), error);
  const std::pair<const char *, const std::vector<int32_t> *> inputs[] = {
      {"query_start_loc", &queryStartLoc_},
      {"seq_lens", &seqLens_},
      {"block_table", &slots_},
      {"num_drafts", &drafts_},
      {"num_accepted", &accepted_}};
  const gdnrt_entry *entry = gdnrt_kernel_entry(plan_);
  const size_t params = gdnrt_entry_param_count(entry);
  planSizes_.reserve(params);
  for (size_t p = 0; p < params; ++p) {
    gdnrt_param_info info = gdnrt_param_info_default();
    check(gdnrt_entry_param(entry, p, &info, &error), error);
    int64_t count = 1;
    planSizes_.emplace_back();
    for (int32_t d = 0; d < info.rank; ++d)
      count *= planSizes_.back().emplace_back(evaluate(info.dims[d]));
    void *data = allocate(4 * count);
    for (auto [name, values] : inputs)
      if (std::strcmp(name, info.name) == 0)
        check(gdnrt_device_write(device_, data, values->data(),
                                 values->size() * sizeof(int32_t), &error),
              error);
    planArgs_.push_back(
        {info.name,
         {data, info.dtype, info.rank, planSizes_.back().data(), nullptr, 0}});
  }
  auto arrayOf = [&](const char *name) {
    for (const gdnrt_named_arg &arg : planArgs_)
      if (std::strcmp(arg.name, name) == 0)
        return static_cast<const int32_t *>(arg.arg.data);
    return static_cast<const int32_t *>(nullptr);
  };
  batch_.num_seqs = shape_.rows();
  batch_.num_tokens = shape_.tokens();
  batch_.max_num_prefills = shape_.prefills;
  batch_.query_start_loc = arrayOf("query_start_loc");
  batch_.seq_lens = arrayOf("seq_lens");
  batch_.block_table = arrayOf("block_table");
  batch_.block_table_columns = batch_.block_table_stride = slotColumns_;
  batch_.num_accepted_tokens = arrayOf("num_accepted");
  batch_.num_decode_draft_tokens = arrayOf("num_drafts");
}

void ServedStep::makeTokens() {
  gdnrt_error error;
  size_t params = 0;
  for (const Kernel &each : kernels_)
    params += gdnrt_entry_param_count(gdnrt_kernel_entry(each.kernel));
  // Addresses of sizes stay.
  sizes_.reserve(params);
  for (const Kernel &each : kernels_) {
    const gdnrt_entry *entry = gdnrt_kernel_entry(each.kernel);
    for (size_t p = 0; p < gdnrt_entry_param_count(entry); ++p) {
      gdnrt_param_info info = gdnrt_param_info_default();
      check(gdnrt_entry_param(entry, p, &info, &error), error);
      auto isKnown = [&](const std::vector<gdnrt_named_arg> &known) {
        return std::any_of(known.begin(), known.end(), [&](const auto &arg) {
          return std::strcmp(arg.name, info.name) == 0;
        });
      };
      if (info.kind == GDNRT_POOL || isMetadata(info.name) || isKnown(fixed_) ||
          isKnown(tokens_[0]))
        continue;
      int64_t count = 1;
      sizes_.emplace_back();
      for (int32_t d = 0; d < info.rank; ++d) {
        sizes_.back().push_back(evaluate(info.dims[d]));
        count *= sizes_.back().back();
      }
      const bool isToken = std::strcmp(info.dims[0], "N") == 0 ||
                           std::strcmp(info.dims[0], "T") == 0;
      for (int copy = 0; copy < (isToken ? 2 : 1); ++copy) {
        gdnrt_arg arg = {allocate(8 * count),  info.dtype, info.rank,
                         sizes_.back().data(), nullptr,    0};
        (isToken ? tokens_[copy] : fixed_).push_back({info.name, arg});
      }
    }
  }
}

std::vector<gdnrt_named_arg> ServedStep::fixedOf(int64_t layer) const {
  gdnrt_error error;
  std::vector<gdnrt_named_arg> fixed = fixed_;
  fixed.push_back({"state_pool", {}});
  check(gdnrt_state_pool_view(pool_, GDNRT_POOL_STATE, layer, &fixed.back().arg,
                              &error),
        error);
  fixed.push_back({"conv_pool", {}});
  check(gdnrt_state_pool_view(pool_, GDNRT_POOL_CONV, layer, &fixed.back().arg,
                              &error),
        error);
  return fixed;
}

void ServedStep::makeLayers() {
  gdnrt_error error;
  gdnrt_gdn_kernels kernels = gdnrt_gdn_kernels_default();
  for (const Kernel &each : kernels_)
    (each.kind == GDNRT_RUN_VERIFY    ? kernels.verify
     : each.kind == GDNRT_RUN_PREFILL ? kernels.prefill
                                      : kernels.decode) = each.kernel;
  gdnrt_workspace_size size = gdnrt_workspace_size_default();
  for (int64_t layer = 0; layer < shape_.layers; ++layer) {
    const std::vector<gdnrt_named_arg> fixed = fixedOf(layer);
    layers_.push_back(nullptr);
    check(gdnrt_gdn_layer_create(&kernels, fixed.data(), fixed.size(),
                                 &layers_.back(), &error),
          error);
    check(gdnrt_gdn_layer_workspace_size(layers_.back(), shape_.rows(),
                                         shape_.tokens(), &size, &error),
          error);
  }
  if (size.total_bytes == 0)
    return;
  check(gdnrt_workspace_wrap(device_, &size,
                             allocate(static_cast<int64_t>(size.total_bytes)),
                             stream_, &workspace_, &error),
        error);
  for (gdnrt_gdn_layer *layer : layers_)
    check(gdnrt_gdn_layer_share_workspace(layer, workspace_, &error), error);
}

void ServedStep::build() {
  gdnrt_error error;
  if (planner_) {
    check(gdnrt_batch_planner_plan(planner_, &batch_, stream_, &metadata_,
                                   &error),
          error);
    return;
  }
  for (int32_t &length : seqLens_)
    ++length;
  gdnrt_common_metadata common = gdnrt_common_metadata_default();
  common.num_reqs = shape_.rows();
  common.num_actual_tokens = shape_.tokens();
  common.query_start_loc = queryStartLoc_.data();
  common.seq_lens = seqLens_.data();
  common.block_table = slots_.data();
  common.block_table_columns = common.block_table_stride = slotColumns_;
  if (shape_.isMixed()) {
    common.num_accepted_tokens = accepted_.data();
    common.num_decode_draft_tokens = drafts_.data();
  }
  check(gdnrt_metadata_builder_build(builder_, &common, &metadata_, &error),
        error);
}

void ServedStep::upload() {
  gdnrt_error error;
  if (planner_)
    return;
  if (!arena_)
    arena_ = allocate(static_cast<int64_t>(metadata_.arena_bytes));
  check(gdnrt_metadata_upload_changed(device_, &metadata_, arena_, stream_,
                                      &error),
        error);
}

void ServedStep::forward(bool arraysMove) {
  gdnrt_error error;
  if (arraysMove)
    turn_ ^= 1;
  const std::vector<gdnrt_named_arg> &tokens = tokens_[turn_];
  for (gdnrt_gdn_layer *layer : layers_)
    check(gdnrt_gdn_layer_forward(layer, &metadata_, arena_, tokens.data(),
                                  tokens.size(), stream_, &error),
          error);
}

/// With what a layer would give the kernel for all sequences of the step.
void ServedStep::bind(const gdnrt_run &run) {
  gdnrt_error error;
  const gdnrt_gdn_metadata &m = metadata_;
  const bool verifies = run.kind == GDNRT_RUN_VERIFY;
  const Kernel &kernel =
      *std::find_if(kernels_.begin(), kernels_.end(),
                    [&](const Kernel &each) { return each.kind == run.kind; });
  const int64_t rows[] = {run.num_rows}, ends[] = {run.num_rows + 1},
                none[] = {0};
  const int64_t table[] = {run.num_rows, m.num_spec_columns};
  auto at = [&](const void *host) -> void * {
    if (m.on_device)
      return const_cast<void *>(host);
    return host ? static_cast<char *>(arena_) +
                      (static_cast<const char *>(host) -
                       static_cast<const char *>(m.arena))
                : nullptr;
  };
  std::vector<gdnrt_named_arg> args = fixedOf(0);
  args.insert(args.end(), tokens_[0].begin(), tokens_[0].end());
  auto add = [&](const char *name, const void *host, const int64_t *sizes,
                 int32_t rank, gdnrt_dtype type) {
    args.push_back({name, {at(host), type, rank, sizes, nullptr, 0}});
  };
  auto addIds = [&](const char *name, const void *host, const int64_t *sizes) {
    add(name, host, sizes, 1, GDNRT_I32);
  };
  addIds("slots", m.non_spec_read_indices.data, rows);
  addIds("write_slots", m.non_spec_state_indices.data, rows);
  addIds("cu_seqlens", run.query_start_loc, ends);
  addIds("num_accepted", m.num_accepted_tokens.data, rows);
  addIds("cu_checkpoints", m.zeros.data, ends);
  addIds("checkpoint_tokens", m.zeros.data, none);
  addIds("checkpoint_slots", m.zeros.data, none);
  add("token_slots", m.spec_state_indices.data, table, 2, GDNRT_I32);
  add("has_initial", m.run_has_initial.data, rows, 1, GDNRT_I1);
  add("is_prefill",
      verifies ? m.run_is_prefill.data : m.non_spec_is_prefill.data, rows, 1,
      GDNRT_I1);
  const gdnrt_entry *schema = gdnrt_kernel_entry(kernel.kernel);
  size_t index = 0;
  args.erase(std::remove_if(args.begin(), args.end(),
                            [&](const gdnrt_named_arg &arg) {
                              return gdnrt_entry_find_param(schema, arg.name,
                                                            &index, nullptr) !=
                                     GDNRT_OK;
                            }),
             args.end());
  gdnrt_binding *binding = nullptr;
  check(gdnrt_kernel_bind_named(kernel.kernel, args.data(), args.size(),
                                &binding, &error),
        error);
  bindings_.push_back(binding);
  if (!verifies && shape_.isMixed())
    check(gdnrt_binding_expect_sequences(binding, m.num_expected_prefills,
                                         &error),
          error);
  check(gdnrt_binding_allow_dependent_launch(binding, 1, &error), error);
  uint64_t bytes = 0;
  check(gdnrt_binding_workspace_bytes(binding, &bytes, &error), error);
  if (bytes > 0)
    check(gdnrt_binding_set_workspace(binding,
                                      allocate(static_cast<int64_t>(bytes)),
                                      bytes, stream_, &error),
          error);
}

void ServedStep::bindPlan() {
  gdnrt_error error;
  gdnrt_binding *binding = nullptr;
  check(gdnrt_kernel_bind_named(plan_, planArgs_.data(), planArgs_.size(),
                                &binding, &error),
        error);
  bindings_.push_back(binding);
}

void ServedStep::launch() {
  gdnrt_error error;
  if (bindings_.empty() && plan_)
    bindPlan();
  if (bindings_.size() <= (plan_ ? 1 : 0))
    for (int64_t run = 0; run < metadata_.num_runs; ++run)
      bind(metadata_.runs[run]);
  for (gdnrt_binding *binding : bindings_)
    check(gdnrt_launch(binding, stream_, &error), error);
}

void ServedStep::synchronize() {
  gdnrt_error error;
  check(gdnrt_device_synchronize(device_, stream_, &error), error);
}

void ServedStep::exchangeRequest() {
  gdnrt_error error;
  int32_t taken = 0;
  int32_t &slot = slots_[nextToLeave_];
  check(gdnrt_state_pool_free(pool_, &slot, 1, nullptr, &error), error);
  check(gdnrt_state_pool_allocate(pool_, 1, 0, nullptr, &slot, &taken, &error),
        error);
  seqLens_[nextToLeave_] = 10;
  nextToLeave_ = (nextToLeave_ + 1) % slots_.size();
}
