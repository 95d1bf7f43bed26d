// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads and writes structs of which the caller may have another version.

#include "sized_struct.h"

#include "handles.h"

#include <algorithm>
#include <cstring>

using namespace gdnrt;

static size_t sizeOf(const void *given) {
  size_t size = 0;
  std::memcpy(&size, given, sizeof(size));
  return size;
}

Status gdnrt::checkSized(const char *what, const char *type,
                         const void *given) {
  if (!given)
    return nullPointer(what);
  size_t size = sizeOf(given);
  if (size < kLeastStructSize || size > kMostStructSize ||
      size % sizeof(size_t) != 0)
    return invalid(what, ": expected the struct_size of ", type,
                   " to be a multiple of ", sizeof(size_t), " from ",
                   kLeastStructSize, " to ", kMostStructSize, ", got ", size);
  return {};
}

Status gdnrt::readSized(const char *what, const char *type, const void *given,
                        void *known, size_t knownSize) {
  if (Status s = checkSized(what, type, given); !s.isOk())
    return s;
  size_t size = sizeOf(given);
  const auto *bytes = static_cast<const unsigned char *>(given);
  for (size_t at = knownSize; at < size; ++at)
    if (bytes[at] != 0)
      return failure(StatusCode::unsupported, what, ": ", type, " has ", size,
                     " bytes, of which this library knows ", knownSize,
                     "; expected 0 behind them, got ", int{bytes[at]},
                     " at offset ", at);
  size_t both = std::min(size, knownSize);
  std::memcpy(known, given, both);
  std::memset(static_cast<unsigned char *>(known) + both, 0, knownSize - both);
  std::memcpy(known, &knownSize, sizeof(knownSize));
  return {};
}

void gdnrt::writeSized(const void *known, size_t knownSize, void *to) {
  size_t size = sizeOf(to), first = sizeof(size);
  auto *bytes = static_cast<unsigned char *>(to);
  std::memcpy(bytes + first, static_cast<const unsigned char *>(known) + first,
              std::min(size, knownSize) - first);
  if (size > knownSize)
    std::memset(bytes + knownSize, 0, size - knownSize);
}
