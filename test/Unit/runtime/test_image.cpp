// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The schemas of test_kernels.c.

#include "test_image.h"

using namespace gdnrt;
using namespace gdnrt::test;

void gdnrt::test::addAccumulate(EntryBuilder entry) {
  // The order of the symbols is that of the words: N, D, P.
  entry.tensor("x", fb::Access::read, fb::DType::f32, {"N", "D"})
      .tensor("scale", fb::Access::read, fb::DType::f32, {"D"})
      .tensor("slots", fb::Access::read, fb::DType::i32, {"N"})
      .pool("state_pool", fb::DType::f32, {"P", "D"})
      .tensor("out", fb::Access::write, fb::DType::f32, {"N", "D"})
      .unitStride()
      .code("test_accumulate", {"N"}, 4096)
      .attribute("model", "test");
}

void gdnrt::test::addNeighbours(EntryBuilder entry) {
  entry.tensor("x", fb::Access::read, fb::DType::i64, {"N"})
      .tensor("out", fb::Access::write, fb::DType::i64, {"N"})
      .code("test_neighbours", {"N"})
      .variant("staged")
      .stage("test_neighbours_copy", {"N"}, 64)
      .stage("test_neighbours_add", {"N", "1"})
      .workspace({"8"})
      .workspace({"2", "4*N"})
      .condition({"2"}, {"workers"})
      .condition({"8", "workers"}, {"N"})
      .firstVariant();
}

ImageBuilder gdnrt::test::testImage() {
  ImageBuilder builder;
  addAccumulate(builder.entry("accumulate_f32"));
  builder.entry("count")
      .tensor("counts", fb::Access::read_write, fb::DType::i64, {"N"})
      .code("test_count", {"N"});
  builder.entry("scratch_owner")
      .tensor("out", fb::Access::write, fb::DType::i64, {"N"})
      .code("test_scratch_owner", {"N"}, 4096);
  builder.entry("empty")
      .tensor("x", fb::Access::read, fb::DType::f32, {"N", "D"})
      .tensor("out", fb::Access::write, fb::DType::f32, {"N", "D"})
      .code("test_empty", {"N"});
  addNeighbours(builder.entry("neighbours"));
  builder.blob(readFile(GDNRT_TEST_KERNELS));
  return builder;
}
