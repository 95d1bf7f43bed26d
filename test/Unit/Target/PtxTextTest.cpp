// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that are cut out of PTX, and their blocks per SM.
#include "gdn/Target/PtxText.h"

#include "llvm/ADT/StringExtras.h"

#include <gmock/gmock.h>

using namespace gdn;

namespace {

constexpr llvm::StringLiteral head = R"(.version 9.0
.target sm_90a
.extern .shared .align 16 .b8 shared[];
)";
constexpr llvm::StringLiteral first = R"(.visible .entry first(
  .param .align 8 .b8 first_param_0[24]
)
.reqntid 128
.minnctapersm 16
{
  { // a scope
  }
  // .minnctapersm 16
}
)";
constexpr llvm::StringLiteral second = R"(.visible .entry first_2()
.minnctapersm 16
{
  ret;
}
)";

const std::string module = (head + first + second).str();

std::string only(llvm::StringRef kernel) {
  return llvm::join(PtxLines(module).keep(
                        [&](llvm::StringRef name) { return name == kernel; }),
                    "\n");
}

TEST(PtxText, KernelsAndWhatIsAroundThem) {
  EXPECT_EQ(only("first"), (head + first).str());
  EXPECT_EQ(only("first_2"), (head + second).str());
  EXPECT_EQ(only("none"), head.str());
}

TEST(PtxText, BlocksOfOneKernel) {
  std::string fewer = first.str();
  fewer.replace(fewer.find("16"), 2, "14");
  EXPECT_EQ(withBlocksPerSm(module, "first", 14),
            (head + fewer + second).str());
  EXPECT_EQ(withBlocksPerSm(module, "none", 14), module);
}

TEST(PtxText, NoEndOfLine) {
  EXPECT_EQ(withBlocksPerSm(".entry k()\n.minnctapersm 2", "k", 1),
            ".entry k()\n.minnctapersm 1\n");
  EXPECT_EQ(withBlocksPerSm("", "k", 1), "");
}

TEST(PtxText, SeveralBecomeOne) {
  const std::string top = ".version 9.0\n.target sm_90a\n.address_size 64\n";
  EXPECT_EQ(joinPtx({top + "a\n", top + "b\n", top + "c\n"}),
            top + "a\nb\nc\n");
  EXPECT_EQ(joinPtx({module}), module);
}

} // namespace
