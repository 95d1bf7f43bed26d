// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks each argument alone, then sizes against forms, then memory against
// memory. Everything goes into the `next` members first, so that a failed
// rebind leaves what was bound.

#include "gdnrt/binding.h"

#include "argument_checks.h"

#include <algorithm>

using namespace gdnrt;

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
  return batchInvariant_ ? plan.chooseSameBits(code_, bytes, zeroBytes)
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
