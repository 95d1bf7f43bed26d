// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A layer: maps of segments, their product, the exchange, states, outputs.
// docs/design/20261129-combine-maps.md has the arrays.

#include "gdnrt/context_plan.h"

#include "gdnrt/slot_check.h"

#include <algorithm>
#include <numeric>
#include <utility>

using namespace gdnrt;

namespace {

constexpr const char *kMapsVariant = "segment-maps";
/// What the runtime asks of a workspace, and more than code asks of arrays.
constexpr uint64_t kAlignment = 256;
/// More than a device has, so that sums of sizes are numbers of 64 bits.
constexpr uint64_t kMostBytes = uint64_t{1} << 48;

/// Sizes that an entry fixes, of a parameter; fails if there are none.
Status takeFixed(const EntrySchema &entry, const char *name, int dim,
                 int64_t &size) {
  const auto found = entry.findParam(name);
  const ParamSchema *param = found ? &entry.params[*found] : nullptr;
  if (!param || param->rank() <= dim || !param->dims[dim].terms.empty())
    return failure(StatusCode::unsupported, entry.name, ": ", name,
                   ": expected the array that --combine-maps makes, got "
                   "another one");
  size = param->dims[dim].constant;
  return {};
}

Argument toArgument(const gdnrt_arg &given) {
  Argument made;
  made.data = given.data;
  made.dtype = given.dtype;
  made.rank = given.rank;
  made.sizes = given.sizes;
  made.strides = given.strides;
  made.nullSlot = given.null_slot;
  return made;
}

/// The first two sizes of an array, as a plan knows them.
Status checkSizes(const char *name, const gdnrt_arg &arg, int64_t rows,
                  int64_t heads) {
  if (arg.rank < 2 || arg.rank > kMaxRank)
    return invalid(name, ": expected an array of 2 to ", kMaxRank,
                   " dimensions, got rank ", arg.rank);
  if (!arg.sizes)
    return invalid(name, ": expected sizes, got null");
  if (arg.sizes[0] != rows)
    return invalid(name, ": expected ", rows, " rows, those of the plan, got ",
                   arg.sizes[0]);
  if (heads != 0 && arg.sizes[1] != heads)
    return invalid(name, ": expected ", heads,
                   " heads, those of the plan, got ", arg.sizes[1]);
  return {};
}

} // namespace

uint64_t ContextPlan::Array::bytes() const {
  uint64_t bytes = static_cast<uint64_t>(sizeInBytes(dtype));
  for (int64_t size : sizes)
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes))
      return kMostBytes;
  return std::min(bytes, kMostBytes);
}

Argument ContextPlan::argument(const Array &array) const {
  Argument made;
  made.data = array.data;
  made.dtype = static_cast<int32_t>(array.dtype);
  made.rank = static_cast<int32_t>(array.sizes.size());
  made.sizes = array.sizes.data();
  made.nullSlot = -1;
  return made;
}

Status ContextKernels::takeSizes() {
  if (Status s = takeFixed(*apply->entry, "constant", 2, dv); !s.isOk())
    return s;
  if (Status s = takeFixed(*apply->entry, "constant", 3, dk); !s.isOk())
    return s;
  const auto &variants = prefill->code->schema().variants;
  auto found =
      std::find_if(variants.begin(), variants.end(), [](const auto &variant) {
        return variant.name.rfind(kMapsVariant, 0) == 0;
      });
  if (found == variants.end())
    return failure(StatusCode::notFound, prefill->entry->name,
                   ": expected the variant ", kMapsVariant,
                   " (gdn-compile --segment-maps), got code without it");
  mapsVariant = static_cast<size_t>(found - variants.begin());
  return {};
}

/// One block of memory for all arrays; those that runs only read are filled.
Status ContextPlan::takeMemory(const ContextSegments &segments) {
  const int64_t m = segments.segments(), n = segments.sequences();
  const int64_t ranks = exchange_->size(), rows = dv_ + dk_;
  sequences_ = n;
  constant_ = {DType::f32, {m, heads_, dv_, dk_}};
  linear_ = {DType::f32, {m, heads_, dk_, dk_}};
  states_ = constant_;
  own_ = {DType::f32, {n, heads_, rows, dk_}};
  gathered_ = {DType::f32, {ranks, n, heads_, rows, dk_}};
  starts_ = {DType::i32, {m + 1}};
  places_ = {DType::i32, {m}};
  flags_ = {DType::i1, {m}};
  first_ = count_ = readSlots_ = writeSlots_ = {DType::i32, {n}};
  rank_ = {DType::i32, {1}};
  sentBytes_ = own_.bytes();
  const int64_t k = segments.checkpoints();
  kept_ = {DType::f32, {k, heads_, rows, dk_}};
  allKept_ = {DType::f32, {1, ranks * k, heads_, rows, dk_}};
  keptFirst_ = keptCount_ = {DType::i32, {k}};
  keptNone_ = keptStarts_ = keptSlots_ = {DType::i32, {ranks * k}};
  firstRank_ = rank_;
  keptBytes_ = kept_.bytes();
  // The maps of segments are where a workspace begins, one behind the other.
  uint64_t bytes = constant_.bytes() + linear_.bytes();
  const std::vector<Array *> apart = {
      &states_,    &gathered_,  &starts_,    &places_,    &flags_,
      &first_,     &count_,     &rank_,      &readSlots_, &writeSlots_,
      &allKept_,   &keptFirst_, &keptCount_, &keptNone_,  &keptStarts_,
      &keptSlots_, &firstRank_};
  std::vector<uint64_t> places;
  for (Array *array : apart) {
    bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    places.push_back(bytes);
    bytes += array->bytes();
  }
  if (bytes >= kMostBytes)
    return failure(StatusCode::outOfMemory, "context plan: no memory for ", m,
                   " segments of ", heads_, " heads of ", dk_, " x ", dv_);
  auto memory = device_->allocate(bytes);
  if (!memory.isOk())
    return memory.status();
  memory_ = std::shared_ptr<void>(
      *memory, [device = device_](void *data) { (void)device->free(data); });
  bytes_ = bytes;
  char *base = static_cast<char *>(*memory);
  constant_.data = base;
  linear_.data = base + constant_.bytes();
  for (size_t i = 0; i < apart.size(); ++i)
    apart[i]->data = base + places[i];
  own_.data = static_cast<char *>(gathered_.data) +
              static_cast<uint64_t>(exchange_->rank()) * own_.bytes();
  kept_.data = static_cast<char *>(allKept_.data) +
               static_cast<uint64_t>(exchange_->rank()) * keptBytes_;

  // A rank with fewer checkpoints sends maps of no segments, which go nowhere.
  std::vector<int32_t> keptCount(segments.checkpointSegments.size(), 1),
      keptFirst = segments.checkpointSegments, keptSlots;
  keptFirst.resize(static_cast<size_t>(k));
  keptCount.resize(static_cast<size_t>(k));
  for (const std::vector<int64_t> &ofRank : segments.checkpointSlots) {
    keptSlots.insert(keptSlots.end(), ofRank.begin(), ofRank.end());
    keptSlots.resize(keptSlots.size() + static_cast<size_t>(k) - ofRank.size(),
                     -1);
  }
  auto narrow = [](const std::vector<int64_t> &values) {
    return std::vector<int32_t>(values.begin(), values.end());
  };
  const std::vector<std::pair<Array *, std::vector<int32_t>>> filled = {
      {&starts_, segments.starts},
      {&places_, segments.places},
      {&first_, segments.first},
      {&count_, segments.count},
      {&rank_, {exchange_->rank()}},
      {&readSlots_, narrow(segments.readSlots)},
      {&writeSlots_, narrow(segments.writeSlots)},
      {&keptFirst_, keptFirst},
      {&keptCount_, keptCount},
      {&keptNone_, std::vector<int32_t>(keptSlots.size())},
      {&keptStarts_, std::vector<int32_t>(keptSlots.size(), -1)},
      {&keptSlots_, keptSlots},
      {&firstRank_, {0}}};
  for (const auto &[array, values] : filled)
    if (!values.empty())
      if (Status s = device_->write(array->data, values.data(), array->bytes());
          !s.isOk())
        return s;
  const std::vector<uint8_t> ones(static_cast<size_t>(m), 1);
  return device_->write(flags_.data, ones.data(), ones.size());
}

std::unique_ptr<ContextPlan> ContextPlan::begin(const ContextKernels &kernels,
                                                const ContextBatch &batch) {
  auto plan = std::make_unique<ContextPlan>();
  plan->device_ = kernels.device;
  plan->exchange_ = kernels.exchange;
  plan->heads_ = batch.heads;
  plan->slots_ = batch.slots;
  plan->tokens_ = batch.tokens;
  plan->nullSlot_ = batch.nullSlot;
  plan->dk_ = kernels.dk;
  plan->dv_ = kernels.dv;
  plan->mapsVariant_ = kernels.mapsVariant;
  plan->maps_.kernel = plan->outputs_.kernel = kernels.prefill;
  plan->combine_.kernel = plan->keep_.kernel = kernels.combine;
  plan->apply_.kernel = plan->restore_.kernel = kernels.apply;
  return plan;
}

Result<std::unique_ptr<ContextPlan>>
ContextPlan::make(const ContextKernels &kernels, const ContextBatch &batch,
                  Status status) {
  Exchange &exchange = *kernels.exchange;
  std::unique_ptr<ContextPlan> plan;
  ContextAgreement agreement(batch);
  // A round that a rank takes part in has its memory ahead of it, so that no
  // rank waits for one that has none.
  if (status.isOk())
    status = withoutThrow([&] {
      plan = begin(kernels, batch);
      Status fits = batch.check();
      return fits.isOk() ? agreement.prepare(kernels.device, exchange) : fits;
    });
  if (Status s = kernels.heads->agree(batch.head(), std::move(status));
      !s.isOk())
    return s;
  if (Status s = agreement.gather(); !s.isOk())
    return s;
  status = withoutThrow([&]() -> Status {
    auto lengths = agreement.lengths();
    if (!lengths.isOk())
      return lengths.status();
    const ContextSegments segments =
        cutSegments(batch, static_cast<size_t>(exchange.rank()), *lengths);
    Status fits = segments.check();
    return fits.isOk() ? plan->takeMemory(segments) : fits;
  });
  if (Status s = kernels.heads->agree(batch.head(), std::move(status));
      !s.isOk())
    return s;
  return plan;
}

/// Binds the parameters of the entry to those of `given` that it has.
Status ContextPlan::bind(Launch &launch, const Named &given) {
  const LoadedKernel &kernel = *launch.kernel;
  std::vector<Argument> arguments;
  for (const ParamSchema &param : kernel.entry->params) {
    auto found =
        std::find_if(given.begin(), given.end(), [&](const auto &each) {
          return param.name == each.first;
        });
    if (found == given.end() && !param.optional)
      return failure(StatusCode::unsupported, kernel.entry->name, ": ",
                     param.name,
                     ": expected the parameters of a rule alone "
                     "(--layout=ready), got another one");
    arguments.push_back(found == given.end() ? Argument() : found->second);
  }
  if (launch.binding)
    return launch.binding->rebind(launch.order.data(), arguments.data(),
                                  arguments.size());
  launch.order.resize(arguments.size());
  std::iota(launch.order.begin(), launch.order.end(), size_t{0});
  auto made = Binding::make(
      kernel.entry, kernel.code->schema(), arguments.data(), arguments.size(),
      kernel.device->properties().numWorkers, kernel.code->tensorMapEncoder());
  if (made.isOk())
    launch.binding = std::move(*made);
  return made.status();
}

/// Where maps of segments go: into memory of the plan, or, where their kernel
/// needs chunks behind them, into memory for a launch of it.
Status ContextPlan::placeMaps(bool isCapturing) {
  Binding &binding = *maps_.binding;
  auto needed = binding.workspaceBytes();
  if (!needed.isOk())
    return needed.status();
  const uint64_t maps = constant_.bytes() + linear_.bytes();
  if (!binding.workspace() && *needed <= maps)
    if (Status s = binding.setWorkspace(constant_.data, maps); !s.isOk())
      return s;
  if (binding.hasPlace())
    return binding.checkVariant();
  if (isCapturing)
    return failure(StatusCode::unsupported,
                   "context plan: expected a run ahead of the capture: ",
                   binding.checkVariant().message());
  auto memory = device_->allocate(*needed);
  if (!memory.isOk())
    return memory.status();
  // Graphs and launches may have what was there before.
  chunks_.emplace_back(
      *memory, [device = device_](void *data) { (void)device->free(data); });
  bytes_ += *needed;
  constant_.data = *memory;
  linear_.data = static_cast<char *>(*memory) + constant_.bytes();
  if (Status s = binding.setWorkspace(*memory, *needed); !s.isOk())
    return s;
  return binding.checkVariant();
}

Status ContextPlan::bindAll(const gdnrt_context_args &args, bool isCapturing) {
  for (auto [name, arg] : {std::pair("q", &args.q), {"k", &args.k}})
    if (Status s = checkSizes(name, *arg, tokens_, 0); !s.isOk())
      return s;
  for (auto [name, arg] : {std::pair("v", &args.v),
                           {"log_decay", &args.log_decay},
                           {"beta", &args.beta},
                           {"out", &args.out}})
    if (Status s = checkSizes(name, *arg, tokens_, heads_); !s.isOk())
      return s;
  if (Status s = checkSizes("state_pool", args.state_pool, slots_, heads_);
      !s.isOk())
    return s;
  if (args.state_pool.null_slot != nullSlot_)
    return invalid("state_pool: expected the null slot ", nullSlot_,
                   ", that of the plan, got ", args.state_pool.null_slot);
  const Named tokens = {{"q", toArgument(args.q)},
                        {"k", toArgument(args.k)},
                        {"v", toArgument(args.v)},
                        {"log_decay", toArgument(args.log_decay)},
                        {"beta", toArgument(args.beta)},
                        {"cu_seqlens", argument(starts_)},
                        {"slots", argument(places_)},
                        {"write_slots", argument(places_)},
                        {"has_initial", argument(flags_)},
                        {"state_pool", argument(states_)},
                        {"core", toArgument(args.out)}};
  if (Status s = bind(outputs_, tokens); !s.isOk())
    return s;
  if (sequences_ == 0)
    return {};
  const bool isFirst = !maps_.binding;
  if (Status s = bind(maps_, tokens); !s.isOk())
    return s;
  if (isFirst)
    if (Status s = maps_.binding->forceVariant(mapsVariant_); !s.isOk())
      return s;
  if (Status s = placeMaps(isCapturing); !s.isOk())
    return s;
  Named segments = {{"constant", argument(constant_)},
                    {"linear", argument(linear_)},
                    {"first_segments", argument(first_)},
                    {"num_segments", argument(count_)},
                    {"maps", argument(own_)}};
  if (Status s = bind(combine_, segments); !s.isOk())
    return s;
  segments.back().second = argument(gathered_);
  segments.insert(segments.end(), {{"rank", argument(rank_)},
                                   {"slots", argument(readSlots_)},
                                   {"write_slots", argument(writeSlots_)},
                                   {"state_pool", toArgument(args.state_pool)},
                                   {"states", argument(states_)}});
  if (Status s = bind(apply_, segments); !s.isOk() || keptBytes_ == 0)
    return s;
  // Behind the outputs these are the states after segments. As maps of one
  // segment each they are what is sent; of nothing such a map makes the state.
  const Named kept = {{"constant", argument(states_)},
                      {"linear", argument(linear_)},
                      {"first_segments", argument(keptFirst_)},
                      {"num_segments", argument(keptCount_)},
                      {"maps", argument(kept_)}};
  if (Status s = bind(keep_, kept); !s.isOk())
    return s;
  return bind(restore_, {{"constant", argument(constant_)},
                         {"linear", argument(linear_)},
                         {"first_segments", argument(keptNone_)},
                         {"num_segments", argument(keptNone_)},
                         {"maps", argument(allKept_)},
                         {"rank", argument(firstRank_)},
                         {"slots", argument(keptStarts_)},
                         {"write_slots", argument(keptSlots_)},
                         {"state_pool", toArgument(args.state_pool)},
                         {"states", argument(states_)}});
}

/// Memory that the outputs need to work in.
Status ContextPlan::prepare(const LaunchStream &stream) {
  Binding &binding = *outputs_.binding;
  if (Status s = workspaces_.give(*device_, binding, stream); !s.isOk())
    return s;
  if (Status s = workspaces_.prefer(device_, binding, stream); !s.isOk())
    return s;
  Status fits = binding.checkVariant();
  if (fits.isOk() || binding.hasPlace())
    return fits;
  if (stream.capturing)
    return failure(
        StatusCode::unsupported,
        "context plan: expected a run ahead of the capture: ", fits.message());
  return workspaces_.take(device_, binding, stream.stream);
}

Status ContextPlan::launch(Launch &launch, const LaunchStream &stream) {
  const LoadedKernel &kernel = *launch.kernel;
  const Range range(device_->ranges(), kernel.entry->name.c_str());
  return kernel.code->launch(*launch.binding, stream.stream, stream.capturing);
}

Status ContextPlan::run(const gdnrt_context_args &args, void *stream) {
  auto capturing = device_->isCapturing(stream);
  if (!capturing.isOk())
    return capturing.status();
  const LaunchStream ordered = {stream, *capturing};
  if (Status s = bindAll(args, *capturing); !s.isOk())
    return s;
  if (Status s = prepare(ordered); !s.isOk())
    return s;
  if (*capturing)
    for (const std::shared_ptr<const void> &kept :
         {std::shared_ptr<const void>(memory_), workspaces_.kept(ordered),
          chunks_.empty() ? std::shared_ptr<const void>()
                          : std::shared_ptr<const void>(chunks_.back())})
      if (kept)
        if (Status s = device_->keepForGraph(stream, kept); !s.isOk())
          return s;
  if (sequences_ != 0) {
    if (Status s = launch(maps_, ordered); !s.isOk())
      return s;
    if (Status s = launch(combine_, ordered); !s.isOk())
      return s;
    if (Status s =
            exchange_->allGather(own_.data, gathered_.data, sentBytes_, stream);
        !s.isOk())
      return s;
    if (Status s = launch(apply_, ordered); !s.isOk())
      return s;
  }
  if (Status s = launch(outputs_, ordered); !s.isOk() || keptBytes_ == 0)
    return s;
  if (Status s = launch(keep_, ordered); !s.isOk())
    return s;
  if (Status s =
          exchange_->allGather(kept_.data, allKept_.data, keptBytes_, stream);
      !s.isOk())
    return s;
  return launch(restore_, ordered);
}
