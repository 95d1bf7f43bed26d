// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading, writing and evaluating linear forms. All arithmetic is checked: a
// form comes from a file, and its values from whoever binds the entry.
#include "gdn/Support/LinearForm.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <limits>

using namespace gdn;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

static llvm::Error makeError(const Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

static bool startsIdentifier(char c) { return llvm::isAlpha(c) || c == '_'; }
static bool continuesIdentifier(char c) { return llvm::isAlnum(c) || c == '_'; }

bool gdn::isIdentifier(StringRef text) {
  return !text.empty() && startsIdentifier(text.front()) &&
         llvm::all_of(text, continuesIdentifier);
}

namespace gdn {
/// form ::= `-`? term ((`+` | `-`) term)*
/// term ::= number (`*` factor)? | factor (`*` number)? | quotient
/// factor ::= symbol | `(` quotient `)`
/// quotient ::= symbol `floordiv` number
class LinearFormParser {
public:
  explicit LinearFormParser(StringRef text) : text(text), rest(text) {}

  Expected<LinearForm> parse() {
    LinearForm form;
    bool negative = consume('-');
    while (true) {
      if (llvm::Error error = parseTerm(form, negative))
        return std::move(error);
      if (skipBlanks().empty())
        return form;
      negative = consume('-');
      if (!negative && !consume('+'))
        return expected("'+' or '-'");
    }
  }

private:
  llvm::Error parseTerm(LinearForm &form, bool negative) {
    uint64_t magnitude = 1, divisor = 1;
    StringRef symbol;
    if (isDigit()) {
      if (llvm::Error error = parseNumber(magnitude))
        return error;
      if (consume('*')) {
        if (!isFactor())
          return expected("a symbol after '*'");
        if (llvm::Error error = parseFactor(symbol, divisor))
          return error;
      }
    } else if (isFactor()) {
      if (llvm::Error error = parseFactor(symbol, divisor))
        return error;
      if (divisor == 1 && isQuotient()) {
        if (llvm::Error error = parseDivisor(divisor))
          return error;
      } else if (consume('*')) {
        if (isFactor())
          return expected("a number after '*', as a form is linear,");
        if (!isDigit())
          return expected("a number after '*'");
        if (llvm::Error error = parseNumber(magnitude))
          return error;
      }
    } else {
      return expected("a number or a symbol");
    }
    // -2^63 is a value, 2^63 is not.
    constexpr uint64_t limit = std::numeric_limits<int64_t>::max();
    if (magnitude > limit + (negative ? 1 : 0))
      return makeError("number in \"" + text + "\" does not fit 64 bits");
    int64_t coefficient =
        negative ? int64_t(~magnitude + 1) : int64_t(magnitude);
    if (!form.add(coefficient, symbol, int64_t(divisor)))
      return makeError("sum in \"" + text + "\" does not fit 64 bits");
    return llvm::Error::success();
  }

  llvm::Error parseFactor(StringRef &symbol, uint64_t &divisor) {
    bool isGroup = consume('(');
    if (!isSymbol())
      return expected("a symbol after '('");
    symbol = parseSymbol();
    if (!isGroup)
      return llvm::Error::success();
    if (!isQuotient())
      return expected("'floordiv'");
    if (llvm::Error error = parseDivisor(divisor))
      return error;
    return consume(')') ? llvm::Error::success() : expected("')'");
  }

  llvm::Error parseDivisor(uint64_t &divisor) {
    parseSymbol();
    if (!isDigit())
      return expected("a number after 'floordiv'");
    if (llvm::Error error = parseNumber(divisor))
      return error;
    if (divisor == 0 || divisor > std::numeric_limits<uint32_t>::max())
      return makeError("expected a divisor of at least 1 and less than 2^32 in "
                       "\"" +
                       text + "\", but got " + Twine(divisor));
    return llvm::Error::success();
  }

  llvm::Error parseNumber(uint64_t &value) {
    StringRef digits = skipBlanks().take_while(llvm::isDigit);
    rest = rest.drop_front(digits.size());
    if (digits.getAsInteger(10, value))
      return makeError("number in \"" + text + "\" does not fit 64 bits");
    return llvm::Error::success();
  }

  StringRef parseSymbol() {
    StringRef symbol = skipBlanks().take_while(continuesIdentifier);
    rest = rest.drop_front(symbol.size());
    return symbol;
  }

  bool isDigit() {
    return !skipBlanks().empty() && llvm::isDigit(rest.front());
  }
  bool isSymbol() {
    return !skipBlanks().empty() && startsIdentifier(rest.front());
  }
  bool isFactor() { return isSymbol() || rest.starts_with("("); }
  /// Whether an operator stands here, behind a symbol.
  bool isQuotient() {
    return skipBlanks().take_while(continuesIdentifier) == "floordiv";
  }
  bool consume(char c) { return skipBlanks().consume_front(StringRef(&c, 1)); }
  StringRef &skipBlanks() { return rest = rest.ltrim(" \t"); }

  llvm::Error expected(StringRef what) {
    skipBlanks();
    std::string message =
        ("expected " + what + " at column " +
         Twine(text.size() - rest.size() + 1) + " of \"" + text + "\", but ")
            .str();
    return makeError(rest.empty()
                         ? message + "the form ends"
                         : message + "got '" + rest.take_front(1) + "'");
  }

  StringRef text;
  StringRef rest;
};
} // namespace gdn

bool LinearForm::add(int64_t coefficient, StringRef symbol, int64_t divisor) {
  if (symbol.empty()) {
    std::optional<int64_t> sum = llvm::checkedAdd(constant, coefficient);
    if (sum)
      constant = *sum;
    return sum.has_value();
  }
  std::pair<StringRef, int64_t> key(symbol, divisor);
  auto keyOf = [](const Term &term) {
    return std::pair<StringRef, int64_t>(term.symbol, term.divisor);
  };
  auto *it =
      llvm::lower_bound(terms, key, [&](const Term &term, const auto &other) {
        return keyOf(term) < other;
      });
  if (it == terms.end() || keyOf(*it) != key)
    it = terms.insert(it, Term{symbol.str(), 0, divisor});
  std::optional<int64_t> sum = llvm::checkedAdd(it->coefficient, coefficient);
  if (!sum)
    return false;
  it->coefficient = *sum;
  if (*sum == 0)
    terms.erase(it);
  return true;
}

Expected<LinearForm> LinearForm::parse(StringRef text) {
  return LinearFormParser(text).parse();
}

void LinearForm::print(llvm::raw_ostream &os) const {
  bool first = true;
  auto printSigned = [&](int64_t value, StringRef symbol, int64_t divisor) {
    // As unsigned, so that -2^63 has a magnitude.
    uint64_t magnitude = value < 0 ? ~uint64_t(value) + 1 : uint64_t(value);
    if (first)
      os << (value < 0 ? "-" : "");
    else
      os << (value < 0 ? " - " : " + ");
    first = false;
    if (symbol.empty())
      os << magnitude;
    else if (magnitude != 1)
      os << magnitude << '*';
    bool isGroup = divisor != 1 && magnitude != 1;
    os << (isGroup ? "(" : "") << symbol;
    if (divisor != 1)
      os << " floordiv " << divisor;
    os << (isGroup ? ")" : "");
  };
  for (const Term &term : terms)
    printSigned(term.coefficient, term.symbol, term.divisor);
  if (constant != 0 || terms.empty())
    printSigned(constant, "", 1);
}

std::string LinearForm::str() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os);
  return text;
}

bool LinearForm::hasQuotients() const {
  return llvm::any_of(terms,
                      [](const Term &term) { return term.divisor != 1; });
}

int64_t LinearForm::getCoefficient(StringRef symbol) const {
  for (const Term &term : terms)
    if (term.symbol == symbol && term.divisor == 1)
      return term.coefficient;
  return 0;
}

Expected<int64_t> LinearForm::evaluate(
    llvm::function_ref<std::optional<int64_t>(StringRef)> valueOf) const {
  int64_t sum = constant;
  for (const Term &term : terms) {
    std::optional<int64_t> value = valueOf(term.symbol);
    if (!value)
      return makeError("symbol '" + Twine(term.symbol) + "' of \"" + str() +
                       "\" has no value");
    std::optional<int64_t> next = llvm::checkedMulAdd(
        term.coefficient, llvm::divideFloorSigned(*value, term.divisor), sum);
    if (!next)
      return makeError("\"" + Twine(str()) + "\" does not fit 64 bits with " +
                       term.symbol + " = " + Twine(*value));
    sum = *next;
  }
  return sum;
}
