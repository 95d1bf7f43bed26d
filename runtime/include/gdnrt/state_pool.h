// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The states of many sequences, for all layers of a model: buffers at fixed
// addresses, and slots with owners. See docs/design/20261121-state-pool.md.
//
// Threads. Any number of threads call any method at once. Ownership changes
// when a call returns; memory is worked on in the order of the stream that the
// call got, on a CPU within the call and outside of the pool's lock. So two
// threads may fill and copy at once, provided that they name different slots,
// and whoever gets a slot that another thread freed has to order his work
// behind that thread's.
//
// Memory. Nothing is allocated after the pool is made, errors aside.

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

/// How the window of a slot lies in memory. Kernels see [channels, positions].
enum class ConvLayout {
  /// [channels, positions] (vLLM's DS, pymllm, sglang).
  ds,
  /// [positions, channels] (vLLM's default SD).
  sd,
};

/// What a pool has room for, in elements; heads are those of one rank.
struct StatePoolShape {
  int64_t numLayers = 0;
  /// Slots for requests, ids 1 to numRequests.
  int64_t numRequests = 0;
  /// Slots for states that a cache keeps, behind those for requests.
  int64_t numTrack = 0;
  int64_t keyHeads = 0, valueHeads = 0, keyDim = 0, valueDim = 0;
  /// K: positions of the convolution's kernel. The window keeps K - 1.
  int64_t convWidth = 4;
  /// Positions that the memory of a window has beyond K - 1, for engines that
  /// keep one history for a verify step.
  int64_t convExtra = 0;
  /// S: tokens of a verify step that may be pending in a slot, for which there
  /// are keys, deltas and decays in f32, and convExtra is S; 0: no such memory.
  int64_t pendingTokens = 0;
  /// Decays of pending tokens are [S, dk] instead of [S].
  bool decayPerChannel = false;
  DType stateDType = DType::f32;
  DType convDType = DType::bf16;
  ConvLayout convLayout = ConvLayout::ds;
  /// From one slot and one layer to the next; 0: dense, layer after layer.
  int64_t stateSlotStride = 0, stateLayerStride = 0;
  int64_t convSlotStride = 0, convLayerStride = 0;

  /// D: channels of the convolution, q, k and v.
  int64_t channels() const {
    return 2 * keyHeads * keyDim + valueHeads * valueDim;
  }
  int64_t numSlots() const { return 1 + numRequests + numTrack; }
};

/// The bytes that a pool of this shape takes, all layers and slots, with the
/// padding that strides ask for.
Result<uint64_t> statePoolBytes(const StatePoolShape &shape);

/// The largest numRequests with which a pool of otherwise this shape takes at
/// most `bytes` bytes; 0 if there is none.
Result<int64_t> requestsThatFit(StatePoolShape shape, uint64_t bytes);

struct StatePoolOptions {
  /// Checks that slots are in use wherever they are named, and fills slots
  /// that are freed with NaN.
  bool debugChecks = false;
  /// Somebody else gives out the slots for requests: allocate and free are
  /// refused for them, and all of them count as in use.
  bool foreignRequests = false;
};

/// Which memory of a slot.
enum class PoolBuffer {
  /// [P, Hv, dv, dk]
  state,
  /// [P, D, K - 1]
  conv,
  /// [P, D, K - 1 + convExtra]: `conv` and what lies behind it.
  convHistory,
  /// [P, Hk, S, dk], [P, Hv, S, dv], [P, Hv, S] or [P, Hv, S, dk]; f32
  pendingKeys,
  pendingDeltas,
  pendingDecays,
};

struct BufferPlan;
struct LoadedKernel;
class SlotMoves;

class StatePool {
public:
  /// Takes memory of `device` for all of it. The memory is zero.
  static Result<std::unique_ptr<StatePool>> make(std::shared_ptr<Device> device,
                                                 const StatePoolShape &shape,
                                                 const StatePoolOptions &);

  /// A pool in memory of the caller, which outlives it: per layer a state
  /// [P, Hv, dv, dk] and a window [P, D, K - 1 or more] in their strides, as
  /// many of each as `shape` has layers. Strides, dtypes, layout and convExtra
  /// of `shape` are not looked at. The memory keeps what it holds. What pending
  /// tokens need is taken from the device.
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
  /// Bytes of all buffers, whoever owns them.
  uint64_t memoryBytes() const { return bytes_; }

  /// One layer of a buffer as an argument of kernels, with the null slot.
  /// Addresses, sizes and strides stay the same as long as the pool lives.
  Result<Argument> view(PoolBuffer buffer, int64_t layer) const;

  /// Takes `count` slots and writes their ids; false: there are too few, and
  /// none is taken. With `zero` their memory is zeroed in the order of
  /// `stream`; otherwise it holds anything.
  Result<bool> allocate(SlotKind kind, size_t count, int32_t *slots, bool zero,
                        void *stream);
  /// Gives slots back: all, or none where one is not in use or named twice.
  /// What `stream` was given before may still use them.
  Status free(const int32_t *slots, size_t count, void *stream);
  /// Takes a slot for a request and copies all of `source` to it; false: full.
  Result<bool> fork(int32_t source, int32_t *slot, void *stream);

  /// Zeroes slots, all layers and buffers. Padding is passed over.
  Status reset(const int32_t *slots, size_t count, void *stream);
  /// Copies slot from[i] to to[i], all layers and buffers. Pairs with padding,
  /// or of one slot twice, are passed over; no target may be a source or
  /// another target.
  Status copy(const int32_t *from, const int32_t *to, size_t count,
              void *stream);

  /// Lets the entries copy_slots and zero_slots of an image move states and
  /// windows, on the first stream that asks for it; the rest is filled and
  /// copied as before. Not while another thread uses the pool.
  Status useKernels(std::shared_ptr<LoadedKernel> copySlots,
                    std::shared_ptr<LoadedKernel> zeroSlots);

  /// For debugging: fails unless the ids of a batch, padding aside, are in use
  /// and each occurs once.
  Status checkBatch(const int32_t *slots, size_t count);

private:
  StatePool(std::shared_ptr<Device> device, const StatePoolShape &shape,
            const StatePoolOptions &options);
  Status finish();
  /// Adds planned buffers from `first` on, which lie in `memory`.
  void addOwned(std::shared_ptr<void> memory,
                const std::vector<BufferPlan> &plans, size_t first);
  Status fill(const int32_t *slots, size_t count, uint8_t value, void *stream);
  bool isMoved(size_t buffer) const;
  bool isForeign(int32_t slot) const;

  std::shared_ptr<Device> device_;
  StatePoolShape shape_;
  StatePoolOptions options_;
  uint64_t bytes_ = 0;
  /// Memory that the pool took, if any.
  std::shared_ptr<void> memory_;
  /// The state, the window, and the three of pending tokens if there are any.
  std::vector<SlotBuffer> buffers_;
  /// What kernels see of the window, in sizes.
  std::vector<int64_t> convWindowSizes_;
  std::unique_ptr<SlotWork> work_;
  /// Kernels that move states and windows, if there are any.
  std::unique_ptr<SlotMoves> moves_;

  mutable std::mutex lock_;
  SlotTable table_;
};

} // namespace gdnrt

#endif // GDNRT_STATE_POOL_H
