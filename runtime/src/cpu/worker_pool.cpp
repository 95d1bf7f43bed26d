// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Guided self-scheduling. One task per worker claims ranges from a shared
// counter until none is left; a task that starts late finds nothing and costs
// nothing. oneTBB wakes and parks the threads.

#include "gdnrt/worker_pool.h"
#include "gdnrt/task_arena.h"

#include <algorithm>
#include <atomic>

// The fork and the join of TaskArena::run, told to the thread sanitizer.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#include <sanitizer/tsan_interface.h>
#define GDNRT_EDGE_FROM(ADDRESS) __tsan_release(ADDRESS)
#define GDNRT_EDGE_TO(ADDRESS) __tsan_acquire(ADDRESS)
#endif
#endif
#ifndef GDNRT_EDGE_FROM
#define GDNRT_EDGE_FROM(ADDRESS) (void)(ADDRESS)
#define GDNRT_EDGE_TO(ADDRESS) (void)(ADDRESS)
#endif

using namespace gdnrt;

namespace {

/// One call of run(): hands out [0, units) in contiguous ranges, each a share
/// of what is left.
class Job {
public:
  Job(int64_t units, int numWorkers, WorkerPool::Body body, void *context)
      : units_(units), shares_(8 * int64_t{numWorkers}), body_(body),
        context_(context) {}

  /// The task of one worker.
  static void work(void *job, int worker) {
    GDNRT_EDGE_TO(job);
    static_cast<Job *>(job)->workAs(worker);
    GDNRT_EDGE_FROM(job);
  }

private:
  void workAs(int worker) {
    int64_t begin, end;
    while (claim(begin, end))
      body_(context_, begin, end, worker);
  }

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

  // On its own cache line: every worker writes it.
  alignas(64) std::atomic<int64_t> next_{0};
  alignas(64) int64_t units_;
  int64_t shares_;
  WorkerPool::Body body_;
  void *context_;
};

int boundWorkers(int requested) {
  int most = TaskArena::mostWorkers();
  return requested > 0 ? std::min(requested, most) : most;
}

} // namespace

WorkerPool::WorkerPool(int numWorkers) : numWorkers_(boundWorkers(numWorkers)) {
  if (numWorkers_ > 1)
    arena_ = std::make_unique<TaskArena>(numWorkers_);
}

WorkerPool::~WorkerPool() = default;

void WorkerPool::run(int64_t units, Body body, void *context) {
  if (units <= 0)
    return;
  if (!arena_) {
    std::lock_guard<std::mutex> turn(inlineTurn_);
    body(context, 0, units, 0);
    return;
  }
  Job job(units, numWorkers_, body, context);
  int numTasks = static_cast<int>(std::min<int64_t>(units, numWorkers_));
  GDNRT_EDGE_FROM(&job);
  arena_->run(numTasks, Job::work, &job);
  GDNRT_EDGE_TO(&job);
}
