// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The metadata of a step: which sequences are decoded, prefilled and verified,
// and which slots they read and write. The semantics are those of vLLM's
// GDNAttentionMetadataBuilder. docs/design/20261121-serving.md says where they
// differ.

#ifndef GDNRT_METADATA_BUILDER_H
#define GDNRT_METADATA_BUILDER_H

#include "gdn-c/serving.h"
#include "gdnrt/status.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace gdnrt {

// The structs are plain data, so the runtime uses those of the C ABI.
using MetadataOptions = gdnrt_metadata_options;
using CommonMetadata = gdnrt_common_metadata;
using GDNMetadata = gdnrt_gdn_metadata;

/// The copies of states between columns of the block table, for
/// gdnrt_state_pool_copy. See gdnrt_align_states_before.
struct StateMoves {
  int32_t *columns;  // by sequence: where its states begin, -1 for not known
  int32_t *accepted; // by sequence, or null without speculation
  int32_t *from, *to;
  int64_t count = 0;
};

class MetadataBuilder {
public:
  static Result<std::unique_ptr<MetadataBuilder>>
  make(const MetadataOptions &options);

  /// See gdnrt_metadata_builder_build. Allocates nothing on success.
  Status build(const CommonMetadata &common, GDNMetadata &metadata);
  Status buildForCudagraphCapture(const CommonMetadata &common,
                                  GDNMetadata &metadata);

  /// See gdnrt_align_states_before and _after.
  Status alignBefore(const CommonMetadata &common, StateMoves &moves) const;
  Status alignAfter(const CommonMetadata &common, StateMoves &moves) const;

  /// Whether a sequence may read another slot than it writes, in any step of
  /// this builder. In a graph that may differ from one replay to the next.
  bool movesStates() const;
  const MetadataOptions &options() const { return options_; }
  int64_t reorderBatchThreshold() const { return numColumns_; }
  int64_t decodeCudagraphMaxBs() const { return maxGraphRows_; }

private:
  explicit MetadataBuilder(const MetadataOptions &options);
  void allocate();

  Status check(const CommonMetadata &common) const;
  Status checkTable(const CommonMetadata &common) const;
  Status checkCounts(const CommonMetadata &common) const;
  bool usesSpec(const CommonMetadata &common) const;
  const int32_t *stateColumns(const CommonMetadata &common, int64_t row) const;
  void fillSlots(const CommonMetadata &common, int64_t row, int64_t to);
  bool hasCommits() const;
  bool isCount(int32_t accepted) const;
  Status checkAlign(const CommonMetadata &common,
                    const StateMoves &moves) const;
  Status addMove(const CommonMetadata &common, int64_t row, int64_t source,
                 int64_t target, StateMoves &moves) const;

  Status buildPlain(const CommonMetadata &common, GDNMetadata &m);
  Status buildSpec(const CommonMetadata &common, GDNMetadata &m);
  Status fillSpec(const CommonMetadata &common, int64_t row, int64_t to);
  Status addCommit(const CommonMetadata &common, bool spec, GDNMetadata &m);
  void padCommit(GDNMetadata &m, int64_t rows);
  void addPrefillFields(const CommonMetadata &common, GDNMetadata &m);
  void addTail(GDNMetadata &m);
  void addChunks(GDNMetadata &m);
  void addConvBlocks(GDNMetadata &m);
  void addCheckpoints(const CommonMetadata &common, GDNMetadata &m);
  void addRun(GDNMetadata &m, int32_t kind, int64_t firstToken,
              int64_t numTokens, int64_t firstRow, int64_t numRows);
  Status pad(const CommonMetadata &common, GDNMetadata &m);
  void padDecode(GDNMetadata &m, int64_t rows);
  void padSpec(GDNMetadata &m, int64_t rows);
  void padTails();

  MetadataOptions options_;
  int64_t numColumns_;
  int64_t maxGraphRows_;
  int64_t maxRows_;

  std::vector<int32_t> arena_;
  size_t arenaInts_ = 0;
  /// Of it, from its start on: what kernels read, and what they read in steps
  /// without prefills.
  size_t deviceInts_ = 0, graphInts_ = 0;
  // Pointers into the arena. The first array begins at a cache line.
  int32_t *writeSlots_, *readSlots_, *nonSpecStarts_, *nonSpecAccepted_;
  int32_t *specSlots_, *specStarts_, *specAccepted_, *runStarts_;
  int32_t *specRowSlots_, *specParents_;
  int32_t *commitSlots_, *commitAccepted_, *commitTokenSlots_;
  int32_t *zeros_;
  uint8_t *hasInitial_;
  int32_t *checkpointStarts_, *checkpointTokens_, *checkpointSlots_;
  // Arrays that no kernel reads.
  int32_t *specTokens_, *nonSpecTokens_, *chunkIndices_, *chunkOffsets_;
  int32_t *convNums_, *batchPtr_, *tokenChunkOffsetPtr_, *tailStarts_;
  uint8_t *specMasks_;

  /// The number of rows in the arrays that hold sequences of this step (used_),
  /// or that still hold sequences of an earlier step (filled_).
  struct RowCounts {
    int64_t nonSpec = 0, spec = 0, commits = 0;
  };
  RowCounts used_, filled_;

  std::vector<gdnrt_run> runs_;
  int64_t numRunStarts_ = 0;
  /// For each sequence in the order of the non_spec arrays: its index in the
  /// step.
  std::vector<int32_t> rowOfNonSpec_;
  /// The inputs of a build for a capture: lengths, accepted counts, drafts, and
  /// the slots and parents of tokens.
  std::vector<int32_t> captureLengths_, captureAccepted_, captureDrafts_,
      captureTokens_;
};

} // namespace gdnrt

#endif // GDNRT_METADATA_BUILDER_H
