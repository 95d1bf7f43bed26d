// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Owners under a lock, memory outside of it.

#include "gdnrt/state_pool.h"

#include "gdnrt/footprint.h"
#include "gdnrt/loaded_kernel.h"
#include "pool_shape.h"
#include "slot_moves.h"
#include "slot_transfers.h"

#include <algorithm>

using namespace gdnrt;

StatePool::StatePool(std::shared_ptr<Device> device,
                     const StatePoolShape &shape,
                     const StatePoolOptions &options)
    : device_(std::move(device)), shape_(shape), options_(options),
      work_(makeDeviceSlotWork(device_)),
      transfers_(std::make_unique<SlotTransfers>()),
      table_(shape.numRequests, shape.numTrack) {}

StatePool::~StatePool() = default;

Status StatePool::finish() {
  convWindowSizes_ = buffers_[kConvBuffer].sizes;
  convWindowSizes_[2] = shape_.convWidth - 1;
  if (!options_.foreignRequests)
    return {};
  // None of them is ever free.
  std::vector<int32_t> ids(static_cast<size_t>(shape_.numRequests));
  table_.allocate(SlotKind::request, ids.size(), ids.data());
  return {};
}

/// Zeroed memory for the buffers from `first` on; null if there are none.
static Result<std::shared_ptr<void>>
takeMemory(const std::shared_ptr<Device> &device,
           const std::vector<BufferPlan> &plans, size_t first) {
  const uint64_t bytes = plannedBytes(plans, first);
  if (bytes == 0)
    return std::shared_ptr<void>();
  auto memory = device->allocate(bytes);
  if (!memory.isOk())
    return memory.status();
  // A device that is gone took the memory along.
  std::shared_ptr<void> owner(
      *memory, [device](void *data) { (void)device->free(data); });
  if (Status status = device->fill(*memory, 0, bytes, nullptr); !status.isOk())
    return status;
  if (Status status = device->synchronize(nullptr); !status.isOk())
    return status;
  return owner;
}

void StatePool::addOwned(std::shared_ptr<void> memory,
                         const std::vector<BufferPlan> &plans, size_t first) {
  bytes_ += plannedBytes(plans, first);
  memory_ = std::move(memory);
  for (size_t i = first; i < plans.size(); ++i) {
    buffers_.push_back(plans[i].buffer);
    kinds_.push_back(plans[i].kind);
    uint8_t *data = static_cast<uint8_t *>(memory_.get()) + plans[i].offset -
                    plans[first].offset;
    for (int64_t layer = 0; layer < shape_.numLayers; ++layer)
      buffers_.back().layers.push_back(data +
                                       layer * plans[i].layerStrideBytes);
  }
}

Result<std::unique_ptr<StatePool>>
StatePool::make(std::shared_ptr<Device> device, const StatePoolShape &shape,
                const StatePoolOptions &options) {
  auto plans = planPool(shape);
  if (!plans.isOk())
    return plans.status();
  auto memory = takeMemory(device, *plans, 0);
  if (!memory.isOk())
    return memory.status();
  std::unique_ptr<StatePool> pool(
      new StatePool(std::move(device), shape, options));
  if (shape.keepsInputs())
    pool->shape_.convExtra = shape.pendingTokens;
  pool->addOwned(std::move(*memory), *plans, 0);
  if (Status status = pool->finish(); !status.isOk())
    return status;
  return pool;
}

/// A gdnrt_dtype of the caller in words.
static std::string nameOf(int32_t dtype) {
  const bool isKnown = dtype >= 0 && dtype <= static_cast<int32_t>(DType::u8);
  return isKnown ? toString(static_cast<DType>(dtype))
                 : "the unknown dtype " + std::to_string(dtype);
}

/// Checks layer `layer` of the caller's memory against the first one and
/// `sizes`, where -1 is any size, and adds it to `buffer`.
static Status addLayer(SlotBuffer &buffer, const Argument &arg, int64_t layer,
                       const std::vector<int64_t> &sizes) {
  auto complain = [&](const auto &...pieces) {
    return invalid("state_pool: ", buffer.name, " of layer ", layer, ": ",
                   pieces...);
  };
  const auto rank = static_cast<int32_t>(sizes.size());
  if (arg.rank != rank)
    return complain("expected rank ", rank, ", got ", arg.rank);
  if (!arg.data || !arg.sizes)
    return complain("expected pointers to data and sizes, got null");
  if (arg.dtype != int32_t(DType::f32) && arg.dtype != int32_t(DType::bf16) &&
      arg.dtype != int32_t(DType::f16))
    return complain("expected dtype f32, bf16 or f16, got ", nameOf(arg.dtype));
  for (int32_t d = 0; d < rank; ++d) {
    if (sizes[d] == -1 && arg.sizes[d] < 1)
      return complain("expected size 1 or more of dim ", d, ", got ",
                      arg.sizes[d]);
    if (sizes[d] != -1 && arg.sizes[d] != sizes[d])
      return complain("expected size ", sizes[d], " of dim ", d, ", got ",
                      arg.sizes[d]);
  }
  int64_t bytes = sizeof(float);
  for (int32_t d = 0; d < rank; ++d)
    if (__builtin_mul_overflow(bytes, arg.sizes[d], &bytes))
      return complain("the array does not fit in the address space");
  std::vector<int64_t> strides(sizes.size(), 1);
  for (int32_t d = rank - 2; d >= 0; --d)
    strides[d] = strides[d + 1] * arg.sizes[d + 1];
  if (arg.strides)
    strides.assign(arg.strides, arg.strides + rank);
  if (layer == 0) {
    buffer.dtype = static_cast<DType>(arg.dtype);
    buffer.sizes.assign(arg.sizes, arg.sizes + rank);
    buffer.strides = strides;
  } else if (static_cast<DType>(arg.dtype) != buffer.dtype) {
    return complain("expected dtype ", toString(buffer.dtype),
                    ", that of layer 0, got ", nameOf(arg.dtype));
  }
  for (int32_t d = 0; d < rank; ++d) {
    if (arg.sizes[d] != buffer.sizes[d])
      return complain("expected size ", buffer.sizes[d], " of dim ", d,
                      ", that of layer 0, got ", arg.sizes[d]);
    if (strides[d] != buffer.strides[d])
      return complain("expected stride ", buffer.strides[d], " of dim ", d,
                      ", that of layer 0, got ", strides[d]);
  }
  if (reinterpret_cast<uintptr_t>(arg.data) %
      static_cast<uint64_t>(sizeInBytes(buffer.dtype)))
    return complain("the data is not aligned to its elements");
  buffer.layers.push_back(static_cast<uint8_t *>(arg.data));
  return {};
}

/// Fails where two layers, of one buffer or of both, share memory.
static Status checkApart(const SlotBuffer &state, const SlotBuffer &conv) {
  std::vector<std::pair<std::string, Footprint>> placed;
  for (const SlotBuffer *buffer : {&state, &conv})
    for (size_t layer = 0; layer < buffer->layers.size(); ++layer) {
      std::string name = buffer->name + " of layer " + std::to_string(layer);
      auto footprint =
          Footprint::make(buffer->layers[layer], sizeInBytes(buffer->dtype),
                          static_cast<int>(buffer->sizes.size()),
                          buffer->sizes.data(), buffer->strides.data());
      if (!footprint)
        return invalid("state_pool: ", name,
                       ": the array does not fit in the address space");
      for (const auto &[other, there] : placed)
        if (Footprint::mayOverlap(there, *footprint))
          return invalid("state_pool: ", name, " overlaps ", other);
      placed.emplace_back(std::move(name), *footprint);
    }
  return {};
}

Result<std::unique_ptr<StatePool>>
StatePool::wrap(std::shared_ptr<Device> device, const StatePoolShape &shape,
                const Argument *states, const Argument *convs,
                const StatePoolOptions &options) {
  if (shape.statePlanes != 0)
    return invalid("state_pool: state_planes: expected 0 for states in arrays "
                   "of the caller, got ",
                   shape.statePlanes);
  StatePoolShape known = shape;
  // What the arrays say themselves.
  known.stateDType = known.convDType = DType::f32;
  known.convExtra = 0;
  known.stateSlotStride = known.stateLayerStride = 0;
  known.convSlotStride = known.convLayerStride = 0;
  if (Status status = checkShape(known); !status.isOk())
    return status;
  std::unique_ptr<StatePool> pool(
      new StatePool(std::move(device), known, options));
  SlotBuffer state, conv;
  state.name = "state";
  conv.name = "conv";
  for (int64_t layer = 0; layer < shape.numLayers; ++layer) {
    if (Status status = addLayer(
            state, states[layer], layer,
            {shape.numSlots(), shape.valueHeads, shape.valueDim, shape.keyDim});
        !status.isOk())
      return status;
    if (Status status = addLayer(conv, convs[layer], layer,
                                 {shape.numSlots(), shape.channels(), -1});
        !status.isOk())
      return status;
  }
  const bool isExact = shape.keepsInputs();
  const int64_t least =
      shape.convWidth - 1 + (isExact ? shape.pendingTokens : 0);
  const int64_t positions = conv.sizes[2];
  if (isExact ? positions != least : positions < least)
    return invalid("state_pool: conv: expected ", isExact ? "" : "at least ",
                   least, " positions, got ", positions);
  for (SlotBuffer *buffer : {&state, &conv})
    if (Status status = finishSlotBuffer(*buffer); !status.isOk())
      return status;
  if (Status status = checkApart(state, conv); !status.isOk())
    return status;
  StatePoolShape &found = pool->shape_;
  found.convExtra = positions - (shape.convWidth - 1);
  found.stateDType = state.dtype;
  found.convDType = conv.dtype;
  found.convLayout = conv.strides[1] == 1 && shape.channels() > 1
                         ? ConvLayout::sd
                         : ConvLayout::ds;
  found.stateSlotStride = state.strides[0];
  found.convSlotStride = conv.strides[0];
  found.stateLayerStride = found.convLayerStride = 0;
  pool->bytes_ = static_cast<uint64_t>((state.slotBytes + conv.slotBytes) *
                                       found.numSlots() * found.numLayers);
  pool->buffers_ = {std::move(state), std::move(conv)};
  pool->kinds_ = {PoolBuffer::state, PoolBuffer::convHistory};
  known.convExtra = 0;
  auto plans = planPool(known);
  if (!plans.isOk())
    return plans.status();
  auto memory = takeMemory(pool->device_, *plans, kFirstOwnBuffer);
  if (!memory.isOk())
    return memory.status();
  pool->addOwned(std::move(*memory), *plans, kFirstOwnBuffer);
  if (Status status = pool->finish(); !status.isOk())
    return status;
  return pool;
}

int64_t StatePool::numFree(SlotKind kind) const {
  std::lock_guard<std::mutex> guard(lock_);
  return table_.numFree(kind);
}

int64_t StatePool::numInUse(SlotKind kind) const {
  std::lock_guard<std::mutex> guard(lock_);
  return table_.numInUse(kind);
}

bool StatePool::isInUse(int32_t slot) const {
  std::lock_guard<std::mutex> guard(lock_);
  return table_.isInUse(slot);
}

/// Null if the pool has no such buffer.
const SlotBuffer *StatePool::find(PoolBuffer kind) const {
  if (kind == PoolBuffer::conv)
    kind = PoolBuffer::convHistory;
  for (size_t i = 0; i < buffers_.size(); ++i)
    if (kinds_[i] == kind)
      return &buffers_[i];
  return nullptr;
}

Result<Argument> StatePool::view(PoolBuffer buffer, int64_t layer) const {
  if (layer < 0 || layer >= shape_.numLayers)
    return invalid("state_pool: layer: expected 0 to ", shape_.numLayers - 1,
                   ", got ", layer);
  if (const SlotBuffer *found = find(buffer)) {
    Argument argument = found->view(static_cast<size_t>(layer));
    if (buffer == PoolBuffer::conv)
      argument.sizes = convWindowSizes_.data();
    return argument;
  }
  if (buffer == PoolBuffer::pendingScales)
    return invalid("state_pool: the pool has no memory for scales of pending "
                   "tokens, whose deltas are not f16");
  if (buffer == PoolBuffer::stateScales)
    return invalid("state_pool: the pool has no scales of states: expected "
                   "state_planes 1 or 2, got 0");
  if (buffer == PoolBuffer::stateLow)
    return invalid("state_pool: the pool has no lower plane of states: "
                   "expected state_planes 2, got ",
                   shape_.statePlanes);
  if (shape_.pendingTokens == 0)
    return invalid("state_pool: the pool has no memory for pending tokens");
  return invalid("state_pool: the pool has no memory for counts of pending "
                 "tokens: expected deferred_writes");
}

Status StatePool::fill(const int32_t *slots, size_t count, uint8_t value,
                       void *stream) {
  if (Status s = orderAfterTransfers(slots, count, stream); !s.isOk())
    return s;
  device_->notePoolWrite();
  const bool moved = moves_ && value == 0;
  if (moved)
    if (Status status = moves_->zero(slots, count, stream); !status.isOk())
      return status;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (moved && isMoved(kinds_[i]))
      continue;
    // A slot in which nothing is valid has nothing pending, either.
    const uint8_t filled = kinds_[i] == PoolBuffer::pendingCounts ? 0 : value;
    if (Status status = work_->fill(buffers_[i], slots, count, filled, stream);
        !status.isOk())
      return status;
  }
  return {};
}

/// What the owner before left pending, or under way, is not the new one's.
Status StatePool::clearCounts(const int32_t *slots, size_t count,
                              void *stream) {
  if (Status s = orderAfterTransfers(slots, count, stream); !s.isOk())
    return s;
  const SlotBuffer *counts = find(PoolBuffer::pendingCounts);
  if (!counts)
    return {};
  device_->notePoolWrite();
  return work_->fill(*counts, slots, count, 0, stream);
}

/// Whether the kernels move all of a buffer: windows may have more positions
/// than the kernels know.
bool StatePool::isMoved(PoolBuffer kind) const {
  return kind == PoolBuffer::state || kind == PoolBuffer::stateScales ||
         kind == PoolBuffer::stateLow ||
         (kind == PoolBuffer::convHistory && moves_->moveWindows() &&
          shape_.convExtra == 0);
}

Status StatePool::checkPlanes(const EntrySchema &entry) const {
  const auto states = entry.findParam("state_pool");
  const int64_t planes = entry.statePlanes();
  if (!states || planes == shape_.statePlanes)
    return {};
  return invalid("state_pool: state_planes: expected ", planes, ", those of ",
                 entry.name, " (--state=",
                 planes == 2   ? "i8x2"
                 : planes == 1 ? "i8"
                               : toString(entry.params[*states].dtype),
                 "), got ", shape_.statePlanes);
}

Status StatePool::useKernels(std::shared_ptr<LoadedKernel> copySlots,
                             std::shared_ptr<LoadedKernel> zeroSlots) {
  if (copySlots->device != device_ || zeroSlots->device != device_)
    return invalid("state_pool: expected kernels of the pool's device");
  for (const auto *kernel : {&copySlots, &zeroSlots})
    if (Status s = checkPlanes(*(*kernel)->entry); !s.isOk())
      return s;
  std::vector<LayerViews> layers;
  for (int64_t layer = 0; layer < shape_.numLayers; ++layer) {
    LayerViews &views = layers.emplace_back();
    views.state = *view(PoolBuffer::state, layer);
    views.conv = *view(PoolBuffer::conv, layer);
    if (shape_.statePlanes > 0)
      views.scales = *view(PoolBuffer::stateScales, layer);
    if (shape_.statePlanes == 2)
      views.low = *view(PoolBuffer::stateLow, layer);
  }
  auto moves =
      SlotMoves::make(std::move(copySlots), std::move(zeroSlots), layers);
  if (moves.isOk())
    moves_ = std::move(*moves);
  return moves.status();
}

bool StatePool::isForeign(int32_t slot) const {
  return options_.foreignRequests && slot <= shape_.numRequests;
}

Result<bool> StatePool::allocate(SlotKind kind, size_t count, int32_t *slots,
                                 bool zero, void *stream) {
  if (kind == SlotKind::request && options_.foreignRequests)
    return invalid("state_pool: the slots for requests are given out by "
                   "somebody else");
  {
    std::lock_guard<std::mutex> guard(lock_);
    if (!table_.allocate(kind, count, slots))
      return false;
  }
  Status status =
      zero ? fill(slots, count, 0, stream) : clearCounts(slots, count, stream);
  if (status.isOk())
    return true;
  std::lock_guard<std::mutex> guard(lock_);
  (void)table_.free(slots, count);
  return status;
}

Status StatePool::free(const int32_t *slots, size_t count, void *stream) {
  for (size_t i = 0; i < count; ++i)
    if (isForeign(slots[i]) && !SlotTable::isPadding(slots[i]))
      return invalid("state_pool: slot ", slots[i],
                     " is given out by somebody else");
  std::unique_lock<std::mutex> guard(lock_);
  if (options_.debugChecks) {
    // Before somebody else can get them.
    if (Status status = table_.checkFree(slots, count); !status.isOk())
      return status;
    guard.unlock();
    constexpr uint8_t nan = 0xff; // of f32, bf16 and f16
    if (Status status = fill(slots, count, nan, stream); !status.isOk())
      return status;
    guard.lock();
  }
  return table_.free(slots, count);
}

void StatePool::freeAnyway(const int32_t *slots, size_t count, void *stream) {
  if (free(slots, count, stream).isOk())
    return;
  std::lock_guard<std::mutex> guard(lock_);
  (void)table_.free(slots, count);
}

Result<bool> StatePool::fork(int32_t source, int32_t *slot, void *stream) {
  int32_t taken = kNullSlot;
  {
    std::lock_guard<std::mutex> guard(lock_);
    if (SlotTable::isPadding(source))
      return invalid("state_pool: slot ", source,
                     " is padding and has nothing to copy");
    if (Status status = table_.check(&source, 1, options_.debugChecks, false);
        !status.isOk())
      return status;
  }
  auto got = allocate(SlotKind::request, 1, &taken, /*zero=*/false, stream);
  if (!got.isOk() || !*got)
    return got;
  if (Status status = copy(&source, &taken, 1, stream); !status.isOk()) {
    std::lock_guard<std::mutex> guard(lock_);
    (void)table_.free(&taken, 1);
    return status;
  }
  *slot = taken;
  return true;
}

Status StatePool::reset(const int32_t *slots, size_t count, void *stream) {
  {
    std::lock_guard<std::mutex> guard(lock_);
    if (Status status = table_.check(slots, count, options_.debugChecks, false);
        !status.isOk())
      return status;
  }
  return fill(slots, count, 0, stream);
}

Status StatePool::copy(const int32_t *from, const int32_t *to, size_t count,
                       void *stream) {
  {
    std::lock_guard<std::mutex> guard(lock_);
    if (Status status = table_.checkCopy(from, to, count, options_.debugChecks);
        !status.isOk())
      return status;
  }
  for (const int32_t *each : {from, to})
    if (Status s = orderAfterTransfers(each, count, stream); !s.isOk())
      return s;
  device_->notePoolWrite();
  if (moves_)
    if (Status status = moves_->copy(from, to, count, stream); !status.isOk())
      return status;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (moves_ && isMoved(kinds_[i]))
      continue;
    if (Status status = work_->copy(buffers_[i], from, to, count, stream);
        !status.isOk())
      return status;
  }
  return {};
}

Status StatePool::checkBatch(const int32_t *slots, size_t count) {
  std::lock_guard<std::mutex> guard(lock_);
  return table_.check(slots, count, /*inUse=*/true, /*distinct=*/true);
}
