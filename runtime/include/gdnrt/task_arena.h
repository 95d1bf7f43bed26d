// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All that the runtime takes from oneTBB: threads that run a handful of tasks
// and wait. A file of its own, because the thread sanitizer must not look at
// oneTBB's headers without seeing the library too.

#ifndef GDNRT_TASK_ARENA_H
#define GDNRT_TASK_ARENA_H

#include <memory>

namespace gdnrt {

class TaskArena {
public:
  /// The threads that there can be; oneTBB gives no more.
  static int mostWorkers();

  /// May throw what oneTBB throws.
  explicit TaskArena(int numWorkers);
  ~TaskArena();

  /// Runs `task(context, worker)` `numTasks` times, on the caller and on other
  /// threads, and returns when all are done. Tasks that run at the same time
  /// have different worker numbers below the number of workers.
  void run(int numTasks, void (*task)(void *context, int worker),
           void *context);

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace gdnrt

#endif // GDNRT_TASK_ARENA_H
