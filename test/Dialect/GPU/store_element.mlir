// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.store_element: every type, one index per dimension, in both forms.
//
// RUN: gdn-gpu-opt %s | gdn-gpu-opt | FileCheck %s
// RUN: gdn-gpu-opt -mlir-print-op-generic %s | gdn-gpu-opt | FileCheck %s

// CHECK-LABEL: func.func @types(
//       CHECK:   gdn_gpu.store_element %{{.+}}, %{{.+}}[%{{.+}}] : i32, memref<?xi32>
//       CHECK:   gdn_gpu.store_element %{{.+}}, %{{.+}}[%{{.+}}, %{{.+}}] : i64, memref<?x4xi64, strided<[?, ?]>>
//       CHECK:   gdn_gpu.store_element %{{.+}}, %{{.+}}[] : i1, memref<i1>
func.func @types(%slot: i32, %slots: memref<?xi32>, %id: i64,
                 %table: memref<?x4xi64, strided<[?, ?]>>, %flag: i1, %one: memref<i1>, %n: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  gdn_gpu.store_element %slot, %slots[%n] : i32, memref<?xi32>
  gdn_gpu.store_element %id, %table[%n, %n] : i64, memref<?x4xi64, strided<[?, ?]>>
  gdn_gpu.store_element %flag, %one[] : i1, memref<i1>
  return
}
