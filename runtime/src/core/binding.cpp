// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks each argument alone, then sizes against forms, then memory against
// memory. Everything goes into the `next` members first, so that a failed
// rebind leaves what was bound.

#include "gdnrt/binding.h"

#include <algorithm>

using namespace gdnrt;

namespace {

/// "[N, 2*Hv]" in messages about ranks.
std::string bracketed(const std::vector<std::string> &texts) {
  return "[" + joinNames(texts) + "]";
}

Status checkType(const ParamSchema &param, const Argument &arg) {
  if (arg.dtype != static_cast<int32_t>(param.dtype)) {
    bool known = arg.dtype >= 0 && arg.dtype <= static_cast<int>(DType::f64);
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
Status copyLayout(const ParamSchema &param, const Argument &arg,
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
  int last = arg.rank - 1;
  if (param.unitStrideLast && last >= 0 && !empty && bound.sizes[last] > 1 &&
      bound.strides[last] != 1)
    return invalid(param.name, ": expected stride 1 in dim ", last, ", got ",
                   bound.strides[last]);
  return {};
}

Status checkMemory(const ParamSchema &param, BoundParam &bound, bool empty) {
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

/// Everything that concerns one argument alone.
Status checkArgument(const ParamSchema &param, const Argument &arg,
                     BoundParam &bound) {
  bound = BoundParam();
  if (param.optional && !arg.data && arg.rank == 0)
    return {};
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
bool hasElements(const ParamSchema &param, const BoundParam &arg) {
  return arg.present && std::count(arg.sizes, arg.sizes + param.rank(), 0) == 0;
}

Status checkAddress(const ParamSchema &param, const BoundParam &arg,
                    uint32_t bytes) {
  if (uint64_t past = reinterpret_cast<uintptr_t>(arg.data) % bytes)
    return invalid(param.name, ": expected data aligned to ", bytes,
                   " bytes, got an address ", past, " past a multiple");
  return {};
}

Status checkStride(const ParamSchema &param, const BoundParam &arg, int dim,
                   uint32_t bytes) {
  int64_t stride = arg.strides[dim] * sizeInBytes(param.dtype);
  if (arg.sizes[dim] > 1 && stride % bytes != 0)
    return invalid(param.name, ": expected the stride of dim ", dim,
                   " to be a multiple of ", bytes, " bytes, got ", stride);
  return {};
}

/// What code asks beyond the alignment of elements, so that it can move
/// several of them at once.
Status checkAlignments(const EntrySchema &entry,
                       const std::vector<uint32_t> &alignments,
                       const std::vector<BoundParam> &bound) {
  for (size_t p = 0; p < alignments.size(); ++p) {
    const ParamSchema &param = entry.params[p];
    if (alignments[p] == 0 || !hasElements(param, bound[p]))
      continue;
    if (Status s = checkAddress(param, bound[p], alignments[p]); !s.isOk())
      return s;
    for (int d = 0; d + 1 < param.rank(); ++d)
      if (Status s = checkStride(param, bound[p], d, alignments[p]); !s.isOk())
        return s;
  }
  return {};
}

/// Whether the argument lies as a variant asks, in dimension `dim` or, where
/// that is none, from its address on.
bool liesAs(const ParamSchema &param, const BoundParam &arg,
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

/// Where an argument does not lie as a variant asks.
struct Misfit {
  size_t param;
  std::optional<int> dim;
};

/// The first one. Makes no text: most calls that find one go on without it.
std::optional<Misfit> findMisfit(const EntrySchema &entry,
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

Status describe(const Misfit &misfit, const EntrySchema &entry,
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

/// Memory that an entry writes belongs to one parameter alone.
Status checkAliasing(const EntrySchema &entry,
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

/// The workspace is written, so it belongs to no argument.
Status checkWorkspace(const EntrySchema &entry,
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

/// The rules of the entry that its sizes alone do not express.
Status checkMultiples(const EntrySchema &entry,
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

} // namespace

Binding::Binding(std::shared_ptr<const EntrySchema> entry,
                 const CodeSchema &code, int workers,
                 const TensorMapEncoder *encoder)
    : entry_(std::move(entry)), code_(code), workers_(workers),
      solver_(*entry_), params_(entry_->params.size()),
      nextParams_(entry_->params.size()), nextSizes_(entry_->params.size()),
      plan_(*entry_, code_), nextPlan_(*entry_, code_), maps_(code_, encoder),
      nextMaps_(code_, encoder),
      words_(entry_->numWords() + code_.mostRegions()),
      symbols_(entry_->symbols.size()) {}

Result<std::unique_ptr<Binding>>
Binding::make(std::shared_ptr<const EntrySchema> entry, const CodeSchema &code,
              const Argument *args, size_t count, int workers,
              const TensorMapEncoder *encoder) {
  if (count != entry->params.size())
    return invalid(entry->name, ": expected ", entry->params.size(),
                   " arguments, got ", count);
  std::unique_ptr<Binding> binding(
      new Binding(std::move(entry), code, workers, encoder));
  for (size_t i = 0; i < count; ++i)
    if (Status status = checkArgument(binding->entry_->params[i], args[i],
                                      binding->nextParams_[i]);
        !status.isOk())
      return status;
  if (Status status = binding->checkAll(); !status.isOk())
    return status;
  binding->commit();
  return binding;
}

Status Binding::rebind(const size_t *params, const Argument *args,
                       size_t count) {
  std::copy(params_.begin(), params_.end(), nextParams_.begin());
  for (size_t i = 0; i < count; ++i) {
    if (params[i] >= entry_->params.size())
      return invalid(entry_->name, ": parameter index ", params[i],
                     " is past the ", entry_->params.size(), " parameters");
    if (Status status = checkArgument(entry_->params[params[i]], args[i],
                                      nextParams_[params[i]]);
        !status.isOk())
      return status;
  }
  if (Status status = checkAll(); !status.isOk())
    return status;
  commit();
  return {};
}

Status Binding::checkAll() {
  for (size_t p = 0; p < nextParams_.size(); ++p)
    nextSizes_[p] = nextParams_[p].present ? nextParams_[p].sizes : nullptr;
  if (Status status = solver_.solve(nextSizes_); !status.isOk())
    return status;
  if (Status status = checkMultiples(*entry_, solver_.values()); !status.isOk())
    return status;
  if (Status status = checkAlignments(*entry_, code_.alignments, nextParams_);
      !status.isOk())
    return status;
  if (Status status = checkAliasing(*entry_, nextParams_); !status.isOk())
    return status;
  if (Status status = checkWorkspace(*entry_, nextParams_, workspace_.data,
                                     workspace_.bytes);
      !status.isOk())
    return status;
  tellLayouts(nextPlan_, nextParams_);
  if (Status status =
          nextPlan_.update(*entry_, code_, solver_.values(), workers_);
      !status.isOk())
    return status;
  return encodeNextMaps(nextPlan_, nextParams_, solver_.values(), workspace_);
}

/// Says of which variants' layouts the arguments are.
void Binding::tellLayouts(LaunchPlan &plan,
                          const std::vector<BoundParam> &params) const {
  for (size_t i = 0; i < code_.variants.size(); ++i)
    plan.setLaidOut(i, !findMisfit(*entry_, code_.variants[i], params));
}

/// Makes the maps of the variant that a launch takes with all of these.
Status Binding::encodeNextMaps(const LaunchPlan &plan,
                               const std::vector<BoundParam> &params,
                               const std::vector<int64_t> &symbols,
                               const Workspace &workspace) {
  if (!nextMaps_.areNeeded())
    return {};
  size_t index = choose(plan, workspace.bytes, workspace.zeroBytes);
  if (!workspace.fits(plan.variants()[index]))
    return {}; // no launch takes it
  return nextMaps_.encode(*entry_, code_, index, plan, params, symbols,
                          workspace.data);
}

void Binding::commit() {
  params_.swap(nextParams_);
  std::swap(plan_, nextPlan_);
  int64_t *word = words_.data();
  for (size_t p = 0; p < params_.size(); ++p) {
    const ParamSchema &schema = entry_->params[p];
    const BoundParam &bound = params_[p];
    *word++ = static_cast<int64_t>(reinterpret_cast<intptr_t>(bound.data));
    word = std::copy_n(bound.sizes, schema.rank(), word);
    word = std::copy_n(bound.strides, schema.rank(), word);
    if (schema.kind == ParamKind::pool)
      *word++ = bound.nullSlot;
  }
  std::copy(solver_.values().begin(), solver_.values().end(), word);
  symbols_ = solver_.values();
  takeVariant();
}

size_t Binding::choose(const LaunchPlan &plan, uint64_t bytes,
                       uint64_t zeroBytes) const {
  if (forced_)
    return *forced_;
  return batchInvariant_ ? plan.chooseSameBits(bytes, zeroBytes)
                         : plan.choose(bytes, zeroBytes);
}

void Binding::setBatchInvariant(bool wanted) {
  batchInvariant_ = wanted;
  chooseVariant();
}

void Binding::allowDependentLaunch(bool allowed) {
  if (std::exchange(dependentLaunch_, allowed) == allowed)
    return;
  plan_.allowDependent(code_, allowed);
  nextPlan_.allowDependent(code_, allowed);
  chooseVariant();
}

Status Binding::expectSequences(int64_t sequences) {
  auto flags = entry_->findParam("is_prefill");
  if (!flags || entry_->params[*flags].rank() != 1 ||
      entry_->params[*flags].dims[0].terms.size() != 1)
    return failure(StatusCode::unsupported, entry_->name,
                   ": expected a parameter is_prefill (--mixed-batch) for a "
                   "number of sequences to choose a variant by, got none");
  if (sequences < 0)
    return invalid("sequences: expected at least 0, got ", sequences);
  if (std::exchange(expectedSequences_, sequences) == sequences)
    return {};
  const size_t symbol = entry_->params[*flags].dims[0].terms[0].symbol;
  std::optional<int64_t> expected;
  if (sequences > 0)
    expected = sequences;
  plan_.expect(code_, symbol, expected, symbols_);
  nextPlan_.expect(code_, symbol, expected, symbols_);
  chooseVariant();
  return {};
}

/// Chooses again with what is bound; the launch says what went wrong.
void Binding::chooseVariant() {
  Status status = encodeNextMaps(plan_, params_, symbols_, workspace_);
  takeVariant();
  mapStatus_ = std::move(status);
}

/// Looks up what the next launch takes, whose maps are the next ones, and says
/// where its regions are.
void Binding::takeVariant() {
  std::swap(maps_, nextMaps_);
  mapStatus_ = Status();
  variant_ = choose(plan_, workspace_.bytes, workspace_.zeroBytes);
  int64_t *word = words_.data() + entry_->numWords();
  std::fill(word, words_.data() + words_.size(), 0);
  if (plan_.variants().empty() || !checkVariant().isOk())
    return;
  for (uint64_t offset : plan_.variants()[variant_].regionOffsets)
    *word++ = static_cast<int64_t>(
        reinterpret_cast<uintptr_t>(workspace_.data) + offset);
}

Status Binding::setWorkspace(void *data, uint64_t bytes) {
  return takeWorkspace({data, bytes, 0, plan_.bytesToZero(bytes)});
}

Status Binding::shareWorkspace(void *data, uint64_t bytes,
                               uint64_t counterBytes) {
  if (counterBytes > bytes || counterBytes % kWorkspaceAlignment != 0)
    return invalid("workspace: expected a multiple of ", kWorkspaceAlignment,
                   " bytes of counters, at most ", bytes, ", got ",
                   counterBytes);
  return takeWorkspace({data, bytes, counterBytes, counterBytes});
}

Status Binding::takeWorkspace(const Workspace &next) {
  if (!next.data && next.bytes != 0)
    return invalid("workspace: expected data, got a null pointer");
  if (uint64_t past =
          reinterpret_cast<uintptr_t>(next.data) % kWorkspaceAlignment)
    return invalid("workspace: expected data aligned to ", kWorkspaceAlignment,
                   " bytes, got an address ", past, " past a multiple");
  if (Status status = checkWorkspace(*entry_, params_, next.data, next.bytes);
      !status.isOk())
    return status;
  nextPlan_.reserveCounters(next.reservedBytes);
  tellLayouts(nextPlan_, params_);
  Status status = nextPlan_.update(*entry_, code_, symbols_, workers_);
  if (status.isOk())
    status = encodeNextMaps(nextPlan_, params_, symbols_, next);
  if (!status.isOk()) {
    nextPlan_.reserveCounters(workspace_.reservedBytes);
    return status;
  }
  workspace_ = next;
  std::swap(plan_, nextPlan_);
  nextPlan_.reserveCounters(next.reservedBytes);
  takeVariant();
  return {};
}

Status Binding::forceVariant(std::optional<size_t> index) {
  if (index && *index >= code_.variants.size())
    return invalid(entry_->name, ": variant index ", *index, " is past the ",
                   code_.variants.size(), " variants");
  forced_ = index;
  chooseVariant();
  return {};
}

Status Binding::checkVariant() const {
  const LaunchPlan::Variant &variant = plan_.variants()[variant_];
  const VariantSchema &schema = code_.variants[variant_];
  if (!variant.isLaidOut) // it was forced
    if (auto misfit = findMisfit(*entry_, schema, params_))
      return describe(*misfit, *entry_, schema, params_);
  if (workspace_.fits(variant))
    return mapStatus_;
  if (variant.workspaceBytes && *variant.workspaceBytes <= workspace_.bytes)
    return invalid(entry_->name, ": expected a workspace with ",
                   variant.counterBytes, " bytes of counters, got ",
                   workspace_.zeroBytes,
                   "; give it again after its sizes have grown");
  Result<uint64_t> needed = workspaceBytes();
  if (!needed.isOk())
    return needed.status();
  return invalid(entry_->name, ": expected a workspace of at least ", *needed,
                 " bytes for the variant ", code_.variants[variant_].name,
                 ", got ", workspace_.bytes);
}

int64_t Binding::units() const {
  int64_t units = 0;
  for (int64_t ofStage : plan_.variants()[variant_].stageUnits)
    if (__builtin_add_overflow(units, ofStage, &units))
      return INT64_MAX;
  return units;
}

Result<uint64_t> Binding::workspaceBytes() const {
  size_t wanted = choose(plan_, UINT64_MAX, UINT64_MAX);
  std::optional<uint64_t> bytes = plan_.variants()[wanted].workspaceBytes;
  if (!bytes)
    return invalid(entry_->name, ": the workspace of the variant ",
                   code_.variants[wanted].name,
                   " has a negative size or does not fit in memory");
  return *bytes;
}
