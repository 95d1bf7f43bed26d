// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the values of an entry's symbols from the sizes of its arguments. A
// form with exactly one unknown symbol gives it by exact division; this goes
// on until nothing changes, and then every size is compared with its form.

#ifndef GDNRT_SYMBOL_SOLVER_H
#define GDNRT_SYMBOL_SOLVER_H

#include "gdnrt/entry_schema.h"
#include "gdnrt/status.h"

#include <vector>

namespace gdnrt {

class SymbolSolver {
public:
  /// Keeps a pointer to `entry`. All memory is taken here; solving takes none
  /// unless it fails.
  explicit SymbolSolver(const EntrySchema &entry);

  /// Solves for all symbols. `sizes[p]` points at the sizes of parameter p,
  /// as many as its rank, or is null if the parameter is absent.
  Status solve(const std::vector<const int64_t *> &sizes);

  /// The values after a successful solve, in the entry's symbol order.
  const std::vector<int64_t> &values() const { return values_; }

private:
  /// The dimension that gave a symbol its value; no parameter: still unknown.
  struct Source {
    int param = -1;
    int dim = -1;
  };
  enum class Step { none, solved };

  Result<Step> solveDim(size_t param, int dim, int64_t size);
  Status checkDim(size_t param, int dim, int64_t size) const;
  std::string describe(const LinearForm &form, int exceptSymbol) const;
  bool isKnown(size_t symbol) const { return sources_[symbol].param >= 0; }

  const EntrySchema *entry_;
  std::vector<int64_t> values_;
  std::vector<Source> sources_;
};

} // namespace gdnrt

#endif // GDNRT_SYMBOL_SOLVER_H
