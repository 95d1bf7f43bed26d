// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registers of products of warpgroups: what has to be behind a wgmma.fence, and
// what behind a wait.
#include "GlobalLitmus.h"

using namespace ptx::litmus;

namespace {

/// All 128 threads write the tile that products of theirs read.
const std::string kTile = "  shl.b32 %r8, %r0, 3;\n"
                          "  add.s32 %r8, %r8, %r1;\n"
                          "  st.shared.v2.u32 [%r8], {%r0, %r0};\n"
                          "  st.shared.v2.u32 [%r8+1024], {%r0, %r0};\n"
                          "  fence.proxy.async.shared::cta;\n" +
                          kMeet +
                          "  shr.u32 %r13, %r1, 4;\n"
                          "  cvt.u64.u32 %rd6, %r13;\n"
                          "  or.b64 %rd6, %rd6, 0x4000004000000000;\n",
                  kProductFence = "  wgmma.fence.sync.aligned;\n",
                  kProduct =
                      "  wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 "
                      "{%r20, %r21, %r22, %r23}, {%r11, %r12, %r12, %r11}, "
                      "%rd6, 1, 1, 1, 0;\n",
                  kWiderProduct =
                      "  wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 "
                      "{%r20, %r21, %r22, %r23, %r24, %r25, %r26, %r27}, "
                      "{%r11, %r12, %r12, %r11}, %rd6, 1, 1, 1, 0;\n",
                  kProductEnd = "  wgmma.commit_group.sync.aligned;\n"
                                "  wgmma.wait_group.sync.aligned 0;\n",
                  kReadSum = "  add.u32 %r14, %r21, 1;\n",
                  kSetSum = "  and.b32 %r21, %r0, 0;\n",
                  kSetA = "  and.b32 %r12, %r0, 0;\n";

std::vector<Litmus> ofProducts() {
  auto program = [&](const std::string &body) {
    return std::vector<std::string>{kTile + body};
  };
  const std::string sets = kSetSum + kSetA;
  return {
      {"fence", program(sets + kProductFence + kProduct + kProductEnd), "", 1,
       128},
      {"fence_missing", program(sets + kProduct + kProductEnd), kNoProductFence,
       1, 128},
      {"sum_behind_fence",
       program(kSetA + kProductFence + kSetSum + kProduct + kProductEnd),
       "takes as a sum a register which that writes; no wgmma.fence", 1, 128},
      {"a_behind_fence",
       program(kSetSum + kProductFence + kSetA + kProduct + kProductEnd),
       "takes as A a register which that writes; no wgmma.fence", 1, 128},
      {"constants_and_copies_behind_fence",
       program(kSetA + "  and.b32 %r14, %r0, 0;\n" + kProductFence +
               "  mov.u32 %r20, 0;\n  mov.u32 %r21, %r14;\n" + kProduct +
               kProductEnd),
       "", 1, 128},
      {"sums_of_the_same_shape",
       program(sets + kProductFence + kProduct + kProduct + kProductEnd), "", 1,
       128},
      {"sums_of_another_shape",
       program(sets + kProductFence + kProduct + kWiderProduct + kProductEnd),
       "of another shape; no wgmma.fence", 1, 128},
      {"a_is_overwritten",
       program(sets + kProductFence + kProduct + kSetA + kProductEnd),
       "writes what a product may still read as A", 1, 128},
      {"a_is_overwritten_behind_wait",
       program(sets + kProductFence + kProduct + kProductEnd + kSetA), "", 1,
       128},
      {"set_again_without_fence",
       program(sets + kProductFence + kProduct + kProductEnd + kSetSum +
               kProduct + kProductEnd),
       kNoProductFence, 1, 128},
      {"read_again_without_fence",
       program(sets + kProductFence + kProduct + kProductEnd + kReadSum +
               kProduct + kProductEnd),
       "takes as a sum a register which that reads; no wgmma.fence", 1, 128},
      {"read_again_with_fence",
       program(sets + kProductFence + kProduct + kProductEnd + kReadSum +
               kProductFence + kProduct + kProductEnd),
       "", 1, 128},
      {"set_again_with_fence",
       program(sets + kProductFence + kProduct + kProductEnd + kSetSum +
               kProductFence + kProduct + kProductEnd),
       "", 1, 128},
  };
}

class ProductLitmuses : public ::testing::TestWithParam<Litmus> {};

} // namespace

TEST_P(ProductLitmuses, AreTold) { check(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Registers, ProductLitmuses,
                         ::testing::ValuesIn(ofProducts()), nameOf);
