// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear forms of an entry.

#include "form_reader.h"

#include "gdnrt/image_limits.h"

using namespace gdnrt;

Status FormReader::readForm(const fb::LinearForm &source,
                            const std::string &where,
                            const std::vector<std::string> &symbols,
                            LinearForm &form) const {
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
Status FormReader::readForms(
    const flatbuffers::Vector<flatbuffers::Offset<fb::LinearForm>> *source,
    const std::string &where, const std::vector<std::string> &symbols,
    std::vector<LinearForm> &forms) const {
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
