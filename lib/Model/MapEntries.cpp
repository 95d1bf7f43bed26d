// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Between the maps of a rank's segments and outputs from the true states: the
// arrays are those of docs/design/20261129-combine-maps.md.
#include "MapEntries.h"

#include "PoolEntries.h"

using namespace mlir;
using namespace gdn;

/// Adds H and P of segments, and which ones a sequence has.
static void addSegments(Signature &signature, OpBuilder &builder,
                        const ModelConfig &config) {
  const std::string dk = std::to_string(config.keyDim);
  const std::string dv = std::to_string(config.valueDim);
  Type f32 = builder.getF32Type(), i32 = builder.getI32Type();
  signature.addTensor("constant", f32, {"M", "Hv", dv, dk});
  signature.addTensor("linear", f32, {"M", "Hv", dk, dk});
  signature.addTensor("first_segments", i32, {"N"});
  signature.addTensor("num_segments", i32, {"N"});
}

void gdn::buildMapEntries(OpBuilder &builder, const ModelConfig &config,
                          const EntryOptions &options, StringRef suffix) {
  const std::string dk = std::to_string(config.keyDim);
  const std::string dv = std::to_string(config.valueDim);
  const std::string both = std::to_string(config.keyDim + config.valueDim);
  Type f32 = builder.getF32Type(), i32 = builder.getI32Type();
  Type ids = options.slots64 ? Type(builder.getI64Type()) : i32;
  {
    OpBuilder::InsertionGuard guard(builder);
    Signature signature(builder);
    addSegments(signature, builder, config);
    signature.addResult("maps", f32, {"N", "Hv", both, dk});
    func::FuncOp func = signature.createEntry(("combine_maps" + suffix).str());
    addTypeFacts(func, config, options);
    Value maps = CombineMapsOp::create(
        builder, NameLoc::get(builder.getStringAttr("maps")),
        signature["constant"], signature["linear"], signature["first_segments"],
        signature["num_segments"]);
    func::ReturnOp::create(builder, builder.getUnknownLoc(), maps);
  }
  OpBuilder::InsertionGuard guard(builder);
  Signature signature(builder);
  signature.addTensor("maps", f32, {"R", "N", "Hv", both, dk});
  signature.addTensor("rank", i32, {"1"});
  addSegments(signature, builder, config);
  signature.addTensor("slots", ids, {"N"});
  signature.addTensor("write_slots", ids, {"N"});
  signature.addStatePools("", {"P", "Hv", dv, dk}, options);
  signature.addResult("states", f32, {"M", "Hv", dv, dk});
  func::FuncOp func = signature.createEntry(("apply_maps" + suffix).str());
  addTypeFacts(func, config, options);
  Value states = ApplyMapsOp::create(
      builder, NameLoc::get(builder.getStringAttr("states")),
      signature["state_pool"], signature["slots"], signature["write_slots"],
      signature["maps"], signature["rank"], signature["constant"],
      signature["linear"], signature["first_segments"],
      signature["num_segments"]);
  func::ReturnOp::create(builder, builder.getUnknownLoc(), states);
}
