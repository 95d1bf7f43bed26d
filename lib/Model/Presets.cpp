// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The models that people serve, by name, as their config.json describes them.
#include "gdn/Model/ModelConfig.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace gdn;

namespace {
struct Preset {
  llvm::StringLiteral name;
  llvm::StringLiteral modelType;
  InputLayout layout;
  int64_t hiddenSize, numLayers, numGdnLayers;
  int64_t keyHeads, valueHeads, keyDim, valueDim;
  Activation gate;
  bool doubleBeta, perChannelDecay;
  double normEps;
  std::optional<double> decayBound = std::nullopt;
};
} // namespace

/// A model with head dimensions 128 and no extras.
static constexpr Preset qwen(llvm::StringLiteral name,
                             llvm::StringLiteral modelType, InputLayout layout,
                             int64_t hiddenSize, int64_t numLayers,
                             int64_t keyHeads, int64_t valueHeads,
                             Activation gate = Activation::silu) {
  return {name,      modelType,
          layout,    hiddenSize,
          numLayers, numLayers - numLayers / 4, // every fourth is attention
          keyHeads,  valueHeads,
          128,       128,
          gate,      false,
          false,     1e-6};
}

/// A model with a decay per channel and heads of 128.
static constexpr Preset kda(llvm::StringLiteral name,
                            llvm::StringLiteral modelType, int64_t hiddenSize,
                            int64_t numLayers, int64_t numGdnLayers,
                            int64_t heads, double normEps,
                            std::optional<double> decayBound) {
  return {name,
          modelType,
          InputLayout::separate,
          hiddenSize,
          numLayers,
          numGdnLayers,
          heads,
          heads,
          128,
          128,
          Activation::sigmoid,
          false,
          true,
          normEps,
          decayBound};
}

static constexpr InputLayout flat = InputLayout::flat;

static constexpr Preset presets[] = {
    qwen("qwen3-next-80b-a3b", "qwen3_next", InputLayout::interleaved, 2048, 48,
         16, 32),
    qwen("qwen3.5-0.8b", "qwen3_5_text", flat, 1024, 24, 16, 16),
    qwen("qwen3.5-2b", "qwen3_5_text", flat, 2048, 24, 16, 16),
    qwen("qwen3.5-4b", "qwen3_5_text", flat, 2560, 32, 16, 32),
    qwen("qwen3.5-9b", "qwen3_5_text", flat, 4096, 32, 16, 32),
    qwen("qwen3.5-27b", "qwen3_5_text", flat, 5120, 64, 16, 48),
    qwen("qwen3.5-35b-a3b", "qwen3_5_moe_text", flat, 2048, 40, 16, 32),
    qwen("qwen3.5-122b-a10b", "qwen3_5_moe_text", flat, 3072, 48, 16, 64),
    qwen("qwen3.5-397b-a17b", "qwen3_5_moe_text", flat, 4096, 60, 16, 64),
    qwen("qwen3.6-27b", "qwen3_5_text", flat, 5120, 64, 16, 48),
    qwen("qwen3.6-35b-a3b", "qwen3_5_moe_text", flat, 2048, 40, 16, 32),
    qwen("qwen3.8-flash-next", "qwen4_exp", flat, 2560, 48, 16, 48,
         Activation::sigmoid),
    {"olmo-hybrid-7b", "olmo_hybrid", InputLayout::separate, 3840, 32, 24, 30,
     30, 96, 192, Activation::silu, /*doubleBeta=*/true,
     /*perChannelDecay=*/false, 1e-5},
    kda("kimi-linear-48b-a3b", "kimi_linear", 2304, 27, 20, 32, 1e-5,
        std::nullopt),
    kda("kimi-k3", "kimi_linear", 7168, 93, 69, 96, 1e-5, -5),
    kda("glm-5.3-flash", "glm5_next_text", 4096, 45, 34, 64, 1e-5, -5),
    kda("ling-3.0-flash", "bailing_hybrid", 2560, 42, 35, 32, 1e-6, -5),
    kda("ling-3.0-tiny", "bailing_hybrid", 1536, 24, 18, 16, 1e-6, -5),
};

llvm::SmallVector<llvm::StringRef> gdn::presetNames() {
  llvm::SmallVector<llvm::StringRef> names;
  for (const Preset &preset : presets)
    names.push_back(preset.name);
  return names;
}

llvm::Expected<ModelConfig> gdn::presetModelConfig(llvm::StringRef name) {
  for (const Preset &preset : presets) {
    if (preset.name != name)
      continue;
    ModelConfig config;
    config.name = preset.name.str();
    config.modelType = preset.modelType.str();
    config.layout = preset.layout;
    config.hiddenSize = preset.hiddenSize;
    config.numLayers = preset.numLayers;
    config.numGdnLayers = preset.numGdnLayers;
    config.keyHeads = preset.keyHeads;
    config.valueHeads = preset.valueHeads;
    config.keyDim = preset.keyDim;
    config.valueDim = preset.valueDim;
    config.convWidth = 4;
    config.gate = preset.gate;
    config.doubleBeta = preset.doubleBeta;
    config.perChannelDecay = preset.perChannelDecay;
    config.decayBound = preset.decayBound;
    config.normEps = preset.normEps;
    config.io = FloatKind::bf16;
    config.state = FloatKind::f32;
    return config;
  }
  return llvm::createStringError(
      llvm::formatv("unknown preset '{0}'; known presets: {1}", name,
                    llvm::join(presetNames(), ", ")));
}
