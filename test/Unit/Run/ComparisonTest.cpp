// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Judging a run: limits by type, pools slot by slot, and that a wrong result
// is found.
#include "RunTest.h"

#include "gdn/Run/Arguments.h"
#include "gdn/Run/RunEntry.h"

using namespace gdn;
using namespace gdn::run;

namespace {

Parameter tensor(llvm::StringRef name, data::DType dtype) {
  Parameter parameter;
  parameter.name = name.str();
  parameter.dtype = dtype;
  parameter.isWritten = true;
  parameter.dims.resize(3);
  return parameter;
}

TEST(Limits, ByTypeAndKind) {
  EXPECT_EQ(limitOf(tensor("core", data::DType::f32)), 1e-5);
  EXPECT_EQ(limitOf(tensor("core", data::DType::bf16)), 2e-3);
  EXPECT_EQ(limitOf(tensor("out", data::DType::bf16)), 5e-3);
  Parameter pool = tensor("conv_pool", data::DType::bf16);
  pool.isPool = true;
  EXPECT_EQ(limitOf(pool), 0);
  pool.dims.resize(4);
  EXPECT_EQ(limitOf(pool), 2e-3);
}

// Of a tree in a pool of 16 bits: each state is made of one that was rounded.
TEST(Limits, OfStatesThatGoOnFromRoundedOnes) {
  Parameter pool = tensor("state_pool", data::DType::bf16);
  pool.isPool = true;
  pool.roundedLimit = 4e-3;
  pool.dims.resize(4);
  EXPECT_EQ(limitOf(pool), 4e-3);
  Parameter core = tensor("core", data::DType::bf16);
  core.roundedLimit = 4e-3;
  EXPECT_EQ(limitOf(core), 4e-3);
  core.dtype = data::DType::f32;
  EXPECT_EQ(limitOf(core), 4e-3);
  EXPECT_EQ(limitOf(tensor("out", data::DType::bf16)), 5e-3);
}

TEST(Limits, OfRoundedProducts) {
  auto limit = [](const char *precision, bool isPool, data::DType type) {
    Parameter parameter = tensor("core", type);
    parameter.precision = precision;
    parameter.isPool = isPool;
    parameter.dims.resize(4);
    return limitOf(parameter);
  };
  EXPECT_EQ(limit("f32", true, data::DType::f32), 1e-5);
  EXPECT_EQ(limit("mixed", true, data::DType::f32), 2e-3);
  EXPECT_EQ(limit("mixed", false, data::DType::bf16), 5e-3);
  EXPECT_EQ(limit("mixed-io", true, data::DType::f32), 5e-3);
}

// Operands in two parts are as exact as f32 where values are f32.
TEST(Limits, OfOperandsInTwoParts) {
  Parameter pool = tensor("state_pool", data::DType::f32);
  pool.isPool = true;
  pool.dims.resize(4);
  pool.precision = "parts";
  pool.io = "f32";
  EXPECT_EQ(limitOf(pool), 1e-5);
  pool.io = "bf16";
  EXPECT_EQ(limitOf(pool), 2e-3);
}

TEST(CompareValues, NoResultIsCloserThanItsTypeAllows) {
  // One bf16 has an error of up to 2^-8: here more than 2e-3, yet the best.
  double want = 1 + 0.0038;
  double best = data::fromBF16(data::toBF16(want));
  Comparison exact =
      compareValues(tensor("core", data::DType::bf16), best, want);
  EXPECT_GT(exact.relativeRMSE, 2e-3);
  EXPECT_TRUE(exact.ok);
  Comparison off =
      compareValues(tensor("core", data::DType::bf16), best + 0.0078125, want);
  EXPECT_FALSE(off.ok);
}

TEST(CompareValues, NaNIsOutOfBounds) {
  double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(compareValues(tensor("core", data::DType::f32), nan, 1.0).ok);
}

class ComparisonTest : public RunTest {
protected:
  /// Runs prefill, lets `change` at the results, and compares.
  std::vector<Comparison> runAnd(llvm::function_ref<void(Arrays &)> change) {
    auto options = llvm::cantFail(
        GenerateOptions::parse("lens=3:0:9,Hk=1,Hv=2,slots=6,pad=1,skip=1"));
    Arrays before = llvm::cantFail(generateArguments(*prefill, options, 0));
    Symbols symbols = solveSymbols(*prefill, before);
    RunOptions runOptions;
    EntryRun run = llvm::cantFail(runEntry(*prefill, before, runOptions));
    mlir::MLIRContext context;
    auto reference = llvm::cantFail(ReferenceEntry::create(context, *prefill));
    Outcome want = llvm::cantFail(reference.evaluate(before, symbols, 0));
    change(run.arrays);
    return compareRun(*prefill, run.arrays, before, want);
  }

  static std::vector<std::string>
  failures(const std::vector<Comparison> &comparisons) {
    std::vector<std::string> names;
    for (const Comparison &comparison : comparisons)
      if (!comparison.ok)
        names.push_back(comparison.tensor);
    return names;
  }
};

TEST_F(ComparisonTest, ARightRunIsRight) {
  EXPECT_THAT(failures(runAnd([](Arrays &) {})), testing::IsEmpty());
}

TEST_F(ComparisonTest, EveryWrongResultIsFound) {
  for (llvm::StringRef name : {"core", "out"}) {
    auto comparisons = runAnd([&](Arrays &arrays) {
      data::Array &array = arrays.at(name.str());
      std::vector<double> values = array.toDoubles();
      values[5] += 1;
      array = data::Array::fromDoubles(array.dtype, array.shape, values);
    });
    EXPECT_THAT(failures(comparisons), testing::ElementsAre(name.str()));
  }
}

TEST_F(ComparisonTest, OneBitOfAnotherSlotIsFound) {
  // Slot 0 is the null slot, full of NaN.
  auto comparisons = runAnd(
      [](Arrays &arrays) { arrays.at("state_pool").bytes.front() ^= 1; });
  EXPECT_THAT(failures(comparisons),
              testing::ElementsAre("state_pool, other slots"));
}

} // namespace
