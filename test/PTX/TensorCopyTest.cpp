// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Boxes through maps: where their elements come to lie, what comes from outside
// of the array, what the barrier is told, and what wrong copies are told.

#include "Machine.h"

#include "gdnrt/cuda_abi.h"

#include <cstring>
#include <gtest/gtest.h>
#include <utility>

namespace gdnrt::cuda {
#define DECLARE(MEMBER, SYMBOL, PARAMETERS) extern "C" Result SYMBOL PARAMETERS;
GDNRT_CUDA_OPTIONAL(DECLARE)
#undef DECLARE
} // namespace gdnrt::cuda

using namespace ptx;
using Map = gdnrt::cuda::TensorMap;

namespace {

/// Replaces the first `from` in `text`.
std::string with(std::string text, const std::string &from,
                 const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

/// How a kernel begins: a tile in %r1, the tensor map in %rd4, the thread in
/// %r0 with the byte %r7 of the tile.
const std::string kBegin = R"(
.version 9.0
.target sm_90
.address_size 64
.visible .entry test(.param .align 64 .b8 test_param_0[192]) {
  .reg .pred %p<3>;
  .reg .b32 %r<20>;
  .reg .b64 %rd<9>;
  .shared .align 1024 .b8 tile[3072];
  .shared .align 8 .b8 bar[8];
  mov.b64 %rd2, test_param_0;
  cvta.param.u64 %rd3, %rd2;
  add.s64 %rd4, %rd3, 64;
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, tile;
  setp.ne.s32 %p0, %r0, 0;
  shl.b32 %r7, %r0, 6;
  add.s32 %r8, %r1, %r7;
)";

/// Boxes of 8 rows of an array [3, 20, 128] whose element i is i.
class TensorCopy : public ::testing::Test {
protected:
  static constexpr int kBatch = 3, kRows = 20, kColumns = 128, kBoxRows = 8;
  static constexpr size_t kBoxBytes = kBoxRows * kColumns * 2;

  void SetUp() override {
    array = memory.allocate(kBatch * kRows * kColumns * 2);
    out = memory.allocate(kBoxBytes);
    uint16_t *elements = reinterpret_cast<uint16_t *>(array);
    for (int i = 0; i < kBatch * kRows * kColumns; ++i)
      elements[i] = static_cast<uint16_t>(i);
    ASSERT_EQ(encode(), 0);
  }

  /// What a test may change of the arguments of the driver.
  uint32_t rank = 4, boxColumns = 64, elementStride = 1;
  int swizzle = gdnrt::cuda::kTensorMapSwizzle128;
  uint64_t shift = 0, rows = kRows, rowStride = kColumns * 2;
  Map map = {};

  int encode() {
    uint64_t sizes[] = {64, rows, kColumns / 64, kBatch};
    uint64_t strides[] = {rowStride, 128, kRows * kColumns * 2};
    uint32_t box[] = {boxColumns, kBoxRows, kColumns / 64, 1};
    uint32_t steps[] = {1, elementStride, 1, 1};
    return gdnrt::cuda::cuTensorMapEncodeTiled(
        &map, gdnrt::cuda::kTensorMapUint16, rank,
        reinterpret_cast<void *>(array + shift), sizes, strides, box, steps, 0,
        swizzle, gdnrt::cuda::kTensorMapPromote256, 0);
  }

  /// A kernel that copies the box at `begin` and writes its bytes, as they
  /// lie, to `out`.
  static std::string kernel(const std::string &begin) {
    return with(kBegin + R"(
  ld.param.b64 %rd0, [test_param_0];
  mov.u32 %r2, bar;
  @%p0 bra READ;
  mbarrier.init.shared::cta.b64 [%r2], 1;
  fence.proxy.async.shared::cta;
  prefetch.tensormap [%rd4];
  mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r2], 2048;
  mov.b32 {%r3, %r4}, BEGIN_COLUMNS_ROWS;
  cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd4, {%r3, %r4, %r5, %r6}], [%r2];
  mbarrier.arrive.shared::cta.b64 _, [%r2];
READ:
  bar.warp.sync -1;
AGAIN:
  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0;
  @!%p1 bra AGAIN;
  cvt.u64.u32 %rd5, %r7;
  add.s64 %rd6, %rd0, %rd5;
  mov.b32 %r9, 0;
NEXT:
  ld.shared.u32 %r10, [%r8];
  st.global.u32 [%rd6], %r10;
  add.s32 %r8, %r8, 4;
  add.s64 %rd6, %rd6, 4;
  add.s32 %r9, %r9, 1;
  setp.lt.s32 %p2, %r9, 16;
  @%p2 bra NEXT;
  ret;
}
)",
                "mov.b32 {%r3, %r4}, BEGIN_COLUMNS_ROWS;", begin);
  }
  static std::string at(int column, int row, int piece, int batch) {
    std::string text;
    int number = 3;
    for (int begin : {column, row, piece, batch})
      text += "mov.b32 %r" + std::to_string(number++) + ", " +
              std::to_string(begin) + ";\n  ";
    return kernel(text);
  }

  /// A kernel that numbers the words of a tile, stores it as the box at
  /// `begin`, and overwrites the tile when that has been read.
  static std::string storing(int row, int piece, int batch) {
    std::string begin;
    int number = 3;
    for (int each : {0, row, piece, batch})
      begin += "mov.b32 %r" + std::to_string(number++) + ", " +
               std::to_string(each) + ";\n  ";
    return with(kBegin + R"(
  shl.b32 %r10, %r0, 4;
  mov.b32 %r9, 0;
NEXT:
  st.shared.u32 [%r8], %r10;
  add.s32 %r8, %r8, 4;
  add.s32 %r10, %r10, 1;
  add.s32 %r9, %r9, 1;
  setp.lt.s32 %p2, %r9, 16;
  @%p2 bra NEXT;
  fence.proxy.async.shared::cta;
  bar.warp.sync -1;
  @%p0 bra WRITE;
  BEGIN;
  cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%rd4, {%r3, %r4, %r5, %r6}], [%r1];
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group.read 0;
WRITE:
  bar.warp.sync -1;
  add.s32 %r8, %r1, %r7;
  st.shared.u32 [%r8], 77;
  ret;
}
)",
                "BEGIN;", begin);
  }

  const uint16_t *run(const std::string &text) {
    auto program = readProgram(text);
    Launch launch;
    launch.kernel = program->kernels[0].get();
    launch.threads = {32, 1, 1};
    launch.parameters.resize(192);
    std::memcpy(launch.parameters.data(), &out, 8);
    std::memcpy(launch.parameters.data() + 64, &map, sizeof(map));
    runKernel(launch, memory);
    return reinterpret_cast<const uint16_t *>(out);
  }
  std::string fault(const std::string &text) {
    try {
      run(text);
    } catch (const Fault &fault) {
      return fault.what();
    }
    return "nothing";
  }

  /// Expects the box of `batch` whose first element has these places, in
  /// shared memory whose address is a multiple of 1024 but for `phase`.
  void expectTensorMap(const uint16_t *words, int column, int row, int piece,
                       int batch, uint32_t phase = 0) {
    for (int k = 0; k < kColumns / 64; ++k)
      for (int r = 0; r < kBoxRows; ++r)
        for (int c = 0; c < 64; ++c) {
          uint32_t place = static_cast<uint32_t>((k * kBoxRows + r) * 128);
          place = phase + place + static_cast<uint32_t>(c * 2);
          place = (place ^ ((place >> 7 & 7) << 4)) - phase;
          bool isInside = row + r >= 0 && row + r < kRows && column + c >= 0 &&
                          column + c < 64 && piece + k < kColumns / 64;
          int element = (batch * kRows + row + r) * kColumns +
                        (piece + k) * 64 + column + c;
          ASSERT_EQ(words[place / 2], isInside ? element : 0)
              << "piece " << k << ", row " << r << ", column " << c;
        }
  }

  Memory memory;
  uint64_t array = 0, out = 0;
};

void expectPart(const std::string &text, const char *part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

} // namespace

TEST_F(TensorCopy, AWholeBox) {
  expectTensorMap(run(at(0, 3, 0, 1)), 0, 3, 0, 1);
  expectTensorMap(run(at(0, 12, 0, 2)), 0, 12, 0, 2);
}

TEST_F(TensorCopy, SwizzlesByAddresses) {
  // One row further the pattern begins one row further.
  std::string text = with(at(0, 0, 0, 0), "mov.u32 %r1, tile;",
                          "mov.u32 %r1, tile;\n  add.s32 %r1, %r1, 128;");
  expectTensorMap(run(text), 0, 0, 0, 0, 128);
}

TEST_F(TensorCopy, ZerosOutsideOfTheArray) {
  expectTensorMap(run(at(0, 17, 0, 2)), 0, 17, 0, 2);
  expectTensorMap(run(at(0, -3, 0, 0)), 0, -3, 0, 0);
  expectTensorMap(run(at(0, 100, 0, 0)), 0, 100, 0, 0);
  expectTensorMap(run(at(0, 4, 1, 0)), 0, 4, 1, 0);
  expectTensorMap(run(at(-3, 4, 0, 0)), -3, 4, 0, 0);
  expectTensorMap(run(at(13, 4, 0, 0)), 13, 4, 0, 0);
}

TEST_F(TensorCopy, OtherWaysToNameTheMap) {
  std::string text = at(0, 3, 0, 1);
  expectTensorMap(run(with(text, "[%rd4, {", "[test_param_0+64, {")), 0, 3, 0,
                  1);
  expectTensorMap(run(with(text, "[%rd4, {", "[%rd3+64, {")), 0, 3, 0, 1);
  expectTensorMap(run(with(text, "global.tile.", "global.")), 0, 3, 0, 1);
}

TEST_F(TensorCopy, TheBarrierCountsAllBytes) {
  std::string text = at(0, 17, 0, 2);
  expectPart(fault(with(text, "[%r2], 2048;", "[%r2], 4096;")),
             "nothing moves any more");
  // Nobody waits for the box, which therefore has not come.
  std::string early = with(text, "  @!%p1 bra AGAIN;\n", "");
  expectPart(fault(early), "a race with PTX line");
}

TEST_F(TensorCopy, StoresABox) {
  // Rows past the end of the array are left out, and so is its second half.
  for (int row : {3, 17})
    for (int piece : {0, 1}) {
      SetUp();
      run(storing(row, piece, 1));
      const uint16_t *elements = reinterpret_cast<const uint16_t *>(array);
      for (int e = 0; e < kBatch * kRows * kColumns; ++e) {
        int column = e % kColumns, r = e / kColumns % kRows - row,
            k = column / 64 - piece;
        bool isInside =
            e / kColumns / kRows == 1 && r >= 0 && r < kBoxRows && k >= 0;
        uint32_t place =
            static_cast<uint32_t>((k * kBoxRows + r) * 128 + column % 64 * 2);
        place ^= (place >> 7 & 7) << 4;
        // Words have their number: its half that counts lies first.
        uint32_t word = place % 4 == 0 ? place / 4 : 0;
        ASSERT_EQ(elements[e], isInside ? word : static_cast<uint16_t>(e))
            << "row " << row << ", piece " << piece << ", element " << e;
      }
    }
}

TEST_F(TensorCopy, StoresAreAwaited) {
  std::string text = storing(3, 0, 1);
  EXPECT_EQ(fault(text), "nothing");
  // Nobody waits; nothing was committed; for all groups but one; another lane.
  const std::string wait = "  cp.async.bulk.wait_group.read 0;\n",
                    commit = "  cp.async.bulk.commit_group;\n";
  for (const std::string &wrong :
       {with(text, wait, ""), with(text, commit, ""),
        with(text, "group.read 0", "group.read 1"),
        with(with(text, wait, ""), "WRITE:\n",
             "WRITE:\n  @!%p0 bra WRITTEN;\n" + wait + "WRITTEN:\n")})
    expectPart(fault(wrong), "a race with PTX line");
  // Nobody else writes, but the block ends.
  std::string unread = with(text, "  st.shared.u32 [%r8], 77;\n", "");
  EXPECT_EQ(fault(unread), "nothing");
  expectPart(fault(with(unread, wait, "")),
             "ends before its bulk copies to memory");
  // A fence of those who wrote, ahead of the barrier.
  const std::string fence = "  fence.proxy.async.shared::cta;\n";
  expectPart(fault(with(text, fence, "")), "a race with PTX line");
  expectPart(fault(with(text, "tile.bulk_group [%rd4, {%r3, %r4, %r5, %r6}]",
                        "tile.bulk_group [%rd4, {%r3, %r4, %r5}]")),
             "no meaning known");
}

TEST_F(TensorCopy, SaysWhatIsWrong) {
  std::string text = at(0, 3, 0, 1);
  expectPart(fault(with(text, "mov.u32 %r1, tile;",
                        "mov.u32 %r1, tile;\n  add.s32 %r1, %r1, 64;")),
             "not a multiple of 128");
  expectPart(fault(with(text, "mov.u32 %r1, tile;",
                        "mov.u32 %r1, tile;\n  add.s32 %r1, %r1, 2048;")),
             "outside of shared memory");
  expectPart(fault(with(text, "%rd3, 64;", "%rd3, 0;")), "no tensor map");
  expectPart(fault(with(text, "%rd3, 64;", "%rd3, 32;")), "misaligned");
  expectPart(fault(with(text, "%rd3, 64;", "%rd3, 128;")), "of the parameters");
  expectPart(fault(with(text, ".param .align 64", ".param .align 16")),
             "aligned to 16 bytes");
  expectPart(fault(with(with(text, "tensor.4d", "tensor.3d"), ", %r6}", "}")),
             "a tensor map of 4 dimensions");
  expectPart(fault(with(text, "tensor.4d", "tensor.5d")), "no meaning known");
  rows = 1000; // more than there is
  ASSERT_EQ(encode(), 0);
  expectPart(fault(at(0, 100, 0, 2)), "outside of all allocations");
}

TEST_F(TensorCopy, TheDriverRefusesWhatGpusCannotDo) {
  auto refuses = [this](auto &argument, auto value) {
    auto before = std::exchange(argument, value);
    EXPECT_EQ(encode(), 1);
    argument = before;
    EXPECT_EQ(encode(), 0);
  };
  refuses(rank, 2u);
  refuses(rank, 6u);
  refuses(shift, 8u);
  refuses(rows, 0u);
  refuses(rows, (uint64_t{1} << 32) + 1);
  refuses(rowStride, 24u);
  refuses(rowStride, uint64_t{1} << 40);
  refuses(boxColumns, 0u);
  refuses(boxColumns, 128u);
  refuses(boxColumns, 32u);
  refuses(elementStride, 2u);
  refuses(swizzle, 0);
}
