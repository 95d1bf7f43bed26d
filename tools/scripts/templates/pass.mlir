// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// @flag@: what is tested here.
//
// RUN: @opt@ %s -@flag@ | FileCheck %s

// CHECK-LABEL: func.func @nothing_to_do(
//  CHECK-NEXT:   return
func.func @nothing_to_do() {
  return
}
