// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files as they are mapped, whatever else the process has open.

#include "gdnrt/file_mapping.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fcntl.h>
#include <string>
#include <unistd.h>

using namespace gdnrt;

namespace {

/// A process without standard input, as a service may be: the next file that is
/// opened has descriptor 0. At its end standard input is what it was.
class ClosedInput {
public:
  ClosedInput() : saved_(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)) {
    ::close(STDIN_FILENO);
  }
  /// Without effect if there was none.
  ~ClosedInput() {
    ::dup2(saved_, STDIN_FILENO);
    ::close(saved_);
  }
  ClosedInput(const ClosedInput &) = delete;
  ClosedInput &operator=(const ClosedInput &) = delete;

private:
  int saved_;
};

} // namespace

TEST(FileMapping, WithoutStandardInput) {
  const std::string text = "mapped";
  const std::string path = ::testing::TempDir() + "gdn_file_mapping_test." +
                           std::to_string(::getpid());
  FILE *file = std::fopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(std::fwrite(text.data(), 1, text.size(), file), text.size());
  EXPECT_EQ(std::fclose(file), 0);
  ClosedInput closed;
  auto mapping = FileMapping::open(path.c_str());
  std::remove(path.c_str());
  ASSERT_TRUE(mapping.isOk()) << mapping.status().toString();
  EXPECT_EQ(std::string(reinterpret_cast<const char *>((*mapping)->data()),
                        (*mapping)->size()),
            text);
  // Nothing else took that descriptor, and the mapping keeps no file open.
  int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(next, STDIN_FILENO);
  ::close(next);
}
