// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The metadata of a step: which sequences are decoded, prefilled and verified,
// and which slots they read and write. The semantics are those of vLLM's
// GDNAttentionMetadataBuilder. docs/design/20261121-serving.md says where they
// differ.

#ifndef GDNRT_METADATA_BUILDER_H
#define GDNRT_METADATA_BUILDER_H

#include "gdnrt/step_arrays.h"

#include <memory>

namespace gdnrt {

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
  /// See gdnrt_metadata_builder_build_commit.
  Status buildCommit(const int32_t *slots, const int32_t *accepted,
                     int64_t count, GDNMetadata &metadata);

  /// See gdnrt_align_states_before and _after.
  Status alignBefore(const CommonMetadata &common, StateMoves &moves) const;
  Status alignAfter(const CommonMetadata &common, StateMoves &moves) const;

  /// See gdnrt_state_columns.
  Status stateColumns(const int32_t *numTokens, const int32_t *starts,
                      const int32_t *accepted, int64_t count,
                      int32_t *columns) const;

  /// Whether a sequence may read another slot than it writes, in any step of
  /// this builder. In a graph that may differ from one replay to the next.
  bool movesStates() const;
  const MetadataOptions &options() const { return arrays_.options; }
  int64_t reorderBatchThreshold() const { return arrays_.numColumns; }
  int64_t decodeCudagraphMaxBs() const { return arrays_.maxGraphRows; }

private:
  explicit MetadataBuilder(const MetadataOptions &options) : arrays_(options) {}

  GDNMetadata begin();
  /// Gives `m` to `metadata` unless the step was refused.
  Status end(Status built, GDNMetadata &m, GDNMetadata &metadata);
  bool usesSpec(const CommonMetadata &common) const;
  int64_t fillPlain(const CommonMetadata &common);
  Status buildPlain(const CommonMetadata &common, GDNMetadata &m);
  Status buildSpec(const CommonMetadata &common, GDNMetadata &m);

  StepArrays arrays_;
};

} // namespace gdnrt

#endif // GDNRT_METADATA_BUILDER_H
