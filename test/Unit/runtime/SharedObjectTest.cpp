// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Code for CPUs is loaded from memory, whatever the system does on the way:
// calls that are interrupted, that write a part, and that an older kernel does
// not know. These calls are the test's own here.

#include "gdnrt/shared_object.h"
#include "test_image.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace gdnrt;
using namespace gdnrt::test;

namespace {
/// What the next calls do; everything is as always where it is 0.
struct System {
  int interruptedWrites = 0, partialWrites = 0, failingWrites = 0;
  int unknownFlags = 0;
} calls;
} // namespace

extern "C" ssize_t write(int file, const void *data, size_t size) {
  if (calls.interruptedWrites > 0) {
    --calls.interruptedWrites;
    errno = EINTR;
    return -1;
  }
  if (calls.failingWrites > 0) {
    --calls.failingWrites;
    errno = ENOSPC;
    return -1;
  }
  if (calls.partialWrites > 0 && size > 1) {
    --calls.partialWrites;
    size /= 2;
  }
  return syscall(SYS_write, file, data, size);
}

extern "C" int memfd_create(const char *name, unsigned flags) noexcept {
  if (calls.unknownFlags > 0) {
    --calls.unknownFlags;
    errno = EINVAL;
    return -1;
  }
  return static_cast<int>(syscall(SYS_memfd_create, name, flags));
}

namespace {
class SharedObjectTest : public ::testing::Test {
protected:
  void TearDown() override { calls = {}; }
  std::string load() {
    const Bytes bytes = readFile(GDNRT_TEST_KERNELS);
    auto object = SharedObject::load(bytes.data(), bytes.size(), "test");
    if (!object.isOk())
      return object.status().toString();
    return (*object)->find("test_count") ? "OK" : "no symbol";
  }
};
} // namespace

TEST_F(SharedObjectTest, WritesThatAreInterrupted) {
  calls.interruptedWrites = 3;
  calls.partialWrites = 4;
  EXPECT_EQ(load(), "OK");
  EXPECT_EQ(calls.interruptedWrites, 0);
  EXPECT_EQ(calls.partialWrites, 0);
}

TEST_F(SharedObjectTest, WritesThatFail) {
  calls.failingWrites = 1;
  EXPECT_EQ(load(), "IO_ERROR: test: cannot fill a memory file: " +
                        std::string(std::strerror(ENOSPC)));
  EXPECT_EQ(load(), "OK");
}

TEST_F(SharedObjectTest, KernelsThatDoNotKnowTheFlag) {
  calls.unknownFlags = 1;
  EXPECT_EQ(load(), "OK");
  calls.unknownFlags = 2;
  EXPECT_EQ(load(), "IO_ERROR: test: cannot create a memory file: " +
                        std::string(std::strerror(EINVAL)));
}
