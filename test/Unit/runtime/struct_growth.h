// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Structs as callers have them that were built with older or newer headers, at
// every size, for tests of functions that take or fill one.

#ifndef GDNRT_TEST_STRUCT_GROWTH_H
#define GDNRT_TEST_STRUCT_GROWTH_H

#include "../../../runtime/src/capi/sized_struct.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace gdnrt::test {

constexpr unsigned char kCanary = 0xa5;
constexpr size_t kBehind = 64;

/// A struct of the caller's that has another size than ours, in memory whose
/// bytes behind it are watched.
template <typename Struct> class OtherStruct {
public:
  explicit OtherStruct(const Struct &ours, size_t size)
      : size_(size), memory_((size + kBehind) / sizeof(uint64_t)) {
    std::memset(memory_.data(), 0, size);
    std::memcpy(memory_.data(), &ours, std::min(size, sizeof(Struct)));
    std::memcpy(memory_.data(), &size, sizeof(size));
    std::memset(bytes() + size, kCanary, kBehind);
  }
  unsigned char *bytes() {
    return reinterpret_cast<unsigned char *>(memory_.data());
  }
  Struct *get() { return reinterpret_cast<Struct *>(memory_.data()); }
  bool isIntactBehind() {
    for (size_t i = 0; i < kBehind; ++i)
      if (bytes()[size_ + i] != kCanary)
        return false;
    return true;
  }

private:
  size_t size_;
  std::vector<uint64_t> memory_;
};

/// What is done with a struct: a function of the interface.
template <typename Struct>
using Use = std::function<gdnrt_status(Struct *, gdnrt_error *)>;

/// Sizes of 0, too small, odd and absurd, and none at all.
template <typename Struct>
void refusesBadSizes(const std::string &what, const Struct &ours,
                     const Use<Struct> &use, bool nullIsDefault = false) {
  const std::string name = StructName<Struct>::value;
  gdnrt_error error = {};
  for (size_t bad :
       {size_t{0}, size_t{8}, sizeof(Struct) + 1, size_t{4104}, ~size_t{0}}) {
    SCOPED_TRACE(name + " of " + std::to_string(bad));
    OtherStruct<Struct> given(ours, sizeof(Struct));
    std::memcpy(given.bytes(), &bad, sizeof(bad));
    EXPECT_EQ(use(given.get(), &error), GDNRT_INVALID_ARGUMENT);
    EXPECT_EQ(error.message,
              "INVALID_ARGUMENT: " + what + ": expected the struct_size of " +
                  name + " to be a multiple of 8 from 16 to 4096, got " +
                  std::to_string(bad));
  }
  if (nullIsDefault)
    return;
  EXPECT_EQ(use(nullptr, &error), GDNRT_INVALID_ARGUMENT) << name;
  EXPECT_EQ(error.message,
            "INVALID_ARGUMENT: " + what + ": expected a pointer, got null");
}

/// A struct that a function fills: callers get what they have room for, and
/// zeros where they know more than we.
template <typename Struct>
void fills(const std::string &what, const Use<Struct> &use) {
  const std::string name = StructName<Struct>::value;
  Struct ours;
  std::memset(&ours, 0, sizeof(ours));
  ours.struct_size = sizeof(ours);
  gdnrt_error error = {};
  ASSERT_EQ(use(&ours, &error), GDNRT_OK) << name << error.message;
  EXPECT_EQ(ours.struct_size, sizeof(ours));
  for (size_t size = 16; size <= sizeof(Struct) + 24; size += 8) {
    SCOPED_TRACE(name + " of " + std::to_string(size));
    Struct garbage;
    std::memset(&garbage, 0x5b, sizeof(garbage));
    OtherStruct<Struct> given(garbage, size);
    std::memset(given.bytes() + sizeof(size), 0x5b, size - sizeof(size));
    ASSERT_EQ(use(given.get(), &error), GDNRT_OK) << error.message;
    EXPECT_TRUE(given.isIntactBehind());
    std::vector<unsigned char> wanted(size);
    std::memcpy(wanted.data(), &ours, std::min(size, sizeof(Struct)));
    std::memcpy(wanted.data(), &size, sizeof(size));
    EXPECT_EQ(std::memcmp(given.bytes(), wanted.data(), size), 0);
  }
  refusesBadSizes(what, ours, use);
}

/// A struct that a function takes: of an older caller down to `least` bytes the
/// call works; of a newer one if the members that we do not know are 0.
template <typename Struct>
void takes(const std::string &what, const Struct &ours, size_t least,
           const Use<Struct> &use, bool nullIsDefault = false) {
  const std::string name = StructName<Struct>::value;
  gdnrt_error error = {};
  for (size_t size = least; size <= sizeof(Struct) + 24; size += 8) {
    SCOPED_TRACE(name + " of " + std::to_string(size));
    OtherStruct<Struct> given(ours, size);
    EXPECT_EQ(use(given.get(), &error), GDNRT_OK) << error.message;
    EXPECT_TRUE(given.isIntactBehind());
  }
  // An unknown member, wherever it begins and however small it is.
  for (size_t offset : {sizeof(Struct), sizeof(Struct) + 23}) {
    OtherStruct<Struct> given(ours, sizeof(Struct) + 24);
    given.bytes()[offset] = 7;
    EXPECT_EQ(use(given.get(), &error), GDNRT_UNSUPPORTED) << name;
    EXPECT_EQ(error.message, "UNSUPPORTED: " + what + ": " + name + " has " +
                                 std::to_string(sizeof(Struct) + 24) +
                                 " bytes, of which this library knows " +
                                 std::to_string(sizeof(Struct)) +
                                 "; expected 0 behind them, got 7 at offset " +
                                 std::to_string(offset));
  }
  if constexpr (HasReserved<Struct>::value) {
    Struct later = ours;
    later.reserved = 7;
    EXPECT_EQ(use(&later, &error), GDNRT_UNSUPPORTED) << name;
    EXPECT_EQ(error.message, "UNSUPPORTED: " + what + ": reserved of " + name +
                                 ": expected 0, got 7");
  }
  refusesBadSizes(what, ours, use, nullIsDefault);
}

} // namespace gdnrt::test

#endif // GDNRT_TEST_STRUCT_GROWTH_H
