// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Baselines by plain loops and OpenBLAS. Compiled for the machine at hand, so
// that the loop has the machine's vectors.
#include "baselines.h"

#include <cblas.h>
#include <thread>

using namespace gdnbench;

void gdnbench::onThreads(int threads, const std::function<void(int)> &work) {
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i)
    others.emplace_back(work, i);
  work(0);
  for (std::thread &thread : others)
    thread.join();
}

static void update(float *__restrict x, size_t count) {
  for (size_t i = 0; i < count; ++i)
    x[i] = x[i] * 0.999f + 0.001f;
}

void gdnbench::updateInPlace(void *pool, size_t slotBytes,
                             const std::vector<int32_t> &slots, int threads) {
  onThreads(threads, [&](int thread) {
    size_t begin = slots.size() * thread / threads;
    size_t end = slots.size() * (thread + 1) / threads;
    for (size_t i = begin; i < end; ++i)
      update(reinterpret_cast<float *>(static_cast<char *>(pool) +
                                       slots[i] * slotBytes),
             slotBytes / sizeof(float));
  });
}

MatrixProducts::MatrixProducts(Shape shape, int count, int threads)
    : shape(shape), count(count), threads(threads) {
  openblas_set_num_threads(1);
  auto fill = [&](auto &matrices, int size) {
    matrices.assign(threads, std::vector<float>(size, 0.5f));
  };
  fill(a, shape.rows * shape.inner);
  fill(b, shape.inner * shape.columns);
  fill(c, shape.rows * shape.columns);
}

void MatrixProducts::run() {
  onThreads(threads, [&](int thread) {
    for (int i = 0; i < count; ++i)
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, shape.rows,
                  shape.columns, shape.inner, 1.0f, a[thread].data(),
                  shape.inner, b[thread].data(), shape.columns, 0.0f,
                  c[thread].data(), shape.columns);
  });
}

std::string gdnbench::openblasVersion() { return openblas_get_config(); }
