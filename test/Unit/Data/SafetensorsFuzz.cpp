// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// libFuzzer program: any bytes are refused or read, and what was read is
// written and read again as the same.
#include "gdn/Data/Safetensors.h"

#include <cstdio>
#include <cstdlib>

using namespace gdn::data;

/// Ends the run where a property does not hold.
static void require(bool holds, const char *what) {
  if (holds)
    return;
  fprintf(stderr, "does not hold: %s\n", what);
  abort();
}

static bool same(const Tensors &a, const Tensors &b) {
  if (a.metadata != b.metadata || a.arrays.size() != b.arrays.size())
    return false;
  for (const auto &[name, array] : a.arrays) {
    const Array *other = b.find(name);
    if (!other || other->dtype != array.dtype || other->shape != array.shape ||
        other->bytes != array.bytes)
      return false;
  }
  return true;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const llvm::StringRef bytes(reinterpret_cast<const char *>(data), size);
  llvm::Expected<Tensors> read = parseSafetensors(bytes, "fuzz");
  if (!read) {
    const std::string message = llvm::toString(read.takeError());
    require(llvm::StringRef(message).starts_with("fuzz: "),
            "an error names its file");
    return 0;
  }
  llvm::Expected<std::string> written = serializeSafetensors(*read);
  require(bool(written), "what was read can be written");
  llvm::Expected<Tensors> again = parseSafetensors(*written, "fuzz");
  require(bool(again), "what was written can be read");
  require(same(*read, *again), "contents stay the same");
  return 0;
}
