// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A schema without code, made through a real image, for tests of binding.

#ifndef GDN_TEST_UNIT_RUNTIME_SCHEMAS_H
#define GDN_TEST_UNIT_RUNTIME_SCHEMAS_H

#include "gdnrt/image.h"
#include "image_builder.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>

namespace gdnrt::test {

/// The schema that `describe` builds for an entry called "f".
inline std::shared_ptr<const EntrySchema>
makeEntry(const std::function<void(EntryBuilder)> &describe) {
  ImageBuilder builder;
  describe(builder.entry("f"));
  builder.blob({1});
  Bytes bytes = builder.build();
  auto image = Image::loadMemory(bytes.data(), bytes.size());
  EXPECT_TRUE(image.isOk()) << image.status().toString();
  return (*image)->entries()[0];
}

} // namespace gdnrt::test

#endif // GDN_TEST_UNIT_RUNTIME_SCHEMAS_H
