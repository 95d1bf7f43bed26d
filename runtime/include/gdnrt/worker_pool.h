// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Spreads the units of a launch over threads. Each thread takes one contiguous
// range after another, large ones first and single units at the end, so that
// sequences of very different length still finish together.

#ifndef GDNRT_WORKER_POOL_H
#define GDNRT_WORKER_POOL_H

#include <cstdint>
#include <memory>
#include <mutex>

namespace gdnrt {

class TaskArena;

class WorkerPool {
public:
  /// `numWorkers` threads, of which the caller of run() is one, but at most
  /// one for each hardware thread; 0 means that many. May throw what oneTBB
  /// throws.
  explicit WorkerPool(int numWorkers);
  ~WorkerPool();

  int numWorkers() const { return numWorkers_; }

  /// Performs units [begin, end) as `worker` < numWorkers(); no two threads
  /// that run at the same time have the same worker number.
  using Body = void (*)(void *context, int64_t begin, int64_t end, int worker);

  /// Returns when all of [0, units) is done. Threads may call it at the same
  /// time; with one worker they take turns and the body runs on the caller.
  void run(int64_t units, Body body, void *context);

private:
  int numWorkers_;
  /// Null with one worker: then bodies run on the callers, as worker 0, one
  /// caller at a time.
  std::unique_ptr<TaskArena> arena_;
  std::mutex inlineTurn_;
};

} // namespace gdnrt

#endif // GDNRT_WORKER_POOL_H
