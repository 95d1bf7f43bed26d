// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Generated entries: every choice gives a module that verifies and reads back,
// and choices that contradict each other are errors.
#include "gdn/Model/EntryBuilder.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <gmock/gmock.h>

using namespace gdn;
using namespace mlir;

namespace {

ModelConfig preset(llvm::StringRef name) {
  return llvm::cantFail(presetModelConfig(name));
}

/// The names of an entry's parameters, symbol arguments included.
std::vector<std::string> parameterNames(func::FuncOp func) {
  std::vector<std::string> names;
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    names.push_back(func.getArgAttrOfType<StringAttr>(i, "gdn.name").str());
  for (unsigned i = 0; i < func.getNumResults(); ++i)
    names.push_back(func.getResultAttrOfType<StringAttr>(i, "gdn.name").str());
  return names;
}

/// Builds, verifies, prints and parses again; the entry called `name`.
class EntryBuilderTest : public testing::Test {
protected:
  void build(const ModelConfig &config, ArrayRef<EntryOptions> variants) {
    auto built = buildEntryModule(context, config, variants);
    ASSERT_TRUE(bool(built)) << llvm::toString(built.takeError());
    ASSERT_TRUE(succeeded(verify(**built)));
    std::string text;
    llvm::raw_string_ostream stream(text);
    (*built)->print(stream, OpPrintingFlags().printNameLocAsPrefix());
    module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module) << text;
  }
  std::vector<std::string> names(StringRef entry) {
    auto func = module->lookupSymbol<func::FuncOp>(entry);
    return func ? parameterNames(func) : std::vector<std::string>();
  }
  std::string errorOf(const ModelConfig &config,
                      ArrayRef<EntryOptions> variants) {
    auto built = buildEntryModule(context, config, variants);
    return built ? "no error" : llvm::toString(built.takeError());
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(EntryBuilderTest, PackedProjections) {
  build(preset("qwen3-next-80b-a3b"), EntryOptions());
  EXPECT_THAT(names("prefill"),
              testing::ElementsAre("Hk", "Hv", "qkvz", "ba", "conv_weight",
                                   "A_log", "dt_bias", "norm_weight",
                                   "cu_seqlens", "slots", "conv_pool",
                                   "state_pool", "out"));
  EXPECT_THAT(names("decode"),
              testing::ElementsAre("Hk", "Hv", "qkvz", "ba", "conv_weight",
                                   "A_log", "dt_bias", "norm_weight", "slots",
                                   "conv_pool", "state_pool", "out"));
}

TEST_F(EntryBuilderTest, EveryOptionalParameter) {
  EntryOptions options;
  options.layout = InputLayout::split;
  options.outputs = EntryOutputs::both;
  options.writeSlots = options.hasInitial = options.slots64 = true;
  options.checkpoints = true;
  build(preset("qwen3.5-4b"), options);
  EXPECT_THAT(names("prefill"),
              testing::ElementsAre(
                  "Hk", "Hv", "qkv", "z", "b", "a", "conv_weight", "A_log",
                  "dt_bias", "norm_weight", "cu_seqlens", "slots",
                  "write_slots", "has_initial", "cu_checkpoints",
                  "checkpoint_tokens", "checkpoint_slots", "conv_pool",
                  "state_pool", "core", "out"));
  // One token has nothing inside.
  EXPECT_THAT(names("decode"),
              testing::AllOf(testing::Contains("write_slots"),
                             testing::Not(testing::Contains("has_initial")),
                             testing::Not(testing::Contains(
                                 testing::HasSubstr("checkpoint")))));
}

TEST_F(EntryBuilderTest, PoolEntries) {
  EntryOptions options;
  options.slots64 = true;
  options.convState = FloatKind::f32;
  build(preset("qwen3.5-4b"), options);
  EXPECT_THAT(
      names("copy_slots"),
      testing::ElementsAre("slots", "write_slots", "conv_pool", "state_pool"));
  EXPECT_THAT(names("zero_slots"),
              testing::ElementsAre("slots", "conv_pool", "state_pool"));
  auto typesOf = [&](StringRef entry) {
    return module->lookupSymbol<func::FuncOp>(entry).getArgumentTypes();
  };
  // Ids and pools have the types that decode's have.
  EXPECT_TRUE(
      llvm::equal(typesOf("zero_slots"), typesOf("decode").take_back(3)));
}

TEST_F(EntryBuilderTest, VerifyHasSlotsForEveryToken) {
  EntryOptions options;
  options.writeSlots = options.hasInitial = options.checkpoints = true;
  build(preset("qwen3.5-4b"), options);
  EXPECT_TRUE(names("verify").empty());
  options.verify = VerifyStates::slots;
  build(preset("qwen3.5-4b"), options);
  EXPECT_THAT(names("verify"),
              testing::ElementsAre("Hk", "Hv", "qkvz", "ba", "conv_weight",
                                   "A_log", "dt_bias", "norm_weight",
                                   "cu_seqlens", "token_slots", "num_accepted",
                                   "conv_pool", "state_pool", "out"));
  EXPECT_FALSE(names("decode").empty());
  options.verify = VerifyStates::tree;
  build(preset("qwen3.5-4b"), options);
  EXPECT_THAT(names("verify"),
              testing::ElementsAre(
                  "Hk", "Hv", "qkvz", "ba", "conv_weight", "A_log", "dt_bias",
                  "norm_weight", "cu_seqlens", "slots", "token_slots",
                  "parents", "conv_pool", "state_pool", "out"));
}

// Decode keeps tokens pending, and an entry commit takes no counts.
TEST_F(EntryBuilderTest, DeferredWrites) {
  EntryOptions options;
  options.deferWrites = 16;
  build(preset("qwen3.5-4b"), options);
  EXPECT_THAT(names("decode"),
              testing::ElementsAre("Hk", "Hv", "qkvz", "ba", "conv_weight",
                                   "A_log", "dt_bias", "norm_weight", "slots",
                                   "conv_pool", "state_pool", "pending_keys",
                                   "pending_deltas", "pending_decays",
                                   "pending_counts", "out"));
  EXPECT_THAT(names("commit"),
              testing::ElementsAre("slots", "state_pool", "pending_keys",
                                   "pending_deltas", "pending_decays",
                                   "pending_counts"));
  // A decay per channel: no other pools, and decays of rank 4.
  build(preset("kimi-linear-48b-a3b"), options);
  EXPECT_THAT(names("commit"),
              testing::ElementsAre("slots", "state_pool", "pending_keys",
                                   "pending_deltas", "pending_decays",
                                   "pending_counts"));
  auto expectError = [&](const char *model, const std::string &why) {
    EXPECT_EQ(errorOf(preset(model), options), model + (": " + why));
  };
  options.deferWrites = 33;
  expectError("qwen3.5-4b",
              "deferred writes expect 2 to 32 pending tokens, but got 33");
  options.deferWrites = 2;
  options.writeSlots = true;
  expectError("qwen3.5-4b",
              "deferred writes expect entries without write_slots");
  options.writeSlots = false;
  options.decodeInitial = true;
  expectError("qwen3.5-4b", "deferred writes expect entries without "
                            "has_initial in decode");
  options.verify = VerifyStates::slots;
  expectError("qwen3.5-4b",
              "deferred writes expect verify none or lazy, but got one that "
              "writes states after tokens");
  options.verify = VerifyStates::lazy;
  options.deferWrites = 7;
  expectError("qwen3.5-4b",
              "deferred writes expect room for the tokens of a verify, up to 8 "
              "of a sequence, but got 7 pending tokens");
}

// A verify counts what is accepted, and keeps pending tokens of several steps.
TEST_F(EntryBuilderTest, PendingTokensInF16) {
  EntryOptions options;
  options.deferWrites = 16;
  options.pending = FloatKind::f16;
  build(preset("qwen3.5-4b"), options);
  for (StringRef entry : {"decode", "commit"}) {
    EXPECT_THAT(names(entry),
                testing::IsSupersetOf({"pending_keys", "pending_deltas",
                                       "pending_decays", "pending_scales"}));
  }
  EXPECT_THAT(names("prefill"),
              testing::Not(testing::Contains("pending_scales")));
  auto expectError = [&](StringRef name, StringRef message) {
    EXPECT_EQ(errorOf(preset(name), options), (name + ": " + message).str());
  };
  expectError("olmo-hybrid-7b",
              "pending tokens in f16 expect a write strength up to 1, but that "
              "of its model is up to 2");
  options.layout = InputLayout::ready;
  options.outputs = EntryOutputs::core;
  expectError(
      "qwen3.5-4b",
      "pending tokens in f16 expect keys of unit length, but the layout "
      "ready takes them as they are without l2norm");
  options.l2norm = true;
  build(preset("qwen3.5-4b"), options);
  options.pending = FloatKind::bf16;
  expectError("qwen3.5-4b", "pending tokens expect f32 or f16, but got bf16");
  options.pending = FloatKind::f16;
  options.deferWrites = 0;
  expectError("qwen3.5-4b", "pending tokens in f16 expect deferred writes, but "
                            "got none");
}

TEST_F(EntryBuilderTest, DeferredVerify) {
  EntryOptions options;
  options.deferWrites = 16;
  options.verify = VerifyStates::lazy;
  build(preset("qwen3.5-4b"), options);
  EXPECT_THAT(names("verify"),
              testing::ElementsAre(
                  "Hk", "Hv", "S", "qkvz", "ba", "conv_weight", "A_log",
                  "dt_bias", "norm_weight", "cu_seqlens", "slots",
                  "num_accepted", "conv_pool", "state_pool", "pending_keys",
                  "pending_deltas", "pending_decays", "pending_counts", "out"));
  EXPECT_THAT(names("commit"),
              testing::ElementsAre("S", "slots", "num_accepted", "conv_pool",
                                   "state_pool", "pending_keys",
                                   "pending_deltas", "pending_decays",
                                   "pending_counts"));
}

// Counts are given where verify has them, and results are those that launches
// of the kind of verify read.
TEST_F(EntryBuilderTest, PlanOfMixedBatches) {
  EntryOptions options;
  options.mixedBatch = true;
  EXPECT_EQ(errorOf(preset("qwen3.5-4b"), options),
            "qwen3.5-4b: a mixed batch expects verify slots, tree, buffer or "
            "lazy, but got none");
  using Names = std::vector<std::string>;
  auto expectPlan = [&](VerifyStates verify, const Names &counts,
                        const Names &verified, const Names &committed) {
    SCOPED_TRACE(int(verify));
    Names expected = {"T",        "S",           "query_start_loc",
                      "seq_lens", "block_table", "num_drafts"};
    for (const Names &more :
         {counts, Names{"limits", "is_prefill", "verify_cu_seqlens"}, verified,
          Names{"prefill_cu_seqlens", "prefill_slots", "prefill_write_slots",
                "prefill_has_initial", "prefill_taken"},
          committed})
      expected.insert(expected.end(), more.begin(), more.end());
    options.verify = verify;
    build(preset("qwen3.5-4b"), options);
    EXPECT_EQ(names("plan"), expected);
    EXPECT_FALSE(names("prefill").empty());
  };
  const Names counts = {"num_accepted"};
  const Names commits = {"commit_slots", "commit_accepted"};
  expectPlan(VerifyStates::slots, counts, {"verify_accepted"}, {});
  expectPlan(VerifyStates::tree, {}, {"verify_slots"}, {});
  expectPlan(VerifyStates::lazy, counts, {"verify_slots", "verify_accepted"},
             commits);
  expectPlan(VerifyStates::buffer, counts, {"verify_slots"}, commits);
  // Slots that count pending tokens are said in a fact of the entry.
  options.deferWrites = 16;
  expectPlan(VerifyStates::lazy, counts, {"verify_slots", "verify_accepted"},
             commits);
  options.deferWrites = 0;
  options.mixedBatch = false;
  build(preset("qwen3.5-4b"), options);
  EXPECT_TRUE(names("plan").empty());
}

// The table and the slots made of it have the type of slots; every element type
// of entries has a plan.
TEST_F(EntryBuilderTest, PlansHaveTheTypesOfSlots) {
  EntryOptions narrow, wide;
  narrow.mixedBatch = wide.mixedBatch = true;
  narrow.verify = wide.verify = VerifyStates::lazy;
  wide.slots64 = true;
  wide.io = FloatKind::f16;
  build(preset("qwen3.5-4b"), {narrow, wide});
  for (auto [entry, bits] :
       {std::pair("plan_bf16_f32", 32u), std::pair("plan_f16_f32", 64u)}) {
    auto plan = module->lookupSymbol<func::FuncOp>(entry);
    ASSERT_TRUE(plan) << entry;
    auto expectBits = [&, bits = bits](StringAttr name, Type type) {
      SCOPED_TRACE(name.str());
      const bool isSlots =
          name == "block_table" || name.strref().ends_with("slots");
      const bool isFlag = llvm::is_contained(
          {"limits", "is_prefill", "prefill_has_initial", "prefill_taken"},
          name.strref());
      EXPECT_EQ(getElementTypeOrSelf(type).getIntOrFloatBitWidth(),
                isSlots  ? bits
                : isFlag ? 1u
                         : 32u);
    };
    for (auto [i, type] : llvm::enumerate(plan.getArgumentTypes()))
      if (!type.isIndex())
        expectBits(plan.getArgAttrOfType<StringAttr>(i, "gdn.name"), type);
    for (auto [i, type] : llvm::enumerate(plan.getResultTypes()))
      expectBits(plan.getResultAttrOfType<StringAttr>(i, "gdn.name"), type);
  }
}

TEST_F(EntryBuilderTest, CoreAloneNeedsNoGate) {
  EntryOptions options;
  options.outputs = EntryOutputs::core;
  build(preset("olmo-hybrid-7b"), options);
  EXPECT_THAT(names("decode"),
              testing::ElementsAre("Hk", "Hv", "q", "k", "v", "b", "a",
                                   "conv_weight", "A_log", "dt_bias", "slots",
                                   "conv_pool", "state_pool", "core"));
}

// The rule with its gates, behind a convolution of the caller's.
TEST_F(EntryBuilderTest, GatedInputs) {
  EntryOptions options;
  options.layout = InputLayout::gated;
  options.outputs = EntryOutputs::core;
  options.verify = VerifyStates::buffer;
  build(preset("qwen3-next-80b-a3b"), options);
  EXPECT_THAT(names("decode"),
              testing::ElementsAre("Hk", "Hv", "q", "k", "v", "b", "a", "A_log",
                                   "dt_bias", "slots", "state_pool", "core"));
  EXPECT_THAT(names("commit"),
              testing::ElementsAre("slots", "token_slots", "num_accepted",
                                   "state_pool", "token_state_pool"));
  EXPECT_THAT(names("copy_slots"),
              testing::ElementsAre("slots", "write_slots", "state_pool"));
  module->walk([&](Conv1dOp conv) { ADD_FAILURE() << "a convolution"; });
  options.verify = VerifyStates::none;
  options.outputs = EntryOutputs::norm;
  EXPECT_EQ(errorOf(preset("qwen3.5-4b"), options),
            "qwen3.5-4b: the layout gated expects the outputs core, but got "
            "norm");
}

TEST_F(EntryBuilderTest, ReadyInputs) {
  EntryOptions options;
  options.layout = InputLayout::ready;
  options.outputs = EntryOutputs::core;
  options.hasInitial = true;
  build(preset("qwen3-next-80b-a3b"), options);
  EXPECT_THAT(names("prefill"),
              testing::ElementsAre("Hk", "Hv", "q", "k", "v", "log_decay",
                                   "beta", "cu_seqlens", "slots", "has_initial",
                                   "state_pool", "core"));
  EXPECT_THAT(names("decode"),
              testing::ElementsAre("Hk", "Hv", "q", "k", "v", "log_decay",
                                   "beta", "slots", "state_pool", "core"));
  auto countNorms = [&] {
    int count = 0;
    module->walk([&](L2NormOp) { ++count; });
    return count;
  };
  EXPECT_EQ(countNorms(), 0);
  options.l2norm = true;
  build(preset("kimi-linear-48b-a3b"), options);
  EXPECT_EQ(countNorms(), 4);

  options.outputs = EntryOutputs::norm;
  EXPECT_EQ(errorOf(preset("qwen3.5-4b"), options),
            "qwen3.5-4b: the layout ready expects the outputs core, but got "
            "norm");
  options.outputs = EntryOutputs::core;
  options.verify = VerifyStates::lazy;
  EXPECT_EQ(errorOf(preset("qwen3.5-4b"), options),
            "qwen3.5-4b: the layout ready expects verify none, slots or tree, "
            "but got lazy: inputs of a convolution are what is kept of pending "
            "tokens");
  options.verify = VerifyStates::none;
  options.layout = InputLayout::flat;
  EXPECT_EQ(errorOf(preset("qwen3.5-4b"), options),
            "qwen3.5-4b: l2norm expects the layout gated or ready, but got "
            "flat, whose "
            "keys and queries are normalised always");
}

TEST_F(EntryBuilderTest, EveryLayoutTypeAndOutput) {
  for (InputLayout layout : {InputLayout::interleaved, InputLayout::flat,
                             InputLayout::split, InputLayout::separate})
    for (FloatKind io : {FloatKind::f32, FloatKind::bf16, FloatKind::f16})
      for (EntryOutputs outputs :
           {EntryOutputs::core, EntryOutputs::norm, EntryOutputs::both}) {
        EntryOptions options;
        options.layout = layout;
        options.io = io;
        options.state = io;
        options.outputs = outputs;
        build(preset("olmo-hybrid-7b"), options);
      }
}

TEST_F(EntryBuilderTest, DecayPerChannelHasAThirdDimension) {
  build(preset("kimi-linear-48b-a3b"), EntryOptions());
  auto func = module->lookupSymbol<func::FuncOp>("decode");
  ASSERT_TRUE(func);
  GatesOp gates;
  func.walk([&](GatesOp op) { gates = op; });
  ASSERT_TRUE(gates);
  EXPECT_EQ(gates.getA().getType().getRank(), 3);
  EXPECT_EQ(gates.getDtBias().getType().getRank(), 2);
}

TEST_F(EntryBuilderTest, BoundOfTheDecay) {
  build(preset("kimi-k3"), EntryOptions());
  for (StringRef name : {"prefill", "decode"}) {
    auto func = module->lookupSymbol<func::FuncOp>(name);
    ASSERT_TRUE(func);
    GatesOp gates;
    func.walk([&](GatesOp op) { gates = op; });
    ASSERT_TRUE(gates && gates.getLowerBound());
    EXPECT_EQ(gates.getLowerBound()->convertToDouble(), -5);
    auto facts = func->getAttrOfType<DictionaryAttr>("gdn.facts");
    EXPECT_EQ(facts.getAs<StringAttr>("decay_bound").getValue(), "-5");
  }
  // Where decays are ready it does not matter, and others have none.
  EntryOptions ready;
  ready.layout = InputLayout::ready;
  ready.outputs = EntryOutputs::core;
  build(preset("kimi-k3"), ready);
  EXPECT_FALSE(module->lookupSymbol<func::FuncOp>("decode")
                   ->getAttrOfType<DictionaryAttr>("gdn.facts")
                   .get("decay_bound"));
  build(preset("kimi-linear-48b-a3b"), EntryOptions());
  EXPECT_FALSE(module->lookupSymbol<func::FuncOp>("decode")
                   ->getAttrOfType<DictionaryAttr>("gdn.facts")
                   .get("decay_bound"));
}

TEST_F(EntryBuilderTest, SeveralTypesGetSuffixes) {
  EntryOptions bf16, f16;
  f16.io = FloatKind::f16;
  build(preset("qwen3.5-4b"), {bf16, f16});
  EXPECT_FALSE(names("prefill_bf16_f32").empty());
  EXPECT_FALSE(names("decode_f16_f32").empty());
  EXPECT_TRUE(names("decode").empty());
}

TEST_F(EntryBuilderTest, ContradictionsAreErrors) {
  EntryOptions options;
  EXPECT_EQ(errorOf(preset("qwen3.5-4b"), {options, options}),
            "qwen3.5-4b: expects each pair of io and state types once, but "
            "got bf16 and f32 twice");
  options.layout = InputLayout::flat;
  EXPECT_EQ(errorOf(preset("kimi-linear-48b-a3b"), options),
            "kimi-linear-48b-a3b: a decay per channel expects the layout "
            "separate, gated or ready, but got flat");
}

} // namespace
