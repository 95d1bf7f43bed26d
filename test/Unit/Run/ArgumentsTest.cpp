// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arguments from a seed and from files, and the sizes they give.
#include "RunTest.h"

#include "gdn/Run/Arguments.h"

#include <cmath>

using namespace gdn;
using namespace gdn::run;

namespace {

class ArgumentsTest : public RunTest {
protected:
  Arrays generate(const Kernel &kernel, llvm::StringRef text) {
    auto options = GenerateOptions::parse(text);
    EXPECT_TRUE(bool(options)) << llvm::toString(options.takeError());
    auto arrays = generateArguments(kernel, *options, 0);
    EXPECT_TRUE(bool(arrays)) << llvm::toString(arrays.takeError());
    return *arrays;
  }
};

std::string errorOf(llvm::StringRef text) {
  auto options = GenerateOptions::parse(text);
  return options ? "no error" : llvm::toString(options.takeError());
}

TEST(GenerateOptionsTest, ReadsEveryKey) {
  auto options = GenerateOptions::parse(
      "seed=7, lens=5:0:17,pad=2,Hk=3,Hv=6,slots=9,skip=1,gates=strong,"
      "scale=0.5,correlation=0.25,checkpoints=64");
  ASSERT_TRUE(bool(options)) << llvm::toString(options.takeError());
  EXPECT_EQ(options->inputs.seed, 7u);
  EXPECT_THAT(options->lengths, testing::ElementsAre(5, 0, 17));
  EXPECT_EQ(options->padding, 2);
  EXPECT_EQ(options->keyHeads, 3);
  EXPECT_EQ(options->valueHeads, 6);
  EXPECT_EQ(options->slots, 9);
  EXPECT_EQ(options->skipped, 1);
  EXPECT_EQ(options->inputs.gates, data::GateKind::strong);
  EXPECT_EQ(options->inputs.scale, 0.5);
  EXPECT_EQ(options->inputs.keyCorrelation, 0.25);
  EXPECT_EQ(options->checkpoints, 64);
  EXPECT_THAT(llvm::cantFail(GenerateOptions::parse("rows=3")).lengths,
              testing::ElementsAre(1, 1, 1));
  EXPECT_THAT(llvm::cantFail(GenerateOptions::parse("lens=")).lengths,
              testing::IsEmpty());
}

TEST(GenerateOptionsTest, SaysWhatIsWrong) {
  EXPECT_EQ(errorOf("lens=5:-1"), "--generate: lens: expects a number from 0 "
                                  "to 16777216, but got '-1'");
  EXPECT_EQ(errorOf("correlation=2"), "--generate: correlation: expects a "
                                      "number from 0 to 1, but got '2'");
  EXPECT_EQ(errorOf("correlation=nan"), "--generate: correlation: expects a "
                                        "number from 0 to 1, but got 'nan'");
  EXPECT_EQ(errorOf("scale=inf"),
            "--generate: scale: expects a finite number, but got 'inf'");
  EXPECT_EQ(errorOf("Hk=0"), "--generate: Hk: expects a number from 1 to "
                             "16777216, but got '0'");
  EXPECT_EQ(errorOf("gates=fast"),
            "--generate: gates: expects realistic, near_one, strong or "
            "very_strong, but got 'fast'");
  EXPECT_THAT(errorOf("heads=3"),
              testing::StartsWith("--generate: unknown key 'heads'; keys: "
                                  "seed=<n>, "));
}

TEST_F(ArgumentsTest, SizesFollowTheSchema) {
  Arrays arrays = generate(*prefill, "lens=5:0:3,pad=1,Hk=1,Hv=2,slots=7");
  EXPECT_EQ(arrays.at("qkvz").typeString(), "f32[9, 80]");
  EXPECT_EQ(arrays.at("conv_pool").typeString(), "f32[7, 48, 3]");
  EXPECT_EQ(arrays.at("cu_seqlens").typeString(), "i32[4]");
  EXPECT_THAT(arrays.at("cu_seqlens").toDoubles(),
              testing::ElementsAre(0, 5, 5, 8));
  EXPECT_FALSE(arrays.count("out"));
  Symbols symbols = solveSymbols(*prefill, arrays);
  EXPECT_EQ(symbols,
            (Symbols{{"T", 9}, {"N", 3}, {"P", 7}, {"Hk", 1}, {"Hv", 2}}));
}

TEST_F(ArgumentsTest, DecodeHasOneTokenPerRow) {
  Arrays arrays = generate(*decode, "lens=5:0:3,Hk=1,Hv=2");
  EXPECT_EQ(arrays.at("qkvz").typeString(), "f32[3, 80]");
}

TEST_F(ArgumentsTest, UnusedSlotsHoldNaN) {
  Arrays arrays = generate(*decode, "rows=2,Hk=1,Hv=2,slots=4");
  std::vector<double> slots = arrays.at("slots").toDoubles();
  std::vector<double> pool = arrays.at("state_pool").toDoubles();
  size_t size = pool.size() / 4;
  for (int slot = 0; slot < 4; ++slot)
    EXPECT_EQ(std::isnan(pool[slot * size]),
              !llvm::is_contained(slots, double(slot)));
}

TEST_F(ArgumentsTest, SkippedRowsHaveEachKindOfId) {
  Arrays arrays = generate(*decode, "rows=4,skip=3,slots=9,Hk=1,Hv=2");
  std::vector<double> slots = arrays.at("slots").toDoubles();
  EXPECT_THAT(llvm::ArrayRef(slots).drop_front(),
              testing::ElementsAre(9, 0, -1));
}

TEST_F(ArgumentsTest, ContradictionsAreErrors) {
  auto errorFor = [&](llvm::StringRef text) {
    auto arrays = generateArguments(
        *decode, llvm::cantFail(GenerateOptions::parse(text)), 0);
    return arrays ? "no error" : llvm::toString(arrays.takeError());
  };
  EXPECT_EQ(
      errorFor("rows=4,slots=4"),
      "--generate: slots: expects a slot for each of 4 sequences beside the "
      "null slot, but got 4");
  EXPECT_EQ(errorFor("Hk=2,Hv=3"), "--generate: expects Hv to be a multiple of "
                                   "Hk, but got Hv=3 and Hk=2");
}

TEST_F(ArgumentsTest, FilesHaveToFit) {
  data::Tensors tensors;
  tensors.origin = "in.safetensors";
  Arrays arrays;
  llvm::Error missing =
      takeArguments(*decode, tensors, /*required=*/true, false, arrays);
  EXPECT_THAT(llvm::toString(std::move(missing)),
              testing::AllOf(testing::HasSubstr("in.safetensors"),
                             testing::HasSubstr("qkvz")));
  tensors.arrays["qkvz"] = data::Array::zeros(data::DType::bf16, {1, 80});
  llvm::Error other =
      takeArguments(*decode, tensors, /*required=*/false, false, arrays);
  EXPECT_EQ(llvm::toString(std::move(other)),
            "in.safetensors: qkvz: expects f32[N, 16*Hk + 32*Hv], but got "
            "bf16[1, 80]; --convert rounds floats to the entry's types");
  EXPECT_FALSE(
      bool(takeArguments(*decode, tensors, /*required=*/false, true, arrays)));
  EXPECT_EQ(arrays.at("qkvz").dtype, data::DType::f32);
}

} // namespace
