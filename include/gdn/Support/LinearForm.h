// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear forms over size symbols, such as `256*Hk + 2*Hv + 1`: how an entry's
// schema writes the sizes of its parameters. Grids and workspaces also count by
// quotients of symbols: `T floordiv 64 + N`.
#ifndef GDN_SUPPORT_LINEARFORM_H
#define GDN_SUPPORT_LINEARFORM_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <optional>
#include <string>

namespace llvm {
class raw_ostream;
} // namespace llvm

namespace gdn {

/// True if `text` is a name: a letter or `_`, then letters, digits and `_`.
bool isIdentifier(llvm::StringRef text);

/// A constant plus integer multiples of symbols and of their quotients by
/// positive constants, rounded down. Kept in one shape only: symbols sorted,
/// each with each divisor at most once, no zero coefficient. So equal forms are
/// equal member by member, whatever the order they were written in.
class LinearForm {
public:
  struct Term {
    std::string symbol;
    int64_t coefficient;
    int64_t divisor = 1; // 1 .. 2^32 - 1
    bool operator==(const Term &other) const {
      return symbol == other.symbol && coefficient == other.coefficient &&
             divisor == other.divisor;
    }
  };

  LinearForm() = default;
  explicit LinearForm(int64_t constant) : constant(constant) {}

  /// Reads a sum of terms `c`, `S`, `c*S` or `S*c` joined by `+` and `-`, the
  /// first with an optional sign; blanks are free. In place of a symbol may
  /// stand `(S floordiv d)`, and `S floordiv d` as a whole term. The error says
  /// what was expected, at which column, and what stands there.
  static llvm::Expected<LinearForm> parse(llvm::StringRef text);

  /// Writes the form as `parse` reads it, symbols first.
  void print(llvm::raw_ostream &os) const;
  std::string str() const;

  /// The value under `valueOf`, which gives a symbol's value or nothing. An
  /// unknown symbol and a value outside 64 bits are errors.
  llvm::Expected<int64_t>
  evaluate(llvm::function_ref<std::optional<int64_t>(llvm::StringRef)> valueOf)
      const;

  bool isConstant() const { return terms.empty(); }
  /// True if a term is a quotient: then sizes do not tell the symbol.
  bool hasQuotients() const;
  int64_t getConstant() const { return constant; }
  llvm::ArrayRef<Term> getTerms() const { return terms; }
  /// The factor of `symbol`; 0 if it occurs in quotients only or not at all.
  int64_t getCoefficient(llvm::StringRef symbol) const;

  bool operator==(const LinearForm &other) const {
    return constant == other.constant && terms == other.terms;
  }
  bool operator!=(const LinearForm &other) const { return !(*this == other); }

private:
  friend class LinearFormParser;
  /// Adds a term; false if a number leaves 64 bits.
  bool add(int64_t coefficient, llvm::StringRef symbol, int64_t divisor);

  int64_t constant = 0;
  llvm::SmallVector<Term, 2> terms;
};

} // namespace gdn

#endif // GDN_SUPPORT_LINEARFORM_H
