// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// States between tensor-parallel sizes, bit for bit: all pairs of 1, 2, 4 and 8
// ranks, for all buffers, also where ranks outnumber key heads.

#include "tier_test.h"

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

constexpr int64_t kValueHeads = 16;

/// What an element is in the whole model: its buffer, layer, head or channel,
/// and where it is within.
uint32_t valueOf(PoolBuffer kind, int64_t layer, int64_t row, int64_t rest) {
  const auto seed = static_cast<uint32_t>(
      ((static_cast<int64_t>(kind) * 31 + layer) * 4099 + row) * 8209 + rest);
  return seed * 2654435761u;
}

/// The model as ranks have it.
struct Ranks {
  Ranks(int64_t tp, int64_t keyHeads, bool deferred, StateFormat format)
      : tp(tp), keyHeads(keyHeads) {
    for (int64_t rank = 0; rank < tp; ++rank) {
      RankShare share = {tp, rank, keyHeads, kValueHeads};
      StatePoolShape shape;
      shape.numLayers = 2;
      shape.numRequests = 1;
      shape.keyHeads = share.keys().second;
      shape.valueHeads = share.values().second;
      shape.keyDim = 3;
      shape.valueDim = 2;
      if (deferred) {
        shape.pendingTokens = 2;
        shape.deferredWrites = true;
        shape.pendingDType = DType::f16;
        shape.statePlanes = 2;
        shape.convExtra = 1;
      }
      // Layouts are nothing that a file knows.
      shape.convLayout = rank % 2 ? ConvLayout::sd : ConvLayout::ds;
      pools.push_back(sharedPool(shape));
      HostTierOptions options;
      options.numSlots = 1;
      options.share = share;
      if (!deferred)
        options.format = format;
      tiers.push_back(makeTier(pools.back(), options));
      slot = take(*pools.back(), 1)[0];
      host = takeHost(*tiers.back(), 1)[0];
    }
  }

  /// The row of the model that row `row` of a rank's buffer is.
  int64_t rowOf(const StatePool &pool, PoolBuffer kind, int64_t rank,
                int64_t row) const {
    const RankShare share = {tp, rank, keyHeads, kValueHeads};
    const StatePoolShape &shape = pool.shape();
    if (kind == PoolBuffer::pendingKeys || kind == PoolBuffer::pendingCounts)
      return share.keys().first + row;
    if (kind != PoolBuffer::convHistory)
      return share.values().first + row;
    const int64_t keys = shape.keyHeads * shape.keyDim;
    if (row < 2 * keys)
      return row / keys * keyHeads * shape.keyDim +
             share.keys().first * shape.keyDim + row % keys;
    return 2 * keyHeads * shape.keyDim + share.values().first * shape.valueDim +
           row - 2 * keys;
  }

  /// Calls `visit` with each element and its value in the whole model.
  template <typename Visit> void forEach(int64_t rank, Visit &&visit) const {
    const StatePool &pool = *pools[static_cast<size_t>(rank)];
    for (size_t i = 0; i < pool.kinds().size(); ++i) {
      const PoolBuffer kind = pool.kinds()[i];
      const SlotBuffer &buffer = pool.buffers()[i];
      int64_t rest = 1;
      for (size_t d = 2; d < buffer.sizes.size(); ++d)
        rest *= buffer.sizes[d];
      for (int64_t layer = 0; layer < pool.shape().numLayers; ++layer) {
        int64_t at = 0;
        forEachElement(
            pool, kind, layer, slot, [&](uint8_t *element, int64_t bytes) {
              const int64_t row = rowOf(pool, kind, rank, at / rest);
              visit(element, bytes, valueOf(kind, layer, row, at % rest));
              ++at;
            });
      }
    }
  }
  void fill() {
    for (int64_t rank = 0; rank < tp; ++rank)
      forEach(rank, [](uint8_t *at, int64_t bytes, uint32_t value) {
        std::memcpy(at, &value, static_cast<size_t>(bytes));
      });
  }
  int64_t countWrong() const {
    int64_t wrong = 0;
    for (int64_t rank = 0; rank < tp; ++rank)
      forEach(rank, [&](const uint8_t *at, int64_t bytes, uint32_t value) {
        wrong += std::memcmp(at, &value, static_cast<size_t>(bytes)) != 0;
      });
    return wrong;
  }
  std::vector<std::vector<uint8_t>> saveAll() {
    std::vector<std::vector<uint8_t>> files;
    for (auto &tier : tiers) {
      EXPECT_TRUE(tier->store(&slot, &host, 1, nullptr).isOk());
      files.push_back(save(*tier, host, {9, 8, 7}));
    }
    return files;
  }
  std::string restoreAll(const std::vector<std::vector<uint8_t>> &files) {
    for (auto &tier : tiers) {
      if (Status s = restore(*tier, host, files); !s.isOk())
        return s.toString();
      EXPECT_TRUE(tier->load(&host, &slot, 1, nullptr).isOk());
    }
    return "OK";
  }

  int64_t tp, keyHeads;
  std::vector<std::shared_ptr<StatePool>> pools;
  std::vector<std::unique_ptr<HostTier>> tiers;
  int32_t slot = 0, host = 0;
};

} // namespace

TEST(TensorParallel, AllPairsBitForBit) {
  for (int64_t keyHeads : {8, 2, 16})
    for (bool deferred : {false, true})
      for (int64_t from : {1, 2, 4, 8}) {
        Ranks saved(from, keyHeads, deferred, StateFormat::f32);
        saved.fill();
        const auto files = saved.saveAll();
        for (int64_t to : {1, 2, 4, 8}) {
          Ranks loaded(to, keyHeads, deferred, StateFormat::f32);
          EXPECT_GT(loaded.countWrong(), 0);
          ASSERT_EQ(loaded.restoreAll(files), "OK");
          EXPECT_EQ(loaded.countWrong(), 0)
              << keyHeads << " key heads, " << from << " to " << to;
          // And as if these ranks had written them.
          if (to == from)
            EXPECT_EQ(loaded.saveAll(), files);
        }
      }
}

TEST(TensorParallel, RoundedStatesThereAndBack) {
  for (StateFormat format :
       {StateFormat::bf16, StateFormat::f16, StateFormat::i8x2})
    for (int64_t to : {2, 8}) {
      Ranks whole(1, 8, false, format), parts(to, 8, false, format);
      for (int64_t rank = 0; rank < 1; ++rank)
        whole.forEach(rank, [](uint8_t *at, int64_t bytes, uint32_t value) {
          const float number = static_cast<float>(value % 1000) / 100.0f;
          std::memcpy(at, &number, static_cast<size_t>(bytes));
        });
      const auto file = whole.saveAll();
      ASSERT_EQ(parts.restoreAll(file), "OK");
      std::vector<std::vector<uint8_t>> files;
      for (auto &tier : parts.tiers)
        files.push_back(save(*tier, parts.host, {9, 8, 7}));
      ASSERT_EQ(whole.restoreAll(files), "OK");
      EXPECT_EQ(save(*whole.tiers[0], whole.host, {9, 8, 7}), file[0]);
    }
}

TEST(TensorParallel, PartsInAnyOrderAndWithoutOthers) {
  Ranks saved(4, 8, false, StateFormat::f32), loaded(2, 8, false, {});
  saved.fill();
  auto files = saved.saveAll();
  std::reverse(files.begin(), files.end());
  EXPECT_EQ(loaded.restoreAll(files), "OK");
  EXPECT_EQ(loaded.countWrong(), 0);
  // Rank 1 of 2 needs the parts of ranks 2 and 3; the first two here.
  EXPECT_TRUE(restore(*loaded.tiers[1], 0, {files[0], files[1]}).isOk());
  EXPECT_EQ(
      restore(*loaded.tiers[0], 0, {files[0], files[1], files[2]}).toString(),
      "NOT_FOUND: state file: expected key head 0 of the model in one of "
      "the parts, got 3 parts without it");
  EXPECT_EQ(restore(*loaded.tiers[0], 0, {}).code(), StatusCode::notFound);
  // A part that is not needed is not read, but has to be of the same state.
  auto cut = files;
  cut[0].resize(200);
  EXPECT_TRUE(
      restore(*loaded.tiers[0], 0, {cut[0], files[2], files[3]}).isOk());
}

TEST(TensorParallel, PartsOfDifferentStates) {
  Ranks saved(2, 8, false, StateFormat::f32), loaded(1, 8, false, {});
  saved.fill();
  auto files = saved.saveAll();
  files[1] = save(*saved.tiers[1], saved.host, {10, 8, 7});
  EXPECT_EQ(loaded.restoreAll(files),
            "INVALID_ARGUMENT: state file: num_tokens: expected 9, got 10");
}

TEST(TensorParallel, Shares) {
  using Range = std::pair<int64_t, int64_t>;
  EXPECT_EQ(RankShare::rangeOf(16, 4, 3), Range(12, 4));
  EXPECT_EQ(RankShare::rangeOf(2, 8, 0), Range(0, 1));
  EXPECT_EQ(RankShare::rangeOf(2, 8, 3), Range(0, 1));
  EXPECT_EQ(RankShare::rangeOf(2, 8, 4), Range(1, 1));
  EXPECT_EQ(checkShare("x", {3, 0, 8, 16}).toString(),
            "INVALID_ARGUMENT: x: total_value_heads: expected a multiple of 3, "
            "the ranks, got 16");
  EXPECT_EQ(checkShare("x", {2, 2, 8, 16}).toString(),
            "INVALID_ARGUMENT: x: tp_rank: expected 0 to 1, got 2");
  EXPECT_EQ(checkShare("x", {1, 0, 5, 16}).toString(),
            "INVALID_ARGUMENT: x: total_value_heads: expected a multiple of 5, "
            "the key heads, got 16");
}
