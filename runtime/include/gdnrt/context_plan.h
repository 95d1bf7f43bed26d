// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prefill of sequences whose tokens are spread over ranks: what is known of a
// batch, and the launches of a layer.

#ifndef GDNRT_CONTEXT_PLAN_H
#define GDNRT_CONTEXT_PLAN_H

#include "gdn-c/context.h"
#include "gdnrt/exchange.h"
#include "gdnrt/layer_workspaces.h"
#include "gdnrt/loaded_kernel.h"

#include <array>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

namespace gdnrt {

class RankBuffer;

/// What a rank says of a plan: whether it has failed so far, with which code,
/// and what has to be the same on all ranks.
struct ContextHead {
  int64_t failure = 0, count = 0, heads = 0, slots = 0, nullSlot = 0;
  int64_t checkpoints = 0;
};

/// What a rank was asked for.
struct ContextBatch {
  int64_t heads = 0, slots = 0, tokens = 0, nullSlot = -1;
  int segments = 4;
  std::vector<int64_t> starts, readSlots, writeSlots, hasInitial;
  /// N + 1, or none, and as many as the last of them says.
  std::vector<int64_t> checkpointStarts, checkpointTokens, checkpointSlots;

  int64_t count() const { return static_cast<int64_t>(readSlots.size()); }
  bool isSlot(int64_t slot) const {
    return slot >= 0 && slot < slots && slot != nullSlot;
  }
  /// Fails if the arrays do not go together.
  Status check() const;
  ContextHead head() const;
};

/// Segments of a rank's tokens, each a sequence of a batch of its own, and the
/// sequences with tokens anywhere whose slot is one.
struct ContextSegments {
  /// M + 1 and M: where segments begin, and their numbers; -1 where rows belong
  /// to no sequence that is live. There is always a segment.
  std::vector<int32_t> starts, places;
  /// For each live sequence: its segments here, and its slots; -1 for a state
  /// of zeros and for one that goes nowhere.
  std::vector<int32_t> first, count;
  std::vector<int64_t> readSlots, writeSlots;
  /// Of the checkpoints of each rank: the slots. And for those of this rank:
  /// the segments that end there.
  std::vector<std::vector<int64_t>> checkpointSlots;
  std::vector<int32_t> checkpointSegments;

  int64_t segments() const { return static_cast<int64_t>(places.size()); }
  int64_t sequences() const { return static_cast<int64_t>(first.size()); }
  /// The most checkpoints of a rank.
  int64_t checkpoints() const;
  /// Fails if two states go to one slot, or one to a slot that another sequence
  /// begins with. The same on all ranks.
  Status check() const;
};

/// The segments of a batch of which rank r has `lengths[r][n]` tokens of
/// sequence n; `batch` is that of this rank, `rank`.
ContextSegments cutSegments(const ContextBatch &batch, size_t rank,
                            const std::vector<std::vector<int64_t>> &lengths);

/// Heads of all ranks, in memory that is there before any plan is made: a rank
/// that has none for a plan can say so. Used for one plan at a time.
class ContextHeads {
public:
  /// The exchange outlives it.
  static Result<std::shared_ptr<ContextHeads>>
  make(std::shared_ptr<Device> device, Exchange &exchange);
  ~ContextHeads();
  ContextHeads(const ContextHeads &) = delete;
  ContextHeads &operator=(const ContextHeads &) = delete;

  /// All ranks call it. Fails if a rank has failed, on that one with `status`,
  /// or if the heads differ, with the same message on all. Takes no memory but
  /// for messages, and none before the exchange.
  Status agree(ContextHead own, Status status);

private:
  ContextHeads(std::unique_ptr<RankBuffer> buffer, size_t ranks);

  std::unique_ptr<RankBuffer> buffer_;
  std::vector<ContextHead> all_;
};

/// Arrays of ranks whose heads are the same: the lengths of sequences, and what
/// has to be the same. The batch outlives it.
class ContextAgreement {
public:
  explicit ContextAgreement(const ContextBatch &batch);
  ~ContextAgreement();
  ContextAgreement(const ContextAgreement &) = delete;
  ContextAgreement &operator=(const ContextAgreement &) = delete;

  /// Takes the memory for `gather`.
  Status prepare(std::shared_ptr<Device> device, Exchange &exchange);
  /// All ranks call it. Takes no memory but for errors.
  Status gather();
  /// Those of each rank; fails if ranks differ in what has to be the same.
  Result<std::vector<std::vector<int64_t>>> lengths() const;

private:
  struct Same {
    const char *name, *of;
    const std::vector<int64_t> *values;
  };
  std::array<Same, 6> same() const;

  const ContextBatch &batch_;
  std::unique_ptr<RankBuffer> buffer_;
  std::vector<int64_t> none_; // starts without checkpoints
  std::vector<int64_t> mine_, all_;
};

/// What `body` returns, or OUT_OF_MEMORY if it throws, as the standard library
/// does for want of memory: other ranks have to hear of it.
template <typename Body> Status withoutThrow(Body &&body) noexcept {
  Status bare(StatusCode::outOfMemory, std::string());
  try {
    return body();
  } catch (const std::exception &) {
    try {
      return failure(StatusCode::outOfMemory, "context plan: no memory");
    } catch (const std::exception &) {
      return bare; // not even for the message
    }
  }
}

/// The entries of an image that plans launch, and what follows of them.
struct ContextKernels {
  std::shared_ptr<Device> device;
  Exchange *exchange = nullptr;
  std::shared_ptr<LoadedKernel> prefill, combine, apply;
  std::shared_ptr<ContextHeads> heads;
  int64_t dk = 0, dv = 0;
  size_t mapsVariant = 0; // of prefill

  /// Finds the sizes of heads and the variant; fails if there are none.
  Status takeSizes();
};

class ContextPlan {
public:
  /// Takes part in the exchange even if `status`, what happened before, is a
  /// failure; it fails with that then. A rank that runs out of memory tells the
  /// others, which fail with OUT_OF_MEMORY, too.
  static Result<std::unique_ptr<ContextPlan>>
  make(const ContextKernels &kernels, const ContextBatch &batch, Status status);

  Status run(const gdnrt_context_args &args, void *stream);

  uint64_t memoryBytes() const { return bytes_; }
  uint64_t sentBytes() const { return sentBytes_ + keptBytes_; }

private:
  /// An array of the plan, of known sizes.
  struct Array {
    DType dtype;
    std::vector<int64_t> sizes;
    void *data = nullptr;
    /// 2^48 if there are more.
    uint64_t bytes() const;
  };
  /// A kernel, bound at its first launch.
  struct Launch {
    std::shared_ptr<LoadedKernel> kernel;
    std::unique_ptr<Binding> binding;
    std::vector<size_t> order;
  };
  using Named = std::vector<std::pair<const char *, Argument>>;

  static std::unique_ptr<ContextPlan> begin(const ContextKernels &kernels,
                                            const ContextBatch &batch);
  Status takeMemory(const ContextSegments &segments);
  Argument argument(const Array &array) const;
  static Status bind(Launch &launch, const Named &given);
  Status bindAll(const gdnrt_context_args &args, bool isCapturing);
  Status placeMaps(bool isCapturing);
  Status prepare(const LaunchStream &stream);
  Status launch(Launch &launch, const LaunchStream &stream);

  std::shared_ptr<Device> device_;
  Exchange *exchange_ = nullptr;
  int64_t heads_ = 0, slots_ = 0, tokens_ = 0, nullSlot_ = -1;
  int64_t dk_ = 0, dv_ = 0, sequences_ = 0;
  size_t mapsVariant_ = 0;
  Launch maps_, combine_, apply_, outputs_;
  /// Of the states of checkpoints: into what is sent, and from that to the
  /// pool.
  Launch keep_, restore_;
  LayerWorkspaces workspaces_; // of the outputs
  std::shared_ptr<void> memory_;
  /// What kernels that prepare chunks work in, with maps of segments in front;
  /// the last one counts.
  std::vector<std::shared_ptr<void>> chunks_;
  uint64_t bytes_ = 0, sentBytes_ = 0;
  uint64_t keptBytes_ = 0; // of checkpoints, sent by this rank
  // M segments, N sequences, R ranks.
  Array constant_, linear_, gathered_, own_, states_;
  Array starts_, places_, flags_, first_, count_, readSlots_, writeSlots_,
      rank_;
  // At most K checkpoints of a rank: their states as maps, of this rank and of
  // all, which are those of R * K sequences of one rank.
  Array kept_, allKept_, keptFirst_, keptCount_, keptNone_, keptStarts_,
      keptSlots_, firstRank_;
};

} // namespace gdnrt

#endif // GDNRT_CONTEXT_PLAN_H
