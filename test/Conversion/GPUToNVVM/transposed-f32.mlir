// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The transpose of a shared tile of f32, for which there are no instructions of matrices: a
// fragment's elements go to their places one by one, rows side by side.
//
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
#wide = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>

// CHECK-LABEL: llvm.func @outputs(
// CHECK-COUNT-16: llvm.store %{{.+}}, %{{.+}} : f32, !llvm.ptr<3>
//   CHECK-NOT:   llvm.store {{.+}}!llvm.ptr<3>
//       CHECK:   nvvm.barrier
// CHECK-COUNT-4: llvm.load %{{.+}} : !llvm.ptr<3> -> vector<4xf32>
func.func @outputs(%n: index, %x: memref<32x64xf32>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %p = gdn_gpu.alloc : !gdn_gpu.shared<32x64xf32>
  %o = gdn_gpu.fill %one : f32 -> !gdn_gpu.fragment<64x32xf32, #rows>
  gdn_gpu.store_shared transpose %o, %p : !gdn_gpu.fragment<64x32xf32, #rows>, !gdn_gpu.shared<32x64xf32>
  gdn_gpu.barrier
  %r = gdn_gpu.load_shared %p : !gdn_gpu.shared<32x64xf32> -> !gdn_gpu.fragment<32x64xf32, #wide>
  gdn_gpu.store %r, %x[%c0, %c0] dims [0, 1] aligned 16 : !gdn_gpu.fragment<32x64xf32, #wide>, memref<32x64xf32>
  return
}
