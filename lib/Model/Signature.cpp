// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The parameters of an entry; see Signature.h.
#include "Signature.h"

using namespace mlir;
using namespace gdn;

std::string gdn::scaled(int64_t coefficient, StringRef symbol) {
  if (coefficient == 1)
    return symbol.str();
  return std::to_string(coefficient) + "*" + symbol.str();
}

Type gdn::floatType(Builder &builder, FloatKind kind) {
  switch (kind) {
  case FloatKind::f32:
    return builder.getF32Type();
  case FloatKind::bf16:
    return builder.getBF16Type();
  case FloatKind::f16:
    return builder.getF16Type();
  }
  llvm_unreachable("a FloatKind outside its enumeration");
}

SmallVector<int64_t> Signature::shapeOf(Dims dims) {
  SmallVector<int64_t> shape;
  for (StringRef dim : dims) {
    int64_t size;
    shape.push_back(dim.getAsInteger(10, size) ? ShapedType::kDynamic : size);
  }
  return shape;
}

void Signature::addSymbol(StringRef name) {
  arguments.push_back({name.str(), builder.getIndexType(), {}, std::nullopt});
}

void Signature::addTensor(StringRef name, Type element, Dims dims) {
  arguments.push_back({name.str(),
                       RankedTensorType::get(shapeOf(dims), element),
                       SmallVector<std::string>(dims), std::nullopt});
}

void Signature::addPool(StringRef name, Type element, Dims dims,
                        std::optional<int64_t> contiguous) {
  arguments.push_back(
      {name.str(), PoolType::get(builder.getContext(), shapeOf(dims), element),
       SmallVector<std::string>(dims), contiguous});
}

void Signature::addStatePools(llvm::StringRef prefix, Dims dims,
                              const EntryOptions &options) {
  auto named = [&](llvm::StringRef name) { return (prefix + name).str(); };
  std::optional<int64_t> contiguous;
  if (options.stateLayout == StateLayout::kv)
    contiguous = 2;
  if (options.statePlanes == 0)
    return addPool(named("state_pool"), floatType(builder, options.state), dims,
                   contiguous);
  addPool(named("state_pool"), builder.getI8Type(), dims, contiguous);
  addPool(named("state_scales"), builder.getF32Type(), dims.drop_back());
  if (options.statePlanes == 2)
    addPool(named("state_low"), builder.getI8Type(), dims, contiguous);
}

void Signature::addResult(StringRef name, Type element, Dims dims) {
  results.push_back({name.str(), RankedTensorType::get(shapeOf(dims), element),
                     SmallVector<std::string>(dims), std::nullopt});
}

DictionaryAttr Signature::attributesOf(const Parameter &parameter) {
  SmallVector<NamedAttribute> attributes = {
      builder.getNamedAttr("gdn.name", builder.getStringAttr(parameter.name))};
  if (!parameter.dims.empty()) {
    SmallVector<StringRef> dims(parameter.dims.begin(), parameter.dims.end());
    attributes.push_back(
        builder.getNamedAttr("gdn.dims", builder.getStrArrayAttr(dims)));
  }
  if (parameter.contiguous)
    attributes.push_back(builder.getNamedAttr(
        contiguousAttr, builder.getI64IntegerAttr(*parameter.contiguous)));
  return builder.getDictionaryAttr(attributes);
}

func::FuncOp Signature::createEntry(StringRef name) {
  SmallVector<Type> inputTypes, resultTypes;
  SmallVector<Attribute> inputAttributes, resultAttributes;
  SmallVector<Location> locations;
  for (const Parameter &argument : arguments) {
    inputTypes.push_back(argument.type);
    inputAttributes.push_back(attributesOf(argument));
    // The printer can show arguments by the names of their locations.
    locations.push_back(NameLoc::get(builder.getStringAttr(argument.name)));
  }
  for (const Parameter &result : results) {
    resultTypes.push_back(result.type);
    resultAttributes.push_back(attributesOf(result));
  }
  auto func =
      func::FuncOp::create(builder, builder.getUnknownLoc(), name,
                           builder.getFunctionType(inputTypes, resultTypes));
  func.setArgAttrsAttr(builder.getArrayAttr(inputAttributes));
  func.setResAttrsAttr(builder.getArrayAttr(resultAttributes));
  func->setAttr("gdn.entry", builder.getUnitAttr());

  Block *body = builder.createBlock(&func.getBody(), {}, inputTypes, locations);
  for (auto [argument, value] :
       llvm::zip_equal(arguments, body->getArguments()))
    values[argument.name] = value;
  return func;
}

Value Signature::operator[](StringRef name) const {
  return values.lookup(name);
}
