// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Typed access to a JSON object whose every failure names the file, the key,
// what is expected and what was found. The first failure sticks; later reads
// give zeros, so a caller reads everything and asks once.
#ifndef GDN_LIB_MODEL_CONFIGREADER_H
#define GDN_LIB_MODEL_CONFIGREADER_H

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <optional>
#include <string>

namespace gdn {

class ConfigReader {
public:
  /// Reads `object`, found in `file` below the keys `prefix` ("" or "a.b.").
  /// The object outlives the reader.
  ConfigReader(const llvm::json::Object &object, llvm::StringRef file,
               llvm::StringRef prefix = "")
      : object(object), file(file), prefix(prefix) {}

  /// An integer of at least 1.
  int64_t positive(llvm::StringRef key);
  /// A number above 0.
  double positiveNumber(llvm::StringRef key);
  /// Any number.
  double number(llvm::StringRef key);
  bool boolean(llvm::StringRef key);
  std::string string(llvm::StringRef key);
  /// A string, or nothing if the key is absent or null.
  std::optional<std::string> optionalString(llvm::StringRef key);
  /// An array, or null if the key is absent or null.
  const llvm::json::Array *optionalArray(llvm::StringRef key);
  /// A reader of an object inside; on failure a reader of nothing.
  ConfigReader inner(llvm::StringRef key);

  bool has(llvm::StringRef key) const;
  /// The same, or null.
  bool holds(llvm::StringRef key) const { return object.get(key); }
  /// Notes that `key` should be `expected`, but is what the object holds.
  void expected(llvm::StringRef key, llvm::StringRef expected);
  /// Notes the failure of a reader made by `inner`.
  void take(ConfigReader &other);

  /// The first failure, which the reader gives up; success if there was none.
  llvm::Error takeError();

private:
  const llvm::json::Object &object;
  std::string file;
  std::string prefix;
  std::optional<std::string> failure;
};

/// Parses `text` as one JSON object. Fails with the position of the mistake.
llvm::Expected<llvm::json::Object> parseJsonObject(llvm::StringRef text,
                                                   llvm::StringRef file);

} // namespace gdn

#endif // GDN_LIB_MODEL_CONFIGREADER_H
