// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builds `prefill`, `decode` and `verify`, and `commit` where verify leaves
// tokens pending (PoolEntries.cpp and PlanEntry.cpp: the others): the six
// inputs as head-major views, then convolution, unit length of q and k, gates,
// delta rule, gated norm.
#include "EntryBuilder.h"

#include "MapEntries.h"
#include "PlanEntry.h"
#include "PoolEntries.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

#include <charconv>
#include <iterator>

using namespace mlir;
using namespace gdn;

Type EntryBuilder::floatType(FloatKind kind) const {
  return gdn::floatType(builder, kind);
}

RankedTensorType EntryBuilder::likeOf(Value value, Type element) const {
  return cast<RankedTensorType>(value.getType()).clone(element);
}

static std::string printed(double value) {
  char text[32];
  return std::string(text, std::to_chars(text, std::end(text), value).ptr);
}

void EntryBuilder::addAttributes(func::FuncOp func) {
  auto fact = [&](StringRef key, StringRef value) {
    return builder.getNamedAttr(key, builder.getStringAttr(value));
  };
  SmallVector<NamedAttribute> facts = {
      fact("model_type", config.modelType),
      fact("io", stringify(options.io)),
      fact("state", getStateName(options)),
      fact("layout", stringify(layout)),
      fact("outputs", stringify(options.outputs)),
      fact("norm_eps",
           takesNormConstants() ? "argument" : printed(config.normEps)),
      fact("output_gate", takesNormConstants()
                              ? "argument"
                              : stringifyActivation(config.gate)),
      fact("doubled_beta", config.doubleBeta ? "1" : "0")};
  // Images of decays without a bound are as they were before there was one.
  if (config.decayBound && !isReady())
    facts.push_back(fact("decay_bound", printed(*config.decayBound)));
  // Images of states as [dv, dk] are as they were before there was a choice.
  if (options.stateLayout != StateLayout::vk)
    facts.push_back(fact("state_layout", stringify(options.stateLayout)));
  func->setAttr("gdn.facts", builder.getDictionaryAttr(facts));
}

ValueRange EntryBuilder::unpack(StringRef parts, PackLayout packing,
                                StringRef parameter) {
  Value packed = signature[parameter];
  Type element = cast<RankedTensorType>(packed.getType()).getElementType();
  int64_t any = ShapedType::kDynamic;
  SmallVector<Type> types;
  for (char part : parts) {
    if (part == 'a' || part == 'b')
      types.push_back(RankedTensorType::get({any, any}, element));
    else
      types.push_back(RankedTensorType::get(
          {any, any,
           part == 'q' || part == 'k' ? config.keyDim : config.valueDim},
          element));
  }
  auto op = UnpackOp::create(builder, loc(parts), types, parts, packing, packed,
                             signature["Hk"], signature["Hv"]);
  return op.getResults();
}

EntryBuilder::Inputs EntryBuilder::unpackInputs() {
  switch (layout) {
  case InputLayout::interleaved:
  case InputLayout::flat: {
    PackLayout packing = layout == InputLayout::flat ? PackLayout::flat
                                                     : PackLayout::interleaved;
    ValueRange qkvz = unpack("qkvz", packing, "qkvz");
    ValueRange ba = unpack("ba", packing, "ba");
    return {qkvz[0], qkvz[1], qkvz[2], qkvz[3], ba[0], ba[1]};
  }
  case InputLayout::split: {
    ValueRange qkv = unpack("qkv", PackLayout::flat, "qkv");
    Value z = givesNorm() ? unpack("z", PackLayout::flat, "z")[0] : Value();
    return {qkv[0], qkv[1], qkv[2], z, signature["b"], signature["a"]};
  }
  case InputLayout::separate:
    return {signature["q"], signature["k"], signature["v"],
            signature["z"], signature["b"], signature["a"]};
  case InputLayout::gated:
  case InputLayout::ready:
    break;
  }
  llvm_unreachable("an InputLayout with a convolution outside its enumeration");
}

void EntryBuilder::buildBody() {
  Type io = floatType(options.io);
  Type f32 = builder.getF32Type();
  Value slots = signature["slots"];
  Value accepted = signature["num_accepted"];
  Value pending = isLazy() ? accepted : Value();
  if (pending)
    slots = CountedSlotsOp::create(
        builder, loc("slots"), slots.getType(), slots, accepted, signature["S"],
        signature["cu_seqlens"], builder.getI64IntegerAttr(mostTokens()));
  else if (accepted)
    slots = acceptedSlots(mostTokens());
  if (isMixed())
    slots = TakenSlotsOp::create(
        builder, loc("taken"), cast<RankedTensorType>(slots.getType()), slots,
        signature["is_prefill"], /*negated=*/phase == Phase::verify);
  const StateOperands states = {
      signature["state_pool"],        slots,
      signature["write_slots"],       signature["cu_seqlens"],
      signature["has_initial"],       signature["cu_checkpoints"],
      signature["checkpoint_tokens"], signature["checkpoint_slots"],
      signature["token_slots"],       signature["parents"],
      signature["token_state_pool"],  pending,
      signature["state_scales"],      signature["state_low"]};
  const PendingOperands kept = pendingPools();
  UnitAttr doubledBeta = config.doubleBeta ? builder.getUnitAttr() : UnitAttr();
  UnitAttr readsUpper = options.readsUpper && phase == Phase::decode
                            ? builder.getUnitAttr()
                            : UnitAttr();
  auto unit = [&](Value heads, StringRef name) -> Value {
    return L2NormOp::create(builder, loc(name), likeOf(heads, f32), heads,
                            builder.getF32FloatAttr(1e-6f));
  };
  const FloatAttr bound = config.decayBound
                              ? builder.getF32FloatAttr(*config.decayBound)
                              : FloatAttr();
  auto gatesOf = [&](Value a, Value b) {
    return GatesOp::create(builder, loc("gates"), likeOf(a, f32),
                           likeOf(b, f32), a, b, signature["A_log"],
                           signature["dt_bias"], builder.getF32FloatAttr(20.0f),
                           bound, doubledBeta);
  };
  if (!hasConv()) {
    Value q = signature["q"], k = signature["k"], v = signature["v"];
    if (options.l2norm) {
      q = unit(q, "q_unit");
      k = unit(k, "k_unit");
    }
    Value decay = signature["log_decay"], strength = signature["beta"];
    if (!isReady()) {
      auto gates = gatesOf(signature["a"], signature["b"]);
      decay = gates.getLogDecay();
      strength = gates.getBeta();
    }
    auto rule =
        DeltaRuleOp::create(builder, loc("core"), v.getType(), q, k, v, decay,
                            strength, states, kept, doubledBeta, readsUpper);
    func::ReturnOp::create(builder, builder.getUnknownLoc(), rule.getOutput());
    return;
  }
  Inputs in = unpackInputs();

  auto conv = Conv1dOp::create(
      builder, loc("conv"),
      TypeRange{likeOf(in.q, f32), likeOf(in.k, f32), likeOf(in.v, f32)},
      ValueRange{in.q, in.k, in.v}, signature["conv_weight"], /*bias=*/Value(),
      Activation::silu,
      states.in(signature["conv_pool"], signature["token_conv_pool"]));
  ValueRange qkv = conv.getResults();
  Value q = unit(qkv[0], "q");
  Value k = unit(qkv[1], "k");
  auto gates = gatesOf(in.a, in.b);

  // The norm reads the core output before it is rounded.
  Type coreElement = givesNorm() ? f32 : io;
  Value core =
      DeltaRuleOp::create(builder, loc("core"), likeOf(qkv[2], coreElement), q,
                          k, qkv[2], gates.getLogDecay(), gates.getBeta(),
                          states, kept, doubledBeta, readsUpper);
  SmallVector<Value> outputs;
  if (givesCore()) {
    Value given = core;
    if (coreElement != io)
      given = CastOp::create(builder, loc("core_io"), likeOf(core, io), core);
    outputs.push_back(given);
  }
  if (givesNorm()) {
    Value constants = signature["norm_constants"];
    Value norm = GatedRMSNormOp::create(
        builder, loc("norm"), likeOf(core, io), core, in.z,
        signature["norm_weight"], constants,
        constants ? ActivationAttr()
                  : ActivationAttr::get(builder.getContext(), config.gate),
        builder.getF32FloatAttr(constants ? 1e-6 : config.normEps), UnitAttr());
    outputs.push_back(MaskSequencesOp::create(builder, loc("out"),
                                              norm.getType(), norm, states.pool,
                                              slots, states.cuSeqlens));
  }
  func::ReturnOp::create(builder, builder.getUnknownLoc(), outputs);
}

PendingOperands EntryBuilder::pendingPools() {
  return {signature["pending_keys"], signature["pending_deltas"],
          signature["pending_decays"], signature["pending_counts"],
          signature["pending_scales"]};
}

/// The slot after the last accepted token of each sequence; -1 for sequences of
/// more than `mostTokens`, if not 0.
Value EntryBuilder::acceptedSlots(int64_t mostTokens) {
  Value table = signature["token_slots"];
  Value sequences;
  IntegerAttr most;
  if (mostTokens != 0) {
    sequences = signature["cu_seqlens"];
    most = builder.getI64IntegerAttr(mostTokens);
  }
  return AcceptedSlotsOp::create(
      builder, loc("accepted"),
      RankedTensorType::get({ShapedType::kDynamic},
                            getElementTypeOrSelf(table)),
      table, signature["num_accepted"], sequences, most);
}

void EntryBuilder::buildCommit() {
  if (isBuffer()) {
    Value from = acceptedSlots(/*mostTokens=*/0);
    for (StringRef pool : {"conv_pool", "state_pool"})
      if (Value target = signature[pool])
        PoolCopyOp::create(builder, loc(pool),
                           signature[("token_" + pool).str()], from, target,
                           signature["slots"]);
    func::ReturnOp::create(builder, builder.getUnknownLoc());
    return;
  }
  Value slots = signature["slots"], accepted = signature["num_accepted"];
  // There is room for more tokens of the rule than one step has.
  if (isLazy() && isDeferred())
    slots = CountedSlotsOp::create(builder, loc("slots"), slots.getType(),
                                   slots, accepted, signature["S"],
                                   /*cu_seqlens=*/Value(), IntegerAttr());
  if (isLazy())
    CommitConv1dOp::create(builder, loc("conv"), signature["conv_pool"], slots,
                           accepted,
                           builder.getI64IntegerAttr(config.convWidth - 1));
  const PendingOperands pending = pendingPools();
  CommitDeltaRuleOp::create(builder, loc("core"), signature["state_pool"],
                            slots, accepted, pending.keys, pending.deltas,
                            pending.decays, pending.counts, pending.scales,
                            signature["state_scales"], signature["state_low"]);
  func::ReturnOp::create(builder, builder.getUnknownLoc());
}

void EntryBuilder::build(StringRef name) {
  OpBuilder::InsertionGuard guard(builder);
  addParameters();
  func::FuncOp func = signature.createEntry(name);
  addAttributes(func);
  if (phase == Phase::commit)
    buildCommit();
  else
    buildBody();
}

static llvm::Error checkVariant(const ModelConfig &config,
                                const EntryOptions &options) {
  InputLayout layout = options.layout.value_or(config.layout);
  const bool isBare = !hasConv(layout);
  if (config.perChannelDecay && layout != InputLayout::separate && !isBare)
    return llvm::createStringError(
        llvm::formatv("{0}: a decay per channel expects the layout separate, "
                      "gated or ready, but got {1}",
                      config.name, stringify(layout)));
  if (isBare && options.outputs != EntryOutputs::core)
    return llvm::createStringError(llvm::formatv(
        "{0}: the layout {1} expects the outputs core, but got {2}",
        config.name, stringify(layout), stringify(options.outputs)));
  if (options.verifyTokens) {
    const int64_t most = *options.verifyTokens;
    if (options.verify == VerifyStates::none)
      return llvm::createStringError(llvm::formatv(
          "{0}: a bound for the tokens of verify expects such an entry, but "
          "got verify none",
          config.name));
    const bool isLazy = options.verify == VerifyStates::lazy;
    if (isLazy && (most < 1 || most > maxVerifyTokens))
      return llvm::createStringError(
          llvm::formatv("{0}: verify lazy expects a bound of 1 to {1} tokens "
                        "of a sequence, but "
                        "got {2}",
                        config.name, maxVerifyTokens, most));
    if (most != 0 && (options.verify == VerifyStates::tree ||
                      options.verify == VerifyStates::buffer))
      return llvm::createStringError(
          llvm::formatv("{0}: verify tree and buffer take sequences of any "
                        "number of tokens, but "
                        "got a bound of {1}",
                        config.name, most));
    if (most < 0)
      return llvm::createStringError(llvm::formatv(
          "{0}: verify expects a bound of tokens of a sequence, or 0 "
          "for none, but got {1}",
          config.name, most));
  }
  if (options.deferWrites != 0) {
    if (options.deferWrites < 2 || options.deferWrites > 32)
      return llvm::createStringError(llvm::formatv(
          "{0}: deferred writes expect 2 to 32 pending tokens, but got {1}",
          config.name, options.deferWrites));
    if (options.verify != VerifyStates::none &&
        options.verify != VerifyStates::lazy)
      return llvm::createStringError(llvm::formatv(
          "{0}: deferred writes expect verify none or lazy, but got one that "
          "writes states after tokens",
          config.name));
    if (const int64_t most = options.verifyTokens.value_or(maxVerifyTokens);
        options.verify == VerifyStates::lazy && most > options.deferWrites)
      return llvm::createStringError(llvm::formatv(
          "{0}: deferred writes expect room for the tokens of a verify, up to "
          "{1} of a sequence, but got {2} pending tokens",
          config.name, most, options.deferWrites));
    if (options.writeSlots || options.decodeInitial)
      return llvm::createStringError(llvm::formatv(
          "{0}: deferred writes expect entries without {1}", config.name,
          options.writeSlots ? "write_slots" : "has_initial in decode"));
  }
  if (options.pending == FloatKind::bf16)
    return llvm::createStringError(llvm::formatv(
        "{0}: pending tokens expect f32 or f16, but got bf16", config.name));
  if (options.pending == FloatKind::f16) {
    if (options.deferWrites == 0)
      return llvm::createStringError(llvm::formatv(
          "{0}: pending tokens in f16 expect deferred writes, but got none",
          config.name));
    // A key that is rounded makes the step of a token longer than twice.
    if (config.doubleBeta)
      return llvm::createStringError(llvm::formatv(
          "{0}: pending tokens in f16 expect a write strength up to 1, but "
          "that of its model is up to 2",
          config.name));
    // Keys have no scale: f16 would lose small ones, and large ones overflow.
    if (isBare && !options.l2norm)
      return llvm::createStringError(llvm::formatv(
          "{0}: pending tokens in f16 expect keys of unit length, but the "
          "layout {1} takes them as they are without l2norm",
          config.name, stringify(layout)));
  }
  if (options.statePlanes != 0) {
    const bool isLazy = options.verify == VerifyStates::lazy;
    if (options.verify != VerifyStates::none && !isLazy)
      return llvm::createStringError(llvm::formatv(
          "{0}: states in planes expect verify none or lazy, but got one that "
          "writes states after tokens",
          config.name));
    if (options.stateLayout != StateLayout::vk)
      return llvm::createStringError(llvm::formatv(
          "{0}: states in planes expect the state layout vk, but got {1}",
          config.name, stringify(options.stateLayout)));
    if (options.readsUpper && options.deferWrites == 0)
      return llvm::createStringError(llvm::formatv(
          "{0}: decode that reads an upper plane expects deferred writes, but "
          "got none",
          config.name));
    // Each step would lose half a step of 127 per row.
    if (options.statePlanes == 1 && options.deferWrites == 0)
      return llvm::createStringError(llvm::formatv(
          "{0}: states in one plane expect deferred writes, but got none",
          config.name));
  }
  if (options.combineMaps && options.statePlanes != 0)
    return llvm::createStringError(
        llvm::formatv("{0}: maps of tokens expect states of numbers, but got "
                      "{1}",
                      config.name, getStateName(options)));
  if (isBare && options.verify == VerifyStates::lazy)
    return llvm::createStringError(llvm::formatv(
        "{0}: the layout {1} expects verify none, slots or tree, but got "
        "lazy: inputs of a convolution are what is kept of pending tokens",
        config.name, stringify(layout)));
  if (options.mixedBatch && options.verify == VerifyStates::none)
    return llvm::createStringError(llvm::formatv(
        "{0}: a mixed batch expects verify slots, tree, buffer or lazy, but "
        "got none",
        config.name));
  if (options.normConstants && options.outputs == EntryOutputs::core)
    return llvm::createStringError(llvm::formatv(
        "{0}: norm constants expect the outputs norm or both, but got core",
        config.name));
  if (options.l2norm && !isBare)
    return llvm::createStringError(llvm::formatv(
        "{0}: l2norm expects the layout gated or ready, but got {1}, whose "
        "keys and queries are normalised always",
        config.name, stringify(layout)));
  return llvm::Error::success();
}

llvm::Expected<OwningOpRef<ModuleOp>>
gdn::buildEntryModule(MLIRContext &context, const ModelConfig &config,
                      ArrayRef<EntryOptions> variants) {
  if (llvm::Error error = checkModelConfig(config))
    return std::move(error);
  context.loadDialect<GDNDialect, func::FuncDialect>();
  OpBuilder builder(&context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(builder.getUnknownLoc());
  builder.setInsertionPointToEnd(module->getBody());

  llvm::StringSet<> suffixes;
  for (const EntryOptions &options : variants) {
    if (llvm::Error error = checkVariant(config, options))
      return std::move(error);
    std::string suffix;
    if (variants.size() > 1)
      suffix = llvm::formatv("_{0}_{1}", stringify(options.io),
                             getStateName(options));
    if (!suffixes.insert(suffix).second)
      return llvm::createStringError(llvm::formatv(
          "{0}: expects each pair of io and state types once, "
          "but got {1} and {2} twice",
          config.name, stringify(options.io), getStateName(options)));
    EntryBuilder(builder, config, options, Phase::prefill)
        .build("prefill" + suffix);
    EntryBuilder(builder, config, options, Phase::decode)
        .build("decode" + suffix);
    if (options.verify != VerifyStates::none)
      EntryBuilder(builder, config, options, Phase::verify)
          .build("verify" + suffix);
    if (options.verify == VerifyStates::lazy ||
        options.verify == VerifyStates::buffer || options.deferWrites)
      EntryBuilder(builder, config, options, Phase::commit)
          .build("commit" + suffix);
    if (options.mixedBatch)
      buildPlanEntry(builder, config, options, suffix);
    if (options.combineMaps)
      buildMapEntries(builder, config, options, suffix);
    buildPoolEntries(builder, config, options, suffix);
  }
  return module;
}
