// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes safetensors files. Tensors are laid out by falling element size
// behind a header padded to 8 bytes, which aligns each to its elements.
#include "gdn/Data/Safetensors.h"
#include "gdn/Support/OutputFile.h"

#include "llvm/Support/Endian.h"
#include "llvm/Support/JSON.h"

#include <nlohmann/json.hpp>

#include <algorithm>

using namespace gdn::data;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

static const char *typeName(DType dtype) {
  switch (dtype) {
  case DType::f32:
    return "F32";
  case DType::bf16:
    return "BF16";
  case DType::f16:
    return "F16";
  case DType::f64:
    return "F64";
  case DType::i32:
    return "I32";
  case DType::i64:
    return "I64";
  case DType::i1:
    return "BOOL";
  case DType::u8:
    return "U8";
  }
  llvm_unreachable("covered switch");
}

/// JSON holds UTF-8 only.
static Error checkNames(const Tensors &tensors) {
  for (const auto &[name, array] : tensors.arrays) {
    if (!llvm::json::isUTF8(name) || name == "__metadata__")
      return createStringError(Twine(tensors.origin) +
                               ": expects names of tensors in UTF-8 and not "
                               "'__metadata__', but got '" +
                               name + "'");
    std::optional<int64_t> count = elementCount(array.shape);
    if (!count || *count * byteSize(array.dtype) != array.bytes.size())
      return createStringError(Twine(tensors.origin) + ": tensor '" + name +
                               "': expects the bytes of " + array.typeString() +
                               ", but got " + Twine(array.bytes.size()));
  }
  for (const auto &[key, text] : tensors.metadata)
    if (!llvm::json::isUTF8(key) || !llvm::json::isUTF8(text))
      return createStringError(Twine(tensors.origin) +
                               ": expects metadata in UTF-8, but got '" + key +
                               "' = '" + text + "'");
  return Error::success();
}

Expected<std::string> gdn::data::serializeSafetensors(const Tensors &tensors) {
  if (Error error = checkNames(tensors))
    return std::move(error);

  std::vector<std::pair<StringRef, const Array *>> order;
  order.reserve(tensors.arrays.size());
  for (const auto &[name, array] : tensors.arrays)
    order.push_back({name, &array});
  std::sort(order.begin(), order.end(), [](auto &a, auto &b) {
    const size_t left = byteSize(a.second->dtype);
    const size_t right = byteSize(b.second->dtype);
    return left != right ? left > right : a.first < b.first;
  });

  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!tensors.metadata.empty())
    header["__metadata__"] = tensors.metadata;
  uint64_t offset = 0;
  for (auto &[name, array] : order) {
    const uint64_t end = offset + array->bytes.size();
    nlohmann::ordered_json &line = header[name.str()];
    line["dtype"] = typeName(array->dtype);
    line["shape"] = array->shape;
    line["data_offsets"] = {offset, end};
    offset = end;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');

  std::string bytes(8, '\0');
  llvm::support::endian::write64le(bytes.data(), text.size());
  bytes += text;
  for (auto &[name, array] : order)
    bytes.append(array->bytes.data(), array->bytes.size());
  return bytes;
}

Error gdn::data::writeSafetensors(StringRef path, const Tensors &tensors) {
  Expected<std::string> bytes = serializeSafetensors(tensors);
  if (!bytes)
    return bytes.takeError();
  return writeOutputFile(path, *bytes);
}
