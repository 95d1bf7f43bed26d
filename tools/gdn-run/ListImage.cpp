// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lists an image through the C interface.
#include "ListImage.h"

#include "gdn-c/runtime.h"
#include "gdn/Data/DType.h"

#include "llvm/ADT/StringExtras.h"

#include <memory>

using namespace gdn;

static llvm::Error toError(const gdnrt_error &error) {
  return llvm::createStringError(error.message);
}

/// "f32[T, 2*Hv]"
static std::string typeOf(const gdnrt_param_info &info) {
  return data::name(data::DType(info.dtype)).str() + "[" +
         llvm::join(llvm::ArrayRef(info.dims, info.rank), ", ") + "]";
}

/// The features of a CPU's code, or "sm_90a, cubin"; as Kernel::getFeatures.
static std::string describe(const gdnrt_code_info &info) {
  if (info.features[0] == 0)
    return std::string(info.target) + ", " + info.format;
  return info.features;
}

static llvm::Error listEntry(const gdnrt_entry *entry, llvm::raw_ostream &os) {
  gdnrt_error error;
  std::vector<std::string> codes;
  for (size_t i = 0, e = gdnrt_entry_code_count(entry); i < e; ++i) {
    gdnrt_code_info info = gdnrt_code_info_default();
    if (gdnrt_entry_code(entry, i, &info, &error) != GDNRT_OK)
      return toError(error);
    codes.push_back(describe(info));
  }
  os << gdnrt_entry_name(entry) << "  (" << llvm::join(codes, "; ") << ")\n";
  for (size_t i = 0, e = gdnrt_entry_attribute_count(entry); i < e; ++i)
    if (llvm::StringRef key = gdnrt_entry_attribute_key(entry, i);
        !key.starts_with("gdn.")) // for tools
      os << "  fact " << key << ": " << gdnrt_entry_attribute_value(entry, i)
         << '\n';
  for (size_t i = 0, e = gdnrt_entry_param_count(entry); i < e; ++i) {
    gdnrt_param_info info = gdnrt_param_info_default();
    if (gdnrt_entry_param(entry, i, &info, &error) != GDNRT_OK)
      return toError(error);
    os << (info.kind == GDNRT_POOL     ? "  pool "
           : info.access != GDNRT_READ ? "  out  "
                                       : "  in   ")
       << info.name << ": " << typeOf(info) << '\n';
  }
  for (auto [code, text] : llvm::enumerate(codes)) {
    size_t count = gdnrt_entry_variant_count(entry, code);
    if (count < 2)
      continue;
    if (codes.size() > 1)
      os << "  code " << text << '\n';
    for (size_t i = 0; i < count; ++i) {
      gdnrt_variant_info info = gdnrt_variant_info_default();
      if (gdnrt_entry_variant(entry, code, i, &info, &error) != GDNRT_OK)
        return toError(error);
      os << "  variant " << info.name << (*info.conditions ? " where " : "")
         << info.conditions << '\n';
    }
  }
  return llvm::Error::success();
}

llvm::Error run::listImage(llvm::StringRef path, llvm::raw_ostream &os) {
  gdnrt_error error;
  gdnrt_image *image = nullptr;
  if (gdnrt_image_load_file(path.str().c_str(), &image, &error) != GDNRT_OK)
    return toError(error);
  std::unique_ptr<gdnrt_image, decltype(&gdnrt_image_destroy)> owner(
      image, gdnrt_image_destroy);
  for (size_t i = 0, e = gdnrt_image_entry_count(image); i < e; ++i)
    if (llvm::Error failed = listEntry(gdnrt_image_entry(image, i), os))
      return failed;
  return llvm::Error::success();
}
