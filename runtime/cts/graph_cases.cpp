// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Graphs of steps: captured once on the null slot, replayed for rows that come
// later, with the bits of eager launches. Padding never touches a live slot,
// and what cannot be captured is refused before anything is recorded.

#include "device_graph.h"
#include "gdn-c/attention.h"
#include "layer_test.h"

#include <algorithm>
#include <memory>

using namespace gdnrt::cts;
using gdnrt::DeviceGraph;

namespace {

class GraphCases : public LayerTest {
protected:
  GraphCases() : LayerTest(/*debugChecks=*/false) {}
  void SetUp() override {
    if (!hasGraphs())
      GTEST_SKIP() << "the device has no graphs";
    LayerTest::SetUp();
    if (!IsSkipped())
      graph = std::make_unique<DeviceGraph>(ordinal());
  }
  void TearDown() override {
    gdnrt_attention_backend_destroy(backend);
    gdnrt_workspace_destroy(workspace);
    LayerTest::TearDown();
  }

  /// As many rows as `live` and two of padding, all of them on the null slot,
  /// as long as verified rows can be.
  Rows emptyRows(const Rows &live, EntryKind of) const {
    Rows rows = padded(live);
    rows.slots.assign(rows.slots.size(), 0);
    for (auto &slots : rows.tokenSlots)
      slots.assign(slots.size(), 0);
    for (int64_t &length : rows.lengths)
      length = of == EntryKind::verify ? 1 + kDrafts : 1;
    return rows;
  }

  gdnrt_status forward(const std::vector<gdnrt_named_arg> &args,
                       const gdnrt_gdn_metadata *metadata, void *arena,
                       void *stream) {
    std::vector<gdnrt_named_arg> tokens = pick(args, false);
    return gdnrt_gdn_layer_forward(layer, metadata, arena, tokens.data(),
                                   tokens.size(), stream, &error);
  }

  /// Captures a step with room for `live` and padding over `args`; a step ahead
  /// of it warms up.
  void capture(const std::vector<gdnrt_named_arg> &args, const Rows &live,
               EntryKind of) {
    gdnrt_gdn_metadata metadata = build(of, emptyRows(live, of), 0, true);
    void *arena = upload(metadata);
    ASSERT_EQ(forward(args, &metadata, arena, graph->stream()), GDNRT_OK)
        << error.message;
    // It reads the arena, which the next step's metadata take.
    EXPECT_EQ(
        gdnrt_device_synchronize(kernel.device(), graph->stream(), &error),
        GDNRT_OK);
    graph->beginCapture();
    EXPECT_EQ(forward(args, &metadata, arena, graph->stream()), GDNRT_OK)
        << error.message;
    graph->endCapture();
  }

  /// Outputs of a replay: those of `alone` first, and zeros behind.
  void expectReplayed(const Problem &graphed, const Problem &alone) {
    for (const std::string &output : alone.outputs()) {
      const Bytes all = graphed[output].elements();
      const Bytes one = alone[output].elements();
      ASSERT_GT(all.size(), one.size());
      const auto behind = all.begin() + static_cast<std::ptrdiff_t>(one.size());
      EXPECT_TRUE(std::equal(one.begin(), one.end(), all.begin())) << output;
      EXPECT_TRUE(std::all_of(behind, all.end(), [](uint8_t byte) {
        return byte == 0;
      })) << output;
    }
  }

  /// The first `count` rows.
  static Rows first(Rows rows, size_t count) {
    for (auto *values : {&rows.lengths, &rows.slots, &rows.accepted})
      if (!values->empty())
        values->resize(count);
    for (auto *table : {&rows.tokenSlots, &rows.parents})
      if (!table->empty())
        table->resize(count);
    return rows;
  }

  std::unique_ptr<DeviceGraph> graph;
  gdnrt_attention_backend *backend = nullptr;
  gdnrt_workspace *workspace = nullptr;
};
GDNRT_CTS_LAYERS(GraphCases);

} // namespace

// One graph, replayed for ever fewer rows: each time the bits of a kernel that
// is launched for those rows.
TEST_P(GraphCases, ReplaysHaveTheBitsOfEagerLaunches) {
  if (kind == EntryKind::prefill)
    GTEST_SKIP() << "graphs are of decode and verify";
  const Rows live = rows();
  const int64_t room = static_cast<int64_t>(live.lengths.size()) + 2;
  Problem graphed(kernel.entry(), emptyRows(live, kind)), eager = graphed;
  kernel.onDevice(graphed, [&](const auto &args) {
    makeLayer(args);
    capture(args, live, kind);
    for (size_t count = live.lengths.size(); count > 0; --count) {
      const Rows fewer = first(live, count);
      upload(build(kind, fewer, room));
      graph->replay();
      kernel.readBack(graphed, args);
      // The same rows alone, from the states that the last replay left.
      Problem alone(kernel.entry(), fewer);
      alone.takePools(eager);
      kernel.run(alone);
      eager.takePools(alone);
      expectReplayed(graphed, alone);
    }
  });
  expectSamePools(graphed, eager);
}

// A request of one token, whose slot holds what another request left, in a
// graph whose decode says which rows start from zeros.
TEST_P(GraphCases, FirstTokensOfRequestsStartFromZeros) {
  if (kind != EntryKind::decode || !takes(kernel, "has_initial"))
    GTEST_SKIP() << "rows of the entry start from their slots";
  const Rows live = rows();
  const int64_t room = static_cast<int64_t>(live.lengths.size()) + 2;
  Problem graphed(kernel.entry(), emptyRows(live, kind));
  Problem alone(kernel.entry(), live);
  kernel.onDevice(graphed, [&](const auto &args) {
    makeLayer(args);
    capture(args, live, kind);
    firstTokens = {0};
    upload(build(kind, live, room));
    graph->replay();
    kernel.readBack(graphed, args);
  });
  alone["has_initial"].setInteger(0, 0);
  kernel.run(alone);
  expectReplayed(graphed, alone);
  expectSamePools(graphed, alone);
}

// Rows behind the live ones have no tokens and still name slots that live.
TEST_P(GraphCases, PaddingNeverTouchesALiveSlot) {
  if (kind == EntryKind::prefill)
    GTEST_SKIP() << "graphs are of decode and verify";
  const Rows live = rows();
  const int64_t room = static_cast<int64_t>(live.lengths.size()) + 2;
  Problem graphed(kernel.entry(), emptyRows(live, kind));
  const Rows one = first(live, 1);
  Problem alone(kernel.entry(), one);
  kernel.run(alone);
  Rows stale = live;
  for (size_t row = 1; row < stale.lengths.size(); ++row)
    stale.lengths[row] = 0;
  kernel.onDevice(graphed, [&](const auto &args) {
    makeLayer(args);
    capture(args, live, kind);
    upload(build(kind, stale, room));
    graph->replay();
  });
  expectReplayed(graphed, alone);
  expectSamePools(graphed, alone);
}

// A graph of decodes has the commit of what was verified in it, always.
TEST_P(GraphCases, DecodesCommitFirst) {
  if (kind != EntryKind::verify || !hasCommits())
    GTEST_SKIP() << "the entry leaves nothing to commit";
  if (!commit.exists() || !decode.exists())
    GTEST_SKIP() << commit.refusal() << decode.refusal();
  if (takes(decode, "pending_counts"))
    GTEST_SKIP() << "the kernels alone would write states earlier";
  Rows live = rows();
  live.accepted.assign(live.lengths.size(), 0);
  Problem pools(verify.entry(), live);
  verify.run(pools);
  Problem eager = pools;
  Rows decodes;
  decodes.lengths.assign(live.lengths.size(), 1);
  decodes.slots = live.slots;
  decodes.tokenSlots = live.tokenSlots;
  decodes.steps = live.steps;
  const int64_t room = static_cast<int64_t>(live.lengths.size()) + 2;
  Problem graphed(decode.entry(), emptyRows(live, EntryKind::decode));
  verify.onDevice(pools, [&](const auto &fixed) {
    decode.onDevice(graphed, [&](const auto &args) {
      makeLayer(fixed, /*whole=*/true);
      capture(args, decodes, EntryKind::decode);
      for (std::vector<int64_t> accepted :
           {std::vector<int64_t>{2, 1, 0, 3}, {0, 0, 0, 0}}) {
        decodes.accepted = accepted;
        upload(build(EntryKind::decode, decodes, room));
        graph->replay();
        decode.readBack(graphed, args);
        Problem committed(commit.entry(), decodes);
        committed.takePools(eager);
        commit.run(committed);
        eager.takePools(committed);
        Problem alone(decode.entry(), decodes);
        alone.takePools(eager);
        decode.run(alone);
        eager.takePools(alone);
        expectReplayed(graphed, alone);
      }
    });
  });
  expectSamePools(pools, eager);
}

// Backends keep the slots of a graph in one place; the tail of a replay still
// names a slot that lives, and only the count of requests says that it is
// padding.
TEST_P(GraphCases, BackendReplaysHaveTheBitsOfEagerLaunches) {
  if (kind != EntryKind::decode)
    GTEST_SKIP() << "a case of decode";
  const Rows live = rows();
  Problem graphed(kernel.entry(), emptyRows(live, kind)),
      alone(kernel.entry(), live);
  kernel.run(alone);
  ASSERT_EQ(
      gdnrt_attention_backend_create_gdn(kernel.device(), &backend, &error),
      GDNRT_OK);
  const auto room = static_cast<int64_t>(graphed.numRows());
  std::vector<int64_t> slots(static_cast<size_t>(room), 0);
  std::vector<int32_t> lengths(slots.size(), 1);
  gdnrt_graph_batch shape = gdnrt_graph_batch_default();
  shape.bs = shape.num_reqs = room;
  shape.req_pool_indices = slots.data();
  shape.seq_lens = lengths.data();
  shape.forward_mode = GDNRT_MODE_DECODE;
  shape.stream = graph->stream();
  gdnrt_forward_batch batch = gdnrt_forward_batch_default();
  batch.forward_mode = GDNRT_MODE_DECODE;
  batch.batch_size = room;
  batch.stream = graph->stream();
  kernel.onDevice(graphed, [&](const auto &args) {
    makeLayer(args);
    std::vector<gdnrt_named_arg> tokens = pick(args, false);
    auto launch = [&] {
      EXPECT_EQ(gdnrt_attention_forward_gdn(backend, layer, &batch,
                                            tokens.data(), tokens.size(),
                                            &error),
                GDNRT_OK)
          << error.message;
    };
    ASSERT_EQ(
        gdnrt_attention_init_cuda_graph_state(backend, room, room, &error),
        GDNRT_OK)
        << error.message;
    ASSERT_EQ(gdnrt_attention_init_forward_metadata_capture_cuda_graph(
                  backend, &shape, &error),
              GDNRT_OK)
        << error.message;
    launch();
    graph->beginCapture();
    launch();
    // Metadata of the host cannot be part of a graph.
    EXPECT_EQ(gdnrt_attention_init_forward_metadata_replay_cuda_graph(
                  backend, &shape, &error),
              GDNRT_UNSUPPORTED)
        << error.message;
    graph->endCapture();
    for (size_t row = 0; row < slots.size(); ++row) {
      const bool lives = row < live.slots.size();
      slots[row] = lives ? live.slots[row] : live.slots[0];
      lengths[row] = 9;
    }
    shape.num_reqs = static_cast<int64_t>(live.slots.size());
    ASSERT_EQ(gdnrt_attention_init_forward_metadata_replay_cuda_graph(
                  backend, &shape, &error),
              GDNRT_OK)
        << error.message;
    graph->replay();
  });
  expectReplayed(graphed, alone);
  expectSamePools(graphed, alone);
}

// A graph of extend takes batches of any lengths: those of the rows of the
// kernel alone, fewer of them, and none.
TEST_P(GraphCases, BackendReplaysExtendsOfAnyLengths) {
  if (kind != EntryKind::prefill || takes(kernel, "is_prefill"))
    GTEST_SKIP() << "a case of prefill that has all rows";
  const std::vector<Rows> batches = {
      {{3, 2, 0, 1, 5}, {4, 0, 6, 2, 7}, /*paddingTokens=*/60},
      {{70, 1, 0, 0, 0}, {2, 4, 0, 0, 0}, 0},
      {{0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}, 71}};
  const std::vector<int64_t> numRequests = {5, 2, 0};
  Problem graphed(kernel.entry(), batches[0]), eager = graphed;
  ASSERT_EQ(
      gdnrt_attention_backend_create_gdn(kernel.device(), &backend, &error),
      GDNRT_OK);
  gdnrt_graph_batch shape = gdnrt_graph_batch_default();
  shape.bs = graphed.numRows();
  shape.num_tokens = graphed.numTokens();
  shape.forward_mode = GDNRT_MODE_EXTEND;
  shape.stream = graph->stream();
  gdnrt_forward_batch batch = gdnrt_forward_batch_default();
  batch.forward_mode = GDNRT_MODE_EXTEND;
  batch.stream = graph->stream();
  kernel.onDevice(graphed, [&](const auto &args) {
    makeLayer(args);
    std::vector<gdnrt_named_arg> tokens = pick(args, false);
    ASSERT_EQ(gdnrt_attention_init_cuda_graph_state(backend, shape.bs,
                                                    shape.num_tokens, &error),
              GDNRT_OK)
        << error.message;
    ASSERT_EQ(gdnrt_attention_init_forward_metadata_capture_cuda_graph(
                  backend, &shape, &error),
              GDNRT_OK)
        << error.message;
    for (bool captures : {false, true}) {
      if (captures)
        graph->beginCapture();
      EXPECT_EQ(gdnrt_attention_forward_gdn(backend, layer, &batch,
                                            tokens.data(), tokens.size(),
                                            &error),
                GDNRT_OK)
          << error.message;
    }
    graph->endCapture();
    for (size_t i = 0; i < batches.size(); ++i) {
      Problem alone(kernel.entry(), batches[i]);
      alone.takePools(eager);
      for (const gdnrt_named_arg &token : tokens)
        EXPECT_EQ(gdnrt_device_write(kernel.device(), token.arg.data,
                                     alone[token.name].bytes().data(),
                                     alone[token.name].bytes().size(), &error),
                  GDNRT_OK)
            << error.message;
      const std::vector<int32_t> lengths(batches[i].lengths.begin(),
                                         batches[i].lengths.end());
      shape.num_reqs = numRequests[i];
      shape.req_pool_indices = batches[i].slots.data();
      shape.extend_seq_lens = lengths.data();
      ASSERT_EQ(gdnrt_attention_init_forward_metadata_replay_cuda_graph(
                    backend, &shape, &error),
                GDNRT_OK)
          << error.message;
      graph->replay();
      kernel.readBack(graphed, args);
      kernel.run(alone);
      expectSameOutputs(graphed, alone);
      expectSamePools(graphed, alone);
      eager.takePools(alone);
    }
  });
}

// With a shared workspace a graph needs no step ahead of its capture.
TEST_P(GraphCases, SharedWorkspaceNeedsNoWarmUp) {
  if (kind == EntryKind::prefill)
    GTEST_SKIP() << "graphs are of decode and verify";
  const Rows live = rows();
  const int64_t room = static_cast<int64_t>(live.lengths.size()) + 2;
  Problem graphed(kernel.entry(), emptyRows(live, kind)),
      alone(kernel.entry(), live);
  kernel.run(alone);
  kernel.onDevice(graphed, [&](const auto &args) {
    makeLayer(args);
    gdnrt_workspace_size size = gdnrt_workspace_size_default();
    ASSERT_EQ(gdnrt_gdn_layer_workspace_size(layer, room, graphed.numTokens(),
                                             &size, &error),
              GDNRT_OK)
        << error.message;
    ASSERT_EQ(
        gdnrt_workspace_create(kernel.device(), &size, &workspace, &error),
        GDNRT_OK)
        << error.message;
    ASSERT_EQ(gdnrt_gdn_layer_share_workspace(layer, workspace, &error),
              GDNRT_OK)
        << error.message;
    gdnrt_gdn_metadata metadata = build(kind, emptyRows(live, kind), 0, true);
    void *arena = upload(metadata);
    graph->beginCapture();
    EXPECT_EQ(forward(args, &metadata, arena, graph->stream()), GDNRT_OK)
        << error.message;
    graph->endCapture();
    upload(build(kind, live, room));
    graph->replay();
  });
  expectReplayed(graphed, alone);
  expectSamePools(graphed, alone);
}

// What a graph runs stays, though whoever made it has gone: the layer with the
// memory that it works in, and all kernels that share its module.
TEST_P(GraphCases, OutlivesItsLayerAndKernels) {
  if (kind == EntryKind::prefill)
    GTEST_SKIP() << "graphs are of decode and verify";
  const Rows live = rows();
  const int64_t room = static_cast<int64_t>(live.lengths.size()) + 2;
  Problem graphed(kernel.entry(), emptyRows(live, kind)),
      alone(kernel.entry(), live);
  kernel.run(alone);
  kernel.onDevice(graphed, [&](const auto &args) {
    makeLayer(args);
    capture(args, live, kind);
    upload(build(kind, live, room));
    gdnrt_gdn_layer_destroy(layer);
    layer = nullptr;
    for (Kernel *one : {&kernel, &decode, &prefill, &verify, &commit})
      one->destroy();
    // Calls that give back what graphs no longer need.
    void *memory = nullptr;
    EXPECT_EQ(
        gdnrt_device_synchronize(kernel.device(), graph->stream(), &error),
        GDNRT_OK);
    EXPECT_EQ(gdnrt_device_allocate(kernel.device(), 1 << 20, &memory, &error),
              GDNRT_OK);
    graph->replay();
    EXPECT_EQ(gdnrt_device_free(kernel.device(), memory, &error), GDNRT_OK);
  });
  expectReplayed(graphed, alone);
  expectSamePools(graphed, alone);
}

// A refusal leaves the capture as it was: its graph does nothing.
TEST_P(GraphCases, WhatIsRefusedRecordsNothing) {
  const Rows live = rows();
  Problem problem(kernel.entry(), live);
  const Problem before = problem;
  bool movesStates = false;
  auto expectRefusal = [&](const Kernel &on, const std::string &reason) {
    on.onDevice(problem, [&](const auto &args) {
      makeLayer(args);
      gdnrt_gdn_metadata metadata = build(kind, live);
      metadata.moves_states = movesStates;
      void *arena = upload(metadata);
      graph->beginCapture();
      EXPECT_EQ(forward(args, &metadata, arena, graph->stream()),
                GDNRT_UNSUPPORTED)
          << reason;
      EXPECT_NE(std::string(error.message).find(reason), std::string::npos)
          << error.message;
      EXPECT_EQ(gdnrt_metadata_upload(on.device(), &metadata, arena,
                                      graph->stream(), &error),
                GDNRT_UNSUPPORTED);
      graph->endCapture();
      graph->replay();
    });
    expectSamePools(problem, before);
    for (const std::string &output : problem.outputs())
      EXPECT_TRUE(problem[output].elements() == before[output].elements());
  };
  if (kind == EntryKind::prefill)
    return expectRefusal(kernel, "expected a step of decode or verify");
  // Rows of a later step may write another slot than they read.
  movesStates = true;
  if (kind == EntryKind::decode && !takes(kernel, "write_slots"))
    expectRefusal(kernel, "expected an entry with write_slots in a graph");
  movesStates = false;
  // Kernels that cannot work in place have taken no memory yet.
  bool inPlace = true;
  const size_t code = gdnrt_kernel_code(kernel.handle());
  for (size_t i = 0; i < gdnrt_entry_variant_count(kernel.entry(), code); ++i) {
    gdnrt_variant_info info = gdnrt_variant_info_default();
    gdnrt_entry_variant(kernel.entry(), code, i, &info, &error);
    inPlace = !info.needs_workspace;
  }
  if (!inPlace)
    expectRefusal(kernel, "ahead of the capture");
}
