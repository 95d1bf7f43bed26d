// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads the codes of an entry whose parameters are known.

#ifndef GDNRT_SRC_CORE_CODE_READER_H
#define GDNRT_SRC_CORE_CODE_READER_H

#include "form_reader.h"

namespace gdnrt {

class CodeReader : private FormReader {
public:
  /// `entry` must outlive the reader; a code is added to it.
  CodeReader(EntrySchema &entry, size_t numBlobs);

  Status readCode(const fb::Code &source);

private:
  Status readVariant(const fb::Variant &source, const std::string &where,
                     bool isKernel, VariantSchema &variant);
  Status readStage(const fb::Stage &source, const std::string &where,
                   bool isKernel, size_t numRegions, StageSchema &stage);
  Status readLaunch(const fb::Launch &source, const std::string &where,
                    size_t numRegions, LaunchSchema &launch);
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
  Status readAnyBatch(const fb::Variant &source, const std::string &where,
                      VariantSchema &variant);

  EntrySchema *entry_;
  size_t numBlobs_;
  /// The symbols of the entry and, behind them, "workers" and "dependent".
  std::vector<std::string> conditionSymbols_;
};

/// A box of an argument or of one of `numRegions` regions of the workspace.
Status readTensorMap(const FormReader &reader, const EntrySchema &entry,
                     const fb::TensorMap &source, const std::string &where,
                     size_t numRegions, TensorMapSchema &box);

} // namespace gdnrt

#endif // GDNRT_SRC_CORE_CODE_READER_H
