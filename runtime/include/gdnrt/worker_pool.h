// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Distributes the units of a launch to threads. Each thread takes one
// contiguous range after another. The ranges are large at first and single
// units at the end, so that threads end at about the same time even if
// sequences differ much in length.

#ifndef GDNRT_WORKER_POOL_H
#define GDNRT_WORKER_POOL_H

#include <cstdint>
#include <memory>
#include <mutex>

namespace gdnrt {

class TaskArena;

class WorkerPool {
public:
  /// Makes a pool of `numWorkers` threads, the calling thread of run()
  /// included, but at most one for each hardware thread. 0 means one for each
  /// hardware thread. May throw exceptions of oneTBB.
  explicit WorkerPool(int numWorkers);
  ~WorkerPool();

  int numWorkers() const { return numWorkers_; }

  /// Computes units [begin, end). `worker` is below numWorkers(). Threads that
  /// run at the same time have different worker numbers.
  using Body = void (*)(void *context, int64_t begin, int64_t end, int worker);

  /// Runs `body` over [0, units) and returns when all units are done. Several
  /// threads may call it at the same time. With one worker they take turns, and
  /// the body runs on the calling thread.
  void run(int64_t units, Body body, void *context);

private:
  int numWorkers_;
  /// Null with one worker. Then bodies run on the calling threads as worker 0,
  /// one at a time.
  std::unique_ptr<TaskArena> arena_;
  std::mutex inlineTurn_;
};

} // namespace gdnrt

#endif // GDNRT_WORKER_POOL_H
