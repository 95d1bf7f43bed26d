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

FailureOr<SmallVector<EntryCode, 0>> gdn::collectEntryCodes(ModuleOp lowered) {
  SmallVector<EntryCode, 0> codes;
  for (auto func : lowered.getOps<LLVM::LLVMFuncOp>()) {
    if (!func->hasAttr("gdn_tile.grid") && !isKernel(func))
      continue;
    EntryCode code;
    code.entry = code.symbol = func.getName().str();
    if (failed(readStrings(func, "gdn_tile.grid", code.grid)) ||
        failed(readStrings(func, "gdn_tile.symbols", code.sizes)))
      return failure();
    if (func->hasAttr("gdn_tile.multiples") &&
        failed(readStrings(func, "gdn_tile.multiples", code.multiples)))
      return failure();
    if (auto scratch =
            func->getAttrOfType<IntegerAttr>("gdn_tile.scratch_bytes"))
      code.scratchBytes = scratch.getInt();
    if (isKernel(func)) {
      FailureOr<KernelLaunch> launch = readLaunch(func);
      FailureOr<uint64_t> words = readParameterWords(func);
      FailureOr<SmallVector<uint32_t>> alignments = readAlignments(func);
      if (failed(launch) || failed(words) || failed(alignments))
        return failure();
      code.launch = std::move(*launch);
      code.words = *words;
      code.alignments = std::move(*alignments);
    }
    codes.push_back(std::move(code));
  }
  return codes;
}

/// A name for errors: the features of a CPU, or the GPU.
static std::string nameOf(const TargetCode &target) {
  return target.features.empty() ? target.target
                                 : llvm::join(target.features, ", ");
}

/// The code that `target` has for the entry; null after an error on `func`.
static const EntryCode *findCode(func::FuncOp func, const TargetCode &target) {
  for (const EntryCode &code : target.entries)
    if (code.entry == func.getName())
      return &code;
  if (target.features.empty())
    func.emitOpError("has no code for the target ") << target.target;
  else
    func.emitOpError("has no code for the target with the features ")
        << nameOf(target);
  return nullptr;
}

/// The words of a bound call of the entry: parameters, then symbols.
static uint64_t countWords(const fb::EntryT &entry) {
  uint64_t words = entry.symbols.size();
  for (const auto &param : entry.params)
    words += 1 + 2 * param->dims.size() +
             (param->kind == fb::ParamKind::pool ? 1 : 0);
  return words;
}

static void addAttribute(fb::EntryT &entry, std::string key,
                         std::string value) {
  auto pair = std::make_unique<fb::KeyValueT>();
  pair->key = std::move(key);
  pair->value = std::move(value);
  entry.attributes.push_back(std::move(pair));
}

/// Adds what is known of a kernel besides what all code has.
static LogicalResult addKernel(func::FuncOp func, const TargetCode &target,
                               const EntryCode &code, fb::EntryT &entry,
                               fb::CodeT &encoded) {
  // Behind the words of the entry: the workspace and the number of units.
  uint64_t words = countWords(entry) + 2;
  if (code.words != words)
    return func.emitOpError("expects the kernel for ")
           << target.target << " to take " << words
           << " words, those of the entry and two more, but got " << code.words;
  if (!code.alignments.empty() && code.alignments.size() != entry.params.size())
    return func.emitOpError("expects an alignment for each of the entry's ")
           << entry.params.size() << " parameters, but got "
           << code.alignments.size();
  encoded.alignments.assign(code.alignments.begin(), code.alignments.end());
  auto launch = std::make_unique<fb::LaunchT>();
  launch->threads = code.launch->threads;
  launch->shared_bytes = code.launch->sharedBytes;
  launch->cluster = code.launch->cluster;
  launch->blocks_per_sm = code.launch->blocksPerSm;
  launch->dependent = code.launch->dependent;
  for (const std::string &form : code.launch->counters) {
    FailureOr<fb::LinearFormT> counters = encodeForm(form, entry.symbols);
    if (failed(counters))
      return func.emitOpError("expects counters of linear forms over the "
                              "entry's symbols, but got \"")
             << form << '"';
    launch->counters.push_back(
        std::make_unique<fb::LinearFormT>(std::move(*counters)));
  }
  encoded.launch = std::move(launch);
  if (const std::optional<KernelResources> &said = code.resources) {
    encoded.resources = std::make_unique<fb::ResourcesT>();
    encoded.resources->registers = said->registers;
    encoded.resources->static_shared_bytes = said->staticShared;
    encoded.resources->stack_bytes = said->stack;
    encoded.resources->spill_store_bytes = said->spillStores;
    encoded.resources->spill_load_bytes = said->spillLoads;
    encoded.resources->code_bytes = said->code;
  }
  std::string key = "gdn.digest." + target.target;
  bool isKnown = llvm::any_of(
      entry.attributes, [&](const auto &pair) { return pair->key == key; });
  if (!isKnown && !code.digest.empty())
    addAttribute(entry, key, code.digest);
  return success();
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
           << nameOf(target) << " to take the symbols "
           << llvm::join(symbols, ", ") << ", as other code does, but got "
           << llvm::join(code->sizes, ", ");
  fb::CodeT encoded;
  encoded.target = target.target;
  encoded.format = static_cast<fb::CodeFormat>(target.format);
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
  if (target.format != CodeFormat::sharedObject &&
      failed(addKernel(func, target, *code, entry, encoded)))
    return failure();
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
