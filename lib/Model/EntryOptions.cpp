// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names of the entry options.
#include "gdn/Model/EntryOptions.h"

#include "llvm/Support/ErrorHandling.h"

using namespace gdn;

llvm::StringRef gdn::stringify(FloatKind kind) {
  switch (kind) {
  case FloatKind::f32:
    return "f32";
  case FloatKind::bf16:
    return "bf16";
  case FloatKind::f16:
    return "f16";
  }
  llvm_unreachable("a FloatKind outside its enumeration");
}

llvm::StringRef gdn::getStateName(const EntryOptions &options) {
  return options.readsUpper         ? "i8x2_upper"
         : options.statePlanes == 2 ? "i8x2"
         : options.statePlanes == 1 ? "i8"
                                    : stringify(options.state);
}

llvm::StringRef gdn::stringify(StateLayout layout) {
  switch (layout) {
  case StateLayout::vk:
    return "vk";
  case StateLayout::kv:
    return "kv";
  }
  llvm_unreachable("a StateLayout outside its enumeration");
}

llvm::StringRef gdn::stringify(InputLayout layout) {
  switch (layout) {
  case InputLayout::interleaved:
    return "interleaved";
  case InputLayout::flat:
    return "flat";
  case InputLayout::split:
    return "split";
  case InputLayout::separate:
    return "separate";
  case InputLayout::gated:
    return "gated";
  case InputLayout::ready:
    return "ready";
  }
  llvm_unreachable("an InputLayout outside its enumeration");
}

llvm::StringRef gdn::stringify(EntryOutputs outputs) {
  switch (outputs) {
  case EntryOutputs::core:
    return "core";
  case EntryOutputs::norm:
    return "norm";
  case EntryOutputs::both:
    return "both";
  }
  llvm_unreachable("an EntryOutputs outside its enumeration");
}
