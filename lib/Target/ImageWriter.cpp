// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Puts manifest, code and trailer together; see ImageWriter.h.
#include "gdn/Target/ImageWriter.h"

#include "gdn/Dialect/Tile/IR/StageFields.h"
#include "gdn/Target/SharedCode.h"

#include "ImageKernels.h"
#include "ImageManifest.h"

#include "gdnrt/image_limits.h"
#include "gdnrt/image_trailer.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace gdn;
namespace fb = gdnrt::fb;

/// The strings of an array attribute of `func`.
template <typename Strings>
static LogicalResult readStrings(LLVM::LLVMFuncOp func, StringRef name,
                                 Attribute attribute, Strings &strings) {
  auto array = dyn_cast_or_null<ArrayAttr>(attribute);
  if (!array || !llvm::all_of(array, llvm::IsaPred<StringAttr>))
    return func.emitOpError("expects '")
           << name
           << "' of 'gdn_tile.stage' to be an array of strings, but got "
           << attribute;
  for (auto string : array.getAsRange<StringAttr>())
    strings.push_back(string.str());
  return success();
}

/// Conditions that hold together: pairs of products.
static LogicalResult readConditions(LLVM::LLVMFuncOp func,
                                    ArrayRef<Attribute> pairs,
                                    SmallVectorImpl<Inequality> &conditions) {
  for (Attribute pair : pairs) {
    auto sides = dyn_cast<ArrayAttr>(pair);
    if (!sides || sides.size() != 2)
      return func.emitOpError(
                 "expects 'conditions' of 'gdn_tile.stage' to hold pairs of "
                 "products, but got ")
             << pair;
    auto &[left, right] = conditions.emplace_back();
    if (failed(readStrings(func, "conditions", sides[0], left)) ||
        failed(readStrings(func, "conditions", sides[1], right)))
      return failure();
  }
  return success();
}

/// Workspace and conditions, as the stages of a variant say them: each names
/// the first of its regions, and those that say conditions say the same.
static LogicalResult readVariant(LLVM::LLVMFuncOp func, VariantCode &variant) {
  SmallVector<FormProduct, 0> regions;
  tile::StageFields stage(func);
  ArrayAttr workspace = stage.getWorkspace();
  for (Attribute region :
       workspace ? workspace.getValue() : ArrayRef<Attribute>())
    if (failed(readStrings(func, "workspace", region, regions.emplace_back())))
      return failure();
  if (regions.size() > variant.workspace.size())
    std::swap(regions, variant.workspace);
  if (ArrayRef(variant.workspace).take_front(regions.size()) !=
      ArrayRef(regions))
    return func.emitOpError(
               "expects 'workspace' of 'gdn_tile.stage' to begin as in the "
               "other stages of its variant '")
           << variant.name << "', but got " << workspace;
  if (StringAttr bits = stage.getBits())
    variant.bits = bits.str();
  FailureOr<SmallVector<KernelLayout, 0>> layouts = readLayouts(func);
  if (failed(layouts))
    return failure();
  if (!layouts->empty() && !variant.layouts.empty() &&
      *layouts != variant.layouts)
    return func.emitOpError("expects 'gdn_gpu.layouts' to be as in the other "
                            "stages of its variant '")
           << variant.name << "', but got " << func->getAttr("gdn_gpu.layouts");
  if (!layouts->empty())
    variant.layouts = std::move(*layouts);
  if (!variant.conditions.empty() || !variant.anyBatch.empty())
    return success();
  SmallVector<Attribute> pairs;
  ArrayAttr conditions = stage.getConditions(variant.name);
  for (Attribute condition :
       conditions ? conditions.getValue() : ArrayRef<Attribute>()) {
    auto several = dyn_cast<DictionaryAttr>(condition);
    if (!several) {
      pairs.push_back(condition);
      continue;
    }
    ArrayAttr any = several.getAs<ArrayAttr>("any");
    auto &into = any ? variant.conditions.alternatives : variant.anyBatch;
    if (!any)
      any = several.getAs<ArrayAttr>("any_batch");
    for (Attribute one : any)
      if (failed(readConditions(func, cast<ArrayAttr>(one).getValue(),
                                into.emplace_back())))
        return failure();
  }
  return readConditions(func, pairs, variant.conditions.all);
}

/// The names of the variants that the function is a stage of.
static SmallVector<StringRef> getVariantNames(LLVM::LLVMFuncOp func) {
  SmallVector<StringRef> names;
  for (StringAttr variant : tile::StageFields(func).getVariants())
    names.push_back(variant.getValue());
  if (names.empty())
    names.push_back("rows");
  return names;
}

/// The variant `name` of `code`, added if it is new.
static VariantCode &variantOf(StringRef name, EntryCode &code) {
  for (VariantCode &variant : code.variants)
    if (variant.name == name)
      return variant;
  // The one-pass program is what is left when nothing else can run.
  bool isLast = !code.variants.empty() && code.variants.back().name == "rows";
  auto added =
      code.variants.insert(code.variants.end() - isLast, VariantCode());
  added->name = name.str();
  return *added;
}

/// Fails if the entry has more than `most` of `what`.
static LogicalResult atMost(LLVM::LLVMFuncOp func, size_t most, size_t number,
                            const Twine &what) {
  if (number <= most)
    return success();
  return func.emitOpError("expects at most ")
         << most << ' ' << what << ", which the runtime takes, but got "
         << number;
}

/// The code of `entry` in `codes`, added if it is new.
static EntryCode &codeOf(StringRef entry, SmallVectorImpl<EntryCode> &codes) {
  for (EntryCode &code : codes)
    if (code.entry == entry)
      return code;
  codes.emplace_back().entry = entry.str();
  return codes.back();
}

/// Those of the one-pass program, if the target has it, unless that goes token
/// by token and stages take chunks.
static void takeFacts(DictionaryAttr facts, bool isOnePass, EntryCode &code) {
  auto goesTokenByToken = [](const std::pair<std::string, std::string> &fact) {
    return fact.first == "chunk_from" && fact.second == "never";
  };
  SmallVector<std::pair<std::string, std::string>, 0> added;
  for (NamedAttribute fact : facts)
    added.push_back(
        {fact.getName().str(), cast<StringAttr>(fact.getValue()).str()});
  bool hadChunks = llvm::none_of(code.facts, goesTokenByToken);
  bool hasChunks = llvm::none_of(added, goesTokenByToken);
  if (code.facts.empty() || (hadChunks == hasChunks ? isOnePass : hasChunks))
    code.facts = std::move(added);
}

FailureOr<SmallVector<EntryCode, 0>> gdn::collectEntryCodes(ModuleOp lowered) {
  SmallVector<EntryCode, 0> codes;
  for (auto func : lowered.getOps<LLVM::LLVMFuncOp>()) {
    tile::StageFields fields(func);
    if (!fields.getGrid() && !isKernel(func))
      continue;
    StageCode stage;
    SmallVector<std::string, 0> sizes;
    stage.symbol = getCodeOf(func).str();
    stage.kernel = func.getName().str();
    if (failed(readStrings(func, "grid", fields.getGrid(), stage.grid)) ||
        failed(readStrings(func, "symbols", fields.getSymbols(), sizes)))
      return failure();
    if (std::optional<int64_t> scratch = fields.getScratchBytes())
      stage.scratchBytes = *scratch;
    StringAttr owner = fields.getStageOf();
    EntryCode &code = codeOf(owner ? owner.getValue() : func.getName(), codes);
    if (!code.sizes.empty() && code.sizes != sizes)
      return func.emitOpError("expects the symbols of the other stages, ")
             << llvm::join(code.sizes, ", ") << ", but got "
             << llvm::join(sizes, ", ");
    code.sizes = std::move(sizes);
    if (auto digest = func->getAttrOfType<StringAttr>("gdn_gpu.digest"))
      code.digest = digest.str();
    if (isKernel(func) && failed(readKernel(func, stage, code.alignments)))
      return failure();
    if (ArrayAttr multiples = fields.getMultiples();
        multiples && code.multiples.empty() &&
        failed(readStrings(func, "multiples", multiples, code.multiples)))
      return failure();
    DictionaryAttr facts = fields.getFacts();
    if (facts)
      takeFacts(facts, /*isOnePass=*/!owner, code);
    for (StringRef name : getVariantNames(func)) {
      VariantCode &variant = variantOf(name, code);
      if (failed(readVariant(func, variant)))
        return failure();
      variant.stages.push_back(stage);
      std::string of = " of variant " + name.str() + " of entry " + code.entry;
      if (failed(atMost(func, gdnrt::kMaxVariants, code.variants.size(),
                        "variants of entry " + code.entry)) ||
          failed(atMost(func, gdnrt::kMaxStages, variant.stages.size(),
                        "stages" + of)) ||
          failed(atMost(func, gdnrt::kMaxRegions, variant.workspace.size(),
                        "workspace regions" + of)) ||
          failed(atMost(func, gdnrt::kMaxConditions,
                        variant.conditions.all.size(), "conditions" + of)) ||
          failed(atMost(func, gdnrt::kMaxAlternatives,
                        variant.conditions.alternatives.size(),
                        "alternatives" + of)) ||
          failed(atMost(func, gdnrt::kMaxAlternatives, variant.anyBatch.size(),
                        "alternatives for any batch" + of)))
        return failure();
      for (const auto *several :
           {&variant.conditions.alternatives, &variant.anyBatch})
        for (const auto &alternative : *several)
          if (failed(atMost(func, gdnrt::kMaxConditions, alternative.size(),
                            "conditions of an alternative" + of)))
            return failure();
    }
  }
  return codes;
}

/// A name for errors: the features of a CPU, or the GPU.
static std::string nameOf(const TargetCode &target) {
  return target.features.empty() ? target.target
                                 : llvm::join(target.features, ", ");
}

/// The code that `target` has for the entry, or null.
static const EntryCode *findCode(func::FuncOp func, const TargetCode &target) {
  for (const EntryCode &code : target.entries)
    if (code.entry == func.getName())
      return &code;
  return nullptr;
}

LogicalResult
gdn::encodeForms(func::FuncOp func, StringRef what, ArrayRef<std::string> forms,
                 ArrayRef<std::string> symbols,
                 std::vector<std::unique_ptr<fb::LinearFormT>> &encoded) {
  if (forms.size() > gdnrt::kMaxForms)
    return func.emitOpError("expects ")
           << what << " of at most " << gdnrt::kMaxForms
           << " linear forms, which the runtime takes, but got "
           << forms.size();
  for (const std::string &form : forms) {
    FailureOr<fb::LinearFormT> one = encodeForm(form, symbols);
    if (failed(one))
      return func.emitOpError("expects ")
             << what << " of linear forms over the entry's symbols, but got \""
             << form << '"';
    encoded.push_back(std::make_unique<fb::LinearFormT>(std::move(*one)));
  }
  return success();
}

static FailureOr<fb::VariantT> encodeVariant(func::FuncOp func,
                                             const VariantCode &variant,
                                             size_t regions,
                                             const fb::EntryT &entry) {
  ArrayRef<std::string> symbols(entry.symbols);
  fb::VariantT encoded;
  encoded.name = variant.name;
  encoded.bits = variant.bits;
  for (const StageCode &stage : variant.stages) {
    auto made = std::make_unique<fb::StageT>();
    made->symbol = stage.symbol;
    made->scratch_bytes = stage.scratchBytes;
    if (failed(encodeForms(func, "a grid", stage.grid, symbols, made->grid)))
      return failure();
    if (stage.launch &&
        failed(encodeKernel(func, stage, regions, entry, *made)))
      return failure();
    encoded.stages.push_back(std::move(made));
  }
  for (const FormProduct &region : variant.workspace) {
    auto made = std::make_unique<fb::ProductT>();
    if (failed(
            encodeForms(func, "a workspace", region, symbols, made->factors)))
      return failure();
    encoded.workspace.push_back(std::move(made));
  }
  // In conditions these stand behind the entry's symbols.
  SmallVector<std::string> known(symbols.begin(), symbols.end());
  known.push_back("workers");
  known.push_back("dependent");
  auto encode = [&](ArrayRef<Inequality> conditions,
                    std::vector<std::unique_ptr<fb::ConditionT>> &into) {
    for (const auto &[left, right] : conditions) {
      auto made = std::make_unique<fb::ConditionT>();
      made->left = std::make_unique<fb::ProductT>();
      made->right = std::make_unique<fb::ProductT>();
      if (failed(encodeForms(func, "conditions", left, known,
                             made->left->factors)) ||
          failed(encodeForms(func, "conditions", right, known,
                             made->right->factors)))
        return failure();
      into.push_back(std::move(made));
    }
    return success();
  };
  if (failed(encode(variant.conditions.all, encoded.conditions)))
    return failure();
  for (const auto &alternative : variant.conditions.alternatives) {
    encoded.alternatives.push_back(std::make_unique<fb::ConjunctionT>());
    if (failed(encode(alternative, encoded.alternatives.back()->conditions)))
      return failure();
  }
  for (const auto &alternative : variant.anyBatch) {
    encoded.any_batch.push_back(std::make_unique<fb::ConjunctionT>());
    if (failed(encode(alternative, encoded.any_batch.back()->conditions)))
      return failure();
  }
  if (failed(encodeLayouts(func, variant, entry, encoded)))
    return failure();
  return encoded;
}

/// States what the lowering chose: under the fact's name, and where an earlier
/// target chose otherwise, under the name, a dot and the target.
static void addFacts(const TargetCode &target, const EntryCode &code,
                     fb::EntryT &entry) {
  for (const auto &chosen : code.facts) {
    const auto &[name, value] = chosen;
    auto known = llvm::find_if(entry.attributes, [&](const auto &attribute) {
      return attribute->key == chosen.first;
    });
    const bool isFirst = known == entry.attributes.end();
    if (!isFirst && (*known)->value == value)
      continue;
    auto fact = std::make_unique<fb::KeyValueT>();
    fact->key = isFirst ? name : name + "." + nameOf(target);
    fact->value = value;
    entry.attributes.push_back(std::move(fact));
  }
}

/// Adds the code that `target` has for the entry, if any; the blob is number
/// `blob`.
static LogicalResult addCode(func::FuncOp func, const TargetCode &target,
                             unsigned blob, fb::EntryT &entry) {
  const EntryCode *code = findCode(func, target);
  if (!code)
    return success();
  SmallVector<std::string, 0> symbols(entry.symbols.begin(),
                                      entry.symbols.end());
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
  // Every call has words for the regions of whichever variant needs most.
  size_t regions = 0;
  for (const VariantCode &variant : code->variants)
    regions = std::max(regions, variant.workspace.size());
  for (const VariantCode &variant : code->variants) {
    FailureOr<fb::VariantT> made = encodeVariant(func, variant, regions, entry);
    if (failed(made))
      return failure();
    encoded.variants.push_back(
        std::make_unique<fb::VariantT>(std::move(*made)));
  }
  if (failed(encodeAlignments(func, *code, entry, encoded)))
    return failure();
  addFacts(target, *code, entry);
  addDigest(target, *code, entry);
  entry.codes.push_back(std::make_unique<fb::CodeT>(std::move(encoded)));
  return success();
}

/// Adds the rules of the entry that its sizes do not express.
static LogicalResult addMultiples(func::FuncOp func, const EntryCode &code,
                                  fb::EntryT &entry) {
  SmallVector<std::string> symbols(entry.symbols.begin(), entry.symbols.end());
  if (code.multiples.size() % 2 != 0)
    return func.emitOpError(
               "expects 'multiples' of 'gdn_tile.stage' to hold pairs, but "
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
  image.format_version = gdnrt::kFormatVersion;
  for (auto func : source.getOps<func::FuncOp>()) {
    if (!func->hasAttr("gdn.entry"))
      continue;
    const EntryCode *first = nullptr;
    for (const TargetCode &target : targets)
      if (!first)
        first = findCode(func, target);
    if (!first) {
      func.emitRemark() << "has no code for any target and is left out";
      continue;
    }
    FailureOr<fb::EntryT> entry = describeEntry(func, first->sizes);
    if (failed(entry) || failed(addMultiples(func, *first, *entry)))
      return failure();
    for (auto [blob, target] : llvm::enumerate(targets))
      if (failed(addCode(func, target, blob, *entry)))
        return failure();
    image.entries.push_back(std::make_unique<fb::EntryT>(std::move(*entry)));
  }
  if (image.entries.empty())
    return source.emitError("expects at least one function with 'gdn.entry' "
                            "that has code");
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
