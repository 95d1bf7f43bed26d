// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The fixed point over all dimensions, in parameter order, so that the source
// of each symbol, which messages name, does not depend on chance.

#include "gdnrt/symbol_solver.h"

#include <algorithm>

using namespace gdnrt;

SymbolSolver::SymbolSolver(const EntrySchema &entry)
    : entry_(&entry), values_(entry.symbols.size()),
      sources_(entry.symbols.size()) {}

Status SymbolSolver::solve(const std::vector<const int64_t *> &sizes) {
  if (Status status = findValues(sizes); !status.isOk())
    return status;
  for (size_t s = 0; s < sources_.size(); ++s)
    if (!isKnown(s))
      return invalid(entry_->name, ": the arguments do not determine ",
                     entry_->symbols[s]);
  return checkSizes(sizes);
}

Status SymbolSolver::solveSome(const std::vector<const int64_t *> &sizes) {
  if (Status status = findValues(sizes); !status.isOk())
    return status;
  return checkSizes(sizes);
}

Status SymbolSolver::findValues(const std::vector<const int64_t *> &sizes) {
  std::fill(sources_.begin(), sources_.end(), Source());
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t p = 0; p < entry_->params.size(); ++p)
      for (int d = 0; sizes[p] && d < entry_->params[p].rank(); ++d) {
        Result<Step> step = solveDim(p, d, sizes[p][d]);
        if (!step.isOk())
          return step.status();
        changed |= *step == Step::solved;
      }
  }
  return {};
}

/// Sizes whose symbols are all known.
Status
SymbolSolver::checkSizes(const std::vector<const int64_t *> &sizes) const {
  for (size_t p = 0; p < entry_->params.size(); ++p)
    for (int d = 0; sizes[p] && d < entry_->params[p].rank(); ++d)
      if (Status status = checkDim(p, d, sizes[p][d]); !status.isOk())
        return status;
  return {};
}

/// Gives the only unknown symbol of a form its value.
Result<SymbolSolver::Step> SymbolSolver::solveDim(size_t param, int dim,
                                                  int64_t size) {
  const LinearForm &form = entry_->params[param].dims[dim];
  const LinearForm::Term *unknown = nullptr;
  for (const LinearForm::Term &term : form.terms) {
    if (isKnown(term.symbol))
      continue;
    if (unknown)
      return Step::none;
    unknown = &term;
  }
  if (!unknown)
    return Step::none;

  // rest = size - (the form without the unknown term).
  int64_t rest = size, product;
  bool overflow = __builtin_sub_overflow(rest, form.constant, &rest);
  for (const LinearForm::Term &term : form.terms)
    if (&term != unknown)
      overflow |= __builtin_mul_overflow(term.coefficient, values_[term.symbol],
                                         &product) ||
                  __builtin_sub_overflow(rest, product, &rest);
  // INT64_MIN / -1 is the one quotient that overflows.
  overflow |= rest == INT64_MIN && unknown->coefficient == -1;
  if (overflow || rest % unknown->coefficient != 0 ||
      rest / unknown->coefficient < 0)
    return invalid(entry_->params[param].name, ": expected dim ", dim,
                   " to be ", describe(form, unknown->symbol), " for a whole ",
                   entry_->symbols[unknown->symbol], " of at least 0, got ",
                   size);
  values_[unknown->symbol] = rest / unknown->coefficient;
  sources_[unknown->symbol] = {static_cast<int>(param), dim};
  return Step::solved;
}

Status SymbolSolver::checkDim(size_t param, int dim, int64_t size) const {
  const LinearForm &form = entry_->params[param].dims[dim];
  for (const LinearForm::Term &term : form.terms)
    if (!isKnown(term.symbol))
      return {};
  std::optional<int64_t> expected = form.evaluate(values_);
  if (expected && *expected == size)
    return {};
  std::string number;
  if (!form.terms.empty())
    number = expected ? " = " + std::to_string(*expected) : " (too large)";
  std::string text = form.toString(entry_->symbols);
  std::string known = describe(form, -1).substr(text.size());
  return invalid(entry_->params[param].name, ": expected dim ", dim, " to be ",
                 text, number, known, ", got ", size);
}

/// "2*Hv + N (Hv = 4 from dim 1 of state_pool)", with all known symbols but
/// one.
std::string SymbolSolver::describe(const LinearForm &form,
                                   int exceptSymbol) const {
  std::string known;
  for (const LinearForm::Term &term : form.terms) {
    if (term.symbol == exceptSymbol)
      continue;
    const Source &source = sources_[term.symbol];
    known += known.empty() ? " (" : ", ";
    known += entry_->symbols[term.symbol] + " = " +
             std::to_string(values_[term.symbol]) + " from dim " +
             std::to_string(source.dim) + " of " +
             entry_->params[source.param].name;
  }
  return form.toString(entry_->symbols) + known + (known.empty() ? "" : ")");
}
