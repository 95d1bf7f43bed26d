// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Puts manifest, code and trailer together; see ImageWriter.h.
#include "gdn/Target/ImageWriter.h"

#include "ImageManifest.h"

#include "gdnrt/image_trailer.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace gdn;
namespace fb = gdnrt::fb;

/// The strings of an array attribute of `func`.
static LogicalResult readStrings(LLVM::LLVMFuncOp func, StringRef name,
                                 SmallVectorImpl<std::string> &strings) {
  Attribute attribute = func->getAttr(name);
  auto array = dyn_cast_or_null<ArrayAttr>(attribute);
  if (!array || !llvm::all_of(array, llvm::IsaPred<StringAttr>))
    return func.emitOpError("expects '")
           << name << "' to be an array of strings, but got " << attribute;
  for (auto string : array.getAsRange<StringAttr>())
    strings.push_back(string.str());
  return success();
}

FailureOr<SmallVector<EntryCode>> gdn::collectEntryCodes(ModuleOp lowered) {
  SmallVector<EntryCode> codes;
  for (auto func : lowered.getOps<LLVM::LLVMFuncOp>()) {
    if (!func->hasAttr("gdn_tile.grid"))
      continue;
    EntryCode code;
    code.entry = code.symbol = func.getName().str();
    if (failed(readStrings(func, "gdn_tile.grid", code.grid)) ||
        failed(readStrings(func, "gdn_tile.symbols", code.sizes)))
      return failure();
    if (func->hasAttr("gdn_tile.multiples") &&
        failed(readStrings(func, "gdn_tile.multiples", code.multiples)))
      return failure();
    if (auto facts = func->getAttrOfType<DictionaryAttr>("gdn_tile.facts"))
      for (NamedAttribute fact : facts)
        code.facts.push_back(
            {fact.getName().str(), cast<StringAttr>(fact.getValue()).str()});
    if (auto scratch =
            func->getAttrOfType<IntegerAttr>("gdn_tile.scratch_bytes"))
      code.scratchBytes = scratch.getInt();
    codes.push_back(std::move(code));
  }
  return codes;
}

/// The code that `target` has for the entry; null after an error on `func`.
static const EntryCode *findCode(func::FuncOp func, const TargetCode &target) {
  for (const EntryCode &code : target.entries)
    if (code.entry == func.getName())
      return &code;
  func.emitOpError("has no code for the target with the features ")
      << llvm::join(target.features, ", ");
  return nullptr;
}

/// Adds the code that `target` has for the entry; the blob is number `blob`.
static LogicalResult addCode(func::FuncOp func, const TargetCode &target,
                             unsigned blob, fb::EntryT &entry) {
  const EntryCode *code = findCode(func, target);
  if (!code)
    return failure();
  SmallVector<std::string> symbols(entry.symbols.begin(), entry.symbols.end());
  if (code->sizes != symbols)
    return func.emitOpError("expects the code for ")
           << llvm::join(target.features, ", ") << " to take the symbols "
           << llvm::join(symbols, ", ") << ", as other code does, but got "
           << llvm::join(code->sizes, ", ");
  fb::CodeT encoded;
  encoded.target = "x86-64";
  encoded.features.assign(target.features.begin(), target.features.end());
  encoded.blob = blob;
  encoded.symbol = code->symbol;
  encoded.scratch_bytes = code->scratchBytes;
  for (const std::string &form : code->grid) {
    FailureOr<fb::LinearFormT> grid = encodeForm(form, symbols);
    if (failed(grid))
      return func.emitOpError("expects a grid of linear forms over the "
                              "entry's symbols, but got \"")
             << form << '"';
    encoded.grid.push_back(std::make_unique<fb::LinearFormT>(std::move(*grid)));
  }
  entry.codes.push_back(std::make_unique<fb::CodeT>(std::move(encoded)));
  return success();
}

/// Adds the rules of the entry that its sizes do not express.
static LogicalResult addMultiples(func::FuncOp func, const EntryCode &code,
                                  fb::EntryT &entry) {
  SmallVector<std::string> symbols(entry.symbols.begin(), entry.symbols.end());
  if (code.multiples.size() % 2 != 0)
    return func.emitOpError("expects 'gdn_tile.multiples' to hold pairs, but "
                            "got ")
           << code.multiples.size() << " forms";
  for (size_t i = 0; i < code.multiples.size(); i += 2) {
    FailureOr<fb::LinearFormT> value = encodeForm(code.multiples[i], symbols);
    FailureOr<fb::LinearFormT> of = encodeForm(code.multiples[i + 1], symbols);
    if (failed(value) || failed(of))
      return func.emitOpError("expects multiples of linear forms over the "
                              "entry's symbols, but got \"")
             << code.multiples[i] << "\" of \"" << code.multiples[i + 1] << '"';
    auto rule = std::make_unique<fb::MultipleT>();
    rule->value = std::make_unique<fb::LinearFormT>(std::move(*value));
    rule->of = std::make_unique<fb::LinearFormT>(std::move(*of));
    entry.multiples.push_back(std::move(rule));
  }
  return success();
}

FailureOr<std::vector<uint8_t>> gdn::buildImage(ModuleOp source,
                                                ArrayRef<TargetCode> targets) {
  assert(!targets.empty() && "an image has code");
  fb::ImageT image;
  image.producer = "gdn " GDN_VERSION;
  for (auto func : source.getOps<func::FuncOp>()) {
    if (!func->hasAttr("gdn.entry"))
      continue;
    const EntryCode *first = findCode(func, targets.front());
    if (!first)
      return failure();
    FailureOr<fb::EntryT> entry = describeEntry(func, first->sizes);
    if (failed(entry) || failed(addMultiples(func, *first, *entry)))
      return failure();
    for (const auto &[name, value] : first->facts) {
      auto fact = std::make_unique<fb::KeyValueT>();
      fact->key = name;
      fact->value = value;
      entry->attributes.push_back(std::move(fact));
    }
    for (auto [blob, target] : llvm::enumerate(targets))
      if (failed(addCode(func, target, blob, *entry)))
        return failure();
    image.entries.push_back(std::make_unique<fb::EntryT>(std::move(*entry)));
  }
  if (image.entries.empty())
    return source.emitError("expects at least one function with 'gdn.entry'");
  for (const TargetCode &target : targets) {
    auto blob = std::make_unique<fb::BlobT>();
    blob->data.assign(target.blob.begin(), target.blob.end());
    blob->xxh3 = gdnrt::imageHash(blob->data.data(), blob->data.size());
    image.blobs.push_back(std::move(blob));
  }

  flatbuffers::FlatBufferBuilder builder(1 << 16);
  fb::FinishImageBuffer(builder, fb::Image::Pack(builder, &image));
  std::vector<uint8_t> bytes(builder.GetBufferPointer(),
                             builder.GetBufferPointer() + builder.GetSize());
  gdnrt::appendTrailer(bytes);
  return bytes;
}
