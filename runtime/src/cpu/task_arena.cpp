// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One oneTBB arena. Built without the thread sanitizer (see task_arena.h);
// whoever calls tells it about the fork and the join.

#include "gdnrt/task_arena.h"

#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

using namespace gdnrt;

struct TaskArena::Impl {
  explicit Impl(int numWorkers) : arena(numWorkers) { arena.initialize(); }
  oneapi::tbb::task_arena arena;
};

int TaskArena::mostWorkers() {
  return oneapi::tbb::info::default_concurrency();
}

TaskArena::TaskArena(int numWorkers)
    : impl_(std::make_unique<Impl>(numWorkers)) {}

TaskArena::~TaskArena() = default;

void TaskArena::run(int numTasks, void (*task)(void *context, int worker),
                    void *context) {
  impl_->arena.execute([&] {
    oneapi::tbb::parallel_for(
        0, numTasks,
        [&](int) {
          task(context, oneapi::tbb::this_task_arena::current_thread_index());
        },
        oneapi::tbb::simple_partitioner());
  });
}
