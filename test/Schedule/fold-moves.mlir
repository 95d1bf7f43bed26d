// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A commit: all warps hold the state in registers while the tokens that are
// accepted go in one by one, read from memory where they are used; windows move
// as they do elsewhere. A large state is taken in blocks of rows.
//
// RUN: gdn-opt %S/../Conversion/GDNToTile/commit.mlir -gdn-fuse -convert-gdn-to-tile=value-heads -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-slot-moves -canonicalize -cse -o %t.commit
// RUN: FileCheck %s --check-prefix=COMMIT < %t.commit
// RUN: gdn-gpu-opt %t.commit -gdn-gpu-check -o /dev/null
// RUN: gdn-opt %s -gdn-schedule-slot-moves | FileCheck %s

// COMMIT-LABEL: func.func @commit(
//  COMMIT-SAME:   memref<?x?x64x16xbf16, {{[^{]+}} {gdn.name = "state_pool", {{.*}}gdn_gpu.alignment = 16 : i64
//   COMMIT-NOT:   gdn_gpu.barrier
//       COMMIT:   %[[SLOT:.+]] = arith.index_cast
//       COMMIT:   %[[A:.+]] = arith.index_cast %{{.+}} : i32 to index
//       COMMIT:   arith.subi %[[A]], %c1
//       COMMIT:   scf.if
//       COMMIT:     %[[M:.+]] = gdn_gpu.load %[[POOL:[a-z0-9]+]][%[[SLOT]], %{{.+}}, %c0, %c0] dims [2, 3] aligned 16
//       COMMIT:     %[[WIDE:.+]] = gdn_gpu.map_rows %[[M]] : {{.+}}bf16{{.+}} -> {{.+}}f32
// The sum of the decays, the state with all of them, and the tokens from the last on.
//       COMMIT:     %[[SUM:.+]] = scf.for {{.+}} = %c0 to %[[A]] step %c1 iter_args({{.+}} -> (f32)
//       COMMIT:     math.exp %[[SUM]]
//       COMMIT:     %[[SCALED:.+]] = gdn_gpu.map_rows %[[WIDE]]
//       COMMIT:     %[[N:.+]]:2 = scf.for %[[I:.+]] = %c0 to %[[A]] step %c1 iter_args(%[[S:.+]] = %[[SCALED]], %[[LATER:.+]] = %{{.+}})
//       COMMIT:       %[[T:.+]] = arith.subi %{{.+}}, %[[I]]
//       COMMIT:       %[[K:.+]] = gdn_gpu.load %{{.+}}[%[[SLOT]], %{{.+}}, %[[T]], %c0] dims [3] : {{.+}}<16xf32, #gdn_gpu.per_column
//       COMMIT:       %[[D:.+]] = gdn_gpu.load %{{.+}}[%[[SLOT]], %{{.+}}, %[[T]], %c0] dims [3] : {{.+}}<64xf32, #gdn_gpu.per_row
//       COMMIT:       math.exp %[[LATER]]
//       COMMIT:       gdn_gpu.map_rows %[[S]], %[[K]], %[[D]]
//       COMMIT:       arith.addf %[[LATER]], %{{.+}}
//       COMMIT:     gdn_gpu.store %{{.+}}, %[[POOL]][%[[SLOT]], %{{.+}}, %c0, %c0] dims [2, 3] aligned 16
//       COMMIT:     scf.for
//       COMMIT:       gdn_gpu.load {{.+}} dims [1, 2] rows({{.+}}<64x3xf16
//       COMMIT:       gdn_gpu.store {{.+}} dims [1, 2] rows(
// COMMIT-LABEL: func.func @windows(
//       COMMIT:   threads = 256

// 256 x 256 numbers in four blocks of 64 rows; a decay per channel is a row.
// CHECK-LABEL: func.func @large(
//       CHECK:   scf.for %[[R:.+]] = %c0{{.*}} to %c256{{.*}} step %c64
//       CHECK:     %[[ROW:.+]] = arith.addi %{{.+}}, %[[R]]
//       CHECK:     gdn_gpu.load %{{.+}}[%[[ROW]], %{{.+}}] dims [0, 1] aligned 16 : {{.+}}<64x256xf32
//       CHECK:     scf.for
//       CHECK:       gdn_gpu.load {{.+}}<256xf32, #gdn_gpu.per_column
//       CHECK:       %[[PART:.+]] = arith.addi %{{.+}}, %[[R]]
//       CHECK:       gdn_gpu.load %{{.+}}[%{{.+}}, %[[PART]]] dims [1] : {{.+}}<64xf32, #gdn_gpu.per_row
//       CHECK:       gdn_gpu.load {{.+}}<256xf32, #gdn_gpu.per_column
//       CHECK:       gdn_gpu.map_rows
//       CHECK:         math.exp {{.+}} : vector<256xf32>
//       CHECK:     gdn_gpu.store {{.+}} aligned 16
func.func @large(%count: index, %state: memref<256x256xf32>,
    %keys: memref<8x256xf32>, %deltas: memref<8x256xf32>,
    %decays: memref<8x256xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %m = gdn_tile.load %state[%c0, %c0] dims [0, 1] : memref<256x256xf32>, vector<256x256xf32>
  %k = gdn_tile.load %keys[%c0, %c0] dims [0, 1] : memref<8x256xf32>, vector<8x256xf32>
  %d = gdn_tile.load %deltas[%c0, %c0] dims [0, 1] : memref<8x256xf32>, vector<8x256xf32>
  %g = gdn_tile.load %decays[%c0, %c0] dims [0, 1] : memref<8x256xf32>, vector<8x256xf32>
  %n = gdn_tile.delta_fold %m, %k, %d decay(%g) valid(%count)
      : vector<256x256xf32>, vector<8x256xf32>, vector<8x256xf32>, vector<8x256xf32>
  gdn_tile.store %n, %state[%c0, %c0] dims [0, 1] : vector<256x256xf32>, memref<256x256xf32>
  return
}

// A state in a plane: its bytes and the scale of each row are loaded and stored,
// a scale behind a barrier, for other lanes of its row have read it.
// CHECK-LABEL: func.func @plane(
//       CHECK:   min_blocks = 2
//       CHECK:   %[[BYTES:.+]] = gdn_gpu.load %[[VIEW:.+]][%{{.+}}, %{{.+}}] dims [0, 1] aligned 16 : {{.+}}<64x64xi8
//       CHECK:   %[[SCALE:.+]] = gdn_gpu.load {{.+}} dims [0] : {{.+}}<64xf32, #gdn_gpu.per_row
//       CHECK:   %[[M:.+]] = gdn_gpu.map_rows %[[BYTES]], %[[SCALE]]
//       CHECK:   scf.for
//       CHECK:   %[[MADE:.+]]:2 = gdn_gpu.map_rows
//       CHECK:     vector.reduction <maximumf>
//       CHECK:   gdn_gpu.barrier
//  CHECK-NEXT:   gdn_gpu.store %[[MADE]]#0, %[[VIEW]][%{{.+}}, %{{.+}}] dims [0, 1] aligned 16
//  CHECK-NEXT:   gdn_gpu.store %[[MADE]]#1, %{{.+}} dims [0]
func.func @plane(%count: index, %state: memref<64x64xi8>, %scales: memref<64xf32>,
    %keys: memref<8x64xf32>, %deltas: memref<8x64xf32>, %decays: memref<8xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %bytes = gdn_tile.load %state[%c0, %c0] dims [0, 1] : memref<64x64xi8>, vector<64x64xi8>
  %scale = gdn_tile.load %scales[%c0] dims [0] : memref<64xf32>, vector<64xf32>
  %k = gdn_tile.load %keys[%c0, %c0] dims [0, 1] : memref<8x64xf32>, vector<8x64xf32>
  %d = gdn_tile.load %deltas[%c0, %c0] dims [0, 1] : memref<8x64xf32>, vector<8x64xf32>
  %g = gdn_tile.load %decays[%c0] dims [0] : memref<8xf32>, vector<8xf32>
  %m = gdn_tile.map_rows %bytes, %scale : vector<64x64xi8>, vector<64xf32> -> vector<64x64xf32> {
  ^bb0(%row: index, %b: vector<64xi8>, %s: f32):
    %x = arith.sitofp %b : vector<64xi8> to vector<64xf32>
    %all = vector.broadcast %s : f32 to vector<64xf32>
    %y = arith.mulf %x, %all : vector<64xf32>
    gdn_tile.yield %y : vector<64xf32>
  }
  %n = gdn_tile.delta_fold %m, %k, %d decay(%g) valid(%count)
      : vector<64x64xf32>, vector<8x64xf32>, vector<8x64xf32>, vector<8xf32>
  %p:2 = gdn_tile.map_rows %n : vector<64x64xf32> -> vector<64x64xi8>, vector<64xf32> {
  ^bb0(%row: index, %x: vector<64xf32>):
    %most = vector.reduction <maximumf>, %x : vector<64xf32> into f32
    %all = vector.broadcast %most : f32 to vector<64xf32>
    %q = arith.divf %x, %all : vector<64xf32>
    %b = arith.fptosi %q : vector<64xf32> to vector<64xi8>
    gdn_tile.yield %b, %most : vector<64xi8>, f32
  }
  gdn_tile.store %p#0, %state[%c0, %c0] dims [0, 1] : vector<64x64xi8>, memref<64x64xi8>
  gdn_tile.store %p#1, %scales[%c0] dims [0] : vector<64xf32>, memref<64xf32>
  return
}

// A folded state that something else looks at is no move.
// CHECK-LABEL: func.func @twice(
//   CHECK-NOT:   gdn_gpu
//       CHECK:   gdn_tile.delta_fold
func.func @twice(%count: index, %state: memref<?x?xf32>, %keys: memref<8x64xf32>,
    %deltas: memref<8x64xf32>, %decays: memref<8xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %m = gdn_tile.load %state[%c0, %c0] dims [0, 1] : memref<?x?xf32>, vector<64x64xf32>
  %k = gdn_tile.load %keys[%c0, %c0] dims [0, 1] : memref<8x64xf32>, vector<8x64xf32>
  %d = gdn_tile.load %deltas[%c0, %c0] dims [0, 1] : memref<8x64xf32>, vector<8x64xf32>
  %g = gdn_tile.load %decays[%c0] dims [0] : memref<8xf32>, vector<8xf32>
  %n = gdn_tile.delta_fold %m, %k, %d decay(%g) valid(%count)
      : vector<64x64xf32>, vector<8x64xf32>, vector<8x64xf32>, vector<8xf32>
  gdn_tile.store %n, %state[%c0, %c0] dims [0, 1] : vector<64x64xf32>, memref<?x?xf32>
  gdn_tile.store %n, %state[%count, %c0] dims [0, 1] : vector<64x64xf32>, memref<?x?xf32>
  return
}
