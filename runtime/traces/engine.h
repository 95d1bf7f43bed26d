// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is under test: pools and the kernels of an image on a device, behind
// functions that take rows. All layers share the entries and have weights of
// their own.

#ifndef GDNRT_TRACES_ENGINE_H
#define GDNRT_TRACES_ENGINE_H

#include "device_array.h"
#include "gdn-c/serving.h"
#include "kernels.h"
#include "model.h"
#include "pools.h"
#include "trace.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace gdnrt::traces {

struct StepArrays;
class Arguments;
class LayerGraphs;
class PlannedSteps;

/// A row of a batch. Which members count depends on the entry.
struct Row {
  std::vector<uint64_t> tokens;
  int32_t slot = 0, writeSlot = 0;
  bool hasInitial = true;
  std::vector<int32_t> tokenSlots, parents;
  int32_t accepted = 1;
  /// Of prefill: after how many of the tokens the state goes to which slot.
  std::vector<std::pair<int32_t, int32_t>> checkpoints;
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
  const Pools &pools() const { return pools_; }
  Pools &pools() { return pools_; }
  gdnrt_state_pool *pool() const { return pools_.states(); }

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

private:
  friend class LayerGraphs;
  friend class PlannedSteps;
  void makeLayers();
  /// The arrays of tokens, with `prefix` before their names in `array`.
  void addTokens(Arguments &args, const std::vector<uint64_t> &tokens,
                 int64_t layer, Outputs &core, const std::string &prefix = "");
  /// The same for arrays that were written before.
  void nameTokens(Arguments &args, int64_t numTokens,
                  const std::string &prefix);
  void addWeights(Arguments &args, int64_t layer);
  /// The sizes of an array of value heads that has a number for each decay.
  std::vector<int64_t> perDecay(std::vector<int64_t> sizes) const;
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

  const Kernels &kernels_;
  LayerSizes sizes_;
  int64_t verifyTokens_;
  std::vector<LayerWeights> weights_;
  Pools pools_;
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
