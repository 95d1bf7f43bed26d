// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.start_matmul and await_matmul: parse, print, and print again, in both
// forms.
//
// RUN: gdn-gpu-opt %s | gdn-gpu-opt | FileCheck %s
// RUN: gdn-gpu-opt -mlir-print-op-generic %s | gdn-gpu-opt | FileCheck %s

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!tile = !gdn_gpu.fragment<64x128xbf16, #rows>
!buffer = !gdn_gpu.shared<64x128xbf16, swizzled>
!sums = !gdn_gpu.fragment<64x64xf32, #rows>

// CHECK-LABEL: func.func @scores(
//       CHECK: %[[P:.+]] = gdn_gpu.start_matmul %{{.+}}, transpose %{{.+}} : !gdn_gpu.fragment<64x128xbf16, #{{.+}}>, <64x128xbf16, swizzled> -> <64x64xf32, #{{.+}}>
//       CHECK: gdn_gpu.await_matmul %[[P]] : <64x64xf32, #{{.+}}>
func.func @scores(%k: !tile) -> !sums
    attributes {gdn_gpu.kernel = {threads = 128 : i64, warpgroups}} {
  %buffer = gdn_gpu.alloc : !buffer
  gdn_gpu.store_shared %k, %buffer : !tile, !buffer
  gdn_gpu.barrier
  %p = gdn_gpu.start_matmul %k, transpose %buffer
      : !tile, !buffer -> !gdn_gpu.async_token<64x64xf32, #rows>
  %s = gdn_gpu.await_matmul %p : !gdn_gpu.async_token<64x64xf32, #rows>
  return %s : !sums
}
