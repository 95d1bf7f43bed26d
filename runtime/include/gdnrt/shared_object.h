// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads a shared object from memory: its bytes are written to an anonymous
// sealed file, which the dynamic loader opens. No disk is used.

#ifndef GDNRT_SHARED_OBJECT_H
#define GDNRT_SHARED_OBJECT_H

#include "gdnrt/status.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace gdnrt {

class SharedObject {
public:
  /// Loads a copy of the bytes. Debuggers show `name`.
  static Result<std::shared_ptr<SharedObject>>
  load(const uint8_t *data, size_t size, const char *name);
  ~SharedObject();
  SharedObject(const SharedObject &) = delete;
  SharedObject &operator=(const SharedObject &) = delete;

  /// The address of an exported symbol, or null.
  void *find(const char *symbol) const;

private:
  SharedObject(int file, void *handle) : file_(file), handle_(handle) {}
  int file_;
  void *handle_;
};

} // namespace gdnrt

#endif // GDNRT_SHARED_OBJECT_H
