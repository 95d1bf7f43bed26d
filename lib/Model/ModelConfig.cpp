// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads config.json. Each `model_type` belongs to a family, which says how the
// projections are packed and which keys hold the sizes.
#include "gdn/Model/ModelConfig.h"

#include "ConfigReader.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace gdn;

namespace {
/// Which keys a configuration has, and what its layers do with them.
enum class Family { qwen, olmo, kimi, glm, ling };

struct ModelType {
  llvm::StringLiteral name;
  Family family;
  InputLayout layout;
};
} // namespace

static constexpr ModelType modelTypes[] = {
    {"qwen3_next", Family::qwen, InputLayout::interleaved},
    {"qwen3_5", Family::qwen, InputLayout::flat},
    {"qwen3_5_text", Family::qwen, InputLayout::flat},
    {"qwen3_5_moe", Family::qwen, InputLayout::flat},
    {"qwen3_5_moe_text", Family::qwen, InputLayout::flat},
    {"qwen4_exp", Family::qwen, InputLayout::flat},
    {"qwen4_exp_text", Family::qwen, InputLayout::flat},
    {"olmo_hybrid", Family::olmo, InputLayout::separate},
    {"kimi_linear", Family::kimi, InputLayout::separate},
    {"kimi_k3", Family::kimi, InputLayout::separate},
    {"glm5_next", Family::glm, InputLayout::separate},
    {"glm5_next_text", Family::glm, InputLayout::separate},
    {"bailing_hybrid", Family::ling, InputLayout::separate},
    {"bailing_moe_v3", Family::ling, InputLayout::separate},
    {"bailing_moe_v3_vl", Family::ling, InputLayout::separate},
};

static const ModelType *findModelType(llvm::StringRef name) {
  for (const ModelType &type : modelTypes)
    if (type.name == name)
      return &type;
  return nullptr;
}

static std::optional<FloatKind> readDtype(ConfigReader &reader,
                                          llvm::StringRef key) {
  std::optional<std::string> name = reader.optionalString(key);
  if (!name || *name == "auto")
    return std::nullopt;
  if (*name == "float32")
    return FloatKind::f32;
  if (*name == "bfloat16")
    return FloatKind::bf16;
  if (*name == "float16")
    return FloatKind::f16;
  reader.expected(key, "float32, bfloat16, float16 or auto");
  return std::nullopt;
}

/// The layers that are gated delta networks: counted in `layer_types`, or all
/// but every `full_attention_interval`-th, or so many as there are by default.
static int64_t countGdnLayers(ConfigReader &reader, int64_t numLayers,
                              int64_t byDefault) {
  if (const llvm::json::Array *types = reader.optionalArray("layer_types")) {
    int64_t count = llvm::count_if(*types, [](const llvm::json::Value &type) {
      return type.getAsString() == "linear_attention";
    });
    if (int64_t(types->size()) != numLayers || count == 0)
      reader.expected("layer_types",
                      llvm::formatv("the kinds of {0} layers, of which one is "
                                    "linear_attention",
                                    numLayers)
                          .str());
    return count;
  }
  if (!reader.has("full_attention_interval"))
    return byDefault;
  int64_t interval = reader.positive("full_attention_interval");
  if (interval < 2)
    reader.expected("full_attention_interval",
                    "2 or more, so that a layer is linear attention");
  return numLayers - numLayers / interval;
}

/// The least log decay of models that bound it, and where they do not say it.
static constexpr double kLeastBound = -5;

/// Fields that change what a layer computes, and that no entry here computes:
/// only the value that leaves it as it is may stand there.
static void refuseFlag(ConfigReader &reader, llvm::StringRef key,
                       bool neutral) {
  if (reader.has(key) && reader.boolean(key) != neutral)
    reader.expected(key, neutral ? "true, the only form that is implemented"
                                 : "false, the only form that is implemented");
}

/// What the convolution of the models of transformers applies.
static void checkActivation(ConfigReader &reader) {
  std::string activation = reader.string("hidden_act");
  if (activation != "silu" && activation != "swish")
    reader.expected("hidden_act", "silu or swish");
}

/// The keys of Qwen's models, which OLMo-Hybrid shares.
static void readHeads(ConfigReader &reader, ModelConfig &config) {
  config.keyHeads = reader.positive("linear_num_key_heads");
  config.valueHeads = reader.positive("linear_num_value_heads");
  config.keyDim = reader.positive("linear_key_head_dim");
  config.valueDim = reader.positive("linear_value_head_dim");
  config.convWidth = reader.positive("linear_conv_kernel_dim");
  config.numGdnLayers = countGdnLayers(reader, config.numLayers,
                                       config.numLayers - config.numLayers / 4);
  checkActivation(reader);
}

static void readQwen(ConfigReader &reader, ModelConfig &config) {
  readHeads(reader, config);
  refuseFlag(reader, "linear_allow_neg_eigval", false);
  config.normEps = reader.positiveNumber("rms_norm_eps");
  std::string gate = reader.optionalString("output_gate_type").value_or("silu");
  if (gate == "sigmoid")
    config.gate = Activation::sigmoid;
  else if (gate != "silu" && gate != "swish")
    reader.expected("output_gate_type", "silu, swish or sigmoid");
}

static void readOlmo(ConfigReader &reader, ModelConfig &config) {
  readHeads(reader, config);
  refuseFlag(reader, "linear_use_gate", true);
  config.doubleBeta = reader.boolean("linear_allow_neg_eigval");
  // The model fixes this eps; `rms_norm_eps` belongs to its other norms.
  config.normEps = 1e-5;
}

/// The layers of a list of numbers, from 0 or from 1 on.
static void readKdaLayers(ConfigReader &linear, ModelConfig &config) {
  const llvm::json::Array *layers = linear.optionalArray("kda_layers");
  if (!layers)
    return;
  llvm::SmallSet<int64_t, 32> numbers;
  bool areNumbers = true;
  for (const llvm::json::Value &layer : *layers) {
    std::optional<int64_t> number = layer.getAsInteger();
    areNumbers &= number && *number >= 0 && *number <= config.numLayers &&
                  numbers.insert(*number).second;
  }
  config.numGdnLayers = layers->size();
  if (!areNumbers || layers->empty() || config.numGdnLayers > config.numLayers)
    linear.expected(
        "kda_layers",
        llvm::formatv("numbers of some of {0} layers", config.numLayers).str());
  const llvm::json::Array *full = linear.optionalArray("full_attn_layers");
  if (full && int64_t(full->size()) + config.numGdnLayers != config.numLayers)
    linear.expected("full_attn_layers",
                    llvm::formatv("the {0} of {1} layers that are not among "
                                  "kda_layers",
                                  config.numLayers - config.numGdnLayers,
                                  config.numLayers)
                        .str());
}

/// What layers with a decay per channel share: as many key as value heads, of
/// one size, and a sigmoid for the gate of the norm.
static void readKdaHeads(ConfigReader &reader, llvm::StringRef heads,
                         llvm::StringRef dim, llvm::StringRef width,
                         ModelConfig &config) {
  config.keyHeads = config.valueHeads = reader.positive(heads);
  config.keyDim = config.valueDim = reader.positive(dim);
  config.convWidth = reader.positive(width);
  config.gate = Activation::sigmoid;
  config.perChannelDecay = true;
}

/// The same, under the names that transformers has.
static void readNativeHeads(ConfigReader &reader, ModelConfig &config) {
  readKdaHeads(reader, "linear_num_heads", "linear_head_dim",
               "linear_conv_kernel_dim", config);
  if (reader.has("hidden_act"))
    checkActivation(reader);
}

/// As the models' own code has it: decays of 16 tokens and their inverses stay
/// in the range of f32.
static std::optional<double> readBound(ConfigReader &reader,
                                       llvm::StringRef key) {
  if (!reader.has(key))
    return std::nullopt;
  const double bound = reader.number(key);
  // Kernels take it as f32, in which it is not to become 0.
  if (!(bound >= kLeastBound && bound <= -std::numeric_limits<float>::min()))
    reader.expected(key, "a number from -5 to below 0");
  return bound;
}

/// The dictionary of Kimi's models, which GLM's may have too. `isSafe` is what
/// `safe_gate` is where it is not there: whether decays have a bound, if only
/// the usual one; `bound` is what the bound is without a `gate_lower_bound`.
static void readKdaDictionary(ConfigReader &reader, ModelConfig &config,
                              bool isSafe, std::optional<double> bound) {
  ConfigReader linear = reader.inner("linear_attn_config");
  readKdaHeads(linear, "num_heads", "head_dim", "short_conv_kernel_size",
               config);
  readKdaLayers(linear, config);
  if (linear.has("safe_gate"))
    isSafe = linear.boolean("safe_gate");
  config.decayBound = linear.holds("gate_lower_bound")
                          ? readBound(linear, "gate_lower_bound")
                          : bound;
  if (linear.has("gate_lower_bound") && linear.has("safe_gate") && !isSafe)
    linear.expected("safe_gate", "true beside a gate_lower_bound");
  if (isSafe && !config.decayBound)
    config.decayBound = kLeastBound;
  config.doubleBeta =
      linear.has("allow_neg_eigval") && linear.boolean("allow_neg_eigval");
  reader.take(linear);
}

static void readKimi(ConfigReader &reader, ModelConfig &config) {
  config.numGdnLayers = config.numLayers - (config.numLayers - 1) / 4;
  if (reader.has("linear_attn_config") || !reader.has("linear_num_heads")) {
    readKdaDictionary(reader, config, /*isSafe=*/false, std::nullopt);
  } else {
    readNativeHeads(reader, config);
    config.numGdnLayers =
        countGdnLayers(reader, config.numLayers, config.numGdnLayers);
  }
  for (llvm::StringRef key : {"linear_lower_bound", "kda_lower_bound"})
    if (reader.has(key))
      reader.expected(key, "nothing: models of this type have a "
                           "gate_lower_bound in linear_attn_config");
  config.normEps = reader.positiveNumber("rms_norm_eps");
}

static void readGlm(ConfigReader &reader, ModelConfig &config) {
  config.numGdnLayers = config.numLayers - config.numLayers / 4;
  std::optional<double> bound = kLeastBound;
  if (reader.holds("linear_lower_bound"))
    bound = readBound(reader, "linear_lower_bound");
  if (reader.has("linear_attn_config")) {
    readKdaDictionary(reader, config, /*isSafe=*/true, bound);
    if (reader.has("linear_lower_bound") && bound != config.decayBound)
      reader.expected("linear_lower_bound", "what linear_attn_config says");
  } else {
    readNativeHeads(reader, config);
    config.decayBound = bound;
  }
  if (reader.has("layer_types"))
    config.numGdnLayers =
        countGdnLayers(reader, config.numLayers, config.numGdnLayers);
  config.normEps = reader.positiveNumber("rms_norm_eps");
}

static void readLing(ConfigReader &reader, ModelConfig &config) {
  // What transformers writes: its head_dim is that of the attention layers'
  // rotary part.
  if (reader.has("linear_num_heads") || reader.has("linear_head_dim"))
    readNativeHeads(reader, config);
  else
    readKdaHeads(reader, "num_attention_heads", "head_dim",
                 "short_conv_kernel_size", config);
  // The last layer of each group is attention, and so are those behind the
  // last whole group.
  const int64_t group = reader.positive("layer_group_size");
  config.numGdnLayers = config.numLayers / group * (group - 1);
  if (config.numGdnLayers == 0)
    reader.expected("layer_group_size",
                    llvm::formatv("2 to {0}, so that a layer is linear "
                                  "attention",
                                  config.numLayers)
                        .str());
  if (reader.has("layer_types"))
    config.numGdnLayers =
        countGdnLayers(reader, config.numLayers, config.numGdnLayers);
  config.decayBound =
      readBound(reader, "kda_lower_bound").value_or(kLeastBound);
  if (reader.has("kda_safe_gate") && !reader.boolean("kda_safe_gate"))
    config.decayBound = std::nullopt;
  config.normEps = reader.positiveNumber("rms_norm_eps");
}

static llvm::Error unknownModelType(llvm::StringRef file,
                                    llvm::StringRef found) {
  llvm::SmallVector<llvm::StringRef> known;
  for (const ModelType &type : modelTypes)
    known.push_back(type.name);
  return llvm::createStringError(llvm::formatv(
      "{0}: model_type: expects one of {1}, but got \"{2}\"", file,
      llvm::join(known, ", "),
      found.size() > 60 ? found.take_front(57).str() + "..." : found.str()));
}

llvm::Expected<ModelConfig> gdn::parseModelConfig(llvm::StringRef text,
                                                  llvm::StringRef file) {
  llvm::Expected<llvm::json::Object> root = parseJsonObject(text, file);
  if (!root)
    return root.takeError();
  ConfigReader top(*root, file);
  bool nested = top.has("text_config");
  ConfigReader reader = nested ? top.inner("text_config") : top;
  top.take(reader);

  ModelConfig config;
  config.name = file.str();
  // Some nested configurations leave their type to the outer one.
  ConfigReader &typed = nested && !reader.has("model_type") ? top : reader;
  config.modelType = typed.string("model_type");
  if (llvm::Error error = top.takeError())
    return std::move(error);
  if (llvm::Error error = typed.takeError())
    return std::move(error);
  const ModelType *type = findModelType(config.modelType);
  if (!type)
    return unknownModelType(file, config.modelType);

  config.layout = type->layout;
  config.hiddenSize = reader.positive("hidden_size");
  config.numLayers = reader.positive("num_hidden_layers");
  switch (type->family) {
  case Family::qwen:
    readQwen(reader, config);
    break;
  case Family::olmo:
    readOlmo(reader, config);
    break;
  case Family::kimi:
    readKimi(reader, config);
    break;
  case Family::glm:
    readGlm(reader, config);
    break;
  case Family::ling:
    readLing(reader, config);
    break;
  }
  // Types may stand outside alone.
  auto readType =
      [&](llvm::ArrayRef<llvm::StringRef> keys) -> std::optional<FloatKind> {
    for (ConfigReader *each : {&reader, &top})
      for (llvm::StringRef key : keys)
        if (each->has(key))
          return readDtype(*each, key);
    return std::nullopt;
  };
  config.io = readType({"dtype", "torch_dtype"});
  config.state = readType({"mamba_ssm_dtype"});
  reader.take(top);
  if (llvm::Error error = reader.takeError())
    return std::move(error);
  if (llvm::Error error = checkModelConfig(config))
    return std::move(error);
  return config;
}

llvm::Error gdn::checkModelConfig(const ModelConfig &config) {
  auto fail = [&](const auto &message) {
    return llvm::createStringError(
        llvm::formatv("{0}: {1}", config.name, std::string(message)));
  };
  for (auto [what, size] :
       {std::pair("key", config.keyDim), std::pair("value", config.valueDim)})
    if (size < 8 || size > 256 || size % 8 != 0)
      return fail(llvm::formatv("expects the {0} head dimension to be a "
                                "multiple of 8 up to 256, but got {1}",
                                what, size));
  if (config.convWidth < 2 || config.convWidth > 8)
    return fail(llvm::formatv("expects the convolution width to be from 2 to "
                              "8, but got {0}",
                              config.convWidth));
  if (config.keyHeads < 1 || config.valueHeads < config.keyHeads ||
      config.valueHeads % config.keyHeads != 0)
    return fail(llvm::formatv("expects the value heads to be a multiple of "
                              "the key heads, but got {0} value heads and {1} "
                              "key heads",
                              config.valueHeads, config.keyHeads));
  return llvm::Error::success();
}
