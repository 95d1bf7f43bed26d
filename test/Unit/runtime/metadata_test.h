// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Steps for tests of metadata. Row i has the table {10 i + 10, 10 i + 11, ...}.

#ifndef GDN_TEST_UNIT_RUNTIME_METADATA_TEST_H
#define GDN_TEST_UNIT_RUNTIME_METADATA_TEST_H

#include "gdnrt/metadata_builder.h"

#include <gtest/gtest.h>

#include <numeric>

namespace gdnrt::test {

using Ints = std::vector<int32_t>;

struct Step {
  Ints seqLens, queryLens, drafts, accepted;
  int64_t paddedReqs = 0, actualTokens = 0;
  int64_t columns = 16;

  Ints starts = {}, table = {};
  CommonMetadata common() {
    starts.assign(1, 0);
    for (int32_t length : queryLens)
      starts.push_back(starts.back() + length);
    table.clear();
    for (size_t row = 0; row < seqLens.size(); ++row)
      for (int32_t column = 0; column < columns; ++column)
        table.push_back(10 * static_cast<int32_t>(row) + 10 + column);
    CommonMetadata c = {};
    c.num_reqs = static_cast<int64_t>(seqLens.size());
    c.num_actual_tokens = actualTokens ? actualTokens : starts.back();
    c.query_start_loc = starts.data();
    c.seq_lens = seqLens.data();
    c.block_table = table.data();
    c.block_table_columns = c.block_table_stride = columns;
    if (!drafts.empty()) {
      c.num_decode_draft_tokens = drafts.data();
      if (accepted.empty())
        accepted.assign(seqLens.size(), 1);
    }
    if (!accepted.empty())
      c.num_accepted_tokens = accepted.data();
    c.num_padded_reqs = paddedReqs;
    return c;
  }
};

inline MetadataOptions options(int64_t drafts, bool graphs = false) {
  MetadataOptions o = {};
  o.max_num_seqs = 16;
  o.max_num_tokens = 2048;
  o.num_speculative_tokens = drafts;
  o.use_full_cuda_graph = graphs;
  return o;
}

inline std::unique_ptr<MetadataBuilder> makeBuilder(const MetadataOptions &o) {
  auto builder = MetadataBuilder::make(o);
  EXPECT_TRUE(builder.isOk()) << builder.status().message();
  return std::move(*builder);
}

inline GDNMetadata build(MetadataBuilder &builder, Step step) {
  GDNMetadata m = {};
  Status s = builder.build(step.common(), m);
  EXPECT_TRUE(s.isOk()) << s.message();
  return m;
}

inline std::string failure(MetadataBuilder &builder, Step step) {
  GDNMetadata m = {};
  return builder.build(step.common(), m).message();
}

inline Ints ints(const gdnrt_i32_array &array) {
  return array.data ? Ints(array.data, array.data + array.size) : Ints{-999};
}
inline std::vector<int> bools(const gdnrt_bool_array &array) {
  return array.data ? std::vector<int>(array.data, array.data + array.size)
                    : std::vector<int>{-999};
}
inline const Ints kNone = {-999};
inline const std::vector<int> kNoBools = {-999};

inline std::vector<int32_t> kinds(const GDNMetadata &m) {
  std::vector<int32_t> found;
  for (int64_t i = 0; i < m.num_runs; ++i)
    found.push_back(m.runs[i].kind);
  return found;
}

} // namespace gdnrt::test

#endif // GDN_TEST_UNIT_RUNTIME_METADATA_TEST_H
