// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A folder of results under the hash of all that they were made of, which
// several processes may use at the same time.
#ifndef GDN_SUPPORT_CONTENTCACHE_H
#define GDN_SUPPORT_CONTENTCACHE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/SHA256.h"

#include <optional>
#include <string>

namespace gdn {

/// The parts that decide a result, in order. Parts do not run into each other:
/// ("ab", "c") is another key than ("a", "bc").
class ContentKey {
public:
  /// `kind` keeps results of different functions apart.
  explicit ContentKey(llvm::StringRef kind) { add(kind); }
  ContentKey &add(llvm::StringRef part);
  ContentKey &add(uint64_t number) { return add(std::to_string(number)); }

  /// SHA-256 in lower-case hexadecimal digits.
  std::string getDigest() const;

private:
  mutable llvm::SHA256 hash;
};

class ContentCache {
public:
  /// Uses `folder`, which is made if it is not there. Now and then removes what
  /// nobody has used for a month, and the oldest beyond 4 GiB. Fails if the
  /// folder cannot be made.
  static llvm::Expected<ContentCache> open(llvm::StringRef folder);

  /// What was stored under the key. None if there is nothing, or if the file is
  /// not what was written.
  std::optional<std::string> find(const ContentKey &key) const;

  /// Whether there is a file for the key, whatever is in it.
  bool has(const ContentKey &key) const;

  /// Stores `content`. Readers see all of it or nothing. A folder that cannot
  /// be written, or is full, is as good as none: nothing is stored.
  void store(const ContentKey &key, llvm::StringRef content) const;

private:
  explicit ContentCache(llvm::StringRef folder) : folder(folder) {}
  std::string pathOf(const ContentKey &key) const;

  std::string folder;
};

/// Version of LLVM, and size and time of its shared library.
std::string identityOfLlvm();

/// The hash of the running program's file and of the shared libraries of LLVM
/// and MLIR that it uses, by size and time: two programs of the same identity
/// give the same results. The file is read once.
const std::string &identityOfThisProgram();

} // namespace gdn

#endif // GDN_SUPPORT_CONTENTCACHE_H
