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

MatrixProducts::MatrixProducts(int size, int count, int threads)
    : size(size), count(count), threads(threads) {
  openblas_set_num_threads(1);
  for (auto *matrices : {&a, &b, &c})
    matrices->assign(threads, std::vector<float>(size * size, 0.5f));
}

void MatrixProducts::run() {
  onThreads(threads, [&](int thread) {
    for (int i = 0; i < count; ++i)
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, size, size, size,
                  1.0f, a[thread].data(), size, b[thread].data(), size, 0.0f,
                  c[thread].data(), size);
  });
}

std::string gdnbench::openblasVersion() { return openblas_get_config(); }
