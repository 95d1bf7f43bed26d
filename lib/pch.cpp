// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builds the precompiled header pch.h once for all compiler libraries.
