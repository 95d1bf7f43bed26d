// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builds the precompiled header pch_tests.h once for all tests of the compiler.
