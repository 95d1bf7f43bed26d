// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The reader: sound images, every defect with its whole message, images cut
// off at every length and with every bit flipped.

#include "gdnrt/image.h"
#include "gdnrt/image_trailer.h"
#include "test_image.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

/// An image with one of everything, small enough to try every bit.
ImageBuilder smallImage() {
  ImageBuilder builder;
  addAccumulate(builder.entry("accumulate_f32"));
  builder.entry("other").code("other", {"2*N", "3"}, 64, {"avx2", "fma"});
  builder.image.entries.back()->symbols = {"N"};
  builder.blob({1, 2, 3, 4, 5});
  return builder;
}

std::string load(const Bytes &bytes) {
  return Image::loadMemory(bytes.data(), bytes.size()).status().toString();
}

/// Loads the small image after `change` was made to it.
template <typename Change> std::string loadChanged(Change change) {
  ImageBuilder builder = smallImage();
  change(builder.image);
  return load(builder.build());
}

} // namespace

TEST(Image, SoundImage) {
  Bytes bytes = smallImage().build();
  auto image = Image::loadMemory(bytes.data(), bytes.size());
  ASSERT_TRUE(image.isOk()) << image.status().toString();
  EXPECT_EQ((*image)->producer(), "gdn test");
  ASSERT_EQ((*image)->entries().size(), 2u);
  const EntrySchema &entry = *(*image)->entries()[0];
  EXPECT_EQ(entry.name, "accumulate_f32");
  EXPECT_EQ(entry.symbols, (std::vector<std::string>{"N", "D", "P"}));
  ASSERT_EQ(entry.params.size(), 5u);
  EXPECT_EQ(entry.params[3].kind, ParamKind::pool);
  EXPECT_EQ(entry.params[3].dimTexts, (std::vector<std::string>{"P", "D"}));
  EXPECT_TRUE(entry.params[4].unitStrideLast);
  EXPECT_EQ(entry.numWords(), 5u + 3 + 3 + 6 + 5 + 3);
  ASSERT_EQ((*image)->blobs().size(), 1u);
  EXPECT_EQ((*image)->blobs()[0].size, 5u);
}

TEST(Image, MemoryNeedNotBeAligned) {
  Bytes bytes = smallImage().build();
  for (size_t shift : {0, 1, 4, 8, 16}) {
    AlignedBytes memory = allocateAligned(bytes.size() + shift);
    std::memcpy(memory.get() + shift, bytes.data(), bytes.size());
    auto image = Image::loadMemory(memory.get() + shift, bytes.size());
    ASSERT_TRUE(image.isOk()) << image.status().toString();
    // Aligned memory is used in place, other memory is not needed any more.
    const uint8_t *blob = (*image)->blobs()[0].data;
    bool inPlace = blob >= memory.get() && blob < memory.get() + bytes.size();
    EXPECT_EQ(inPlace, shift == 0);
  }
}

TEST(Image, EveryTruncationIsCorrupt) {
  Bytes whole = smallImage().build();
  for (size_t size = 0; size < whole.size(); ++size) {
    // A vector of exactly this size, so that a sanitizer sees every overrun.
    Bytes part(whole.begin(), whole.begin() + static_cast<long>(size));
    auto image = Image::loadMemory(part.data(), part.size());
    ASSERT_EQ(image.status().code(), StatusCode::corrupt) << size;
  }
}

TEST(Image, EveryBitFlipIsCorrupt) {
  Bytes bytes = smallImage().build();
  for (size_t byte = 0; byte < bytes.size(); ++byte)
    for (int bit = 0; bit < 8; ++bit) {
      bytes[byte] ^= 1 << bit;
      auto image = Image::loadMemory(bytes.data(), bytes.size());
      ASSERT_EQ(image.status().code(), StatusCode::corrupt) << byte;
      bytes[byte] ^= 1 << bit;
    }
}

TEST(Image, BitFlipsUnderASoundHashDoNotCrash) {
  // What a broken writer makes: the reader must say no or give sound contents.
  Bytes whole = smallImage().build();
  int refused = 0;
  for (size_t byte = 0; byte < whole.size() - kTrailerSize; ++byte)
    for (int bit = 0; bit < 8; ++bit) {
      Bytes bytes = whole;
      bytes[byte] ^= 1 << bit;
      fixTrailer(bytes);
      auto image = Image::loadMemory(bytes.data(), bytes.size());
      refused += !image.isOk();
    }
  EXPECT_GT(refused, 100);
}

TEST(Image, SizeTrailerHashIdentifierManifest) {
  Bytes whole = smallImage().build();
  EXPECT_EQ(load(Bytes(23)),
            "CORRUPT: image: expected at least 24 bytes, got 23");
  EXPECT_EQ(load(Bytes(24)), "CORRUPT: image: the trailer is missing; the file "
                             "is cut off or no image");
  Bytes bytes = whole;
  bytes[100] ^= 1;
  EXPECT_EQ(load(bytes),
            "CORRUPT: image: the checksum does not match the contents");
  bytes = whole;
  bytes[4] = 'X';
  fixTrailer(bytes);
  EXPECT_EQ(load(bytes), "CORRUPT: image: expected the identifier GDNK");
  bytes = whole;
  bytes[0] = 0xff;
  bytes[1] = 0xff;
  fixTrailer(bytes);
  EXPECT_EQ(load(bytes), "CORRUPT: image: the manifest is malformed");
}

TEST(Image, FormatVersion) {
  EXPECT_EQ(loadChanged([](fb::ImageT &image) { image.format_version = 1; }),
            "UNSUPPORTED: image: expected format version 7, got 1, as written "
            "by gdn test");
}

TEST(Image, Blobs) {
  EXPECT_EQ(loadChanged([](fb::ImageT &image) { image.blobs[0]->xxh3 ^= 1; }),
            "CORRUPT: image: blob 0: the checksum does not match its data");
  EXPECT_EQ(loadChanged([](fb::ImageT &image) {
              image.entries[0]->codes[0]->blob = 1;
            }),
            "CORRUPT: image: entry accumulate_f32: code 0: blob index 1 is "
            "past the 1 blobs");
  // A writer that forgets force_align.
  flatbuffers::FlatBufferBuilder builder;
  Bytes code(90, 7);
  auto data = builder.CreateVector(code);
  auto pad = builder.CreateString("shifts the blob to some place that is no "
                                  "multiple of 64");
  std::vector<flatbuffers::Offset<fb::Blob>> blobs = {
      fb::CreateBlob(builder, data, imageHash(code.data(), code.size()))};
  auto blobVector = builder.CreateVector(blobs);
  fb::FinishImageBuffer(
      builder, fb::CreateImage(builder, kFormatVersion, pad, 0, blobVector));
  Bytes bytes(builder.GetBufferPointer(),
              builder.GetBufferPointer() + builder.GetSize());
  appendTrailer(bytes);
  EXPECT_EQ(load(bytes), "CORRUPT: image: blob 0: expected its data at a "
                         "multiple of 64 bytes, got an offset 12 bytes past "
                         "one");
}

TEST(Image, Names) {
  EXPECT_EQ(loadChanged([](fb::ImageT &i) { i.entries[0]->name = ""; }),
            "CORRUPT: image: an entry has an empty name");
  EXPECT_EQ(loadChanged([](fb::ImageT &i) { i.entries[0]->name = "other"; }),
            "CORRUPT: image: two entries are named other");
  EXPECT_EQ(
      loadChanged([](fb::ImageT &i) { i.entries[0]->params[0]->name = ""; }),
      "CORRUPT: image: entry accumulate_f32: a parameter has an empty name");
  EXPECT_EQ(
      loadChanged([](fb::ImageT &i) { i.entries[0]->params[0]->name = "out"; }),
      "CORRUPT: image: entry accumulate_f32: two parameters are named out");
  EXPECT_EQ(loadChanged([](fb::ImageT &i) { i.entries[0]->symbols[0] = ""; }),
            "CORRUPT: image: entry accumulate_f32: a symbol has an empty name");
  EXPECT_EQ(loadChanged([](fb::ImageT &i) { i.entries[0]->symbols[0] = "D"; }),
            "CORRUPT: image: entry accumulate_f32: two symbols are named D");
}

TEST(Image, TokensOfARow) {
  auto with = [](const std::string &value) {
    ImageBuilder builder = smallImage();
    auto pair = std::make_unique<fb::KeyValueT>();
    pair->key = "gdn.max_tokens";
    pair->value = value;
    builder.image.entries[0]->attributes.push_back(std::move(pair));
    Bytes bytes = builder.build();
    return Image::loadMemory(bytes.data(), bytes.size());
  };
  auto image = with("8");
  ASSERT_TRUE(image.isOk()) << image.status().toString();
  EXPECT_EQ((*image)->entries()[0]->maxRowTokens, 8);
  for (std::string value : {"", "0", "-1", "8 tokens", "9223372036854775808"})
    EXPECT_EQ(with(value).status().toString(),
              "CORRUPT: image: entry accumulate_f32: gdn.max_tokens: expected "
              "a positive number, got '" +
                  value + "'");
}

TEST(Image, Enums) {
  EXPECT_EQ(loadChanged([](fb::ImageT &i) {
              i.entries[0]->params[0]->dtype = static_cast<fb::DType>(8);
            }),
            "CORRUPT: image: entry accumulate_f32: x: expected dtype to be at "
            "most 7, got 8");
  EXPECT_EQ(loadChanged([](fb::ImageT &i) {
              i.entries[0]->params[0]->kind = static_cast<fb::ParamKind>(2);
            }),
            "CORRUPT: image: entry accumulate_f32: x: expected kind to be at "
            "most 1, got 2");
  EXPECT_EQ(loadChanged([](fb::ImageT &i) {
              i.entries[0]->params[0]->access = static_cast<fb::Access>(3);
            }),
            "CORRUPT: image: entry accumulate_f32: x: expected access to be at "
            "most 2, got 3");
}

TEST(Image, LinearForms) {
  auto withForm = [](std::vector<uint16_t> symbols,
                     std::vector<int64_t> coefficients) {
    return loadChanged([&](fb::ImageT &i) {
      i.entries[0]->params[0]->dims[1]->symbols = symbols;
      i.entries[0]->params[0]->dims[1]->coefficients = coefficients;
    });
  };
  EXPECT_EQ(withForm({0, 1}, {1}),
            "CORRUPT: image: entry accumulate_f32: x dim 1: expected as many "
            "coefficients as symbols (2), got 1");
  EXPECT_EQ(withForm({3}, {1}), "CORRUPT: image: entry accumulate_f32: x dim "
                                "1: symbol index 3 is past the 3 symbols");
  EXPECT_EQ(withForm({1, 1}, {1, 2}), "CORRUPT: image: entry accumulate_f32: x "
                                      "dim 1: symbol D appears twice");
  EXPECT_EQ(withForm({1}, {0}), "CORRUPT: image: entry accumulate_f32: x dim "
                                "1: the coefficient of D is 0");
  auto withDivisors = [](std::vector<uint32_t> divisors) {
    return loadChanged([&](fb::ImageT &i) {
      auto &stage = i.entries[1]->codes[0]->variants[0]->stages[0];
      stage->grid[0]->symbols = {0, 0};
      stage->grid[0]->coefficients = {1, 1};
      stage->grid[0]->divisors = divisors;
    });
  };
  EXPECT_EQ(withDivisors({1, 64}), "OK");
  EXPECT_EQ(withDivisors({64}),
            "CORRUPT: image: entry other: code 0 variant 0 stage 0 grid 0: "
            "expected a divisor for each of 2 symbols or none, got 1");
  EXPECT_EQ(withDivisors({1, 0}),
            "CORRUPT: image: entry other: code 0 variant 0 stage 0 grid 0: the "
            "divisor of N is 0");
  EXPECT_EQ(withDivisors({64, 64}),
            "CORRUPT: image: entry other: code 0 variant 0 stage 0 grid 0: "
            "symbol N appears twice");
  EXPECT_EQ(loadChanged([](fb::ImageT &i) {
              i.entries[0]->params[0]->dims[0]->divisors = {64};
            }),
            "CORRUPT: image: entry accumulate_f32: x dim 0: expected no "
            "divisors, got 64");
  EXPECT_EQ(loadChanged([](fb::ImageT &i) {
              auto &stage = i.entries[1]->codes[0]->variants[0]->stages[0];
              stage->grid[1]->symbols = {1};
              stage->grid[1]->coefficients = {1};
            }),
            "CORRUPT: image: entry other: code 0 variant 0 stage 0 grid 1: "
            "symbol index 1 is past the 1 symbols");
}

TEST(Image, CoefficientsMustBeAligned) {
  // Vectors of 4-byte elements, passed off as vectors of 8-byte ones, come out
  // misaligned for some lengths of what stands behind them.
  int misaligned = 0;
  for (size_t shift = 0; shift < 8; ++shift) {
    flatbuffers::FlatBufferBuilder builder;
    auto producer = builder.CreateString(std::string(shift, 'p'));
    builder.StartVector(2, 4);
    builder.PushElement<uint32_t>(0);
    builder.PushElement<uint32_t>(1);
    flatbuffers::Offset<flatbuffers::Vector<int64_t>> coefficients(
        builder.EndVector(1));
    auto symbols = builder.CreateVector(std::vector<uint16_t>{0});
    auto form = fb::CreateLinearForm(builder, 1, symbols, coefficients);
    auto dims = builder.CreateVector(&form, 1);
    auto param = fb::CreateParam(builder, builder.CreateString("x"),
                                 fb::ParamKind::tensor, fb::Access::read,
                                 fb::DType::f32, dims);
    auto params = builder.CreateVector(&param, 1);
    auto name = builder.CreateString("N");
    auto names = builder.CreateVector(&name, 1);
    auto entry =
        fb::CreateEntry(builder, builder.CreateString("f"), names, params);
    auto entries = builder.CreateVector(&entry, 1);
    fb::FinishImageBuffer(
        builder, fb::CreateImage(builder, kFormatVersion, producer, entries));
    Bytes bytes(builder.GetBufferPointer(),
                builder.GetBufferPointer() + builder.GetSize());
    appendTrailer(bytes);
    std::string message = load(bytes);
    if (message == "OK")
      continue;
    EXPECT_EQ(message, "CORRUPT: image: entry f: x dim 0: the coefficients are "
                       "not 8-byte aligned");
    ++misaligned;
  }
  EXPECT_GT(misaligned, 0);
}

TEST(Image, Limits) {
  EXPECT_EQ(loadChanged([](fb::ImageT &i) {
              i.entries[0]->params[0]->dims.resize(9);
              for (auto &dim : i.entries[0]->params[0]->dims)
                dim = std::make_unique<fb::LinearFormT>();
            }),
            "CORRUPT: image: entry accumulate_f32: x: expected rank at most 8, "
            "got 9");
  EXPECT_EQ(loadChanged([](fb::ImageT &i) {
              i.entries[0]->params[3]->unit_stride_dim = 2;
            }),
            "CORRUPT: image: entry accumulate_f32: state_pool: expected stride "
            "1 in one dimension below the rank 2, got 2");
  EXPECT_EQ(loadChanged([](fb::ImageT &i) {
              i.entries[0]->params[4]->unit_stride_dim = 1;
            }),
            "CORRUPT: image: entry accumulate_f32: out: expected stride 1 in "
            "one dimension below the rank 2, got 1 and the last");
  EXPECT_EQ(
      loadChanged([](fb::ImageT &i) { i.entries[0]->params[3]->dims.clear(); }),
      "CORRUPT: image: entry accumulate_f32: state_pool: expected a pool "
      "to have a slot dimension");
  EXPECT_EQ(loadChanged([](fb::ImageT &i) {
              auto &grid = i.entries[1]->codes[0]->variants[0]->stages[0]->grid;
              for (int d = 0; d < 7; ++d)
                grid.push_back(std::make_unique<fb::LinearFormT>());
            }),
            "CORRUPT: image: entry other: expected at most 8 forms in code "
            "0 variant 0 stage 0 grid, got 9");
  EXPECT_EQ(loadChanged([](fb::ImageT &i) {
              for (int p = 0; p < 1025; ++p) {
                auto param = std::make_unique<fb::ParamT>();
                param->name = "p" + std::to_string(p);
                i.entries[1]->params.push_back(std::move(param));
              }
            }),
            "CORRUPT: image: entry other: expected at most 1024 parameters, "
            "got 1025");
  EXPECT_EQ(loadChanged([](fb::ImageT &i) {
              i.entries[1]->symbols.assign(65537, "S");
            }),
            "CORRUPT: image: entry other: expected at most 65536 symbols, got "
            "65537");
}

TEST(Image, FindEntry) {
  ImageBuilder builder;
  for (const char *name : {"decode_bf16_f32", "decode_f16_f32", "prefill_bf16",
                           "prefillx", "verify", "verify_bf16"})
    builder.entry(name);
  Bytes bytes = builder.build();
  auto image = Image::loadMemory(bytes.data(), bytes.size());
  ASSERT_TRUE(image.isOk());
  EXPECT_EQ(*(*image)->findEntry("prefill"), 2u);
  EXPECT_EQ(*(*image)->findEntry("verify"), 4u); // the exact name wins
  EXPECT_EQ(*(*image)->findEntry("decode_f16"), 1u);
  EXPECT_EQ((*image)->findEntry("decode").status().toString(),
            "NOT_FOUND: decode: the name fits several entries: "
            "decode_bf16_f32, decode_f16_f32");
  EXPECT_EQ((*image)->findEntry("norm").status().toString(),
            "NOT_FOUND: norm: the image has no such entry; it has: "
            "decode_bf16_f32, decode_f16_f32, prefill_bf16, prefillx, verify, "
            "verify_bf16");
  Bytes none = ImageBuilder().build();
  image = Image::loadMemory(none.data(), none.size());
  ASSERT_TRUE(image.isOk());
  EXPECT_EQ((*image)->findEntry("x").status().toString(),
            "NOT_FOUND: x: the image has no such entry; it has: none");
}

TEST(Image, Files) {
  std::string path = ::testing::TempDir() + "gdn_image_test.gdnk";
  auto write = [&](const Bytes &bytes) {
    FILE *file = std::fopen(path.c_str(), "wb");
    ASSERT_NE(file, nullptr);
    std::fwrite(bytes.data(), 1, bytes.size(), file);
    std::fclose(file);
  };
  write(smallImage().build());
  EXPECT_TRUE(Image::loadFile(path.c_str()).isOk());
  write({});
  EXPECT_EQ(Image::loadFile(path.c_str()).status().toString(),
            "CORRUPT: " + path + ": image: expected at least 24 bytes, got 0");
  std::remove(path.c_str());
  EXPECT_EQ(Image::loadFile(path.c_str()).status().toString(),
            "IO_ERROR: " + path + ": cannot open: No such file or directory");
  EXPECT_EQ(Image::loadFile("/").status().toString(),
            "IO_ERROR: /: expected a regular file");
}
