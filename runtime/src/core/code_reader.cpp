// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Codes of an entry: variants, their stages, workspaces and conditions, and how
// a GPU launches them.

#include "code_reader.h"

#include "gdnrt/image_limits.h"

#include <unordered_set>

using namespace gdnrt;

// What any GPU of the next years takes; the driver knows the exact limits.
static constexpr uint32_t kMaxThreads = 1024;
static constexpr uint32_t kMaxCluster = 16;
static constexpr uint64_t kMaxSharedBytes = uint64_t{1} << 24;
static constexpr uint32_t kMaxParamAlignment = 4096;

static bool isParamAlignment(uint32_t bytes) {
  return bytes <= kMaxParamAlignment && (bytes & (bytes - 1)) == 0;
}

CodeReader::CodeReader(EntrySchema &entry, size_t numBlobs)
    : FormReader(entry), entry_(&entry), numBlobs_(numBlobs),
      conditionSymbols_(entry.symbols) {
  conditionSymbols_.push_back("workers");
  conditionSymbols_.push_back("dependent");
}

Status CodeReader::readCode(const fb::Code &source) {
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
  uint8_t format = static_cast<uint8_t>(source.format());
  if (format > uint8_t(fb::CodeFormat::MAX))
    return defect(where, ": expected format to be at most ",
                  uint8_t(fb::CodeFormat::MAX), ", got ", format);
  code.format = static_cast<CodeFormat>(format);
  bool isKernel = code.format != CodeFormat::sharedObject;
  if (Status status = readAlignments(source, where, code.alignments);
      !status.isOk())
    return status;
  size_t numVariants = countOf(source.variants());
  if (numVariants == 0)
    return defect(where, ": expected at least one variant, got none");
  if (Status status = atMost(kMaxVariants, "variants in " + where, numVariants);
      !status.isOk())
    return status;
  std::unordered_set<std::string> names;
  for (size_t i = 0; i < numVariants; ++i) {
    VariantSchema variant;
    if (Status status = readVariant(*source.variants()->Get(i),
                                    where + " variant " + std::to_string(i),
                                    isKernel, variant);
        !status.isOk())
      return status;
    if (!names.insert(variant.name).second)
      return defect(where, ": two variants are named ", variant.name);
    code.variants.push_back(std::move(variant));
  }
  const VariantSchema &last = code.variants.back();
  // A kernel may ask for a workspace, as it may for counters.
  if (!last.conditions.empty() || !last.alternatives.empty() ||
      !last.layouts.empty() || (!isKernel && !last.workspace.empty()))
    return defect(where, ": expected its last variant, ", last.name,
                  ", to have no conditions",
                  isKernel ? " and no layouts"
                           : ", no layouts and no workspace");
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

Status CodeReader::readVariant(const fb::Variant &source,
                               const std::string &where, bool isKernel,
                               VariantSchema &variant) {
  variant.name = source.name()->str();
  if (variant.name.empty())
    return defect(where, ": the name is empty");
  variant.bits =
      source.bits() ? source.bits()->str() : "those of " + variant.name;
  size_t numStages = countOf(source.stages());
  if (numStages == 0)
    return defect(where, ": expected at least one stage, got none");
  if (Status s = atMost(kMaxStages, "stages in " + where, numStages); !s.isOk())
    return s;
  if (Status s = atMost(kMaxRegions, "workspace regions in " + where,
                        countOf(source.workspace()));
      !s.isOk())
    return s;
  for (size_t i = 0; i < numStages; ++i) {
    StageSchema stage;
    if (Status s = readStage(*source.stages()->Get(i),
                             where + " stage " + std::to_string(i), isKernel,
                             countOf(source.workspace()), stage);
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
  if (Status s = readConditions(source.conditions(), where, ", ",
                                variant.conditions, variant.conditionText);
      !s.isOk())
    return s;
  if (Status s = readAlternatives(source, where, variant); !s.isOk())
    return s;
  if (Status s = readAnyBatch(source, where, variant); !s.isOk())
    return s;
  return readLayouts(source, where, variant);
}

Status CodeReader::readConditions(
    const flatbuffers::Vector<flatbuffers::Offset<fb::Condition>> *source,
    const std::string &where, const char *joint,
    std::vector<ConditionSchema> &conditions, std::string &text) {
  if (Status s =
          atMost(kMaxConditions, "conditions in " + where, countOf(source));
      !s.isOk())
    return s;
  for (size_t i = 0; i < countOf(source); ++i) {
    ConditionSchema condition;
    if (Status s =
            readCondition(*source->Get(i),
                          where + " condition " + std::to_string(i), condition);
        !s.isOk())
      return s;
    text += (text.empty() ? "" : joint) + toText(condition, conditionSymbols_);
    conditions.push_back(std::move(condition));
  }
  return {};
}

Status CodeReader::readAlternatives(const fb::Variant &source,
                                    const std::string &where,
                                    VariantSchema &variant) {
  const size_t count = countOf(source.alternatives());
  if (Status s = atMost(kMaxAlternatives, "alternatives in " + where, count);
      !s.isOk())
    return s;
  if (count == 1)
    return defect(where, ": expected no alternatives or two at least, got one");
  std::string all;
  for (size_t i = 0; i < count; ++i) {
    const std::string name = where + " alternative " + std::to_string(i);
    std::string text;
    if (Status s =
            readConditions(source.alternatives()->Get(i)->conditions(), name,
                           " and ", variant.alternatives.emplace_back(), text);
        !s.isOk())
      return s;
    if (text.empty())
      return defect(name, ": expected at least one condition, got none");
    all += (i == 0 ? "(" : " or ") + text;
  }
  if (count != 0)
    variant.conditionText +=
        (variant.conditionText.empty() ? "" : ", ") + all + ")";
  return {};
}

Status CodeReader::readAnyBatch(const fb::Variant &source,
                                const std::string &where,
                                VariantSchema &variant) {
  const size_t count = countOf(source.any_batch());
  if (Status s = atMost(kMaxAlternatives, "any_batch in " + where, count);
      !s.isOk())
    return s;
  for (size_t i = 0; i < count; ++i) {
    std::string text; // conditions that people see are those of other launches
    if (Status s =
            readConditions(source.any_batch()->Get(i)->conditions(),
                           where + " any_batch " + std::to_string(i), " and ",
                           variant.anyBatch.emplace_back(), text);
        !s.isOk())
      return s;
  }
  return {};
}

/// "conv_pool strides [?, 1, ?] by 16 bytes", "norm_weight by 16 bytes".
static std::string toText(const ParamSchema &param,
                          const LayoutSchema &layout) {
  std::string text = param.name;
  for (size_t d = 0; d < layout.strides.size(); ++d)
    text += (d == 0 ? " strides [" : ", ") +
            (layout.strides[d] ? std::to_string(layout.strides[d]) : "?");
  if (!layout.strides.empty())
    text += "]";
  if (layout.alignment)
    text += " by " + std::to_string(layout.alignment) + " bytes";
  return text;
}

Status CodeReader::readLayouts(const fb::Variant &source,
                               const std::string &where,
                               VariantSchema &variant) {
  size_t count = countOf(source.layouts());
  if (count != 0 && count != entry_->params.size())
    return defect(where, ": expected a layout for each of the ",
                  entry_->params.size(), " parameters or none, got ", count);
  for (size_t i = 0; i < count; ++i) {
    const fb::Layout &said = *source.layouts()->Get(i);
    const ParamSchema &param = entry_->params[i];
    LayoutSchema layout;
    layout.alignment = said.alignment();
    if (!isParamAlignment(layout.alignment))
      return defect(where, ": expected the alignment of ", param.name,
                    " to be 0 or a power of two up to ", kMaxParamAlignment,
                    ", got ", layout.alignment);
    if (countOf(said.strides()) != 0 &&
        countOf(said.strides()) != static_cast<size_t>(param.rank()))
      return defect(where, ": expected a stride for each of the ", param.rank(),
                    " dimensions of ", param.name, " or none, got ",
                    countOf(said.strides()));
    for (size_t d = 0; d < countOf(said.strides()); ++d) {
      layout.strides.push_back(said.strides()->Get(d));
      if (layout.strides.back() < 0)
        return defect(where, ": expected the strides of ", param.name,
                      " to be at least 0, got ", layout.strides.back());
    }
    if (layout.alignment || !layout.strides.empty())
      variant.conditionText +=
          (variant.conditionText.empty() ? "" : ", ") + toText(param, layout);
    variant.layouts.push_back(std::move(layout));
  }
  return {};
}

Status CodeReader::readStage(const fb::Stage &source, const std::string &where,
                             bool isKernel, size_t numRegions,
                             StageSchema &stage) {
  stage.symbol = source.symbol()->str();
  stage.scratchBytes = source.scratch_bytes();
  if (isKernel != (source.launch() != nullptr))
    return defect(where, isKernel ? ": expected a launch, as it is for a GPU"
                                  : ": expected no launch of a shared object");
  if (source.launch())
    if (Status status = readLaunch(*source.launch(), where, numRegions,
                                   stage.launch.emplace());
        !status.isOk())
      return status;
  if (const fb::Resources *said = source.resources())
    stage.resources = {said->registers(),        said->static_shared_bytes(),
                       said->stack_bytes(),      said->spill_store_bytes(),
                       said->spill_load_bytes(), said->code_bytes()};
  return readForms(source.grid(), where + " grid", entry_->symbols, stage.grid);
}

Status CodeReader::readLaunch(const fb::Launch &source,
                              const std::string &where, size_t numRegions,
                              LaunchSchema &launch) {
  if (source.threads() < 1 || source.threads() > kMaxThreads)
    return defect(where, ": expected 1 to ", kMaxThreads, " threads, got ",
                  source.threads());
  if (source.cluster() < 1 || source.cluster() > kMaxCluster)
    return defect(where, ": expected clusters of 1 to ", kMaxCluster,
                  " blocks, got ", source.cluster());
  if (source.shared_bytes() > kMaxSharedBytes)
    return defect(where, ": expected at most ", kMaxSharedBytes,
                  " bytes of shared memory, got ", source.shared_bytes());
  launch.threads = source.threads();
  launch.sharedBytes = source.shared_bytes();
  launch.cluster = source.cluster();
  launch.blocksPerSm = source.blocks_per_sm();
  launch.dependent = source.dependent();
  if (Status status = atMost(kMaxTensorMaps, "boxes in " + where,
                             countOf(source.tensor_maps()));
      !status.isOk())
    return status;
  for (size_t i = 0; i < countOf(source.tensor_maps()); ++i)
    if (Status status =
            readTensorMap(*this, *entry_, *source.tensor_maps()->Get(i),
                          where + " box " + std::to_string(i), numRegions,
                          launch.tensorMaps.emplace_back());
        !status.isOk())
      return status;
  return readForms(source.counters(), where + " counters", entry_->symbols,
                   launch.counters);
}

Status CodeReader::readCondition(const fb::Condition &source,
                                 const std::string &where,
                                 ConditionSchema &condition) {
  if (Status s = readForms(source.left()->factors(), where + " left",
                           conditionSymbols_, condition.left);
      !s.isOk())
    return s;
  return readForms(source.right()->factors(), where + " right",
                   conditionSymbols_, condition.right);
}

Status CodeReader::readAlignments(const fb::Code &source,
                                  const std::string &where,
                                  std::vector<uint32_t> &alignments) {
  size_t count = countOf(source.alignments());
  if (count != 0 && count != entry_->params.size())
    return defect(where, ": expected an alignment for each of the ",
                  entry_->params.size(), " parameters or none, got ", count);
  for (size_t i = 0; i < count; ++i) {
    uint32_t bytes = source.alignments()->Get(i);
    if (!isParamAlignment(bytes))
      return defect(where, ": expected the alignment of ",
                    entry_->params[i].name, " to be 0 or a power of two up to ",
                    kMaxParamAlignment, ", got ", bytes);
    alignments.push_back(bytes);
  }
  return {};
}
