// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads an image's bytes in the order that the format demands: nothing is
// interpreted before what it rests on was checked. FlatBuffers' verifier
// bounds all offsets; the ranges that only we know are checked while the
// manifest is copied into plain values.

#include "gdnrt/image.h"
#include "gdnrt/image_generated.h"
#include "gdnrt/image_trailer.h"

#include <cstring>
#include <unordered_set>

using namespace gdnrt;

namespace {

// Guards the sums of words and the work per entry, far beyond real entries.
constexpr size_t kMaxParams = 1024;
constexpr size_t kMaxGridDims = 8;
constexpr size_t kMaxVariants = 16;
constexpr size_t kMaxStages = 16;
constexpr size_t kMaxRegions = 16;
constexpr size_t kMaxConditions = 16;

template <typename... Pieces> Status corrupt(const Pieces &...pieces) {
  return failure(StatusCode::corrupt, "image: ", pieces...);
}

uint64_t readLittleEndian(const uint8_t *bytes) {
  uint64_t value = 0;
  for (int i = 7; i >= 0; --i)
    value = value << 8 | bytes[i];
  return value;
}

/// Iterates an optional FlatBuffers vector; an absent one is empty.
template <typename Vector> size_t countOf(const Vector *vector) {
  return vector ? vector->size() : 0;
}

/// Builds one EntrySchema. The first defect stops it.
class EntryReader {
public:
  EntryReader(const fb::Entry &source, size_t numBlobs)
      : source_(source), numBlobs_(numBlobs),
        entry_(std::make_shared<EntrySchema>()) {}

  Result<std::shared_ptr<const EntrySchema>> read();

private:
  Status readSymbols();
  Status readParam(const fb::Param &source);
  Status readCode(const fb::Code &source);
  Status readVariant(const fb::Variant &source, const std::string &where,
                     VariantSchema &variant);
  Status readStage(const fb::Stage &source, const std::string &where,
                   StageSchema &stage);
  Status readCondition(const fb::Condition &source, const std::string &where,
                       ConditionSchema &condition);
  Status readForms(const flatbuffers::Vector<
                       flatbuffers::Offset<fb::LinearForm>> *source,
                   const std::string &where,
                   const std::vector<std::string> &symbols,
                   std::vector<LinearForm> &forms);
  Status readForm(const fb::LinearForm &source, const std::string &where,
                  const std::vector<std::string> &symbols, LinearForm &form);
  /// At most `most` of `what`, which there are `count` of.
  Status atMost(size_t most, const std::string &what, size_t count) {
    return count <= most ? Status()
                         : defect("expected at most ", most, " ", what,
                                  ", got ", count);
  }
  template <typename... Pieces> Status defect(const Pieces &...pieces) {
    return corrupt("entry ", entry_->name, ": ", pieces...);
  }

  const fb::Entry &source_;
  size_t numBlobs_;
  std::shared_ptr<EntrySchema> entry_;
  /// The symbols of the entry and, behind them, "workers".
  std::vector<std::string> conditionSymbols_;
  size_t numWords_ = 0;
};

} // namespace

Result<std::shared_ptr<const EntrySchema>> EntryReader::read() {
  entry_->name = source_.name()->str();
  if (entry_->name.empty())
    return corrupt("an entry has an empty name");
  if (Status status = readSymbols(); !status.isOk())
    return status;

  if (countOf(source_.params()) > kMaxParams)
    return defect("expected at most ", kMaxParams, " parameters, got ",
                  countOf(source_.params()));
  std::unordered_set<std::string> names;
  for (size_t i = 0; i < countOf(source_.params()); ++i) {
    if (Status status = readParam(*source_.params()->Get(i)); !status.isOk())
      return status;
    if (!names.insert(entry_->params.back().name).second)
      return defect("two parameters are named ", entry_->params.back().name);
  }
  for (size_t i = 0; i < countOf(source_.codes()); ++i)
    if (Status status = readCode(*source_.codes()->Get(i)); !status.isOk())
      return status;
  for (size_t i = 0; i < countOf(source_.attributes()); ++i) {
    const fb::KeyValue &pair = *source_.attributes()->Get(i);
    entry_->attributes.emplace_back(pair.key()->str(), pair.value()->str());
  }
  for (size_t i = 0; i < countOf(source_.multiples()); ++i) {
    const fb::Multiple &source = *source_.multiples()->Get(i);
    std::string where = "multiple " + std::to_string(i);
    MultipleRule rule;
    if (Status status = readForm(*source.value(), where + " value",
                                 entry_->symbols, rule.value);
        !status.isOk())
      return status;
    if (Status status =
            readForm(*source.of(), where + " of", entry_->symbols, rule.of);
        !status.isOk())
      return status;
    entry_->multiples.push_back(std::move(rule));
  }
  return std::shared_ptr<const EntrySchema>(std::move(entry_));
}

Status EntryReader::readSymbols() {
  std::unordered_set<std::string> names;
  if (countOf(source_.symbols()) > UINT16_MAX + size_t{1})
    return defect("expected at most 65536 symbols, got ",
                  countOf(source_.symbols()));
  for (size_t i = 0; i < countOf(source_.symbols()); ++i) {
    std::string name = source_.symbols()->Get(i)->str();
    if (name.empty())
      return defect("a symbol has an empty name");
    if (!names.insert(name).second)
      return defect("two symbols are named ", name);
    entry_->symbols.push_back(std::move(name));
  }
  conditionSymbols_ = entry_->symbols;
  conditionSymbols_.push_back("workers");
  return {};
}

Status EntryReader::readForm(const fb::LinearForm &source,
                             const std::string &where,
                             const std::vector<std::string> &symbols,
                             LinearForm &form) {
  form.constant = source.constant();
  size_t numSymbols = countOf(source.symbols());
  if (numSymbols != countOf(source.coefficients()))
    return defect(where, ": expected as many coefficients as symbols (",
                  numSymbols, "), got ", countOf(source.coefficients()));
  // FlatBuffers' verifier aligns the count before a vector, not its elements.
  if (numSymbols != 0 &&
      reinterpret_cast<uintptr_t>(source.coefficients()->data()) %
              alignof(int64_t) !=
          0)
    return defect(where, ": the coefficients are not 8-byte aligned");
  for (size_t i = 0; i < numSymbols; ++i) {
    uint16_t symbol = source.symbols()->Get(i);
    if (symbol >= symbols.size())
      return defect(where, ": symbol index ", symbol, " is past the ",
                    symbols.size(), " symbols");
    for (const LinearForm::Term &term : form.terms)
      if (term.symbol == symbol)
        return defect(where, ": symbol ", symbols[symbol], " appears twice");
    int64_t coefficient = source.coefficients()->Get(i);
    if (coefficient == 0)
      return defect(where, ": the coefficient of ", symbols[symbol], " is 0");
    form.terms.push_back({symbol, coefficient});
  }
  return {};
}

/// Factors of a product or dimensions of a grid.
Status EntryReader::readForms(
    const flatbuffers::Vector<flatbuffers::Offset<fb::LinearForm>> *source,
    const std::string &where, const std::vector<std::string> &symbols,
    std::vector<LinearForm> &forms) {
  if (Status status = atMost(kMaxGridDims, "forms in " + where,
                             countOf(source));
      !status.isOk())
    return status;
  for (size_t i = 0; i < countOf(source); ++i) {
    LinearForm form;
    if (Status status = readForm(*source->Get(i),
                                 where + " " + std::to_string(i), symbols,
                                 form);
        !status.isOk())
      return status;
    forms.push_back(std::move(form));
  }
  return {};
}

Status EntryReader::readParam(const fb::Param &source) {
  ParamSchema param;
  param.name = source.name()->str();
  if (param.name.empty())
    return defect("a parameter has an empty name");
  auto enumRange = [&](const char *what, uint8_t value, uint8_t last) {
    return value <= last ? Status()
                         : defect(param.name, ": expected ", what,
                                  " to be at most ", last, ", got ", value);
  };
  uint8_t kind = static_cast<uint8_t>(source.kind());
  uint8_t access = static_cast<uint8_t>(source.access());
  uint8_t dtype = static_cast<uint8_t>(source.dtype());
  if (Status s = enumRange("kind", kind, uint8_t(fb::ParamKind::MAX));
      !s.isOk())
    return s;
  if (Status s = enumRange("access", access, uint8_t(fb::Access::MAX));
      !s.isOk())
    return s;
  if (Status s = enumRange("dtype", dtype, uint8_t(fb::DType::MAX)); !s.isOk())
    return s;
  param.kind = static_cast<ParamKind>(kind);
  param.access = static_cast<Access>(access);
  param.dtype = static_cast<DType>(dtype);
  param.unitStrideLast = source.unit_stride_last();
  param.optional = source.optional();

  size_t rank = countOf(source.dims());
  if (rank > kMaxRank)
    return defect(param.name, ": expected rank at most ", kMaxRank, ", got ",
                  rank);
  if (param.kind == ParamKind::pool && rank == 0)
    return defect(param.name, ": expected a pool to have a slot dimension");
  for (size_t i = 0; i < rank; ++i) {
    LinearForm form;
    if (Status status =
            readForm(*source.dims()->Get(i),
                     param.name + " dim " + std::to_string(i), entry_->symbols,
                     form);
        !status.isOk())
      return status;
    param.dimTexts.push_back(form.toString(entry_->symbols));
    param.dims.push_back(std::move(form));
  }
  param.firstWord = numWords_;
  numWords_ += param.numWords();
  entry_->params.push_back(std::move(param));
  return {};
}

Status EntryReader::readCode(const fb::Code &source) {
  CodeSchema code;
  std::string where = "code " + std::to_string(entry_->codes.size());
  code.target = source.target()->str();
  for (size_t i = 0; i < countOf(source.features()); ++i)
    code.features.push_back(source.features()->Get(i)->str());
  code.featureText = joinNames(code.features);
  code.blob = source.blob();
  if (code.blob >= numBlobs_)
    return defect(where, ": blob index ", code.blob, " is past the ", numBlobs_,
                  " blobs");
  size_t numVariants = countOf(source.variants());
  if (numVariants == 0)
    return defect(where, ": expected at least one variant, got none");
  if (Status status = atMost(kMaxVariants, "variants in " + where, numVariants);
      !status.isOk())
    return status;
  std::unordered_set<std::string> names;
  for (size_t i = 0; i < numVariants; ++i) {
    VariantSchema variant;
    if (Status status =
            readVariant(*source.variants()->Get(i),
                        where + " variant " + std::to_string(i), variant);
        !status.isOk())
      return status;
    if (!names.insert(variant.name).second)
      return defect(where, ": two variants are named ", variant.name);
    code.variants.push_back(std::move(variant));
  }
  const VariantSchema &last = code.variants.back();
  if (!last.conditions.empty() || !last.workspace.empty())
    return defect(where, ": expected its last variant, ", last.name,
                  ", to have no conditions and no workspace");
  entry_->codes.push_back(std::move(code));
  return {};
}

/// "2*N * Hk <= workers": a form of several terms stands in parentheses.
static std::string toText(const ConditionSchema &condition,
                          const std::vector<std::string> &symbols) {
  auto product = [&](const Product &factors) {
    std::string text;
    for (const LinearForm &form : factors) {
      bool isSum = form.terms.size() + (form.constant != 0) > 1;
      std::string factor = form.toString(symbols);
      text += (text.empty() ? "" : " * ") +
              (isSum && factors.size() > 1 ? "(" + factor + ")" : factor);
    }
    return text.empty() ? "1" : text;
  };
  return product(condition.left) + " <= " + product(condition.right);
}

Status EntryReader::readVariant(const fb::Variant &source,
                                const std::string &where,
                                VariantSchema &variant) {
  variant.name = source.name()->str();
  if (variant.name.empty())
    return defect(where, ": the name is empty");
  size_t numStages = countOf(source.stages());
  if (numStages == 0)
    return defect(where, ": expected at least one stage, got none");
  if (Status s = atMost(kMaxStages, "stages in " + where, numStages); !s.isOk())
    return s;
  if (Status s = atMost(kMaxRegions, "workspace regions in " + where,
                        countOf(source.workspace()));
      !s.isOk())
    return s;
  if (Status s = atMost(kMaxConditions, "conditions in " + where,
                        countOf(source.conditions()));
      !s.isOk())
    return s;
  for (size_t i = 0; i < numStages; ++i) {
    StageSchema stage;
    if (Status s = readStage(*source.stages()->Get(i),
                             where + " stage " + std::to_string(i), stage);
        !s.isOk())
      return s;
    variant.stages.push_back(std::move(stage));
  }
  for (size_t i = 0; i < countOf(source.workspace()); ++i) {
    Product region;
    if (Status s = readForms(source.workspace()->Get(i)->factors(),
                             where + " workspace " + std::to_string(i),
                             entry_->symbols, region);
        !s.isOk())
      return s;
    variant.workspace.push_back(std::move(region));
  }
  for (size_t i = 0; i < countOf(source.conditions()); ++i) {
    ConditionSchema condition;
    if (Status s =
            readCondition(*source.conditions()->Get(i),
                          where + " condition " + std::to_string(i), condition);
        !s.isOk())
      return s;
    variant.conditionText += (variant.conditionText.empty() ? "" : ", ") +
                             toText(condition, conditionSymbols_);
    variant.conditions.push_back(std::move(condition));
  }
  return {};
}

Status EntryReader::readStage(const fb::Stage &source, const std::string &where,
                              StageSchema &stage) {
  stage.symbol = source.symbol()->str();
  stage.scratchBytes = source.scratch_bytes();
  return readForms(source.grid(), where + " grid", entry_->symbols, stage.grid);
}

Status EntryReader::readCondition(const fb::Condition &source,
                                  const std::string &where,
                                  ConditionSchema &condition) {
  if (Status s = readForms(source.left()->factors(), where + " left",
                           conditionSymbols_, condition.left);
      !s.isOk())
    return s;
  return readForms(source.right()->factors(), where + " right",
                   conditionSymbols_, condition.right);
}

/// Size, trailer, hash, identifier, verifier; the root on success.
static Result<const fb::Image *> verify(const uint8_t *data, size_t size) {
  // A root offset and an identifier, then the trailer.
  constexpr size_t kSmallest = 8 + kTrailerSize;
  if (size < kSmallest)
    return corrupt("expected at least ", kSmallest, " bytes, got ", size);
  size_t rootSize = size - kTrailerSize;
  // The verifier asserts this; offsets are 32-bit.
  if (rootSize >= FLATBUFFERS_MAX_BUFFER_SIZE)
    return corrupt("expected less than 2 GiB, got ", size, " bytes");
  const uint8_t *trailer = data + rootSize;
  if (std::memcmp(trailer, kTrailerMagic, 8) != 0)
    return corrupt("the trailer is missing; the file is cut off or no image");
  if (readLittleEndian(trailer + 8) != imageHash(data, rootSize))
    return corrupt("the checksum does not match the contents");
  if (!flatbuffers::BufferHasIdentifier(data, fb::ImageIdentifier()))
    return corrupt("expected the identifier GDNK");
  flatbuffers::Verifier verifier(data, rootSize);
  if (!fb::VerifyImageBuffer(verifier))
    return corrupt("the manifest is malformed");
  return fb::GetImage(data);
}

Result<ImageContents> gdnrt::readImage(const uint8_t *data, size_t size) {
  Result<const fb::Image *> root = verify(data, size);
  if (!root.isOk())
    return root.status();
  const fb::Image &source = **root;
  if (source.format_version() != kFormatVersion)
    return failure(StatusCode::unsupported, "image: expected format version ",
                   kFormatVersion, ", got ", source.format_version());

  ImageContents contents;
  if (source.producer())
    contents.producer = source.producer()->str();
  for (size_t i = 0; i < countOf(source.blobs()); ++i) {
    const fb::Blob &blob = *source.blobs()->Get(i);
    const uint8_t *bytes = blob.data()->data();
    size_t misplaced = static_cast<size_t>(bytes - data) % kAlignment;
    if (misplaced != 0)
      return corrupt("blob ", i, ": expected its data at a multiple of ",
                     kAlignment, " bytes, got an offset ", misplaced,
                     " bytes past one");
    if (blob.xxh3() != imageHash(bytes, blob.data()->size()))
      return corrupt("blob ", i, ": the checksum does not match its data");
    contents.blobs.push_back({bytes, blob.data()->size()});
  }
  std::unordered_set<std::string> names;
  for (size_t i = 0; i < countOf(source.entries()); ++i) {
    EntryReader reader(*source.entries()->Get(i), contents.blobs.size());
    auto entry = reader.read();
    if (!entry.isOk())
      return entry.status();
    if (!names.insert((*entry)->name).second)
      return corrupt("two entries are named ", (*entry)->name);
    contents.entries.push_back(std::move(*entry));
  }
  return contents;
}
