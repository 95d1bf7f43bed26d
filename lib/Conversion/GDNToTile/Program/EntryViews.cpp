// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arguments of an entry as strided views. A packed projection is never copied:
// each part is a view of it, by the index maps of the interleaved and the flat
// layout (gdn.unpack).
#include "Program/EntryViews.h"

#include "gdn/Dialect/GDN/IR/PoolOrder.h"
#include "gdn/Support/LinearForm.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace gdn;

/// A memref of `shape` whose strides are all dynamic, but for that of the
/// dimension `unitDim`, which is 1, if there is one.
static MemRefType stridedType(ArrayRef<int64_t> shape, Type element,
                              std::optional<int64_t> unitDim) {
  SmallVector<int64_t> strides(shape.size(), ShapedType::kDynamic);
  if (unitDim)
    strides[*unitDim] = 1;
  auto layout = StridedLayoutAttr::get(element.getContext(),
                                       ShapedType::kDynamic, strides);
  return MemRefType::get(shape, element, layout);
}

/// The same with stride 1 in the last dimension, if there is any.
static MemRefType rowMajorType(ArrayRef<int64_t> shape, Type element) {
  std::optional<int64_t> last;
  if (!shape.empty())
    last = shape.size() - 1;
  return stridedType(shape, element, last);
}

SmallVector<std::string> gdn::getEntrySymbols(func::FuncOp entry) {
  SmallVector<std::string> symbols;
  auto scan = [&](DictionaryAttr attrs) {
    auto dims = attrs ? attrs.getAs<ArrayAttr>("gdn.dims") : ArrayAttr();
    for (Attribute dim : dims ? dims.getValue() : ArrayRef<Attribute>()) {
      // The dialect has checked that forms parse.
      LinearForm form =
          llvm::cantFail(LinearForm::parse(cast<StringAttr>(dim).getValue()));
      for (const LinearForm::Term &term : form.getTerms())
        if (!llvm::is_contained(symbols, term.symbol))
          symbols.push_back(term.symbol);
    }
  };
  for (unsigned i = 0; i < entry.getNumArguments(); ++i)
    scan(entry.getArgAttrDict(i));
  for (unsigned i = 0; i < entry.getNumResults(); ++i)
    scan(entry.getResultAttrDict(i));
  return symbols;
}

std::string gdn::getDimForm(Value value, unsigned dim) {
  if (auto type = dyn_cast<ShapedType>(value.getType()))
    if (dim < type.getRank() && !type.isDynamicDim(dim))
      return std::to_string(type.getDimSize(dim));
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    auto func = dyn_cast<func::FuncOp>(arg.getOwner()->getParentOp());
    if (!func)
      return "";
    if (arg.getType().isIndex()) {
      auto name =
          func.getArgAttrOfType<StringAttr>(arg.getArgNumber(), "gdn.name");
      return name ? name.str() : "";
    }
    auto dims =
        func.getArgAttrOfType<ArrayAttr>(arg.getArgNumber(), "gdn.dims");
    return dims && dim < dims.size() ? cast<StringAttr>(dims[dim]).str() : "";
  }
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return std::to_string(*constant);
  Operation *op = value.getDefiningOp();
  if (auto unpack = dyn_cast<UnpackOp>(op)) {
    char part = unpack.getParts()[cast<OpResult>(value).getResultNumber()];
    if (dim == 0)
      return getDimForm(unpack.getPacked(), 0);
    bool isKey = part == 'q' || part == 'k';
    return getDimForm(isKey ? unpack.getKeyHeads() : unpack.getValueHeads(), 0);
  }
  if (auto conv = dyn_cast<Conv1dOp>(op))
    return getDimForm(conv.getInputs()[cast<OpResult>(value).getResultNumber()],
                      dim);
  if (isa<L2NormOp, GatesOp, GatedRMSNormOp, MaskSequencesOp, CastOp>(op))
    return getDimForm(op->getOperand(0), dim);
  if (auto rule = dyn_cast<RuleOpInterface>(op))
    return getDimForm(rule.getValue(), dim);
  if (auto accepted = dyn_cast<AcceptedSlotsOp>(op))
    return getDimForm(accepted.getTokenSlots(), 0);
  if (auto counted = dyn_cast<CountedSlotsOp>(op))
    return getDimForm(counted.getSlots(), 0);
  if (auto taken = dyn_cast<TakenSlotsOp>(op))
    return getDimForm(taken.getFlags(), 0);
  return "";
}

EntryViews gdn::createEntryViews(func::FuncOp source, StringRef name) {
  OpBuilder builder(source);
  EntryViews views;
  views.source = source;

  auto nameOf = [&](unsigned arg) {
    return source.getArgAttrOfType<StringAttr>(arg, "gdn.name");
  };
  SmallVector<std::string> symbols = getEntrySymbols(source);
  SmallVector<Type> types(symbols.size(), builder.getIndexType());
  SmallVector<DictionaryAttr> attrs;
  auto named = [&](StringRef name) {
    return builder.getDictionaryAttr(
        builder.getNamedAttr("gdn.name", builder.getStringAttr(name)));
  };
  for (const std::string &symbol : symbols)
    attrs.push_back(named(symbol));

  for (auto [index, arg] : llvm::enumerate(source.getArguments())) {
    StringAttr name = nameOf(index);
    if (auto pool = dyn_cast<PoolType>(arg.getType())) {
      types.push_back(stridedType(pool.getShape(), pool.getElementType(),
                                  getContiguousDim(source, index)));
      types.push_back(builder.getIndexType());
      attrs.push_back(named(name));
      attrs.push_back(named((name.getValue() + "_null_slot").str()));
    } else if (auto tensor = dyn_cast<RankedTensorType>(arg.getType())) {
      types.push_back(rowMajorType(tensor.getShape(), tensor.getElementType()));
      attrs.push_back(named(name));
    }
  }
  for (unsigned i = 0; i < source.getNumResults(); ++i) {
    auto name = source.getResultAttrOfType<StringAttr>(i, "gdn.name");
    auto tensor = cast<RankedTensorType>(source.getResultTypes()[i]);
    types.push_back(rowMajorType(tensor.getShape(), tensor.getElementType()));
    attrs.push_back(named(name));
  }

  auto function = func::FuncOp::create(builder, source.getLoc(), name,
                                       builder.getFunctionType(types, {}));
  function.setAllArgAttrs(ArrayRef<DictionaryAttr>(attrs));
  tile::StageFields(function).setSymbols(
      SmallVector<StringRef>(symbols.begin(), symbols.end()));
  Block *body = function.addEntryBlock();
  views.function = function;

  unsigned next = symbols.size();
  for (auto [index, arg] : llvm::enumerate(source.getArguments())) {
    if (arg.getType().isIndex()) {
      auto it = llvm::find(symbols, nameOf(index).str());
      views.symbols[arg] = body->getArgument(it - symbols.begin());
    } else if (isa<PoolType>(arg.getType())) {
      views.pools[arg] = {body->getArgument(next), body->getArgument(next + 1)};
      next += 2;
    } else {
      views.tensors[arg] = body->getArgument(next++);
    }
  }
  for (unsigned i = 0; i < source.getNumResults(); ++i)
    views.results.push_back(body->getArgument(next++));
  return views;
}

LogicalResult
gdn::emitStageOf(func::FuncOp source, const Twine &suffix, int64_t &numStages,
                 llvm::function_ref<LogicalResult(EntryViews &)> emit) {
  EntryViews views =
      createEntryViews(source, (source.getName() + suffix).str());
  if (failed(emit(views))) {
    views.function.erase();
    return failure();
  }
  ++numStages;
  return success();
}

namespace {
/// Index arithmetic on values that are often constants.
struct Index {
  OpBuilder &builder;
  Location loc;
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  Value mul(Value a, Value b) {
    return builder.createOrFold<arith::MulIOp>(loc, a, b);
  }
  Value add(Value a, Value b) {
    return builder.createOrFold<arith::AddIOp>(loc, a, b);
  }
};
} // namespace

/// The strided view of `base` (offset and strides relative to its own).
static Value makeView(OpBuilder &builder, Location loc, Value base,
                      Value offset, ArrayRef<Value> sizes,
                      ArrayRef<int64_t> shape, ArrayRef<Value> strides) {
  auto type = cast<MemRefType>(base.getType());
  auto meta = memref::ExtractStridedMetadataOp::create(builder, loc, base);
  Value start =
      builder.createOrFold<arith::AddIOp>(loc, meta.getOffset(), offset);
  // A part with a last dimension is contiguous in it.
  SmallVector<OpFoldResult> sizeValues, strideValues;
  for (auto [size, dim] : llvm::zip(sizes, shape))
    sizeValues.push_back(ShapedType::isDynamic(dim)
                             ? OpFoldResult(size)
                             : OpFoldResult(builder.getIndexAttr(dim)));
  for (Value stride : strides)
    strideValues.push_back(stride ? OpFoldResult(stride)
                                  : OpFoldResult(builder.getIndexAttr(1)));
  SmallVector<int64_t> staticStrides;
  for (Value stride : strides)
    staticStrides.push_back(stride ? ShapedType::kDynamic : 1);
  auto view = MemRefType::get(shape, type.getElementType(),
                              StridedLayoutAttr::get(builder.getContext(),
                                                     ShapedType::kDynamic,
                                                     staticStrides));
  return memref::ReinterpretCastOp::create(
      builder, loc, view, meta.getBaseBuffer(), OpFoldResult(start), sizeValues,
      strideValues);
}

/// Columns per head of a part, and whether it belongs to key heads.
static int64_t partWidth(UnpackOp unpack, unsigned index) {
  auto type = cast<RankedTensorType>(unpack.getResult(index).getType());
  return type.getRank() == 3 ? type.getDimSize(2) : 1;
}
static bool isKeyPart(UnpackOp unpack, unsigned index) {
  char part = unpack.getParts()[index];
  return part == 'q' || part == 'k';
}

/// The view of one part of a packed projection: `[T, Hk(, d)]` for parts of
/// key heads, `[T, Hk, R(, d)]` for parts of value heads.
static Value unpackView(OpBuilder &builder, const EntryViews &views,
                        UnpackOp unpack, unsigned index, Value ratio) {
  Location loc = unpack.getLoc();
  Index math{builder, loc};
  Value base = views.tensors.lookup(unpack.getPacked());
  Value keyHeads = views.index(builder, unpack.getKeyHeads());
  Value valueHeads = views.index(builder, unpack.getValueHeads());
  auto meta = memref::ExtractStridedMetadataOp::create(builder, loc, base);
  Value tokenStride = meta.getStrides()[0];
  Value tokens = memref::DimOp::create(builder, loc, base, 0);
  int64_t width = partWidth(unpack, index);
  bool key = isKeyPart(unpack, index);

  Value offset = math.constant(0), groupStride;
  bool interleaved = unpack.getLayout() == PackLayout::interleaved;
  Value block = math.constant(0); // columns of one key head's block
  for (unsigned i = 0; i < unpack.getNumResults(); ++i) {
    Value columns = math.constant(partWidth(unpack, i));
    if (interleaved) {
      if (!isKeyPart(unpack, i))
        columns = math.mul(columns, ratio);
      if (i < index)
        offset = math.add(offset, columns);
      block = math.add(block, columns);
    } else if (i < index) {
      offset = math.add(
          offset,
          math.mul(columns, isKeyPart(unpack, i) ? keyHeads : valueHeads));
    }
  }
  if (interleaved)
    groupStride = block;
  else
    groupStride =
        key ? math.constant(width) : math.mul(math.constant(width), ratio);

  SmallVector<Value> sizes = {tokens, keyHeads};
  SmallVector<int64_t> shape = {ShapedType::kDynamic, ShapedType::kDynamic};
  SmallVector<Value> strides = {tokenStride, groupStride};
  if (!key) {
    sizes.push_back(ratio);
    shape.push_back(ShapedType::kDynamic);
    // One column per head: heads are adjacent.
    strides.push_back(width == 1 ? Value() : math.constant(width));
  }
  if (cast<RankedTensorType>(unpack.getResult(index).getType()).getRank() ==
      3) {
    sizes.push_back(Value());
    shape.push_back(width);
    strides.push_back(Value());
  }
  return makeView(builder, loc, base, offset, sizes, shape, strides);
}

/// `[T, Hv, d]` or `[T, Hv]` as `[T, Hk, R, d]` or `[T, Hk, R]`.
static Value groupHeads(OpBuilder &builder, Location loc, Value base,
                        Value ratio) {
  auto type = cast<MemRefType>(base.getType());
  SmallVector<int64_t> shape(2, ShapedType::kDynamic);
  SmallVector<ReassociationIndices> groups = {{0}, {1, 2}};
  const bool isMatrix = type.getRank() == 3;
  if (isMatrix) {
    shape.push_back(type.getDimSize(2));
    groups.push_back({3});
  }
  // Sizes are values here, also those that the entry knows.
  Type whole = rowMajorType(shape, type.getElementType());
  if (type != whole)
    base = memref::CastOp::create(builder, loc, whole, base);
  Value heads = memref::DimOp::create(builder, loc, base, 1);
  Value keyHeads = builder.createOrFold<arith::DivUIOp>(loc, heads, ratio);
  SmallVector<OpFoldResult> sizes = {
      memref::DimOp::create(builder, loc, base, 0).getResult(), keyHeads,
      ratio};
  shape.insert(shape.begin(), ShapedType::kDynamic);
  if (isMatrix)
    sizes.push_back(builder.getIndexAttr(shape.back()));
  return memref::ExpandShapeOp::create(
      builder, loc, rowMajorType(shape, type.getElementType()), base, groups,
      sizes);
}

Value EntryViews::size(OpBuilder &builder, Location loc, Value value,
                       unsigned dim) const {
  func::FuncOp program = function;
  ArrayAttr names = stage().getSymbols();
  std::string form = getDimForm(value, dim);
  for (auto [name, argument] :
       llvm::zip(names.getAsRange<StringAttr>(), program.getArguments()))
    if (name == form)
      return argument;
  Value view = isa<PoolType>(value.getType()) ? pools.find(value)->second.memory
                                              : tensors.lookup(value);
  return memref::DimOp::create(builder, loc, view, dim);
}

Value EntryViews::index(OpBuilder &builder, Value value) const {
  if (Value symbol = symbols.lookup(value))
    return symbol;
  return builder.clone(*value.getDefiningOp())->getResult(0);
}

Value EntryViews::keyHeads(OpBuilder &builder, Value value) const {
  if (Value view = tensors.lookup(value))
    return view;
  auto unpack = value.getDefiningOp<UnpackOp>();
  return unpackView(builder, *this, unpack,
                    cast<OpResult>(value).getResultNumber(),
                    builder.createOrFold<arith::DivUIOp>(
                        unpack.getLoc(), index(builder, unpack.getValueHeads()),
                        index(builder, unpack.getKeyHeads())));
}

Value EntryViews::valueHeads(OpBuilder &builder, Value value,
                             Value ratio) const {
  if (Value view = tensors.lookup(value))
    return groupHeads(builder, value.getLoc(), view, ratio);
  auto unpack = value.getDefiningOp<UnpackOp>();
  return unpackView(builder, *this, unpack,
                    cast<OpResult>(value).getResultNumber(), ratio);
}

Value EntryViews::resultHeads(OpBuilder &builder, unsigned index,
                              Value ratio) const {
  return groupHeads(builder, results[index].getLoc(), results[index], ratio);
}

SmallVector<Value> gdn::getResultViews(const EntryViews &views, KernelOp kernel,
                                       Value result) {
  Operation *yield = kernel.getBody().front().getTerminator();
  Operation *end = kernel->getBlock()->getTerminator();
  SmallVector<Value> found;
  for (auto [yielded, given] :
       llvm::zip(yield->getOperands(), kernel.getResults()))
    for (auto [returned, view] : llvm::zip(end->getOperands(), views.results))
      if (yielded == result && returned == given)
        found.push_back(view);
  return found;
}
