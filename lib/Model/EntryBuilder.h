// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An entry while it is written: its parameters (EntryParameters.cpp), then its
// body (EntryBuilder.cpp).
#ifndef GDN_LIB_MODEL_ENTRYBUILDER_H
#define GDN_LIB_MODEL_ENTRYBUILDER_H

#include "Signature.h"

#include "gdn/Model/EntryBuilder.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace gdn {

enum class Phase { prefill, decode, verify, commit };

/// The most tokens of a sequence of `verify`, unless asked otherwise: as many
/// as can be pending, and as eight warps take in one go.
constexpr int64_t maxVerifyTokens = 8;

/// Builds one entry function.
class EntryBuilder {
public:
  EntryBuilder(mlir::OpBuilder &builder, const ModelConfig &config,
               const EntryOptions &options, Phase phase)
      : builder(builder), config(config), options(options), phase(phase),
        layout(options.layout.value_or(config.layout)), signature(builder) {}

  void build(llvm::StringRef name);

private:
  /// The inputs head by head: q, k `T x Hk x dk`; v, z `T x Hv x dv`; b, a.
  struct Inputs {
    mlir::Value q, k, v, z, b, a;
  };

  void addParameters();
  void addProjections();
  void addWeights();
  void addAttributes(mlir::func::FuncOp func);
  Inputs unpackInputs();
  mlir::ValueRange unpack(llvm::StringRef parts, PackLayout packing,
                          llvm::StringRef parameter);
  void buildBody();

  void addRows();
  void addPools();
  void addPendingPools(llvm::StringRef room);
  void buildCommit();
  PendingOperands pendingPools();
  mlir::Value acceptedSlots(int64_t mostTokens);
  /// The most tokens of a sequence of `verify`; 0 for any number.
  int64_t mostTokens() const {
    return options.verifyTokens.value_or(maxVerifyTokens);
  }
  bool isLazy() const {
    return options.verify == VerifyStates::lazy &&
           (phase == Phase::verify || phase == Phase::commit);
  }
  /// Whether states lack tokens of several steps.
  bool isDeferred() const {
    return options.deferWrites != 0 && phase != Phase::prefill;
  }
  bool isBuffer() const {
    return options.verify == VerifyStates::buffer &&
           (phase == Phase::verify || phase == Phase::commit);
  }
  bool isRagged() const { return phase != Phase::decode; }
  /// Whether the entry takes some of the rows.
  bool isMixed() const {
    return options.mixedBatch &&
           (phase == Phase::prefill || phase == Phase::verify);
  }
  std::string tokens() const { return isRagged() ? "T" : "N"; }

  mlir::Type floatType(FloatKind kind) const;
  mlir::RankedTensorType likeOf(mlir::Value value, mlir::Type element) const;
  mlir::Location loc(llvm::StringRef name) const {
    return mlir::NameLoc::get(builder.getStringAttr(name));
  }
  bool isReady() const { return layout == InputLayout::ready; }
  bool hasConv() const { return gdn::hasConv(layout); }
  bool givesNorm() const { return options.outputs != EntryOutputs::core; }
  bool givesCore() const { return options.outputs != EntryOutputs::norm; }
  bool takesNormConstants() const {
    return givesNorm() && options.normConstants;
  }

  mlir::OpBuilder &builder;
  const ModelConfig &config;
  const EntryOptions &options;
  Phase phase;
  InputLayout layout;
  Signature signature;
};

} // namespace gdn

#endif // GDN_LIB_MODEL_ENTRYBUILDER_H
