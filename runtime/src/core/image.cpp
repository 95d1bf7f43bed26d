// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where an image's bytes live, and how its entries are found.

#include "gdnrt/image.h"

#include <atomic>
#include <cstring>

using namespace gdnrt;

static std::atomic<uint64_t> nextImageId{1};

Image::Image() : id_(nextImageId.fetch_add(1, std::memory_order_relaxed)) {}

Result<std::shared_ptr<const Image>> Image::loadFile(const char *path) {
  auto mapping = FileMapping::open(path);
  if (!mapping.isOk())
    return mapping.status();
  auto contents = readImage((*mapping)->data(), (*mapping)->size());
  if (!contents.isOk())
    return failure(contents.status().code(), path, ": ",
                   contents.status().message());
  std::shared_ptr<Image> image(new Image());
  image->mapping_ = std::move(*mapping);
  image->contents_ = std::move(*contents);
  return std::shared_ptr<const Image>(std::move(image));
}

Result<std::shared_ptr<const Image>> Image::loadMemory(const void *data,
                                                       size_t size) {
  const uint8_t *bytes = static_cast<const uint8_t *>(data);
  std::shared_ptr<Image> image(new Image());
  // FlatBuffers reads scalars in place, so the root must be aligned.
  if (reinterpret_cast<uintptr_t>(bytes) % kAlignment != 0) {
    image->copy_ = allocateAligned(size);
    if (!image->copy_)
      return failure(StatusCode::outOfMemory, "image: no memory for a copy of ",
                     size, " bytes");
    std::memcpy(image->copy_.get(), bytes, size);
    bytes = image->copy_.get();
  }
  auto contents = readImage(bytes, size);
  if (!contents.isOk())
    return contents.status();
  image->contents_ = std::move(*contents);
  return std::shared_ptr<const Image>(std::move(image));
}

/// The value of an attribute, "" if there is none.
static std::string_view attributeOf(const EntrySchema &entry,
                                    std::string_view key) {
  for (const auto &[name, value] : entry.attributes)
    if (name == key)
      return value;
  return "";
}

std::string_view gdnrt::kindOf(const EntrySchema &entry) {
  std::string_view name = entry.name;
  // Names have their types behind where an image has several pairs of them.
  std::string types = "_" + std::string(attributeOf(entry, "io")) + "_" +
                      std::string(attributeOf(entry, "state"));
  if (name.size() > types.size() &&
      name.substr(name.size() - types.size()) == types)
    name.remove_suffix(types.size());
  return name;
}

Result<size_t> Image::findKind(std::string_view kind, std::string_view io,
                               std::string_view state) const {
  std::vector<std::string> all, matches;
  size_t match = 0;
  for (size_t i = 0; i < entries().size(); ++i) {
    const EntrySchema &entry = *entries()[i];
    std::string_view ioOf = attributeOf(entry, "io");
    std::string_view stateOf = attributeOf(entry, "state");
    all.push_back(std::string(kindOf(entry)) + " (io " + std::string(ioOf) +
                  ", state " + std::string(stateOf) + ")");
    if (kindOf(entry) == kind && (io.empty() || io == ioOf) &&
        (state.empty() || state == stateOf)) {
      matches.push_back(all.back());
      match = i;
    }
  }
  if (matches.size() == 1)
    return match;
  std::string wanted = std::string(kind) + " (io " +
                       std::string(io.empty() ? "any" : io) + ", state " +
                       std::string(state.empty() ? "any" : state) + ")";
  if (matches.empty())
    return failure(StatusCode::notFound, wanted,
                   ": the image has no such entry; it has: ",
                   all.empty() ? "none" : joinNames(all));
  return failure(StatusCode::notFound, wanted,
                 ": several entries fit: ", joinNames(matches));
}

Result<size_t> Image::findEntry(std::string_view name) const {
  std::vector<std::string> all, matches;
  size_t match = 0;
  for (size_t i = 0; i < entries().size(); ++i) {
    const std::string &candidate = entries()[i]->name;
    if (candidate == name)
      return i;
    all.push_back(candidate);
    if (candidate.size() > name.size() && candidate[name.size()] == '_' &&
        candidate.compare(0, name.size(), name) == 0) {
      matches.push_back(candidate);
      match = i;
    }
  }
  if (matches.size() == 1)
    return match;
  if (matches.empty())
    return failure(StatusCode::notFound, name,
                   ": the image has no such entry; it has: ",
                   all.empty() ? "none" : joinNames(all));
  return failure(StatusCode::notFound, name,
                 ": the name fits several entries: ", joinNames(matches));
}
