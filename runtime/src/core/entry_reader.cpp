// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Symbols, parameters and rules of an entry. Its codes are read in
// code_reader.cpp.

#include "entry_reader.h"

#include "code_reader.h"

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
    return forms_.defect("expected at most ", kMaxParams, " parameters, got ",
                         countOf(source_.params()));
  std::unordered_set<std::string> names;
  for (size_t i = 0; i < countOf(source_.params()); ++i) {
    if (Status status = readParam(*source_.params()->Get(i)); !status.isOk())
      return status;
    if (!names.insert(entry_->params.back().name).second)
      return forms_.defect("two parameters are named ",
                           entry_->params.back().name);
  }
  CodeReader codes(*entry_, numBlobs_);
  for (size_t i = 0; i < countOf(source_.codes()); ++i)
    if (Status status = codes.readCode(*source_.codes()->Get(i));
        !status.isOk())
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
    if (Status status = forms_.readForm(*source.value(), where + " value",
                                        entry_->symbols, rule.value);
        !status.isOk())
      return status;
    if (Status status = forms_.readForm(*source.of(), where + " of",
                                        entry_->symbols, rule.of);
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
    return forms_.defect("gdn.max_tokens: expected a positive number, got '",
                         value, "'");
  return {};
}

Status EntryReader::readSymbols() {
  std::unordered_set<std::string> names;
  if (countOf(source_.symbols()) > UINT16_MAX + size_t{1})
    return forms_.defect("expected at most 65536 symbols, got ",
                         countOf(source_.symbols()));
  for (size_t i = 0; i < countOf(source_.symbols()); ++i) {
    std::string name = source_.symbols()->Get(i)->str();
    if (name.empty())
      return forms_.defect("a symbol has an empty name");
    if (!names.insert(name).second)
      return forms_.defect("two symbols are named ", name);
    entry_->symbols.push_back(std::move(name));
  }
  return {};
}

Status EntryReader::readParam(const fb::Param &source) {
  ParamSchema param;
  param.name = source.name()->str();
  if (param.name.empty())
    return forms_.defect("a parameter has an empty name");
  auto enumRange = [&](const char *what, uint8_t value, uint8_t last) {
    return value <= last
               ? Status()
               : forms_.defect(param.name, ": expected ", what,
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
  param.unitStrideDim = source.unit_stride_dim();
  param.optional = source.optional();

  size_t rank = countOf(source.dims());
  if (rank > kMaxRank)
    return forms_.defect(param.name, ": expected rank at most ", kMaxRank,
                         ", got ", rank);
  if (param.unitStrideDim != 0 &&
      (param.unitStrideLast ||
       static_cast<size_t>(param.unitStrideDim) >= rank))
    return forms_.defect(param.name,
                         ": expected stride 1 in one dimension below the rank ",
                         rank, ", got ", param.unitStrideDim,
                         param.unitStrideLast ? " and the last" : "");
  if (param.kind == ParamKind::pool && rank == 0)
    return forms_.defect(param.name,
                         ": expected a pool to have a slot dimension");
  for (size_t i = 0; i < rank; ++i) {
    LinearForm form;
    if (Status status = forms_.readForm(
            *source.dims()->Get(i), param.name + " dim " + std::to_string(i),
            entry_->symbols, form);
        !status.isOk())
      return status;
    // Binding solves dimensions for symbols.
    for (const LinearForm::Term &term : form.terms)
      if (term.divisor != 1)
        return forms_.defect(param.name, " dim ", i,
                             ": expected no divisors, got ", term.divisor);
    param.dimTexts.push_back(form.toString(entry_->symbols));
    param.dims.push_back(std::move(form));
  }
  param.firstWord = numWords_;
  numWords_ += param.numWords();
  entry_->params.push_back(std::move(param));
  return {};
}
