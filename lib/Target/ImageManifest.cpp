// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The manifest of an entry: names, types and forms of its parameters, as its
// function states them, and the gdn source, so that an image can be checked
// against its meaning without any other file.
#include "ImageManifest.h"

#include "gdn/Dialect/GDN/IR/GDN.h"
#include "gdn/Dialect/GDN/IR/PoolOrder.h"
#include "gdn/Support/LinearForm.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace gdn;
namespace fb = gdnrt::fb;

FailureOr<fb::LinearFormT> gdn::encodeForm(StringRef text,
                                           ArrayRef<std::string> symbols) {
  llvm::Expected<LinearForm> form = LinearForm::parse(text);
  if (!form) {
    llvm::consumeError(form.takeError());
    return failure();
  }
  fb::LinearFormT encoded;
  encoded.constant = form->getConstant();
  for (const LinearForm::Term &term : form->getTerms()) {
    const std::string *found = llvm::find(symbols, term.symbol);
    if (found == symbols.end())
      return failure();
    encoded.symbols.push_back(found - symbols.begin());
    encoded.coefficients.push_back(term.coefficient);
    if (form->hasQuotients())
      encoded.divisors.push_back(term.divisor);
  }
  return encoded;
}

static std::optional<fb::DType> dtypeOf(Type type) {
  if (type.isF32())
    return fb::DType::f32;
  if (type.isBF16())
    return fb::DType::bf16;
  if (type.isF16())
    return fb::DType::f16;
  if (type.isF64())
    return fb::DType::f64;
  if (type.isInteger(32))
    return fb::DType::i32;
  if (type.isInteger(64))
    return fb::DType::i64;
  if (type.isInteger(1))
    return fb::DType::i1;
  if (type.isInteger(8))
    return fb::DType::u8;
  return std::nullopt;
}

/// What the entry does with the elements of a pool. What it writes it has read,
/// as far as anybody can tell: slots that no row names keep what they hold.
static fb::Access poolAccess(Value pool) {
  bool writes = false;
  for (Operation *user : pool.getUsers()) {
    auto effects = dyn_cast<MemoryEffectOpInterface>(user);
    if (!effects)
      continue;
    SmallVector<MemoryEffects::EffectInstance> instances;
    effects.getEffectsOnValue(pool, instances);
    for (const MemoryEffects::EffectInstance &instance : instances)
      writes |= isa<MemoryEffects::Write>(instance.getEffect());
  }
  return writes ? fb::Access::read_write : fb::Access::read;
}

/// One parameter, from its type and its attributes. `what` and `index` name it
/// in errors.
static LogicalResult describeParameter(func::FuncOp entry, StringRef what,
                                       unsigned index, Type type,
                                       DictionaryAttr attributes,
                                       ArrayRef<std::string> symbols,
                                       fb::ParamT &param) {
  auto fail = [&]() -> InFlightDiagnostic {
    return entry.emitOpError("expects ") << what << ' ' << index << ' ';
  };
  auto name = attributes ? attributes.getAs<StringAttr>("gdn.name") : nullptr;
  auto dims = attributes ? attributes.getAs<ArrayAttr>("gdn.dims") : nullptr;
  if (!name || !dims)
    return fail() << "to have 'gdn.name' and 'gdn.dims'";
  Type element;
  int64_t rank = 0;
  if (auto pool = dyn_cast<PoolType>(type)) {
    param.kind = fb::ParamKind::pool;
    element = pool.getElementType();
    rank = pool.getRank();
    // A convolution state may have its channels or its positions innermost.
    if (std::optional<int64_t> dim = getContiguousDim(entry, index)) {
      param.unit_stride_last = *dim == rank - 1;
      param.unit_stride_dim = param.unit_stride_last ? 0 : *dim;
    }
  } else if (auto tensor = dyn_cast<RankedTensorType>(type)) {
    param.kind = fb::ParamKind::tensor;
    element = tensor.getElementType();
    rank = tensor.getRank();
    param.unit_stride_last = true;
  } else {
    return fail() << "to be a tensor or a pool, but got " << type;
  }
  std::optional<fb::DType> dtype = dtypeOf(element);
  if (!dtype)
    return fail() << "to have elements that an image knows, but got "
                  << element;
  if (int64_t(dims.size()) != rank)
    return fail() << "to have one form per dimension in 'gdn.dims', but got "
                  << dims.size() << " forms for rank " << rank;
  param.name = name.str();
  param.dtype = *dtype;
  for (auto form : dims.getAsRange<StringAttr>()) {
    FailureOr<fb::LinearFormT> encoded = encodeForm(form.getValue(), symbols);
    if (failed(encoded))
      return fail() << "to have linear forms over the symbols "
                    << llvm::join(symbols, ", ") << " in 'gdn.dims', but got "
                    << form;
    param.dims.push_back(
        std::make_unique<fb::LinearFormT>(std::move(*encoded)));
  }
  return success();
}

/// The entry as text, with the names of its arguments.
static std::string sourceOf(func::FuncOp entry) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  entry->print(stream, OpPrintingFlags().printNameLocAsPrefix());
  return text;
}

/// The tokens beyond which the entry skips a row, of which a serving layer has
/// to know; nothing where rows of any length are taken.
static std::optional<int64_t> maxTokensOf(func::FuncOp entry) {
  std::optional<int64_t> most;
  auto take = [&](std::optional<uint64_t> tokens) {
    if (tokens)
      most = std::min<int64_t>(most.value_or(*tokens), *tokens);
  };
  entry.walk([&](AcceptedSlotsOp op) { take(op.getMaxTokens()); });
  entry.walk([&](CountedSlotsOp op) { take(op.getMaxTokens()); });
  return most;
}

static std::unique_ptr<fb::KeyValueT> keyValue(StringRef key, StringRef value) {
  auto pair = std::make_unique<fb::KeyValueT>();
  pair->key = key.str();
  pair->value = value.str();
  return pair;
}

FailureOr<fb::EntryT> gdn::describeEntry(func::FuncOp entry,
                                         ArrayRef<std::string> symbols) {
  fb::EntryT described;
  described.name = entry.getName().str();
  described.symbols.assign(symbols.begin(), symbols.end());

  for (BlockArgument argument : entry.getArguments()) {
    unsigned index = argument.getArgNumber();
    if (argument.getType().isIndex())
      continue;
    auto param = std::make_unique<fb::ParamT>();
    if (failed(describeParameter(entry, "argument", index, argument.getType(),
                                 entry.getArgAttrDict(index), symbols, *param)))
      return failure();
    param->access = param->kind == fb::ParamKind::pool ? poolAccess(argument)
                                                       : fb::Access::read;
    described.params.push_back(std::move(param));
  }
  for (auto [index, type] : llvm::enumerate(entry.getResultTypes())) {
    auto param = std::make_unique<fb::ParamT>();
    if (failed(describeParameter(entry, "result", index, type,
                                 entry.getResultAttrDict(index), symbols,
                                 *param)))
      return failure();
    param->access = fb::Access::write;
    described.params.push_back(std::move(param));
  }
  if (auto facts = entry->getAttrOfType<DictionaryAttr>("gdn.facts"))
    for (NamedAttribute fact : facts)
      if (auto value = dyn_cast<StringAttr>(fact.getValue()))
        described.attributes.push_back(
            keyValue(fact.getName(), value.getValue()));
  if (std::optional<int64_t> most = maxTokensOf(entry))
    described.attributes.push_back(
        keyValue("gdn.max_tokens", std::to_string(*most)));
  described.attributes.push_back(keyValue("gdn.source", sourceOf(entry)));
  return described;
}
