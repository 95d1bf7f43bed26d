// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels in PTX for tests on a real GPU, and an image of them. They follow the
// ABI of GPU code: the words of a launch are one parameter by value, the last
// two are the workspace and the number of units.

#ifndef GDN_TEST_UNIT_RUNTIME_CUDA_GPU_KERNELS_H
#define GDN_TEST_UNIT_RUNTIME_CUDA_GPU_KERNELS_H

#include "../image_builder.h"

namespace gdnrt::test {

/// Entries of `gpuImage`, over arrays [N] of i32 but for the last but one:
///   scale    out = 2 * x; persistent, one block per multiprocessor
///   ticket   out[unit] = the order in which the block came, by a counter
///   cluster  out[unit] = the blocks of its cluster (sm_90 and later)
///   shared   out[unit] = a sum over 100,000 bytes of dynamic shared memory
///   boxes    out [N, 512] = boxes of eight rows of x [T, 128], which is bf16,
///            as they arrive in shared memory (sm_90 and later)
///   broken   PTX that no assembler takes
ImageBuilder gpuImage();

} // namespace gdnrt::test

#endif // GDN_TEST_UNIT_RUNTIME_CUDA_GPU_KERNELS_H
