// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ids go to the device in one copy, then each layer has a launch.

#include "slot_moves.h"

#include <algorithm>

using namespace gdnrt;

Argument SlotMoves::idsOf(size_t index) const {
  Argument argument;
  const auto *base =
      onDevice_ ? static_cast<const int32_t *>(onDevice_) : ids_.data();
  // Bindings do not write what the entry only reads.
  argument.data = const_cast<int32_t *>(base + index * kMostIds);
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
  if (!copy->device->properties().hostReadable) {
    auto memory = copy->device->allocate(sizeof(moves->ids_));
    if (!memory.isOk())
      return memory.status();
    moves->onDevice_ = *memory;
  }
  if (Status s = moves->bind(moves->copy_, std::move(copy), layers,
                             {"slots", "write_slots"});
      !s.isOk())
    return s;
  if (Status s = moves->bind(moves->zero_, std::move(zero), layers, {"slots"});
      !s.isOk())
    return s;
  return moves;
}

SlotMoves::~SlotMoves() {
  if (onDevice_)
    (void)device_->free(onDevice_);
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
  for (size_t first = 0; first < count; first += kMostIds) {
    const size_t some = std::min(count - first, kMostIds);
    for (size_t i = 0; i < moves.params.size(); ++i)
      std::copy_n(ids[i] + first, some, ids_.begin() + i * kMostIds);
    // Pairs of one slot twice are no copies; -1 is padding for all kernels.
    for (size_t i = 0; moves.params.size() == 2 && i < some; ++i)
      if (ids_[i] == ids_[kMostIds + i] || ids_[kMostIds + i] <= 0)
        ids_[i] = ids_[kMostIds + i] = -1;
    if (onDevice_)
      if (Status s =
              device_->upload(onDevice_, ids_.data(), sizeof(ids_), stream);
          !s.isOk())
        return s;
    size_ = static_cast<int64_t>(some);
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
