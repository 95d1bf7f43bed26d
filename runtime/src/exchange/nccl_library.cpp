// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads NCCL and turns its results into statuses.

#include "gdnrt/nccl_library.h"

#include <dlfcn.h>

using namespace gdnrt;
using namespace gdnrt::nccl;

static Status unsupported(const std::string &message) {
  return failure(StatusCode::unsupported, "exchange: ", message);
}

Status Library::check(nccl::Result result, const char *call) const {
  if (result == kSuccess)
    return {};
  const char *text = errorString(result);
  return failure(StatusCode::deviceError, "exchange: ", call, ": ",
                 text ? text : "no description", " (", result, ")");
}

::gdnrt::Result<std::shared_ptr<const Library>>
Library::load(const std::string &name) {
  // NODELETE: threads of the library may outlive every communicator.
  void *handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!handle) {
    const char *message = dlerror();
    return unsupported(std::string("no NCCL: ") +
                       (message ? message : "unknown error"));
  }
  auto library = std::make_shared<Library>();
  std::string missing;
  auto find = [&](const char *symbol) {
    void *found = dlsym(handle, symbol);
    if (!found && missing.empty())
      missing = symbol;
    return found;
  };
#define GDNRT_NCCL_FIND(MEMBER, SYMBOL, PARAMETERS)                            \
  library->MEMBER = reinterpret_cast<decltype(library->MEMBER)>(find(#SYMBOL));
  GDNRT_NCCL_FUNCTIONS(GDNRT_NCCL_FIND)
#undef GDNRT_NCCL_FIND
  library->errorString = reinterpret_cast<decltype(library->errorString)>(
      find("ncclGetErrorString"));
  dlclose(handle);
  if (!missing.empty())
    return unsupported(name + " lacks " + missing +
                       "; expected NCCL 2.18 or later");
  if (Status s = library->check(library->getVersion(&library->version),
                                "ncclGetVersion");
      !s.isOk())
    return s;
  if (library->version < kOldestVersion)
    return unsupported(name + ": expected NCCL 2.18 or later, got version " +
                       std::to_string(library->version));
  return std::shared_ptr<const Library>(std::move(library));
}
