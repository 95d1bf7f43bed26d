// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The modules of configurations: generated entries, changed where a test wants
// what no model has (a bias, the norm after the gate), or a rule alone.
#include "Program.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/ErrorHandling.h"

using namespace mlir;
using namespace gdn;
using namespace gdn::integration;

/// `text` with every occurrence of `name` replaced.
static void replace(std::string &text, StringRef name, const std::string &by) {
  for (size_t at = 0; (at = text.find(name.str(), at)) != std::string::npos;
       at += by.size())
    text.replace(at, name.size(), by);
}

namespace {
/// The text of an entry of one rule alone, while it is written.
struct RuleEntry {
  std::string arguments, operands, types;

  /// Adds an argument of the entry.
  void argument(StringRef name, StringRef type, StringRef dims) {
    arguments += ("%" + name + ": " + type + " {gdn.name = \"" + name +
                  "\", gdn.dims = [" + dims + "]},\n    ")
                     .str();
  }
  /// Adds an argument that the rule takes as `keyword(%name)`.
  void option(StringRef keyword, StringRef name, StringRef type,
              StringRef dims) {
    argument(name, type, dims);
    operands += (" " + keyword + "(%" + name + ")").str();
    types += (" " + keyword + " " + type).str();
  }
};
} // namespace

/// An entry of a rule alone, with the states that its options ask for: over
/// ragged sequences, or `decode` over one token each.
static std::string plainEntry(const Config &config, StringRef name) {
  const EntryOptions &options = config.options;
  const bool ragged = name != "decode", channels = config.isPerChannel();
  RuleEntry entry;
  entry.argument("q", "tensor<?x?xDKxIO>", R"("TOKENS", "Hk", "DK")");
  entry.argument("k", "tensor<?x?xDKxIO>", R"("TOKENS", "Hk", "DK")");
  entry.argument("v", "tensor<?x?xDVxIO>", R"("TOKENS", "Hv", "DV")");
  entry.argument("log_decay", "GATE",
                 channels ? R"("TOKENS", "Hv", "DK")" : R"("TOKENS", "Hv")");
  if (config.hasDelta())
    entry.argument("beta", "tensor<?x?xf32>", R"("TOKENS", "Hv")");
  if (config.erase)
    entry.argument("erase", "tensor<?x?xDKxIO>", R"("TOKENS", "Hk", "DK")");
  entry.argument("slots", "tensor<?xi32>", R"("N")");
  std::string into;
  if (options.writeSlots && name != "verify") {
    entry.argument("write_slots", "tensor<?xi32>", R"("N")");
    into = " -> %write_slots";
    entry.types += " into tensor<?xi32>";
  }
  if (ragged) {
    entry.argument("cu_seqlens", "tensor<?xi32>", R"("N + 1")");
    entry.operands += " sequences(%cu_seqlens)";
    entry.types += ", tensor<?xi32>";
  }
  if (options.hasInitial && ragged)
    entry.option("initial", "has_initial", "tensor<?xi1>", R"("N")");
  if (options.checkpoints && name == "prefill") {
    entry.argument("cu_checkpoints", "tensor<?xi32>", R"("N + 1")");
    entry.argument("checkpoint_tokens", "tensor<?xi32>", R"("C")");
    entry.argument("checkpoint_slots", "tensor<?xi32>", R"("C")");
    entry.operands += " checkpoints(%cu_checkpoints, %checkpoint_tokens, "
                      "%checkpoint_slots)";
    entry.types += " checkpoints tensor<?xi32>, tensor<?xi32>, tensor<?xi32>";
  }
  if (name == "verify")
    entry.option("token_slots", "token_slots", "tensor<?x?xi32>",
                 R"("N", "S")");
  if (name == "verify" && options.verify == VerifyStates::tree)
    entry.option("parents", "parents", "tensor<?x?xi32>", R"("N", "S")");
  std::string text = R"(
func.func @NAME(
    ARGUMENTS%state_pool: !gdn.pool<?x?xDVxDKxSTATE>
      {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "DV", "DK"]})
    -> (tensor<?x?xDVxIO> {gdn.name = "core", gdn.dims = ["TOKENS", "Hv", "DV"]})
    attributes {gdn.entry} {
  %o = RULE pool(%state_pool) slots(%slotsINTO)OPERANDS
      : tensor<?x?xDKxIO>, tensor<?x?xDKxIO>, tensor<?x?xDVxIO>, GATES,
        !gdn.pool<?x?xDVxDKxSTATE>, tensor<?xi32>TYPES -> tensor<?x?xDVxIO>
  return %o : tensor<?x?xDVxIO>
}
)";
  replace(text, "NAME", name.str());
  replace(
      text, "RULE",
      config.hasDelta()
          ? std::string("gdn.delta_rule %q, %k, %v gates(%log_decay, %beta)") +
                (config.erase ? " erase(%erase)" : "")
          : "gdn.gated_linear_attention %q, %k, %v decay(%log_decay)");
  replace(text, "GATES",
          config.hasDelta() ? "GATE, tensor<?x?xf32>ERASE" : "GATE");
  replace(text, "ERASE", config.erase ? " erase tensor<?x?xDKxIO>" : "");
  replace(text, "ARGUMENTS", entry.arguments);
  replace(text, "OPERANDS", entry.operands);
  replace(text, "INTO", into);
  replace(text, "TYPES", entry.types);
  replace(text, "GATE", channels ? "tensor<?x?xDKxf32>" : "tensor<?x?xf32>");
  replace(text, "TOKENS", ragged ? "T" : "N");
  replace(text, "DK", std::to_string(config.dk));
  replace(text, "DV", std::to_string(config.dv));
  replace(text, "IO", stringify(options.io).str());
  replace(text, "STATE", stringify(options.state).str());
  return text;
}

/// Gives the convolution of `entry` a bias, as a parameter `conv_bias`.
static void addBias(func::FuncOp entry) {
  OpBuilder builder(entry.getContext());
  unsigned position = 0;
  for (unsigned i = 0; i < entry.getNumArguments(); ++i)
    if (entry.getArgAttrOfType<StringAttr>(i, "gdn.name") == "conv_weight")
      position = i + 1;
  if (position == 0) // an entry without convolution
    return;
  auto dims = entry.getArgAttrOfType<ArrayAttr>(position - 1, "gdn.dims");
  auto weight = cast<RankedTensorType>(entry.getArgumentTypes()[position - 1]);
  auto type =
      RankedTensorType::get({weight.getDimSize(0)}, weight.getElementType());
  auto attributes = builder.getDictionaryAttr(
      {builder.getNamedAttr("gdn.name", builder.getStringAttr("conv_bias")),
       builder.getNamedAttr("gdn.dims", builder.getArrayAttr({dims[0]}))});
  if (failed(entry.insertArgument(position, type, attributes, entry.getLoc())))
    llvm::report_fatal_error("conv_bias cannot be inserted");
  entry.walk([&](Conv1dOp conv) {
    conv.getBiasMutable().assign(entry.getArgument(position));
  });
}

OwningOpRef<ModuleOp> gdn::integration::buildModule(MLIRContext &context,
                                                    const Config &config) {
  if (config.form != Form::layer) {
    std::string text =
        plainEntry(config, "prefill") + plainEntry(config, "decode");
    if (config.options.verify != VerifyStates::none)
      text += plainEntry(config, "verify");
    auto module = parseSourceString<ModuleOp>(text, &context);
    if (!module)
      llvm::report_fatal_error("the plain form does not parse");
    return module;
  }
  ModelConfig model;
  model.name = model.modelType = "test";
  model.layout = config.layout;
  model.keyHeads = model.valueHeads = 1;
  model.hiddenSize = model.numLayers = model.numGdnLayers = 1;
  model.keyDim = config.dk;
  model.valueDim = config.dv;
  model.convWidth = config.convWidth;
  model.gate = config.gate;
  model.doubleBeta = config.doubleBeta;
  model.perChannelDecay = config.perChannelDecay;
  model.decayBound = config.decayBound;
  model.normEps = config.eps;
  auto module = buildEntryModule(context, model, config.options);
  if (!module)
    llvm::report_fatal_error(module.takeError());
  (*module)->walk([&](GatedRMSNormOp norm) {
    norm.setNormAfterGate(config.normAfterGate);
  });
  if (config.convBias)
    for (auto entry : (*module)->getOps<func::FuncOp>())
      addBias(entry);
  return std::move(*module);
}
