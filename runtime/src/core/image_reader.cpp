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
// What any GPU of the next years takes; the driver knows the exact limits.
constexpr uint32_t kMaxThreads = 1024;
constexpr uint32_t kMaxCluster = 16;
constexpr uint64_t kMaxSharedBytes = uint64_t{1} << 24;
constexpr uint32_t kMaxParamAlignment = 4096;

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
  Status readLaunch(const fb::Launch &source, const std::string &where,
                    LaunchSchema &launch);
  Status readAlignments(const fb::Code &source, const std::string &where,
                        std::vector<uint32_t> &alignments);
  Status readForm(const fb::LinearForm &source, const std::string &where,
                  LinearForm &form);
  template <typename... Pieces> Status defect(const Pieces &...pieces) {
    return corrupt("entry ", entry_->name, ": ", pieces...);
  }

  const fb::Entry &source_;
  size_t numBlobs_;
  std::shared_ptr<EntrySchema> entry_;
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
    if (Status status = readForm(*source.value(), where + " value", rule.value);
        !status.isOk())
      return status;
    if (Status status = readForm(*source.of(), where + " of", rule.of);
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
  return {};
}

Status EntryReader::readForm(const fb::LinearForm &source,
                             const std::string &where, LinearForm &form) {
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
    if (symbol >= entry_->symbols.size())
      return defect(where, ": symbol index ", symbol, " is past the ",
                    entry_->symbols.size(), " symbols");
    for (const LinearForm::Term &term : form.terms)
      if (term.symbol == symbol)
        return defect(where, ": symbol ", entry_->symbols[symbol],
                      " appears twice");
    int64_t coefficient = source.coefficients()->Get(i);
    if (coefficient == 0)
      return defect(where, ": the coefficient of ", entry_->symbols[symbol],
                    " is 0");
    form.terms.push_back({symbol, coefficient});
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
                     param.name + " dim " + std::to_string(i), form);
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
  code.symbol = source.symbol()->str();
  code.blob = source.blob();
  if (code.blob >= numBlobs_)
    return defect(where, ": blob index ", code.blob, " is past the ", numBlobs_,
                  " blobs");
  size_t gridDims = countOf(source.grid());
  if (gridDims > kMaxGridDims)
    return defect(where, ": expected at most ", kMaxGridDims,
                  " grid dimensions, got ", gridDims);
  for (size_t i = 0; i < gridDims; ++i) {
    LinearForm form;
    if (Status status = readForm(*source.grid()->Get(i),
                                 where + " grid " + std::to_string(i), form);
        !status.isOk())
      return status;
    code.grid.push_back(std::move(form));
  }
  code.scratchBytes = source.scratch_bytes();
  uint8_t format = static_cast<uint8_t>(source.format());
  if (format > uint8_t(fb::CodeFormat::MAX))
    return defect(where, ": expected format to be at most ",
                  uint8_t(fb::CodeFormat::MAX), ", got ", format);
  code.format = static_cast<CodeFormat>(format);
  bool isKernel = code.format != CodeFormat::sharedObject;
  if (isKernel != (source.launch() != nullptr))
    return defect(where, isKernel ? ": expected a launch, as it is for a GPU"
                                  : ": expected no launch of a shared object");
  if (source.launch())
    if (Status status =
            readLaunch(*source.launch(), where, code.launch.emplace());
        !status.isOk())
      return status;
  if (const fb::Resources *said = source.resources())
    code.resources = {said->registers(),        said->static_shared_bytes(),
                      said->stack_bytes(),      said->spill_store_bytes(),
                      said->spill_load_bytes(), said->code_bytes()};
  if (Status status = readAlignments(source, where, code.alignments);
      !status.isOk())
    return status;
  entry_->codes.push_back(std::move(code));
  return {};
}

Status EntryReader::readLaunch(const fb::Launch &source,
                               const std::string &where, LaunchSchema &launch) {
  if (source.threads() < 1 || source.threads() > kMaxThreads)
    return defect(where, ": expected 1 to ", kMaxThreads, " threads, got ",
                  source.threads());
  if (source.cluster() < 1 || source.cluster() > kMaxCluster)
    return defect(where, ": expected clusters of 1 to ", kMaxCluster,
                  " blocks, got ", source.cluster());
  if (source.shared_bytes() > kMaxSharedBytes)
    return defect(where, ": expected at most ", kMaxSharedBytes,
                  " bytes of shared memory, got ", source.shared_bytes());
  if (countOf(source.counters()) > kMaxGridDims)
    return defect(where, ": expected at most ", kMaxGridDims,
                  " forms of counters, got ", countOf(source.counters()));
  launch.threads = source.threads();
  launch.sharedBytes = source.shared_bytes();
  launch.cluster = source.cluster();
  launch.blocksPerSm = source.blocks_per_sm();
  launch.dependent = source.dependent();
  for (size_t i = 0; i < countOf(source.counters()); ++i) {
    LinearForm form;
    if (Status status =
            readForm(*source.counters()->Get(i),
                     where + " counters " + std::to_string(i), form);
        !status.isOk())
      return status;
    launch.counters.push_back(std::move(form));
  }
  return {};
}

Status EntryReader::readAlignments(const fb::Code &source,
                                   const std::string &where,
                                   std::vector<uint32_t> &alignments) {
  size_t count = countOf(source.alignments());
  if (count != 0 && count != entry_->params.size())
    return defect(where, ": expected an alignment for each of the ",
                  entry_->params.size(), " parameters or none, got ", count);
  for (size_t i = 0; i < count; ++i) {
    uint32_t bytes = source.alignments()->Get(i);
    if (bytes > kMaxParamAlignment || (bytes & (bytes - 1)) != 0)
      return defect(where, ": expected the alignment of ",
                    entry_->params[i].name, " to be 0 or a power of two up to ",
                    kMaxParamAlignment, ", got ", bytes);
    alignments.push_back(bytes);
  }
  return {};
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
  if (source.format_version() != 1)
    return failure(StatusCode::unsupported,
                   "image: expected format version 1, got ",
                   source.format_version());

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
