// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of bytes on tensor cores.

#include "MachineRun.h"

using namespace ptx;

namespace {

class ByteProducts : public MachineRun {};

TEST_F(ByteProducts, WithAndWithoutSign) {
  // A(r, k) = 200 + r in column 3, which is a byte with or without a sign, and
  // B(k, n) = n - 4 in row 3: the result at (r, n) is their product, plus 1000.
  auto words = run(R"(
  shr.u32 %r1, %r0, 2;
  and.b32 %r2, %r0, 3;
  setp.eq.s32 %p0, %r2, 0;
  add.s32 %r3, %r1, 200;
  shl.b32 %r3, %r3, 24;
  selp.b32 %r3, %r3, 0, %p0;
  add.s32 %r4, %r1, -4;
  shl.b32 %r4, %r4, 24;
  selp.b32 %r4, %r4, 0, %p0;
  mov.b32 %r11, 1000;
  mov.b32 %r12, 0;
  mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32
    {%r20, %r21, %r22, %r23}, {%r3, %r12, %r12, %r12}, {%r4, %r12},
    {%r11, %r11, %r11, %r11};
  st.global.u32 [%rd1], %r21;
  mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32
    {%r20, %r21, %r22, %r23}, {%r12, %r3, %r12, %r12}, {%r4, %r12},
    {%r11, %r11, %r11, %r11};
  st.global.u32 [%rd1+128], %r22;
)");
  for (int32_t lane = 0; lane < 32; ++lane) {
    int32_t left = 200 + lane / 4, column = lane % 4 * 2;
    EXPECT_EQ(int32_t(words[lane]), 1000 + left * (column + 1 - 4)) << lane;
    EXPECT_EQ(int32_t(words[32 + lane]), 1000 + (left - 256) * (column - 4))
        << lane;
  }
}

} // namespace
