// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes a few small images, one file each: gdnrt_make_seeds DIRECTORY
// The code of the test image is left out: the reader does not look into blobs.

#include "test_image.h"

#include <cstdio>
#include <fstream>

using namespace gdnrt;
using namespace gdnrt::test;

static bool write(const std::string &path, const Bytes &bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char *>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  file.close();
  return file.good();
}

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
    return 2;
  }
  std::string directory = std::string(argv[1]) + "/";
  ImageBuilder empty;
  ImageBuilder accumulate;
  addAccumulate(accumulate.entry("accumulate_f32"));
  accumulate.blob({1, 2, 3, 4});
  ImageBuilder forms;
  forms.entry("decode_bf16_f32")
      .tensor("qkvz", fb::Access::read, fb::DType::bf16,
              {"N", "256*Hk + 256*Hv"})
      .unitStride()
      .tensor("ba", fb::Access::read, fb::DType::bf16, {"N", "2*Hv"})
      .tensor("cu_seqlens", fb::Access::read, fb::DType::i32, {"N + 1"})
      .optional()
      .pool("state_pool", fb::DType::f32, {"P", "Hv", "128", "128"})
      .tensor("out", fb::Access::write, fb::DType::bf16, {"N", "Hv", "128"})
      .code("fast", {"N", "Hv"}, 1 << 16, {"avx512f", "avx512bf16"})
      .code("slow", {"N", "Hv"}, 1 << 16, {"x86-64-v3"}, "x86-64", 1)
      .attribute("layout", "qwen3_next");
  forms.blob({1}).blob({2, 3});
  ImageBuilder variants;
  addNeighbours(variants.entry("neighbours"));
  variants.blob({1, 2, 3});
  ImageBuilder alternatives;
  alternatives.entry("e")
      .tensor("x", fb::Access::read, fb::DType::f32, {"N", "M"})
      .code("a", {"N"})
      .variant("b")
      .stage("b", {"N"})
      .condition({"N"}, {"9"})
      .alternative({{{"M"}, {"2"}}})
      .alternative({{{"5"}, {"M"}}, {{"2", "N"}, {"workers"}}})
      .firstVariant();
  alternatives.blob({1});
  bool ok = write(directory + "empty.gdnk", empty.build()) &&
            write(directory + "accumulate.gdnk", accumulate.build()) &&
            write(directory + "forms.gdnk", forms.build()) &&
            write(directory + "variants.gdnk", variants.build()) &&
            write(directory + "alternatives.gdnk", alternatives.build());
  return ok ? 0 : 1;
}
