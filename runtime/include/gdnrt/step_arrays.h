// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The arrays of a builder's steps: taken once, filled by every step, and padded
// up to where a step before filled them.

#ifndef GDNRT_STEP_ARRAYS_H
#define GDNRT_STEP_ARRAYS_H

#include "gdn-c/serving.h"
#include "gdnrt/status.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gdnrt {

// The structs are plain data, so the runtime uses those of the C ABI.
using MetadataOptions = gdnrt_metadata_options;
using CommonMetadata = gdnrt_common_metadata;
using GDNMetadata = gdnrt_gdn_metadata;

/// Sequences of verify that a graph of a mixed batch has besides, so that not
/// one block of a kernel has to write the zeros of all tokens of padding.
constexpr int64_t kPaddingRows = 16;

/// The last upload of a builder's arrays, by gdnrt_metadata_upload_changed.
struct Uploaded {
  const void *arena = nullptr, *stream = nullptr;
  size_t bytes = 0;
  std::vector<int32_t> copy;
};

struct StepArrays {
  explicit StepArrays(const MetadataOptions &options);
  StepArrays(const StepArrays &) = delete;
  StepArrays &operator=(const StepArrays &) = delete;

  /// The columns of the block table that hold the sequence's states.
  const int32_t *stateColumns(const CommonMetadata &common, int64_t row) const;
  /// Whether tokens have to be put into the state of their sequence.
  bool hasCommits() const;
  /// Whether so many tokens of a step can have been right. Trees have no count.
  bool isCount(int32_t accepted) const;

  void clearRuns(GDNMetadata &m);
  void addRun(GDNMetadata &m, int32_t kind, int64_t firstToken,
              int64_t numTokens, int64_t firstRow, int64_t numRows);
  /// Everything behind the rows that the step filled: no slot, no tokens. Only
  /// as far as a step before filled more.
  void padTails();

  MetadataOptions options;
  int64_t numColumns;
  int64_t maxGraphRows;
  /// The rows of a graph, and those of the arrays: with the cache mode all, a
  /// row of the step may be two.
  int64_t maxPaddedRows, maxRows;

  std::vector<int32_t> arena;
  size_t arenaInts = 0;
  /// Of it, from its start on: what kernels read, and what they read in steps
  /// without prefills.
  size_t deviceInts = 0, graphInts = 0;
  // Pointers into the arena. The first array begins at a cache line.
  int32_t *writeSlots, *readSlots, *nonSpecStarts, *nonSpecAccepted;
  int32_t *specSlots, *specStarts, *specAccepted, *runStarts;
  int32_t *specRowSlots, *specParents;
  int32_t *commitSlots, *commitAccepted, *commitTokenSlots;
  int32_t *zeros;
  uint8_t *hasInitial;
  uint8_t *isPrefill, *nonSpecIsPrefill; // with mixed_batch
  int32_t *checkpointStarts, *checkpointTokens, *checkpointSlots;
  // Arrays that no kernel reads.
  int32_t *specTokens, *nonSpecTokens, *chunkIndices, *chunkOffsets;
  int32_t *convNums, *batchPtr, *tokenChunkOffsetPtr, *tailStarts;
  uint8_t *specMasks;

  /// The number of rows in the arrays that hold sequences of this step (used),
  /// or that still hold sequences of an earlier step (filled).
  struct RowCounts {
    int64_t nonSpec = 0, spec = 0, commits = 0;
  };
  RowCounts used, filled;

  Uploaded uploaded;
  std::vector<gdnrt_run> runs;
  int64_t numRunStarts = 0;
  /// For each sequence in the order of the non_spec arrays: its index in the
  /// step, and with the cache mode all its tokens before the step and with it.
  std::vector<int32_t> rowOfNonSpec, firstOfNonSpec, lastOfNonSpec;
  /// The inputs of a build for a capture: lengths, accepted counts, drafts, and
  /// the slots and parents of tokens.
  std::vector<int32_t> captureLengths, captureAccepted, captureDrafts,
      captureTokens;

private:
  void allocate();
};

} // namespace gdnrt

#endif // GDNRT_STEP_ARRAYS_H
