// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.kernel: one case per constraint that the verifier owns (C1, C2).
//
// RUN: gdn-opt %s -split-input-file -verify-diagnostics

func.func @c1_number_of_values(%x: tensor<?x?x8xf32>) {
  %0 = gdn.kernel "k" {
    // expected-error @+1 {{'gdn.yield' op expects one operand per result of the kernel, which is 1, but got 2}}
    gdn.yield %x, %x : tensor<?x?x8xf32>, tensor<?x?x8xf32>
  } : tensor<?x?x8xf32>
  return
}

// -----

func.func @c1_type(%x: tensor<?x?x8xf32>) {
  %0 = gdn.kernel "k" {
    // expected-error @+1 {{'gdn.yield' op expects operand 0 to be 'tensor<?x?x8xbf16>', set by result 0 of the kernel, but got 'tensor<?x?x8xf32>'}}
    gdn.yield %x : tensor<?x?x8xf32>
  } : tensor<?x?x8xbf16>
  return
}

// -----

func.func @c2_other_dialect() {
  // expected-error @+1 {{'gdn.kernel' op expects gdn ops only in its body, but got 'arith.constant'}}
  gdn.kernel "k" {
    %0 = arith.constant 1 : index
  }
  return
}

// -----

func.func @c2_nested() {
  // expected-error @+1 {{'gdn.kernel' op expects no other kernel in its body, but got "inner"}}
  gdn.kernel "outer" {
    gdn.kernel "inner" {
    }
  }
  return
}
