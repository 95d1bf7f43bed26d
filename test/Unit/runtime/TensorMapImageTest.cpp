// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Boxes of kernels in an image: what the reader gives of them, and every defect
// with its whole message.

#include "gdnrt/image.h"
#include "image_builder.h"

#include <gtest/gtest.h>

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

/// A kernel with a box of x and one of a region.
ImageBuilder boxImage() {
  ImageBuilder builder;
  EntryBuilder entry = builder.entry("copy");
  entry.tensor("x", fb::Access::read, fb::DType::bf16, {"T", "H", "128"})
      .tensor("scale", fb::Access::read, fb::DType::f32, {"T", "64"})
      .tensor("row", fb::Access::read, fb::DType::f16, {"128"})
      .tensor("wide", fb::Access::read, fb::DType::bf16, {"T", "128*H"})
      .tensor("odd", fb::Access::read, fb::DType::bf16, {"T", "96"})
      .tensor("huge", fb::Access::read, fb::DType::bf16, {"T", "320"})
      .tensor("counts", fb::Access::read, fb::DType::i32, {"T", "64"});
  entry.code("copy_kernel", {"T"}, 0, {}, "sm_90a").workspace({"T", "256"});
  fb::CodeT &code = *builder.image.entries[0]->codes[0];
  code.format = fb::CodeFormat::cubin;
  fb::StageT &stage = *code.variants[0]->stages[0];
  stage.launch = std::make_unique<fb::LaunchT>();
  stage.launch->threads = 128;
  auto box = std::make_unique<fb::TensorMapT>();
  box->param = 0;
  box->rows = 64;
  stage.launch->tensor_maps.push_back(std::move(box));
  box = std::make_unique<fb::TensorMapT>();
  box->region = 0;
  for (const char *size : {"2", "T", "64"})
    box->sizes.push_back(std::make_unique<fb::LinearFormT>(entry.form(size)));
  box->rows_dim = 1;
  box->rows = 16;
  box->pieces = 1;
  stage.launch->tensor_maps.push_back(std::move(box));
  builder.blob({1, 2, 3});
  return builder;
}

using Boxes = std::vector<std::unique_ptr<fb::TensorMapT>>;

/// Loads the image after `change` was made to its boxes.
template <typename Change> std::string loadChanged(Change change) {
  ImageBuilder builder = boxImage();
  change(builder.image.entries[0]
             ->codes[0]
             ->variants[0]
             ->stages[0]
             ->launch->tensor_maps);
  Bytes bytes = builder.build();
  std::string text =
      Image::loadMemory(bytes.data(), bytes.size()).status().toString();
  const std::string where =
      "CORRUPT: image: entry copy: code 0 variant 0 stage 0 ";
  return text.rfind(where, 0) == 0 ? text.substr(where.size()) : text;
}

} // namespace

TEST(BoxImage, Boxes) {
  Bytes bytes = boxImage().build();
  auto image = Image::loadMemory(bytes.data(), bytes.size());
  ASSERT_TRUE(image.isOk()) << image.status().toString();
  const CodeSchema &code = (*image)->entries()[0]->codes[0];
  EXPECT_TRUE(code.hasTensorMaps());
  const std::vector<TensorMapSchema> &boxes =
      code.variants[0].stages[0].launch->tensorMaps;
  ASSERT_EQ(boxes.size(), 2u);
  EXPECT_EQ(boxes[0].param, 0u);
  EXPECT_EQ(boxes[0].region, std::nullopt);
  EXPECT_EQ(boxes[0].rowsDim, 0u);
  EXPECT_EQ(boxes[0].rows, 64u);
  EXPECT_EQ(boxes[0].pieces, 0u);
  EXPECT_EQ(boxes[1].param, std::nullopt);
  EXPECT_EQ(boxes[1].region, 0u);
  ASSERT_EQ(boxes[1].sizes.size(), 3u);
  EXPECT_EQ(boxes[1].sizes[1].toString({"T", "H"}), "T");
  EXPECT_EQ(boxes[1].rowsDim, 1u);
  EXPECT_EQ(boxes[1].rows, 16u);
  EXPECT_EQ(boxes[1].pieces, 1u);
}

TEST(BoxImage, Whose) {
  EXPECT_EQ(loadChanged([](Boxes &boxes) { boxes[0]->region = 0; }),
            "box 0: expected a parameter or a region, got parameter 0 and "
            "region 0");
  EXPECT_EQ(loadChanged([](Boxes &boxes) { boxes[0]->param = -1; }),
            "box 0: expected a parameter or a region, got parameter -1 and "
            "region -1");
  EXPECT_EQ(loadChanged([](Boxes &boxes) { boxes[0]->param = 7; }),
            "box 0: parameter index 7 is past the 7 parameters");
  EXPECT_EQ(loadChanged([](Boxes &boxes) { boxes[1]->region = 1; }),
            "box 1: region index 1 is past the 1 regions");
  EXPECT_EQ(loadChanged([](Boxes &boxes) {
              boxes[0]->sizes.push_back(std::make_unique<fb::LinearFormT>());
            }),
            "box 0: expected no sizes of the parameter x, got 1");
  EXPECT_EQ(loadChanged([](Boxes &boxes) { boxes[0]->param = 6; }),
            "box 0: expected counts to have elements of 16 bits or f32, got "
            "i32");
  // An f32 is two pieces of 16 bits.
  EXPECT_EQ(loadChanged([](Boxes &boxes) {
              boxes[0]->param = 1;
              boxes[0]->pieces = 2;
            }),
            "OK");
}

TEST(BoxImage, Shapes) {
  EXPECT_EQ(loadChanged([](Boxes &boxes) { boxes[0]->param = 2; }),
            "box 0: expected rank 2 to 4, got 1");
  EXPECT_EQ(loadChanged([](Boxes &boxes) { boxes[1]->sizes.clear(); }),
            "box 1: expected rank 2 to 4, got 0");
  EXPECT_EQ(loadChanged([](Boxes &boxes) { boxes[0]->param = 3; }),
            "box 0: expected a multiple of 64 columns, at most 256, got "
            "128*H");
  EXPECT_EQ(loadChanged([](Boxes &boxes) { boxes[0]->param = 4; }),
            "box 0: expected a multiple of 64 columns, at most 256, got 96");
  EXPECT_EQ(loadChanged([](Boxes &boxes) { boxes[0]->param = 5; }),
            "box 0: expected a multiple of 64 columns, at most 256, got 320");
  EXPECT_EQ(loadChanged([](Boxes &boxes) { boxes[1]->sizes[2]->constant = 0; }),
            "box 1: expected a multiple of 64 columns, at most 256, got 0");
  EXPECT_EQ(
      loadChanged([](Boxes &boxes) { boxes[1]->sizes[1]->symbols = {7}; }),
      "box 1 sizes 1: symbol index 7 is past the 2 symbols");
  EXPECT_EQ(loadChanged([](Boxes &boxes) { boxes[0]->rows_dim = 2; }),
            "box 0: expected the dimension of rows to be less than 2, got 2");
  EXPECT_EQ(loadChanged([](Boxes &boxes) { boxes[0]->rows = 0; }),
            "box 0: expected 1 to 256 rows, got 0");
  EXPECT_EQ(loadChanged([](Boxes &boxes) { boxes[0]->rows = 257; }),
            "box 0: expected 1 to 256 rows, got 257");
  EXPECT_EQ(loadChanged([](Boxes &boxes) { boxes[0]->pieces = 2; }), "OK");
  EXPECT_EQ(loadChanged([](Boxes &boxes) { boxes[0]->pieces = 3; }),
            "box 0: expected at most 2 pieces of 64 columns, got 3");
  EXPECT_EQ(loadChanged([](Boxes &boxes) {
              while (boxes.size() < 17)
                boxes.push_back(std::make_unique<fb::TensorMapT>(*boxes[0]));
            }),
            "CORRUPT: image: entry copy: expected at most 16 boxes in code 0 "
            "variant 0 stage 0, got 17");
}
