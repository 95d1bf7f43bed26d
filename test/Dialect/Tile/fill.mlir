// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_tile.fill: parse, print, and print again, in both forms.
//
// RUN: gdn-tile-opt %s | gdn-tile-opt | FileCheck %s
// RUN: gdn-tile-opt -mlir-print-op-generic %s | gdn-tile-opt | FileCheck %s

// CHECK-LABEL: func.func @both_ranks
//       CHECK:   gdn_tile.fill %{{.+}} : bf16 -> vector<16x128xbf16>
//       CHECK:   gdn_tile.fill %{{.+}} : f32 -> vector<16xf32>
func.func @both_ranks(%x: bf16, %y: f32) -> (vector<16x128xbf16>, vector<16xf32>) {
  %0 = gdn_tile.fill %x : bf16 -> vector<16x128xbf16>
  %1 = gdn_tile.fill %y : f32 -> vector<16xf32>
  return %0, %1 : vector<16x128xbf16>, vector<16xf32>
}
