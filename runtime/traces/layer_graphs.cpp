// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Steps in graphs: all layers are captured once for the most rows and tokens,
// and replayed with the metadata and the tokens that lie in memory by then. All
// arrays of a graph keep their addresses.

#include "layer_graphs.h"

#include "arguments.h"
#include "step_arrays.h"

using namespace gdnrt::traces;
using gdnrt::DeviceGraph;

LayerGraphs::~LayerGraphs() {
  graphs_.clear();
  gdnrt_workspace_destroy(workspace_);
}

/// A graph needs no step ahead of its capture where the layers share a
/// workspace. Steps without a graph have more tokens.
void LayerGraphs::shareWorkspace() {
  constexpr int64_t kTokens = 2048;
  gdnrt_error error;
  gdnrt_workspace_size size = gdnrt_workspace_size_default();
  for (gdnrt_gdn_layer *layer : engine_.layers_)
    check(gdnrt_gdn_layer_workspace_size(layer, kMostRows, kTokens, &size,
                                         &error),
          error);
  check(gdnrt_workspace_create(engine_.kernels_.device(), &size, &workspace_,
                               &error),
        error);
  for (gdnrt_gdn_layer *layer : engine_.layers_)
    check(gdnrt_gdn_layer_share_workspace(layer, workspace_, &error), error);
}

DeviceGraph &LayerGraphs::of(int32_t kind,
                             const std::function<void(void *)> &record) {
  if (auto known = graphs_.find(kind); known != graphs_.end())
    return *known->second;
  // Pools are moved, and other steps run, on the default stream.
  auto graph = std::make_unique<DeviceGraph>(
      /*ordinal=*/0, DeviceGraph::Order::withDefaultStream);
  writeTokens({});
  graph->beginCapture();
  record(graph->stream());
  graph->endCapture();
  return *(graphs_[kind] = std::move(graph));
}

/// All that a graph reads and writes of tokens; those behind `tokens` have
/// values like others.
std::vector<Outputs> LayerGraphs::writeTokens(std::vector<uint64_t> tokens) {
  while (tokens.size() < static_cast<size_t>(kGraphTokens))
    tokens.push_back(mix(96, tokens.size()));
  std::vector<Outputs> cores(kNumLayers);
  for (int64_t layer = 0; layer < kNumLayers; ++layer) {
    Arguments args;
    engine_.addTokens(args, tokens, layer, cores[static_cast<size_t>(layer)],
                      prefix(layer));
  }
  return cores;
}

void LayerGraphs::recordLayers(const gdnrt_gdn_metadata &metadata,
                               const void *arena, void *stream) {
  gdnrt_error error;
  for (int64_t layer = 0; layer < kNumLayers; ++layer) {
    Arguments args;
    engine_.nameTokens(args, kGraphTokens, prefix(layer));
    check(gdnrt_gdn_layer_forward(engine_.layers_[static_cast<size_t>(layer)],
                                  &metadata, arena, args.named().data(),
                                  args.named().size(), stream, &error),
          error);
  }
}

std::string LayerGraphs::prefix(int64_t layer) {
  return "graph" + std::to_string(layer) + "_";
}

std::vector<Outputs> LayerGraphs::replay(DeviceGraph &graph,
                                         const std::vector<uint64_t> &tokens) {
  std::vector<Outputs> outputs = writeTokens(tokens);
  graph.replay();
  ++numReplayed_;
  for (int64_t layer = 0; layer < kNumLayers; ++layer) {
    Outputs &core = outputs[static_cast<size_t>(layer)];
    engine_.array(prefix(layer) + "core")
        .read(core.data(), core.size() * sizeof(float));
  }
  return outputs;
}

/// Metadata for the capture of a graph of mixed batches, of decodes or of
/// verified rows.
gdnrt_gdn_metadata LayerGraphs::captured(int32_t kind) {
  std::vector<ServedRow> rows(static_cast<size_t>(kGraphRows));
  for (ServedRow &row : rows) {
    row.slots = {0};
    row.tokens.resize(kind == GDNRT_RUN_DECODE   ? 1
                      : kind == GDNRT_RUN_VERIFY ? size_t(engine_.verifyTokens_)
                                                 : 0);
  }
  const StepArrays step(rows, engine_.kernels_.isMixed() ? kGraphTokens : 0,
                        engine_.verifyTokens_);
  const gdnrt_common_metadata common = step.common();
  gdnrt_error error;
  gdnrt_gdn_metadata metadata = gdnrt_gdn_metadata_default();
  check(gdnrt_metadata_builder_build_for_cudagraph_capture(
            engine_.builder_, &common, &metadata, &error),
        error);
  return metadata;
}

std::optional<std::vector<Outputs>>
LayerGraphs::replay(const StepArrays &step) {
  gdnrt_common_metadata common = step.common();
  common.num_padded_reqs = kGraphRows;
  if (engine_.kernels_.isMixed())
    common.num_actual_tokens = kGraphTokens;
  gdnrt_error error;
  gdnrt_gdn_metadata metadata = gdnrt_gdn_metadata_default();
  auto build = [&] {
    check(gdnrt_metadata_builder_build(engine_.builder_, &common, &metadata,
                                       &error),
          error);
  };
  build();
  if (metadata.num_prefills > 0 && !engine_.kernels_.isMixed())
    return std::nullopt;
  // A step without tokens may take any graph.
  const int32_t kind = engine_.kernels_.isMixed() ? GDNRT_RUN_PREFILL
                       : metadata.num_runs > 0
                           ? metadata.runs[metadata.num_runs - 1].kind
                           : GDNRT_RUN_DECODE;
  // All memory is there before anything is recorded.
  const void *arena = engine_.arenaOf(metadata);
  DeviceGraph &graph = of(kind, [&](void *stream) {
    recordLayers(captured(kind), arena, stream);
    build();
  });
  engine_.upload(metadata, graph.stream());
  return replay(graph, step.tokens);
}
