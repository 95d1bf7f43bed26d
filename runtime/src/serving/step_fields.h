// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parts of a step's metadata, each in a file of its own.

#ifndef GDNRT_SERVING_STEP_FIELDS_H
#define GDNRT_SERVING_STEP_FIELDS_H

#include "gdnrt/metadata_builder.h"

namespace gdnrt {

// metadata_check.cpp: what is checked before anything is filled.
Status checkOptions(const MetadataOptions &options);
Status checkStep(const StepArrays &arrays, const CommonMetadata &common);
Status checkCounts(const StepArrays &arrays, const CommonMetadata &common);

// metadata_builder.cpp: element `to` of the arrays of sequences that are not
// verified.
void fillSlots(StepArrays &arrays, const CommonMetadata &common, int64_t row,
               int64_t to);

// prefill_fields.cpp: what prefills need besides slots.
void addPrefillFields(StepArrays &arrays, const CommonMetadata &common,
                      GDNMetadata &m);

// spec_fields.cpp: element `to` of the arrays of verified sequences.
Status fillSpec(StepArrays &arrays, const CommonMetadata &common, int64_t row,
                int64_t to);
/// The arrays of `rows` verified sequences.
void describeSpec(const StepArrays &arrays, int64_t rows, GDNMetadata &m);

// commit_fields.cpp: the commit that a step begins with.
/// What a step does with its sequences.
struct StepKinds {
  /// The step verifies sequences.
  bool verifies = false;
  /// So many sequences in front decode if they have a state. All others that
  /// are not verified are those of prefill.
  int64_t decodes = 0;
};
Status addCommit(StepArrays &arrays, const CommonMetadata &common,
                 const StepKinds &kinds, GDNMetadata &m);
/// See gdnrt_metadata_builder_build_commit.
Status buildCommit(StepArrays &arrays, const int32_t *slots,
                   const int32_t *accepted, int64_t count, GDNMetadata &m);

// mixed_batch.cpp: one set of arrays for all sequences of a step.
Status buildMixed(StepArrays &arrays, const CommonMetadata &common,
                  GDNMetadata &m);

// graph_padding.cpp: grows a step of one kind to the rows of a graph.
Status padToGraph(StepArrays &arrays, const CommonMetadata &common,
                  GDNMetadata &m);
/// The commit of a graph over `rows` rows, those of padding included. The graph
/// has it whether or not anything waits.
void padCommit(StepArrays &arrays, GDNMetadata &m, int64_t rows);

// align_states.cpp: see gdnrt_align_states_before and _after.
Status alignBefore(const StepArrays &arrays, const CommonMetadata &common,
                   StateMoves &moves);
Status alignAfter(const StepArrays &arrays, const CommonMetadata &common,
                  StateMoves &moves);

// state_columns.cpp: see gdnrt_state_columns.
Status stateColumns(const StepArrays &arrays, const int32_t *numTokens,
                    const int32_t *starts, const int32_t *accepted,
                    int64_t count, int32_t *columns);

} // namespace gdnrt

#endif // GDNRT_SERVING_STEP_FIELDS_H
