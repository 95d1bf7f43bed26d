// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.begin_copy any_alignment: parse, print, and print again, in both forms.
//
// RUN: gdn-gpu-opt %s | gdn-gpu-opt | FileCheck %s
// RUN: gdn-gpu-opt -mlir-print-op-generic %s | gdn-gpu-opt | FileCheck %s

// CHECK-LABEL: func.func @rows(
//       CHECK:   gdn_gpu.begin_copy any_alignment %{{.+}} dims [0, 1] rows(%{{.+}}), %{{.+}} : memref<?x128xbf16, strided<[?, 1]>>, <67x128xbf16>
func.func @rows(%x: memref<?x128xbf16, strided<[?, 1]>>, %t: index, %n: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %c0 = arith.constant 0 : index
  %buffer = gdn_gpu.alloc : !gdn_gpu.shared<67x128xbf16>
  gdn_gpu.begin_copy any_alignment %x[%t, %c0] dims [0, 1] rows(%n), %buffer
      : memref<?x128xbf16, strided<[?, 1]>>, !gdn_gpu.shared<67x128xbf16>
  gdn_gpu.await_copies
  return
}
