// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The only part of the runtime that uses oneTBB: threads that run a few tasks
// and wait. It has a file of its own, because the thread sanitizer must not
// compile oneTBB's headers without its library.

#ifndef GDNRT_TASK_ARENA_H
#define GDNRT_TASK_ARENA_H

#include <memory>

namespace gdnrt {

class TaskArena {
public:
  /// The maximum number of threads that oneTBB provides.
  static int mostWorkers();

  /// May throw exceptions of oneTBB.
  explicit TaskArena(int numWorkers);
  ~TaskArena();

  /// Runs `task(context, worker)` `numTasks` times, on the calling thread and
  /// on other threads, and returns when all tasks have ended. Tasks that run at
  /// the same time have different worker numbers, all below the number of
  /// workers.
  void run(int numTasks, void (*task)(void *context, int worker),
           void *context);

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace gdnrt

#endif // GDNRT_TASK_ARENA_H
