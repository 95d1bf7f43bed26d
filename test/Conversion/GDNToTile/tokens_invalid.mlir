// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The option 'tokens' is a number of tokens.
//
// RUN: not gdn-opt %s -convert-gdn-to-tile=tokens=0 2>&1 | FileCheck %s
// RUN: not gdn-opt %s -convert-gdn-to-tile=tokens=-4 2>&1 | FileCheck %s --check-prefix=NEGATIVE

//    CHECK: error: expects the option 'tokens' to be at least 1, but got 0
// NEGATIVE: error: expects the option 'tokens' to be at least 1, but got -4
module {
}
