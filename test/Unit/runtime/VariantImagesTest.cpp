// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an image may not say of variants.

#include "schemas.h"
#include "test_image.h"

#include <gtest/gtest.h>

using namespace gdnrt;
using namespace gdnrt::test;

TEST(VariantImages, Corrupt) {
  auto load = [](auto change) {
    ImageBuilder builder;
    addNeighbours(builder.entry("e"));
    builder.blob({1});
    change(*builder.image.entries[0]->codes[0]);
    Bytes bytes = builder.build();
    return Image::loadMemory(bytes.data(), bytes.size()).status().toString();
  };
  EXPECT_EQ(load([](fb::CodeT &) {}), "OK");
  EXPECT_EQ(load([](fb::CodeT &code) { code.variants.clear(); }),
            "CORRUPT: image: entry e: code 0: expected at least one variant, "
            "got none");
  EXPECT_EQ(load([](fb::CodeT &code) { code.variants[1]->stages.clear(); }),
            "CORRUPT: image: entry e: code 0 variant 1: expected at least one "
            "stage, got none");
  EXPECT_EQ(load([](fb::CodeT &code) { code.variants[1]->name = "staged"; }),
            "CORRUPT: image: entry e: code 0: two variants are named staged");
  EXPECT_EQ(load([](fb::CodeT &code) { code.variants[1]->name = ""; }),
            "CORRUPT: image: entry e: code 0 variant 1: the name is empty");
  const std::string last = "CORRUPT: image: entry e: code 0: expected its last "
                           "variant, staged, to have no conditions, no "
                           "layouts and no workspace";
  EXPECT_EQ(load([](fb::CodeT &code) { code.variants.pop_back(); }), last);
  EXPECT_EQ(load([](fb::CodeT &code) {
              code.variants.pop_back();
              code.variants[0]->conditions.clear();
            }),
            last);
  EXPECT_EQ(load([](fb::CodeT &code) {
              code.variants.pop_back();
              code.variants[0]->workspace.clear();
            }),
            last);
  // Only conditions know the workers, and dependent launches.
  EXPECT_EQ(load([](fb::CodeT &code) {
              code.variants[0]->workspace[1]->factors[1]->symbols = {1};
            }),
            "CORRUPT: image: entry e: code 0 variant 0 workspace 1 1: symbol "
            "index 1 is past the 1 symbols");
  EXPECT_EQ(load([](fb::CodeT &code) {
              code.variants[0]->conditions[1]->right->factors[0]->symbols = {3};
            }),
            "CORRUPT: image: entry e: code 0 variant 0 condition 1 right 0: "
            "symbol index 3 is past the 3 symbols");
  EXPECT_EQ(load([](fb::CodeT &code) {
              auto &stages = code.variants[0]->stages;
              while (stages.size() < 17)
                stages.push_back(std::make_unique<fb::StageT>(*stages[0]));
            }),
            "CORRUPT: image: entry e: expected at most 16 stages in code 0 "
            "variant 0, got 17");
  EXPECT_EQ(load([](fb::CodeT &code) {
              auto &variants = code.variants;
              while (variants.size() < 25)
                variants.push_back(
                    std::make_unique<fb::VariantT>(*variants[0]));
            }),
            "CORRUPT: image: entry e: expected at most 24 variants in code 0, "
            "got 25");
  auto withAlternatives = [&](size_t count, size_t conditions) {
    return load([&](fb::CodeT &code) {
      fb::VariantT &variant = *code.variants[0];
      for (size_t i = 0; i < count; ++i) {
        variant.alternatives.push_back(std::make_unique<fb::ConjunctionT>());
        for (size_t c = 0; c < conditions; ++c)
          variant.alternatives.back()->conditions.push_back(
              std::make_unique<fb::ConditionT>(*variant.conditions[0]));
      }
    });
  };
  EXPECT_EQ(withAlternatives(2, 16), "OK");
  EXPECT_EQ(withAlternatives(8, 1), "OK");
  EXPECT_EQ(withAlternatives(1, 1),
            "CORRUPT: image: entry e: code 0 variant 0: expected no "
            "alternatives or two at least, got one");
  EXPECT_EQ(withAlternatives(9, 1),
            "CORRUPT: image: entry e: expected at most 8 alternatives in code "
            "0 variant 0, got 9");
  EXPECT_EQ(withAlternatives(2, 0),
            "CORRUPT: image: entry e: code 0 variant 0 alternative 0: expected "
            "at least one condition, got none");
  EXPECT_EQ(withAlternatives(2, 17),
            "CORRUPT: image: entry e: expected at most 16 conditions in code 0 "
            "variant 0 alternative 0, got 17");
  EXPECT_EQ(load([](fb::CodeT &code) {
              // An alternative of the last variant is a condition, too.
              for (int i = 0; i < 2; ++i) {
                code.variants[1]->alternatives.push_back(
                    std::make_unique<fb::ConjunctionT>());
                code.variants[1]->alternatives.back()->conditions.push_back(
                    std::make_unique<fb::ConditionT>(
                        *code.variants[0]->conditions[0]));
              }
            }),
            "CORRUPT: image: entry e: code 0: expected its last variant, rows, "
            "to have no conditions, no layouts and no workspace");
}
