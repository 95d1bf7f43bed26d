// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads safetensors files. The header says where each tensor's bytes are; all
// of it is checked against the size of the file before any byte is used.
#include "SafetensorsHeader.h"
#include "gdn/Data/Safetensors.h"
#include "gdn/Support/InputFile.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MemoryBuffer.h"

#include <algorithm>

using namespace gdn::data;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

/// As large a header as the format's own implementation takes.
static constexpr uint64_t maxHeaderBytes = 100'000'000;

static std::optional<DType> parseTypeName(StringRef text) {
  return llvm::StringSwitch<std::optional<DType>>(text)
      .Case("F32", DType::f32)
      .Case("BF16", DType::bf16)
      .Case("F16", DType::f16)
      .Case("F64", DType::f64)
      .Case("I32", DType::i32)
      .Case("I64", DType::i64)
      .Case("BOOL", DType::i1)
      .Case("U8", DType::u8)
      .Default(std::nullopt);
}

/// The type and shape of one tensor, without its bytes, which must lie within
/// `available` bytes. The message of the error says what is wrong with it.
static Expected<Array> checkTensor(const HeaderTensor &line,
                                   uint64_t available) {
  std::optional<DType> dtype = parseTypeName(line.dtype);
  if (!dtype)
    return createStringError(
        "expects a dtype of F32, BF16, F16, F64, I32, I64, BOOL or U8, but "
        "got " +
        (line.dtype.empty() ? Twine("none") : "'" + Twine(line.dtype) + "'"));
  if (!line.hasShape)
    return createStringError("expects a shape, but got none");
  if (line.offsets.size() != 2)
    return createStringError("expects 2 data_offsets, but got " +
                             Twine(line.offsets.size()));
  const uint64_t begin = line.offsets[0], end = line.offsets[1];
  if (begin > end || end > available)
    return createStringError("expects data_offsets in order and within " +
                             Twine(available) + " bytes of data, but got " +
                             Twine(begin) + " and " + Twine(end));

  Array array;
  array.dtype = *dtype;
  array.shape.assign(line.shape.begin(), line.shape.end());
  std::optional<int64_t> count = elementCount(array.shape);
  if (!count || uint64_t(*count) > INT64_MAX / byteSize(*dtype))
    return createStringError("expects a shape whose bytes can be counted, but "
                             "got one that overflows");
  const uint64_t size = *count * byteSize(*dtype);
  if (size != end - begin)
    return createStringError("expects " + Twine(size) + " bytes for " +
                             array.typeString() + ", but got " +
                             Twine(end - begin));
  return array;
}

/// Checks that the tensors cover `size` bytes of data once and wholly.
static Error checkCover(const Header &header, StringRef origin, uint64_t size) {
  std::vector<std::pair<std::pair<uint64_t, uint64_t>, StringRef>> ranges;
  ranges.reserve(header.tensors.size());
  for (const auto &[name, line] : header.tensors)
    ranges.push_back({{line.offsets[0], line.offsets[1]}, name});
  std::sort(ranges.begin(), ranges.end());
  uint64_t covered = 0;
  for (const auto &[range, name] : ranges) {
    if (range.first != covered)
      return createStringError(origin + ": tensor '" + name +
                               "': expects its data at byte " + Twine(covered) +
                               ", where the previous tensor ends, but got " +
                               Twine(range.first));
    covered = range.second;
  }
  if (covered != size)
    return createStringError(origin + ": expects " + Twine(covered) +
                             " bytes of data for the tensors of the header, "
                             "but got " +
                             Twine(size));
  return Error::success();
}

Expected<Tensors> gdn::data::parseSafetensors(StringRef bytes,
                                              StringRef origin) {
  if (bytes.size() < 8)
    return createStringError(origin +
                             ": expects a header length of 8 bytes, "
                             "but got " +
                             Twine(bytes.size()) + " bytes");
  const uint64_t length = llvm::support::endian::read64le(bytes.data());
  if (length > maxHeaderBytes || length > bytes.size() - 8)
    return createStringError(
        origin + ": expects a header of at most " +
        Twine(std::min<uint64_t>(maxHeaderBytes, bytes.size() - 8)) +
        " bytes, but got a length of " + Twine(length));
  const StringRef text = bytes.substr(8, length);
  const StringRef data = bytes.drop_front(8 + length);

  Header header;
  std::string message;
  if (!text.starts_with("{"))
    return createStringError(origin +
                             ": expects the header to be a JSON object");
  if (!parseHeader(text, header, message))
    return createStringError(origin + ": " + message);

  Tensors tensors;
  tensors.origin = origin.str();
  tensors.metadata = std::move(header.metadata);
  for (const auto &[name, line] : header.tensors) {
    Expected<Array> array = checkTensor(line, data.size());
    if (!array)
      return createStringError(origin + ": tensor '" + name +
                               "': " + llvm::toString(array.takeError()));
    tensors.arrays[name] = std::move(*array);
  }
  if (Error error = checkCover(header, origin, data.size()))
    return std::move(error);
  // Only now copy: ranges that overlap could ask for any amount of memory.
  for (auto &[name, array] : tensors.arrays) {
    const HeaderTensor &line = header.tensors[name];
    array.bytes.assign(data.data() + line.offsets[0],
                       data.data() + line.offsets[1]);
    if (array.dtype != DType::i1)
      continue;
    for (unsigned char byte : array.bytes)
      if (byte > 1)
        return createStringError(origin + ": tensor '" + name +
                                 "': expects 0 or 1 in every BOOL, but got " +
                                 Twine(unsigned(byte)));
  }
  return tensors;
}

/// A larger file is no file of this format.
static constexpr uint64_t mostFileBytes = uint64_t{1} << 40;

Expected<Tensors> gdn::data::readSafetensors(StringRef path) {
  auto buffer = readInputFile(path, mostFileBytes);
  if (!buffer)
    return buffer.takeError();
  return parseSafetensors((*buffer)->getBuffer(), path);
}

const Array *Tensors::find(StringRef name) const {
  auto it = arrays.find(name.str());
  return it == arrays.end() ? nullptr : &it->second;
}

Expected<const Array *> Tensors::get(StringRef name) const {
  if (const Array *array = find(name))
    return array;
  std::string some;
  size_t listed = 0;
  for (const auto &[other, array] : arrays) {
    if (++listed > 8)
      break;
    some += (some.empty() ? "'" : ", '") + other + "'";
  }
  return createStringError(origin + ": expects a tensor '" + name +
                           "', but got " + (arrays.empty() ? "none" : some) +
                           (arrays.size() > 8
                                ? " and " + Twine(arrays.size() - 8) + " more"
                                : Twine("")));
}
