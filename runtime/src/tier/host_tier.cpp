// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All copies are on one stream, under one lock: so they are in order with each
// other, and a host slot that is freed under way needs no care.

#include "gdnrt/host_tier.h"

#include <algorithm>
#include <exception>

using namespace gdnrt;

constexpr uint64_t kMostBytes = uint64_t{1} << 48;

Result<std::unique_ptr<HostTier>>
HostTier::make(std::shared_ptr<StatePool> pool,
               const HostTierOptions &options) {
  const StatePoolShape &shape = pool->shape();
  constexpr int64_t most = int64_t{1} << 30;
  if (options.numSlots < 1 || options.numSlots > most)
    return invalid("host_tier: num_slots: expected 1 to ", most, ", got ",
                   options.numSlots);
  RankShare share = options.share;
  // Products of numbers that are in range; others are refused below.
  if (share.tpSize > 0 && share.tpSize <= kMostRanks) {
    if (share.keyHeads == 0)
      share.keyHeads = shape.keyHeads * share.tpSize;
    if (share.valueHeads == 0)
      share.valueHeads = shape.valueHeads * share.tpSize;
  }
  if (Status s = checkShare("host_tier", share); !s.isOk())
    return s;
  for (auto [name, expected, got] :
       {std::tuple("total_key_heads", share.keys().second, shape.keyHeads),
        {"total_value_heads", share.values().second, shape.valueHeads}})
    if (expected != got)
      return invalid("host_tier: ", name, ": expected ", expected,
                     " heads of a rank in the pool, got ", got);
  auto record =
      StateRecord::make(*pool, options.format.value_or(formatOf(shape)));
  if (!record.isOk())
    return record.status();
  auto rounder = StateRounder::make(options.roundingThreads);
  if (!rounder.isOk())
    return rounder.status();
  auto link = pool->device().makeHostLink();
  if (!link.isOk())
    return link.status();
  std::unique_ptr<HostTier> tier(new HostTier(std::move(pool), std::move(*link),
                                              std::move(*record), share));
  tier->rounder_ = std::move(*rounder);
  if (Status s = tier->takeMemory(options); !s.isOk())
    return s;
  tier->pool_.expectTransfers();
  return tier;
}

Status HostTier::takeMemory(const HostTierOptions &options) {
  constexpr uint64_t line = 64;
  stride_ = (record_.bytes + line - 1) / line * line;
  const auto count = static_cast<uint64_t>(options.numSlots);
  if (count > kMostBytes / stride_)
    return failure(StatusCode::outOfMemory, "host_tier: no memory for ", count,
                   " slots of ", stride_, " bytes");
  bytes_ = count * stride_;
  const uint64_t staged =
      record_.isNarrowed ? static_cast<uint64_t>(pool_.buffers()[0].slotBytes)
                         : 0;
  auto memory = link_->allocate(bytes_ + staged);
  if (!memory.isOk())
    return memory.status();
  memory_ = static_cast<uint8_t *>(*memory);
  staging_ = memory_ + bytes_;
  bytes_ += staged;
  if (options.copyStream) {
    copyStream_ = *options.copyStream;
  } else {
    auto stream = link_->makeStream();
    if (!stream.isOk())
      return stream.status();
    copyStream_ = *stream;
  }
  auto launched = link_->makeEvent();
  if (!launched.isOk())
    return launched.status();
  launched_ = *launched;
  slots_.make(count);
  scratch_.resize(count);
  for (int32_t slot = 0; slot < slots_.size(); ++slot) {
    auto copied = link_->makeEvent();
    if (!copied.isOk())
      return copied.status();
    slots_[slot].copied = *copied;
    for (int32_t layer = 0; record_.isNarrowed && layer < record_.layers;
         ++layer)
      roundings_.push_back({this, slot, layer});
  }
  return {};
}

HostTier::~HostTier() {
  try {
    bool isOver = !isAdrift_;
    for (const HostSlot &slot : slots_)
      if (slot.copied && !slot.copied->synchronize().isOk())
        isOver = false;
    if (!isOver)
      isOver = pool_.device().synchronize(copyStream_).isOk();
    // Memory that copies may still use is left to them.
    if (memory_ && isOver)
      (void)link_->free(memory_);
  } catch (const std::exception &) {
    memory_ = nullptr; // no memory for a message, either
  }
}

int64_t HostTier::numFree() const {
  std::lock_guard<std::mutex> guard(lock_);
  return slots_.numFree();
}

uint64_t HostTier::slotBytes() const {
  uint64_t bytes = 0;
  for (const RecordBuffer &buffer : record_.buffers)
    bytes += buffer.layerBytes * static_cast<uint64_t>(record_.layers);
  return bytes;
}

Result<bool> HostTier::allocate(size_t count, int32_t *slots) {
  std::lock_guard<std::mutex> guard(lock_);
  return slots_.take(count, slots);
}

Status HostTier::free(const int32_t *slots, size_t count) {
  std::lock_guard<std::mutex> guard(lock_);
  if (Status s = slots_.check(slots, count, /*distinct=*/true); !s.isOk())
    return s;
  if (Status s = slots_.checkFiles(slots, count, /*writes=*/true); !s.isOk())
    return s;
  slots_.give(slots, count);
  return {};
}

void HostTier::leave(int32_t slot) {
  std::lock_guard<std::mutex> guard(lock_);
  if (slot < 0 || slot >= slots_.size() || !slots_[slot].isTaken)
    return;
  if (slots_[slot].files == 0)
    slots_.give(&slot, 1);
  else
    slots_[slot].isLeft = true;
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void HostTier::narrow(void *rounding) {
  const auto &job = *static_cast<const Rounding *>(rounding);
  const HostTier &tier = *job.tier;
  const StatePoolShape &shape = tier.pool_.shape();
  tier.rounder_->narrow(reinterpret_cast<const float *>(tier.staging_),
                        shape.valueHeads * shape.valueDim, shape.keyDim,
                        tier.record_.format,
                        tier.record_.stateAt(tier.at(job.slot), job.layer));
}

void HostTier::widen(void *rounding) {
  const auto &job = *static_cast<const Rounding *>(rounding);
  const HostTier &tier = *job.tier;
  const StatePoolShape &shape = tier.pool_.shape();
  tier.rounder_->widen(tier.record_.stateAt(tier.at(job.slot), job.layer),
                       shape.valueHeads * shape.valueDim, shape.keyDim,
                       tier.record_.format,
                       reinterpret_cast<float *>(tier.staging_));
}

/// Calls `copy` with the first layer, the bytes, the number and the distance of
/// pieces of memory, which are dense in a record.
template <typename Copy>
static Status forEachPiece(const SlotBuffer &buffer, Copy &&copy) {
  const auto bytes = static_cast<uint64_t>(buffer.slotBytes);
  const size_t layers = buffer.layers.size();
  if (const uint64_t distance = buffer.layerDistance(); distance > bytes)
    return copy(size_t{0}, bytes, layers, distance);
  for (size_t layer = 0, end; layer < layers; layer = end) {
    end = buffer.endOfRun(layer);
    const uint64_t piece = bytes * (end - layer);
    if (Status s = copy(layer, piece, size_t{1}, piece); !s.isOk())
      return s;
  }
  return {};
}

Status HostTier::copyToHost(int32_t from, int32_t to) {
  uint8_t *base = at(to);
  for (const RecordBuffer &buffer : record_.buffers) {
    if (buffer.source < 0)
      continue;
    const SlotBuffer &source =
        pool_.buffers()[static_cast<size_t>(buffer.source)];
    if (Status s = forEachPiece(
            source,
            [&](size_t layer, uint64_t bytes, size_t rows, uint64_t distance) {
              return link_->rowsToHost(base + buffer.at(int64_t(layer)),
                                       source.at(layer, from), bytes, rows,
                                       distance, copyStream_);
            });
        !s.isOk())
      return s;
  }
  const SlotBuffer &state = pool_.buffers()[0];
  for (int64_t layer = 0; record_.isNarrowed && layer < record_.layers;
       ++layer) {
    if (Status s =
            link_->toHost(staging_, state.at(static_cast<size_t>(layer), from),
                          static_cast<uint64_t>(state.slotBytes), copyStream_);
        !s.isOk())
      return s;
    if (Status s = link_->call(
            narrow,
            &roundings_[static_cast<size_t>(to * record_.layers + layer)],
            copyStream_);
        !s.isOk())
      return s;
  }
  return {};
}

Status HostTier::copyToPool(int32_t from, int32_t to) {
  const uint8_t *base = at(from);
  for (const RecordBuffer &buffer : record_.buffers) {
    if (buffer.source < 0)
      continue;
    const SlotBuffer &target =
        pool_.buffers()[static_cast<size_t>(buffer.source)];
    if (Status s = forEachPiece(
            target,
            [&](size_t layer, uint64_t bytes, size_t rows, uint64_t distance) {
              return link_->rowsToDevice(target.at(layer, to),
                                         base + buffer.at(int64_t(layer)),
                                         bytes, rows, distance, copyStream_);
            });
        !s.isOk())
      return s;
  }
  const SlotBuffer &state = pool_.buffers()[0];
  for (int64_t layer = 0; record_.isNarrowed && layer < record_.layers;
       ++layer) {
    if (Status s = link_->call(
            widen,
            &roundings_[static_cast<size_t>(from * record_.layers + layer)],
            copyStream_);
        !s.isOk())
      return s;
    if (Status s = link_->toDevice(
            state.at(static_cast<size_t>(layer), to), staging_,
            static_cast<uint64_t>(state.slotBytes), copyStream_);
        !s.isOk())
      return s;
  }
  return {};
}

/// The copy stream waits for `stream`, and for other transfers of the slots.
Status HostTier::begin(const int32_t *poolSlots, size_t count, void *stream) {
  for (void *each : {stream, copyStream_})
    if (Status s = refuseCapture(pool_.device(), each, "host_tier"); !s.isOk())
      return s;
  if (Status s = pool_.orderAfterTransfers(poolSlots, count, copyStream_);
      !s.isOk())
    return s;
  if (Status s = launched_->record(stream); !s.isOk())
    return s;
  return launched_->orderAfter(copyStream_);
}

/// Says of a host slot and a slot of the pool that copies of them were
/// launched, all of them if `status` is OK; returns what failed.
Status HostTier::noteCopies(const HostSlot &slot, int32_t poolSlot,
                            Status status) {
  // Copies that were launched before one failed are under way all the same.
  if (Status s = slot.copied->record(copyStream_); !s.isOk()) {
    // No event says when they are over, so they are waited for here.
    if (!pool_.device().synchronize(copyStream_).isOk())
      isAdrift_ = true;
    if (status.isOk())
      status = std::move(s);
  }
  pool_.noteTransfer(&poolSlot, 1, slot.copied);
  return status;
}

Status HostTier::storeLocked(const int32_t *from, const int32_t *to,
                             size_t count, void *stream) {
  if (Status s = pool_.checkTransfer(from, count, /*distinct=*/false);
      !s.isOk())
    return s;
  if (Status s = slots_.check(to, count, /*distinct=*/true); !s.isOk())
    return s;
  if (Status s = slots_.checkFiles(to, count, /*writes=*/true); !s.isOk())
    return s;
  if (Status s = begin(from, count, stream); !s.isOk())
    return s;
  for (size_t i = 0; i < count; ++i) {
    HostSlot &slot = slots_[to[i]];
    slot.isFull = false;
    if (Status s = noteCopies(slot, from[i], copyToHost(from[i], to[i]));
        !s.isOk())
      return s;
    slot.isFull = true;
  }
  return {};
}

Status HostTier::loadLocked(const int32_t *from, const int32_t *to,
                            size_t count, void *stream) {
  if (Status s = slots_.check(from, count, /*distinct=*/false); !s.isOk())
    return s;
  if (Status s = slots_.checkFiles(from, count, /*writes=*/false); !s.isOk())
    return s;
  if (Status s = slots_.checkFull(from, count); !s.isOk())
    return s;
  if (Status s = pool_.checkTransfer(to, count, /*distinct=*/true); !s.isOk())
    return s;
  if (Status s = begin(to, count, stream); !s.isOk())
    return s;
  pool_.device().notePoolWrite();
  for (size_t i = 0; i < count; ++i) {
    Status status = copyToPool(from[i], to[i]);
    if (Status s = noteCopies(slots_[from[i]], to[i], std::move(status));
        !s.isOk())
      return s;
  }
  return {};
}

Status HostTier::store(const int32_t *from, const int32_t *to, size_t count,
                       void *stream) {
  std::lock_guard<std::mutex> guard(lock_);
  return storeLocked(from, to, count, stream);
}

Status HostTier::load(const int32_t *from, const int32_t *to, size_t count,
                      void *stream) {
  std::lock_guard<std::mutex> guard(lock_);
  return loadLocked(from, to, count, stream);
}

Status HostTier::wait(const int32_t *poolSlots, size_t count, void *stream) {
  if (Status s = refuseCapture(pool_.device(), stream, "host_tier"); !s.isOk())
    return s;
  pool_.device().notePoolWrite();
  return pool_.orderAfterTransfers(poolSlots, count, stream);
}

Result<bool> HostTier::swapOut(const int32_t *poolSlots, size_t count,
                               void *stream, int32_t *hostSlots) {
  std::lock_guard<std::mutex> guard(lock_);
  // What free would refuse is refused before anything is stored.
  if (Status s = pool_.checkTransfer(poolSlots, count, /*distinct=*/true);
      !s.isOk())
    return s;
  int32_t *taken = scratch_.data();
  if (!slots_.take(count, taken))
    return false;
  Status status = storeLocked(poolSlots, taken, count, stream);
  if (status.isOk())
    status = pool_.free(poolSlots, count, stream);
  if (!status.isOk()) {
    slots_.give(taken, count);
    return status;
  }
  std::copy_n(taken, count, hostSlots);
  return true;
}

Result<bool> HostTier::swapIn(const int32_t *hostSlots, size_t count,
                              void *stream, int32_t *poolSlots) {
  std::lock_guard<std::mutex> guard(lock_);
  if (Status s = slots_.check(hostSlots, count, /*distinct=*/true); !s.isOk())
    return s;
  if (Status s = slots_.checkFiles(hostSlots, count, /*writes=*/true);
      !s.isOk())
    return s;
  int32_t *taken = scratch_.data();
  auto got = pool_.allocate(SlotKind::request, count, taken,
                            /*zero=*/false, stream);
  if (!got.isOk() || !*got)
    return got;
  Status status = loadLocked(hostSlots, taken, count, stream);
  if (status.isOk())
    status = pool_.orderAfterTransfers(taken, count, stream);
  if (!status.isOk()) {
    pool_.freeAnyway(taken, count, stream);
    return status;
  }
  std::copy_n(taken, count, poolSlots);
  slots_.give(hostSlots, count);
  return true;
}

//===----------------------------------------------------------------------===//
// What the host sees
//===----------------------------------------------------------------------===//

Status HostTier::isOver(const int32_t *slots, size_t count, uint8_t *over) {
  std::lock_guard<std::mutex> guard(lock_);
  if (Status s = slots_.check(slots, count, /*distinct=*/false); !s.isOk())
    return s;
  for (size_t i = 0; i < count; ++i) {
    auto isOver = slots_[slots[i]].copied->isOver();
    if (!isOver.isOk())
      return isOver.status();
    over[i] = *isOver;
  }
  return {};
}

Status HostTier::synchronize(const int32_t *slots, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    std::shared_ptr<StreamEvent> copied;
    {
      std::lock_guard<std::mutex> guard(lock_);
      if (Status s = slots_.check(slots + i, 1, /*distinct=*/false); !s.isOk())
        return s;
      copied = slots_[slots[i]].copied;
    }
    if (Status s = copied->synchronize(); !s.isOk())
      return s;
  }
  return {};
}

/// Takes back what write or read noted of a host slot.
void HostTier::endFile(int32_t slot, bool isFull) {
  std::lock_guard<std::mutex> guard(lock_);
  HostSlot &ended = slots_[slot];
  ended.files = std::max(ended.files - 1, 0);
  ended.isFull = isFull;
  if (ended.isLeft && ended.files == 0) {
    ended.isLeft = false;
    slots_.give(&slot, 1);
  }
}

namespace {
/// Calls a function at the end of a scope, also of one that is left by an
/// exception.
template <typename Function> struct AtEnd {
  Function function;
  ~AtEnd() { function(); }
};
template <typename Function> AtEnd(Function) -> AtEnd<Function>;
} // namespace

Status HostTier::write(int32_t slot, const StateTags &tags,
                       ByteWriter &writer) {
  {
    std::lock_guard<std::mutex> guard(lock_);
    if (Status s = slots_.check(&slot, 1, /*distinct=*/false); !s.isOk())
      return s;
    if (Status s = slots_.checkFiles(&slot, 1, /*writes=*/false); !s.isOk())
      return s;
    if (Status s = slots_.checkFull(&slot, 1); !s.isOk())
      return s;
    ++slots_[slot].files;
  }
  const AtEnd end{[&] { endFile(slot, /*isFull=*/true); }};
  if (Status s = synchronize(&slot, 1); !s.isOk())
    return s;
  return writeRecord({pool_.shape(), record_, share_}, at(slot), tags, writer);
}

Status HostTier::read(int32_t slot, ByteReader *const *parts, size_t count,
                      const StateTags *expected, StateTags *found) {
  {
    std::lock_guard<std::mutex> guard(lock_);
    if (Status s = slots_.check(&slot, 1, /*distinct=*/false); !s.isOk())
      return s;
    if (Status s = slots_.checkFiles(&slot, 1, /*writes=*/true); !s.isOk())
      return s;
    slots_[slot].files = -1;
  }
  bool isFull = false;
  const AtEnd end{[&] { endFile(slot, isFull); }};
  if (Status s = synchronize(&slot, 1); !s.isOk())
    return s;
  Status status = readRecord({pool_.shape(), record_, share_}, at(slot), parts,
                             count, expected, found);
  isFull = status.isOk();
  return status;
}
