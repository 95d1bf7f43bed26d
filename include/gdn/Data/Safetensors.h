// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading and writing safetensors files: an 8-byte length, a JSON header of
// names, types, shapes and byte ranges, then the tensors' bytes.
#ifndef GDN_DATA_SAFETENSORS_H
#define GDN_DATA_SAFETENSORS_H

#include "gdn/Data/Array.h"

#include "llvm/Support/Error.h"

#include <map>
#include <string>

namespace gdn::data {

/// The contents of a file, by name.
struct Tensors {
  std::map<std::string, Array> arrays;
  std::map<std::string, std::string> metadata;
  /// Where the contents came from; errors say it.
  std::string origin = "<memory>";

  /// The tensor of this name or null.
  const Array *find(llvm::StringRef name) const;

  /// The tensor of this name, or an error that names the file and some of the
  /// tensors that it has. The pointer lives as long as this object.
  llvm::Expected<const Array *> get(llvm::StringRef name) const;
};

/// Reads a whole file. Element types are F32, BF16, F16, F64, I32, I64 and
/// BOOL; everything that the format demands is checked (header length and
/// form, no name twice, bytes of a tensor = shape * element size, tensors
/// cover the data without gap or overlap), and the error names file, tensor,
/// what was expected and what was found.
llvm::Expected<Tensors> readSafetensors(llvm::StringRef path);

/// Same for bytes in memory; `origin` stands for the file in errors.
llvm::Expected<Tensors> parseSafetensors(llvm::StringRef bytes,
                                         llvm::StringRef origin);

/// Writes a file in one step: under a temporary name beside `path`, then
/// renamed, so that `path` is the old file or the whole new one. Tensors are
/// aligned to their element size. Names and metadata must be UTF-8.
llvm::Error writeSafetensors(llvm::StringRef path, const Tensors &tensors);

/// The bytes that `writeSafetensors` writes.
llvm::Expected<std::string> serializeSafetensors(const Tensors &tensors);

} // namespace gdn::data

#endif // GDN_DATA_SAFETENSORS_H
