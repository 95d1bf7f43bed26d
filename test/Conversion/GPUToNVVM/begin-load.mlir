// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A load that begins ahead: asynchronous copies of each way that the load may
// go, element by element where neither holds; behind the wait the thread takes
// its part, transposed if it lies across memory.
//
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s

// CHECK-LABEL: llvm.func @early(
//       CHECK:   scf.if
// CHECK-COUNT-3:   nvvm.cp.async.shared.global %{{.+}}, %{{.+}}, 8, cache = ca
//       CHECK:   } else {
//       CHECK:     scf.if
// CHECK-COUNT-3:     nvvm.cp.async.shared.global %{{.+}}, %{{.+}}, 8, cache = ca
//       CHECK:     } else {
// CHECK-COUNT-12:      llvm.store %{{.+}}, %{{.+}} : bf16, !llvm.ptr<3>
//       CHECK:   griddepcontrol.wait
//       CHECK:   nvvm.cp.async.wait.group 0
// CHECK-COUNT-3: llvm.load %{{.+}} : !llvm.ptr<3> -> vector<4xbf16>
//       CHECK:   arith.select
#rows = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
func.func @early(%n: index, %windows: memref<?x3xbf16, strided<[?, ?], offset: ?>> {gdn.name = "windows"},
                 %none: index {gdn.name = "windows_null_slot"}, %out: memref<3x128xbf16>)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %buffer = gdn_gpu.alloc : !gdn_gpu.shared<384xbf16>
  gdn_gpu.begin_load %windows[%c0, %c0] dims [1, 0], %buffer
      : memref<?x3xbf16, strided<[?, ?], offset: ?>>, !gdn_gpu.fragment<3x128xbf16, #rows>, !gdn_gpu.shared<384xbf16>
  gdn_gpu.await_launch
  %w = gdn_gpu.load %windows[%c0, %c0] dims [1, 0] begun(%buffer : !gdn_gpu.shared<384xbf16>)
      : memref<?x3xbf16, strided<[?, ?], offset: ?>>, !gdn_gpu.fragment<3x128xbf16, #rows>
  gdn_gpu.store %w, %out[%c0, %c0] dims [0, 1] : !gdn_gpu.fragment<3x128xbf16, #rows>, memref<3x128xbf16>
  return
}

// Half a barrier: the last warp waits, the others do not.
// CHECK-LABEL: llvm.func @half(
//       CHECK:   "{ .reg .pred other; setp.ne.s32 other, $0, $1; @other bar.arrive 15, 128; }"
//       CHECK:   scf.if
//       CHECK:     "bar.sync 15, 128;"
#state = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
func.func @half(%n: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %buffer = gdn_gpu.alloc : !gdn_gpu.shared<128xf32>
  %x = arith.constant 1.0 : f32
  %t = gdn_gpu.fill %x : f32 -> !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#state>>
  gdn_gpu.store_shared %t, %buffer : !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#state>>, !gdn_gpu.shared<128xf32>
  gdn_gpu.arrive for 3
  gdn_gpu.warps 3 for 1 {
    gdn_gpu.await_arrivals
    %all = gdn_gpu.load_shared %buffer : !gdn_gpu.shared<128xf32> -> !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
  }
  return
}
