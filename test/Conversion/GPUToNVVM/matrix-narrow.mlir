// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A swizzled tile whose rows are no whole panels of 128 bytes: 96 columns of two
// bytes are 12 pieces of 16 bytes, swizzled four by four. A lane has four
// addresses, and each four pieces further to the right are 64 bytes behind them;
// eight rows further down are 8 x 192 bytes.
//
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!keys = !gdn_gpu.shared<64x96xbf16, swizzled>

// CHECK-LABEL: llvm.func @columns(
//       CHECK:   %[[TILE:.+]] = llvm.mlir.addressof @columns_shared
//       CHECK:   %[[FIRST:.+]] = llvm.getelementptr %[[TILE]][%{{.+}}] : (!llvm.ptr<3>, i32)
//       CHECK:   llvm.getelementptr %[[FIRST]][64] : (!llvm.ptr<3>)
//       CHECK:   llvm.getelementptr %[[FIRST]][128] : (!llvm.ptr<3>)
//       CHECK:   llvm.getelementptr %[[FIRST]][1536] : (!llvm.ptr<3>)
//       CHECK:   llvm.getelementptr %[[FIRST]][1600] : (!llvm.ptr<3>)
//       CHECK:   llvm.getelementptr %[[FIRST]][1664] : (!llvm.ptr<3>)
//       CHECK:   nvvm.barrier
func.func @columns(%T: index, %out: memref<64x96xbf16, strided<[96, 1]>>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64},
                gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : bf16
  %p = gdn_gpu.alloc : !keys
  %a = gdn_gpu.fill %one : bf16 -> !gdn_gpu.fragment<64x96xbf16, #rows>
  gdn_gpu.store_shared %a, %p : !gdn_gpu.fragment<64x96xbf16, #rows>, !keys
  gdn_gpu.barrier
  %b = gdn_gpu.load_shared %p : !keys -> !gdn_gpu.fragment<64x96xbf16, #rows>
  gdn_gpu.store %b, %out[%c0, %c0] dims [0, 1] : !gdn_gpu.fragment<64x96xbf16, #rows>, memref<64x96xbf16, strided<[96, 1]>>
  return
}
