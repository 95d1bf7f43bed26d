// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes images for tests, sound ones and broken ones. Dimensions are given as
// text, as in gdn.dims; symbols are numbered as they appear.

#ifndef GDN_TEST_UNIT_RUNTIME_IMAGE_BUILDER_H
#define GDN_TEST_UNIT_RUNTIME_IMAGE_BUILDER_H

#include "gdnrt/image_generated.h"
#include "gdnrt/image_trailer.h"

#include <cstdint>
#include <string>
#include <vector>

namespace gdnrt::test {

using Bytes = std::vector<uint8_t>;

class EntryBuilder {
public:
  explicit EntryBuilder(fb::EntryT &entry) : entry_(entry) {}

  EntryBuilder &tensor(const std::string &name, fb::Access access,
                       fb::DType dtype, const std::vector<std::string> &dims);
  EntryBuilder &pool(const std::string &name, fb::DType dtype,
                     const std::vector<std::string> &dims);
  /// Changes the parameter added last.
  EntryBuilder &unitStride();
  EntryBuilder &optional();
  EntryBuilder &code(const std::string &symbol,
                     const std::vector<std::string> &grid,
                     uint64_t scratchBytes = 0,
                     const std::vector<std::string> &features = {},
                     const std::string &target = "x86-64", uint32_t blob = 0);
  /// Adds a variant behind those of the last code, which `code` made with one
  /// variant, "rows". The calls below are about the last variant.
  EntryBuilder &variant(const std::string &name);
  EntryBuilder &stage(const std::string &symbol,
                      const std::vector<std::string> &grid,
                      uint64_t scratchBytes = 0);
  EntryBuilder &workspace(const std::vector<std::string> &bytes);
  /// Factors may use "workers" and "dependent".
  EntryBuilder &condition(const std::vector<std::string> &left,
                          const std::vector<std::string> &right);
  /// Conditions of one alternative, of which a variant has two at least.
  EntryBuilder &alternative(
      const std::vector<
          std::pair<std::vector<std::string>, std::vector<std::string>>> &all);
  /// Conditions of one alternative of batch-invariant launches; may be empty.
  EntryBuilder &
  anyBatch(const std::vector<
           std::pair<std::vector<std::string>, std::vector<std::string>>> &all);
  /// Says how the next parameter has to lie, from the first on.
  EntryBuilder &layout(uint32_t alignment,
                       const std::vector<int64_t> &strides = {});
  /// Says which variants give the same bits.
  EntryBuilder &bits(const std::string &text);
  /// Moves the last variant to the front.
  EntryBuilder &firstVariant();
  EntryBuilder &attribute(const std::string &key, const std::string &value);

  fb::LinearFormT form(const std::string &text);

private:
  EntryBuilder &param(const std::string &name, fb::ParamKind kind,
                      fb::Access access, fb::DType dtype,
                      const std::vector<std::string> &dims);
  uint16_t symbol(const std::string &name);
  fb::VariantT &lastVariant();
  std::unique_ptr<fb::ConjunctionT> conjunction(
      const std::vector<
          std::pair<std::vector<std::string>, std::vector<std::string>>> &all);
  std::unique_ptr<fb::ProductT>
  product(const std::vector<std::string> &factors);
  fb::EntryT &entry_;
};

class ImageBuilder {
public:
  ImageBuilder() {
    image.producer = "gdn test";
    image.format_version = kFormatVersion;
  }
  EntryBuilder entry(const std::string &name);
  ImageBuilder &blob(Bytes data);
  /// The finished image. Tests break `image` before.
  Bytes build() const;

  fb::ImageT image;
};

/// Serializes any image, sound or not, without a trailer.
Bytes serialize(const fb::ImageT &image);

/// Gives changed bytes a correct trailer again.
void fixTrailer(Bytes &image);

/// The bytes of a file; aborts the test if there is none.
Bytes readFile(const std::string &path);

} // namespace gdnrt::test

#endif // GDN_TEST_UNIT_RUNTIME_IMAGE_BUILDER_H
