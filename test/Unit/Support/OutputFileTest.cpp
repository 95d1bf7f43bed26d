// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Output files: whole or not at all, where links point to, devices as they are.

#include "gdn/Support/OutputFile.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <gtest/gtest.h>

#include <csignal>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace gdn;
namespace fs = llvm::sys::fs;

namespace {

class OutputFile : public ::testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(fs::createUniqueDirectory("gdn-output", folder));
  }
  void TearDown() override { (void)fs::remove_directories(folder); }

  std::string path(llvm::StringRef name) const {
    return (folder + "/" + name).str();
  }
  std::string read(llvm::StringRef name) const {
    auto buffer = llvm::MemoryBuffer::getFile(path(name));
    return buffer ? (*buffer)->getBuffer().str() : "none";
  }
  std::string write(llvm::StringRef name, llvm::StringRef bytes) const {
    return llvm::toString(writeOutputFile(path(name), bytes));
  }
  /// What lies in the folder.
  size_t count() const {
    size_t found = 0;
    std::error_code code;
    for (fs::directory_iterator it(folder, code), end; it != end && !code;
         it.increment(code))
      ++found;
    return found;
  }

  llvm::SmallString<128> folder;
};

} // namespace

TEST_F(OutputFile, ReplacesTheWholeFile) {
  EXPECT_EQ(write("a", "first, and long"), "");
  EXPECT_EQ(write("a", "second"), "");
  EXPECT_EQ(read("a"), "second");
  EXPECT_EQ(count(), 1u);
}

// A disk that is full, as a limit of file sizes makes it.
TEST_F(OutputFile, AFailureLeavesTheOldFile) {
  ASSERT_EQ(write("a", "old"), "");
  auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  rlimit small = limit;
  small.rlim_cur = 4096;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string said = write("a", std::string(100000, 'x'));
  std::string saidNew = write("b", std::string(100000, 'x'));
  setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, before);
  EXPECT_NE(said.find("a: cannot be written: "), std::string::npos) << said;
  EXPECT_NE(saidNew, "");
  EXPECT_EQ(read("a"), "old");
  EXPECT_EQ(read("b"), "none");
  EXPECT_EQ(count(), 1u);
}

TEST_F(OutputFile, LinksStayLinks) {
  ASSERT_FALSE(fs::create_directory(path("there")));
  ASSERT_EQ(write("there/target", "old"), "");
  ASSERT_EQ(::symlink("there/target", path("link").c_str()), 0);
  ASSERT_EQ(::symlink(path("link").c_str(), path("second").c_str()), 0);
  EXPECT_EQ(write("second", "new"), "");
  EXPECT_TRUE(fs::is_symlink_file(path("link")));
  EXPECT_TRUE(fs::is_symlink_file(path("second")));
  EXPECT_EQ(read("there/target"), "new");
  // One that points to nothing yet.
  ASSERT_EQ(::symlink("later", path("dangling").c_str()), 0);
  EXPECT_EQ(write("dangling", "new"), "");
  EXPECT_EQ(read("later"), "new");
  EXPECT_TRUE(fs::is_symlink_file(path("dangling")));
}

TEST_F(OutputFile, DevicesAreWrittenInPlace) {
  EXPECT_EQ(llvm::toString(writeOutputFile("/dev/null", "bytes")), "");
  struct stat status;
  ASSERT_EQ(::stat("/dev/null", &status), 0);
  EXPECT_TRUE(S_ISCHR(status.st_mode));
  EXPECT_EQ(llvm::toString(writeOutputFile("/dev/full", "bytes")),
            "/dev/full: cannot be written: No space left on device");
}

TEST_F(OutputFile, KeepsPermissions) {
  ASSERT_EQ(write("a", "old"), "");
  ASSERT_EQ(::chmod(path("a").c_str(), 0600), 0);
  ASSERT_EQ(write("a", "new"), "");
  struct stat status;
  ASSERT_EQ(::stat(path("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(OutputFile, NamesWhatItCannotWrite) {
  EXPECT_EQ(write("missing/a", "x"),
            path("missing/a") +
                ": cannot be written: No such file or directory");
  ASSERT_FALSE(fs::create_directory(path("folder")));
  EXPECT_EQ(write("folder", "x"),
            path("folder") + ": cannot be written: Is a directory");
}
