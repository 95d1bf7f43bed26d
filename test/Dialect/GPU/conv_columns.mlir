// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.conv_columns: what is written is read again; a copy per warpgroup may follow it without a
// barrier, as the loads of such tiles.
//
// RUN: gdn-gpu-opt %s -gdn-gpu-check | gdn-gpu-opt -gdn-gpu-check | FileCheck %s

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>

// CHECK-LABEL: func.func @values
//       CHECK:   gdn_gpu.conv_columns %{{.+}}, %{{.+}}, %{{.+}} : {{.*}}<32x64xf16, swizzled>, {{.*}}<64x2xf16, #[[$ROWS:.+]]>, {{.*}}<64x3xf32, #[[$ROWS]]> -> {{.*}}<64x32xbf16, #[[$ROWS]]> {
//  CHECK-NEXT:   ^bb0(%{{.+}}: vector<32xf32>):
//       CHECK:     gdn_gpu.yield %{{.+}} : vector<32xbf16>
//       CHECK:   gdn_gpu.begin_copy per_warpgroup
func.func @values(%window: !gdn_gpu.fragment<64x2xf16, #rows>, %weight: !gdn_gpu.fragment<64x3xf32, #rows>,
                  %v: memref<?x64xf16, strided<[?, 1]>>, %t: index)
    -> (!gdn_gpu.fragment<64x32xbf16, #rows>, !gdn_gpu.fragment<64x2xf16, #rows>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %c0 = arith.constant 0 : index
  %one = arith.constant dense<1.0> : vector<32xf32>
  %inputs = gdn_gpu.alloc : !gdn_gpu.shared<32x64xf16, swizzled>
  gdn_gpu.begin_copy per_warpgroup %v[%t, %c0] dims [0, 1], %inputs
      : memref<?x64xf16, strided<[?, 1]>>, !gdn_gpu.shared<32x64xf16, swizzled>
  gdn_gpu.await_copies
  %y, %next = gdn_gpu.conv_columns %inputs, %window, %weight
      : !gdn_gpu.shared<32x64xf16, swizzled>, !gdn_gpu.fragment<64x2xf16, #rows>,
        !gdn_gpu.fragment<64x3xf32, #rows> -> !gdn_gpu.fragment<64x32xbf16, #rows> {
  ^bb0(%row: vector<32xf32>):
    %more = arith.addf %row, %one : vector<32xf32>
    %rounded = arith.truncf %more : vector<32xf32> to vector<32xbf16>
    gdn_gpu.yield %rounded : vector<32xbf16>
  }
  gdn_gpu.begin_copy per_warpgroup %v[%t, %c0] dims [0, 1], %inputs
      : memref<?x64xf16, strided<[?, 1]>>, !gdn_gpu.shared<32x64xf16, swizzled>
  return %y, %next : !gdn_gpu.fragment<64x32xbf16, #rows>, !gdn_gpu.fragment<64x2xf16, #rows>
}
