// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What cases of layers share: a layer of the kernels of an image on one device,
// the metadata of steps, and rows that fit each way in which verify keeps
// states.

#ifndef GDNRT_CTS_LAYER_TEST_H
#define GDNRT_CTS_LAYER_TEST_H

#include "suite.h"

#include "gdn-c/serving.h"

namespace gdnrt::cts {

/// S: drafts of a verified row at most.
constexpr int64_t kDrafts = 2;

class LayerTest : public EntryTest {
protected:
  explicit LayerTest(bool debugChecks = true);
  void SetUp() override;
  void TearDown() override;

  /// How the image's verify keeps states.
  gdnrt_verify_states states() const;
  bool hasCommits() const {
    return states() == GDNRT_VERIFY_LAZY || states() == GDNRT_VERIFY_BUFFER;
  }

  /// Rows of every length that the kernel under test takes; the second is
  /// skipped. None of them has tokens that wait for a commit.
  Rows rows() const;
  /// Two rows more, with a token each, in the null slot: what a kernel alone is
  /// given for rows of padding.
  Rows padded(Rows live) const;

  /// The arrays that a layer is given once, or those of a step's tokens.
  static std::vector<gdnrt_named_arg>
  pick(const std::vector<gdnrt_named_arg> &args, bool fixed);

  /// A layer of the kernel under test and of commit, or of all kernels.
  void makeLayer(const std::vector<gdnrt_named_arg> &args, bool whole = false);
  gdnrt_status createLayer(const std::vector<gdnrt_named_arg> &args,
                           bool whole = false);

  /// What a scheduler says of rows of `kind`, all of which have a state: of
  /// verified ones `accepted` tokens of the step before were right. With
  /// `padded` rows, or `capture`, for a graph.
  gdnrt_gdn_metadata build(EntryKind kind, const Rows &rows, int64_t padded = 0,
                           bool capture = false);

  /// Where kernels of the device read the metadata: null on a CPU.
  void *upload(const gdnrt_gdn_metadata &metadata);
  /// The layer over `metadata`, or over none, and a wait.
  void step(const std::vector<gdnrt_named_arg> &args,
            const gdnrt_gdn_metadata *metadata, void *stream = nullptr);

  bool takes(const Kernel &kernel, const char *name) const;

  EntryKind kind = EntryKind::decode;
  /// Rows of the next step whose tokens are the first of their request.
  std::vector<size_t> firstTokens;
  gdnrt_error error = {};
  gdnrt_gdn_layer *layer = nullptr;
  gdnrt_metadata_builder *builder = nullptr;
  /// Beside `kernel`, on its device.
  Kernel decode, prefill, verify, commit;

private:
  void *arena_ = nullptr;
  size_t arenaBytes_ = 0;
  /// Whether the builder is one for graphs.
  bool forGraphs_ = false;
  bool isDeferred_ = false; // kernels of the layer, made or to be made
};

/// Instantiates a suite for the kernels of layers.
#define GDNRT_CTS_LAYERS(SUITE)                                                \
  INSTANTIATE_TEST_SUITE_P(                                                    \
      Cts, SUITE,                                                              \
      ::testing::Combine(::testing::Values(EntryKind::decode,                  \
                                           EntryKind::prefill,                 \
                                           EntryKind::verify),                 \
                         ::testing::Values(1, 2)),                             \
      nameOf)

} // namespace gdnrt::cts

#endif // GDNRT_CTS_LAYER_TEST_H
