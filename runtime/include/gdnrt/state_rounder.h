// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// narrowState and widenState on several threads, each with rows of its own: the
// bytes are those of one thread.

#ifndef GDNRT_STATE_ROUNDER_H
#define GDNRT_STATE_ROUNDER_H

#include "gdnrt/narrow_state.h"
#include "gdnrt/status.h"

#include <cstdint>
#include <memory>

namespace gdnrt {

class WorkerPool;

class StateRounder {
public:
  /// With so many threads, the calling one included, 1 or more; not more than
  /// the machine has.
  static Result<std::unique_ptr<StateRounder>> make(int64_t numThreads);
  ~StateRounder();

  /// One call at a time.
  void narrow(const float *from, int64_t rows, int64_t size, StateFormat format,
              const NarrowState &to) noexcept;
  void widen(const NarrowState &from, int64_t rows, int64_t size,
             StateFormat format, float *to) noexcept;

private:
  StateRounder();

  /// Null with one thread.
  std::unique_ptr<WorkerPool> workers_;
};

} // namespace gdnrt

#endif // GDNRT_STATE_ROUNDER_H
