// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Typed access to a JSON object; see ConfigReader.h.
#include "ConfigReader.h"

#include "llvm/Support/FormatVariadic.h"

#include <limits>

using namespace gdn;

/// The parser recurses, so that text from outside must not nest without bound.
static constexpr unsigned maxNesting = 64;

static llvm::Error checkNesting(llvm::StringRef text, llvm::StringRef file) {
  unsigned depth = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (inString) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        inString = false;
    } else if (c == '"') {
      inString = true;
    } else if (c == '[' || c == '{') {
      if (++depth > maxNesting)
        return llvm::createStringError(llvm::formatv(
            "{0}: byte {1}: expects at most {2} nested arrays and objects",
            file, i, maxNesting));
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return llvm::Error::success();
}

/// Numbers that Python writes and JSON has no words for are null.
static std::string withoutNonFinite(llvm::StringRef text) {
  std::string result;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (!inString) {
      bool isWord = false;
      for (llvm::StringRef word : {"-Infinity", "Infinity", "NaN"})
        if (!isWord && text.substr(i).starts_with(word)) {
          result += "null";
          i += word.size() - 1;
          isWord = true;
        }
      if (isWord)
        continue;
    }
    result += c;
    if (inString && c == '\\' && i + 1 < text.size())
      result += text[++i];
    else if (c == '"')
      inString = !inString;
  }
  return result;
}

llvm::Expected<llvm::json::Object> gdn::parseJsonObject(llvm::StringRef text,
                                                        llvm::StringRef file) {
  if (llvm::Error error = checkNesting(text, file))
    return std::move(error);
  llvm::Expected<llvm::json::Value> value =
      llvm::json::parse(withoutNonFinite(text));
  if (!value)
    return llvm::createStringError(llvm::formatv(
        "{0}: is not JSON: {1}", file, llvm::toString(value.takeError())));
  llvm::json::Object *object = value->getAsObject();
  if (!object)
    return llvm::createStringError(
        llvm::formatv("{0}: expects a JSON object at the top", file));
  return std::move(*object);
}

/// The value as JSON text, short enough for a message.
static std::string found(const llvm::json::Value *value) {
  if (!value)
    return "nothing";
  std::string text = llvm::formatv("{0}", *value);
  if (text.size() > 60)
    text = text.substr(0, 57) + "...";
  return text;
}

void ConfigReader::expected(llvm::StringRef key, llvm::StringRef expected) {
  if (!failure)
    failure = llvm::formatv("{0}: {1}{2}: expects {3}, but got {4}", file,
                            prefix, key, expected, found(object.get(key)));
}

int64_t ConfigReader::positive(llvm::StringRef key) {
  std::optional<int64_t> value = object.getInteger(key);
  if (value && *value >= 1)
    return *value;
  expected(key, "a positive integer");
  return 1;
}

double ConfigReader::positiveNumber(llvm::StringRef key) {
  // Kernels take it as f32, in which it is not to become 0 or infinite.
  using Limits = std::numeric_limits<float>;
  std::optional<double> value = object.getNumber(key);
  if (value && *value >= Limits::min() && *value <= Limits::max())
    return *value;
  expected(key, value && *value > 0 ? "a positive number of f32"
                                    : "a positive number");
  return 1;
}

double ConfigReader::number(llvm::StringRef key) {
  if (std::optional<double> value = object.getNumber(key))
    return *value;
  expected(key, "a number");
  return -1;
}

bool ConfigReader::boolean(llvm::StringRef key) {
  if (std::optional<bool> value = object.getBoolean(key))
    return *value;
  expected(key, "true or false");
  return false;
}

std::string ConfigReader::string(llvm::StringRef key) {
  if (std::optional<llvm::StringRef> value = object.getString(key))
    return value->str();
  expected(key, "a string");
  return "";
}

bool ConfigReader::has(llvm::StringRef key) const {
  const llvm::json::Value *value = object.get(key);
  return value && value->kind() != llvm::json::Value::Null;
}

std::optional<std::string> ConfigReader::optionalString(llvm::StringRef key) {
  if (!has(key))
    return std::nullopt;
  return string(key);
}

const llvm::json::Array *ConfigReader::optionalArray(llvm::StringRef key) {
  if (!has(key))
    return nullptr;
  const llvm::json::Array *array = object.getArray(key);
  if (!array)
    expected(key, "an array");
  return array;
}

ConfigReader ConfigReader::inner(llvm::StringRef key) {
  static const llvm::json::Object nothing;
  const llvm::json::Object *value = object.getObject(key);
  if (!value)
    expected(key, "an object");
  return ConfigReader(value ? *value : nothing, file, prefix + key.str() + ".");
}

void ConfigReader::take(ConfigReader &other) {
  if (!failure)
    failure = other.failure;
}

llvm::Error ConfigReader::takeError() {
  if (!failure)
    return llvm::Error::success();
  return llvm::createStringError(*std::exchange(failure, std::nullopt));
}
