// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows into arrays, arrays into launches, through the C ABI. Arguments go by
// the names that generated entries have.

#include "engine.h"
#include "arguments.h"
#include "failed.h"
#include "layer_graphs.h"
#include "planned_steps.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

using namespace gdnrt::traces;

Kernels::Kernels(const std::string &image, const std::string &device,
                 bool debugChecks)
    : isHost_(device == "cpu"), debugChecks_(debugChecks) {
  gdnrt_error error;
  check(gdnrt_image_load_file(image.c_str(), &image_, &error), error);
  if (device == "cpu") {
    gdnrt_cpu_options options = gdnrt_cpu_options_default();
    options.num_workers = 1;
    options.debug_checks = debugChecks;
    check(gdnrt_device_create_cpu(&options, &device_, &error), error);
  } else {
    gdnrt_cuda_options options = gdnrt_cuda_options_default();
    options.debug_checks = debugChecks;
    check(gdnrt_device_create_cuda(&options, &device_, &error), error);
  }
  prefill = find("prefill");
  decode = find("decode");
  verify = find("verify");
  commit = find("commit");
  copySlots = find("copy_slots");
  zeroSlots = find("zero_slots");
  plan = find("plan");
  if (!decode || (isHost_ && !prefill))
    throw RuntimeError(image + ": expected entries prefill and decode");
  auto verifyHas = [&](const char *name) {
    size_t param;
    return gdnrt_entry_find_param(gdnrt_kernel_entry(verify), name, &param,
                                  nullptr) == GDNRT_OK;
  };
  isMixed_ = verify && verifyHas("is_prefill");
  if (verify)
    verifyKind_ = verifyHas("parents")            ? VerifyKind::tree
                  : verifyHas("pending_keys")     ? VerifyKind::lazy
                  : verifyHas("token_state_pool") ? VerifyKind::buffer
                                                  : VerifyKind::slots;
  auto decodeHas = [&](const char *name) {
    size_t param;
    return gdnrt_entry_find_param(gdnrt_kernel_entry(decode), name, &param,
                                  nullptr) == GDNRT_OK;
  };
  moveStates_ = decodeHas("write_slots");
  if (decodeHas("pending_counts"))
    pendingRoom_ = -1;
  if ((hasCommits() || pendingRoom_ != 0) && !commit)
    throw RuntimeError(image + ": expected an entry commit");
  readSizes();
}

Kernels::~Kernels() {
  for (gdnrt_kernel *kernel :
       {prefill, decode, verify, commit, copySlots, zeroSlots, plan})
    gdnrt_kernel_destroy(kernel);
  gdnrt_device_destroy(device_);
  gdnrt_image_destroy(image_);
}

gdnrt_kernel *Kernels::find(const char *name) {
  gdnrt_kernel *kernel = nullptr;
  gdnrt_error error;
  gdnrt_status status =
      gdnrt_kernel_create(device_, image_, name, &kernel, &error);
  if (status != GDNRT_NOT_FOUND && status != GDNRT_UNSUPPORTED)
    check(status, error);
  return kernel;
}

void Kernels::readSizes() {
  const gdnrt_entry *entry = gdnrt_kernel_entry(decode);
  gdnrt_error error;
  auto dims = [&](const char *name) {
    size_t index = 0;
    gdnrt_param_info info = gdnrt_param_info_default();
    check(gdnrt_entry_find_param(entry, name, &index, &error), error);
    check(gdnrt_entry_param(entry, index, &info, &error), error);
    if (info.dtype != GDNRT_F32)
      throw RuntimeError(std::string(name) + ": expected an image of f32");
    return info;
  };
  gdnrt_param_info state = dims("state_pool"), weight = dims("conv_weight");
  dims("q");
  if (pendingRoom_ != 0)
    pendingRoom_ = std::strtoll(dims("pending_keys").dims[2], nullptr, 10);
  sizes_.keyHeads = sizes_.valueHeads = 1;
  sizes_.valueDim = std::strtoll(state.dims[2], nullptr, 10);
  sizes_.keyDim = std::strtoll(state.dims[3], nullptr, 10);
  sizes_.width = std::strtoll(weight.dims[1], nullptr, 10);
}

Engine::Engine(const Kernels &kernels, const Trace &trace)
    : kernels_(kernels), sizes_(kernels.sizes()),
      verifyTokens_(trace.verifyTokens) {
  if (trace.usesGraphs && kernels.haveGraphs())
    graphs_ = std::make_unique<LayerGraphs>(*this);
  if (trace.usesPlanner && kernels.plan)
    planned_ = std::make_unique<PlannedSteps>(*this);
  sizes_.keyHeads = trace.keyHeads;
  sizes_.valueHeads = trace.valueHeads;
  for (int64_t layer = 0; layer < kNumLayers; ++layer)
    weights_.emplace_back(sizes_, mix(11, static_cast<uint64_t>(layer)));
  pool_ = makePool(trace, trace.numRequests, kernels.keepPending());
  if (kernels.verifyKind() == VerifyKind::buffer)
    tokenPool_ = makePool(trace, trace.numRequests * verifyTokens_, false);
}

gdnrt_state_pool *Engine::makePool(const Trace &trace, int64_t requests,
                                   bool pending) const {
  gdnrt_state_pool_options options = gdnrt_state_pool_options_default();
  options.num_layers = kNumLayers;
  options.num_requests = requests;
  options.num_track = trace.numTrack;
  options.num_key_heads = sizes_.keyHeads;
  options.num_value_heads = sizes_.valueHeads;
  options.key_dim = sizes_.keyDim;
  options.value_dim = sizes_.valueDim;
  options.conv_width = sizes_.width;
  options.pending_tokens = pending ? trace.verifyTokens : 0;
  if (pending && kernels_.pendingRoom() > 0) {
    options.pending_tokens = kernels_.pendingRoom();
    options.deferred_writes = 1;
  }
  options.conv_extra = kernels_.verifyKind() == VerifyKind::lazy
                           ? trace.verifyTokens
                           : trace.convExtra;
  options.conv_layout = trace.isSD ? GDNRT_CONV_SD : GDNRT_CONV_DS;
  // GPUs load 16 bytes at a time, so slots have to begin at such multiples.
  const int64_t padding =
      kernels_.isHost() ? trace.padding : (trace.padding + 3) / 4 * 4;
  options.state_slot_stride = sizes_.outputs() * sizes_.keyDim + padding;
  options.conv_slot_stride =
      sizes_.channels() * (sizes_.width - 1 + options.conv_extra) + padding;
  options.debug_checks = 1;
  gdnrt_error error;
  gdnrt_state_pool *pool = nullptr;
  check(gdnrt_state_pool_create(kernels_.device(), &options, &pool, &error),
        error);
  if (trace.movesByKernels && kernels_.copySlots && kernels_.zeroSlots)
    check(gdnrt_state_pool_use_kernels(pool, kernels_.copySlots,
                                       kernels_.zeroSlots, &error),
          error);
  return pool;
}

Engine::~Engine() {
  for (gdnrt_gdn_layer *layer : layers_)
    gdnrt_gdn_layer_destroy(layer);
  gdnrt_metadata_builder_destroy(builder_);
  // What was captured goes before what it runs on.
  graphs_.reset();
  planned_.reset();
  gdnrt_state_pool_destroy(pool_);
  gdnrt_state_pool_destroy(tokenPool_);
}

DeviceArray &Engine::array(const std::string &name) {
  return arrays_.try_emplace(name, kernels_.device()).first->second;
}

gdnrt_arg Engine::view(int32_t buffer, int64_t layer) const {
  gdnrt_error error;
  gdnrt_arg arg;
  check(gdnrt_state_pool_view(pool_, buffer, layer, &arg, &error), error);
  return arg;
}

std::vector<int32_t> Engine::buffers() const {
  std::vector<int32_t> all = {GDNRT_POOL_STATE, GDNRT_POOL_CONV_HISTORY};
  if (kernels_.pendingRoom() > 0)
    all.insert(all.end(),
               {GDNRT_POOL_PENDING_KEYS, GDNRT_POOL_PENDING_DELTAS,
                GDNRT_POOL_PENDING_DECAYS, GDNRT_POOL_PENDING_COUNTS});
  return all;
}

void Engine::addPools(Arguments &args, int64_t layer, bool withTokens,
                      bool withPending, bool withWindows) const {
  const bool isLazy = kernels_.verifyKind() == VerifyKind::lazy && withTokens;
  args.addPool("state_pool", view(GDNRT_POOL_STATE, layer));
  if (withWindows)
    args.addPool(
        "conv_pool",
        view(isLazy ? GDNRT_POOL_CONV_HISTORY : GDNRT_POOL_CONV, layer));
  if (withPending) {
    args.addPool("pending_keys", view(GDNRT_POOL_PENDING_KEYS, layer));
    args.addPool("pending_deltas", view(GDNRT_POOL_PENDING_DELTAS, layer));
    args.addPool("pending_decays", view(GDNRT_POOL_PENDING_DECAYS, layer));
  }
  if (withPending && kernels_.pendingRoom() > 0)
    args.addPool("pending_counts", view(GDNRT_POOL_PENDING_COUNTS, layer));
  if (!tokenPool_ || !withTokens)
    return;
  for (auto [name, buffer] : {std::pair("token_state_pool", GDNRT_POOL_STATE),
                              {"token_conv_pool", GDNRT_POOL_CONV}}) {
    gdnrt_error error;
    gdnrt_arg arg;
    check(gdnrt_state_pool_view(tokenPool_, buffer, layer, &arg, &error),
          error);
    args.addPool(name, arg);
  }
}

void Engine::addTokens(Arguments &args, const std::vector<uint64_t> &tokens,
                       int64_t layer, Outputs &core,
                       const std::string &prefix) {
  const int64_t keys = sizes_.keyHeads * sizes_.keyDim;
  std::vector<float> q, k, v, b, a;
  for (uint64_t token : tokens) {
    TokenInputs inputs(sizes_, token, layer);
    const float *mixed = inputs.mixed.data();
    q.insert(q.end(), mixed, mixed + keys);
    k.insert(k.end(), mixed + keys, mixed + 2 * keys);
    v.insert(v.end(), mixed + 2 * keys, mixed + sizes_.channels());
    b.insert(b.end(), inputs.b.begin(), inputs.b.end());
    a.insert(a.end(), inputs.a.begin(), inputs.a.end());
  }
  // What is not written is seen.
  core.assign(tokens.size() * static_cast<size_t>(sizes_.outputs()), NAN);
  for (const auto &[name, values] : {std::pair("q", &q),
                                     {"k", &k},
                                     {"v", &v},
                                     {"b", &b},
                                     {"a", &a},
                                     {"core", &core}})
    array(prefix + name).write(values->data(), values->size() * sizeof(float));
  nameTokens(args, static_cast<int64_t>(tokens.size()), prefix);
}

void Engine::nameTokens(Arguments &args, int64_t numTokens,
                        const std::string &prefix) {
  const int64_t hk = sizes_.keyHeads, hv = sizes_.valueHeads;
  auto add = [&](const char *name, std::vector<int64_t> sizes) {
    args.addArg(name, array(prefix + name).data(), GDNRT_F32, std::move(sizes));
  };
  add("q", {numTokens, hk, sizes_.keyDim});
  add("k", {numTokens, hk, sizes_.keyDim});
  add("v", {numTokens, hv, sizes_.valueDim});
  add("b", {numTokens, hv});
  add("a", {numTokens, hv});
  add("core", {numTokens, hv, sizes_.valueDim});
}

void Engine::addWeights(Arguments &args, int64_t layer) {
  const LayerWeights &weights = weights_[static_cast<size_t>(layer)];
  const std::string number = std::to_string(layer);
  const int64_t hv = sizes_.valueHeads;
  args.add("conv_weight", array("conv_weight" + number), GDNRT_F32,
           weights.conv, {sizes_.channels(), sizes_.width});
  args.add("A_log", array("A_log" + number), GDNRT_F32, weights.aLog, {hv});
  args.add("dt_bias", array("dt_bias" + number), GDNRT_F32, weights.dtBias,
           {hv});
}

std::vector<Outputs> Engine::run(gdnrt_kernel *kernel,
                                 const std::vector<Row> &rows,
                                 int64_t padding) {
  const bool isPrefill = kernel == kernels_.prefill;
  const bool isVerify = kernel == kernels_.verify;
  const VerifyKind kind = kernels_.verifyKind();
  const bool isLazy = isVerify && kind == VerifyKind::lazy;
  const auto numRows = static_cast<int64_t>(rows.size());
  const int64_t s = verifyTokens_;
  std::vector<int32_t> cuSeqlens = {0}, slots, writeSlots, accepted;
  std::vector<int32_t> tokenSlots, parents;
  std::vector<uint8_t> hasInitial;
  std::vector<uint64_t> tokens;
  for (const Row &row : rows) {
    tokens.insert(tokens.end(), row.tokens.begin(), row.tokens.end());
    cuSeqlens.push_back(static_cast<int32_t>(tokens.size()));
    slots.push_back(row.slot);
    writeSlots.push_back(row.writeSlot);
    accepted.push_back(row.accepted);
    hasInitial.push_back(row.hasInitial);
    for (auto t = size_t{0}; t < static_cast<size_t>(s); ++t) {
      tokenSlots.push_back(t < row.tokenSlots.size() ? row.tokenSlots[t] : -1);
      parents.push_back(t < row.parents.size() ? row.parents[t] : -1);
    }
  }
  for (int64_t t = 0; t < padding; ++t)
    tokens.push_back(mix(99, static_cast<uint64_t>(t)));

  std::vector<Outputs> outputs;
  for (int64_t layer = 0; layer < kNumLayers; ++layer) {
    Outputs core;
    Arguments args;
    addTokens(args, tokens, layer, core);
    addWeights(args, layer);
    if (!isVerify || kind != VerifyKind::slots)
      args.add("slots", array("slots"), GDNRT_I32, slots, {numRows});
    if (!isVerify && kernels_.moveStates())
      args.add("write_slots", array("write_slots"), GDNRT_I32, writeSlots,
               {numRows});
    if (isPrefill || isVerify)
      args.add("cu_seqlens", array("cu_seqlens"), GDNRT_I32, cuSeqlens,
               {numRows + 1});
    if ((isPrefill || isVerify) && kernels_.isMixed())
      args.add("is_prefill", array("is_prefill"), GDNRT_I1,
               std::vector<uint8_t>(rows.size(), isPrefill), {numRows});
    if (isPrefill)
      args.add("has_initial", array("has_initial"), GDNRT_I1, hasInitial,
               {numRows});
    if (isVerify && !isLazy)
      args.add("token_slots", array("token_slots"), GDNRT_I32, tokenSlots,
               {numRows, s});
    if (isVerify && kind == VerifyKind::tree)
      args.add("parents", array("parents"), GDNRT_I32, parents, {numRows, s});
    if (isVerify && (kind == VerifyKind::slots || isLazy))
      args.add("num_accepted", array("num_accepted"), GDNRT_I32, accepted,
               {numRows});
    addPools(args, layer, isVerify,
             isLazy || (!isPrefill && kernels_.pendingRoom() > 0));
    args.launch(kernel, kernels_.device());
    array("core").read(core.data(), core.size() * sizeof(float));
    outputs.push_back(std::move(core));
  }
  return outputs;
}

void Engine::commit(const std::vector<Row> &rows) {
  std::vector<int32_t> slots, accepted, tokenSlots;
  for (const Row &row : rows) {
    slots.push_back(row.slot);
    accepted.push_back(row.accepted);
    for (auto t = size_t{0}; t < static_cast<size_t>(verifyTokens_); ++t)
      tokenSlots.push_back(t < row.tokenSlots.size() ? row.tokenSlots[t] : -1);
  }
  const auto numRows = static_cast<int64_t>(rows.size());
  for (int64_t layer = 0; layer < kNumLayers; ++layer) {
    Arguments args;
    args.add("slots", array("slots"), GDNRT_I32, slots, {numRows});
    if (kernels_.hasCommits())
      args.add("num_accepted", array("num_accepted"), GDNRT_I32, accepted,
               {numRows});
    if (tokenPool_)
      args.add("token_slots", array("token_slots"), GDNRT_I32, tokenSlots,
               {numRows, verifyTokens_});
    addPools(args, layer, /*withTokens=*/true, kernels_.keepPending(),
             /*withWindows=*/kernels_.hasCommits());
    args.launch(kernels_.commit, kernels_.device());
  }
}

std::vector<Outputs> Engine::prefill(const std::vector<Row> &rows,
                                     int64_t padding) {
  return kernels_.prefill ? run(kernels_.prefill, rows, padding)
                          : prefillByDecode(rows, padding);
}

std::vector<Outputs> Engine::prefillByDecode(const std::vector<Row> &rows,
                                             int64_t padding) {
  size_t longest = 0, total = static_cast<size_t>(padding);
  std::vector<size_t> first;
  gdnrt_error error;
  for (const Row &row : rows) {
    first.push_back(total - static_cast<size_t>(padding));
    total += row.tokens.size();
    longest = std::max(longest, row.tokens.size());
    // What has no state starts from zeros.
    if (!row.hasInitial && !row.tokens.empty())
      check(gdnrt_state_pool_reset(pool_, &row.slot, 1, nullptr, &error),
            error);
  }
  const auto width = static_cast<size_t>(sizes_.outputs());
  std::vector<Outputs> all(kNumLayers, Outputs(total * width, 0));
  for (size_t t = 0; t < longest; ++t) {
    std::vector<Row> step;
    std::vector<size_t> to;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].tokens.size() <= t)
        continue;
      Row one = rows[i];
      one.tokens = {rows[i].tokens[t]};
      one.slot = t == 0 ? rows[i].slot : rows[i].writeSlot;
      step.push_back(std::move(one));
      to.push_back(first[i] + t);
    }
    std::vector<Outputs> outputs = run(kernels_.decode, step, 0);
    for (size_t layer = 0; layer < outputs.size(); ++layer)
      for (size_t i = 0; i < to.size(); ++i)
        std::copy_n(
            outputs[layer].begin() + static_cast<std::ptrdiff_t>(i * width),
            width,
            all[layer].begin() + static_cast<std::ptrdiff_t>(to[i] * width));
  }
  return all;
}

std::vector<Outputs> Engine::decode(const std::vector<Row> &rows) {
  return run(kernels_.decode, rows, 0);
}

std::vector<Outputs> Engine::verify(const std::vector<Row> &rows) {
  return run(kernels_.verify, rows, 0);
}

/// The elements of a slot in the order of memory: a slot is dense.
template <typename T = float>
static std::vector<T> readSlot(gdnrt_device *device, const gdnrt_arg &arg,
                               int32_t slot) {
  int64_t count = 1;
  for (int32_t d = 1; d < arg.rank; ++d)
    count *= arg.sizes[d];
  std::vector<T> values(static_cast<size_t>(count));
  gdnrt_error error;
  check(gdnrt_device_read(device, values.data(),
                          static_cast<T *>(arg.data) + slot * arg.strides[0],
                          values.size() * sizeof(T), &error),
        error);
  return values;
}

LayerState Engine::read(int64_t layer, int32_t slot) const {
  LayerState result(sizes_);
  std::vector<float> state =
      readSlot(kernels_.device(), view(GDNRT_POOL_STATE, layer), slot);
  std::copy(state.begin(), state.end(), result.state.begin());
  gdnrt_arg conv = view(GDNRT_POOL_CONV_HISTORY, layer);
  std::vector<float> window = readSlot(kernels_.device(), conv, slot);
  size_t i = 0;
  for (int64_t c = 0; c < sizes_.channels(); ++c)
    for (int64_t j = 0; j < sizes_.width - 1; ++j)
      result.window[i++] = window[static_cast<size_t>(c * conv.strides[1] +
                                                      j * conv.strides[2])];
  if (kernels_.pendingRoom() > 0)
    foldPending(layer, slot, result);
  return result;
}

void Engine::foldPending(int64_t layer, int32_t slot, LayerState &state) const {
  auto read = [&](int32_t buffer) {
    return readSlot(kernels_.device(), view(buffer, layer), slot);
  };
  const std::vector<float> keys = read(GDNRT_POOL_PENDING_KEYS),
                           deltas = read(GDNRT_POOL_PENDING_DELTAS),
                           decays = read(GDNRT_POOL_PENDING_DECAYS);
  const auto counts = readSlot<int32_t>(
      kernels_.device(), view(GDNRT_POOL_PENDING_COUNTS, layer), slot);
  const auto dk = static_cast<size_t>(sizes_.keyDim),
             dv = static_cast<size_t>(sizes_.valueDim),
             room = static_cast<size_t>(kernels_.pendingRoom());
  const auto heads = static_cast<size_t>(sizes_.valueHeads);
  for (size_t h = 0; h < heads; ++h) {
    const size_t keyHead = h * static_cast<size_t>(sizes_.keyHeads) / heads;
    const int32_t count = counts[keyHead];
    if (count < 0 || count > kernels_.pendingRoom())
      throw Failed("slot " + std::to_string(slot) + " counts " +
                   std::to_string(count) + " tokens");
    for (size_t t = 0; t < static_cast<size_t>(count); ++t) {
      const double decay = std::exp(double(decays[h * room + t]));
      const float *key = &keys[(keyHead * room + t) * dk];
      const float *delta = &deltas[(h * room + t) * dv];
      for (size_t i = 0; i < dv * dk; ++i) {
        double &element = state.state[h * dv * dk + i];
        element = decay * element + double(delta[i / dk]) * double(key[i % dk]);
      }
    }
  }
}

bool Engine::hasPending(int32_t slot) const {
  if (kernels_.pendingRoom() == 0)
    return false;
  uint8_t pending = 1;
  gdnrt_error error;
  check(
      gdnrt_state_pool_has_pending(pool_, &slot, 1, nullptr, &pending, &error),
      error);
  return pending != 0;
}

void Engine::paintNullSlot() {
  gdnrt_error error;
  for (int32_t buffer : buffers())
    for (int64_t layer = 0; layer < kNumLayers; ++layer) {
      gdnrt_arg arg = view(buffer, layer);
      std::vector<float> values = readSlot(kernels_.device(), arg, /*slot=*/0);
      std::fill(values.begin(), values.end(), NAN);
      check(gdnrt_device_write(kernels_.device(), arg.data, values.data(),
                               values.size() * sizeof(float), &error),
            error);
    }
}

bool Engine::nullSlotIsIntact() const {
  for (int32_t buffer : buffers())
    for (int64_t layer = 0; layer < kNumLayers; ++layer)
      for (float value :
           readSlot(kernels_.device(), view(buffer, layer), /*slot=*/0))
        if (!std::isnan(value))
          return false;
  return true;
}
