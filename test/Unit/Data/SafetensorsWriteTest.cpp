// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The writer: what it writes is read back, and a failure leaves no trace.
#include "gdn/Data/Compare.h"
#include "gdn/Data/Safetensors.h"

#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <gtest/gtest.h>

using namespace gdn::data;

namespace {
class SafetensorsWrite : public ::testing::Test {
protected:
  SafetensorsWrite() {
    EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory("gdn-data", folder));
  }
  ~SafetensorsWrite() override {
    EXPECT_FALSE(llvm::sys::fs::remove_directories(folder));
  }
  std::string path(llvm::StringRef name) const {
    return (folder.str() + "/" + name).str();
  }
  /// Names in the folder.
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    std::error_code code;
    for (llvm::sys::fs::directory_iterator it(folder, code), end;
         it != end && !code; it.increment(code))
      names.push_back(llvm::sys::path::filename(it->path()).str());
    return names;
  }
  llvm::SmallString<128> folder;
};
} // namespace

static Tensors everyType() {
  Tensors tensors;
  for (DType dtype : {DType::f32, DType::bf16, DType::f16, DType::i32,
                      DType::i64, DType::i1, DType::f64})
    tensors.arrays["t." + name(dtype).str()] =
        Array::fromDoubles(dtype, {3, 1}, {0, 1, 1});
  tensors.arrays["empty"] = Array::zeros(DType::f16, {0, 5});
  tensors.arrays["scalar"] = Array::fromDoubles(DType::f64, {}, {2.5});
  tensors.arrays["\xc3\xa9 \"\\\n"] = Array::zeros(DType::i1, {3});
  tensors.metadata = {{"format", "gdn"}, {"", "quote \" and \xe2\x82\xac"}};
  return tensors;
}

TEST_F(SafetensorsWrite, ReadsBack) {
  const Tensors tensors = everyType();
  llvm::Error error = writeSafetensors(path("x"), tensors);
  ASSERT_FALSE(bool(error)) << llvm::toString(std::move(error));
  llvm::Expected<Tensors> read = readSafetensors(path("x"));
  ASSERT_TRUE(bool(read)) << llvm::toString(read.takeError());
  EXPECT_EQ(read->origin, path("x"));
  EXPECT_EQ(read->metadata, tensors.metadata);
  ASSERT_EQ(read->arrays.size(), tensors.arrays.size());
  for (const auto &[name, array] : tensors.arrays) {
    ASSERT_TRUE(read->find(name)) << name;
    EXPECT_TRUE(bitEqual(*read->find(name), array)) << name;
  }
  EXPECT_EQ(files(), (std::vector<std::string>{"x"}));
}

// The header ends at a multiple of 8 bytes, and larger elements come first.
TEST_F(SafetensorsWrite, AlignsElements) {
  llvm::Expected<std::string> bytes = serializeSafetensors(everyType());
  ASSERT_TRUE(bool(bytes));
  const uint64_t length = llvm::support::endian::read64le(bytes->data());
  EXPECT_EQ(length % 8, 0u);
  const std::string header = bytes->substr(8, length);
  EXPECT_LT(header.find("t.f64"), header.find("t.i32"));
  EXPECT_LT(header.find("t.i32"), header.find("t.bf16"));
  EXPECT_LT(header.find("t.bf16"), header.find("t.i1\""));
}

TEST_F(SafetensorsWrite, GoldenFileReadsBack) {
  llvm::Expected<Tensors> golden =
      readSafetensors(GDN_TEST_DATA "/olmo_hybrid_tiny.safetensors");
  ASSERT_TRUE(bool(golden)) << llvm::toString(golden.takeError());
  EXPECT_EQ(golden->arrays.at("weights.layer0.conv1d.weight").typeString(),
            "f32[1152, 1, 4]");
  llvm::Expected<std::string> bytes = serializeSafetensors(*golden);
  ASSERT_TRUE(bool(bytes));
  llvm::Expected<Tensors> again = parseSafetensors(*bytes, "again");
  ASSERT_TRUE(bool(again));
  EXPECT_EQ(again->arrays.size(), golden->arrays.size());
  EXPECT_EQ(again->metadata, golden->metadata);
}

TEST_F(SafetensorsWrite, ReplacesAWholeFile) {
  Tensors tensors = everyType();
  ASSERT_FALSE(bool(writeSafetensors(path("x"), tensors)));
  tensors.arrays.clear();
  ASSERT_FALSE(bool(writeSafetensors(path("x"), tensors)));
  llvm::Expected<Tensors> read = readSafetensors(path("x"));
  ASSERT_TRUE(bool(read));
  EXPECT_TRUE(read->arrays.empty());
}

TEST_F(SafetensorsWrite, RefusesWhatCannotBeRead) {
  auto error = [&](const Tensors &tensors) {
    std::string message = llvm::toString(writeSafetensors(path("x"), tensors));
    EXPECT_TRUE(files().empty());
    return message;
  };
  Tensors tensors;
  tensors.arrays["\xff"] = Array::zeros(DType::f32, {1});
  EXPECT_EQ(error(tensors),
            "<memory>: expects names of tensors in UTF-8 and not "
            "'__metadata__', but got '\xff'");
  tensors.arrays.clear();
  tensors.arrays["__metadata__"] = Array::zeros(DType::f32, {1});
  EXPECT_NE(error(tensors), "");
  tensors.arrays.clear();
  tensors.metadata["a"] = "\xff";
  EXPECT_NE(error(tensors), "");
  tensors.metadata.clear();
  tensors.arrays["a"] = Array::zeros(DType::f32, {1});
  tensors.arrays["a"].bytes.pop_back();
  EXPECT_EQ(error(tensors),
            "<memory>: tensor 'a': expects the bytes of f32[1], but got 3");
}

// Neither a missing folder nor a folder in the way leaves a temporary file.
TEST_F(SafetensorsWrite, FailsWithoutATrace) {
  std::string message =
      llvm::toString(writeSafetensors(path("no/x"), everyType()));
  EXPECT_NE(message.find("no/x: cannot be written: "), std::string::npos)
      << message;
  ASSERT_FALSE(llvm::sys::fs::create_directory(path("taken")));
  message = llvm::toString(writeSafetensors(path("taken"), everyType()));
  EXPECT_NE(message.find("taken: cannot be written: "), std::string::npos)
      << message;
  EXPECT_EQ(files(), (std::vector<std::string>{"taken"}));
}
