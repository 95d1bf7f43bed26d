// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The states of many sequences, for all layers of a model: buffers at fixed
// addresses, and slots with owners. See docs/design/20261121-state-pool.md.
//
// Threads. Any number of threads may call any method at once, except
// useKernels. Ownership changes when a call returns. Memory is worked on in the
// order of the stream that the call is given, on a CPU within the call, without
// the pool's lock. So two threads may fill and copy at once if they name
// different slots. A thread that gets a slot that another thread freed must
// order its work after the work of that thread.
//
// Memory. A pool allocates nothing after it is made, except in useKernels, in
// hasPending and for errors.

#ifndef GDNRT_STATE_POOL_H
#define GDNRT_STATE_POOL_H

#include "gdnrt/binding.h"
#include "gdnrt/device.h"
#include "gdnrt/slot_buffer.h"
#include "gdnrt/slot_table.h"
#include "gdnrt/status.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace gdnrt {

/// The layout of a slot's window in memory. Kernels see [channels, positions]
/// with either layout.
enum class ConvLayout {
  /// [channels, positions] (vLLM's DS, pymllm, sglang).
  ds,
  /// [positions, channels] (vLLM's default SD).
  sd,
};

/// The most layers of a pool.
constexpr int64_t kMostLayers = int64_t{1} << 20;

/// The size of a pool, in elements. Heads are those of one rank.
struct StatePoolShape {
  int64_t numLayers = 0;
  /// Slots for requests, ids 1 to numRequests.
  int64_t numRequests = 0;
  /// Track slots, for states that a cache keeps. Their ids follow those for
  /// requests.
  int64_t numTrack = 0;
  int64_t keyHeads = 0, valueHeads = 0, keyDim = 0, valueDim = 0;
  /// K, the width of the convolution. A window holds K - 1 positions.
  int64_t convWidth = 4;
  /// The positions that the memory of a window has in addition to K - 1, for
  /// engines that keep the inputs of a verify step there.
  int64_t convExtra = 0;
  /// S, the maximum number of tokens that may be pending in a slot. The pool
  /// then has memory for their keys, deltas and decays, and convExtra is
  /// S, unless writes are deferred. 0: no tokens are pending, and there is no
  /// such memory.
  int64_t pendingTokens = 0;
  /// Whether the decays of pending tokens are per channel of the key: [S, dk]
  /// instead of [S] per value head.
  bool decayPerChannel = false;
  /// Whether kernels count the pending tokens of a slot: the pool has memory
  /// for counts, and convExtra does not depend on S.
  bool deferredWrites = false;
  /// Of keys and deltas of pending tokens: f32, or with deferred writes f16,
  /// with memory for a scale for each delta.
  DType pendingDType = DType::f32;
  /// 1 or 2: states are in so many planes of bytes, with an f32 scale for each
  /// row of dk elements, for kernels of --state=i8 (with deferred writes only)
  /// or --state=i8x2 or i8x2_upper. stateDType is f32 then. The strides of
  /// states are those of both planes; scales are dense. 0: states are of
  /// stateDType.
  int64_t statePlanes = 0;
  DType stateDType = DType::f32;
  DType convDType = DType::bf16;
  ConvLayout convLayout = ConvLayout::ds;
  /// Elements from one slot to the next, and from one layer to the next. 0
  /// means dense: all slots of a layer, then the next layer.
  int64_t stateSlotStride = 0, stateLayerStride = 0;
  int64_t convSlotStride = 0, convLayerStride = 0;

  /// D, the number of channels of the convolution: q, k and v.
  int64_t channels() const {
    return 2 * keyHeads * keyDim + valueHeads * valueDim;
  }
  /// Whether a window has the inputs of pending tokens behind it.
  bool keepsInputs() const { return pendingTokens > 0 && !deferredWrites; }
  int64_t numSlots() const { return 1 + numRequests + numTrack; }
};

/// The bytes that a pool of this shape takes, over all layers and slots, with
/// the gaps that strides leave.
Result<uint64_t> statePoolBytes(const StatePoolShape &shape);

/// The largest numRequests with which a pool of this shape takes at most
/// `bytes` bytes. The numRequests of `shape` is ignored. 0 if not even one
/// request fits.
Result<int64_t> requestsThatFit(StatePoolShape shape, uint64_t bytes);

struct StatePoolOptions {
  /// Refuse slots that are not in use wherever they are named, and fill freed
  /// slots with NaN.
  bool debugChecks = false;
  /// The caller hands out the slots for requests itself. They all count as in
  /// use, and allocate and free refuse them.
  bool foreignRequests = false;
};

/// The buffers of a pool.
enum class PoolBuffer {
  /// [P, Hv, dv, dk]; with planes the upper one, u8
  state,
  /// [P, D, K - 1]
  conv,
  /// [P, D, K - 1 + convExtra]: `conv` and the positions after it.
  convHistory,
  /// [P, Hk, S, dk], [P, Hv, S, dv], of pendingDType; [P, Hv, S] or
  /// [P, Hv, S, dk], f32
  pendingKeys,
  pendingDeltas,
  pendingDecays,
  /// [P, Hk]; i32
  pendingCounts,
  /// [P, Hv, dv]; f32
  stateScales,
  /// [P, Hv, dv, dk]; u8
  stateLow,
  /// [P, Hv, S]; f32
  pendingScales,
};

struct BufferPlan;
struct EntrySchema;
struct LoadedKernel;
class SlotMoves;
class SlotTransfers;

class StatePool {
public:
  /// Makes a pool in memory that it allocates on `device` and fills with zeros.
  static Result<std::unique_ptr<StatePool>> make(std::shared_ptr<Device> device,
                                                 const StatePoolShape &shape,
                                                 const StatePoolOptions &);

  /// Makes a pool in memory of the caller, which must outlive the pool: for
  /// each layer of `shape` a state [P, Hv, dv, dk] and a window [P, D, K - 1 or
  /// more], with their strides. The strides, dtypes, layout and convExtra of
  /// `shape` are ignored. The contents stay as they are. The memory for pending
  /// tokens is allocated on the device.
  static Result<std::unique_ptr<StatePool>>
  wrap(std::shared_ptr<Device> device, const StatePoolShape &shape,
       const Argument *states, const Argument *convs, const StatePoolOptions &);

  ~StatePool();
  StatePool(const StatePool &) = delete;
  StatePool &operator=(const StatePool &) = delete;

  const StatePoolShape &shape() const { return shape_; }
  const StatePoolOptions &options() const { return options_; }
  Device &device() const { return *device_; }
  int64_t numSlots() const { return shape_.numSlots(); }
  int64_t numFree(SlotKind kind) const;
  int64_t numInUse(SlotKind kind) const;
  bool isInUse(int32_t slot) const;
  /// The bytes of all slots, in memory of the pool and of the caller.
  uint64_t memoryBytes() const { return bytes_; }

  /// One layer of a buffer as an argument of kernels, with the null slot.
  /// Addresses, sizes and strides do not change while the pool exists.
  Result<Argument> view(PoolBuffer buffer, int64_t layer) const;

  /// Takes `count` slots, writes their ids and returns true. Takes none and
  /// returns false if fewer are free. With `zero` the slots are filled with
  /// zeros in the order of `stream`. Otherwise their contents are undefined.
  Result<bool> allocate(SlotKind kind, size_t count, int32_t *slots, bool zero,
                        void *stream);
  /// Frees slots. If one is not in use, padding or named twice, none is freed.
  /// Earlier work on `stream` may still use them.
  Status free(const int32_t *slots, size_t count, void *stream);
  /// The same for slots that nobody will know of: where debug checks cannot
  /// fill them they are freed as they are.
  void freeAnyway(const int32_t *slots, size_t count, void *stream);
  /// Takes a slot for a request, copies all of slot `source` to it and returns
  /// true. Returns false if no slot is free.
  Result<bool> fork(int32_t source, int32_t *slot, void *stream);

  /// Fills slots with zeros, in all layers and buffers. Ignores padding.
  Status reset(const int32_t *slots, size_t count, void *stream);
  /// Copies slot from[i] to slot to[i], in all layers and buffers. Ignores
  /// pairs with padding and pairs of the same id. No target may be a source or
  /// the target of another pair.
  Status copy(const int32_t *from, const int32_t *to, size_t count,
              void *stream);

  /// Fails unless the pool has as many planes of states as the entry, which may
  /// be none. An entry without states fits.
  Status checkPlanes(const EntrySchema &entry) const;

  /// Says for each slot whether tokens are pending in it, in any layer. Waits
  /// for `stream` and copies the counts of all slots to the host. Padding has
  /// none.
  Status hasPending(const int32_t *slots, size_t count, void *stream,
                    uint8_t *pending);

  /// Says that copies on streams of their own may use slots, from now on. Takes
  /// the memory for that.
  void expectTransfers();
  /// Fails unless the slots are in use and no padding, and with `distinct` each
  /// occurs once.
  Status checkTransfer(const int32_t *slots, size_t count, bool distinct);
  /// A copy uses the slots until `event` is over: what allocate, free, reset,
  /// copy and fork do with them on a stream is after it.
  void noteTransfer(const int32_t *slots, size_t count,
                    const std::shared_ptr<StreamEvent> &event);
  /// Makes `stream` wait for such copies of the slots. Ignores padding.
  Status orderAfterTransfers(const int32_t *slots, size_t count, void *stream);

  /// The buffers, and what each of them is; `convHistory` for the window.
  const std::vector<SlotBuffer> &buffers() const { return buffers_; }
  const std::vector<PoolBuffer> &kinds() const { return kinds_; }

  /// Makes the pool copy and zero states and windows with the entries
  /// copy_slots and zero_slots of an image, on any stream, captured or not.
  /// Other buffers use the device's fill and copy. No other thread may use the
  /// pool during the call.
  Status useKernels(std::shared_ptr<LoadedKernel> copySlots,
                    std::shared_ptr<LoadedKernel> zeroSlots);

  /// For debugging. Fails unless every id of a batch that is not padding is in
  /// use and occurs once.
  Status checkBatch(const int32_t *slots, size_t count);

private:
  StatePool(std::shared_ptr<Device> device, const StatePoolShape &shape,
            const StatePoolOptions &options);
  Status finish();
  /// Adds the planned buffers from `first` on, which are in `memory`.
  void addOwned(std::shared_ptr<void> memory,
                const std::vector<BufferPlan> &plans, size_t first);
  Status fill(const int32_t *slots, size_t count, uint8_t value, void *stream);
  Status clearCounts(const int32_t *slots, size_t count, void *stream);
  const SlotBuffer *find(PoolBuffer kind) const;
  bool isMoved(PoolBuffer kind) const;
  bool isForeign(int32_t slot) const;

  std::shared_ptr<Device> device_;
  StatePoolShape shape_;
  StatePoolOptions options_;
  uint64_t bytes_ = 0;
  /// Memory that the pool allocated, if any.
  std::shared_ptr<void> memory_;
  /// The state, the window, and others as far as the shape has them.
  std::vector<SlotBuffer> buffers_;
  /// What each of them is; convHistory for the window.
  std::vector<PoolBuffer> kinds_;
  /// The sizes of the window as kernels see it.
  std::vector<int64_t> convWindowSizes_;
  std::unique_ptr<SlotWork> work_;
  /// Kernels that copy and zero states and windows, if there are any.
  std::unique_ptr<SlotMoves> moves_;
  std::unique_ptr<SlotTransfers> transfers_;

  mutable std::mutex lock_;
  SlotTable table_;
};

} // namespace gdnrt

#endif // GDNRT_STATE_POOL_H
