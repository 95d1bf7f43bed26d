// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Agreement of sizes within one op, and the wording of its errors.
#include "NamedSizes.h"

#include "gdn/Dialect/GDN/IR/GDN.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace gdn;

ArrayRef<int64_t> gdn::getSizes(Type type) {
  if (auto pool = dyn_cast<PoolType>(type))
    return pool.getShape();
  return cast<ShapedType>(type).getShape();
}

static std::string spell(const SizeName &name) {
  if (name.offset == 0)
    return name.name.str();
  return (name.name + (name.offset < 0 ? " - " : " + ") +
          Twine(std::abs(name.offset)))
      .str();
}

LogicalResult NamedSizes::agree(StringRef owner, Type type,
                                ArrayRef<SizeName> names) {
  ArrayRef<int64_t> shape = getSizes(type);
  if (shape.size() != names.size())
    return op->emitOpError("expects '")
           << owner << "' to have rank " << names.size() << ", "
           << llvm::join(llvm::map_range(names, spell), " x ")
           << ", but got rank " << shape.size();

  for (auto [dim, name] : llvm::enumerate(names))
    if (failed(agreeDim(owner, type, dim, name)))
      return failure();
  return success();
}

LogicalResult NamedSizes::agreeDim(StringRef owner, Type type, unsigned dim,
                                   SizeName name) {
  int64_t size = getSizes(type)[dim];
  if (ShapedType::isDynamic(size)) {
    if (!llvm::is_contained(mustBeStatic, name.name))
      return success();
    return op->emitOpError("expects dim ")
           << dim << " of '" << owner << "', " << spell(name)
           << ", to be static, but got a dynamic size";
  }
  if (size < name.offset)
    return op->emitOpError("expects dim ")
           << dim << " of '" << owner << "', " << spell(name)
           << ", to be at least " << name.offset << ", but got " << size;
  auto [it, isFirst] = sizes.try_emplace(
      name.name, Setter{owner.str(), dim, size - name.offset});
  int64_t want = it->second.size + name.offset;
  if (isFirst || want == size)
    return success();
  InFlightDiagnostic diag = op->emitOpError("expects dim ")
                            << dim << " of '" << owner << "' to be "
                            << spell(name) << " = " << want << ", ";
  if (name.offset != 0)
    diag << name.name << " ";
  return diag << "set by " << setBy(name.name) << ", but got " << size;
}

int64_t NamedSizes::get(StringRef name) const {
  auto it = sizes.find(name);
  return it == sizes.end() ? ShapedType::kDynamic : it->second.size;
}

std::string NamedSizes::setBy(StringRef name) const {
  const Setter &setter = sizes.find(name)->second;
  return ("dim " + Twine(setter.dim) + " of '" + setter.owner + "'").str();
}

LogicalResult NamedSizes::verifyHeadDim(StringRef name) {
  int64_t size = get(name);
  if (ShapedType::isDynamic(size) ||
      (size >= 8 && size <= 256 && size % 8 == 0))
    return success();
  return op->emitOpError("expects ")
         << name << ", set by " << setBy(name)
         << ", to be a multiple of 8 from 8 to 256, but got " << size;
}

LogicalResult NamedSizes::verifyHeadCounts() {
  int64_t keyHeads = get("Hk"), valueHeads = get("Hv");
  if (ShapedType::isDynamic(keyHeads) || ShapedType::isDynamic(valueHeads))
    return success();
  // Zero heads are legal only on both sides.
  if (keyHeads == 0 ? valueHeads == 0 : valueHeads % keyHeads == 0)
    return success();
  return op->emitOpError("expects Hv to be a multiple of Hk, but got Hv = ")
         << valueHeads << ", set by " << setBy("Hv")
         << ", and Hk = " << keyHeads << ", set by " << setBy("Hk");
}
