// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of forms, with every overflow seen: a condition or a size that
// cannot be told keeps its variant from being taken.

#include "gdnrt/launch_plan.h"

#include <algorithm>

using namespace gdnrt;

/// The product, or nothing if a factor or it does not fit in 64 bits. A factor
/// of 0 makes it 0 whatever the others are.
static std::optional<int64_t> evaluate(const Product &product,
                                       const std::vector<int64_t> &symbols) {
  int64_t result = 1;
  bool overflow = false, isZero = false;
  for (const LinearForm &form : product) {
    std::optional<int64_t> factor = form.evaluate(symbols);
    isZero |= factor && *factor == 0;
    overflow |= !factor || __builtin_mul_overflow(result, *factor, &result);
  }
  if (isZero)
    return 0;
  return overflow ? std::nullopt : std::optional(result);
}

static Result<int64_t> countUnits(const EntrySchema &entry,
                                  const std::vector<LinearForm> &grid,
                                  const std::vector<int64_t> &symbols) {
  int64_t units = 1;
  bool overflow = false;
  for (const LinearForm &form : grid) {
    std::optional<int64_t> size = form.evaluate(symbols);
    if (size && *size < 0)
      return invalid(entry.name, ": expected the grid dimension ",
                     form.toString(entry.symbols), " to be at least 0, got ",
                     *size);
    if (size && *size == 0)
      return int64_t{0};
    overflow |= !size || __builtin_mul_overflow(units, *size, &units);
  }
  if (overflow)
    return invalid(entry.name, ": the number of units does not fit in 64 bits");
  return units;
}

static bool hasCounters(const VariantSchema &variant) {
  return std::any_of(variant.stages.begin(), variant.stages.end(),
                     [](const StageSchema &stage) {
                       return stage.launch && !stage.launch->counters.empty();
                     });
}

/// The most counters of any stage of any variant, in bytes. They share one
/// place, so that every variant finds what every other one left: zeros.
static std::optional<uint64_t>
countCounters(const CodeSchema &code, const std::vector<int64_t> &symbols) {
  int64_t most = 0;
  for (const VariantSchema &variant : code.variants)
    for (const StageSchema &stage : variant.stages) {
      if (!stage.launch || stage.launch->counters.empty())
        continue;
      std::optional<int64_t> count = evaluate(stage.launch->counters, symbols);
      if (!count || *count < 0 || *count > INT64_MAX / 8)
        return std::nullopt;
      most = std::max(most, *count);
    }
  return static_cast<uint64_t>(most) * sizeof(uint32_t);
}

/// Puts the counters and the regions one after another.
static void placeRegions(const VariantSchema &schema,
                         std::optional<uint64_t> counterBytes,
                         uint64_t reserved, const std::vector<int64_t> &symbols,
                         LaunchPlan::Variant &variant) {
  variant.workspaceBytes = std::nullopt;
  if (!counterBytes)
    return;
  variant.counterBytes = hasCounters(schema) ? *counterBytes : 0;
  int64_t end = 0;
  if (variant.counterBytes != 0 || !schema.workspace.empty())
    end = static_cast<int64_t>(
        (std::max(*counterBytes, reserved) + kWorkspaceAlignment - 1) /
        kWorkspaceAlignment * kWorkspaceAlignment);
  for (size_t i = 0; i < schema.workspace.size(); ++i) {
    std::optional<int64_t> bytes = evaluate(schema.workspace[i], symbols);
    constexpr int64_t kAlign = kWorkspaceAlignment;
    if (!bytes || *bytes < 0 || *bytes > INT64_MAX - kAlign)
      return;
    variant.regionOffsets[i] = static_cast<uint64_t>(end);
    if (__builtin_add_overflow(end, (*bytes + kAlign - 1) / kAlign * kAlign,
                               &end))
      return;
  }
  variant.workspaceBytes = static_cast<uint64_t>(end);
}

LaunchPlan::LaunchPlan(const EntrySchema &entry, const CodeSchema &code)
    : variants_(code.variants.size()),
      conditionSymbols_(entry.symbols.size() + 2) {
  for (size_t i = 0; i < variants_.size(); ++i) {
    hasRegions_ |= !code.variants[i].workspace.empty();
    hasCounters_ |= hasCounters(code.variants[i]);
    variants_[i].regionOffsets.resize(code.variants[i].workspace.size());
    variants_[i].stageUnits.resize(code.variants[i].stages.size());
  }
  // Which variant asks for nothing does not depend on any call, so neither do
  // the bits.
  while (firstCommon_ + 1 < variants_.size() &&
         !(code.variants[firstCommon_].conditions.empty() &&
           code.variants[firstCommon_].alternatives.empty() &&
           code.variants[firstCommon_].layouts.empty()))
    ++firstCommon_;
  for (size_t i = 0; i < variants_.size(); ++i) {
    variants_[i].isCommon =
        code.variants[i].bits == code.variants[firstCommon_].bits;
    variants_[i].isLaidOut = code.variants[i].layouts.empty();
  }
}

Status LaunchPlan::update(const EntrySchema &entry, const CodeSchema &code,
                          const std::vector<int64_t> &symbols, int workers) {
  *std::copy(symbols.begin(), symbols.end(), conditionSymbols_.begin()) =
      workers;
  if (expected_)
    conditionSymbols_[expectedSymbol_] = *expected_;
  counterBytes_ = countCounters(code, symbols);
  for (size_t i = 0; i < variants_.size(); ++i) {
    const VariantSchema &schema = code.variants[i];
    Variant &variant = variants_[i];
    for (size_t s = 0; s < schema.stages.size(); ++s) {
      Result<int64_t> units = countUnits(entry, schema.stages[s].grid, symbols);
      if (!units.isOk())
        return units.status();
      variant.stageUnits[s] = *units;
    }
    placeRegions(schema, counterBytes_, reservedBytes_, symbols, variant);
  }
  applyConditions(code);
  return {};
}

void LaunchPlan::applyConditions(const CodeSchema &code) {
  auto holds = [&](const std::vector<ConditionSchema> &conditions) {
    return std::all_of(conditions.begin(), conditions.end(),
                       [&](const ConditionSchema &condition) {
                         auto left =
                             evaluate(condition.left, conditionSymbols_);
                         auto right =
                             evaluate(condition.right, conditionSymbols_);
                         return left && right && *left <= *right;
                       });
  };
  for (size_t i = 0; i < variants_.size(); ++i) {
    const VariantSchema &schema = code.variants[i];
    const auto &some = schema.alternatives;
    variants_[i].applies =
        variants_[i].isLaidOut && holds(schema.conditions) &&
        (some.empty() || std::any_of(some.begin(), some.end(), holds));
    const auto &any = schema.anyBatch;
    variants_[i].appliesInAnyBatch =
        variants_[i].isLaidOut && std::any_of(any.begin(), any.end(), holds);
  }
}

void LaunchPlan::allowDependent(const CodeSchema &code, bool allowed) {
  conditionSymbols_.back() = allowed;
  applyConditions(code);
}

void LaunchPlan::expect(const CodeSchema &code, size_t symbol,
                        std::optional<int64_t> value,
                        const std::vector<int64_t> &symbols) {
  expectedSymbol_ = symbol;
  expected_ = value;
  conditionSymbols_[symbol] = value.value_or(symbols[symbol]);
  applyConditions(code);
}

/// Whether the variant has all memory that it needs.
static bool fits(const LaunchPlan::Variant &variant, uint64_t bytes,
                 uint64_t zeroBytes) {
  return variant.workspaceBytes && *variant.workspaceBytes <= bytes &&
         variant.counterBytes <= zeroBytes;
}

size_t LaunchPlan::choose(uint64_t bytes, uint64_t zeroBytes) const {
  for (size_t i = 0; i < variants_.size(); ++i)
    if (variants_[i].applies && fits(variants_[i], bytes, zeroBytes))
      return i;
  // The last variant needs nothing, unless it has counters: then the launch
  // says what is missing.
  return variants_.empty() ? 0 : variants_.size() - 1;
}

size_t LaunchPlan::chooseSameBits(const CodeSchema &code, uint64_t bytes,
                                  uint64_t zeroBytes) const {
  // Which bits these are depends on no size, and so not on the batch.
  const std::string *wanted = nullptr;
  size_t last = 0;
  for (size_t i = 0; i < variants_.size(); ++i) {
    const VariantSchema &schema = code.variants[i];
    if (schema.anyBatch.empty() || !variants_[i].isLaidOut ||
        (wanted && schema.bits != *wanted))
      continue;
    wanted = &schema.bits;
    last = i;
    if (variants_[i].appliesInAnyBatch && fits(variants_[i], bytes, zeroBytes))
      return i;
  }
  if (wanted)
    return last; // and the launch says what is missing
  for (size_t i = 0; i < variants_.size(); ++i)
    if (variants_[i].isCommon && variants_[i].applies &&
        fits(variants_[i], bytes, zeroBytes))
      return i;
  return firstCommon_; // and the launch says what is missing
}

uint64_t LaunchPlan::bytesToZero(uint64_t bytes) const {
  if (!hasCounters_)
    return 0;
  return hasRegions_ ? std::min(bytes, counterBytes_.value_or(0)) : bytes;
}
