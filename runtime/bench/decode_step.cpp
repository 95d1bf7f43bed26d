// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arrays are made from the entry's schema, with one key head and two value
// heads: the host does not care.

#include "decode_step.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

static void check(gdnrt_status status, const gdnrt_error &error) {
  if (status == GDNRT_OK)
    return;
  std::fprintf(stderr, "%s\n", error.message);
  std::exit(1);
}

/// The value of "32*Hk + 16*Hv" and the like.
static int64_t evaluate(const char *form, int64_t rows) {
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
    term *= symbol == "N" ? rows : symbol == "Hv" ? 2 : 1;
    sum += sign * term;
    sign = 1;
  }
  return sum;
}

DecodeStep::DecodeStep(const std::string &image, int64_t batch, int64_t layers)
    : batch_(batch), numLayers_(layers) {
  gdnrt_error error;
  check(gdnrt_device_create_null(&device_, &error), error);
  check(gdnrt_image_load_file(image.c_str(), &image_, &error), error);
  check(gdnrt_kernel_create(device_, image_, "decode", &kernel_, &error),
        error);
  makePool();
  gdnrt_metadata_options options = gdnrt_metadata_options_default();
  options.max_num_seqs = options.max_num_tokens = batch;
  check(gdnrt_metadata_builder_create(&options, &builder_, &error), error);
  makeTokens();
}

DecodeStep::~DecodeStep() {
  for (gdnrt_gdn_layer *layer : layers_)
    gdnrt_gdn_layer_destroy(layer);
  gdnrt_metadata_builder_destroy(builder_);
  gdnrt_state_pool_destroy(pool_);
  for (void *memory : memory_)
    gdnrt_device_free(device_, memory, nullptr);
  gdnrt_device_free(device_, arena_, nullptr);
  gdnrt_kernel_destroy(kernel_);
  gdnrt_image_destroy(image_);
  gdnrt_device_destroy(device_);
}

void DecodeStep::makePool() {
  gdnrt_error error;
  const gdnrt_entry *entry = gdnrt_kernel_entry(kernel_);
  gdnrt_state_pool_options options = gdnrt_state_pool_options_default();
  options.num_layers = numLayers_;
  options.num_requests = batch_;
  options.num_key_heads = 1;
  options.num_value_heads = 2;
  for (size_t p = 0; p < gdnrt_entry_param_count(entry); ++p) {
    gdnrt_param_info info = gdnrt_param_info_default();
    check(gdnrt_entry_param(entry, p, &info, &error), error);
    if (std::strcmp(info.name, "state_pool") == 0) {
      options.state_dtype = info.dtype;
      options.value_dim = evaluate(info.dims[2], 0);
      options.key_dim = evaluate(info.dims[3], 0);
    } else if (std::strcmp(info.name, "conv_pool") == 0) {
      options.conv_dtype = info.dtype;
      options.conv_width = evaluate(info.dims[2], 0) + 1;
    }
  }
  check(gdnrt_state_pool_create(device_, &options, &pool_, &error), error);
  slots_.resize(static_cast<size_t>(batch_));
  int32_t taken = 0;
  check(gdnrt_state_pool_allocate(pool_, slots_.size(), 0, nullptr,
                                  slots_.data(), &taken, &error),
        error);
  seqLens_.assign(slots_.size(), 10);
  for (int32_t row = 0; row <= batch_; ++row)
    queryStartLoc_.push_back(row);
}

void DecodeStep::makeTokens() {
  gdnrt_error error;
  const gdnrt_entry *entry = gdnrt_kernel_entry(kernel_);
  const size_t params = gdnrt_entry_param_count(entry);
  // Addresses of sizes stay.
  sizes_.reserve(params);
  for (size_t p = 0; p < params; ++p) {
    gdnrt_param_info info = gdnrt_param_info_default();
    check(gdnrt_entry_param(entry, p, &info, &error), error);
    const bool isSlots = std::strstr(info.name, "slots") != nullptr;
    if (info.kind == GDNRT_POOL || isSlots)
      continue;
    int64_t count = 1;
    sizes_.emplace_back();
    for (int32_t d = 0; d < info.rank; ++d) {
      sizes_.back().push_back(evaluate(info.dims[d], batch_));
      count *= sizes_.back().back();
    }
    const bool isToken = std::strcmp(info.dims[0], "N") == 0;
    for (int copy = 0; copy < (isToken ? 2 : 1); ++copy) {
      void *data = nullptr;
      check(gdnrt_device_allocate(device_, static_cast<size_t>(8 * count),
                                  &data, &error),
            error);
      memory_.push_back(data);
      gdnrt_arg arg = {data,    info.dtype, info.rank, sizes_.back().data(),
                       nullptr, 0};
      (isToken ? tokens_[copy] : fixed_).push_back({info.name, arg});
    }
  }
  for (int64_t layer = 0; layer < numLayers_; ++layer) {
    std::vector<gdnrt_named_arg> fixed = fixed_;
    fixed.push_back({"state_pool", {}});
    check(gdnrt_state_pool_view(pool_, GDNRT_POOL_STATE, layer,
                                &fixed.back().arg, &error),
          error);
    fixed.push_back({"conv_pool", {}});
    check(gdnrt_state_pool_view(pool_, GDNRT_POOL_CONV, layer,
                                &fixed.back().arg, &error),
          error);
    gdnrt_gdn_kernels kernels = gdnrt_gdn_kernels_default();
    kernels.decode = kernel_;
    layers_.push_back(nullptr);
    check(gdnrt_gdn_layer_create(&kernels, fixed.data(), fixed.size(),
                                 &layers_.back(), &error),
          error);
  }
}

void DecodeStep::run(bool arraysMove) {
  gdnrt_error error;
  for (int32_t &length : seqLens_)
    ++length;
  gdnrt_common_metadata common = gdnrt_common_metadata_default();
  common.num_reqs = common.num_actual_tokens = batch_;
  common.query_start_loc = queryStartLoc_.data();
  common.seq_lens = seqLens_.data();
  common.block_table = slots_.data();
  common.block_table_columns = common.block_table_stride = 1;
  gdnrt_gdn_metadata metadata = gdnrt_gdn_metadata_default();
  check(gdnrt_metadata_builder_build(builder_, &common, &metadata, &error),
        error);
  if (!arena_)
    check(gdnrt_device_allocate(device_, metadata.arena_bytes, &arena_, &error),
          error);
  check(gdnrt_metadata_upload(device_, &metadata, arena_, nullptr, &error),
        error);
  if (arraysMove)
    turn_ ^= 1;
  const std::vector<gdnrt_named_arg> &tokens = tokens_[turn_];
  for (gdnrt_gdn_layer *layer : layers_)
    check(gdnrt_gdn_layer_forward(layer, &metadata, arena_, tokens.data(),
                                  tokens.size(), nullptr, &error),
          error);
}

void DecodeStep::exchangeRequest() {
  gdnrt_error error;
  int32_t taken = 0;
  int32_t &slot = slots_[nextToLeave_];
  check(gdnrt_state_pool_free(pool_, &slot, 1, nullptr, &error), error);
  check(gdnrt_state_pool_allocate(pool_, 1, 0, nullptr, &slot, &taken, &error),
        error);
  seqLens_[nextToLeave_] = 10;
  nextToLeave_ = (nextToLeave_ + 1) % slots_.size();
}
