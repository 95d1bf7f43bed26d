// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a model's config.json says about its gated-delta-network layers: sizes,
// packing, gates. The kinds of models that are known stand in ModelConfig.cpp,
// models by name in Presets.cpp.
#ifndef GDN_MODEL_MODELCONFIG_H
#define GDN_MODEL_MODELCONFIG_H

#include "gdn/Dialect/GDN/IR/GDN.h"
#include "gdn/Model/EntryOptions.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>

namespace gdn {

/// One model's gated-delta-network layers; all of them are alike.
struct ModelConfig {
  std::string name;      // preset, or the path of the file
  std::string modelType; // `model_type` of the configuration
  InputLayout layout = InputLayout::interleaved; // how it packs projections
  int64_t hiddenSize = 0;
  int64_t numLayers = 0;    // layers of every kind
  int64_t numGdnLayers = 0; // those of them that are gated delta networks
  int64_t keyHeads = 0;     // Hk
  int64_t valueHeads = 0;   // Hv
  int64_t keyDim = 0;       // dk
  int64_t valueDim = 0;     // dv
  int64_t convWidth = 0;    // K
  Activation gate = Activation::silu; // of the gated norm
  bool doubleBeta = false;            // beta in (0, 2) instead of (0, 1)
  bool perChannelDecay = false;       // one decay per channel of the key
  std::optional<double> decayBound;   // the least log decay, if it has one
  double normEps = 1e-6;
  std::optional<FloatKind> io;    // of the activations, if the model says
  std::optional<FloatKind> state; // of the recurrent state, if it says
};

/// Reads the text of a Hugging Face `config.json`; `file` names it in errors.
/// A `text_config` inside is read in place of the whole.
llvm::Expected<ModelConfig> parseModelConfig(llvm::StringRef text,
                                             llvm::StringRef file);

/// The model of that name from the table of presets.
llvm::Expected<ModelConfig> presetModelConfig(llvm::StringRef name);

/// The names of all presets, in table order.
llvm::SmallVector<llvm::StringRef> presetNames();

/// Checks what every entry needs: sizes in range, `Hv` a multiple of `Hk`.
/// `parseModelConfig` has done so already.
llvm::Error checkModelConfig(const ModelConfig &config);

} // namespace gdn

#endif // GDN_MODEL_MODELCONFIG_H
