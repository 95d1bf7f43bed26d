// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A state that the registers of a block cannot hold: 256 x 256 in f32, in 8
// passes of 32 rows. Key and query are loaded once; the rows of value and
// output are pieces of one row in shared memory.
//
// RUN: gdn-opt %s -gdn-schedule-resident-recurrence -canonicalize -cse -o %t
// RUN: FileCheck %s < %t
// RUN: gdn-gpu-opt %t -gdn-gpu-check -o /dev/null

// 16 lanes to a row of 256.
//       CHECK: #[[$STATE:.+]] = #gdn_gpu.rows<warps = 8, lanes = 16, vector = 4, cyclic = true>
// CHECK-LABEL: func.func @wide(
//  CHECK-SAME:     %[[POOL:[a-z0-9]+]]: memref<?x256x256xf32> {gdn_gpu.alignment = 16 : i64}
//   CHECK-NOT:   gdn_gpu.load {{.*}}256x256
//       CHECK:   gdn_gpu.await_launch
//       CHECK:   gdn_gpu.barrier
//       CHECK:   %[[K:.+]] = gdn_gpu.load_shared {{.*}}per_column<#[[$STATE]]>
//       CHECK:   %[[Q:.+]] = gdn_gpu.load_shared {{.*}}per_column<#[[$STATE]]>
//       CHECK:   %[[VALUES:.+]] = gdn_gpu.reshape %{{.+}} : <1x256xf32> to <8x32xf32>
//       CHECK:   %[[OUTPUTS:.+]] = gdn_gpu.reshape %[[OUT:.+]] : <1x256xf32> to <8x32xf32>
//       CHECK:   scf.for %[[PASS:.+]] = %c0 to %c8 step %c1
//       CHECK:     %[[ROW:.+]] = arith.muli %[[PASS]], %c32
//       CHECK:     %[[M:.+]] = gdn_gpu.load %[[POOL]][%{{.+}}, %[[ROW]], %c0] dims [1, 2] aligned 16 : {{.+}}<32x256xf32, #[[$STATE]]>
//       CHECK:     %[[V:.+]] = gdn_gpu.load_shared %[[VALUES]] row(%[[PASS]])
//       CHECK:     %[[NEXT:.+]]:2 = gdn_gpu.map_rows %[[M]], %[[K]], %[[Q]], %[[V]]
//       CHECK:     gdn_gpu.store_shared %[[NEXT]]#1, %[[OUTPUTS]] row(%[[PASS]])
//       CHECK:     scf.if
//       CHECK:       gdn_gpu.store %[[NEXT]]#0, %[[POOL]][%{{.+}}, %[[ROW]], %c0]
//       CHECK:   gdn_gpu.barrier
//       CHECK:   gdn_gpu.warps 7 for 1
//       CHECK:     gdn_gpu.load_shared %[[OUT]]
func.func @wide(%rows: index, %pool: memref<?x256x256xf32>, %keys: memref<?x256xf32>,
                %gates: memref<?xf32>, %betas: memref<?xf32>, %out: memref<?x256xf32>, %to: memref<?xindex>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = gdn_tile.block_id 0
  %slot = memref.load %to[%n] : memref<?xindex>
  %live = arith.cmpi ne, %slot, %c0 : index
  %m = gdn_tile.load %pool[%n, %c0, %c0] dims [1, 2] : memref<?x256x256xf32>, vector<256x256xf32>
  %q = gdn_tile.load %keys[%n, %c0] dims [0, 1] : memref<?x256xf32>, vector<1x256xf32>
  %k = gdn_tile.load %keys[%n, %c0] dims [0, 1] : memref<?x256xf32>, vector<1x256xf32>
  %v = gdn_tile.load %keys[%n, %c0] dims [0, 1] : memref<?x256xf32>, vector<1x256xf32>
  %g = gdn_tile.load %gates[%n] dims [0] : memref<?xf32>, vector<1xf32>
  %beta = gdn_tile.load %betas[%n] dims [0] : memref<?xf32>, vector<1xf32>
  %m1, %o = gdn_tile.delta_scan %m, %q, %k, %v gates(%g, %beta) valid(%c1)
      : vector<256x256xf32>, vector<1x256xf32>, vector<1x256xf32>, vector<1xf32>
  scf.if %live {
    gdn_tile.store %m1, %pool[%slot, %c0, %c0] dims [1, 2] : vector<256x256xf32>, memref<?x256x256xf32>
  }
  gdn_tile.store %o, %out[%n, %c0] dims [0, 1] : vector<1x256xf32>, memref<?x256xf32>
  return
}
