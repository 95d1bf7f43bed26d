// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C ABI of metadata builders.

#include "serving_handles.h"

#include <utility>

using namespace gdnrt;

gdnrt_status
gdnrt_metadata_builder_create(const gdnrt_metadata_options *options,
                              gdnrt_metadata_builder **builder,
                              gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!builder)
      return nullPointer("builder");
    gdnrt_metadata_options given;
    if (Status s = readStruct("options", options, given); !s.isOk())
      return s;
    auto made = MetadataBuilder::make(given);
    if (made.isOk())
      *builder = new gdnrt_metadata_builder{std::move(*made)};
    return made.status();
  });
}

void gdnrt_metadata_builder_destroy(gdnrt_metadata_builder *builder) {
  delete builder;
}

int64_t gdnrt_metadata_builder_reorder_batch_threshold(
    const gdnrt_metadata_builder *builder) {
  return builder ? builder->builder->reorderBatchThreshold() : 0;
}

int64_t gdnrt_metadata_builder_decode_cudagraph_max_bs(
    const gdnrt_metadata_builder *builder) {
  return builder ? builder->builder->decodeCudagraphMaxBs() : 0;
}

static gdnrt_status
build(gdnrt_metadata_builder *builder, const gdnrt_common_metadata *common,
      gdnrt_gdn_metadata *metadata, gdnrt_error *error,
      Status (MetadataBuilder::*how)(const CommonMetadata &, GDNMetadata &)) {
  return guarded(error, [&]() -> Status {
    if (!builder)
      return nullPointer("builder");
    gdnrt_common_metadata known;
    if (Status s = readStruct("common", common, known); !s.isOk())
      return s;
    if (Status s = checkStruct("metadata", metadata); !s.isOk())
      return s;
    gdnrt_gdn_metadata filled;
    Status s = (builder->builder.get()->*how)(known, filled);
    if (s.isOk())
      writeStruct(filled, metadata);
    return s;
  });
}

gdnrt_status gdnrt_metadata_builder_build(gdnrt_metadata_builder *builder,
                                          const gdnrt_common_metadata *common,
                                          gdnrt_gdn_metadata *metadata,
                                          gdnrt_error *error) {
  return build(builder, common, metadata, error, &MetadataBuilder::build);
}

gdnrt_status gdnrt_metadata_builder_build_for_cudagraph_capture(
    gdnrt_metadata_builder *builder, const gdnrt_common_metadata *common,
    gdnrt_gdn_metadata *metadata, gdnrt_error *error) {
  return build(builder, common, metadata, error,
               &MetadataBuilder::buildForCudagraphCapture);
}

gdnrt_status gdnrt_metadata_builder_build_commit(
    gdnrt_metadata_builder *builder, const int32_t *slots,
    const int32_t *num_accepted, int64_t count, gdnrt_gdn_metadata *metadata,
    gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!builder)
      return nullPointer("builder");
    if (!slots && count > 0)
      return nullPointer("slots");
    if (Status s = checkStruct("metadata", metadata); !s.isOk())
      return s;
    gdnrt_gdn_metadata filled;
    Status s =
        builder->builder->buildCommit(slots, num_accepted, count, filled);
    if (s.isOk())
      writeStruct(filled, metadata);
    return s;
  });
}

static gdnrt_status align(const gdnrt_metadata_builder *builder,
                          const gdnrt_common_metadata *common, int32_t *columns,
                          int32_t *accepted, int32_t *from, int32_t *to,
                          int64_t *count, gdnrt_error *error,
                          Status (MetadataBuilder::*how)(const CommonMetadata &,
                                                         StateMoves &) const) {
  return guarded(error, [&]() -> Status {
    if (!builder)
      return nullPointer("builder");
    gdnrt_common_metadata known;
    if (Status s = readStruct("common", common, known); !s.isOk())
      return s;
    if (!count)
      return nullPointer("count");
    for (auto [name, array] :
         {std::pair("columns", columns), {"from", from}, {"to", to}})
      if (!array && known.num_reqs > 0)
        return nullPointer(name);
    StateMoves moves = {columns, accepted, from, to};
    Status s = (builder->builder.get()->*how)(known, moves);
    if (s.isOk())
      *count = moves.count;
    return s;
  });
}

gdnrt_status gdnrt_align_states_before(const gdnrt_metadata_builder *builder,
                                       const gdnrt_common_metadata *common,
                                       int32_t *columns, int32_t *accepted,
                                       int32_t *from, int32_t *to,
                                       int64_t *count, gdnrt_error *error) {
  return align(builder, common, columns, accepted, from, to, count, error,
               &MetadataBuilder::alignBefore);
}

gdnrt_status gdnrt_align_states_after(const gdnrt_metadata_builder *builder,
                                      const gdnrt_common_metadata *common,
                                      int32_t *columns, int32_t *accepted,
                                      int32_t *from, int32_t *to,
                                      int64_t *count, gdnrt_error *error) {
  return align(builder, common, columns, accepted, from, to, count, error,
               &MetadataBuilder::alignAfter);
}

gdnrt_status gdnrt_state_columns(const gdnrt_metadata_builder *builder,
                                 const int32_t *num_tokens,
                                 const int32_t *starts, const int32_t *accepted,
                                 int64_t count, int32_t *columns,
                                 gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!builder)
      return nullPointer("builder");
    if (count < 0)
      return invalid("count: expected 0 or more, got ", count);
    if (!num_tokens && count != 0)
      return nullPointer("num_tokens");
    if (!columns && count != 0)
      return nullPointer("columns");
    return builder->builder->stateColumns(num_tokens, starts, accepted, count,
                                          columns);
  });
}
