// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.entry, gdn.name, gdn.dims and gdn.contiguous: a complete entry verifies and prints.
//
// RUN: gdn-opt %s | gdn-opt | FileCheck %s
// RUN: gdn-opt -mlir-print-op-generic %s | gdn-opt | FileCheck %s

// Symbols come from argument sizes (N, Hv, Hk) and, for Hk, through another one.
// CHECK-LABEL: func.func @decode(
//  CHECK-SAME:   %{{.+}}: index {gdn.name = "Hk"}
//  CHECK-SAME:   %{{.+}}: tensor<?x?xf32> {gdn.dims = ["N", "256*Hk + 128*Hv"], gdn.name = "qkv"}
//  CHECK-SAME:   -> (tensor<?x?xf32> {gdn.dims = ["N", "Hv"], gdn.name = "out"}) attributes {gdn.entry}
func.func @decode(
    %hk: index {gdn.name = "Hk"},
    %qkv: tensor<?x?xf32> {gdn.name = "qkv", gdn.dims = ["N", "256*Hk + 128*Hv"]},
    %x: tensor<?x?xf32> {gdn.name = "x", gdn.dims = ["N", "Hv"]},
    %bounds: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %state: !gdn.pool<?x?x128x64xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "128", "64"]})
    -> (tensor<?x?xf32> {gdn.name = "out", gdn.dims = ["N", "Hv"]})
    attributes {gdn.entry} {
  return %x : tensor<?x?xf32>
}

// No parameters at all; a size that is constant though its type is dynamic.
// CHECK-LABEL: func.func @empty() attributes {gdn.entry}
func.func @empty() attributes {gdn.entry} {
  return
}
// CHECK-LABEL: func.func @constant(
func.func @constant(%x: tensor<?xi64> {gdn.name = "x", gdn.dims = ["2 + 2"]}) attributes {gdn.entry} {
  return
}

// Not an entry: what is there has to be right, but nothing has to be there.
// CHECK-LABEL: func.func @helper(
func.func @helper(%x: tensor<?xf32> {gdn.dims = ["T"]}, %y: f32) {
  return
}

// States that lie as [dk, dv]: the rows of a head side by side. Also of a window, its channels.
// CHECK-LABEL: func.func @keys_first(
//  CHECK-SAME:   gdn.contiguous = 2 : i64
//  CHECK-SAME:   gdn.contiguous = 1 : i64
func.func @keys_first(
    %state: !gdn.pool<?x?x128x64xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "128", "64"], gdn.contiguous = 2 : i64},
    %conv: !gdn.pool<?x?x3xf32> {gdn.contiguous = 1 : i64}) {
  return
}
