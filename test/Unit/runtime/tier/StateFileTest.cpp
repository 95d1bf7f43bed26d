// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files of states: what fits comes back, what does not is refused with the
// numbers of both, and whatever was cut off or changed leaves nothing behind.

#include "tier_test.h"

#include <cstdio>
#include <filesystem>
#include <random>

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

struct Saved {
  explicit Saved(const StatePoolShape &shape = smallShape(),
                 const HostTierOptions &options = fourSlots())
      : pool(sharedPool(shape)), tier(makeTier(pool, options)),
        slots(take(*pool, 2)), hosts(takeHost(*tier, 2)) {
    fillSlot(*pool, slots[0], 77);
    bytes = bytesOf(*pool, slots[0]);
    EXPECT_TRUE(tier->store(slots.data(), hosts.data(), 1, nullptr).isOk());
    file = save(*tier, hosts[0], {12, 34, 56});
  }
  static HostTierOptions fourSlots() {
    HostTierOptions options;
    options.numSlots = 4;
    return options;
  }
  std::string read(const std::vector<uint8_t> &contents) {
    return restore(*tier, hosts[1], {contents}).toString();
  }
  /// Whether host slot 1 is empty.
  bool isEmpty() {
    return !tier->load(&hosts[1], &slots[1], 1, nullptr).isOk();
  }

  std::shared_ptr<StatePool> pool;
  std::unique_ptr<HostTier> tier;
  Ids slots, hosts;
  std::vector<uint8_t> bytes, file;
};

constexpr size_t kHeader = 16 + 19 * 8 + 8;

/// The hash of a header, put right.
void fixHeader(std::vector<uint8_t> &file);

} // namespace

#include "gdnrt/image_trailer.h"

namespace {

void fixHeader(std::vector<uint8_t> &file) {
  const uint64_t hash = imageHash(file.data(), kHeader - 8);
  std::memcpy(file.data() + kHeader - 8, &hash, 8);
}

} // namespace

TEST(StateFile, ComesBack) {
  Saved saved;
  EXPECT_EQ(saved.file.size(), kHeader + saved.bytes.size() + 8);
  StateTags found;
  ASSERT_EQ(restore(*saved.tier, saved.hosts[1], {saved.file}, nullptr, &found)
                .toString(),
            "OK");
  EXPECT_TRUE(found == (StateTags{12, 34, 56}));
  ASSERT_TRUE(
      saved.tier->load(&saved.hosts[1], &saved.slots[1], 1, nullptr).isOk());
  EXPECT_EQ(bytesOf(*saved.pool, saved.slots[1]), saved.bytes);
  // Slots and layouts of memory may differ.
  StatePoolShape other = smallShape();
  other.numRequests = 9;
  other.convLayout = ConvLayout::sd;
  auto pool = sharedPool(other);
  auto tier = makeTier(pool);
  const Ids host = takeHost(*tier, 1), slot = take(*pool, 1);
  ASSERT_EQ(restore(*tier, host[0], {saved.file}).toString(), "OK");
  ASSERT_TRUE(tier->load(host.data(), slot.data(), 1, nullptr).isOk());
  EXPECT_EQ(bytesOf(*pool, slot[0]), saved.bytes);
  EXPECT_EQ(save(*tier, host[0], {12, 34, 56}), saved.file);
}

TEST(StateFile, Tags) {
  Saved saved;
  const StateTags right = {12, 34, 56};
  EXPECT_TRUE(
      restore(*saved.tier, saved.hosts[1], {saved.file}, &right).isOk());
  auto message = [&](const StateTags &tags) {
    return restore(*saved.tier, saved.hosts[1], {saved.file}, &tags).toString();
  };
  EXPECT_EQ(message({13, 34, 56}),
            "INVALID_ARGUMENT: state file: num_tokens: expected 13, got 12");
  EXPECT_EQ(message({12, 35, 56}),
            "INVALID_ARGUMENT: state file: name_space: expected 35, got 34");
  EXPECT_EQ(message({12, 34, 57}),
            "INVALID_ARGUMENT: state file: token_hash: expected 57, got 56");
  EXPECT_TRUE(saved.isEmpty());
}

TEST(StateFile, OtherModels) {
  Saved saved;
  auto message = [&](auto &&change) {
    StatePoolShape shape = smallShape();
    HostTierOptions options = Saved::fourSlots();
    change(shape, options);
    Saved other(shape, options);
    const std::string found = other.read(saved.file);
    EXPECT_TRUE(other.isEmpty());
    return found;
  };
  using Shape = StatePoolShape;
  using Options = HostTierOptions;
  const std::string prefix = "INVALID_ARGUMENT: state file: ";
  EXPECT_EQ(message([](Shape &s, Options &) { s.numLayers = 4; }),
            prefix + "num_layers: expected 4, got 3");
  EXPECT_EQ(message([](Shape &s, Options &) { s.valueHeads = 4; }),
            prefix + "num_value_heads: expected 4, got 2");
  EXPECT_EQ(message([](Shape &s, Options &) { s.keyHeads = 2; }),
            prefix + "num_key_heads: expected 2, got 1");
  EXPECT_EQ(message([](Shape &s, Options &) { s.keyDim = 8; }),
            prefix + "key_dim: expected 8, got 3");
  EXPECT_EQ(message([](Shape &s, Options &) { s.valueDim = 8; }),
            prefix + "value_dim: expected 8, got 5");
  EXPECT_EQ(message([](Shape &s, Options &) { s.convWidth = 3; }),
            prefix + "conv_width: expected 3, got 4");
  EXPECT_EQ(message([](Shape &s, Options &) { s.convExtra = 1; }),
            prefix + "conv_extra: expected 1, got 0");
  EXPECT_EQ(message([](Shape &s, Options &) { s.stateDType = DType::f16; }),
            prefix + "state format: expected f16, got f32");
  EXPECT_EQ(message([](Shape &, Options &o) { o.format = StateFormat::i8x2; }),
            prefix + "state format: expected i8x2, got f32");
  EXPECT_EQ(message([](Shape &s, Options &) { s.convDType = DType::f32; }),
            prefix + "conv_dtype: expected f32, got bf16");
  EXPECT_EQ(message([](Shape &s, Options &) {
              s.pendingTokens = 2;
              s.deferredWrites = true;
            }),
            prefix + "pending_tokens: expected 2, got 0");
}

// A pool in planes and a tier that rounds to them have the same files.
TEST(StateFile, PlanesOfPoolsAndOfTiers) {
  StatePoolShape planes = smallShape();
  planes.statePlanes = 2;
  Saved of(planes);
  HostTierOptions options = Saved::fourSlots();
  options.format = StateFormat::i8x2;
  Saved narrowed(smallShape(), options);
  EXPECT_EQ(narrowed.read(of.file), "OK");
  EXPECT_EQ(save(*narrowed.tier, narrowed.hosts[1], {12, 34, 56}), of.file);
  EXPECT_EQ(of.read(narrowed.file), "OK");
}

TEST(StateFile, CutOffAtEveryByte) {
  Saved saved;
  for (size_t size = 0; size < saved.file.size(); ++size) {
    const std::vector<uint8_t> cut(saved.file.begin(),
                                   saved.file.begin() + size);
    const Status status = restore(*saved.tier, saved.hosts[1], {cut});
    ASSERT_EQ(status.code(), StatusCode::corrupt) << size;
    ASSERT_NE(status.message().find("truncated: expected"), std::string::npos);
    ASSERT_TRUE(saved.isEmpty());
  }
}

TEST(StateFile, EveryBitThatFlips) {
  Saved saved;
  for (size_t bit = 0; bit < saved.file.size() * 8; bit += 1 + bit % 3) {
    std::vector<uint8_t> changed = saved.file;
    changed[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    const Status status = restore(*saved.tier, saved.hosts[1], {changed});
    ASSERT_TRUE(status.code() == StatusCode::corrupt ||
                status.code() == StatusCode::unsupported)
        << bit << ": " << status.toString();
    ASSERT_TRUE(saved.isEmpty());
  }
}

// Headers whose hash is right, with numbers that are not: the largest, ones
// around powers of two, and random ones.
TEST(StateFile, HostileHeaders) {
  Saved saved;
  std::mt19937_64 random(3);
  int accepted = 0;
  for (int turn = 0; turn < 20000; ++turn) {
    std::vector<uint8_t> changed = saved.file;
    for (uint64_t some = 1 + random() % 3; some > 0; --some) {
      const size_t field = random() % 19;
      uint64_t value = random();
      switch (random() % 4) {
      case 0:
        value = ~uint64_t{0};
        break;
      case 1:
        value = (uint64_t{1} << random() % 64) + random() % 3 - 1;
        break;
      case 2:
        value %= 9;
        break;
      default:
        break;
      }
      std::memcpy(changed.data() + 16 + 8 * field, &value, 8);
    }
    fixHeader(changed);
    if (turn % 5 == 0)
      changed.resize(kHeader + random() % (changed.size() - kHeader));
    const Status status = restore(*saved.tier, saved.hosts[1], {changed});
    ASSERT_FALSE(status.isOk() && changed != saved.file);
    accepted += status.isOk();
    if (!status.isOk())
      ASSERT_TRUE(saved.isEmpty());
  }
  EXPECT_LT(accepted, 20000);
}

TEST(StateFile, RandomBytes) {
  Saved saved;
  std::mt19937_64 random(4);
  for (int turn = 0; turn < 2000; ++turn) {
    std::vector<uint8_t> changed = saved.file;
    for (uint64_t some = 1 + random() % 20; some > 0; --some)
      changed[random() % changed.size()] = static_cast<uint8_t>(random());
    if (random() % 4 == 0)
      changed.resize(random() % changed.size());
    if (changed == saved.file)
      continue;
    ASSERT_FALSE(restore(*saved.tier, saved.hosts[1], {changed}).isOk());
    ASSERT_TRUE(saved.isEmpty());
  }
}

TEST(StateFile, MoreThanOneInAStream) {
  Saved saved;
  std::vector<uint8_t> both = saved.file;
  both.insert(both.end(), saved.file.begin(), saved.file.end());
  MemoryReader reader(both);
  ByteReader *part = &reader;
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(
        saved.tier->read(saved.hosts[1], &part, 1, nullptr, nullptr).toString(),
        "OK");
  EXPECT_EQ(
      saved.tier->read(saved.hosts[1], &part, 1, nullptr, nullptr).toString(),
      "CORRUPT: state file: truncated: expected 176 bytes of a header, got 0");
}

TEST(StateFile, OnDisk) {
  Saved saved;
  const auto folder = std::filesystem::temp_directory_path() /
                      ("gdn-state-file-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  const std::string path = (folder / "state").string();
  {
    FileWriter writer(path);
    ASSERT_TRUE(writer.open().isOk());
    ASSERT_TRUE(writer.write("abc", 3).isOk());
    // Whoever fails midway leaves nothing.
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  {
    // Two at once have their own bytes; the last one to finish has the name.
    FileWriter first(path), second(path);
    ASSERT_TRUE(first.open().isOk());
    ASSERT_TRUE(second.open().isOk());
    for (auto [writer, text] :
         {std::pair(&first, "first"), {&second, "other"}, {&first, "first"}})
      ASSERT_TRUE(writer->write(text, 5).isOk());
    char found[11] = {};
    for (auto [writer, want] :
         {std::pair(&second, "other"), {&first, "firstfirst"}}) {
      ASSERT_TRUE(writer->finish().isOk());
      FileReader reader(path);
      ASSERT_TRUE(reader.open().isOk());
      auto got = reader.read(found, 10);
      ASSERT_TRUE(got.isOk());
      EXPECT_EQ(std::string(found, *got), want);
    }
  }
  std::filesystem::remove(path);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  FileWriter writer(path);
  ASSERT_TRUE(writer.open().isOk());
  ASSERT_TRUE(saved.tier->write(saved.hosts[0], {}, writer).isOk());
  EXPECT_FALSE(std::filesystem::exists(path));
  ASSERT_TRUE(writer.finish().isOk());
  FileReader reader(path);
  ASSERT_TRUE(reader.open().isOk());
  ByteReader *part = &reader;
  EXPECT_EQ(
      saved.tier->read(saved.hosts[1], &part, 1, nullptr, nullptr).toString(),
      "OK");
  EXPECT_FALSE(saved.isEmpty());
  std::filesystem::remove_all(folder);
  FileReader gone(path);
  EXPECT_EQ(gone.open().code(), StatusCode::ioError);
  FileWriter nowhere(path);
  EXPECT_EQ(nowhere.open().code(), StatusCode::ioError);
}

// A file that took the place of /dev/full would be written by all that comes.
TEST(StateFile, DevicesStayDevices) {
  const auto folder = std::filesystem::temp_directory_path() /
                      ("gdn-state-device-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  // A link, so that no device is lost where this fails.
  const auto path = folder / "state";
  for (const char *device : {"/dev/null", "/dev/full"}) {
    std::filesystem::create_symlink(device, path);
    FileWriter writer(path.string());
    ASSERT_TRUE(writer.open().isOk());
    EXPECT_TRUE(writer.write("abc", 3).isOk());
    const bool isFull = device == std::string("/dev/full");
    EXPECT_EQ(writer.finish().code(),
              isFull ? StatusCode::ioError : StatusCode::ok);
    EXPECT_TRUE(std::filesystem::is_symlink(path));
    EXPECT_TRUE(std::filesystem::is_character_file(path));
    std::filesystem::remove(path);
    EXPECT_TRUE(std::filesystem::is_empty(folder));
  }
  FileWriter writer(folder.string());
  EXPECT_EQ(writer.open().code(), StatusCode::ioError);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove(folder);
}
