// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the values of an entry's symbols from the sizes of its arguments. A
// form with exactly one unknown symbol gives the value of that symbol by exact
// division. This is repeated until no value is found any more. Then every size
// is compared with its form.

#ifndef GDNRT_SYMBOL_SOLVER_H
#define GDNRT_SYMBOL_SOLVER_H

#include "gdnrt/entry_schema.h"
#include "gdnrt/status.h"

#include <optional>
#include <vector>

namespace gdnrt {

class SymbolSolver {
public:
  /// Keeps a pointer to `entry`. All memory is allocated here. Solving
  /// allocates nothing unless it fails.
  explicit SymbolSolver(const EntrySchema &entry);

  /// Finds the values of all symbols. `sizes[p]` points to the sizes of
  /// parameter p, as many as its rank, or is null if the argument is absent.
  Status solve(const std::vector<const int64_t *> &sizes);

  /// The same with arguments that may leave symbols unknown: refuses sizes that
  /// contradict each other.
  Status solveSome(const std::vector<const int64_t *> &sizes);

  /// The values that the last successful solve found, in the order of the
  /// entry's symbols.
  const std::vector<int64_t> &values() const { return values_; }
  /// That of one symbol, or nothing if the last solve left it unknown.
  std::optional<int64_t> value(size_t symbol) const {
    return isKnown(symbol) ? std::optional(values_[symbol]) : std::nullopt;
  }

private:
  /// The dimension from which the value of a symbol follows. `param` is -1 if
  /// the value is unknown.
  struct Source {
    int param = -1;
    int dim = -1;
  };
  enum class Step { none, solved };

  Status findValues(const std::vector<const int64_t *> &sizes);
  Status checkSizes(const std::vector<const int64_t *> &sizes) const;
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
