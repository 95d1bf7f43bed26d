// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What ptxas prints, from outputs in its form, and the driver against programs
// that stand in for it: old, silent, slow, broken.
#include "gdn/Target/Ptxas.h"
#include "gdn/Target/CudaProgram.h"
#include "gdn/Target/TemporaryFile.h"

#include "llvm/Support/FileSystem.h"

#include <gmock/gmock.h>

using namespace gdn;

namespace {

std::string errorOf(llvm::Error error) {
  return llvm::toString(std::move(error));
}

constexpr llvm::StringLiteral twoKernels = R"(
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'decode' for 'sm_90a'
ptxas info    : Function properties for decode
    16 bytes stack frame, 284 bytes spill stores, 288 bytes spill loads
ptxas info    : Used 168 registers, used 5 barriers, 512 bytes smem, 8 bytes cmem[2]
ptxas info    : Compile time = 38.367 ms
ptxas info    : Compiling entry function 'prefill' for 'sm_90a'
ptxas info    : Function properties for prefill
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Function properties for helper
    64 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers
)";

TEST(PtxasReport, KernelsHaveTheirOwnFigures) {
  llvm::Expected<PtxasReport> report = parsePtxasOutput(twoKernels);
  ASSERT_TRUE(bool(report));
  ASSERT_EQ(report->kernels.size(), 2u);
  KernelResources decode = report->kernels.lookup("decode");
  EXPECT_EQ(decode.registers, 168u);
  EXPECT_EQ(decode.staticShared, 512u);
  EXPECT_EQ(decode.stack, 16u);
  EXPECT_EQ(decode.spillStores, 284u);
  EXPECT_EQ(decode.spillLoads, 288u);
  KernelResources prefill = report->kernels.lookup("prefill");
  EXPECT_EQ(prefill.registers, 40u);
  EXPECT_EQ(prefill.staticShared, 0u);
  EXPECT_EQ(prefill.stack, 0u) << "the figures of a device function";
  EXPECT_EQ(prefill.spillStores, 0u);
  EXPECT_TRUE(report->warnings.empty());
}

TEST(PtxasReport, Warnings) {
  llvm::Expected<PtxasReport> report = parsePtxasOutput(
      "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async "
      "instructions are serialized due to insufficient register resources for "
      "the wgmma pipeline in the function 'prefill'\n"
      "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' "
      "ignored; unable to determine register count at entry.\n"
      "ptxas warning : Stack size for entry function 'k' cannot be statically "
      "determined\n"
      "ptxas a.ptx, line 4; warning : Advisory: use sm_90a\n");
  ASSERT_TRUE(bool(report));
  ASSERT_EQ(report->warnings.size(), 4u);
  EXPECT_EQ(report->warnings[0].code, "C7510");
  EXPECT_EQ(report->warnings[0].kernel, "prefill");
  EXPECT_THAT(report->warnings[0].text,
              testing::StartsWith("(C7510) Potential Performance Loss: wgmma"));
  EXPECT_EQ(report->warnings[1].code, "C7508");
  EXPECT_EQ(report->warnings[1].kernel, "");
  EXPECT_EQ(report->warnings[2].code, "");
  EXPECT_EQ(report->warnings[3].text, "Advisory: use sm_90a");
}

TEST(PtxasReport, UnreadableFiguresAreAnError) {
  for (const char *line :
       {"    many bytes stack frame, 0 bytes spill stores, 0 bytes spill loads",
        "    0 bytes stack frame, 0 bytes spill stores",
        "ptxas info    : Used some registers",
        "ptxas info    : Used 40 registers", // of no kernel
        "ptxas info    : Compiling entry function"}) {
    llvm::Expected<PtxasReport> report = parsePtxasOutput(line);
    ASSERT_FALSE(bool(report)) << line;
    EXPECT_EQ(errorOf(report.takeError()),
              std::string("cannot read what ptxas says: ") + line);
  }
  EXPECT_TRUE(bool(parsePtxasOutput("something new\n")));
}

/// A program that stands in for ptxas.
class FakePtxas : public testing::Test {
protected:
  /// Prints `version` for --version; otherwise runs `body`, a shell script.
  std::string write(llvm::StringRef version, llvm::StringRef body) {
    llvm::cantFail(
        file.create("sh", ("#!/bin/sh\nif [ \"$1\" = --version ]; then echo '" +
                           version + "'; exit 0; fi\n" + body + "\n")
                              .str()));
    (void)llvm::sys::fs::setPermissions(file.getPath(), llvm::sys::fs::all_all);
    return file.getPath();
  }
  std::string assemble(llvm::StringRef body, unsigned seconds = 20,
                       llvm::StringRef ptx = "// nothing") {
    llvm::Expected<Ptxas> ptxas =
        Ptxas::open(write("release 13.0, V13.0.88", body));
    if (!ptxas)
      return errorOf(ptxas.takeError());
    llvm::Expected<Cubin> cubin =
        ptxas->assemble(ptx, llvm::cantFail(TargetModel::get("sm_80")),
                        /*cache=*/nullptr, seconds);
    return cubin ? "assembled" : errorOf(cubin.takeError());
  }
  TemporaryFile file;
};

TEST_F(FakePtxas, Version) {
  llvm::Expected<Ptxas> ptxas =
      Ptxas::open(write("Cuda compilation tools, release 13.0, V13.0.88", ""));
  ASSERT_TRUE(bool(ptxas));
  EXPECT_EQ(ptxas->getVersion(), "13.0.88");
}

TEST_F(FakePtxas, OldVersion) {
  std::string path =
      write("Cuda compilation tools, release 12.8, V12.8.61", "");
  llvm::Expected<Ptxas> ptxas = Ptxas::open(path);
  ASSERT_FALSE(bool(ptxas));
  EXPECT_EQ(errorOf(ptxas.takeError()),
            path + ": expects ptxas 13.0 or newer, which reads PTX 9.0, but "
                   "got 12.8.61");
}

TEST_F(FakePtxas, NoVersion) {
  std::string path = write("hello", "");
  llvm::Expected<Ptxas> ptxas = Ptxas::open(path);
  ASSERT_FALSE(bool(ptxas));
  EXPECT_EQ(errorOf(ptxas.takeError()),
            path + ": expects 'ptxas --version' to print a version, but got "
                   "\"hello\"");
}

TEST_F(FakePtxas, NoProgram) {
  llvm::Expected<Ptxas> ptxas = Ptxas::open("/no/ptxas");
  ASSERT_FALSE(bool(ptxas));
  EXPECT_THAT(errorOf(ptxas.takeError()),
              testing::StartsWith("/no/ptxas: cannot be started"));
}

TEST_F(FakePtxas, ErrorsAreShown) {
  EXPECT_EQ(assemble("echo 'ptxas info : noise'; echo \"ptxas $6, line 4; "
                     "error   : Unknown symbol 'r'\"; echo 'ptxas fatal   : "
                     "Ptx assembly aborted due to errors'; exit 255"),
            "ptxas 13.0.88 refuses the code for sm_80:\n"
            "ptxas ptx, line 4; error   : Unknown symbol 'r'\n"
            "ptxas fatal   : Ptx assembly aborted due to errors");
}

TEST_F(FakePtxas, LocationsAreAskedFor) {
  llvm::StringRef body = "echo \"ptxas fatal   : $*\"; exit 255";
  EXPECT_THAT(assemble(body), testing::Not(testing::HasSubstr("-lineinfo")));
  EXPECT_THAT(assemble(body, /*seconds=*/20, "\t.loc\t1 2 3\n"),
              testing::HasSubstr("-lineinfo"));
}

TEST_F(FakePtxas, UnreadableOutput) {
  EXPECT_EQ(assemble("echo 'ptxas info    : Used few registers'"),
            "cannot read what ptxas says: ptxas info    : Used few registers");
  // No file was written.
  EXPECT_NE(assemble("echo 'ptxas info    : 0 bytes gmem'"), "assembled");
}

TEST_F(FakePtxas, TimeLimit) {
  EXPECT_THAT(assemble("exec sleep 20", /*seconds=*/1),
              testing::HasSubstr("did not end by itself within 1 s"));
}

} // namespace
