// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What arguments must be: each alone, beside the others, and as code asks.

#include "argument_checks.h"

#include <algorithm>

using namespace gdnrt;

/// "[N, 2*Hv]" in messages about ranks.
static std::string bracketed(const std::vector<std::string> &texts) {
  return "[" + joinNames(texts) + "]";
}

static Status checkType(const ParamSchema &param, const Argument &arg) {
  if (arg.dtype != static_cast<int32_t>(param.dtype)) {
    bool known = arg.dtype >= 0 && arg.dtype <= static_cast<int>(DType::u8);
    return invalid(param.name, ": expected dtype ", toString(param.dtype),
                   ", got ",
                   known ? std::string(toString(static_cast<DType>(arg.dtype)))
                         : "the unknown dtype " + std::to_string(arg.dtype));
  }
  if (arg.rank != param.rank())
    return invalid(param.name, ": expected rank ", param.rank(), " ",
                   bracketed(param.dimTexts), ", got ", arg.rank);
  if (arg.rank > 0 && !arg.sizes)
    return invalid(param.name, ": expected sizes, got a null pointer");
  return {};
}

/// Copies sizes and strides, making row-major strides where none are given.
static Status copyLayout(const ParamSchema &param, const Argument &arg,
                         BoundParam &bound, bool &empty) {
  empty = false;
  for (int d = 0; d < arg.rank; ++d) {
    if (arg.sizes[d] < 0)
      return invalid(param.name, ": expected dim ", d,
                     " to be at least 0, got ", arg.sizes[d]);
    bound.sizes[d] = arg.sizes[d];
    empty |= arg.sizes[d] == 0;
  }
  int64_t stride = 1;
  for (int d = arg.rank - 1; d >= 0; --d) {
    bound.strides[d] = arg.strides ? arg.strides[d] : stride;
    // An empty array has no element to reach, so its strides say nothing.
    if (!arg.strides && !empty &&
        __builtin_mul_overflow(stride, arg.sizes[d], &stride))
      return invalid(param.name, ": the elements do not fit in memory");
  }
  int inner = param.innermost();
  if ((param.unitStrideLast || param.unitStrideDim) && inner >= 0 && !empty &&
      bound.sizes[inner] > 1 && bound.strides[inner] != 1)
    return invalid(param.name, ": expected stride 1 in dim ", inner, ", got ",
                   bound.strides[inner]);
  return {};
}

static Status checkMemory(const ParamSchema &param, BoundParam &bound,
                          bool empty) {
  int64_t bytes = sizeInBytes(param.dtype);
  if (!empty && !bound.data)
    return invalid(param.name, ": expected data, got a null pointer");
  if (uintptr_t past = reinterpret_cast<uintptr_t>(bound.data) %
                       static_cast<uintptr_t>(bytes))
    return invalid(param.name, ": expected data aligned to ", bytes,
                   " bytes for ", toString(param.dtype), ", got an address ",
                   past, " past a multiple");
  std::optional<Footprint> footprint = Footprint::make(
      bound.data, bytes, param.rank(), bound.sizes, bound.strides);
  if (!footprint)
    return invalid(param.name, ": the elements do not fit in memory");
  bound.footprint = *footprint;
  if (!param.isWritten())
    return {};
  if (auto overlap = footprint->findSelfOverlap())
    return invalid(param.name, ": expected elements that share no memory, as ",
                   param.name, " is written, but the stride of dim ",
                   overlap->dim, " is ", overlap->stride / bytes,
                   " and the dims inside it span ",
                   overlap->innerBytes / bytes);
  return {};
}

Status gdnrt::checkArgument(const ParamSchema &param, const Argument &arg,
                            BoundParam &bound) {
  bound = BoundParam();
  if (param.optional && !arg.data && arg.rank == 0)
    return {};
  // What no caller has filled in.
  if (!arg.data && arg.rank == 0 && param.rank() > 0)
    return invalid(param.name, ": the argument is missing");
  if (Status status = checkType(param, arg); !status.isOk())
    return status;
  bool empty;
  if (Status status = copyLayout(param, arg, bound, empty); !status.isOk())
    return status;
  bound.present = true;
  bound.data = arg.data;
  bound.nullSlot = arg.nullSlot;
  return checkMemory(param, bound, empty);
}

/// Whether an argument has elements, so that it matters how they lie.
static bool hasElements(const ParamSchema &param, const BoundParam &arg) {
  return arg.present && std::count(arg.sizes, arg.sizes + param.rank(), 0) == 0;
}

static Status checkAddress(const ParamSchema &param, const BoundParam &arg,
                           uint32_t bytes) {
  if (uint64_t past = reinterpret_cast<uintptr_t>(arg.data) % bytes)
    return invalid(param.name, ": expected data aligned to ", bytes,
                   " bytes, got an address ", past, " past a multiple");
  return {};
}

static Status checkStride(const ParamSchema &param, const BoundParam &arg,
                          int dim, uint32_t bytes) {
  int64_t stride = arg.strides[dim] * sizeInBytes(param.dtype);
  if (arg.sizes[dim] > 1 && stride % bytes != 0)
    return invalid(param.name, ": expected the stride of dim ", dim,
                   " to be a multiple of ", bytes, " bytes, got ", stride);
  return {};
}

Status gdnrt::checkAlignments(const EntrySchema &entry,
                              const std::vector<uint32_t> &alignments,
                              const std::vector<BoundParam> &bound) {
  for (size_t p = 0; p < alignments.size(); ++p) {
    const ParamSchema &param = entry.params[p];
    if (alignments[p] == 0 || !hasElements(param, bound[p]))
      continue;
    if (Status s = checkAddress(param, bound[p], alignments[p]); !s.isOk())
      return s;
    for (int d = 0; d < param.rank(); ++d) {
      if (d == param.innermost())
        continue;
      if (Status s = checkStride(param, bound[p], d, alignments[p]); !s.isOk())
        return s;
    }
  }
  return {};
}

/// Whether the argument lies as a variant asks, in dimension `dim` or, where
/// that is none, from its address on.
static bool liesAs(const ParamSchema &param, const BoundParam &arg,
                   const LayoutSchema &layout, std::optional<int> dim) {
  uint32_t bytes = std::max(layout.alignment, 1U);
  if (!dim)
    return reinterpret_cast<uintptr_t>(arg.data) % bytes == 0;
  if (arg.sizes[*dim] <= 1)
    return true;
  int64_t wanted = layout.strides.empty() ? 0 : layout.strides[*dim];
  if (wanted != 0)
    return arg.strides[*dim] == wanted;
  return arg.strides[*dim] * sizeInBytes(param.dtype) % bytes == 0;
}

std::optional<Misfit> gdnrt::findMisfit(const EntrySchema &entry,
                                        const VariantSchema &variant,
                                        const std::vector<BoundParam> &bound) {
  for (size_t p = 0; p < variant.layouts.size(); ++p) {
    const ParamSchema &param = entry.params[p];
    const LayoutSchema &layout = variant.layouts[p];
    if (!hasElements(param, bound[p]))
      continue;
    if (!liesAs(param, bound[p], layout, std::nullopt))
      return Misfit{p, std::nullopt};
    for (int d = 0; d < param.rank(); ++d)
      if (!liesAs(param, bound[p], layout, d))
        return Misfit{p, d};
  }
  return std::nullopt;
}

Status gdnrt::describe(const Misfit &misfit, const EntrySchema &entry,
                       const VariantSchema &variant,
                       const std::vector<BoundParam> &bound) {
  const ParamSchema &param = entry.params[misfit.param];
  const BoundParam &arg = bound[misfit.param];
  const LayoutSchema &layout = variant.layouts[misfit.param];
  Status status;
  if (!misfit.dim)
    status = checkAddress(param, arg, layout.alignment);
  else if (layout.strides.empty() || layout.strides[*misfit.dim] == 0)
    status = checkStride(param, arg, *misfit.dim, layout.alignment);
  else
    status =
        invalid(param.name, ": expected stride ", layout.strides[*misfit.dim],
                " in dim ", *misfit.dim, ", got ", arg.strides[*misfit.dim]);
  return invalid(entry.name, ", variant ", variant.name, ": ",
                 status.message());
}

Status gdnrt::checkAliasing(const EntrySchema &entry,
                            const std::vector<BoundParam> &bound) {
  for (size_t w = 0; w < bound.size(); ++w) {
    if (!entry.params[w].isWritten())
      continue;
    for (size_t other = 0; other < bound.size(); ++other) {
      // A pair of written parameters is looked at once.
      if (other == w || (entry.params[other].isWritten() && other < w))
        continue;
      if (Footprint::mayOverlap(bound[w].footprint, bound[other].footprint))
        return invalid(entry.params[w].name, ": the memory overlaps that of ",
                       entry.params[other].name, ", but ", entry.params[w].name,
                       " is written");
    }
  }
  return {};
}

Status gdnrt::checkWorkspace(const EntrySchema &entry,
                             const std::vector<BoundParam> &bound, void *data,
                             uint64_t bytes) {
  if (bytes == 0)
    return {};
  int64_t size = static_cast<int64_t>(bytes), stride = 1;
  std::optional<Footprint> memory = Footprint::make(data, 1, 1, &size, &stride);
  if (size < 0 || !memory)
    return invalid("workspace: ", bytes, " bytes do not fit in memory");
  for (size_t p = 0; p < bound.size(); ++p)
    if (Footprint::mayOverlap(*memory, bound[p].footprint))
      return invalid("workspace: the memory overlaps that of ",
                     entry.params[p].name);
  return {};
}

Status gdnrt::checkMultiples(const EntrySchema &entry,
                             const std::vector<int64_t> &symbols) {
  for (const MultipleRule &rule : entry.multiples) {
    std::optional<int64_t> value = rule.value.evaluate(symbols);
    std::optional<int64_t> of = rule.of.evaluate(symbols);
    if (value && of && (*of > 0 ? *value % *of == 0 : *value == 0))
      continue;
    return invalid(entry.name, ": expected ",
                   rule.value.toString(entry.symbols), " to be a multiple of ",
                   rule.of.toString(entry.symbols), ", got ",
                   value ? *value : 0, " and ", of ? *of : 0);
  }
  return {};
}
