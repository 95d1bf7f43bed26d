// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The machine on small kernels: what instructions mean, lanes that go apart
// and meet, and what wrong programs are told.

#include "MachineRun.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace ptx;

namespace {

using Machine = MachineRun;

} // namespace

TEST_F(Machine, LanesThatWentApartMeet) {
  auto words = run(R"(
  and.b32 %r1, %r0, 1;
  setp.eq.s32 %p0, %r1, 0;
  @%p0 bra EVEN;
  mov.u32 %r2, 7;
  bra JOIN;
EVEN:
  mov.u32 %r2, 3;
JOIN:
  shfl.sync.bfly.b32 %r3, %r2, 1, 31, -1;
  st.global.u32 [%rd1], %r3;
)");
  EXPECT_EQ(words[0], 7u);
  EXPECT_EQ(words[1], 3u);
}

TEST_F(Machine, SelectsAllBitsOfAType) {
  auto words = run(R"(
  mov.u32 %r1, 17;
  mov.b64 %rd2, {%r0, %r1};
  mov.b64 %rd3, 5;
  setp.lt.u32 %p0, %r0, 16;
  selp.b64 %rd3, %rd2, %rd3, %p0;
  mov.b64 {_, %r2}, %rd3;
  st.global.u32 [%rd1], %r2;
)");
  EXPECT_EQ(words[3], 17u);
  EXPECT_EQ(words[16], 0u);
}

TEST_F(Machine, AddsHalvesToFloats) {
  // 1.5 and 2 as f16, 1.5 as bf16, and 2^-12, which they could not tell apart.
  auto one = [&](const std::string &instruction) {
    return run("  mov.b16 %h1, 0x3e00;\n  mov.b16 %h2, 0x4000;\n"
               "  mov.b16 %h3, 0x3fc0;\n  mov.b32 %r1, 0x39800000;\n  " +
               instruction + ";\n  st.global.u32 [%rd1], %r2;\n")[0];
  };
  EXPECT_EQ(one("add.rn.f32.f16 %r2, %h1, %r1"), 0x3fc00800u);
  EXPECT_EQ(one("sub.rn.f32.bf16 %r2, %h3, %r1"), 0x3fbff800u);
  EXPECT_EQ(one("fma.rn.f32.f16 %r2, %h1, %h2, %r1"), 0x40400400u);
}

TEST_F(Machine, LoopsOfDifferentLengths) {
  auto words = run(R"(
  mov.u32 %r1, 0;
  mov.u32 %r2, 0;
NEXT:
  add.s32 %r2, %r2, %r1;
  add.s32 %r1, %r1, 1;
  setp.le.u32 %p0, %r1, %r0;
  @%p0 bra NEXT;
  vote.sync.ballot.b32 %r3, %p0, -1;
  add.s32 %r2, %r2, %r3;
  st.global.u32 [%rd1], %r2;
)");
  for (uint32_t lane = 0; lane < 32; ++lane)
    EXPECT_EQ(words[lane], lane * (lane + 1) / 2);
}

TEST_F(Machine, WarpsOfABlockMeetAtABarrier) {
  auto words = run(R"(
  mov.u32 %r1, tile;
  shl.b32 %r2, %r0, 2;
  add.s32 %r2, %r1, %r2;
  st.shared.u32 [%r2], %r0;
  bar.sync 0;
  xor.b32 %r3, %r0, 32;
  shl.b32 %r3, %r3, 2;
  add.s32 %r3, %r1, %r3;
  ld.shared.u32 %r4, [%r3];
  st.global.u32 [%rd1], %r4;
)",
                   64);
  EXPECT_EQ(words[0], 32u);
  EXPECT_EQ(words[63], 31u);
}

TEST_F(Machine, WholeFloatsAndTheLargestOfThree) {
  // Lane l has l / 2 - 8: ties go to even numbers.
  auto words = run(R"(
  cvt.rn.f32.u32 %r1, %r0;
  fma.rn.f32 %r1, %r1, 0f3F000000, 0fC1000000;
  cvt.rni.f32.f32 %r2, %r1;
  cvt.rzi.s32.f32 %r2, %r2;
  max.NaN.f32 %r3, %r1, 0f40000000, 0f40E00000;
  cvt.rmi.f32.f32 %r3, %r3;
  cvt.rzi.s32.f32 %r3, %r3;
  st.global.u32 [%rd1], %r2;
  st.global.u32 [%rd1+128], %r3;
)");
  for (int lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(int(words[lane]), int(std::nearbyint(lane / 2.0 - 8))) << lane;
    EXPECT_EQ(int(words[32 + lane]), std::max(lane / 2 - 8, 7)) << lane;
  }
}

TEST_F(Machine, ProductsOfTensorCores) {
  // A is the identity beside 0, so that the result is the upper half of B
  // added to C: with B(k, n) = k + 16 n in its first eight rows.
  auto words = run(R"(
  shr.u32 %r1, %r0, 2;
  and.b32 %r2, %r0, 3;
  shr.u32 %r3, %r1, 1;
  setp.eq.s32 %p0, %r3, %r2;
  and.b32 %r4, %r1, 1;
  shl.b32 %r4, %r4, 4;
  shl.b32 %r5, 16256, %r4;
  selp.b32 %r5, %r5, 0, %p0;
  shl.b32 %r6, %r2, 1;
  shl.b32 %r7, %r1, 4;
  add.s32 %r6, %r6, %r7;
  cvt.rn.f32.u32 %r8, %r6;
  add.s32 %r6, %r6, 1;
  cvt.rn.f32.u32 %r9, %r6;
  cvt.rn.bf16x2.f32 %r10, %r9, %r8;
  mov.b32 %r11, 0f3F000000;
  mov.b32 %r12, 0;
  mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
    {%r20, %r21, %r22, %r23}, {%r5, %r12, %r12, %r12}, {%r10, %r12},
    {%r11, %r12, %r11, %r12};
  cvt.rzi.u32.f32 %r20, %r20;
  st.global.u32 [%rd1], %r20;
  st.global.u32 [%rd1+128], %r22;
)");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(words[lane], lane / 4 + 16 * (lane % 4 * 2)) << lane;
    EXPECT_EQ(words[32 + lane], 0x3f000000u) << lane;
  }
}

TEST_F(Machine, ProductsOfTensorCoresInTf32) {
  // A(r, k) = 1 in column r % 4 of the first four and B(k, n) = 16 n + k, each
  // with bits below those of tf32: the result at (r, n) is B(r % 4, n).
  auto words = run(R"(
  shr.u32 %r1, %r0, 2;
  and.b32 %r2, %r0, 3;
  and.b32 %r3, %r1, 3;
  setp.eq.s32 %p0, %r3, %r2;
  mov.b32 %r4, 0f3F800000;
  or.b32 %r4, %r4, 4095;
  selp.b32 %r5, %r4, 0, %p0;
  shl.b32 %r6, %r1, 4;
  add.s32 %r6, %r6, %r2;
  cvt.rn.f32.u32 %r7, %r6;
  or.b32 %r7, %r7, 4095;
  mov.b32 %r11, 0f3F000000;
  mov.b32 %r12, 0;
  mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32
    {%r20, %r21, %r22, %r23}, {%r5, %r5, %r12, %r12}, {%r7, %r7},
    {%r11, %r12, %r12, %r12};
  st.global.u32 [%rd1], %r20;
  cvt.rzi.u32.f32 %r23, %r23;
  st.global.u32 [%rd1+128], %r23;
)");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    uint32_t row = lane / 4 % 4, column = lane % 4 * 2;
    float sum = static_cast<float>(16 * column + row) + 0.5f;
    uint32_t bits;
    std::memcpy(&bits, &sum, sizeof(bits));
    EXPECT_EQ(words[lane], bits) << lane;
    EXPECT_EQ(words[32 + lane], 16 * (column + 1) + row) << lane;
  }
}

TEST_F(Machine, ProductsOfWarpgroups) {
  // B(n, k) = 16 n + k in swizzled rows of 128 bytes, and A the identity in
  // each warp: row r of the result is column r of B.
  auto words = run(R"(
  shr.u32 %r1, %r0, 4;
  and.b32 %r2, %r0, 15;
  cvt.rn.f32.u32 %r3, %r0;
  cvt.rn.bf16.f32 %h0, %r3;
  shl.b32 %r4, %r1, 7;
  shl.b32 %r5, %r2, 1;
  add.s32 %r4, %r4, %r5;
  shl.b32 %r5, %r1, 4;
  xor.b32 %r4, %r4, %r5;
  mov.u32 %r5, tile;
  add.s32 %r4, %r4, %r5;
  st.shared.b16 [%r4], %h0;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  and.b32 %r6, %r0, 31;
  shr.u32 %r7, %r6, 2;
  and.b32 %r8, %r6, 3;
  shr.u32 %r9, %r7, 1;
  setp.eq.s32 %p0, %r9, %r8;
  and.b32 %r10, %r7, 1;
  shl.b32 %r10, %r10, 4;
  shl.b32 %r11, 16256, %r10;
  selp.b32 %r11, %r11, 0, %p0;
  mov.u32 %r12, 0;
  shr.u32 %r13, %r5, 4;
  cvt.u64.u32 %rd2, %r13;
  or.b64 %rd2, %rd2, 0x4000004000000000;
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16
    {%r20, %r21, %r22, %r23}, {%r11, %r12, %r12, %r11}, %rd2, 0, 1, 1, 0;
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  cvt.rzi.u32.f32 %r20, %r20;
  cvt.rzi.u32.f32 %r23, %r23;
  shl.b32 %r23, %r23, 16;
  or.b32 %r20, %r20, %r23;
  st.global.u32 [%rd1], %r20;
)",
                   128);
  for (uint32_t thread = 0; thread < 128; ++thread) {
    uint32_t row = thread % 32 / 4, column = thread % 4 * 2;
    EXPECT_EQ(words[thread], (16 * column + row) | (16 * (column + 1) + row + 8)
                                                       << 16)
        << thread;
  }
}

TEST_F(Machine, ClustersReadTheSharedMemoryOfOthers) {
  auto words = run(R"(
  mov.u32 %r1, %cluster_ctarank;
  mov.u32 %r2, tile;
  setp.eq.s32 %p0, %r0, 0;
  add.s32 %r3, %r1, 40;
  @%p0 st.shared.u32 [%r2], %r3;
  barrier.cluster.arrive;
  barrier.cluster.wait;
  xor.b32 %r4, %r1, 1;
  mapa.shared::cluster.u32 %r5, %r2, %r4;
  ld.shared::cluster.u32 %r6, [%r5];
  barrier.cluster.arrive;
  barrier.cluster.wait;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd2, %rd0, %rd2;
  @%p0 st.global.u32 [%rd2], %r6;
)",
                   32, 2, 2);
  EXPECT_EQ(words[0], 41u);
  EXPECT_EQ(words[1], 40u);
}

TEST_F(Machine, BulkCopiesToTheOtherBlockOfACluster) {
  auto words = run(R"(
  mov.u32 %r1, %cluster_ctarank;
  mov.u32 %r2, tile;
  setp.eq.s32 %p0, %r0, 0;
  @!%p0 bra MEET;
  mbarrier.init.shared::cta.b64 [%r2], 1;
  add.s32 %r3, %r1, 40;
  st.shared.v4.u32 [%r2+64], {%r3, %r3, %r3, %r3};
  fence.proxy.async.shared::cta;
MEET:
  barrier.cluster.arrive;
  barrier.cluster.wait;
  xor.b32 %r4, %r1, 1;
  mapa.shared::cluster.u32 %r5, %r2, %r4;
  @!%p0 bra AGAIN;
  mbarrier.arrive.expect_tx.shared::cluster.b64 _, [%r5], 16;
  cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r5+128], [%r2+64], 16, [%r5];
AGAIN:
  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0;
  @!%p1 bra AGAIN;
  ld.shared.u32 %r6, [%r2+128];
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd2, %rd0, %rd2;
  @%p0 st.global.u32 [%rd2], %r6;
  barrier.cluster.arrive;
  barrier.cluster.wait;
)",
                   32, 2, 2);
  EXPECT_EQ(words[0], 41u);
  EXPECT_EQ(words[1], 40u);
}

TEST_F(Machine, AddressesInSharedMemoryHaveTheRankOfTheBlock) {
  const char *const text = R"(
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, tile;
  shr.u32 %r2, %r2, 24;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd2, %rd0, %rd2;
  @%p0 st.global.u32 [%rd2], %r2;
)";
  const std::string first = "  setp.eq.s32 %p0, %r0, 0;\n";
  auto alone = run(first + text, 32, 2, 1);
  EXPECT_EQ(alone[0], 0u);
  EXPECT_EQ(alone[1], 0u);
  auto pair = run(first + text, 32, 2, 2);
  EXPECT_EQ(pair[0], 0u);
  EXPECT_EQ(pair[1], 1u);
}

static const char *const kCopy = R"(
  mov.u32 %r1, tile;
  mov.u32 %r2, 5;
  st.global.u32 [%rd0+512], %r2;
  setp.ne.s32 %p0, %r0, 0;
  @%p0 bra END;
  cp.async.cg.shared.global [%r1], [%rd0+512], 16;
  cp.async.commit_group;
WAIT
  ld.shared.u32 %r3, [%r1];
  st.global.u32 [%rd0], %r3;
END:
)";

TEST_F(Machine, CopiesComeAtTheWaitAndNotBefore) {
  std::string with = kCopy, without = kCopy;
  with.replace(with.find("WAIT"), 4, "  cp.async.wait_group 0;");
  without.replace(without.find("WAIT"), 4, "");
  EXPECT_EQ(run(with)[0], 5u);
  EXPECT_NE(fault(without).find("no cp.async.wait_group of warp 0"),
            std::string::npos);
  // What was there before is what it reads: nobody has waited.
  EXPECT_EQ(reinterpret_cast<const uint32_t *>(out)[0], ~0u);
}

TEST_F(Machine, BarriersOfBulkCopies) {
  auto words = run(R"(
  mov.u32 %r1, tile;
  mov.u32 %r2, 9;
  st.global.u32 [%rd1+512], %r2;
  fence.proxy.async.global;
  bar.warp.sync -1;
  setp.ne.s32 %p0, %r0, 0;
  @%p0 bra READ;
  mbarrier.init.shared::cta.b64 [%r1], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 64;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1+64], [%rd0+512], 64, [%r1];
READ:
  bar.warp.sync -1;
AGAIN:
  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], 0;
  @!%p1 bra AGAIN;
  ld.shared.u32 %r3, [%r1+68];
  st.global.u32 [%rd1], %r3;
)");
  EXPECT_EQ(words[31], 9u);
}

TEST_F(Machine, SaysWhatWrongProgramsDo) {
  auto expect = [](const std::string &text, const char *part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect(fault("  st.global.u32 [%rd1+1024], %r0;"),
         "outside of all allocations");
  expect(fault("  st.global.v2.u32 [%rd1], {%r0, %r0};"), "misaligned address");
  expect(fault("  mov.u32 %r1, tile;\n  ld.shared.u32 %r2, [%r1+1024];"),
         "outside of shared memory");
  expect(fault("  setp.eq.s32 %p0, %r0, 0;\n  @%p0 bra END;\n"
               "  shfl.sync.bfly.b32 %r1, %r0, 1, 31, -1;\n"
               "  bra OUT;\nEND:\n  bar.warp.sync -1;\nOUT:\n"),
         "wait for others that went elsewhere");
  expect(fault("  mov.u32 %r1, tile;\n  mbarrier.init.shared.b64 [%r1], 9;\n"
               "AGAIN:\n"
               "  mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 0;\n"
               "  @!%p1 bra AGAIN;\n"),
         "nothing moves any more");
  expect(fault("  mov.u32 %r1, tile;\n  st.shared.u32 [%r1], %r0;\n", 64),
         "a race with PTX line");
  expect(fault("  fancy.op %r1, %r2;"), "no meaning known for fancy.op");
  expect(fault("  add.s32 %r1, %q2, 1;"), "no value %q2");
  expect(fault("  bra NOWHERE;"), "no label NOWHERE");
}

TEST_F(Machine, AWarpStaysBehind) {
  // Each warp of four counts to 100,000 and takes a number.
  const std::string body = R"(
  and.b32 %r1, %r0, 31;
  setp.ne.s32 %p0, %r1, 0;
  @%p0 bra END;
  mov.u32 %r2, 0;
AGAIN:
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p1, %r2, 100000;
  @%p1 bra AGAIN;
  atom.global.add.u32 %r3, [%rd0+512], 1;
  st.global.u32 [%rd1], %r3;
END:
)";
  for (unsigned warp = 0; warp < 4; ++warp) {
    late = uint64_t(1) << warp;
    out = 0;
    auto words = run(body, 128);
    // Memory that nobody has written is -1.
    for (unsigned other = 0; other < 4; ++other)
      EXPECT_LE(words[32 * other] + 1, words[32 * warp] + 1);
  }
  late = 0b0111;
  out = 0;
  auto words = run(body, 128);
  for (unsigned other = 0; other < 3; ++other)
    EXPECT_LT(words[96] + 1, words[32 * other] + 1);
}

TEST_F(Machine, PairsOfFloatsInOneRegister) {
  auto words = run(R"(
  mov.b32 %r1, 0f3FC00000;  // 1.5
  mov.b32 %r2, 0f40000000;  // 2
  mov.b64 %rd2, {%r1, %r2};
  mov.b64 %rd3, {%r2, %r2};
  fma.rn.f32x2 %rd4, %rd2, %rd3, %rd2;
  sub.rn.f32x2 %rd4, %rd4, %rd3;
  mul.rn.f32x2 %rd4, %rd4, %rd2;
  add.rn.f32x2 %rd4, %rd4, %rd4;
  mov.b64 {%r3, %r4}, %rd4;
  st.global.u32 [%rd0], %r3;
  st.global.u32 [%rd0+4], %r4;
)");
  // (1.5 * 2 + 1.5 - 2) * 1.5 * 2 and (2 * 2 + 2 - 2) * 2 * 2.
  const float expected[] = {7.5f, 16.0f};
  for (unsigned i = 0; i < 2; ++i) {
    float found;
    std::memcpy(&found, &words[i], 4);
    EXPECT_EQ(found, expected[i]);
  }
}
