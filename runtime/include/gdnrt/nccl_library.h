// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NCCL, which is loaded at run time: the table of its functions. What is
// declared here is the binary interface of NCCL 2.18 and later.

#ifndef GDNRT_NCCL_LIBRARY_H
#define GDNRT_NCCL_LIBRARY_H

#include "gdnrt/status.h"

#include <climits>
#include <cstddef>
#include <memory>
#include <string>

/// NCCL's own.
struct ncclComm;

namespace gdnrt::nccl {

constexpr char kLibrary[] = "libnccl.so.2";
/// The first version whose communicators need not block the host.
constexpr int kOldestVersion = 21800;

using Comm = ::ncclComm *;
/// By value in calls.
struct UniqueId {
  char bytes[128];
};
using Result = int;
constexpr Result kSuccess = 0, kInProgress = 7;
constexpr int kInt8 = 0; // of ncclDataType_t

/// ncclConfig_t of 2.18. Later versions take what they know of it.
struct Config {
  static constexpr int undefined = INT_MIN;
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = kOldestVersion;
  int blocking = undefined;
  int cgaClusterSize = undefined;
  int minCtas = undefined;
  int maxCtas = undefined;
  const char *netName = nullptr;
  int splitShare = undefined;
};

// Member, symbol, parameters. All of them return an ncclResult_t.
#define GDNRT_NCCL_FUNCTIONS(X)                                                \
  X(getVersion, ncclGetVersion, (int *version))                                \
  X(getUniqueId, ncclGetUniqueId, (UniqueId * id))                             \
  X(commInitRankConfig, ncclCommInitRankConfig,                                \
    (Comm * comm, int size, UniqueId id, int rank, Config *config))            \
  X(commCount, ncclCommCount, (Comm comm, int *count))                         \
  X(commUserRank, ncclCommUserRank, (Comm comm, int *rank))                    \
  X(commGetAsyncError, ncclCommGetAsyncError, (Comm comm, Result * error))     \
  X(commAbort, ncclCommAbort, (Comm comm))                                     \
  X(commFinalize, ncclCommFinalize, (Comm comm))                               \
  X(commDestroy, ncclCommDestroy, (Comm comm))                                 \
  X(allGather, ncclAllGather,                                                  \
    (const void *send, void *receive, size_t count, int type, Comm comm,       \
     void *stream))

struct Library {
  /// Loads `name`. UNSUPPORTED if there is no such library, or if it is too
  /// old. It is never unloaded.
  static ::gdnrt::Result<std::shared_ptr<const Library>>
  load(const std::string &name);

  /// OK for success; otherwise "exchange: ncclCommCount: invalid argument (4)".
  Status check(Result result, const char *call) const;

  int version = 0;
  const char *(*errorString)(Result result) = nullptr;
  // NOLINTBEGIN(bugprone-macro-parentheses): of a list of parameters
#define GDNRT_NCCL_MEMBER(MEMBER, SYMBOL, PARAMETERS)                          \
  Result(*MEMBER) PARAMETERS = nullptr;
  GDNRT_NCCL_FUNCTIONS(GDNRT_NCCL_MEMBER)
#undef GDNRT_NCCL_MEMBER
  // NOLINTEND(bugprone-macro-parentheses)
};

} // namespace gdnrt::nccl

#endif // GDNRT_NCCL_LIBRARY_H
