// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Instructions and findings with the ops that .file and .loc lead to.

#include "Machine.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace ptx;

namespace {

/// A race between two instructions of different ops.
std::string race(const std::string &file) {
  return R"(
.version 9.0
.target sm_90a
.address_size 64
.file 7 ")" +
         file + R"("
.visible .entry first() {
  ret;
}
.visible .entry test() {
  .reg .b32 %r<4>;
  .shared .align 16 .b8 tile[1024];
  mov.u32 %r0, %tid.x;
  .loc 7 2 3
  mov.u32 %r1, tile;
  st.shared.u32 [%r1], %r0;
  .loc 7 3 5, function_name $L__info_string0, inlined_at 7 1 1
  ld.shared.u32 %r2, [%r1];
  .loc 7 0 5
  ret;
}
.section .debug_macinfo { }
)";
}

class Origins : public ::testing::Test {
protected:
  void SetUp() override {
    // Tests run at the same time, each in a process of its own.
    folder = ::testing::TempDir() + "gdn_origins_" + std::to_string(getpid());
    std::filesystem::create_directory(folder);
    path = folder + "/gdn_origins.mlir";
    std::ofstream(path) << "func.func @test() {\n"
                           "  gdn_gpu.store %0, %1 : memref<1xi32>\n"
                           "    %2:2 = gdn_gpu.load(%1) : memref<1xi32>\n"
                           "}\n";
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  /// The origins of the instructions of a program's last kernel.
  std::vector<std::string> originsOf(const std::string &text) {
    std::unique_ptr<Program> program = readProgram(text);
    const Kernel &kernel = *program->kernels.back();
    std::vector<std::string> origins;
    for (const Instruction &instruction : kernel.code)
      origins.push_back(nameOrigin(kernel, instruction));
    return origins;
  }

  /// What is found in `text`, for people and as JSON.
  std::pair<std::string, std::string> findingsOf(const std::string &text) {
    std::unique_ptr<Program> program = readProgram(text);
    Launch launch;
    launch.kernel = program->kernels.back().get();
    launch.threads = {64, 1, 1};
    try {
      runKernel(launch, Memory());
    } catch (const Findings &findings) {
      return {findings.what(), findings.json(*launch.kernel)};
    }
    return {};
  }

  std::string folder, path;
};

using Names = std::vector<std::string>;

} // namespace

TEST_F(Origins, OfInstructions) {
  const std::string store = "gdn_gpu.store (gdn_origins.mlir:2)",
                    load = "gdn_gpu.load (gdn_origins.mlir:3)";
  EXPECT_EQ(originsOf(race(path)), (Names{"", store, store, load, ""}));
}

TEST_F(Origins, WithoutTheFile) {
  EXPECT_EQ(originsOf(race("/no/folder/a b.mlir")),
            (Names{"", "a b.mlir:2", "a b.mlir:2", "a b.mlir:3", ""}));
}

TEST_F(Origins, NeedAPath) {
  EXPECT_THROW(readProgram(".file 1 .version 9.0"), Fault);
  EXPECT_THROW(readProgram(".file 1"), Fault);
}

TEST_F(Origins, InFindings) {
  auto [text, json] = findingsOf(race(path));
  for (const char *part : {
           "PTX line 17: ld.shared.u32, from gdn_gpu.load "
           "(gdn_origins.mlir:3): a race with ",
           "PTX line 15: st.shared.u32, from gdn_gpu.store "
           "(gdn_origins.mlir:2) (warp",
       })
    EXPECT_NE(text.find(part), std::string::npos) << text;
  for (const char *part :
       {"\"line\": 17, \"other\": 15, \"kind\": \"reads_write\", "
        "\"origin\": \"gdn_gpu.load (gdn_origins.mlir:3)\", "
        "\"other_origin\": \"gdn_gpu.store (gdn_origins.mlir:2)\", \"text\": "})
    EXPECT_NE(json.find(part), std::string::npos) << json;
}
