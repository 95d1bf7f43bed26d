// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A stand-in of NCCL for ranks that are threads, with memory of the host. Calls
// are under way until all ranks have made them, as those of communicators that
// do not block. What a test wants to go wrong, it says in FakeNccl.

#include "fake_nccl.h"

#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

using namespace gdnrt::nccl;
using gdnrt::test::FakeNccl;

namespace {

struct Group {
  int size = 0, refs = 0;
  int initialised = 0;
  /// What each rank gave to its newest call, and how many calls it has made.
  std::vector<const void *> send;
  std::vector<void *> receive;
  std::vector<size_t> bytes;
  std::vector<int> begun;
  int done = 0; // calls that all ranks have made
};

std::mutex mutex;
std::map<std::string, Group> groups;

} // namespace

struct ncclComm {
  Group *group;
  int rank;
  bool isEnding = false;
};

/// Whether all that the rank has begun is done.
static bool isDone(ncclComm &comm) {
  Group &group = *comm.group;
  if (group.initialised < group.size)
    return false;
  for (int other = 0; other < group.size; ++other)
    if (group.begun[other] < group.begun[comm.rank])
      return false;
  return true;
}

static void finish(Group &group) {
  for (int rank = 0; rank < group.size; ++rank)
    for (int other = 0; other < group.size; ++other) {
      char *to =
          static_cast<char *>(group.receive[rank]) + other * group.bytes[other];
      if (to != group.send[other])
        std::memcpy(to, group.send[other], group.bytes[other]);
    }
  ++group.done;
}

extern "C" {

FakeNccl fakeNccl;

const char *ncclGetErrorString(Result result) {
  return result == 0   ? "no error"
         : result == 2 ? "unhandled system error"
         : result == 6 ? "remote process exited or there was a network error"
                       : "invalid argument";
}
Result ncclGetVersion(int *version) {
  *version = fakeNccl.version;
  return 0;
}
Result ncclGetUniqueId(UniqueId *id) {
  static int next = 0;
  const std::lock_guard lock(mutex);
  std::memset(id->bytes, 0, sizeof(id->bytes));
  id->bytes[0] = static_cast<char>(++next);
  return 0;
}
Result ncclCommInitRankConfig(Comm *comm, int size, UniqueId id, int rank,
                              Config *config) {
  const std::lock_guard lock(mutex);
  if (config->blocking != 0 || config->magic != 0xcafebeef)
    return 4;
  Group &group = groups[std::string(id.bytes, sizeof(id.bytes))];
  group.size = size;
  group.send.resize(size);
  group.receive.resize(size);
  group.bytes.resize(size);
  group.begun.resize(size);
  ++group.initialised;
  *comm = new ncclComm{&group, rank};
  return kInProgress;
}
Result ncclCommCount(Comm comm, int *count) {
  *count = comm->group->size;
  return 0;
}
Result ncclCommUserRank(Comm comm, int *rank) {
  *rank = comm->rank;
  return 0;
}
Result ncclCommGetAsyncError(Comm comm, Result *error) {
  const std::lock_guard lock(mutex);
  const bool isOver = comm->isEnding ? fakeNccl.graphs == 0 : isDone(*comm);
  *error = isOver ? kSuccess : kInProgress;
  if (fakeNccl.asyncError != 0)
    *error = fakeNccl.asyncError;
  return 0;
}
Result ncclCommAbort(Comm comm) {
  while (fakeNccl.graphs > 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const std::lock_guard lock(mutex);
  ++fakeNccl.aborted;
  delete comm;
  return 0;
}
Result ncclCommFinalize(Comm comm) {
  const std::lock_guard lock(mutex);
  comm->isEnding = true;
  return fakeNccl.graphs > 0 ? kInProgress : kSuccess;
}
Result ncclCommDestroy(Comm comm) {
  const std::lock_guard lock(mutex);
  ++fakeNccl.destroyed;
  delete comm;
  return 0;
}
Result ncclAllGather(const void *send, void *receive, size_t count, int type,
                     Comm comm, void *) {
  const std::lock_guard lock(mutex);
  if (type != kInt8)
    return 4;
  if (fakeNccl.gatherResult != 0)
    return fakeNccl.gatherResult;
  Group &group = *comm->group;
  group.send[comm->rank] = send;
  group.receive[comm->rank] = receive;
  group.bytes[comm->rank] = count;
  ++group.begun[comm->rank];
  if (!isDone(*comm))
    return kInProgress;
  finish(group);
  return kSuccess;
}

} // extern "C"
