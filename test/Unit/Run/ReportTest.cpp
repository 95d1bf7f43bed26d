// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tables, numbers and JSON as people and programs see them.
#include "gdn/Run/Report.h"

#include "llvm/Support/FormatVariadic.h"

#include <gtest/gtest.h>
#include <limits>

using namespace gdn::run;

namespace {

TEST(Report, ColumnsAreAligned) {
  Table table({"tensor", "error", ""});
  table.addRow({"core output", "1.0e-07", "ok"});
  table.addRow({"out", "0", ""});
  std::string text;
  llvm::raw_string_ostream stream(text);
  table.print(stream);
  EXPECT_EQ(text, "tensor       error\n"
                  "core output  1.0e-07  ok\n"
                  "out          0\n");
}

TEST(Report, Numbers) {
  EXPECT_EQ(formatError(0), "0");
  EXPECT_EQ(formatError(1.23e-7), "1.2e-07");
  EXPECT_EQ(formatError(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(formatLimit(0), "equal");
  EXPECT_EQ(formatLimit(2e-3), "2.0e-03");
  EXPECT_EQ(formatTime(41.26), "41.3 us");
  EXPECT_EQ(formatTime(2100), "2.10 ms");
}

TEST(Report, TimesAreSorted) {
  Timing timing = Timing::of({5, 1, 3});
  EXPECT_EQ(timing.min, 1);
  EXPECT_EQ(timing.median, 3);
  EXPECT_EQ(timing.max, 5);
  EXPECT_EQ(timing.launches, 3);
}

TEST(Report, JsonHasNullForInfinity) {
  Comparison comparison;
  comparison.tensor = "out";
  comparison.relativeRMSE = std::numeric_limits<double>::infinity();
  comparison.limit = 0.5;
  std::string text = llvm::formatv("{0}", toJson(comparison));
  EXPECT_EQ(text, "{\"limit\":0.5,\"max_abs\":0,\"ok\":false,"
                  "\"relative_rmse\":null,\"tensor\":\"out\"}");
}

} // namespace
