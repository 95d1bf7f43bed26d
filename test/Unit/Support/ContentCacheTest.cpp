// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a cache of contents gives back: all that was stored, or nothing.
#include "gdn/Support/ContentCache.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

using namespace gdn;
namespace fs = llvm::sys::fs;

namespace {

class ContentCacheTest : public testing::Test {
protected:
  void SetUp() override {
    // LLVM sets the signal stack of the thread that first asks for a handler.
    // In tools that is the main thread, which lives longest.
    llvm::sys::AddSignalHandler([](void *) {}, nullptr);
    ASSERT_FALSE(fs::createUniqueDirectory("gdn-cache", folder));
    cache.emplace(llvm::cantFail(ContentCache::open(folder)));
  }
  void TearDown() override { (void)fs::remove_directories(folder); }

  /// The one file with content.
  std::string file() const {
    std::string found;
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; it != end && !error;
         it.increment(error))
      if (!llvm::StringRef(it->path()).ends_with(".timestamp"))
        found = it->path();
    return found;
  }
  static std::string read(llvm::StringRef path) {
    return (*llvm::MemoryBuffer::getFile(path))->getBuffer().str();
  }
  static void write(llvm::StringRef path, llvm::StringRef bytes) {
    std::error_code error;
    llvm::raw_fd_ostream(path, error) << bytes;
  }

  llvm::SmallString<128> folder;
  std::optional<ContentCache> cache;
};

ContentKey keyOf(llvm::StringRef part) { return ContentKey("test").add(part); }

} // namespace

TEST(ContentKey, PartsDoNotRunIntoEachOther) {
  auto digest = [](std::initializer_list<llvm::StringRef> parts) {
    ContentKey key("test");
    for (llvm::StringRef part : parts)
      key.add(part);
    return key.getDigest();
  };
  EXPECT_NE(digest({"ab", "c"}), digest({"a", "bc"}));
  EXPECT_NE(digest({"ab"}), digest({"ab", ""}));
  EXPECT_NE(ContentKey("a").getDigest(), ContentKey("b").getDigest());
  EXPECT_EQ(digest({"ab", "c"}), digest({"ab", "c"}));
  EXPECT_EQ(digest({}).size(), 64u);
}

TEST_F(ContentCacheTest, GivesWhatWasStored) {
  EXPECT_FALSE(cache->has(keyOf("a")));
  EXPECT_EQ(cache->find(keyOf("a")), std::nullopt);
  std::string long_text(100000, 'x'), bytes("\0\n\xff", 3);
  cache->store(keyOf("a"), long_text);
  cache->store(keyOf("b"), bytes);
  cache->store(keyOf("c"), "");
  EXPECT_TRUE(cache->has(keyOf("a")));
  EXPECT_EQ(cache->find(keyOf("a")), long_text);
  EXPECT_EQ(cache->find(keyOf("b")), bytes);
  EXPECT_EQ(cache->find(keyOf("c")), "");
  EXPECT_EQ(cache->find(keyOf("d")), std::nullopt);
  // Another process, later.
  EXPECT_EQ(llvm::cantFail(ContentCache::open(folder)).find(keyOf("a")),
            long_text);
}

TEST_F(ContentCacheTest, FilesThatAreNotWhatWasWrittenAreNothing) {
  const std::string content(1000, 'y');
  cache->store(keyOf("a"), content);
  const std::string path = file(), whole = read(path);
  for (size_t bytes : {size_t(0), size_t(10), size_t(39), whole.size() - 1}) {
    write(path, whole.substr(0, bytes));
    EXPECT_EQ(cache->find(keyOf("a")), std::nullopt) << bytes;
    EXPECT_FALSE(cache->has(keyOf("a"))) << "it is removed";
  }
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string other = whole;
    other[at] ^= 0x20;
    write(path, other);
    ASSERT_EQ(cache->find(keyOf("a")), std::nullopt) << at;
  }
  cache->store(keyOf("a"), content);
  EXPECT_EQ(cache->find(keyOf("a")), content);
}

TEST_F(ContentCacheTest, ManyAtATime) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        std::string name = std::to_string(i % 5);
        std::string content(1000 + i % 5, 'z');
        if (auto found = cache->find(keyOf(name)); found && *found != content)
          ++wrong;
        if (i % 3 == t % 3)
          cache->store(keyOf(name), content);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(ContentCacheTest, AFolderThatCannotBeMadeIsAnError) {
  cache->store(keyOf("a"), "content");
  auto opened = ContentCache::open(file() + "/folder");
  ASSERT_FALSE(bool(opened));
  EXPECT_NE(llvm::toString(opened.takeError()).find("cannot be made"),
            std::string::npos);
}

TEST_F(ContentCacheTest, AFolderThatIsGoneKeepsNothing) {
  ASSERT_FALSE(fs::remove_directories(folder));
  cache->store(keyOf("a"), "content");
  EXPECT_EQ(cache->find(keyOf("a")), std::nullopt);
}
