// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Blocks of rows to threads. What cannot start a thread is done by the caller.

#include "gdnrt/state_rounder.h"

#include "gdnrt/worker_pool.h"

#include <algorithm>
#include <exception>
#include <new>

using namespace gdnrt;

/// Rows of a block: 32 KiB of f32 with 128 elements each.
constexpr int64_t kBlock = 64;

StateRounder::StateRounder() = default;
StateRounder::~StateRounder() = default;

Result<std::unique_ptr<StateRounder>> StateRounder::make(int64_t numThreads) {
  constexpr int64_t most = 1024;
  if (numThreads < 1 || numThreads > most)
    return invalid("host_tier: rounding_threads: expected 1 to ", most,
                   ", got ", numThreads);
  std::unique_ptr<StateRounder> rounder(new StateRounder());
  if (numThreads == 1)
    return rounder;
  try {
    rounder->workers_ =
        std::make_unique<WorkerPool>(static_cast<int>(numThreads));
  } catch (const std::bad_alloc &) {
    throw; // OUT_OF_MEMORY in the C ABI
  } catch (const std::exception &error) {
    return failure(StatusCode::internal, "host_tier: rounding_threads: no ",
                   numThreads, " threads: ", error.what());
  }
  return rounder;
}

/// Rows from `row` on.
static NarrowState rowsOf(const NarrowState &state, int64_t row, int64_t size,
                          StateFormat format) {
  const int64_t bytes = planesOf(format) > 0 ? 1 : 2;
  NarrowState rows;
  rows.elements = static_cast<uint8_t *>(state.elements) + row * size * bytes;
  rows.scales = state.scales ? state.scales + row : nullptr;
  rows.low = state.low ? state.low + row * size : nullptr;
  return rows;
}

/// Calls `round(row, count)` for blocks of rows; false if it could not.
template <typename Round>
static bool runBlocks(WorkerPool *workers, int64_t rows,
                      Round &round) noexcept {
  if (!workers)
    return false;
  struct Context {
    Round *round;
    int64_t rows;
  } context{&round, rows};
  try {
    workers->run((rows + kBlock - 1) / kBlock,
                 [](void *data, int64_t begin, int64_t end, int) {
                   const auto &of = *static_cast<Context *>(data);
                   const int64_t first = begin * kBlock;
                   (*of.round)(first, std::min(end * kBlock, of.rows) - first);
                 },
                 &context);
    return true;
  } catch (const std::exception &) {
    return false;
  }
}

void StateRounder::narrow(const float *from, int64_t rows, int64_t size,
                          StateFormat format, const NarrowState &to) noexcept {
  auto round = [&](int64_t row, int64_t count) {
    narrowState(from + row * size, count, size, format,
                rowsOf(to, row, size, format));
  };
  if (!runBlocks(workers_.get(), rows, round))
    narrowState(from, rows, size, format, to);
}

void StateRounder::widen(const NarrowState &from, int64_t rows, int64_t size,
                         StateFormat format, float *to) noexcept {
  auto round = [&](int64_t row, int64_t count) {
    widenState(rowsOf(from, row, size, format), count, size, format,
               to + row * size);
  };
  if (!runBlocks(workers_.get(), rows, round))
    widenState(from, rows, size, format, to);
}
