// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory of a prefix cache for which the system is asked for large pages:
// what the system says of it then.

#include "gdnrt/token_blocks.h"

#include <gtest/gtest.h>

#include <sys/mman.h>

#include <cstdio>
#include <fstream>
#include <string>

using namespace gdnrt;

/// The flags of the mapping that an address is in.
static std::string flagsOf(const void *data) {
  const auto address = reinterpret_cast<uintptr_t>(data);
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  bool isInside = false;
  while (std::getline(maps, line)) {
    unsigned long first = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &first, &end) == 2)
      isInside = first <= address && address < end;
    else if (isInside && line.rfind("VmFlags:", 0) == 0)
      return line + " ";
  }
  return "";
}

TEST(LargePages, AreAskedForWhateverTheAddress) {
  if (!std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"))
    GTEST_SKIP() << "the system has no large pages";
  constexpr size_t page = 2 << 20, bytes = 8 * page;
  void *data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(data, MAP_FAILED);
  char *middle = static_cast<char *>(data) + bytes / 2;
  EXPECT_EQ(flagsOf(middle).find(" hg "), std::string::npos);
  // Arrays begin and end anywhere.
  preferLargePages(static_cast<char *>(data) + 64, bytes - 4096);
  EXPECT_NE(flagsOf(middle).find(" hg "), std::string::npos);
  munmap(data, bytes);
}
