// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Statuses: the text form, and the names of all codes.

#include "gdnrt/status.h"

#include <gtest/gtest.h>

using namespace gdnrt;

TEST(Status, TextHasCodeAndMessage) {
  EXPECT_EQ(Status().toString(), "OK");
  EXPECT_EQ(invalid("slots: expected dtype ", "i32", ", got ", 7).toString(),
            "INVALID_ARGUMENT: slots: expected dtype i32, got 7");
}

TEST(Status, EveryCodeHasAName) {
  const char *names[] = {"OK",       "INVALID_ARGUMENT", "NOT_FOUND",
                         "CORRUPT",  "UNSUPPORTED",      "OUT_OF_MEMORY",
                         "IO_ERROR", "INTERNAL",         "DEVICE_ERROR",
                         "UNKNOWN"};
  for (int code = 0; code < 10; ++code)
    EXPECT_STREQ(toString(static_cast<StatusCode>(code)), names[code]);
}
