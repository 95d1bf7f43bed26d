// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A step through metadata and the layers, as an engine runs it. Graphs are in
// layer_graphs.cpp, plans in planned_steps.cpp.

#include "arguments.h"
#include "layer_graphs.h"
#include "planned_steps.h"
#include "step_arrays.h"

#include <algorithm>

using namespace gdnrt::traces;

static int32_t statesOf(VerifyKind kind) {
  return kind == VerifyKind::tree     ? GDNRT_VERIFY_TREE
         : kind == VerifyKind::lazy   ? GDNRT_VERIFY_LAZY
         : kind == VerifyKind::buffer ? GDNRT_VERIFY_BUFFER
                                      : GDNRT_VERIFY_SLOTS;
}

void Engine::makeLayers() {
  gdnrt_error error;
  if (planned_) {
    planned_->makePlanner(statesOf(kernels_.verifyKind()));
  } else {
    gdnrt_metadata_options options = gdnrt_metadata_options_default();
    options.max_num_seqs = kMostRows;
    options.max_num_tokens = kMostTokens;
    options.num_speculative_tokens =
        kernels_.verifyKind() == VerifyKind::none ? 0 : verifyTokens_ - 1;
    options.use_full_cuda_graph = 1;
    options.mixed_batch = kernels_.isMixed();
    options.max_num_prefills = kernels_.isMixed() ? kMostPrefills : 0;
    options.verify_states = statesOf(kernels_.verifyKind());
    options.deferred_writes = kernels_.pendingRoom() > 0;
    check(gdnrt_metadata_builder_create(&options, &builder_, &error), error);
  }
  gdnrt_gdn_kernels kernels = gdnrt_gdn_kernels_default();
  kernels.decode = kernels_.decode;
  kernels.prefill = kernels_.prefill;
  kernels.verify = kernels_.verify;
  kernels.commit = kernels_.commit;
  for (int64_t layer = 0; layer < kNumLayers; ++layer) {
    Arguments args;
    addWeights(args, layer);
    layers_.push_back(nullptr);
    // One layer finds its pools by itself.
    if (layer == 0 && !pools_.haveTokens()) {
      check(gdnrt_gdn_layer_create_in_pool(&kernels, args.named().data(),
                                           args.named().size(), pool(), layer,
                                           &layers_.back(), &error),
            error);
      continue;
    }
    pools_.addTo(args, layer, /*withTokens=*/true, kernels_.keepPending());
    check(gdnrt_gdn_layer_create(&kernels, args.named().data(),
                                 args.named().size(), &layers_.back(), &error),
          error);
  }
  if (graphs_)
    graphs_->shareWorkspace();
}

/// Gives the runs of a step the rows that a graph was captured with: more than
/// the step has, and as the arrays say they are padding. False for a step that
/// no graph is replayed for. One of a mixed batch takes any step.
static bool asGraph(gdnrt_gdn_metadata &metadata, std::vector<gdnrt_run> &runs,
                    int64_t rows) {
  if (metadata.num_runs == 0 ||
      (metadata.num_prefills > 0 && !metadata.run_is_prefill.data))
    return false;
  runs.assign(metadata.runs, metadata.runs + metadata.num_runs);
  for (gdnrt_run &run : runs) {
    run.num_rows = std::max(run.num_rows, rows);
    if (run.kind == GDNRT_RUN_DECODE)
      metadata.num_run_tokens = run.num_tokens = rows;
  }
  metadata.runs = runs.data();
  return true;
}

/// Whether a step of a mixed batch has more sequences of prefill than a graph.
static bool isBeyondGraph(const std::vector<ServedRow> &rows, VerifyKind kind,
                          bool speculates) {
  return std::count_if(rows.begin(), rows.end(), [&](const ServedRow &row) {
           const bool isVerified = speculates && row.drafts >= 0;
           const bool isDecode = kind == VerifyKind::slots && row.context > 0 &&
                                 row.tokens.size() == 1;
           return !row.tokens.empty() && !isVerified && !isDecode;
         }) > kMostPrefills;
}

std::vector<Outputs> Engine::serve(const std::vector<ServedRow> &rows,
                                   int64_t padding) {
  if (layers_.empty())
    makeLayers();
  ++numServed_;
  const StepArrays step(rows, padding, verifyTokens_);
  const bool isBeyond =
      kernels_.isMixed() &&
      isBeyondGraph(rows, kernels_.verifyKind(), verifyTokens_ > 1);
  const bool fits = graphs_ && !isBeyond && step.numRows() <= kGraphRows &&
                    step.numTokens() <= kGraphTokens;
  if (planned_)
    return planned_->serve(step, fits, isBeyond);
  if (fits)
    if (auto outputs = graphs_->replay(step))
      return *outputs;
  return serveBuilt(step, isBeyond);
}

std::vector<Outputs> Engine::serveBuilt(const StepArrays &step, bool isBeyond) {
  gdnrt_common_metadata common = step.common();
  // The caller may say how many rows a graph has, or leave it out.
  const bool isEven = numServed_ % 2 == 0;
  if (isEven && !isBeyond)
    common.num_padded_reqs = step.numRows() + step.padding - step.emptyRows;
  gdnrt_error error;
  gdnrt_gdn_metadata metadata = gdnrt_gdn_metadata_default();
  // Counts that are left out are either not needed or an error.
  gdnrt_common_metadata without = common;
  without.num_accepted_tokens = nullptr;
  if (numServed_ % 3 != 0 ||
      gdnrt_metadata_builder_build(builder_, &without, &metadata, &error) !=
          GDNRT_OK)
    check(gdnrt_metadata_builder_build(builder_, &common, &metadata, &error),
          error);
  std::vector<gdnrt_run> runs;
  std::vector<uint64_t> tokens = step.tokens;
  if (numServed_ % 4 < 2 && asGraph(metadata, runs, kMostRows))
    while (static_cast<int64_t>(tokens.size()) < metadata.num_run_tokens)
      tokens.push_back(mix(97, tokens.size()));
  return runLayers(metadata, upload(metadata, nullptr), tokens);
}

void *Engine::upload(const gdnrt_gdn_metadata &metadata, void *stream) {
  if (kernels_.isHost())
    return nullptr;
  // Nobody else may write the arena where only changes are copied.
  const bool changes = verifyTokens_ % 2 == 0;
  void *arena = arenaOf(metadata);
  if (!changes) {
    std::vector<uint8_t> nothing(metadata.arena_bytes);
    array("arena").write(nothing.data(), nothing.size());
  }
  gdnrt_error error;
  check((changes ? gdnrt_metadata_upload_changed : gdnrt_metadata_upload)(
            kernels_.device(), &metadata, arena, stream, &error),
        error);
  return arena;
}

void *Engine::arenaOf(const gdnrt_gdn_metadata &metadata) {
  DeviceArray &arena = array("arena");
  if (!arena.data()) {
    std::vector<uint8_t> nothing(metadata.arena_bytes);
    arena.write(nothing.data(), nothing.size());
  }
  return arena.data();
}

std::vector<Outputs> Engine::runLayers(const gdnrt_gdn_metadata &metadata,
                                       const void *arena,
                                       const std::vector<uint64_t> &tokens) {
  gdnrt_error error;
  std::vector<Outputs> outputs;
  for (int64_t layer = 0; layer < kNumLayers; ++layer) {
    Arguments args;
    Outputs core;
    addTokens(args, tokens, layer, core);
    check(gdnrt_gdn_layer_forward(layers_[static_cast<size_t>(layer)],
                                  &metadata, arena, args.named().data(),
                                  args.named().size(), nullptr, &error),
          error);
    array("core").read(core.data(), core.size() * sizeof(float));
    outputs.push_back(std::move(core));
  }
  return outputs;
}

size_t Engine::numReplayed() const {
  return graphs_ ? graphs_->numReplayed() : 0;
}

size_t Engine::numPlanned() const {
  return planned_ ? planned_->numPlanned() : 0;
}
