// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Text to linear forms, and the object API of FlatBuffers to bytes.

#include "image_builder.h"

#include "gdnrt/image_trailer.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

using namespace gdnrt;
using namespace gdnrt::test;

uint16_t EntryBuilder::symbol(const std::string &name) {
  auto &symbols = entry_.symbols;
  if (name == "workers") // behind all symbols, which must be there by now
    return static_cast<uint16_t>(symbols.size());
  if (name == "dependent")
    return static_cast<uint16_t>(symbols.size() + 1);
  auto found = std::find(symbols.begin(), symbols.end(), name);
  if (found == symbols.end())
    found = symbols.insert(symbols.end(), name);
  return static_cast<uint16_t>(found - symbols.begin());
}

fb::LinearFormT EntryBuilder::form(const std::string &text) {
  fb::LinearFormT result;
  std::istringstream words(text);
  int64_t sign = 1;
  for (std::string word; words >> word;) {
    if (word == "+" || word == "-") {
      sign = word == "-" ? -1 : 1;
      continue;
    }
    char *rest;
    int64_t number = std::strtoll(word.c_str(), &rest, 10);
    std::string name = *rest == '*' ? rest + 1 : rest;
    if (rest == word.c_str())
      number = 1;
    if (name.empty()) {
      result.constant += sign * number;
      continue;
    }
    result.symbols.push_back(symbol(name));
    result.coefficients.push_back(sign * number);
  }
  return result;
}

EntryBuilder &EntryBuilder::param(const std::string &name, fb::ParamKind kind,
                                  fb::Access access, fb::DType dtype,
                                  const std::vector<std::string> &dims) {
  auto param = std::make_unique<fb::ParamT>();
  param->name = name;
  param->kind = kind;
  param->access = access;
  param->dtype = dtype;
  for (const std::string &dim : dims)
    param->dims.push_back(std::make_unique<fb::LinearFormT>(form(dim)));
  entry_.params.push_back(std::move(param));
  return *this;
}

EntryBuilder &EntryBuilder::tensor(const std::string &name, fb::Access access,
                                   fb::DType dtype,
                                   const std::vector<std::string> &dims) {
  return param(name, fb::ParamKind::tensor, access, dtype, dims);
}

EntryBuilder &EntryBuilder::pool(const std::string &name, fb::DType dtype,
                                 const std::vector<std::string> &dims) {
  return param(name, fb::ParamKind::pool, fb::Access::read_write, dtype, dims);
}

EntryBuilder &EntryBuilder::unitStride() {
  entry_.params.back()->unit_stride_last = true;
  return *this;
}

EntryBuilder &EntryBuilder::optional() {
  entry_.params.back()->optional = true;
  return *this;
}

EntryBuilder &EntryBuilder::code(const std::string &symbol,
                                 const std::vector<std::string> &grid,
                                 uint64_t scratchBytes,
                                 const std::vector<std::string> &features,
                                 const std::string &target, uint32_t blob) {
  auto code = std::make_unique<fb::CodeT>();
  code->target = target;
  code->features = features;
  code->blob = blob;
  entry_.codes.push_back(std::move(code));
  return variant("rows").stage(symbol, grid, scratchBytes);
}

EntryBuilder &EntryBuilder::variant(const std::string &name) {
  auto variant = std::make_unique<fb::VariantT>();
  variant->name = name;
  entry_.codes.back()->variants.push_back(std::move(variant));
  return *this;
}

EntryBuilder &EntryBuilder::stage(const std::string &symbol,
                                  const std::vector<std::string> &grid,
                                  uint64_t scratchBytes) {
  auto stage = std::make_unique<fb::StageT>();
  stage->symbol = symbol;
  for (const std::string &dim : grid)
    stage->grid.push_back(std::make_unique<fb::LinearFormT>(form(dim)));
  stage->scratch_bytes = scratchBytes;
  lastVariant().stages.push_back(std::move(stage));
  return *this;
}

EntryBuilder &EntryBuilder::workspace(const std::vector<std::string> &bytes) {
  lastVariant().workspace.push_back(product(bytes));
  return *this;
}

EntryBuilder &EntryBuilder::condition(const std::vector<std::string> &left,
                                      const std::vector<std::string> &right) {
  auto condition = std::make_unique<fb::ConditionT>();
  condition->left = product(left);
  condition->right = product(right);
  lastVariant().conditions.push_back(std::move(condition));
  return *this;
}

std::unique_ptr<fb::ConjunctionT> EntryBuilder::conjunction(
    const std::vector<
        std::pair<std::vector<std::string>, std::vector<std::string>>> &all) {
  auto made = std::make_unique<fb::ConjunctionT>();
  for (const auto &[left, right] : all) {
    made->conditions.push_back(std::make_unique<fb::ConditionT>());
    made->conditions.back()->left = product(left);
    made->conditions.back()->right = product(right);
  }
  return made;
}

EntryBuilder &EntryBuilder::alternative(
    const std::vector<
        std::pair<std::vector<std::string>, std::vector<std::string>>> &all) {
  lastVariant().alternatives.push_back(conjunction(all));
  return *this;
}

EntryBuilder &EntryBuilder::anyBatch(
    const std::vector<
        std::pair<std::vector<std::string>, std::vector<std::string>>> &all) {
  lastVariant().any_batch.push_back(conjunction(all));
  return *this;
}

EntryBuilder &EntryBuilder::layout(uint32_t alignment,
                                   const std::vector<int64_t> &strides) {
  auto layout = std::make_unique<fb::LayoutT>();
  layout->alignment = alignment;
  layout->strides = strides;
  lastVariant().layouts.push_back(std::move(layout));
  return *this;
}

EntryBuilder &EntryBuilder::bits(const std::string &text) {
  lastVariant().bits = text;
  return *this;
}

EntryBuilder &EntryBuilder::firstVariant() {
  auto &variants = entry_.codes.back()->variants;
  std::rotate(variants.begin(), variants.end() - 1, variants.end());
  return *this;
}

fb::VariantT &EntryBuilder::lastVariant() {
  return *entry_.codes.back()->variants.back();
}

std::unique_ptr<fb::ProductT>
EntryBuilder::product(const std::vector<std::string> &factors) {
  auto product = std::make_unique<fb::ProductT>();
  for (const std::string &factor : factors)
    product->factors.push_back(std::make_unique<fb::LinearFormT>(form(factor)));
  return product;
}

EntryBuilder &EntryBuilder::attribute(const std::string &key,
                                      const std::string &value) {
  auto pair = std::make_unique<fb::KeyValueT>();
  pair->key = key;
  pair->value = value;
  entry_.attributes.push_back(std::move(pair));
  return *this;
}

EntryBuilder ImageBuilder::entry(const std::string &name) {
  image.entries.push_back(std::make_unique<fb::EntryT>());
  image.entries.back()->name = name;
  return EntryBuilder(*image.entries.back());
}

ImageBuilder &ImageBuilder::blob(Bytes data) {
  auto blob = std::make_unique<fb::BlobT>();
  blob->xxh3 = imageHash(data.data(), data.size());
  blob->data = std::move(data);
  image.blobs.push_back(std::move(blob));
  return *this;
}

Bytes gdnrt::test::serialize(const fb::ImageT &image) {
  flatbuffers::FlatBufferBuilder builder;
  fb::FinishImageBuffer(builder, fb::Image::Pack(builder, &image));
  return Bytes(builder.GetBufferPointer(),
               builder.GetBufferPointer() + builder.GetSize());
}

Bytes ImageBuilder::build() const {
  Bytes bytes = serialize(image);
  appendTrailer(bytes);
  return bytes;
}

void gdnrt::test::fixTrailer(Bytes &image) {
  if (image.size() < kTrailerSize)
    return;
  image.resize(image.size() - kTrailerSize);
  appendTrailer(image);
}

Bytes gdnrt::test::readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    std::abort();
  return Bytes(std::istreambuf_iterator<char>(file), {});
}
