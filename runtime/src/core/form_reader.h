// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads linear forms of an entry, and says what is wrong with the entry.

#ifndef GDNRT_SRC_CORE_FORM_READER_H
#define GDNRT_SRC_CORE_FORM_READER_H

#include "gdnrt/entry_schema.h"
#include "gdnrt/image_generated.h"
#include "gdnrt/status.h"

#include <string>
#include <vector>

namespace gdnrt {

template <typename... Pieces> Status corrupt(const Pieces &...pieces) {
  return failure(StatusCode::corrupt, "image: ", pieces...);
}

/// The length of an optional FlatBuffers vector; an absent one is empty.
template <typename Vector> size_t countOf(const Vector *vector) {
  return vector ? vector->size() : 0;
}

/// What all parts of an entry are read with.
class FormReader {
public:
  /// `entry` must outlive the reader.
  explicit FormReader(const EntrySchema &entry) : entry_(entry) {}

  /// Factors of a product, or dimensions of a grid.
  Status readForms(
      const flatbuffers::Vector<flatbuffers::Offset<fb::LinearForm>> *source,
      const std::string &where, const std::vector<std::string> &symbols,
      std::vector<LinearForm> &forms) const;
  Status readForm(const fb::LinearForm &source, const std::string &where,
                  const std::vector<std::string> &symbols,
                  LinearForm &form) const;
  /// At most `most` of `what`, which there are `count` of.
  Status atMost(size_t most, const std::string &what, size_t count) const {
    return count <= most
               ? Status()
               : defect("expected at most ", most, " ", what, ", got ", count);
  }
  template <typename... Pieces> Status defect(const Pieces &...pieces) const {
    return corrupt("entry ", entry_.name, ": ", pieces...);
  }

private:
  const EntrySchema &entry_;
};

} // namespace gdnrt

#endif // GDNRT_SRC_CORE_FORM_READER_H
