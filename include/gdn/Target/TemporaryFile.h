// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files through which programs and the linker take and give their data.
#ifndef GDN_TARGET_TEMPORARYFILE_H
#define GDN_TARGET_TEMPORARYFILE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace gdn {

/// A temporary file that is removed with the object.
class TemporaryFile {
public:
  TemporaryFile() = default;
  TemporaryFile(const TemporaryFile &) = delete;
  TemporaryFile &operator=(const TemporaryFile &) = delete;
  ~TemporaryFile();

  /// Creates it, with `content`.
  llvm::Error create(llvm::StringRef suffix, llvm::StringRef content);
  const std::string &getPath() const { return path; }
  llvm::Expected<std::string> read() const;

private:
  std::string path;
};

} // namespace gdn

#endif // GDN_TARGET_TEMPORARYFILE_H
