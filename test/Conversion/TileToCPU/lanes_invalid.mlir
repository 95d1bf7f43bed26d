// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The option 'lanes' is the width of a register that exists.
//
// RUN: not gdn-tile-opt %s -convert-tile-to-cpu=lanes=5 2>&1 | FileCheck %s

// CHECK: error: expects the option 'lanes' to be 4, 8 or 16, but got 5
module {
}
