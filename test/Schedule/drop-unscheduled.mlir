// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tile program goes, with a remark; programs of gdn_gpu and functions without
// a grid stay.
//
// RUN: gdn-opt %s -gdn-drop-unscheduled -verify-diagnostics | FileCheck %s

//   CHECK-NOT: @prefill
//       CHECK: func.func @decode
//       CHECK: func.func @other
// expected-remark@+1 {{entry 'prefill' has no schedule for a GPU and is left out}}
func.func @prefill() attributes {gdn_tile.grid = ["N"]} {
  return
}
func.func @decode() attributes {gdn_tile.grid = ["N"], gdn_gpu.threads = 32 : i64} {
  return
}
func.func @other() {
  return
}
