// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any bytes into the reader of states: as they are, and as changes of a file
// that is right, with hashes put right, so that the fuzzer is not stopped by
// them. What the reader accepts has to be written again as the same bytes.

#include "gdnrt/cpu_device.h"
#include "gdnrt/host_tier.h"
#include "gdnrt/image_trailer.h"

#include <cstdlib>
#include <cstring>

using namespace gdnrt;

namespace {

using File = std::vector<uint8_t>;

struct Writer final : ByteWriter {
  Status write(const void *data, uint64_t bytes) override {
    const auto *from = static_cast<const uint8_t *>(data);
    file.insert(file.end(), from, from + bytes);
    return {};
  }
  File file;
};

struct Reader final : ByteReader {
  explicit Reader(const File &file) : file(file) {}
  Result<uint64_t> read(void *data, uint64_t bytes) override {
    const uint64_t some = std::min<uint64_t>(bytes, file.size() - position);
    if (some > 0)
      std::memcpy(data, file.data() + position, some);
    position += some;
    return some;
  }
  const File &file;
  uint64_t position = 0;
};

/// A rank of two, of a pool with all buffers that there are.
struct Tier {
  Tier() {
    StatePoolShape shape;
    shape.numLayers = 2;
    shape.numRequests = shape.keyHeads = 1;
    shape.valueHeads = 2;
    shape.keyDim = 3;
    shape.valueDim = 2;
    shape.pendingTokens = 2;
    shape.deferredWrites = true;
    shape.pendingDType = DType::f16;
    shape.statePlanes = 2;
    std::shared_ptr<StatePool> pool =
        std::move(*StatePool::make(*createCpuDevice(1), shape, {}));
    HostTierOptions options;
    options.numSlots = 1;
    options.share = {2, 1, 2, 4};
    tier = std::move(*HostTier::make(pool, options));
    int32_t slot = 0, host = 0;
    if (!*pool->allocate(SlotKind::request, 1, &slot, true, nullptr) ||
        !*tier->allocate(1, &host) ||
        !tier->store(&slot, &host, 1, nullptr).isOk())
      std::abort();
    valid = write();
  }
  File write(const StateTags &tags = {}) {
    Writer writer;
    if (!tier->write(0, tags, writer).isOk())
      std::abort();
    return writer.file;
  }
  void tryFiles(const std::vector<File> &files) {
    std::vector<Reader> readers(files.begin(), files.end());
    std::vector<ByteReader *> parts;
    for (Reader &reader : readers)
      parts.push_back(&reader);
    StateTags tags;
    Status status = tier->read(0, parts.data(), parts.size(), nullptr, &tags);
    if (!status.isOk()) {
      Writer writer;
      // An error has a text, and nothing is left behind.
      if (status.message().empty() || tier->write(0, {}, writer).isOk())
        std::abort();
      return;
    }
    File again = write(tags);
    if (files.size() == 1 &&
        (readers[0].position != again.size() ||
         std::memcmp(again.data(), files[0].data(), again.size()) != 0))
      std::abort();
  }
  std::unique_ptr<HostTier> tier;
  File valid;
};

constexpr size_t kHeader = 16 + 19 * 8 + 8;

void fixHashes(File &file) {
  auto put = [&](size_t at) {
    const uint64_t hash = imageHash(file.data(), at);
    std::memcpy(file.data() + at, &hash, sizeof(hash));
  };
  if (file.size() >= kHeader)
    put(kHeader - 8);
  if (file.size() >= kHeader + 8)
    put(file.size() - 8);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static Tier *tier = new Tier;
  const File raw(data, data + size);
  tier->tryFiles({raw});
  // Changes: a position of 16 bits and a byte each, then another length.
  File changed = tier->valid;
  for (; size >= 3; size -= 3, data += 3)
    changed[(data[0] | data[1] << 8) % changed.size()] = data[2];
  if (size == 2)
    changed.resize((data[0] | data[1] << 8) % (changed.size() + 9));
  tier->tryFiles({changed});
  fixHashes(changed);
  tier->tryFiles({changed});
  tier->tryFiles({tier->valid, changed});
  tier->tryFiles({changed, tier->valid});
  return 0;
}
