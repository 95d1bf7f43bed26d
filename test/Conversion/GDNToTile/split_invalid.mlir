// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two stages are for products of rounded operands.
//
// RUN: gdn-opt %s -convert-gdn-to-tile="chunk-stages=split precision=mixed"
// RUN: not gdn-opt %s -convert-gdn-to-tile=chunk-stages=split 2>&1 | FileCheck %s
// RUN: not gdn-compile %s --chunk-stages=split -o %t 2>&1 | FileCheck %s --check-prefix=COMPILE

// RUN: not gdn-opt %s -convert-gdn-to-tile=value-parts=0 2>&1 | FileCheck %s --check-prefix=PARTS

//   PARTS: error: expects the option 'value-parts' to be at least 1, but got 0
// RUN: not gdn-opt %s -convert-gdn-to-tile=cuts=4,1 2>&1 | FileCheck %s --check-prefix=CUTS
//    CUTS: error: expects the option 'cuts' to be at least 2, but got 1
//   CHECK: error: expects the option 'precision' to be mixed or mixed-io with 'chunk-stages=split', but got f32
// COMPILE: error: --chunk-stages=split: expects --precision mixed or mixed-io, but got f32
module {
}
