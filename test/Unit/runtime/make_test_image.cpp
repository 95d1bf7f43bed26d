// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes the test image to a file: make_test_image OUTPUT

#include "test_image.h"

#include <cstdio>
#include <fstream>

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s OUTPUT\n", argv[0]);
    return 2;
  }
  gdnrt::test::Bytes bytes = gdnrt::test::testImage().build();
  std::ofstream file(argv[1], std::ios::binary);
  file.write(reinterpret_cast<const char *>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  file.close();
  return file.good() ? 0 : 1;
}
