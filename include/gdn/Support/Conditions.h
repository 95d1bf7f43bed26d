// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Conditions of a variant: products of numbers and symbols, compared. As text:
//
//   2*sequences*heads <= workers & (tokens <= 512 | 4 <= sequences & 1024 <=
//   tokens)
//
// `&` joins what holds together. In parentheses, once at most, stand
// alternatives, joined by `|`, of which one holds. Blanks are free.
#ifndef GDN_SUPPORT_CONDITIONS_H
#define GDN_SUPPORT_CONDITIONS_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>

namespace gdn {

/// left <= right, each the product of its factors.
struct Inequality {
  llvm::SmallVector<std::string> left, right;
  bool operator==(const Inequality &other) const {
    return left == other.left && right == other.right;
  }
};

struct Conditions {
  /// All of them hold, and all of one of the alternatives, of which there are
  /// none or two at least.
  llvm::SmallVector<Inequality> all;
  llvm::SmallVector<llvm::SmallVector<Inequality>> alternatives;

  /// Reads the text above. The error says what was expected and what stands
  /// there.
  static llvm::Expected<Conditions> parse(llvm::StringRef text);

  /// True if they always hold.
  bool empty() const { return all.empty() && alternatives.empty(); }

  /// The conditions with `valueOf(symbol)`, a number or another symbol, for
  /// each symbol. What numbers decide is decided: inequalities that hold are
  /// left out. Nothing if the conditions never hold.
  std::optional<Conditions>
  substitute(llvm::function_ref<std::string(llvm::StringRef)> valueOf) const;

  /// Calls `visit` with each symbol, as often as it stands there.
  void forEachSymbol(llvm::function_ref<void(llvm::StringRef)> visit) const;
};

} // namespace gdn

#endif // GDN_SUPPORT_CONDITIONS_H
