// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tables and JSON; see Report.h.
#include "gdn/Run/Report.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"

#include <cmath>

using namespace gdn;
using namespace gdn::run;

void Table::addRow(std::vector<std::string> cells) {
  assert((rows.empty() || cells.size() == rows.front().size()) &&
         "as many cells as the header");
  rows.push_back(std::move(cells));
}

void Table::print(llvm::raw_ostream &stream) const {
  std::vector<size_t> widths(rows.front().size(), 0);
  for (const std::vector<std::string> &row : rows)
    for (auto [cell, width] : llvm::zip(row, widths))
      width = std::max(width, cell.size());
  for (const std::vector<std::string> &row : rows) {
    std::string line;
    for (auto [cell, width] : llvm::zip(row, widths)) {
      line += cell;
      line.append(width - cell.size() + 2, ' ');
    }
    stream << llvm::StringRef(line).rtrim() << '\n';
  }
}

static std::string formatted(const char *format, double value) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << llvm::format(format, value);
  return text;
}

std::string run::formatError(double error) {
  if (error == 0)
    return "0";
  return formatted("%.1e", error);
}

std::string run::formatLimit(double limit) {
  return limit == 0 ? "equal" : formatted("%.1e", limit);
}

std::string run::formatTime(double microseconds) {
  if (microseconds < 1000)
    return formatted("%.1f us", microseconds);
  return formatted("%.2f ms", microseconds / 1000);
}

Timing Timing::of(std::vector<double> times) {
  llvm::sort(times);
  Timing timing;
  timing.median = times[times.size() / 2];
  timing.min = times.front();
  timing.max = times.back();
  timing.launches = times.size();
  return timing;
}

/// JSON has no infinity.
static llvm::json::Value number(double value) {
  if (std::isfinite(value))
    return value;
  return nullptr;
}

llvm::json::Value run::toJson(const Comparison &comparison) {
  return llvm::json::Object{{"tensor", comparison.tensor},
                            {"relative_rmse", number(comparison.relativeRMSE)},
                            {"max_abs", number(comparison.maxAbs)},
                            {"limit", comparison.limit},
                            {"ok", comparison.ok}};
}

llvm::json::Value run::toJson(const Timing &timing) {
  return llvm::json::Object{{"median_us", timing.median},
                            {"min_us", timing.min},
                            {"max_us", timing.max},
                            {"launches", timing.launches}};
}
