// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Versions, names of statuses, and the way of a message into the caller's
// buffer.

#include "handles.h"

#include <cstring>

using namespace gdnrt;

#define GDNRT_TEXT_OF(X) #X
#define GDNRT_TEXT(X) GDNRT_TEXT_OF(X)

uint32_t gdnrt_version(void) {
  return 10000 * GDNRT_VERSION_MAJOR + 100 * GDNRT_VERSION_MINOR +
         GDNRT_VERSION_PATCH;
}

const char *gdnrt_version_string(void) {
  return GDNRT_TEXT(GDNRT_VERSION_MAJOR) "." GDNRT_TEXT(
      GDNRT_VERSION_MINOR) "." GDNRT_TEXT(GDNRT_VERSION_PATCH);
}

const char *gdnrt_status_name(gdnrt_status status) {
  return toString(static_cast<StatusCode>(status));
}

gdnrt_status gdnrt::reportText(StatusCode code, const char *message,
                               gdnrt_error *error) noexcept {
  gdnrt_status status = static_cast<gdnrt_status>(code);
  if (!error || status == GDNRT_OK)
    return status;
  error->status = status;
  size_t used = 0;
  auto append = [&](const char *text) {
    while (*text && used < GDNRT_MESSAGE_SIZE - 1)
      error->message[used++] = *text++;
    if (*text)
      std::memcpy(error->message + used - 3, "...", 3);
  };
  append(toString(code));
  append(": ");
  append(message);
  error->message[used] = 0;
  return status;
}

gdnrt_status gdnrt::report(const Status &status, gdnrt_error *error) noexcept {
  return reportText(status.code(), status.message().c_str(), error);
}
