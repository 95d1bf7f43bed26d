// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the machine can do: updating memory in place, and matrix products.
#ifndef GDN_RUNTIME_BENCH_BASELINES_H
#define GDN_RUNTIME_BENCH_BASELINES_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace gdnbench {

/// Runs `work(i)` for 0 <= i < threads at the same time; i = 0 on the caller.
void onThreads(int threads, const std::function<void(int)> &work);

/// x = x * a + b over the floats of the given slots, in their order, divided
/// among `threads` threads.
void updateInPlace(void *pool, size_t slotBytes,
                   const std::vector<int32_t> &slots, int threads);

/// Products of f32 matrices by OpenBLAS, each on one thread.
class MatrixProducts {
public:
  /// `rows x inner` times `inner x columns`.
  struct Shape {
    int rows, inner, columns;
  };

  /// `threads` independent streams of `count` products of one shape.
  MatrixProducts(Shape shape, int count, int threads);
  void run();
  double flops() const {
    return 2.0 * shape.rows * shape.inner * shape.columns * count * threads;
  }

private:
  Shape shape;
  int count, threads;
  std::vector<std::vector<float>> a, b, c;
};

/// The version of OpenBLAS and the kernels it chose.
std::string openblasVersion();

} // namespace gdnbench

#endif // GDN_RUNTIME_BENCH_BASELINES_H
