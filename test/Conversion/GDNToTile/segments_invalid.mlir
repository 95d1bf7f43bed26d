// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: not gdn-opt %s -convert-gdn-to-tile=segments=1 2>&1 | FileCheck %s

// CHECK: error: expects the option 'segments' to be 0 or at least 2, but got 1
module {
}
