// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.share_products: parse, print, and print again, in both forms.
//
// RUN: gdn-gpu-opt %s | gdn-gpu-opt | FileCheck %s
// RUN: gdn-gpu-opt -mlir-print-op-generic %s | gdn-gpu-opt | FileCheck %s

#rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 4>
!state = !gdn_gpu.fragment<16x128xf32, #rows>
!with = !gdn_gpu.shared<4x128xf32>
!products = !gdn_gpu.shared<4x16xf32>

// CHECK-LABEL: func.func @both(
//       CHECK: gdn_gpu.share_products %{{.+}}, %{{.+}}, %{{.+}} rows(%{{.+}}), %{{.+}}, %{{.+}} : <16x128xf32, #{{.+}}>, <4x128xf32>, <4x16xf32>
func.func @both(%state: !state, %count: index) attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %keys = gdn_gpu.alloc : !with
  %queries = gdn_gpu.alloc : !with
  %known = gdn_gpu.alloc : !products
  %seen = gdn_gpu.alloc : !products
  gdn_gpu.share_products %state, %keys, %queries rows(%count), %known, %seen
      : !state, !with, !products
  return
}
