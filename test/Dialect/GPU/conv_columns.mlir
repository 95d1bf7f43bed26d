// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.conv_columns: what is written is read again. Copies and loads of columns per warpgroup may
// stand around it without a barrier.
//
// RUN: gdn-gpu-opt %s -gdn-gpu-check | gdn-gpu-opt -gdn-gpu-check | FileCheck %s

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>

// CHECK-LABEL: func.func @values
//       CHECK:   gdn_gpu.conv_columns %[[INPUTS:.+]], %{{.+}}, %{{.+}} to %[[VALUES:.+]] : {{.*}}<32x64xf16, swizzled>, {{.*}}<64x2xf16, #[[$ROWS:.+]]>, {{.*}}<64x3xf32, #[[$ROWS]]>, {{.*}}<32x64xbf16, swizzled> {
//  CHECK-NEXT:   ^bb0(%{{.+}}: vector<32xf32>):
//       CHECK:     gdn_gpu.yield %{{.+}} : vector<32xbf16>
//       CHECK:   gdn_gpu.load_shared transpose %[[VALUES]]
//       CHECK:   gdn_gpu.begin_copy per_warpgroup %{{.+}}, %[[INPUTS]]
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
  %values = gdn_gpu.reshape %inputs
      : !gdn_gpu.shared<32x64xf16, swizzled> to !gdn_gpu.shared<32x64xbf16, swizzled>
  %next = gdn_gpu.conv_columns %inputs, %window, %weight to %values
      : !gdn_gpu.shared<32x64xf16, swizzled>, !gdn_gpu.fragment<64x2xf16, #rows>,
        !gdn_gpu.fragment<64x3xf32, #rows>, !gdn_gpu.shared<32x64xbf16, swizzled> {
  ^bb0(%row: vector<32xf32>):
    %more = arith.addf %row, %one : vector<32xf32>
    %rounded = arith.truncf %more : vector<32xf32> to vector<32xbf16>
    gdn_gpu.yield %rounded : vector<32xbf16>
  }
  %y = gdn_gpu.load_shared transpose %values
      : !gdn_gpu.shared<32x64xbf16, swizzled> -> !gdn_gpu.fragment<64x32xbf16, #rows>
  gdn_gpu.begin_copy per_warpgroup %v[%t, %c0] dims [0, 1], %inputs
      : memref<?x64xf16, strided<[?, 1]>>, !gdn_gpu.shared<32x64xf16, swizzled>
  return %y, %next : !gdn_gpu.fragment<64x32xbf16, #rows>, !gdn_gpu.fragment<64x2xf16, #rows>
}
