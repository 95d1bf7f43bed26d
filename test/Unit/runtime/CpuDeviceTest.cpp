// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The CPU device: the choice of code by features, and everything that can be
// wrong with code.

#include "gdnrt/cpu_device.h"
#include "gdnrt/cpu_features.h"
#include "test_image.h"

#include <gtest/gtest.h>

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

/// An image together with its memory.
struct OwnedImage {
  explicit OwnedImage(const ImageBuilder &builder) : bytes(builder.build()) {
    auto loaded = Image::loadMemory(bytes.data(), bytes.size());
    EXPECT_TRUE(loaded.isOk()) << loaded.status().toString();
    image = *loaded;
  }
  Bytes bytes;
  std::shared_ptr<const Image> image;
};

std::string load(const ImageBuilder &builder, size_t *code = nullptr) {
  auto device = createCpuDevice(1);
  EXPECT_TRUE(device.isOk());
  OwnedImage owned(builder);
  auto loaded = (*device)->load(*owned.image, 0);
  if (loaded.isOk() && code)
    *code = (*loaded)->codeIndex();
  return loaded.status().toString();
}

/// An image whose only entry has codes with these features.
ImageBuilder withFeatures(const std::vector<std::vector<std::string>> &codes) {
  ImageBuilder builder;
  EntryBuilder entry = builder.entry("e");
  for (const auto &features : codes)
    entry.code("test_empty", {}, 0, features);
  builder.blob(readFile(GDNRT_TEST_KERNELS));
  return builder;
}

} // namespace

TEST(CpuDevice, Properties) {
  auto device = createCpuDevice(1);
  ASSERT_TRUE(device.isOk());
  EXPECT_EQ((*device)->properties().kind, "cpu");
  EXPECT_EQ((*device)->properties().name, "x86-64 CPU, 1 worker");
  EXPECT_EQ((*device)->properties().numWorkers, 1);
  // More workers than hardware threads are not had.
  int most = (*createCpuDevice(0))->properties().numWorkers;
  EXPECT_GE(most, 1);
  EXPECT_EQ((*createCpuDevice(1024))->properties().numWorkers, most);
}

TEST(CpuDevice, WorkerCount) {
  EXPECT_EQ(createCpuDevice(-1).status().toString(),
            "INVALID_ARGUMENT: num_workers: expected 0 to 1024, got -1");
  EXPECT_EQ(createCpuDevice(1025).status().toString(),
            "INVALID_ARGUMENT: num_workers: expected 0 to 1024, got 1025");
}

TEST(CpuDevice, FirstCodeThatRuns) {
  size_t code = 99;
  EXPECT_EQ(load(withFeatures({{"no-such-feature"}, {"x86-64"}, {}}), &code),
            "OK");
  EXPECT_EQ(code, 1u);
  EXPECT_EQ(load(withFeatures({{}, {"x86-64"}}), &code), "OK");
  EXPECT_EQ(code, 0u);
}

TEST(CpuDevice, MissingFeatures) {
  EXPECT_EQ(load(withFeatures({{"x86-64", "warp-drive"}, {"sse9"}})),
            "UNSUPPORTED: e: the code needs the CPU features [x86-64, "
            "warp-drive] or [sse9], and this CPU has [" +
                joinNames(cpuFeatures()) + "]");
}

TEST(CpuDevice, OtherTargets) {
  ImageBuilder builder;
  builder.entry("e")
      .code("k", {}, 0, {}, "sm_90")
      .code("k", {}, 0, {}, "sm_80");
  builder.blob({1});
  EXPECT_EQ(load(builder), "UNSUPPORTED: e: the image has no code for x86-64; "
                           "it has code for: sm_90, sm_80");
  builder.image.entries[0]->codes.clear();
  EXPECT_EQ(load(builder), "UNSUPPORTED: e: the image has no code for x86-64; "
                           "it has code for: none");
}

TEST(CpuDevice, NotElf) {
  ImageBuilder builder;
  builder.entry("e").code("k", {});
  builder.blob(Bytes(1000, 0));
  EXPECT_EQ(load(builder),
            "CORRUPT: e: the code is not a 64-bit ELF shared object");
  builder.image.blobs.clear();
  builder.blob({0x7f, 'E', 'L', 'F'});
  EXPECT_EQ(load(builder),
            "CORRUPT: e: the code is not a 64-bit ELF shared object");
}

TEST(CpuDevice, LoaderRefuses) {
  // The machine field: the loader's own message follows ours.
  ImageBuilder builder;
  builder.entry("e").code("test_empty", {});
  Bytes code = readFile(GDNRT_TEST_KERNELS);
  code[18] = 0xb7;
  builder.blob(code);
  std::string message = load(builder);
  EXPECT_EQ(message.find("CORRUPT: e: cannot load the code: "), 0u) << message;
}

TEST(CpuDevice, MissingSymbol) {
  ImageBuilder builder;
  builder.entry("e").code("no_such_symbol", {});
  builder.blob(readFile(GDNRT_TEST_KERNELS));
  EXPECT_EQ(load(builder), "CORRUPT: e: the code does not export "
                           "no_such_symbol");
}

TEST(CpuDevice, TooMuchScratch) {
  ImageBuilder builder;
  builder.entry("e").code("test_empty", {}, UINT64_MAX);
  builder.blob(readFile(GDNRT_TEST_KERNELS));
  EXPECT_EQ(load(builder), "OUT_OF_MEMORY: e: no memory for 1 scratch blocks "
                           "of 18446744073709551615 bytes");
}

TEST(CpuDevice, Streams) {
  auto device = createCpuDevice(1);
  ASSERT_TRUE(device.isOk());
  EXPECT_TRUE((*device)->synchronize(nullptr).isOk());
  EXPECT_EQ((*device)->synchronize(&device).toString(),
            "INVALID_ARGUMENT: stream: expected null, as a CPU has one queue");
}

TEST(CpuDevice, ManyImagesLiveTogether) {
  // Each has code of its own; the loader must not mix them up.
  auto device = createCpuDevice(1);
  ASSERT_TRUE(device.isOk());
  std::vector<std::unique_ptr<LoadedCode>> loaded;
  for (int i = 0; i < 20; ++i) {
    OwnedImage owned(testImage());
    for (size_t entry = 0; entry < owned.image->entries().size(); ++entry) {
      auto code = (*device)->load(*owned.image, entry);
      ASSERT_TRUE(code.isOk()) << code.status().toString();
      loaded.push_back(std::move(*code));
    }
    if (i % 3 == 0)
      loaded.clear();
  }
}

TEST(CpuDevice, EveryBlobIsLoaded) {
  // The code of one entry is no code for another one of the same image.
  ImageBuilder builder;
  builder.entry("e").code("test_empty", {});
  builder.blob(readFile(GDNRT_TEST_KERNELS));
  builder.entry("f").code("test_empty", {}, 0, {}, "x86-64", 1);
  builder.blob(Bytes(1000, 0));
  OwnedImage owned(builder);
  auto device = createCpuDevice(1);
  ASSERT_TRUE(device.isOk());
  size_t other = owned.image->entries()[0]->name == "e" ? 1 : 0;
  auto loaded = (*device)->load(*owned.image, 1 - other);
  ASSERT_TRUE(loaded.isOk()) << loaded.status().toString();
  EXPECT_EQ((*device)->load(*owned.image, other).status().toString(),
            "CORRUPT: f: the code is not a 64-bit ELF shared object");
}

#if defined(__x86_64__)
TEST(CpuFeatures, AreThoseThatTheCompilerKnows) {
#define GDNRT_EXPECT(NAME)                                                     \
  EXPECT_EQ(cpuHasFeature(NAME), __builtin_cpu_supports(NAME) != 0) << NAME
  GDNRT_EXPECT("x86-64");
  GDNRT_EXPECT("x86-64-v2");
  GDNRT_EXPECT("x86-64-v3");
  GDNRT_EXPECT("x86-64-v4");
  GDNRT_EXPECT("sse3");
  GDNRT_EXPECT("ssse3");
  GDNRT_EXPECT("sse4.1");
  GDNRT_EXPECT("sse4.2");
  GDNRT_EXPECT("popcnt");
  GDNRT_EXPECT("avx");
  GDNRT_EXPECT("avx2");
  GDNRT_EXPECT("bmi");
  GDNRT_EXPECT("bmi2");
  GDNRT_EXPECT("fma");
  GDNRT_EXPECT("f16c");
  GDNRT_EXPECT("lzcnt");
  GDNRT_EXPECT("movbe");
  GDNRT_EXPECT("avx512f");
  GDNRT_EXPECT("avx512vl");
  GDNRT_EXPECT("avx512bw");
  GDNRT_EXPECT("avx512dq");
  GDNRT_EXPECT("avx512cd");
  GDNRT_EXPECT("avx512vbmi");
  GDNRT_EXPECT("avx512vbmi2");
  GDNRT_EXPECT("avx512ifma");
  GDNRT_EXPECT("avx512vnni");
  GDNRT_EXPECT("avx512bf16");
  GDNRT_EXPECT("avx512fp16");
  GDNRT_EXPECT("avxvnni");
  GDNRT_EXPECT("amx-tile");
  GDNRT_EXPECT("amx-bf16");
  GDNRT_EXPECT("amx-int8");
#undef GDNRT_EXPECT
  EXPECT_FALSE(cpuHasFeature("no"));
}
#endif
