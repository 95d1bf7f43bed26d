// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An engine forks, moves and resets sequences between the calls that compute;
// both pools of a layer go together.
#include "PoolEntries.h"

using namespace mlir;
using namespace gdn;

void gdn::addPools(Signature &signature, OpBuilder &builder,
                   const ModelConfig &config, const EntryOptions &options,
                   StringRef prefix, StringRef slots) {
  std::string channels =
      scaled(2 * config.keyDim, "Hk") + " + " + scaled(config.valueDim, "Hv");
  if (hasConv(options.layout.value_or(config.layout)))
    signature.addPool(
        (prefix + "conv_pool").str(),
        floatType(builder, options.convState.value_or(options.io)),
        {slots.str(), channels, std::to_string(config.convWidth - 1)});
  signature.addStatePools(prefix,
                          {slots.str(), "Hv", std::to_string(config.valueDim),
                           std::to_string(config.keyDim)},
                          options);
}

void gdn::addTypeFacts(func::FuncOp func, const ModelConfig &config,
                       const EntryOptions &options) {
  Builder builder(func.getContext());
  auto fact = [&](StringRef key, StringRef value) {
    return builder.getNamedAttr(key, builder.getStringAttr(value));
  };
  SmallVector<NamedAttribute> facts = {fact("model_type", config.modelType),
                                       fact("io", stringify(options.io)),
                                       fact("state", getStateName(options))};
  if (options.stateLayout != StateLayout::vk)
    facts.push_back(fact("state_layout", stringify(options.stateLayout)));
  // Whoever plans a batch has to know whether slots count pending tokens.
  if (options.deferWrites)
    facts.push_back(fact("defer_writes", std::to_string(options.deferWrites)));
  func->setAttr("gdn.facts", builder.getDictionaryAttr(facts));
}

/// An entry over sequences of `slots`, and of `write_slots` if it copies.
static void buildEntry(OpBuilder &builder, const ModelConfig &config,
                       const EntryOptions &options, const Twine &name,
                       bool copies) {
  OpBuilder::InsertionGuard guard(builder);
  Type ids =
      options.slots64 ? Type(builder.getI64Type()) : builder.getI32Type();
  Signature signature(builder);
  signature.addTensor("slots", ids, {"N"});
  if (copies)
    signature.addTensor("write_slots", ids, {"N"});
  addPools(signature, builder, config, options);
  func::FuncOp func = signature.createEntry(name.str());
  addTypeFacts(func, config, options);
  for (StringRef pool :
       {"conv_pool", "state_pool", "state_scales", "state_low"}) {
    if (!signature[pool])
      continue;
    Location loc = NameLoc::get(builder.getStringAttr(pool));
    if (copies)
      PoolCopyOp::create(builder, loc, signature[pool], signature["slots"],
                         signature[pool], signature["write_slots"]);
    else
      PoolZeroOp::create(builder, loc, signature[pool], signature["slots"]);
  }
  func::ReturnOp::create(builder, builder.getUnknownLoc());
}

void gdn::buildPoolEntries(OpBuilder &builder, const ModelConfig &config,
                           const EntryOptions &options, StringRef suffix) {
  buildEntry(builder, config, options, "copy_slots" + suffix, true);
  buildEntry(builder, config, options, "zero_slots" + suffix, false);
}
