// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The parameters of an entry: projections, what says which sequences there are,
// pools and weights.
#include "EntryBuilder.h"

#include "PoolEntries.h"

using namespace mlir;
using namespace gdn;

void EntryBuilder::addProjections() {
  Type io = floatType(options.io);
  std::string tokens = this->tokens();
  std::string dk = std::to_string(config.keyDim);
  std::string dv = std::to_string(config.valueDim);
  std::string keys = scaled(2 * config.keyDim, "Hk");
  switch (layout) {
  case InputLayout::interleaved:
  case InputLayout::flat:
    signature.addTensor(
        "qkvz", io, {tokens, keys + " + " + scaled(2 * config.valueDim, "Hv")});
    signature.addTensor("ba", io, {tokens, "2*Hv"});
    return;
  case InputLayout::split:
    signature.addTensor("qkv", io,
                        {tokens, keys + " + " + scaled(config.valueDim, "Hv")});
    if (givesNorm())
      signature.addTensor("z", io, {tokens, scaled(config.valueDim, "Hv")});
    break;
  case InputLayout::separate:
  case InputLayout::gated:
    signature.addTensor("q", io, {tokens, "Hk", dk});
    signature.addTensor("k", io, {tokens, "Hk", dk});
    signature.addTensor("v", io, {tokens, "Hv", dv});
    if (givesNorm())
      signature.addTensor("z", io, {tokens, "Hv", dv});
    break;
  case InputLayout::ready: {
    Type f32 = builder.getF32Type();
    signature.addTensor("q", io, {tokens, "Hk", dk});
    signature.addTensor("k", io, {tokens, "Hk", dk});
    signature.addTensor("v", io, {tokens, "Hv", dv});
    SmallVector<std::string> decays = {tokens, "Hv"};
    if (config.perChannelDecay)
      decays.push_back(dk);
    signature.addTensor("log_decay", f32, decays);
    signature.addTensor("beta", f32, {tokens, "Hv"});
    return;
  }
  }
  signature.addTensor("b", io, {tokens, "Hv"});
  if (config.perChannelDecay)
    signature.addTensor("a", io, {tokens, "Hv", dk});
  else
    signature.addTensor("a", io, {tokens, "Hv"});
}

/// The parameters that say what sequences there are, and where their states
/// are.
void EntryBuilder::addRows() {
  Type i32 = builder.getI32Type();
  Type slots = options.slots64 ? Type(builder.getI64Type()) : i32;
  if (isRagged() && phase != Phase::commit)
    signature.addTensor("cu_seqlens", i32, {"N + 1"});
  if (isMixed())
    signature.addTensor("is_prefill", builder.getI1Type(), {"N"});
  if (isLazy()) {
    signature.addTensor("slots", slots, {"N"});
    signature.addTensor("num_accepted", i32, {"N"});
    return;
  }
  if (isBuffer()) {
    signature.addTensor("slots", slots, {"N"});
    signature.addTensor("token_slots", slots, {"N", "S"});
    if (phase == Phase::commit)
      signature.addTensor("num_accepted", i32, {"N"});
    return;
  }
  if (phase == Phase::verify) {
    bool isTree = options.verify == VerifyStates::tree;
    if (isTree)
      signature.addTensor("slots", slots, {"N"});
    signature.addTensor("token_slots", slots, {"N", "S"});
    if (isTree)
      signature.addTensor("parents", i32, {"N", "S"});
    else
      signature.addTensor("num_accepted", i32, {"N"});
    return;
  }
  signature.addTensor("slots", slots, {"N"});
  if (phase == Phase::commit)
    return;
  if (options.writeSlots)
    signature.addTensor("write_slots", slots, {"N"});
  if ((phase == Phase::prefill && options.hasInitial) ||
      (phase == Phase::decode && options.decodeInitial))
    signature.addTensor("has_initial", builder.getI1Type(), {"N"});
  if (phase == Phase::prefill && options.checkpoints) {
    signature.addTensor("cu_checkpoints", i32, {"N + 1"});
    signature.addTensor("checkpoint_tokens", i32, {"C"});
    signature.addTensor("checkpoint_slots", slots, {"C"});
  }
}

/// The convolution's channels, all sections.
static std::string channelsOf(const ModelConfig &config) {
  return scaled(2 * config.keyDim, "Hk") + " + " +
         scaled(config.valueDim, "Hv");
}

/// What sequences keep from call to call.
void EntryBuilder::addPools() {
  std::string window = std::to_string(config.convWidth - 1);
  if (isLazy())
    signature.addPool("conv_pool",
                      floatType(options.convState.value_or(options.io)),
                      {"P", channelsOf(config), "S + " + window});
  if (isLazy() || (isDeferred() && phase == Phase::commit))
    signature.addStatePools("",
                            {"P", "Hv", std::to_string(config.valueDim),
                             std::to_string(config.keyDim)},
                            options);
  else
    gdn::addPools(signature, builder, config, options);
  if (isBuffer())
    gdn::addPools(signature, builder, config, options, "token_", "B");
  if (isDeferred()) {
    addPendingPools(std::to_string(options.deferWrites));
    signature.addPool("pending_counts", builder.getI32Type(), {"P", "Hk"});
  } else if (isLazy()) {
    addPendingPools("S");
  }
}

/// Tokens that states lack, up to `room` of them.
void EntryBuilder::addPendingPools(StringRef room) {
  Type f32 = builder.getF32Type(), kept = floatType(options.pending);
  const std::string tokens = room.str();
  std::string dk = std::to_string(config.keyDim);
  std::string dv = std::to_string(config.valueDim);
  signature.addPool("pending_keys", kept, {"P", "Hk", tokens, dk});
  signature.addPool("pending_deltas", kept, {"P", "Hv", tokens, dv});
  if (config.perChannelDecay)
    signature.addPool("pending_decays", f32, {"P", "Hv", tokens, dk});
  else
    signature.addPool("pending_decays", f32, {"P", "Hv", tokens});
  if (options.pending == FloatKind::f16)
    signature.addPool("pending_scales", f32, {"P", "Hv", tokens});
}

/// Of the convolution and the gates.
void EntryBuilder::addWeights() {
  std::string dk = std::to_string(config.keyDim);
  if (hasConv())
    signature.addTensor("conv_weight",
                        floatType(options.convWeight.value_or(options.io)),
                        {channelsOf(config), std::to_string(config.convWidth)});
  signature.addTensor("A_log", builder.getF32Type(), {"Hv"});
  if (config.perChannelDecay)
    signature.addTensor("dt_bias", floatType(options.dtBias), {"Hv", dk});
  else
    signature.addTensor("dt_bias", floatType(options.dtBias), {"Hv"});
}

void EntryBuilder::addParameters() {
  Type io = floatType(options.io);
  std::string tokens = this->tokens();
  std::string dv = std::to_string(config.valueDim);

  if (phase == Phase::commit) {
    if (isLazy() && isDeferred())
      signature.addSymbol("S");
    addRows();
    addPools();
    return;
  }
  signature.addSymbol("Hk");
  signature.addSymbol("Hv");
  if (isLazy())
    signature.addSymbol("S");
  addProjections();
  if (!isReady())
    addWeights();
  if (givesNorm())
    signature.addTensor("norm_weight",
                        floatType(options.normWeight.value_or(options.io)),
                        {dv});
  if (takesNormConstants())
    signature.addTensor("norm_constants", builder.getF32Type(), {"2"});
  addRows();
  addPools();
  if (givesCore())
    signature.addResult("core", io, {tokens, "Hv", dv});
  if (givesNorm())
    signature.addResult("out", io, {tokens, "Hv", dv});
}

/// A number that reads back as the same one.
