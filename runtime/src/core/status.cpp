// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names of status codes; the text form of a status.

#include "gdnrt/status.h"

using namespace gdnrt;

const char *gdnrt::toString(StatusCode code) {
  switch (code) {
  case StatusCode::ok:
    return "OK";
  case StatusCode::invalidArgument:
    return "INVALID_ARGUMENT";
  case StatusCode::notFound:
    return "NOT_FOUND";
  case StatusCode::corrupt:
    return "CORRUPT";
  case StatusCode::unsupported:
    return "UNSUPPORTED";
  case StatusCode::outOfMemory:
    return "OUT_OF_MEMORY";
  case StatusCode::ioError:
    return "IO_ERROR";
  case StatusCode::internal:
    return "INTERNAL";
  case StatusCode::deviceError:
    return "DEVICE_ERROR";
  }
  return "UNKNOWN";
}

std::string Status::toString() const {
  if (isOk())
    return "OK";
  return std::string(gdnrt::toString(code_)) + ": " + message_;
}
