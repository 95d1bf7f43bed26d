// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the threads of an exchange meet: each gives a buffer, and takes those
// of the others while all are there.

#ifndef GDNRT_MEETING_H
#define GDNRT_MEETING_H

#include "gdnrt/status.h"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

namespace gdnrt {

/// What a rank does in a gather, in this order.
class GatherSteps {
public:
  virtual ~GatherSteps();
  /// Before others take what the rank gives.
  virtual Status give() { return {}; }
  /// Copies what rank `other` gave, `bytes` bytes that lie apart.
  virtual Status take(int other, void *to, const void *from,
                      uint64_t bytes) = 0;
  /// When all was taken; others may still be taking.
  virtual Status taken() { return {}; }
  /// When all ranks have taken all.
  virtual Status part() { return {}; }
};

class Meeting {
public:
  Meeting(int size, std::chrono::milliseconds timeout)
      : given_(static_cast<size_t>(size)), timeout_(timeout) {}

  int size() const { return static_cast<int>(given_.size()); }
  std::chrono::milliseconds timeout() const { return timeout_; }

  /// All ranks call it. `receive` gets the `bytes` bytes that each rank sends,
  /// in the order of ranks; `send` may be the own part of it. IO_ERROR for all
  /// that are there if one does not come; after a failure all calls fail.
  Status gather(int rank, const void *send, void *receive, uint64_t bytes,
                GatherSteps &steps);
  /// Makes all calls fail from now on, with the first reason that was given.
  Status breakUp(Status why);
  /// That reason; OK if there is none.
  Status broken();

private:
  struct Given {
    const void *data = nullptr;
    uint64_t bytes = 0;
  };
  Status meet(int rank);
  void part();
  Status takeAll(int rank, void *receive, uint64_t bytes, GatherSteps &steps);

  std::mutex mutex_;
  std::condition_variable all_;
  std::vector<Given> given_;
  const std::chrono::milliseconds timeout_;
  int count_ = 0;
  uint64_t turn_ = 0;
  Status broken_;
};

} // namespace gdnrt

#endif // GDNRT_MEETING_H
