// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The alignment that code may ask of its parameters, which binding checks.

#include "arrays.h"
#include "schemas.h"

#include <gtest/gtest.h>

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

using Change = std::function<void(fb::CodeT &)>;

/// An entry f(x [N, D], out [N, D]) whose only code is for a GPU.
ImageBuilder gpuImage(const Change &change) {
  ImageBuilder builder;
  EntryBuilder entry = builder.entry("f");
  entry.tensor("x", fb::Access::read, fb::DType::f32, {"N", "D"})
      .tensor("out", fb::Access::write, fb::DType::bf16, {"N", "D"})
      .code("f_kernel", {"N"}, 0, {}, "sm_90a");
  builder.blob({1});
  fb::CodeT &code = *builder.image.entries[0]->codes[0];
  code.format = fb::CodeFormat::cubin;
  code.variants[0]->stages[0]->launch = std::make_unique<fb::LaunchT>();
  code.variants[0]->stages[0]->launch->threads = 32;
  change(code);
  return builder;
}

class AlignmentTest : public ::testing::Test {
protected:
  std::string bind(Array x, const std::vector<uint32_t> &alignments) {
    Bytes bytes = gpuImage([&](fb::CodeT &code) {
                    code.alignments = alignments;
                  }).build();
    auto image = Image::loadMemory(bytes.data(), bytes.size());
    EXPECT_TRUE(image.isOk()) << image.status().toString();
    auto entry = (*image)->entries()[0];
    Array out(address(0x100000), DType::bf16, x.sizes);
    std::vector<Array> arrays = {x, out};
    std::vector<Argument> args = toArguments(arrays);
    auto bound = Binding::make(entry, entry->codes[0], args.data(), 2);
    return bound.status().toString();
  }
};

} // namespace

TEST_F(AlignmentTest, DataAndStrides) {
  Array x(address(0x10000), DType::f32, {3, 4});
  EXPECT_EQ(bind(x, {}), "OK");
  EXPECT_EQ(bind(x, {16, 8}), "OK");
  EXPECT_EQ(bind(x, {32, 0}),
            "INVALID_ARGUMENT: x: expected the stride of dim 0 to be a "
            "multiple of 32 bytes, got 16");
  x.data = address(0x10008);
  EXPECT_EQ(bind(x, {8, 0}), "OK");
  EXPECT_EQ(bind(x, {16, 0}),
            "INVALID_ARGUMENT: x: expected data aligned to 16 bytes, got an "
            "address 8 past a multiple");
}

TEST_F(AlignmentTest, StridesThatReachNothingDoNotCount) {
  // A dimension of one element, the last dimension, and an empty array.
  EXPECT_EQ(bind(Array(address(0x10000), DType::f32, {1, 4}, {3, 1}), {16, 0}),
            "OK");
  EXPECT_EQ(bind(Array(address(0x10000), DType::f32, {2, 3}, {8, 2}), {16, 0}),
            "OK");
  EXPECT_EQ(bind(Array(nullptr, DType::f32, {0, 3}, {5, 1}), {16, 0}), "OK");
  // An empty array may have an address, and that says nothing either.
  EXPECT_EQ(bind(Array(address(0x10004), DType::f32, {0, 3}, {5, 1}), {16, 0}),
            "OK");
}
