// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pools of an engine: what kernels get of them, and what a slot holds.

#ifndef GDNRT_TRACES_POOLS_H
#define GDNRT_TRACES_POOLS_H

#include "gdn-c/state_pool.h"
#include "kernels.h"
#include "model.h"
#include "trace.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace gdnrt::traces {

class Arguments;

/// Layers of every pool; two, so that mixing them up is seen.
constexpr int64_t kNumLayers = 2;

class Pools {
public:
  /// Pools for the kernels, with the slots and strides of the trace and heads
  /// of `sizes`.
  Pools(const Kernels &kernels, const LayerSizes &sizes, const Trace &trace);

  struct Destroy {
    void operator()(gdnrt_state_pool *pool) const {
      gdnrt_state_pool_destroy(pool);
    }
  };
  using Pool = std::unique_ptr<gdnrt_state_pool, Destroy>;

  /// A pool of one slot, and in the other layout of windows, with the heads
  /// that one of `ranks` ranks has; null if heads cannot be divided so.
  Pool makeOfRank(const Trace &trace, int64_t ranks) const;
  const LayerSizes &sizes() const { return sizes_; }

  /// The pool of sequences.
  gdnrt_state_pool *states() const { return states_.get(); }
  /// Whether states after tokens have a pool: with VerifyKind::buffer.
  bool haveTokens() const { return tokens_ != nullptr; }
  /// Adds the pools of a layer; `withTokens` those of tokens that may be
  /// refused, and `withPending` those of tokens that states lack.
  void addTo(Arguments &args, int64_t layer, bool withTokens, bool withPending,
             bool withWindows = true) const;

  /// State and window of a slot as the model has them, with all tokens that the
  /// slot counts.
  LayerState read(int64_t layer, int32_t slot) const;
  /// Whether states are of f32 and all tokens are in them: pending deltas come
  /// from a state that was not rounded yet, which the model does not know.
  bool mayRound() const {
    return kernels_.statePlanes() == 0 && !kernels_.keepPending();
  }
  /// Whether the slot counts tokens; never without deferred writes.
  bool hasPending(int32_t slot) const;
  /// Fills the null slot with a pattern, and says whether it is still there.
  void paintNullSlot();
  bool nullSlotIsIntact() const;

private:
  /// What all pools have in common.
  gdnrt_state_pool_options optionsFor(const Trace &trace, bool pending) const;
  Pool make(const Trace &trace, int64_t requests, bool pending) const;
  gdnrt_arg view(int32_t buffer, int64_t layer) const;
  /// The elements of a slot in a buffer of T, in the order of memory.
  template <typename T>
  std::vector<T> readSlot(int32_t buffer, int64_t layer, int32_t slot) const;
  /// Keys or deltas of a slot's pending tokens, f32 or f16.
  std::vector<double> readPending(int32_t buffer, int64_t layer,
                                  int32_t slot) const;
  /// The state that memory has, [Hv, dv, dk].
  std::vector<double> readState(int64_t layer, int32_t slot) const;
  /// Puts tokens that the slot counts into its state.
  void foldPending(int64_t layer, int32_t slot, LayerState &state) const;
  /// The buffers of the pool that kernels write.
  std::vector<int32_t> buffers() const;

  const Kernels &kernels_;
  LayerSizes sizes_;
  Pool states_;
  /// Slots for states after tokens: those of slot s of a sequence begin at
  /// 1 + (s - 1) * verifyTokens.
  Pool tokens_;
};

} // namespace gdnrt::traces

#endif // GDNRT_TRACES_POOLS_H
