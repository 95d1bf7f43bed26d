// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is under test: a pool and the kernels of an image on a device, behind
// functions that take rows. All layers share the entries and have weights of
// their own.

#ifndef GDNRT_TRACES_ENGINE_H
#define GDNRT_TRACES_ENGINE_H

#include "device_array.h"
#include "gdn-c/serving.h"
#include "gdn-c/state_pool.h"
#include "model.h"
#include "trace.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace gdnrt::traces {

struct StepArrays;
class LayerGraphs;
class PlannedSteps;

/// Layers of every pool; two, so that mixing them up is seen.
constexpr int64_t kNumLayers = 2;

/// How an image's verify entry keeps states to go back to.
enum class VerifyKind {
  none,
  /// The state after each token in a slot of its own.
  slots,
  /// The same, and tokens have parents.
  tree,
  /// Tokens stay pending in the slot until it is known how many were right.
  lazy,
  /// States after tokens go to a buffer, from where the right one is copied.
  buffer,
};

/// An image on a device: what all traces share.
class Kernels {
public:
  /// `debugChecks` false is for graphs, which launches with checks refuse.
  Kernels(const std::string &image, const std::string &device,
          bool debugChecks);
  ~Kernels();
  Kernels(const Kernels &) = delete;
  Kernels &operator=(const Kernels &) = delete;

  gdnrt_device *device() const { return device_; }
  bool isHost() const { return isHost_; }
  /// Whether launches may be captured.
  bool haveGraphs() const { return !isHost_ && !debugChecks_; }
  /// How far numbers may be from float64, in parts of the largest: by default
  /// far above what f32 rounds off in a few hundred tokens, far below what a
  /// wrong state does.
  double tolerance = 1e-4;
  VerifyKind verifyKind() const { return verifyKind_; }
  /// How many tokens a slot may count that its state lacks, over several steps;
  /// 0 where a state lacks no more than what is to be committed.
  int64_t pendingRoom() const { return pendingRoom_; }
  /// Whether slots of the pool have memory for tokens that their states lack.
  bool keepPending() const {
    return verifyKind_ == VerifyKind::lazy || pendingRoom_ > 0;
  }
  /// Whether a row may write another slot than it reads.
  bool moveStates() const { return moveStates_; }
  /// Whether prefill and verify take the same arrays, each its own rows.
  bool isMixed() const { return isMixed_; }
  /// Whether accepted tokens have to be put into the states of rows.
  bool hasCommits() const {
    return verifyKind_ == VerifyKind::lazy || verifyKind_ == VerifyKind::buffer;
  }
  /// Sizes of a head and of the convolution; one key head, one value head.
  const LayerSizes &sizes() const { return sizes_; }
  /// Any but decode may be missing; only a GPU has no prefill.
  gdnrt_kernel *prefill = nullptr, *decode = nullptr, *verify = nullptr,
               *commit = nullptr;
  /// Those that move slots, for the pool; both or none.
  gdnrt_kernel *copySlots = nullptr, *zeroSlots = nullptr;
  /// Makes metadata on the device; of some images with mixed batches.
  gdnrt_kernel *plan = nullptr;

private:
  void readSizes();
  gdnrt_kernel *find(const char *name);
  gdnrt_image *image_ = nullptr;
  gdnrt_device *device_ = nullptr;
  bool isHost_ = false, debugChecks_ = true;
  VerifyKind verifyKind_ = VerifyKind::none;
  bool isMixed_ = false, moveStates_ = false;
  int64_t pendingRoom_ = 0;
  LayerSizes sizes_;
};

/// A row of a batch. Which members count depends on the entry.
struct Row {
  std::vector<uint64_t> tokens;
  int32_t slot = 0, writeSlot = 0;
  bool hasInitial = true;
  std::vector<int32_t> tokenSlots, parents;
  int32_t accepted = 1;
};

/// A row of a step that goes through the metadata builder and layers.
struct ServedRow {
  std::vector<uint64_t> tokens;
  /// Tokens that came before.
  size_t context = 0;
  /// Slots: with VerifyKind::slots one for each token of a verify step.
  std::vector<int32_t> slots;
  /// With trees and buffers.
  std::vector<int32_t> tokenSlots, parents;
  int32_t accepted = 1;
  /// Guessed tokens among them, or -1: the row is not verified.
  int32_t drafts = -1;
};

/// Outputs of a layer, token after token.
using Outputs = std::vector<float>;

class Engine {
public:
  Engine(const Kernels &kernels, const Trace &trace);
  ~Engine();
  Engine(const Engine &) = delete;
  Engine &operator=(const Engine &) = delete;

  const LayerSizes &sizes() const { return sizes_; }
  const LayerWeights &weights(int64_t layer) const {
    return weights_[static_cast<size_t>(layer)];
  }
  gdnrt_state_pool *pool() const { return pool_; }

  /// Runs rows through all layers; `padding` tokens follow the last row. The
  /// outputs of each layer, those of padding included. Where there is no kernel
  /// for it, token after token by decode.
  std::vector<Outputs> prefill(const std::vector<Row> &rows, int64_t padding);
  std::vector<Outputs> decode(const std::vector<Row> &rows);
  std::vector<Outputs> verify(const std::vector<Row> &rows);
  /// Puts accepted tokens into the states of rows, of kinds that have commits.
  void commit(const std::vector<Row> &rows);

  /// Runs a step of rows of all kinds as an engine does: metadata, then layers.
  /// `padding` tokens follow those of the rows, one for each row without
  /// tokens, and one for each that a graph has besides; outputs have them too,
  /// and all others of a graph.
  std::vector<Outputs> serve(const std::vector<ServedRow> &rows,
                             int64_t padding);

  /// Whether steps are replayed from graphs where they can be.
  bool usesGraphs() const { return graphs_ != nullptr; }
  /// Steps that were replayed from a graph, and steps that were planned.
  size_t numReplayed() const;
  size_t numPlanned() const;

  /// State and window of a slot as the model has them, with all tokens that the
  /// slot counts.
  LayerState read(int64_t layer, int32_t slot) const;
  /// Whether the slot counts tokens; never without deferred writes.
  bool hasPending(int32_t slot) const;
  /// Fills the null slot with a pattern, and says whether it is still there.
  void paintNullSlot();
  bool nullSlotIsIntact() const;

private:
  friend class LayerGraphs;
  friend class PlannedSteps;
  class Arguments;
  void makeLayers();
  /// The arrays of tokens, with `prefix` before their names in `array`.
  void addTokens(Arguments &args, const std::vector<uint64_t> &tokens,
                 int64_t layer, Outputs &core, const std::string &prefix = "");
  /// The same for arrays that were written before.
  void nameTokens(Arguments &args, int64_t numTokens,
                  const std::string &prefix);
  void addWeights(Arguments &args, int64_t layer);
  /// The pools of a layer; `withTokens` those of tokens that may be refused,
  /// and `withPending` those of tokens that states lack.
  void addPools(Arguments &args, int64_t layer, bool withTokens,
                bool withPending, bool withWindows = true) const;
  /// Puts tokens that the slot counts into its state.
  void foldPending(int64_t layer, int32_t slot, LayerState &state) const;
  std::vector<Outputs> prefillByDecode(const std::vector<Row> &rows,
                                       int64_t padding);
  std::vector<Outputs> serveBuilt(const StepArrays &step, bool isBeyond);
  /// Where the metadata is on the device then; null on a CPU.
  void *upload(const gdnrt_gdn_metadata &metadata, void *stream);
  void *arenaOf(const gdnrt_gdn_metadata &metadata);
  std::vector<Outputs> runLayers(const gdnrt_gdn_metadata &metadata,
                                 const void *arena,
                                 const std::vector<uint64_t> &tokens);
  DeviceArray &array(const std::string &name);
  std::vector<Outputs> run(gdnrt_kernel *kernel, const std::vector<Row> &rows,
                           int64_t padding);
  gdnrt_arg view(int32_t buffer, int64_t layer) const;
  /// The buffers of the pool that kernels write.
  std::vector<int32_t> buffers() const;
  gdnrt_state_pool *makePool(const Trace &trace, int64_t requests,
                             bool pending) const;

  const Kernels &kernels_;
  LayerSizes sizes_;
  int64_t verifyTokens_;
  std::vector<LayerWeights> weights_;
  gdnrt_state_pool *pool_ = nullptr;
  /// Slots for states after tokens, with VerifyKind::buffer: those of slot s of
  /// a sequence begin at 1 + (s - 1) * verifyTokens.
  gdnrt_state_pool *tokenPool_ = nullptr;
  /// Made when they are first needed.
  gdnrt_metadata_builder *builder_ = nullptr;
  std::vector<gdnrt_gdn_layer *> layers_;
  /// Null where steps are not replayed, or not planned.
  std::unique_ptr<LayerGraphs> graphs_;
  std::unique_ptr<PlannedSteps> planned_;
  int64_t numServed_ = 0;
  std::map<std::string, DeviceArray> arrays_;
};

} // namespace gdnrt::traces

#endif // GDNRT_TRACES_ENGINE_H
