// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The JSON header of a safetensors file, checked for form: a flat object of
// tensors plus `__metadata__`, every name once.
#ifndef GDN_LIB_DATA_SAFETENSORSHEADER_H
#define GDN_LIB_DATA_SAFETENSORSHEADER_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gdn::data {

/// One tensor's line. What is missing stays empty.
struct HeaderTensor {
  std::string dtype;
  std::vector<uint64_t> shape;
  std::vector<uint64_t> offsets;
  bool hasShape = false;
};

struct Header {
  std::map<std::string, HeaderTensor> tensors;
  std::map<std::string, std::string> metadata;
};

/// Reads `text` into `header`; on failure returns false with the reason in
/// `message`. Never looks further than the first error, needs no recursion.
bool parseHeader(llvm::StringRef text, Header &header, std::string &message);

} // namespace gdn::data

#endif // GDN_LIB_DATA_SAFETENSORSHEADER_H
