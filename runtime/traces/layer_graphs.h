// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The graphs of an engine's layers.

#ifndef GDNRT_TRACES_LAYER_GRAPHS_H
#define GDNRT_TRACES_LAYER_GRAPHS_H

#include "device_graph.h"
#include "engine.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gdnrt::traces {

class LayerGraphs {
public:
  explicit LayerGraphs(Engine &engine) : engine_(engine) {}
  ~LayerGraphs();
  LayerGraphs(const LayerGraphs &) = delete;
  LayerGraphs &operator=(const LayerGraphs &) = delete;

  /// Gives the layers, which are there by then, a workspace that they share.
  void shareWorkspace();
  /// The graph whose last run is of a kind, which `record` records.
  DeviceGraph &of(int32_t kind,
                  const std::function<void(void *stream)> &record);
  void recordLayers(const gdnrt_gdn_metadata &metadata, const void *arena,
                    void *stream);
  std::vector<Outputs> replay(DeviceGraph &graph,
                              const std::vector<uint64_t> &tokens);
  /// Nothing for a step that there are no graphs of.
  std::optional<std::vector<Outputs>> replay(const StepArrays &step);
  size_t numReplayed() const { return numReplayed_; }

private:
  gdnrt_gdn_metadata captured(int32_t kind);
  static std::string prefix(int64_t layer);
  std::vector<Outputs> writeTokens(std::vector<uint64_t> tokens);

  Engine &engine_;
  gdnrt_workspace *workspace_ = nullptr;
  std::map<int32_t, std::unique_ptr<DeviceGraph>> graphs_;
  size_t numReplayed_ = 0;
};

} // namespace gdnrt::traces

#endif // GDNRT_TRACES_LAYER_GRAPHS_H
