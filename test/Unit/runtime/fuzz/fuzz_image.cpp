// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any bytes into the reader, as they are and with hashes put right, so that
// the fuzzer is not stopped by checksums. What the reader accepts is then used
// as a caller would: every name looked up, every entry bound.

#include "gdnrt/binding.h"
#include "gdnrt/image.h"
#include "gdnrt/image_generated.h"
#include "gdnrt/image_trailer.h"

#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

using namespace gdnrt;

/// Gives the binding memory to work in, and goes through its variants.
static void useBinding(Result<std::unique_ptr<Binding>> &bound) {
  if (!bound.isOk())
    return;
  Binding &binding = **bound;
  for (uint64_t bytes : {uint64_t{0}, uint64_t{4096}, uint64_t{1} << 40})
    if (binding.setWorkspace(reinterpret_cast<void *>(1 << 20), bytes).isOk() &&
        (!binding.checkVariant().isOk() || binding.units() < 0))
      std::abort(); // the last variant can always run
  for (size_t variant = 0; binding.forceVariant(variant).isOk(); ++variant)
    if (binding.workspaceBytes().isOk() && *binding.workspaceBytes() == 0 &&
        !binding.checkVariant().isOk())
      std::abort();
}

/// Binds one-element arrays and broadcasts; most attempts fail with a message.
static void useEntry(const std::shared_ptr<const EntrySchema> &entry) {
  int64_t sizes[kMaxRank], strides[kMaxRank];
  for (int64_t size : {0, 1, 2, 256}) {
    std::fill_n(sizes, kMaxRank, size);
    std::fill_n(strides, kMaxRank, 1);
    std::vector<Argument> args(entry->params.size());
    for (size_t p = 0; p < args.size(); ++p) {
      args[p].data = reinterpret_cast<void *>(0x1000 + 0x1000 * p);
      args[p].dtype = static_cast<int32_t>(entry->params[p].dtype);
      args[p].rank = entry->params[p].rank();
      args[p].sizes = sizes;
      args[p].strides = size < 2 ? strides : nullptr;
    }
    for (const CodeSchema &code : entry->codes) {
      auto binding = Binding::make(entry, code, args.data(), args.size());
      if (binding.isOk() && (*binding)->words().size() < entry->numWords())
        std::abort();
      useBinding(binding);
    }
  }
}

static void tryImage(const uint8_t *data, size_t size) {
  auto image = Image::loadMemory(data, size);
  if (!image.isOk()) {
    if (image.status().message().empty())
      std::abort();
    return;
  }
  for (const auto &entry : (*image)->entries()) {
    auto found = (*image)->findEntry(entry->name);
    if (!found.isOk() || (*image)->entries()[*found] != entry)
      std::abort();
    useEntry(entry);
  }
  (void)(*image)->findEntry("decode").isOk();
}

/// Writes the right hash into each blob that the verifier lets through. All
/// hashes are made first: what is written may be part of another blob.
static void fixBlobs(uint8_t *root, size_t size) {
  flatbuffers::Verifier verifier(root, size);
  if (size < 8 || !fb::VerifyImageBuffer(verifier))
    return;
  std::vector<std::pair<uint8_t *, uint64_t>> found;
  const auto *blobs = flatbuffers::GetRoot<fb::Image>(root)->blobs();
  for (size_t i = 0; blobs && i < blobs->size(); ++i) {
    auto *blob = const_cast<fb::Blob *>(blobs->Get(i));
    auto *table = reinterpret_cast<flatbuffers::Table *>(blob);
    if (uint8_t *field = table->GetAddressOf(fb::Blob::VT_XXH3))
      found.emplace_back(field,
                         imageHash(blob->data()->data(), blob->data()->size()));
  }
  for (const auto &[field, hash] : found)
    flatbuffers::WriteScalar(field, hash);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tryImage(data, size);
  if (size < kTrailerSize)
    return 0;
  size_t rootSize = size - kTrailerSize;
  AlignedBytes root = allocateAligned(rootSize);
  std::memcpy(root.get(), data, rootSize);
  fixBlobs(root.get(), rootSize);
  std::vector<uint8_t> fixed(root.get(), root.get() + rootSize);
  appendTrailer(fixed);
  tryImage(fixed.data(), fixed.size());
  return 0;
}
