// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tests that run a few instructions on the machine.
#ifndef GDN_TEST_PTX_MACHINERUN_H
#define GDN_TEST_PTX_MACHINERUN_H

#include "Machine.h"

#include <cstring>
#include <gtest/gtest.h>

namespace ptx {

/// Runs `body` in a kernel with the parameters `out` (an array of 32-bit
/// words) and registers %r, %rd, %p, %f and %h, and gives the words.
class MachineRun : public ::testing::Test {
protected:
  static constexpr size_t kWords = 256;

  std::vector<uint32_t> run(const std::string &body, uint32_t threads = 32,
                            uint32_t blocks = 1, uint32_t cluster = 1) {
    program = readProgram(R"(
.version 9.0
.target sm_90a
.address_size 64
.visible .entry test(.param .u64 out) {
  .reg .pred %p<9>;
  .reg .b16 %h<9>;
  .reg .b32 %r<40>;
  .reg .b64 %rd<9>;
  .shared .align 16 .b8 tile[1024];
  ld.param.u64 %rd0, [out];
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %rd1, %r0, 4;
  add.s64 %rd1, %rd0, %rd1;
)" + body + "\n  ret;\n}\n");
    if (!out)
      out = memory.allocate(4 * kWords);
    Launch launch;
    launch.kernel = program->kernels[0].get();
    launch.grid = {blocks, 1, 1};
    launch.threads = {threads, 1, 1};
    launch.cluster = cluster;
    launch.late = late;
    launch.parameters.resize(8);
    std::memcpy(launch.parameters.data(), &out, 8);
    runKernel(launch, memory);
    const uint32_t *words = reinterpret_cast<const uint32_t *>(out);
    return {words, words + kWords};
  }

  /// What the machine says of `body`.
  std::string fault(const std::string &body, uint32_t threads = 32) {
    try {
      run(body, threads);
    } catch (const Fault &fault) {
      return fault.what();
    }
    return "nothing";
  }

  Memory memory;
  std::unique_ptr<Program> program;
  uint64_t out = 0;
  /// Warps that stay behind.
  uint64_t late = 0;
};

} // namespace ptx

#endif // GDN_TEST_PTX_MACHINERUN_H
