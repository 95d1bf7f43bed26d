// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads an image's bytes in the order that the format demands: nothing is
// interpreted before what it rests on was checked. FlatBuffers' verifier
// bounds all offsets; the ranges that only we know are checked while the
// manifest is copied into plain values.

#include "entry_reader.h"
#include "gdnrt/image.h"
#include "gdnrt/image_trailer.h"

#include <cstring>
#include <unordered_set>

using namespace gdnrt;

static uint64_t readLittleEndian(const uint8_t *bytes) {
  uint64_t value = 0;
  for (int i = 7; i >= 0; --i)
    value = value << 8 | bytes[i];
  return value;
}

/// Size, trailer, hash, identifier, verifier; the root on success.
static Result<const fb::Image *> verify(const uint8_t *data, size_t size) {
  // A root offset and an identifier, then the trailer.
  constexpr size_t kSmallest = 8 + kTrailerSize;
  if (size < kSmallest)
    return corrupt("expected at least ", kSmallest, " bytes, got ", size);
  size_t rootSize = size - kTrailerSize;
  // The verifier asserts this; offsets are 32-bit.
  if (rootSize >= FLATBUFFERS_MAX_BUFFER_SIZE)
    return corrupt("expected less than 2 GiB, got ", size, " bytes");
  const uint8_t *trailer = data + rootSize;
  if (std::memcmp(trailer, kTrailerMagic, 8) != 0)
    return corrupt("the trailer is missing; the file is cut off or no image");
  if (readLittleEndian(trailer + 8) != imageHash(data, rootSize))
    return corrupt("the checksum does not match the contents");
  if (!flatbuffers::BufferHasIdentifier(data, fb::ImageIdentifier()))
    return corrupt("expected the identifier GDNK");
  flatbuffers::Verifier verifier(data, rootSize);
  if (!fb::VerifyImageBuffer(verifier))
    return corrupt("the manifest is malformed");
  return fb::GetImage(data);
}

Result<ImageContents> gdnrt::readImage(const uint8_t *data, size_t size) {
  Result<const fb::Image *> root = verify(data, size);
  if (!root.isOk())
    return root.status();
  const fb::Image &source = **root;
  ImageContents contents;
  if (source.producer())
    contents.producer = source.producer()->str();
  if (source.format_version() != kFormatVersion)
    return failure(StatusCode::unsupported, "image: expected format version ",
                   kFormatVersion, ", got ", source.format_version(),
                   ", as written by ", contents.producer);

  for (size_t i = 0; i < countOf(source.blobs()); ++i) {
    const fb::Blob &blob = *source.blobs()->Get(i);
    const uint8_t *bytes = blob.data()->data();
    size_t misplaced = static_cast<size_t>(bytes - data) % kAlignment;
    if (misplaced != 0)
      return corrupt("blob ", i, ": expected its data at a multiple of ",
                     kAlignment, " bytes, got an offset ", misplaced,
                     " bytes past one");
    if (blob.xxh3() != imageHash(bytes, blob.data()->size()))
      return corrupt("blob ", i, ": the checksum does not match its data");
    contents.blobs.push_back({bytes, blob.data()->size()});
  }
  std::unordered_set<std::string> names;
  for (size_t i = 0; i < countOf(source.entries()); ++i) {
    EntryReader reader(*source.entries()->Get(i), contents.blobs.size());
    auto entry = reader.read();
    if (!entry.isOk())
      return entry.status();
    if (!names.insert((*entry)->name).second)
      return corrupt("two entries are named ", (*entry)->name);
    contents.entries.push_back(std::move(*entry));
  }
  return contents;
}
