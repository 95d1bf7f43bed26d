// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Symbols, parameters, forms and rules of an entry. Its codes are read in
// code_reader.cpp.

#include "entry_reader.h"

#include "gdnrt/image_limits.h"

#include <charconv>
#include <unordered_set>

using namespace gdnrt;

// Guards the sums of words and the work per entry, far beyond real entries.
static constexpr size_t kMaxParams = 1024;

Result<std::shared_ptr<const EntrySchema>> EntryReader::read() {
  entry_->name = source_.name()->str();
  if (entry_->name.empty())
    return corrupt("an entry has an empty name");
  if (Status status = readSymbols(); !status.isOk())
    return status;

  if (countOf(source_.params()) > kMaxParams)
    return defect("expected at most ", kMaxParams, " parameters, got ",
                  countOf(source_.params()));
  std::unordered_set<std::string> names;
  for (size_t i = 0; i < countOf(source_.params()); ++i) {
    if (Status status = readParam(*source_.params()->Get(i)); !status.isOk())
      return status;
    if (!names.insert(entry_->params.back().name).second)
      return defect("two parameters are named ", entry_->params.back().name);
  }
  for (size_t i = 0; i < countOf(source_.codes()); ++i)
    if (Status status = readCode(*source_.codes()->Get(i)); !status.isOk())
      return status;
  for (size_t i = 0; i < countOf(source_.attributes()); ++i) {
    const fb::KeyValue &pair = *source_.attributes()->Get(i);
    entry_->attributes.emplace_back(pair.key()->str(), pair.value()->str());
    if (Status status = readMaxTokens(entry_->attributes.back());
        !status.isOk())
      return status;
  }
  for (size_t i = 0; i < countOf(source_.multiples()); ++i) {
    const fb::Multiple &source = *source_.multiples()->Get(i);
    std::string where = "multiple " + std::to_string(i);
    MultipleRule rule;
    if (Status status = readForm(*source.value(), where + " value",
                                 entry_->symbols, rule.value);
        !status.isOk())
      return status;
    if (Status status =
            readForm(*source.of(), where + " of", entry_->symbols, rule.of);
        !status.isOk())
      return status;
    entry_->multiples.push_back(std::move(rule));
  }
  return std::shared_ptr<const EntrySchema>(std::move(entry_));
}

Status EntryReader::readMaxTokens(
    const std::pair<std::string, std::string> &attribute) {
  const auto &[key, value] = attribute;
  if (key != "gdn.max_tokens")
    return {};
  const char *end = value.data() + value.size();
  auto parsed = std::from_chars(value.data(), end, entry_->maxRowTokens);
  if (parsed.ec != std::errc() || parsed.ptr != end || entry_->maxRowTokens < 1)
    return defect("gdn.max_tokens: expected a positive number, got '", value,
                  "'");
  return {};
}

Status EntryReader::readSymbols() {
  std::unordered_set<std::string> names;
  if (countOf(source_.symbols()) > UINT16_MAX + size_t{1})
    return defect("expected at most 65536 symbols, got ",
                  countOf(source_.symbols()));
  for (size_t i = 0; i < countOf(source_.symbols()); ++i) {
    std::string name = source_.symbols()->Get(i)->str();
    if (name.empty())
      return defect("a symbol has an empty name");
    if (!names.insert(name).second)
      return defect("two symbols are named ", name);
    entry_->symbols.push_back(std::move(name));
  }
  conditionSymbols_ = entry_->symbols;
  conditionSymbols_.push_back("workers");
  conditionSymbols_.push_back("dependent");
  return {};
}

Status EntryReader::readForm(const fb::LinearForm &source,
                             const std::string &where,
                             const std::vector<std::string> &symbols,
                             LinearForm &form) {
  form.constant = source.constant();
  size_t numSymbols = countOf(source.symbols());
  if (numSymbols != countOf(source.coefficients()))
    return defect(where, ": expected as many coefficients as symbols (",
                  numSymbols, "), got ", countOf(source.coefficients()));
  // FlatBuffers' verifier aligns the count before a vector, not its elements.
  if (numSymbols != 0 &&
      reinterpret_cast<uintptr_t>(source.coefficients()->data()) %
              alignof(int64_t) !=
          0)
    return defect(where, ": the coefficients are not 8-byte aligned");
  size_t numDivisors = countOf(source.divisors());
  if (numDivisors != 0 && numDivisors != numSymbols)
    return defect(where, ": expected a divisor for each of ", numSymbols,
                  " symbols or none, got ", numDivisors);
  for (size_t i = 0; i < numSymbols; ++i) {
    uint16_t symbol = source.symbols()->Get(i);
    if (symbol >= symbols.size())
      return defect(where, ": symbol index ", symbol, " is past the ",
                    symbols.size(), " symbols");
    uint32_t divisor = numDivisors != 0 ? source.divisors()->Get(i) : 1;
    if (divisor == 0)
      return defect(where, ": the divisor of ", symbols[symbol], " is 0");
    for (const LinearForm::Term &term : form.terms)
      if (term.symbol == symbol && term.divisor == divisor)
        return defect(where, ": symbol ", symbols[symbol], " appears twice");
    int64_t coefficient = source.coefficients()->Get(i);
    if (coefficient == 0)
      return defect(where, ": the coefficient of ", symbols[symbol], " is 0");
    form.terms.push_back({symbol, coefficient, divisor});
  }
  return {};
}

/// Factors of a product or dimensions of a grid.
Status EntryReader::readForms(
    const flatbuffers::Vector<flatbuffers::Offset<fb::LinearForm>> *source,
    const std::string &where, const std::vector<std::string> &symbols,
    std::vector<LinearForm> &forms) {
  if (Status status = atMost(kMaxForms, "forms in " + where, countOf(source));
      !status.isOk())
    return status;
  for (size_t i = 0; i < countOf(source); ++i) {
    LinearForm form;
    if (Status status = readForm(
            *source->Get(i), where + " " + std::to_string(i), symbols, form);
        !status.isOk())
      return status;
    forms.push_back(std::move(form));
  }
  return {};
}

Status EntryReader::readParam(const fb::Param &source) {
  ParamSchema param;
  param.name = source.name()->str();
  if (param.name.empty())
    return defect("a parameter has an empty name");
  auto enumRange = [&](const char *what, uint8_t value, uint8_t last) {
    return value <= last ? Status()
                         : defect(param.name, ": expected ", what,
                                  " to be at most ", last, ", got ", value);
  };
  uint8_t kind = static_cast<uint8_t>(source.kind());
  uint8_t access = static_cast<uint8_t>(source.access());
  uint8_t dtype = static_cast<uint8_t>(source.dtype());
  if (Status s = enumRange("kind", kind, uint8_t(fb::ParamKind::MAX));
      !s.isOk())
    return s;
  if (Status s = enumRange("access", access, uint8_t(fb::Access::MAX));
      !s.isOk())
    return s;
  if (Status s = enumRange("dtype", dtype, uint8_t(fb::DType::MAX)); !s.isOk())
    return s;
  param.kind = static_cast<ParamKind>(kind);
  param.access = static_cast<Access>(access);
  param.dtype = static_cast<DType>(dtype);
  param.unitStrideLast = source.unit_stride_last();
  param.optional = source.optional();

  size_t rank = countOf(source.dims());
  if (rank > kMaxRank)
    return defect(param.name, ": expected rank at most ", kMaxRank, ", got ",
                  rank);
  if (param.kind == ParamKind::pool && rank == 0)
    return defect(param.name, ": expected a pool to have a slot dimension");
  for (size_t i = 0; i < rank; ++i) {
    LinearForm form;
    if (Status status = readForm(*source.dims()->Get(i),
                                 param.name + " dim " + std::to_string(i),
                                 entry_->symbols, form);
        !status.isOk())
      return status;
    // Binding solves dimensions for symbols.
    for (const LinearForm::Term &term : form.terms)
      if (term.divisor != 1)
        return defect(param.name, " dim ", i, ": expected no divisors, got ",
                      term.divisor);
    param.dimTexts.push_back(form.toString(entry_->symbols));
    param.dims.push_back(std::move(form));
  }
  param.firstWord = numWords_;
  numWords_ += param.numWords();
  entry_->params.push_back(std::move(param));
  return {};
}
