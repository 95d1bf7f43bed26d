// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Small tiers, states with contents of their own, and files in memory.

#ifndef GDN_TEST_UNIT_RUNTIME_TIER_TIER_TEST_H
#define GDN_TEST_UNIT_RUNTIME_TIER_TIER_TEST_H

#include "gdnrt/host_tier.h"
#include "pool_test.h"

#include <algorithm>
#include <string>
#include <vector>

namespace gdnrt::test {

inline std::shared_ptr<StatePool> sharedPool(const StatePoolShape &shape,
                                             const StatePoolOptions &o = {}) {
  return std::shared_ptr<StatePool>(makePool(shape, o));
}

inline std::unique_ptr<HostTier> makeTier(std::shared_ptr<StatePool> pool,
                                          const HostTierOptions &options) {
  auto made = HostTier::make(std::move(pool), options);
  EXPECT_TRUE(made.isOk()) << made.status().toString();
  return made.isOk() ? std::move(*made) : nullptr;
}

inline std::unique_ptr<HostTier> makeTier(std::shared_ptr<StatePool> pool,
                                          int64_t slots = 4) {
  HostTierOptions options;
  options.numSlots = slots;
  return makeTier(std::move(pool), options);
}

inline Ids takeHost(HostTier &tier, size_t count) {
  Ids slots(count, -7);
  auto taken = tier.allocate(count, slots.data());
  EXPECT_TRUE(taken.isOk() && *taken);
  return slots;
}

/// All bytes of a slot of a pool: buffer after buffer, layer after layer,
/// elements in the order of their indices.
inline std::vector<uint8_t> bytesOf(const StatePool &pool, int32_t slot) {
  std::vector<uint8_t> bytes;
  for (PoolBuffer kind : pool.kinds())
    for (int64_t layer = 0; layer < pool.shape().numLayers; ++layer)
      forEachElement(pool, kind, layer, slot,
                     [&](const uint8_t *at, int64_t size) {
                       bytes.insert(bytes.end(), at, at + size);
                     });
  return bytes;
}

/// Fills a slot with numbers that depend on `seed` and the position.
inline void fillSlot(const StatePool &pool, int32_t slot, uint32_t seed) {
  uint32_t value = seed * 2654435761u + 12345;
  for (PoolBuffer kind : pool.kinds())
    for (int64_t layer = 0; layer < pool.shape().numLayers; ++layer)
      forEachElement(pool, kind, layer, slot, [&](uint8_t *at, int64_t size) {
        for (int64_t i = 0; i < size; ++i) {
          value = value * 1664525u + 1013904223u;
          at[i] = static_cast<uint8_t>(value >> 24);
        }
      });
}

class MemoryWriter final : public ByteWriter {
public:
  Status write(const void *data, uint64_t bytes) override {
    const auto *from = static_cast<const uint8_t *>(data);
    contents.insert(contents.end(), from, from + bytes);
    return {};
  }
  std::vector<uint8_t> contents;
};

class MemoryReader final : public ByteReader {
public:
  explicit MemoryReader(const std::vector<uint8_t> &contents)
      : contents_(contents) {}
  Result<uint64_t> read(void *data, uint64_t bytes) override {
    const uint64_t some = std::min<uint64_t>(bytes, contents_.size() - read_);
    if (some > 0)
      std::memcpy(data, contents_.data() + read_, some);
    read_ += some;
    return some;
  }

private:
  const std::vector<uint8_t> &contents_;
  uint64_t read_ = 0;
};

/// What is written of a host slot.
inline std::vector<uint8_t> save(HostTier &tier, int32_t slot,
                                 const StateTags &tags = {}) {
  MemoryWriter writer;
  Status status = tier.write(slot, tags, writer);
  EXPECT_TRUE(status.isOk()) << status.toString();
  return writer.contents;
}

/// Reads parts into a host slot.
inline Status restore(HostTier &tier, int32_t slot,
                      const std::vector<std::vector<uint8_t>> &files,
                      const StateTags *expected = nullptr,
                      StateTags *found = nullptr) {
  std::vector<MemoryReader> readers(files.begin(), files.end());
  std::vector<ByteReader *> parts;
  for (MemoryReader &reader : readers)
    parts.push_back(&reader);
  return tier.read(slot, parts.data(), parts.size(), expected, found);
}

} // namespace gdnrt::test

#endif // GDN_TEST_UNIT_RUNTIME_TIER_TIER_TEST_H
