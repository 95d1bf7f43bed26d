// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The reader: what it takes, and every refusal with its words.
#include "gdn/Data/Safetensors.h"

#include "llvm/Support/Endian.h"

#include <gtest/gtest.h>

using namespace gdn::data;

/// A file of this header and data.
static std::string makeFile(const std::string &header,
                            const std::string &data = "") {
  std::string bytes(8, '\0');
  llvm::support::endian::write64le(bytes.data(), header.size());
  return bytes + header + data;
}

static std::string errorOf(llvm::StringRef bytes) {
  llvm::Expected<Tensors> read = parseSafetensors(bytes, "f");
  if (read) {
    ADD_FAILURE() << "was read";
    return "";
  }
  return llvm::toString(read.takeError());
}

static std::string errorOf(const std::string &header, const std::string &data) {
  return errorOf(makeFile(header, data));
}

static Tensors read(llvm::StringRef bytes) {
  llvm::Expected<Tensors> result = parseSafetensors(bytes, "f");
  if (!result) {
    ADD_FAILURE() << llvm::toString(result.takeError());
    return {};
  }
  return std::move(*result);
}

TEST(SafetensorsRead, TensorsAndMetadata) {
  Tensors file = read(makeFile(
      R"({"b":{"dtype":"BF16","shape":[2],"data_offsets":[4,8]},)"
      R"("__metadata__":{"format":"pt","dtype":"x"},)"
      R"("a":{"shape":[],"data_offsets":[0,4],"dtype":"I32"},)"
      R"("empty":{"dtype":"F32","shape":[3,0],"data_offsets":[8,8]}}   )",
      std::string("\x05\0\0\0\x80\x3f\0\xc0", 8)));
  EXPECT_EQ(file.arrays.size(), 3u);
  EXPECT_EQ(file.arrays["a"].toDoubles(), (std::vector<double>{5}));
  EXPECT_EQ(file.arrays["b"].toDoubles(), (std::vector<double>{1, -2}));
  EXPECT_EQ(file.arrays["empty"].typeString(), "f32[3, 0]");
  EXPECT_EQ(file.metadata.at("format"), "pt");
  EXPECT_EQ(file.metadata.at("dtype"), "x");
  EXPECT_TRUE(read(makeFile("{}")).arrays.empty());
}

TEST(SafetensorsRead, HeaderLength) {
  EXPECT_EQ(errorOf("abc"),
            "f: expects a header length of 8 bytes, but got 3 bytes");
  std::string file = makeFile("{}");
  file.pop_back();
  EXPECT_EQ(errorOf(file),
            "f: expects a header of at most 1 bytes, but got a length of 2");
  EXPECT_EQ(errorOf(std::string(8, '\xff') + "{}"),
            "f: expects a header of at most 2 bytes, but got a length of "
            "18446744073709551615");
}

TEST(SafetensorsRead, HeaderForm) {
  const std::string json = "f: expects a JSON object, but byte ";
  EXPECT_EQ(errorOf("", ""), "f: expects the header to be a JSON object");
  EXPECT_EQ(errorOf(" {}", ""), "f: expects the header to be a JSON object");
  EXPECT_EQ(errorOf("{", ""), json + "2 of the header does not parse");
  EXPECT_EQ(errorOf("{}x", ""), json + "3 of the header does not parse");
  EXPECT_EQ(errorOf("{\"\xff\":1}", ""),
            json + "3 of the header does not parse");
  EXPECT_EQ(errorOf(R"({"a":1})", ""),
            "f: 'a': expects an object, but got the number 1");
  EXPECT_EQ(errorOf(R"({"a":[]})", ""),
            "f: 'a': expects an object, but got a list");
  EXPECT_EQ(errorOf(R"({"a":{},"a":{}})", ""),
            "f: expects every name once, but got 'a' twice");
  EXPECT_EQ(errorOf(R"({"a":{"dtype":"F32","dtype":"F32"}})", ""),
            "f: expects every name in 'a' once, but got 'dtype' twice");
  EXPECT_EQ(errorOf(R"({"a":{"offsets":[]}})", ""),
            "f: tensor 'a': expects 'dtype', 'shape' and 'data_offsets' only, "
            "but got 'offsets'");
  EXPECT_EQ(errorOf(R"({"a":{"dtype":null}})", ""),
            "f: tensor 'a': expects a string for 'dtype', but got null");
  EXPECT_EQ(errorOf(R"({"a":{"shape":"2"}})", ""),
            "f: tensor 'a': expects a list of integers that are not negative "
            "for 'shape', but got the string '2'");
  for (const char *bad : {"[[1]]", "[{}]", "[-1]", "[1.5]", "[true]", "{}"})
    EXPECT_NE(errorOf(std::string(R"({"a":{"shape":)") + bad + "}}", "")
                  .find("not negative for 'shape', but got "),
              std::string::npos);
  EXPECT_EQ(errorOf(R"({"__metadata__":{"a":1}})", ""),
            "f: metadata 'a': expects a string, but got the number 1");
  EXPECT_EQ(errorOf(R"({"__metadata__":{"a":{}}})", ""),
            "f: metadata 'a': expects a string, but got an object");
}

// Nesting is refused at the first level too many, not visited.
TEST(SafetensorsRead, DeepNesting) {
  EXPECT_EQ(errorOf("{\"a\":{\"shape\":" + std::string(1000000, '['), ""),
            "f: tensor 'a': expects a list of integers that are not negative "
            "for 'shape', but got a list");
}

static std::string line(const char *dtype, const char *shape,
                        const char *offsets) {
  return std::string(R"({"a":{"dtype":")") + dtype + R"(","shape":)" + shape +
         R"(,"data_offsets":)" + offsets + "}}";
}

TEST(SafetensorsRead, Tensor) {
  const std::string a = "f: tensor 'a': expects ";
  const std::string four(4, '\0');
  EXPECT_EQ(errorOf(line("U16", "[2]", "[0,4]"), four),
            a + "a dtype of F32, BF16, F16, F64, I32, I64, BOOL or U8, but got "
                "'U16'");
  EXPECT_EQ(errorOf(R"({"a":{"shape":[],"data_offsets":[0,4]}})", four),
            a + "a dtype of F32, BF16, F16, F64, I32, I64, BOOL or U8, but got "
                "none");
  EXPECT_EQ(errorOf(R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", four),
            a + "a shape, but got none");
  EXPECT_EQ(errorOf(R"({"a":{"dtype":"F32","shape":[]}})", four),
            a + "2 data_offsets, but got 0");
  EXPECT_EQ(errorOf(line("F32", "[1]", "[0,4,8]"), four),
            a + "2 data_offsets, but got 3");
  EXPECT_EQ(errorOf(line("F32", "[1]", "[0,8]"), four),
            a + "data_offsets in order and within 4 bytes of data, but got 0 "
                "and 8");
  EXPECT_EQ(errorOf(line("F32", "[1]", "[4,0]"), four),
            a + "data_offsets in order and within 4 bytes of data, but got 4 "
                "and 0");
  EXPECT_EQ(errorOf(line("F16", "[1]", "[0,4]"), four),
            a + "2 bytes for f16[1], but got 4");
  for (const char *huge : {"[18446744073709551615]", "[4294967296,4294967296]",
                           "[2305843009213693952]"})
    EXPECT_EQ(errorOf(line("F32", huge, "[0,4]"), four),
              a + "a shape whose bytes can be counted, but got one that "
                  "overflows");
  EXPECT_EQ(errorOf(line("BOOL", "[2]", "[0,2]"), "\x01\x02"),
            a + "0 or 1 in every BOOL, but got 2");
}

// Names are read in order of their data: a then b.
TEST(SafetensorsRead, Cover) {
  auto two = [](const char *first, const char *second) {
    return std::string(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":)") +
           first + R"(},"b":{"dtype":"F32","shape":[1],"data_offsets":)" +
           second + "}}";
  };
  const std::string eight(8, '\0'), twelve(12, '\0');
  EXPECT_EQ(errorOf(two("[0,4]", "[0,4]"), eight),
            "f: tensor 'b': expects its data at byte 4, where the previous "
            "tensor ends, but got 0");
  EXPECT_EQ(errorOf(two("[0,4]", "[8,12]"), twelve),
            "f: tensor 'b': expects its data at byte 4, where the previous "
            "tensor ends, but got 8");
  EXPECT_EQ(errorOf(two("[4,8]", "[0,4]"), twelve),
            "f: expects 8 bytes of data for the tensors of the header, but got "
            "12");
}

TEST(SafetensorsRead, FilesAndNames) {
  llvm::Expected<Tensors> none = readSafetensors("/no/such/file");
  ASSERT_FALSE(bool(none));
  EXPECT_EQ(llvm::toString(none.takeError()),
            "/no/such/file: cannot be read: No such file or directory");
  llvm::Expected<Tensors> folder = readSafetensors(GDN_TEST_DATA);
  ASSERT_FALSE(bool(folder));
  llvm::consumeError(folder.takeError());

  Tensors file = read(makeFile(line("F32", "[0]", "[0,0]")));
  EXPECT_TRUE(file.find("a"));
  llvm::Expected<const Array *> missing = file.get("b");
  ASSERT_FALSE(bool(missing));
  EXPECT_EQ(llvm::toString(missing.takeError()),
            "f: expects a tensor 'b', but got 'a'");
}

// Every prefix of a real file is refused, and nothing reads past its end.
TEST(SafetensorsRead, Truncated) {
  const std::string file =
      makeFile(line("F32", "[2]", "[0,8]"), std::string(8, '\x01'));
  for (size_t size = 0; size < file.size(); ++size)
    EXPECT_NE(errorOf(std::string(file, 0, size)), "");
}
