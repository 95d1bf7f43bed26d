// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A prefetch asks for the first element of each piece that the thread would
// load: here four rows of a tile that lies across memory, and only lanes whose
// columns there are.
//
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s

// CHECK-LABEL: llvm.func @soon(
//   CHECK-DAG:   %[[LANE:.+]] = arith.andi %{{.+}}, %{{.+}} : i32
//       CHECK:   %[[INSIDE:.+]] = arith.cmpi {{[us]}}lt, %{{.+}} : i32
//       CHECK:   scf.if %[[INSIDE]] {
//  CHECK-NEXT:     llvm.inline_asm has_side_effects {{.*}}"prefetch.global.L2 [$0];", "l"
// CHECK-COUNT-3:   "prefetch.global.L2 [$0];", "l"
//   CHECK-NOT:   prefetch
//   CHECK-NOT:   llvm.load %{{.+}} -> f32
#rows = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
func.func @soon(%n: index, %weights: memref<?x4xbf16, strided<[?, 1], offset: ?>>)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  gdn_gpu.prefetch %weights[%c0, %c0] dims [1, 0]
      : memref<?x4xbf16, strided<[?, 1], offset: ?>>, !gdn_gpu.fragment<4x96xbf16, #rows>
  return
}
