// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads one entry of an image whose offsets FlatBuffers' verifier has bounded,
// and checks the ranges that only we know.

#ifndef GDNRT_SRC_CORE_ENTRY_READER_H
#define GDNRT_SRC_CORE_ENTRY_READER_H

#include "form_reader.h"

#include <memory>

namespace gdnrt {

/// Builds one EntrySchema. The first defect stops it.
class EntryReader {
public:
  EntryReader(const fb::Entry &source, size_t numBlobs)
      : source_(source), numBlobs_(numBlobs),
        entry_(std::make_shared<EntrySchema>()), forms_(*entry_) {}

  Result<std::shared_ptr<const EntrySchema>> read();

private:
  Status readMaxTokens(const std::pair<std::string, std::string> &attribute);
  Status readSymbols();
  Status readParam(const fb::Param &source);

  const fb::Entry &source_;
  size_t numBlobs_;
  std::shared_ptr<EntrySchema> entry_;
  FormReader forms_;
  size_t numWords_ = 0;
};

} // namespace gdnrt

#endif // GDNRT_SRC_CORE_ENTRY_READER_H
