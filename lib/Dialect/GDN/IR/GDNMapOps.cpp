// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifiers of the ops in GDNMapOps.td, and the types of their results.
#include "NamedSizes.h"
#include "OpChecks.h"

#include "gdn/Dialect/GDN/IR/GDN.h"

using namespace mlir;
using namespace gdn;

/// The static sizes that the constraints of both ops name.
static constexpr StringRef staticSizes[] = {"dk", "dv"};

/// The last two sizes of the H of segments.
static std::pair<int64_t, int64_t> getHeadSizes(Value constant) {
  ArrayRef<int64_t> shape = getSizes(constant.getType());
  return {shape[2], shape[3]};
}

/// Checks what both ops have of segments.
template <typename OpTy>
static LogicalResult verifySegments(OpTy op, NamedSizes &sizes) {
  return failure(failed(sizes.agree("constant", op.getConstant().getType(),
                                    {"M", "Hv", "dv", "dk"})) ||
                 failed(sizes.agree("linear", op.getLinear().getType(),
                                    {"M", "Hv", "dk", "dk"})) ||
                 failed(sizes.agree("first_segments",
                                    op.getFirstSegments().getType(), {"N"})) ||
                 failed(sizes.agree("num_segments",
                                    op.getNumSegments().getType(), {"N"})));
}

LogicalResult CombineMapsOp::verify() {
  // combine_maps_c1, combine_maps_c2
  NamedSizes sizes(*this, staticSizes);
  return verifySegments(*this, sizes);
}

LogicalResult
CombineMapsOp::inferReturnTypes(MLIRContext *context, std::optional<Location>,
                                ValueRange operands, DictionaryAttr attributes,
                                OpaqueProperties properties, RegionRange,
                                SmallVectorImpl<Type> &types) {
  CombineMapsOpAdaptor op(operands, attributes, properties);
  auto [dv, dk] = getHeadSizes(op.getConstant());
  const bool isStatic =
      !ShapedType::isDynamic(dv) && !ShapedType::isDynamic(dk);
  types.push_back(
      RankedTensorType::get({getSizes(op.getFirstSegments().getType())[0],
                             getSizes(op.getConstant().getType())[1],
                             isStatic ? dv + dk : ShapedType::kDynamic, dk},
                            Float32Type::get(context)));
  return success();
}

LogicalResult ApplyMapsOp::verify() {
  NamedSizes sizes(*this, staticSizes);
  // apply_maps_c1, apply_maps_c2
  if (failed(verifySegments(*this, sizes)) ||
      failed(sizes.agree("slots", getSlots().getType(), {"N"})) ||
      failed(sizes.agree("write_slots", getWriteSlots().getType(), {"N"})) ||
      failed(
          sizes.agree("pool", getPool().getType(), {"P", "Hv", "dv", "dk"})) ||
      failed(verifyFloats(*this, "pool", getPool().getType())))
    return failure();
  const int64_t dk = getHeadSizes(getConstant()).second;
  if (failed(sizes.agree("maps", getMaps().getType(),
                         {"R", "N", "Hv", {"dv", dk}, "dk"})))
    return failure();
  // apply_maps_c3
  const int64_t elements = getSizes(getRank().getType())[0];
  if (!ShapedType::isDynamic(elements) && elements != 1)
    return emitOpError("expects 'rank' to have one element, but got ")
           << elements;
  return success();
}

LogicalResult
ApplyMapsOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                              ValueRange operands, DictionaryAttr attributes,
                              OpaqueProperties properties, RegionRange,
                              SmallVectorImpl<Type> &types) {
  ApplyMapsOpAdaptor op(operands, attributes, properties);
  types.push_back(op.getConstant().getType());
  return success();
}
