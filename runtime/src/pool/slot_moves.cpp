// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A slot is a launch, or one for each layer, whose ids are in the table. Ids of
// many slots go to the device in one copy, layer by layer, as memory lies: in
// the order of the table eight slots take 2 % longer on an H200. Where no ids
// can go there, in a capture or on another stream than before, each range of
// slots is a launch.

#include "slot_moves.h"

#include <algorithm>
#include <limits>
#include <numeric>

using namespace gdnrt;

namespace {

constexpr Argument LayerViews::*kBuffers[] = {
    &LayerViews::state, &LayerViews::conv, &LayerViews::scales,
    &LayerViews::low};

int64_t elementBytes(const Argument &view) {
  return sizeInBytes(static_cast<DType>(view.dtype));
}

/// The bytes from one layer of a buffer to the next, 0 if they differ or layers
/// go down in memory.
int64_t layerDistance(const std::vector<LayerViews> &layers,
                      Argument LayerViews::*buffer) {
  auto address = [&](size_t layer) {
    return reinterpret_cast<intptr_t>((layers[layer].*buffer).data);
  };
  const int64_t distance = address(1) - address(0);
  for (size_t layer = 2; layer < layers.size(); ++layer)
    if (address(layer) - address(layer - 1) != distance)
      return 0;
  return std::max<int64_t>(distance, 0);
}

/// The bytes from the first element of a slot to the end of its last.
int64_t slotExtent(const Argument &view) {
  int64_t last = 0;
  for (int32_t d = 1; d < view.rank; ++d)
    last += (view.sizes[d] - 1) * view.strides[d];
  return (last + 1) * elementBytes(view);
}

} // namespace

std::optional<JoinedLayers>
gdnrt::joinLayers(const std::vector<LayerViews> &layers) {
  if (layers.size() < 2)
    return std::nullopt;
  JoinedLayers joined;
  joined.count = layers.size();
  for (auto buffer : kBuffers) {
    const Argument &view = layers[0].*buffer;
    if (!view.data) {
      joined.distances.push_back(0);
      continue;
    }
    const int64_t slots = view.strides[0] * elementBytes(view);
    const int64_t distance = layerDistance(layers, buffer);
    if (slots <= 0 || distance <= 0)
      return std::nullopt;
    const int64_t unit = std::gcd(slots, distance);
    const int64_t most =
        (view.sizes[0] - 1) * (slots / unit) +
        (static_cast<int64_t>(joined.count) - 1) * (distance / unit);
    if (unit % elementBytes(view) != 0 || unit < slotExtent(view) ||
        most >= std::numeric_limits<int32_t>::max())
      return std::nullopt;
    if (joined.numSlots == 0) {
      joined.slotStep = slots / unit;
      joined.layerStep = distance / unit;
      joined.numSlots = most + 1;
    }
    if (joined.slotStep != slots / unit ||
        joined.layerStep != distance / unit || joined.numSlots != most + 1)
      return std::nullopt;
    joined.distances.push_back(unit);
  }
  return joined.numSlots == 0 ? std::nullopt : std::optional(joined);
}

/// The layers as kernels take them: one where they are joined.
std::vector<LayerViews>
SlotMoves::viewsOf(const std::vector<LayerViews> &layers) {
  auto joined = joinLayers(layers);
  if (!joined)
    return layers;
  joined_ = *joined;
  LayerViews all = layers[0];
  for (size_t i = 0; i < std::size(kBuffers); ++i) {
    Argument &view = all.*kBuffers[i];
    if (!view.data)
      continue;
    auto &sizes = shapes_.emplace_back(view.sizes, view.sizes + view.rank);
    auto &strides =
        shapes_.emplace_back(view.strides, view.strides + view.rank);
    sizes[0] = joined_.numSlots;
    strides[0] = joined_.distances[i] / elementBytes(view);
    view.sizes = sizes.data();
    view.strides = strides.data();
  }
  return {all};
}

/// The id of a slot in the array of all layers.
int32_t SlotMoves::placeOf(int32_t slot, size_t layer) const {
  return static_cast<int32_t>(slot * joined_.slotStep +
                              static_cast<int64_t>(layer) * joined_.layerStep);
}

/// The table, and room for ids.
Status SlotMoves::makeTable(int64_t numSlots) {
  table_.reserve(static_cast<size_t>(numSlots) * joined_.count);
  for (int32_t slot = 0; slot < numSlots; ++slot)
    for (size_t layer = 0; layer < joined_.count; ++layer)
      table_.push_back(placeOf(slot, layer));
  ids_.resize(2 * kMostSlots * joined_.count);
  if (device_->properties().hostReadable)
    return {};
  auto memory =
      device_->allocate((table_.size() + ids_.size()) * sizeof(int32_t));
  if (!memory.isOk())
    return memory.status();
  onDevice_ = static_cast<int32_t *>(*memory);
  if (Status s = device_->upload(onDevice_, table_.data(),
                                 table_.size() * sizeof(int32_t), nullptr);
      !s.isOk())
    return s;
  return device_->synchronize(nullptr);
}

Status SlotMoves::bind(Moves &moves, std::shared_ptr<LoadedKernel> kernel,
                       const std::vector<LayerViews> &layers,
                       std::initializer_list<const char *> ids) {
  const EntrySchema &entry = *kernel->entry;
  std::vector<Argument> arguments(entry.params.size());
  for (const char *name : ids) {
    auto param = entry.findParam(name);
    if (!param)
      return unknownParam(entry, name);
    if (entry.params[*param].dtype != DType::i32)
      return failure(StatusCode::unsupported, entry.name, ": ", name,
                     ": expected an entry with ids of i32, got ",
                     toString(entry.params[*param].dtype));
    Argument &argument = arguments[*param];
    // Bindings do not write what the entry only reads.
    argument.data =
        onDevice_ ? onDevice_ : const_cast<int32_t *>(table_.data());
    argument.dtype = static_cast<int32_t>(DType::i32);
    argument.rank = 1;
    argument.sizes = &size_;
    moves.params.push_back(*param);
  }
  if (!entry.findParam("state_pool"))
    return unknownParam(entry, "state_pool");
  moveWindows_ &= entry.findParam("conv_pool").has_value();
  for (const LayerViews &layer : layers) {
    for (auto [name, view] : {std::pair("state_pool", &layer.state),
                              {"conv_pool", &layer.conv},
                              {"state_scales", &layer.scales},
                              {"state_low", &layer.low}})
      if (auto param = entry.findParam(name))
        arguments[*param] = *view;
    auto bound =
        Binding::make(kernel->entry, kernel->code->schema(), arguments.data(),
                      arguments.size(), device_->properties().numWorkers,
                      kernel->code->tensorMapEncoder());
    if (!bound.isOk())
      return bound.status();
    if (Status s = (*bound)->checkVariant(); !s.isOk())
      return s;
    moves.layers.push_back(std::move(*bound));
  }
  moves.kernel = std::move(kernel);
  return {};
}

Result<std::unique_ptr<SlotMoves>>
SlotMoves::make(std::shared_ptr<LoadedKernel> copy,
                std::shared_ptr<LoadedKernel> zero,
                const std::vector<LayerViews> &layers) {
  std::unique_ptr<SlotMoves> moves(new SlotMoves(copy->device));
  const std::vector<LayerViews> views = moves->viewsOf(layers);
  moves->size_ = static_cast<int64_t>(moves->joined_.count);
  if (Status s = moves->makeTable(layers[0].state.sizes[0]); !s.isOk())
    return s;
  if (Status s = moves->bind(moves->copy_, std::move(copy), views,
                             {"slots", "write_slots"});
      !s.isOk())
    return s;
  if (Status s = moves->bind(moves->zero_, std::move(zero), views, {"slots"});
      !s.isOk())
    return s;
  return moves;
}

SlotMoves::~SlotMoves() {
  if (onDevice_)
    (void)device_->free(onDevice_);
}

/// Launches with ids that the device has.
Status SlotMoves::launch(Moves &moves, Ids ids, size_t count, void *stream) {
  size_ = static_cast<int64_t>(count * joined_.count);
  Argument arguments[2];
  for (size_t which = 0; which < moves.params.size(); ++which) {
    arguments[which].data = const_cast<int32_t *>(ids[which]);
    arguments[which].dtype = static_cast<int32_t>(DType::i32);
    arguments[which].rank = 1;
    arguments[which].sizes = &size_;
  }
  for (auto &layer : moves.layers) {
    if (Status s =
            layer->rebind(moves.params.data(), arguments, moves.params.size());
        !s.isOk())
      return s;
    if (Status s = moves.kernel->code->launch(*layer, stream); !s.isOk())
      return s;
  }
  return {};
}

/// Pairs of one slot twice are no copies.
static bool isPadding(const std::array<const int32_t *, 2> &ids, size_t i) {
  return ids[0][i] <= 0 ||
         (ids[1] && (ids[1][i] <= 0 || ids[0][i] == ids[1][i]));
}

/// Launches with ids of any order, which go to the device first; -1 is padding
/// for all kernels.
Status SlotMoves::launchUploaded(Moves &moves, Ids ids, size_t count,
                                 void *stream) {
  const size_t size = count * joined_.count;
  for (size_t which = 0; which < moves.params.size(); ++which)
    for (size_t layer = 0; layer < joined_.count; ++layer)
      for (size_t i = 0; i < count; ++i)
        ids_[which * size + layer * count + i] =
            isPadding(ids, i) ? -1 : placeOf(ids[which][i], layer);
  const int32_t *there = ids_.data();
  if (onDevice_) {
    there = onDevice_ + table_.size();
    if (Status s = device_->upload(onDevice_ + table_.size(), ids_.data(),
                                   moves.params.size() * size * sizeof(int32_t),
                                   stream);
        !s.isOk())
      return s;
  }
  return launch(moves, {there, there + size}, count, stream);
}

/// How many of the first slots follow one another in the table.
static size_t endOfRange(const std::array<const int32_t *, 2> &ids,
                         size_t count) {
  size_t end = 1;
  while (end < count && !isPadding(ids, end) &&
         ids[0][end] == ids[0][end - 1] + 1 &&
         (!ids[1] || ids[1][end] == ids[1][end - 1] + 1))
    ++end;
  return end;
}

/// Whether ids of a launch may go to the device: launches before it have read
/// theirs by then, and no graph replays it.
Result<bool> SlotMoves::mayUpload(void *stream) const {
  if (stream_.value_or(stream) != stream)
    return false;
  auto capturing = device_->isCapturing(stream);
  if (!capturing.isOk())
    return capturing.status();
  return !*capturing;
}

Status SlotMoves::run(Moves &moves, Ids ids, size_t count, void *stream) {
  std::lock_guard<std::mutex> guard(lock_);
  std::optional<bool> uploads;
  for (size_t first = 0; first < count;) {
    if (isPadding(ids, first)) {
      ++first;
      continue;
    }
    const Ids rest = {ids[0] + first, ids[1] ? ids[1] + first : nullptr};
    const size_t some = std::min(count - first, kMostSlots);
    size_t others = 1;
    while (others < some && isPadding(rest, others))
      ++others;
    if (others < some && !uploads) {
      auto may = mayUpload(stream);
      if (!may.isOk())
        return may.status();
      uploads = *may;
    }
    Status status;
    size_t length = some;
    if (others < some && *uploads) {
      stream_ = stream;
      status = launchUploaded(moves, rest, some, stream);
    } else {
      length = endOfRange(rest, some);
      const int32_t *table = onDevice_ ? onDevice_ : table_.data();
      auto at = [&](const int32_t *slots) {
        return table + static_cast<size_t>(*slots) * joined_.count;
      };
      status = launch(moves, {at(rest[0]), rest[1] ? at(rest[1]) : nullptr},
                      length, stream);
    }
    if (!status.isOk())
      return status;
    first += length;
  }
  return {};
}

Status SlotMoves::copy(const int32_t *from, const int32_t *to, size_t count,
                       void *stream) {
  return run(copy_, {from, to}, count, stream);
}

Status SlotMoves::zero(const int32_t *slots, size_t count, void *stream) {
  return run(zero_, {slots, nullptr}, count, stream);
}
