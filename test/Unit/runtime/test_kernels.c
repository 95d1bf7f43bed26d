/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Code for test images: what a compiler would emit, written by hand. Built as
 * a shared object without libraries; the words follow the schemas that
 * test_image.cpp gives these functions.
 */
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

/* accumulate: pool[slot] += x, out = pool[slot] * scale, row by row.
 * words: x (ptr, N, D, sN, sD), scale (ptr, D, sD), slots (ptr, N, sN),
 *        state_pool (ptr, P, D, sP, sD, null), out (ptr, N, D, sN, sD),
 *        symbols N, D, P. Goes through the scratch, which holds D floats. */
EXPORT void test_accumulate(const int64_t *w, int64_t begin, int64_t end,
                            void *scratch) {
  const float *x = (const float *)w[0];
  const float *scale = (const float *)w[5];
  const int32_t *slots = (const int32_t *)w[8];
  float *pool = (float *)w[11];
  float *out = (float *)w[17];
  float *sum = (float *)scratch;
  int64_t depth = w[23];
  for (int64_t i = begin; i < end; ++i) {
    int64_t slot = slots[i * w[10]];
    int skipped = slot < 0 || slot == w[16] || slot >= w[12];
    for (int64_t d = 0; d < depth; ++d) {
      if (skipped) {
        out[i * w[20] + d * w[21]] = 0;
        continue;
      }
      float *state = pool + slot * w[14] + d * w[15];
      sum[d] = *state + x[i * w[3] + d * w[4]];
      *state = sum[d];
      out[i * w[20] + d * w[21]] = sum[d] * scale[d * w[7]];
    }
  }
}

/* count: adds 1 to counts[i]; rows are very uneven, so that ranges are too.
 * words: counts (ptr, N, sN), symbols N. */
EXPORT void test_count(const int64_t *w, int64_t begin, int64_t end,
                       void *scratch) {
  volatile int64_t *counts = (volatile int64_t *)w[0];
  (void)scratch;
  for (int64_t i = begin; i < end; ++i) {
    int64_t spins = i % 97 == 0 ? 20000 : 1;
    for (volatile int64_t s = 0; s < spins; ++s)
      ;
    counts[i * w[2]] += 1;
  }
}

/* scratch_owner: marks its scratch with the unit, spins, and writes to out[i]
 * whether the mark is still there. words: out (ptr, N, sN), symbols N. */
EXPORT void test_scratch_owner(const int64_t *w, int64_t begin, int64_t end,
                               void *scratch) {
  int64_t *out = (int64_t *)w[0];
  volatile int64_t *mark = (volatile int64_t *)scratch;
  for (int64_t i = begin; i < end; ++i) {
    mark[0] = i;
    mark[511] = ~i;
    for (volatile int64_t s = 0; s < 200; ++s)
      ;
    out[i * w[2]] =
        mark[0] == i && mark[511] == ~i && ((uintptr_t)scratch & 63) == 0;
  }
}

/* empty: no work; what is left is the overhead of the host. */
EXPORT void test_empty(const int64_t *w, int64_t begin, int64_t end,
                       void *scratch) {
  (void)w, (void)begin, (void)end, (void)scratch;
}

/* neighbours: out[i] = x[i] + x[i + 1] + 5, the last row's neighbour is the
 * first row. words: x (ptr, N, sN), out (ptr, N, sN), symbols N; the staged
 * variant has its regions behind them: one number, then N numbers. */
EXPORT void test_neighbours(const int64_t *w, int64_t begin, int64_t end,
                            void *scratch) {
  const int64_t *x = (const int64_t *)w[0];
  int64_t *out = (int64_t *)w[3];
  (void)scratch;
  for (int64_t i = begin; i < end; ++i)
    out[i * w[5]] = x[i * w[2]] + x[(i + 1) % w[6] * w[2]] + 5;
}

EXPORT void test_neighbours_copy(const int64_t *w, int64_t begin, int64_t end,
                                 void *scratch) {
  const int64_t *x = (const int64_t *)w[0];
  int64_t *copy = (int64_t *)w[8];
  (void)scratch;
  for (int64_t i = begin; i < end; ++i) {
    int64_t spins = i % 29 == 0 ? 20000 : 1;
    for (volatile int64_t s = 0; s < spins; ++s)
      ;
    copy[i] = x[i * w[2]];
    if (i == w[6] - 1)
      *(int64_t *)w[7] = 5;
  }
}

EXPORT void test_neighbours_add(const int64_t *w, int64_t begin, int64_t end,
                                void *scratch) {
  int64_t *out = (int64_t *)w[3];
  const int64_t *copy = (const int64_t *)w[8];
  (void)scratch;
  for (int64_t i = begin; i < end; ++i)
    out[i * w[5]] = copy[i] + copy[(i + 1) % w[6]] + *(const int64_t *)w[7];
}
