// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading config.json: each family of models, and every kind of mistake.
#include "gdn/Model/ModelConfig.h"

#include <gmock/gmock.h>

using namespace gdn;

namespace {

/// A configuration of Qwen's kind with `extra` keys, which win over its own.
std::string qwen(llvm::StringRef extra = "") {
  return ("{\"model_type\": \"qwen3_next\", \"hidden_size\": 2048, "
          "\"num_hidden_layers\": 48, \"linear_num_key_heads\": 16, "
          "\"linear_num_value_heads\": 32, \"linear_key_head_dim\": 128, "
          "\"linear_value_head_dim\": 128, \"linear_conv_kernel_dim\": 4, "
          "\"hidden_act\": \"silu\", \"rms_norm_eps\": 1e-06" +
          extra + "}")
      .str();
}

/// `text` with the first `from` replaced.
std::string replaced(std::string text, llvm::StringRef from,
                     llvm::StringRef to) {
  size_t at = text.find(from.str());
  EXPECT_NE(at, std::string::npos);
  return text.replace(at, from.size(), to.str());
}

ModelConfig parsed(llvm::StringRef text) {
  llvm::Expected<ModelConfig> config = parseModelConfig(text, "config.json");
  if (!config) {
    ADD_FAILURE() << llvm::toString(config.takeError());
    return {};
  }
  return *config;
}

std::string errorOf(llvm::StringRef text) {
  llvm::Expected<ModelConfig> config = parseModelConfig(text, "config.json");
  if (config)
    return "no error";
  return llvm::toString(config.takeError());
}

TEST(ModelConfig, Qwen3NextPacksByKeyHead) {
  ModelConfig config = parsed(qwen(", \"full_attention_interval\": 4"));
  EXPECT_EQ(config.modelType, "qwen3_next");
  EXPECT_EQ(config.layout, InputLayout::interleaved);
  EXPECT_EQ(config.keyHeads, 16);
  EXPECT_EQ(config.valueHeads, 32);
  EXPECT_EQ(config.keyDim, 128);
  EXPECT_EQ(config.convWidth, 4);
  EXPECT_EQ(config.numGdnLayers, 36);
  EXPECT_EQ(config.gate, Activation::silu);
  EXPECT_FALSE(config.doubleBeta);
  EXPECT_DOUBLE_EQ(config.normEps, 1e-6);
  EXPECT_FALSE(config.io.has_value());
  EXPECT_FALSE(config.state.has_value());
}

TEST(ModelConfig, TextConfigStandsForTheWhole) {
  std::string inner =
      replaced(qwen(", \"mamba_ssm_dtype\": \"float32\", \"torch_dtype\": "
                    "\"bfloat16\", \"layer_types\": [\"linear_attention\", "
                    "\"full_attention\", \"linear_attention\"]"),
               "qwen3_next", "qwen3_5_text");
  inner =
      replaced(inner, "\"num_hidden_layers\": 48", "\"num_hidden_layers\": 3");
  ModelConfig config =
      parsed("{\"model_type\": \"qwen3_5\", \"text_config\": " + inner + "}");
  EXPECT_EQ(config.modelType, "qwen3_5_text");
  EXPECT_EQ(config.layout, InputLayout::flat);
  EXPECT_EQ(config.io, FloatKind::bf16);
  EXPECT_EQ(config.state, FloatKind::f32);
  EXPECT_EQ(config.numGdnLayers, 2);
}

TEST(ModelConfig, NestedTypeMayStandOutside) {
  std::string inner = replaced(qwen(), "\"model_type\": \"qwen3_next\", ", "");
  ModelConfig config = parsed(
      "{\"model_type\": \"qwen3_5_moe\", \"text_config\": " + inner + "}");
  EXPECT_EQ(config.modelType, "qwen3_5_moe");
}

// Some nested configurations leave types to the outer one, too.
TEST(ModelConfig, TypesMayStandOutside) {
  std::string outside = "{\"model_type\": \"qwen3_5\", \"dtype\": "
                        "\"bfloat16\", \"mamba_ssm_dtype\": \"float32\", "
                        "\"text_config\": ";
  ModelConfig config = parsed(outside + qwen() + "}");
  EXPECT_EQ(config.io, FloatKind::bf16);
  EXPECT_EQ(config.state, FloatKind::f32);
  config = parsed(outside + qwen(", \"dtype\": \"float16\"") + "}");
  EXPECT_EQ(config.io, FloatKind::f16);
  EXPECT_EQ(errorOf("{\"model_type\": \"qwen3_5\", \"dtype\": \"int8\", "
                    "\"text_config\": " +
                    qwen() + "}"),
            "config.json: dtype: expects float32, bfloat16, float16 or auto, "
            "but got \"int8\"");
}

// Python writes words that JSON does not have.
TEST(ModelConfig, NumbersThatAreNotFinite) {
  ModelConfig config =
      parsed(qwen(", \"rope\": [NaN, -Infinity, Infinity], \"x\": \"NaN\""));
  EXPECT_EQ(config.keyHeads, 16);
  EXPECT_EQ(errorOf(replaced(qwen(), "1e-06", "NaN")),
            "config.json: rms_norm_eps: expects a positive number, but got "
            "null");
}

TEST(ModelConfig, SigmoidGate) {
  std::string text = replaced(qwen(", \"output_gate_type\": \"sigmoid\""),
                              "qwen3_next", "qwen4_exp");
  EXPECT_EQ(parsed(text).gate, Activation::sigmoid);
}

TEST(ModelConfig, OlmoDoublesBetaAndFixesEps) {
  std::string text = replaced(qwen(", \"linear_allow_neg_eigval\": true"),
                              "qwen3_next", "olmo_hybrid");
  ModelConfig config = parsed(text);
  EXPECT_TRUE(config.doubleBeta);
  EXPECT_DOUBLE_EQ(config.normEps, 1e-5);
  EXPECT_EQ(config.layout, InputLayout::separate);
}

TEST(ModelConfig, KimiDecaysPerChannel) {
  ModelConfig config =
      parsed("{\"model_type\": \"kimi_linear\", \"hidden_size\": 2304, "
             "\"num_hidden_layers\": 27, \"rms_norm_eps\": 1e-05, "
             "\"linear_attn_config\": {\"num_heads\": 32, \"head_dim\": 128, "
             "\"short_conv_kernel_size\": 4, \"kda_layers\": [1, 2, 3]}}");
  EXPECT_TRUE(config.perChannelDecay);
  EXPECT_EQ(config.gate, Activation::sigmoid);
  EXPECT_EQ(config.keyHeads, 32);
  EXPECT_EQ(config.valueHeads, 32);
  EXPECT_EQ(config.numGdnLayers, 3);
}

TEST(ModelConfig, KimiWithABound) {
  // As in Kimi K3, whose text model stands inside.
  ModelConfig config = parsed(
      "{\"model_type\": \"kimi_k3\", \"text_config\": {\"model_type\": "
      "\"kimi_linear\", \"hidden_size\": 7168, \"num_hidden_layers\": 93, "
      "\"rms_norm_eps\": 1e-05, \"linear_attn_config\": {\"num_heads\": 96, "
      "\"head_dim\": 128, \"short_conv_kernel_size\": 4, "
      "\"gate_lower_bound\": -5.0, \"use_full_rank_gate\": true}}}");
  EXPECT_EQ(config.modelType, "kimi_linear");
  EXPECT_EQ(config.keyHeads, 96);
  EXPECT_EQ(config.decayBound, -5);
}

static std::string kimiAsNamed(llvm::StringRef extra = "") {
  return ("{\"model_type\": \"kimi_linear\", \"hidden_size\": 2304, "
          "\"num_hidden_layers\": 3, \"rms_norm_eps\": 1e-05, "
          "\"linear_num_heads\": 32, \"linear_head_dim\": 128, "
          "\"linear_conv_kernel_dim\": 4" +
          extra + "}")
      .str();
}

TEST(ModelConfig, KimiWithTransformersNames) {
  ModelConfig config =
      parsed(kimiAsNamed(", \"layer_types\": [\"linear_attention\", "
                         "\"full_attention\", \"linear_attention\"]"));
  EXPECT_EQ(config.numGdnLayers, 2);
  EXPECT_EQ(config.valueHeads, 32);
  EXPECT_FALSE(config.decayBound);
}

namespace {
std::string glm(llvm::StringRef extra = "") {
  return ("{\"model_type\": \"glm5_next_text\", \"hidden_size\": 4096, "
          "\"num_hidden_layers\": 45, \"rms_norm_eps\": 1e-05, "
          "\"linear_num_heads\": 64, \"linear_head_dim\": 128, "
          "\"linear_conv_kernel_dim\": 4" +
          extra + "}")
      .str();
}

std::string ling(llvm::StringRef extra = "") {
  return ("{\"model_type\": \"bailing_hybrid\", \"hidden_size\": 2560, "
          "\"num_hidden_layers\": 42, \"rms_norm_eps\": 1e-06, "
          "\"num_attention_heads\": 32, \"head_dim\": 128, "
          "\"layer_group_size\": 6, \"short_conv_kernel_size\": 4" +
          extra + "}")
      .str();
}
} // namespace

TEST(ModelConfig, GlmHasABoundUnlessItIsNull) {
  ModelConfig config = parsed(glm());
  EXPECT_EQ(config.numGdnLayers, 34); // number % 4 is not 3
  EXPECT_EQ(config.decayBound, -5);
  EXPECT_TRUE(config.perChannelDecay);
  EXPECT_EQ(config.gate, Activation::sigmoid);
  EXPECT_EQ(parsed(glm(", \"linear_lower_bound\": -2.5")).decayBound, -2.5);
  EXPECT_FALSE(parsed(glm(", \"linear_lower_bound\": null")).decayBound);
}

TEST(ModelConfig, LingCountsGroups) {
  ModelConfig config = parsed(ling());
  EXPECT_EQ(config.numGdnLayers, 35);
  EXPECT_EQ(config.decayBound, -5);
  EXPECT_EQ(config.valueHeads, 32);
  EXPECT_FALSE(parsed(ling(", \"kda_safe_gate\": false")).decayBound);
  EXPECT_EQ(parsed(ling(", \"kda_lower_bound\": -1")).decayBound, -1);
}

// transformers writes the size of the attention layers' rotary part as
// head_dim, and that of KDA beside it.
TEST(ModelConfig, LingAsTransformersWritesIt) {
  std::string text =
      replaced(ling(", \"linear_num_heads\": 16, \"linear_head_dim\": 128, "
                    "\"linear_conv_kernel_dim\": 3"),
               "\"head_dim\": 128, \"layer", "\"head_dim\": 64, \"layer");
  ModelConfig config = parsed(text);
  EXPECT_EQ(config.keyDim, 128);
  EXPECT_EQ(config.valueHeads, 16);
  EXPECT_EQ(config.convWidth, 3);
}

TEST(ModelConfig, LayersByDefaultAreThoseOfTransformers) {
  EXPECT_EQ(parsed(qwen()).numGdnLayers, 36);
  EXPECT_EQ(parsed(replaced(kimiAsNamed(), "\"num_hidden_layers\": 3",
                            "\"num_hidden_layers\": 27"))
                .numGdnLayers,
            21);
}

TEST(ModelConfig, GlmTakesTheBoundOfTheDictionaryFirst) {
  auto bound = [](llvm::StringRef inside, llvm::StringRef beside) {
    return parsed(glm((", \"linear_attn_config\": {\"num_heads\": 64, "
                       "\"head_dim\": 128, \"short_conv_kernel_size\": 4" +
                       inside + "}" + beside)
                          .str()))
        .decayBound;
  };
  EXPECT_EQ(bound("", ""), -5);
  EXPECT_EQ(bound(", \"safe_gate\": false", ""), -5);
  EXPECT_EQ(bound("", ", \"linear_lower_bound\": -2.5"), -2.5);
  EXPECT_EQ(bound(", \"gate_lower_bound\": -1", ""), -1);
  EXPECT_EQ(bound("", ", \"linear_lower_bound\": null"), -5);
  EXPECT_FALSE(bound(", \"safe_gate\": false, \"gate_lower_bound\": null", ""));
}

TEST(ModelConfig, EveryPresetIsSound) {
  for (llvm::StringRef name : presetNames()) {
    llvm::Expected<ModelConfig> config = presetModelConfig(name);
    ASSERT_TRUE(bool(config)) << name.str();
    llvm::Error error = checkModelConfig(*config);
    EXPECT_FALSE(bool(error)) << llvm::toString(std::move(error));
  }
}

namespace {
std::string kimi(llvm::StringRef linear, llvm::StringRef extra = "") {
  return ("{\"model_type\": \"kimi_linear\", \"hidden_size\": 2304, "
          "\"num_hidden_layers\": 4, \"rms_norm_eps\": 1e-05, "
          "\"linear_attn_config\": {\"num_heads\": 32, \"head_dim\": 128, "
          "\"short_conv_kernel_size\": 4" +
          linear + "}" + extra + "}")
      .str();
}
} // namespace

// What a layer here does not compute is refused, not left out.
TEST(ModelConfigErrors, MathematicsThatIsNotThere) {
  EXPECT_EQ(errorOf(kimi("", ", \"linear_lower_bound\": -5")),
            "config.json: linear_lower_bound: expects nothing: models of this "
            "type have a gate_lower_bound in linear_attn_config, but got -5");
  EXPECT_EQ(
      errorOf(qwen(", \"linear_allow_neg_eigval\": true")),
      "config.json: linear_allow_neg_eigval: expects false, the only form "
      "that is implemented, but got true");
  EXPECT_EQ(errorOf(qwen(", \"linear_allow_neg_eigval\": false")), "no error");
  std::string olmo = replaced(qwen(", \"linear_allow_neg_eigval\": true, "
                                   "\"linear_use_gate\": false"),
                              "qwen3_next", "olmo_hybrid");
  EXPECT_EQ(errorOf(olmo), "config.json: linear_use_gate: expects true, the "
                           "only form that is implemented, but got false");
}

TEST(ModelConfigErrors, Bounds) {
  EXPECT_EQ(errorOf(kimi(", \"gate_lower_bound\": null")), "no error");
  for (const char *bound : {"0", "-5.5", "3"})
    EXPECT_EQ(errorOf(kimi(std::string(", \"gate_lower_bound\": ") + bound)),
              std::string("config.json: linear_attn_config.gate_lower_bound: "
                          "expects a number from -5 to below 0, but got ") +
                  bound);
  EXPECT_EQ(
      errorOf(kimi(", \"gate_lower_bound\": \"-5\"")),
      "config.json: linear_attn_config.gate_lower_bound: expects a number, "
      "but got \"-5\"");
  EXPECT_EQ(errorOf(kimi(", \"gate_lower_bound\": -5, \"safe_gate\": false")),
            "config.json: linear_attn_config.safe_gate: expects true beside a "
            "gate_lower_bound, but got false");
  // What would be 0 in f32.
  EXPECT_EQ(errorOf(kimi(", \"gate_lower_bound\": -1e-300")),
            "config.json: linear_attn_config.gate_lower_bound: expects a "
            "number from -5 to below 0, but got -1e-300");
}

// Ling 2.6 has the model type of Ling 3.0, and other layers.
TEST(ModelConfigErrors, LingWithoutConvolutions) {
  std::string text = replaced(ling(), ", \"short_conv_kernel_size\": 4", "");
  EXPECT_EQ(errorOf(text),
            "config.json: short_conv_kernel_size: expects a positive integer, "
            "but got nothing");
}

TEST(ModelConfigErrors, LayersThatContradictTheirNumber) {
  std::string three =
      replaced(qwen(", \"layer_types\": [TYPES]"), "\"num_hidden_layers\": 48",
               "\"num_hidden_layers\": 3");
  const std::string full = "\"full_attention\"", some = "\"linear_attention\"";
  EXPECT_EQ(errorOf(replaced(three, "TYPES", some + "," + full + "," + some)),
            "no error");
  for (const std::string &types :
       {some + "," + full, full + "," + full + "," + full, std::string()})
    EXPECT_THAT(errorOf(replaced(three, "TYPES", types)),
                ::testing::StartsWith(
                    "config.json: layer_types: expects the kinds of 3 layers, "
                    "of which one is linear_attention, but got ["));
  EXPECT_EQ(
      errorOf(qwen(", \"full_attention_interval\": 1")),
      "config.json: full_attention_interval: expects 2 or more, so that a "
      "layer is linear attention, but got 1");
  EXPECT_EQ(errorOf(kimi(", \"kda_layers\": [1, 2, 3], "
                         "\"full_attn_layers\": [4]")),
            "no error");
  for (const char *layers : {"[]", "[1, 1]", "[9]", "[\"a\"]"})
    EXPECT_EQ(errorOf(kimi(std::string(", \"kda_layers\": ") + layers)),
              std::string("config.json: linear_attn_config.kda_layers: expects "
                          "numbers of some of 4 layers, but got ") +
                  (llvm::StringRef(layers) == "[1, 1]" ? "[1,1]" : layers))
        << layers;
  EXPECT_THAT(
      errorOf(kimi(", \"kda_layers\": [1, 2], "
                   "\"full_attn_layers\": [4]")),
      ::testing::StartsWith(
          "config.json: linear_attn_config.full_attn_layers: expects the "
          "2 of 4 layers that are not among kda_layers, but got ["));
}

TEST(ModelConfigErrors, MessagesStayShort) {
  std::string text = replaced(qwen(), "qwen3_next", std::string(100000, 'x'));
  EXPECT_LT(errorOf(text).size(), 400u);
}

TEST(ModelConfigErrors, UnknownPresetListsTheKnown) {
  llvm::Expected<ModelConfig> config = presetModelConfig("gpt");
  ASSERT_FALSE(bool(config));
  EXPECT_THAT(llvm::toString(config.takeError()),
              testing::StartsWith("unknown preset 'gpt'; known presets: "
                                  "qwen3-next-80b-a3b, qwen3.5-0.8b, "));
}

TEST(ModelConfigErrors, MalformedJsonHasAPosition) {
  EXPECT_EQ(errorOf("{\"a\": 1,\n \"b\": }"),
            "config.json: is not JSON: [2:7, byte=16]: Invalid JSON value");
  EXPECT_EQ(errorOf("[]"), "config.json: expects a JSON object at the top");
  EXPECT_EQ(errorOf(std::string(100000, '[')),
            "config.json: byte 64: expects at most 64 nested arrays and "
            "objects");
}

TEST(ModelConfigErrors, ModelType) {
  EXPECT_EQ(errorOf("{}"),
            "config.json: model_type: expects a string, but got nothing");
  EXPECT_EQ(errorOf("{\"model_type\": \"llama\"}"),
            "config.json: model_type: expects one of qwen3_next, qwen3_5, "
            "qwen3_5_text, qwen3_5_moe, qwen3_5_moe_text, qwen4_exp, "
            "qwen4_exp_text, olmo_hybrid, kimi_linear, kimi_k3, glm5_next, "
            "glm5_next_text, bailing_hybrid, bailing_moe_v3, "
            "bailing_moe_v3_vl, but got \"llama\"");
}

TEST(ModelConfigErrors, KeysSayWhatWasExpectedAndFound) {
  EXPECT_EQ(errorOf(replaced(qwen(), "_heads\": 16", "_heads\": \"16\"")),
            "config.json: linear_num_key_heads: expects a positive integer, "
            "but got \"16\"");
  EXPECT_EQ(errorOf(replaced(qwen(), "\"hidden_size\": 2048, ", "")),
            "config.json: hidden_size: expects a positive integer, but got "
            "nothing");
  EXPECT_EQ(errorOf(replaced(qwen(), "silu", "relu")),
            "config.json: hidden_act: expects silu or swish, but got \"relu\"");
  EXPECT_EQ(errorOf(qwen(", \"output_gate_type\": \"tanh\"")),
            "config.json: output_gate_type: expects silu, swish or sigmoid, "
            "but got \"tanh\"");
  EXPECT_EQ(errorOf(qwen(", \"mamba_ssm_dtype\": \"int8\"")),
            "config.json: mamba_ssm_dtype: expects float32, bfloat16, float16 "
            "or auto, but got \"int8\"");
  EXPECT_EQ(errorOf(replaced(qwen(), "1e-06", "0")),
            "config.json: rms_norm_eps: expects a positive number, but got 0");
}

TEST(ModelConfigErrors, NestedKeysHaveTheirPath) {
  EXPECT_EQ(errorOf("{\"model_type\": \"qwen3_5\", \"text_config\": "
                    "{\"hidden_size\": 1}}"),
            "config.json: text_config.num_hidden_layers: expects a positive "
            "integer, but got nothing");
  EXPECT_EQ(errorOf("{\"model_type\": \"qwen3_5\", \"text_config\": 3}"),
            "config.json: text_config: expects an object, but got 3");
}

TEST(ModelConfigErrors, SizesInRange) {
  EXPECT_EQ(
      errorOf(replaced(qwen(), "key_head_dim\": 128", "key_head_dim\": 100")),
      "config.json: expects the key head dimension to be a multiple of "
      "8 up to 256, but got 100");
  EXPECT_EQ(errorOf(replaced(qwen(), "kernel_dim\": 4", "kernel_dim\": 9")),
            "config.json: expects the convolution width to be from 2 to 8, "
            "but got 9");
  EXPECT_EQ(errorOf(replaced(qwen(), "key_heads\": 16", "key_heads\": 15")),
            "config.json: expects the value heads to be a multiple of the key "
            "heads, but got 32 value heads and 15 key heads");
}

} // namespace
