// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Guided self-scheduling inside one oneTBB arena. One task per worker claims
// ranges from a shared counter until none is left; a task that starts late
// finds nothing and costs nothing. oneTBB wakes and parks the threads.

#include "gdnrt/worker_pool.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

using namespace gdnrt;

struct WorkerPool::Arena {
  explicit Arena(int numWorkers) : tasks(numWorkers) {
    if (numWorkers > 1)
      tasks.initialize();
  }
  oneapi::tbb::task_arena tasks;
  /// Held while a body runs on the caller, as worker 0 outside the arena.
  std::mutex inlineTurn;
};

namespace {

/// Hands out [0, units) in contiguous ranges, each a share of what is left.
class RangeQueue {
public:
  RangeQueue(int64_t units, int numWorkers)
      : units_(units), shares_(8 * int64_t{numWorkers}) {}

  bool claim(int64_t &begin, int64_t &end) {
    begin = next_.load(std::memory_order_relaxed);
    do {
      if (begin >= units_)
        return false;
      end = begin + std::max<int64_t>(1, (units_ - begin) / shares_);
      // Relaxed is enough: what bodies write is published by the join.
    } while (
        !next_.compare_exchange_weak(begin, end, std::memory_order_relaxed));
    return true;
  }

private:
  // On its own cache line: every worker writes it.
  alignas(64) std::atomic<int64_t> next_{0};
  alignas(64) int64_t units_;
  int64_t shares_;
};

} // namespace

/// oneTBB gives no more threads than this, and prints a warning if asked to.
static int boundWorkers(int requested) {
  int most = oneapi::tbb::info::default_concurrency();
  return requested > 0 ? std::min(requested, most) : most;
}

WorkerPool::WorkerPool(int numWorkers)
    : numWorkers_(boundWorkers(numWorkers)),
      arena_(std::make_unique<Arena>(numWorkers_)) {}

WorkerPool::~WorkerPool() = default;

void WorkerPool::run(int64_t units, Body body, void *context) {
  if (units <= 0)
    return;
  if (numWorkers_ == 1) {
    std::lock_guard<std::mutex> turn(arena_->inlineTurn);
    body(context, 0, units, 0);
    return;
  }
  RangeQueue queue(units, numWorkers_);
  int numTasks = static_cast<int>(std::min<int64_t>(units, numWorkers_));
  arena_->tasks.execute([&] {
    oneapi::tbb::parallel_for(
        0, numTasks,
        [&](int) {
          int worker = oneapi::tbb::this_task_arena::current_thread_index();
          int64_t begin, end;
          while (queue.claim(begin, end))
            body(context, begin, end, worker);
        },
        oneapi::tbb::simple_partitioner());
  });
}
