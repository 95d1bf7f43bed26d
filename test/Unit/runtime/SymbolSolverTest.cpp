// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Solving for symbols: order, division, contradictions, and the words of every
// refusal.

#include "gdnrt/symbol_solver.h"
#include "schemas.h"

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

/// One rank-1 read tensor p0, p1, ... per form; `sizes` are their sizes.
std::string solve(const std::vector<std::string> &forms,
                  const std::vector<int64_t> &sizes,
                  std::vector<int64_t> *values = nullptr, bool some = false) {
  auto entry = makeEntry([&](EntryBuilder builder) {
    for (size_t i = 0; i < forms.size(); ++i)
      builder.tensor("p" + std::to_string(i), fb::Access::read, fb::DType::f32,
                     {forms[i]});
  });
  SymbolSolver solver(*entry);
  std::vector<const int64_t *> pointers;
  for (const int64_t &size : sizes)
    pointers.push_back(size == -99 ? nullptr : &size);
  Status status = some ? solver.solveSome(pointers) : solver.solve(pointers);
  if (status.isOk() && values)
    *values = solver.values();
  return status.toString();
}

} // namespace

TEST(SymbolSolver, ASymbolAloneIsTheSize) {
  std::vector<int64_t> values;
  EXPECT_EQ(solve({"N"}, {7}, &values), "OK");
  EXPECT_EQ(values, (std::vector<int64_t>{7}));
}

TEST(SymbolSolver, LaterParametersHelpEarlierOnes) {
  // p0 has two unknowns until p1 gives Hv; Hk needs a second round.
  std::vector<int64_t> values;
  EXPECT_EQ(solve({"256*Hk + 256*Hv", "2*Hv"}, {256 * 6, 8}, &values), "OK");
  EXPECT_EQ(values, (std::vector<int64_t>{2, 4}));
}

TEST(SymbolSolver, ConstantsAndNegativeCoefficients) {
  std::vector<int64_t> values;
  EXPECT_EQ(solve({"N + 1", "10 - M"}, {4, 3}, &values), "OK");
  EXPECT_EQ(values, (std::vector<int64_t>{3, 7}));
}

TEST(SymbolSolver, ZeroIsAValue) {
  std::vector<int64_t> values;
  EXPECT_EQ(solve({"T", "N + 1"}, {0, 1}, &values), "OK");
  EXPECT_EQ(values, (std::vector<int64_t>{0, 0}));
}

TEST(SymbolSolver, NotDivisible) {
  EXPECT_EQ(solve({"2*Hv"}, {7}),
            "INVALID_ARGUMENT: p0: expected dim 0 to be 2*Hv for a whole Hv of "
            "at least 0, got 7");
}

TEST(SymbolSolver, NotDivisibleWithKnownSymbols) {
  EXPECT_EQ(solve({"Hk", "256*Hk + 256*Hv"}, {2, 1000}),
            "INVALID_ARGUMENT: p1: expected dim 0 to be 256*Hk + 256*Hv (Hk = "
            "2 from dim 0 of p0) for a whole Hv of at least 0, got 1000");
}

TEST(SymbolSolver, NegativeSymbol) {
  EXPECT_EQ(solve({"N + 1"}, {0}),
            "INVALID_ARGUMENT: p0: expected dim 0 to be N + 1 for a whole N of "
            "at least 0, got 0");
}

TEST(SymbolSolver, Contradiction) {
  EXPECT_EQ(solve({"Hv", "2*Hv"}, {4, 6}),
            "INVALID_ARGUMENT: p1: expected dim 0 to be 2*Hv = 8 (Hv = 4 from "
            "dim 0 of p0), got 6");
}

TEST(SymbolSolver, ConstantMismatch) {
  EXPECT_EQ(solve({"128"}, {64}),
            "INVALID_ARGUMENT: p0: expected dim 0 to be 128, got 64");
}

TEST(SymbolSolver, NotDetermined) {
  EXPECT_EQ(solve({"Hk + Hv"}, {4}),
            "INVALID_ARGUMENT: f: the arguments do not determine Hk");
}

TEST(SymbolSolver, SomeSizesLeaveSymbolsUnknown) {
  EXPECT_EQ(solve({"Hk + Hv", "Hv"}, {-99, 4}, nullptr, /*some=*/true), "OK");
  EXPECT_EQ(solve({"Hk + Hv"}, {4}, nullptr, /*some=*/true), "OK");
  EXPECT_EQ(solve({"Hv", "2*Hv", "N"}, {4, 6, -99}, nullptr, /*some=*/true),
            "INVALID_ARGUMENT: p1: expected dim 0 to be 2*Hv = 8 (Hv = 4 from "
            "dim 0 of p0), got 6");
}

TEST(SymbolSolver, AbsentParametersSayNothing) {
  EXPECT_EQ(solve({"N", "N"}, {4, -99}), "OK");
  EXPECT_EQ(solve({"N"}, {-99}),
            "INVALID_ARGUMENT: f: the arguments do not determine N");
}

TEST(SymbolSolver, OverflowIsAMismatch) {
  EXPECT_EQ(solve({"N", "4611686018427387904*N"}, {4, 6}),
            "INVALID_ARGUMENT: p1: expected dim 0 to be 4611686018427387904*N "
            "(too large) (N = 4 from dim 0 of p0), got 6");
  EXPECT_EQ(solve({"N", "4611686018427387904*N + M"}, {4, 6}),
            "INVALID_ARGUMENT: p1: expected dim 0 to be 4611686018427387904*N "
            "+ M (N = 4 from dim 0 of p0) for a whole M of at least 0, got 6");
}
