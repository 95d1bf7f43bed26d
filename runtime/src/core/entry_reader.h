// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads one entry of an image whose offsets FlatBuffers' verifier has bounded,
// and checks the ranges that only we know.

#ifndef GDNRT_SRC_CORE_ENTRY_READER_H
#define GDNRT_SRC_CORE_ENTRY_READER_H

#include "gdnrt/entry_schema.h"
#include "gdnrt/image_generated.h"
#include "gdnrt/status.h"

#include <memory>

namespace gdnrt {

template <typename... Pieces> Status corrupt(const Pieces &...pieces) {
  return failure(StatusCode::corrupt, "image: ", pieces...);
}

/// The length of an optional FlatBuffers vector; an absent one is empty.
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
  Status readMaxTokens(const std::pair<std::string, std::string> &attribute);
  Status readSymbols();
  Status readParam(const fb::Param &source);
  Status readCode(const fb::Code &source);
  Status readVariant(const fb::Variant &source, const std::string &where,
                     bool isKernel, VariantSchema &variant);
  Status readStage(const fb::Stage &source, const std::string &where,
                   bool isKernel, size_t numRegions, StageSchema &stage);
  Status readLaunch(const fb::Launch &source, const std::string &where,
                    size_t numRegions, LaunchSchema &launch);
  Status readTensorMap(const fb::TensorMap &source, const std::string &where,
                       size_t numRegions, TensorMapSchema &box);
  Status readLayouts(const fb::Variant &source, const std::string &where,
                     VariantSchema &variant);
  Status readAlignments(const fb::Code &source, const std::string &where,
                        std::vector<uint32_t> &alignments);
  Status readCondition(const fb::Condition &source, const std::string &where,
                       ConditionSchema &condition);
  /// Conditions that hold together, and their text, joined by `joint`.
  Status readConditions(
      const flatbuffers::Vector<flatbuffers::Offset<fb::Condition>> *source,
      const std::string &where, const char *joint,
      std::vector<ConditionSchema> &conditions, std::string &text);
  Status readAlternatives(const fb::Variant &source, const std::string &where,
                          VariantSchema &variant);
  Status readForms(
      const flatbuffers::Vector<flatbuffers::Offset<fb::LinearForm>> *source,
      const std::string &where, const std::vector<std::string> &symbols,
      std::vector<LinearForm> &forms);
  Status readForm(const fb::LinearForm &source, const std::string &where,
                  const std::vector<std::string> &symbols, LinearForm &form);
  /// At most `most` of `what`, which there are `count` of.
  Status atMost(size_t most, const std::string &what, size_t count) {
    return count <= most
               ? Status()
               : defect("expected at most ", most, " ", what, ", got ", count);
  }
  template <typename... Pieces> Status defect(const Pieces &...pieces) {
    return corrupt("entry ", entry_->name, ": ", pieces...);
  }

  const fb::Entry &source_;
  size_t numBlobs_;
  std::shared_ptr<EntrySchema> entry_;
  /// The symbols of the entry and, behind them, "workers" and "dependent".
  std::vector<std::string> conditionSymbols_;
  size_t numWords_ = 0;
};

} // namespace gdnrt

#endif // GDNRT_SRC_CORE_ENTRY_READER_H
