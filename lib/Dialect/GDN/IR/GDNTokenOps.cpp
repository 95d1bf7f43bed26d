// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifiers and folds of the ops in GDNTokenOps.td. A label such as unpack_c1
// is constraint (C1) of that op, there and in docs/spec.
#include "GateWeights.h"
#include "NamedSizes.h"
#include "OpChecks.h"

#include "gdn/Dialect/GDN/IR/GDN.h"

#include "llvm/Support/CheckedArithmetic.h"

using namespace mlir;
using namespace gdn;

/// True for the parts with `d` columns per head, false for those with one.
static bool isHeadPart(char part) { return StringRef("qkvz").contains(part); }
/// True for the parts with key heads, false for those with value heads.
static bool isKeyPart(char part) { return part == 'q' || part == 'k'; }

LogicalResult UnpackOp::verify() {
  StringRef parts = getParts();
  // unpack_c1
  if (parts.empty())
    return emitOpError("expects 'parts' to name at least one part");
  for (auto [index, part] : llvm::enumerate(parts)) {
    if (!StringRef("qkvzab").contains(part))
      return emitOpError("expects 'parts' to hold letters of q k v z a b, "
                         "but got '")
             << Twine(part) << "'";
    if (parts.take_front(index).contains(part))
      return emitOpError("expects 'parts' to hold each letter once, but got '")
             << Twine(part) << "' twice";
  }

  // unpack_c2, and that d is static and agrees: unpack_c3
  if (getNumResults() != parts.size())
    return emitOpError("expects one result per part of ")
           << getPartsAttr() << ", which is " << parts.size() << ", but got "
           << getNumResults();
  NamedSizes sizes(*this, {"dk", "dv"});
  Type element = getPacked().getType().getElementType();
  if (failed(sizes.agree("packed", getPacked().getType(), {"T", "columns"})))
    return failure();
  for (auto [part, result] : llvm::zip(parts, getResults())) {
    Type type = result.getType();
    StringRef name(&part, 1), heads = isKeyPart(part) ? "Hk" : "Hv";
    LogicalResult agreed =
        isHeadPart(part)
            ? sizes.agree(name, type,
                          {"T", heads, isKeyPart(part) ? "dk" : "dv"})
            : sizes.agree(name, type, {"T", heads});
    if (failed(agreed))
      return failure();
    if (getElementTypeOrSelf(type) != element)
      return emitOpError("expects '")
             << name << "' to have the element type of 'packed', " << element
             << ", but got " << getElementTypeOrSelf(type);
  }
  if (failed(sizes.verifyHeadDim("dk")) || failed(sizes.verifyHeadDim("dv")))
    return failure(); // unpack_c3

  // unpack_c4
  int64_t columns = sizes.get("columns");
  std::optional<int64_t> sum = 0;
  for (char part : parts) {
    int64_t heads = sizes.get(isKeyPart(part) ? "Hk" : "Hv");
    if (ShapedType::isDynamic(heads))
      columns = ShapedType::kDynamic;
    int64_t width =
        isHeadPart(part) ? sizes.get(isKeyPart(part) ? "dk" : "dv") : 1;
    if (sum)
      sum = llvm::checkedMulAdd(heads, width, *sum);
  }
  if (!ShapedType::isDynamic(columns) && sum != columns) {
    InFlightDiagnostic diag =
        emitOpError("expects the columns of the parts to add up to ")
        << columns << ", set by " << sizes.setBy("columns") << ", but got ";
    return sum ? diag << *sum : diag << "more than 64 bits hold";
  }
  return sizes.verifyHeadCounts(); // unpack_c5
}

template <typename T, typename Parse>
static ParseResult parseOneOrTwo(OpAsmParser &parser, T &last, Parse parse,
                                 function_ref<void(T)> takeFirst) {
  if (parse(last))
    return failure();
  if (failed(parser.parseOptionalComma()))
    return success();
  takeFirst(last);
  return parse(last);
}

ParseResult
gdn::parseGateWeights(OpAsmParser &parser,
                      std::optional<OpAsmParser::UnresolvedOperand> &aLog,
                      OpAsmParser::UnresolvedOperand &dtBias) {
  using Operand = OpAsmParser::UnresolvedOperand;
  return parseOneOrTwo<Operand>(
      parser, dtBias, [&](Operand &x) { return parser.parseOperand(x); },
      [&](Operand first) { aLog = first; });
}

ParseResult gdn::parseGateWeightTypes(OpAsmParser &parser, Type &aLog,
                                      Type &dtBias) {
  return parseOneOrTwo<Type>(
      parser, dtBias, [&](Type &x) { return parser.parseType(x); },
      [&](Type first) { aLog = first; });
}

void gdn::printGateWeights(OpAsmPrinter &printer, GatesOp, Value aLog,
                           Value dtBias) {
  if (aLog)
    printer << aLog << ", ";
  printer << dtBias;
}

void gdn::printGateWeightTypes(OpAsmPrinter &printer, GatesOp, Type aLog,
                               Type dtBias) {
  if (aLog)
    printer << aLog << ", ";
  printer << dtBias;
}

LogicalResult GatesOp::verify() {
  NamedSizes sizes(*this);
  bool perChannel = getA().getType().getRank() == 3;
  SmallVector<SizeName> a = {"T", "Hv"};
  if (perChannel)
    a.push_back("dk");
  // gates_c1
  if (failed(sizes.agree("a", getA().getType(), a)) ||
      failed(sizes.agree("dt_bias", getDtBias().getType(),
                         ArrayRef(a).drop_front())))
    return failure();
  // gates_c2
  if (failed(sizes.agree("b", getB().getType(), {"T", "Hv"})) ||
      (getALog() && failed(sizes.agree("a_log", getALog().getType(), {"Hv"}))))
    return failure();
  // gates_c3
  if (failed(sizes.agree("log_decay", getLogDecay().getType(), a)) ||
      failed(sizes.agree("beta", getBeta().getType(), {"T", "Hv"})))
    return failure();
  // gates_c4
  if (failed(
          verifyPositive(*this, "softplus_threshold", getSoftplusThreshold())))
    return failure();
  // gates_c5
  if (std::optional<APFloat> bound = getLowerBound())
    return verifyNegative(*this, "lower_bound", *bound);
  // gates_c6
  if (!getALog())
    return emitOpError("expects an 'a_log' without 'lower_bound', but got "
                       "neither");
  return success();
}

LogicalResult L2NormOp::verify() {
  // l2norm_c1
  NamedSizes sizes(*this, {"d"});
  if (failed(sizes.agree("input", getInput().getType(), {"T", "H", "d"})) ||
      failed(sizes.agree("result", getResult().getType(), {"T", "H", "d"})))
    return failure();
  return verifyPositive(*this, "eps", getEps()); // l2norm_c2
}

LogicalResult GatedRMSNormOp::verify() {
  // gated_rms_norm_c1
  NamedSizes sizes(*this, {"dv"});
  if (failed(sizes.agree("input", getInput().getType(), {"T", "Hv", "dv"})) ||
      failed(sizes.agree("gate", getGate().getType(), {"T", "Hv", "dv"})) ||
      failed(sizes.agree("result", getResult().getType(), {"T", "Hv", "dv"})))
    return failure();
  // gated_rms_norm_c2
  if (failed(sizes.agree("weight", getWeight().getType(), {"dv"})))
    return failure();
  // gated_rms_norm_c3
  if (getActivation().has_value() == bool(getConstants()))
    return emitOpError("expects an activation or 'constants', but got ")
           << (getConstants() ? "both" : "neither");
  if (getActivation() &&
      failed(verifyActivation(*this, *getActivation(),
                              {Activation::silu, Activation::sigmoid})))
    return failure();
  // gated_rms_norm_c4
  if (failed(verifyPositive(*this, "eps", getEps())))
    return failure();
  // gated_rms_norm_c5
  if (!getConstants())
    return success();
  const int64_t size = getConstants().getType().getDimSize(0);
  if (size != 2)
    return emitOpError("expects 'constants' to have 2 elements, but got ")
           << getConstants().getType();
  return success();
}

LogicalResult CastOp::verify() {
  // cast_c1
  return verifySameShape(*this, "input", getInput().getType(), "result",
                         getResult().getType());
}

OpFoldResult CastOp::fold(FoldAdaptor) {
  if (getInput().getType() == getResult().getType())
    return getInput();
  // A widening cast is exact, so what follows it may read its input.
  auto inner = getInput().getDefiningOp<CastOp>();
  if (inner &&
      inner.getInput().getType().getElementType() !=
          inner.getResult().getType().getElementType() &&
      inner.getResult().getType().getElementType().isF32()) {
    getInputMutable().assign(inner.getInput());
    return getResult();
  }
  return {};
}
