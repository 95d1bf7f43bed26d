// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows into arrays, arrays into launches, through the C ABI. Arguments go by
// the names that generated entries have.

#include "engine.h"
#include "arguments.h"
#include "layer_graphs.h"
#include "planned_steps.h"

#include <algorithm>
#include <cmath>

using namespace gdnrt::traces;

Engine::Engine(const Kernels &kernels, const Trace &trace)
    : kernels_(kernels), sizes_(kernels.sizesOf(trace)),
      verifyTokens_(trace.verifyTokens), pools_(kernels, sizes_, trace) {
  if (trace.usesGraphs && kernels.haveGraphs())
    graphs_ = std::make_unique<LayerGraphs>(*this);
  if (trace.usesPlanner && kernels.plan)
    planned_ = std::make_unique<PlannedSteps>(*this);
  for (int64_t layer = 0; layer < kNumLayers; ++layer)
    weights_.emplace_back(sizes_, mix(11, static_cast<uint64_t>(layer)));
}

Engine::~Engine() {
  for (gdnrt_gdn_layer *layer : layers_)
    gdnrt_gdn_layer_destroy(layer);
  gdnrt_metadata_builder_destroy(builder_);
  // What was captured goes before what it runs on.
  graphs_.reset();
  planned_.reset();
}

DeviceArray &Engine::array(const std::string &name) {
  return arrays_.try_emplace(name, kernels_.device()).first->second;
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
  add("a", perDecay({numTokens, hv}));
  add("core", {numTokens, hv, sizes_.valueDim});
}

std::vector<int64_t> Engine::perDecay(std::vector<int64_t> sizes) const {
  if (sizes_.decayPerChannel)
    sizes.push_back(sizes_.keyDim);
  return sizes;
}

void Engine::addWeights(Arguments &args, int64_t layer) {
  const LayerWeights &weights = weights_[static_cast<size_t>(layer)];
  const std::string number = std::to_string(layer);
  const int64_t hv = sizes_.valueHeads;
  args.add("conv_weight", array("conv_weight" + number), GDNRT_F32,
           weights.conv, {sizes_.channels(), sizes_.width});
  args.add("A_log", array("A_log" + number), GDNRT_F32, weights.aLog, {hv});
  args.add("dt_bias", array("dt_bias" + number), GDNRT_F32, weights.dtBias,
           perDecay({hv}));
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
  std::vector<int32_t> cuCheckpoints = {0}, checkpointTokens, checkpointSlots;
  std::vector<uint8_t> hasInitial;
  std::vector<uint64_t> tokens;
  for (const Row &row : rows) {
    tokens.insert(tokens.end(), row.tokens.begin(), row.tokens.end());
    cuSeqlens.push_back(static_cast<int32_t>(tokens.size()));
    slots.push_back(row.slot);
    writeSlots.push_back(row.writeSlot);
    accepted.push_back(row.accepted);
    hasInitial.push_back(row.hasInitial);
    for (auto [after, slot] : row.checkpoints) {
      checkpointTokens.push_back(after);
      checkpointSlots.push_back(slot);
    }
    cuCheckpoints.push_back(static_cast<int32_t>(checkpointTokens.size()));
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
    if (isPrefill && kernels_.takeCheckpoints()) {
      const auto count = static_cast<int64_t>(checkpointTokens.size());
      args.add("cu_checkpoints", array("cu_checkpoints"), GDNRT_I32,
               cuCheckpoints, {numRows + 1});
      args.add("checkpoint_tokens", array("checkpoint_tokens"), GDNRT_I32,
               checkpointTokens, {count});
      args.add("checkpoint_slots", array("checkpoint_slots"), GDNRT_I32,
               checkpointSlots, {count});
    }
    if (isVerify && !isLazy)
      args.add("token_slots", array("token_slots"), GDNRT_I32, tokenSlots,
               {numRows, s});
    if (isVerify && kind == VerifyKind::tree)
      args.add("parents", array("parents"), GDNRT_I32, parents, {numRows, s});
    if (isVerify && (kind == VerifyKind::slots || isLazy))
      args.add("num_accepted", array("num_accepted"), GDNRT_I32, accepted,
               {numRows});
    pools_.addTo(args, layer, isVerify,
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
    if (pools_.haveTokens())
      args.add("token_slots", array("token_slots"), GDNRT_I32, tokenSlots,
               {numRows, verifyTokens_});
    pools_.addTo(args, layer, /*withTokens=*/true, kernels_.keepPending(),
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
      check(gdnrt_state_pool_reset(pool(), &row.slot, 1, nullptr, &error),
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
