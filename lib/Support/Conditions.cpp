// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading conditions, and deciding what numbers decide.
#include "gdn/Support/Conditions.h"

#include "gdn/Support/LinearForm.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/MathExtras.h"

using namespace gdn;
using llvm::ArrayRef;
using llvm::Expected;
using llvm::SmallVector;
using llvm::StringRef;

/// Numbers from 0 to 2^31 - 1: of two the product has 64 bits.
static bool isNumber(StringRef factor) {
  uint32_t value;
  return !factor.getAsInteger(10, value) && value <= INT32_MAX;
}

/// The pieces of `text` between those `separator` that stand in no parentheses.
static SmallVector<StringRef> splitOutside(StringRef text, char separator) {
  SmallVector<StringRef> pieces;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    depth += (text[i] == '(') - (text[i] == ')');
    if (depth != 0 || text[i] != separator)
      continue;
    pieces.push_back(text.slice(begin, i));
    begin = i + 1;
  }
  pieces.push_back(text.substr(begin));
  return pieces;
}

static Expected<SmallVector<std::string>> readProduct(StringRef text) {
  SmallVector<std::string> factors;
  for (StringRef factor : llvm::split(text, '*')) {
    if (!isNumber(factor) && !isIdentifier(factor))
      return llvm::createStringError("expected a number or a symbol, got '" +
                                     factor + "'");
    factors.push_back(factor.str());
  }
  return factors;
}

static Expected<SmallVector<Inequality>> readInequalities(StringRef text) {
  SmallVector<Inequality> all;
  for (StringRef one : llvm::split(text, '&')) {
    auto [left, right] = one.split("<=");
    if (left.size() == one.size())
      return llvm::createStringError("expected 'product <= product', got '" +
                                     one + "'");
    Inequality &made = all.emplace_back();
    for (auto [side, factors] :
         {std::pair(left, &made.left), {right, &made.right}}) {
      auto read = readProduct(side);
      if (!read)
        return read.takeError();
      *factors = std::move(*read);
    }
  }
  return all;
}

Expected<Conditions> Conditions::parse(StringRef given) {
  std::string text;
  llvm::copy_if(given, std::back_inserter(text),
                [](char c) { return !llvm::isSpace(c); });
  Conditions made;
  if (text.empty())
    return made;
  for (StringRef part : splitOutside(text, '&')) {
    StringRef inside = part;
    if (!inside.consume_front("(")) {
      auto read = readInequalities(part);
      if (!read)
        return read.takeError();
      made.all.append(*read);
      continue;
    }
    if (!inside.consume_back(")"))
      return llvm::createStringError("expected ')' at the end of '" + part +
                                     "'");
    if (!made.alternatives.empty())
      return llvm::createStringError(
          "expected alternatives once at most, got '" + part + "' besides");
    for (StringRef one : llvm::split(inside, '|')) {
      auto read = readInequalities(one);
      if (!read)
        return read.takeError();
      made.alternatives.push_back(std::move(*read));
    }
    if (made.alternatives.size() < 2)
      return llvm::createStringError(
          "expected two alternatives at least, got '" + part + "'");
  }
  return made;
}

/// One number for all numbers, ahead of the symbols; none if it is 1 and there
/// are symbols.
static SmallVector<std::string>
fold(ArrayRef<std::string> factors,
     llvm::function_ref<std::string(StringRef)> valueOf) {
  int64_t number = 1;
  SmallVector<std::string> symbols;
  for (StringRef factor : factors) {
    std::string value = isNumber(factor) ? factor.str() : valueOf(factor);
    int64_t known, product;
    // What has more than 64 bits stays apart, as the runtime multiplies it.
    if (StringRef(value).getAsInteger(10, known) ||
        llvm::MulOverflow(number, known, product))
      symbols.push_back(std::move(value));
    else
      number = product;
  }
  if (number != 1 || symbols.empty())
    symbols.insert(symbols.begin(), std::to_string(number));
  return symbols;
}

/// The inequalities that numbers leave open; nothing if one of them is false.
static std::optional<SmallVector<Inequality>>
decide(ArrayRef<Inequality> all,
       llvm::function_ref<std::string(StringRef)> valueOf) {
  SmallVector<Inequality> open;
  for (const Inequality &one : all) {
    Inequality made = {fold(one.left, valueOf), fold(one.right, valueOf)};
    int64_t left, right;
    bool isKnown = made.left.size() == 1 && made.right.size() == 1 &&
                   !StringRef(made.left.front()).getAsInteger(10, left) &&
                   !StringRef(made.right.front()).getAsInteger(10, right);
    if (!isKnown)
      open.push_back(std::move(made));
    else if (left > right)
      return std::nullopt;
  }
  return open;
}

std::optional<Conditions> Conditions::substitute(
    llvm::function_ref<std::string(StringRef)> valueOf) const {
  auto decided = decide(all, valueOf);
  if (!decided)
    return std::nullopt;
  Conditions made;
  made.all = std::move(*decided);
  if (alternatives.empty())
    return made;
  for (const SmallVector<Inequality> &one : alternatives) {
    auto some = decide(one, valueOf);
    if (some && some->empty()) { // it holds, whatever the others do
      made.alternatives.clear();
      return made;
    }
    if (some)
      made.alternatives.push_back(std::move(*some));
  }
  if (made.alternatives.empty())
    return std::nullopt;
  if (made.alternatives.size() == 1) {
    made.all.append(made.alternatives.front());
    made.alternatives.clear();
  }
  return made;
}

void Conditions::forEachSymbol(
    llvm::function_ref<void(StringRef)> visit) const {
  auto visitAll = [&](ArrayRef<Inequality> some) {
    for (const Inequality &one : some)
      for (const auto *side : {&one.left, &one.right})
        for (StringRef factor : *side)
          if (!isNumber(factor))
            visit(factor);
  };
  visitAll(all);
  for (const SmallVector<Inequality> &one : alternatives)
    visitAll(one);
}
