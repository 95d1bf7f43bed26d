// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builds the precompiled header pch_kernels.h once for all that use it.
