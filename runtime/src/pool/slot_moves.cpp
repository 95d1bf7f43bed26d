// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ids go to the device in one copy, then there is a launch, or one for each
// layer.

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

Argument SlotMoves::idsOf(size_t index) const {
  Argument argument;
  const auto *base =
      onDevice_ ? static_cast<const int32_t *>(onDevice_) : ids_.data();
  // Bindings do not write what the entry only reads.
  argument.data = const_cast<int32_t *>(base + index * size_);
  argument.dtype = static_cast<int32_t>(DType::i32);
  argument.rank = 1;
  argument.sizes = &size_;
  return argument;
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
    arguments[*param] = idsOf(moves.params.size());
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
  moves.bound = size_;
  moves.kernel = std::move(kernel);
  return {};
}

Result<std::unique_ptr<SlotMoves>>
SlotMoves::make(std::shared_ptr<LoadedKernel> copy,
                std::shared_ptr<LoadedKernel> zero,
                const std::vector<LayerViews> &layers) {
  std::unique_ptr<SlotMoves> moves(new SlotMoves(copy->device));
  const std::vector<LayerViews> views = moves->viewsOf(layers);
  moves->size_ = static_cast<int64_t>(kMostSlots * moves->joined_.count);
  moves->ids_.resize(2 * moves->size_);
  if (!copy->device->properties().hostReadable) {
    auto memory = copy->device->allocate(moves->ids_.size() * sizeof(int32_t));
    if (!memory.isOk())
      return memory.status();
    moves->onDevice_ = *memory;
  }
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

/// Ids of all layers of a launch. Pairs of one slot twice are no copies; -1 is
/// padding for all kernels.
void SlotMoves::putIds(const Moves &moves, std::array<const int32_t *, 2> ids,
                       size_t count) {
  size_ = static_cast<int64_t>(count * joined_.count);
  const bool copies = moves.params.size() == 2;
  for (size_t i = 0; i < count; ++i) {
    const bool isPadding =
        ids[0][i] <= 0 ||
        (copies && (ids[1][i] <= 0 || ids[0][i] == ids[1][i]));
    for (size_t which = 0; which < moves.params.size(); ++which)
      for (size_t layer = 0; layer < joined_.count; ++layer)
        ids_[which * size_ + layer * count + i] =
            isPadding ? -1
                      : static_cast<int32_t>(ids[which][i] * joined_.slotStep +
                                             static_cast<int64_t>(layer) *
                                                 joined_.layerStep);
  }
}

Result<bool> SlotMoves::run(Moves &moves, std::array<const int32_t *, 2> ids,
                            size_t count, void *stream) {
  std::lock_guard<std::mutex> guard(lock_);
  if (stream_.value_or(stream) != stream)
    return false;
  auto capturing = device_->isCapturing(stream);
  if (!capturing.isOk())
    return capturing.status();
  if (*capturing)
    return false;
  stream_ = stream;
  for (size_t first = 0; first < count; first += kMostSlots) {
    const size_t some = std::min(count - first, kMostSlots);
    putIds(moves, {ids[0] + first, ids[1] ? ids[1] + first : nullptr}, some);
    if (onDevice_)
      if (Status s = device_->upload(
              onDevice_, ids_.data(),
              moves.params.size() * size_ * sizeof(int32_t), stream);
          !s.isOk())
        return s;
    if (size_ != moves.bound) {
      Argument arguments[2] = {idsOf(0), idsOf(1)};
      for (auto &layer : moves.layers)
        if (Status s = layer->rebind(moves.params.data(), arguments,
                                     moves.params.size());
            !s.isOk())
          return s;
      moves.bound = size_;
    }
    for (auto &layer : moves.layers)
      if (Status s = moves.kernel->code->launch(*layer, stream); !s.isOk())
        return s;
  }
  return true;
}

Result<bool> SlotMoves::copy(const int32_t *from, const int32_t *to,
                             size_t count, void *stream) {
  return run(copy_, {from, to}, count, stream);
}

Result<bool> SlotMoves::zero(const int32_t *slots, size_t count, void *stream) {
  return run(zero_, {slots, nullptr}, count, stream);
}
