// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The modules of configurations: generated entries, changed where a test wants
// what no model has (a bias, the norm after the gate), or the delta rule alone.
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

/// An entry of gdn.delta_rule alone, over ragged rows or over one token each.
static std::string plainEntry(const Config &config, bool ragged) {
  std::string text = R"(
func.func @NAME(
    %q: tensor<?x?xDKxIO> {gdn.name = "q", gdn.dims = ["TOKENS", "Hk", "DK"]},
    %k: tensor<?x?xDKxIO> {gdn.name = "k", gdn.dims = ["TOKENS", "Hk", "DK"]},
    %v: tensor<?x?xDVxIO> {gdn.name = "v", gdn.dims = ["TOKENS", "Hv", "DV"]},
    %g: GATE {gdn.name = "log_decay", gdn.dims = GDIMS},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["TOKENS", "Hv"]},
    BOUNDS
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %pool: !gdn.pool<?x?xDVxDKxSTATE>
      {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "DV", "DK"]})
    -> (tensor<?x?xDVxIO> {gdn.name = "core", gdn.dims = ["TOKENS", "Hv", "DV"]})
    attributes {gdn.entry} {
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) ROWS
      : tensor<?x?xDKxIO>, tensor<?x?xDKxIO>, tensor<?x?xDVxIO>, GATE,
        tensor<?x?xf32>, !gdn.pool<?x?xDVxDKxSTATE>, tensor<?xi32> CUTYPE
        -> tensor<?x?xDVxIO>
  return %o : tensor<?x?xDVxIO>
}
)";
  const bool channels = config.form == Form::plainPerChannel;
  replace(text, "NAME", ragged ? "prefill" : "decode");
  replace(text, "GDIMS",
          channels ? R"(["TOKENS", "Hv", "DK"])" : R"(["TOKENS", "Hv"])");
  replace(text, "GATE", channels ? "tensor<?x?xDKxf32>" : "tensor<?x?xf32>");
  replace(text, "BOUNDS",
          ragged ? "%cu: tensor<?xi32> {gdn.name = \"cu_seqlens\", gdn.dims = "
                   "[\"N + 1\"]},"
                 : "");
  replace(text, "ROWS", ragged ? "rows(%cu)" : "");
  replace(text, "CUTYPE", ragged ? ", tensor<?xi32>" : "");
  replace(text, "TOKENS", ragged ? "T" : "N");
  replace(text, "DK", std::to_string(config.dk));
  replace(text, "DV", std::to_string(config.dv));
  replace(text, "IO", stringify(config.options.io).str());
  replace(text, "STATE", stringify(config.options.state).str());
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
    std::string text = plainEntry(config, true) + plainEntry(config, false);
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
