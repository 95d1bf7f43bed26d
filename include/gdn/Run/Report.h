// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Results for people, as a table, and for programs, as JSON.
#ifndef GDN_RUN_REPORT_H
#define GDN_RUN_REPORT_H

#include "gdn/Run/Comparison.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace gdn::run {

/// Rows of text under a header, printed with aligned columns.
class Table {
public:
  explicit Table(std::vector<std::string> header) { addRow(std::move(header)); }

  /// Adds a row with as many cells as the header has.
  void addRow(std::vector<std::string> cells);
  void print(llvm::raw_ostream &stream) const;

private:
  std::vector<std::vector<std::string>> rows;
};

/// `1.2e-07`, `0`, `inf`.
std::string formatError(double error);
/// The limit as a table shows it: `1.0e-05`, or `equal` for bit equality.
std::string formatLimit(double limit);
/// `41.3 us`, `2.10 ms`.
std::string formatTime(double microseconds);

/// Times of repeated launches.
struct Timing {
  double median = 0, min = 0, max = 0; // microseconds
  int64_t launches = 0;

  /// Sorts out `times`, of which there is at least one.
  static Timing of(std::vector<double> times);
};

llvm::json::Value toJson(const Comparison &comparison);
llvm::json::Value toJson(const Timing &timing);

} // namespace gdn::run

#endif // GDN_RUN_REPORT_H
