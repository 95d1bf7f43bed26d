// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows that go round the warps, and sums that the lanes of a row share out.
//
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s

#apart = #gdn_gpu.rows<warps = 8, lanes = 16, vector = 4>
#turns = #gdn_gpu.rows<warps = 8, lanes = 16, vector = 4, cyclic = true>
!apart = !gdn_gpu.fragment<128x128xf32, #apart>
!turns = !gdn_gpu.fragment<128x128xf32, #turns>
!sums = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#turns>>
!pool = memref<?x128x128xf32, strided<[16384, 128, 1]>>
!rows = memref<?x128xf32, strided<[128, 1]>>

// A warp's own 16 rows: from one of a thread to its next are two, 1,024 bytes.
// CHECK-LABEL: llvm.func @apart(
//   CHECK-DAG:   %[[C16:.+]] = arith.constant 16 : i32
//       CHECK:   arith.muli %{{.+}}, %[[C16]] : i32
//       CHECK:   llvm.getelementptr %[[FIRST:.+]][256]
//       CHECK:   llvm.getelementptr %[[FIRST]][1024]
//       CHECK:   llvm.getelementptr %[[FIRST]][2048]
//   CHECK-NOT:   llvm.getelementptr %{{.+}}[8192]
//       CHECK:   llvm.return
func.func @apart(%n: index, %x: !pool)
    attributes {gdn_gpu.kernel = {threads = 256 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %i = gdn_gpu.block_id 0
  %c0 = arith.constant 0 : index
  %m = gdn_gpu.load %x[%i, %c0, %c0] dims [1, 2] aligned 16 : !pool, !apart
  gdn_gpu.store %m, %x[%i, %c0, %c0] dims [1, 2] aligned 16 : !apart, !pool
  return
}

// In turns: two rows further for each warp, and 16 from one of a thread to its
// next, 8,192 bytes. Both loads and stores.
// CHECK-LABEL: llvm.func @turns(
//   CHECK-DAG:   %[[C2:.+]] = arith.constant 2 : i32
//       CHECK:   arith.muli %{{.+}}, %[[C2]] : i32
//       CHECK:   llvm.getelementptr %[[FIRST:.+]][256]
//       CHECK:   llvm.getelementptr %[[FIRST]][8192]
//       CHECK:   llvm.getelementptr %[[FIRST]][57344]
//       CHECK:   llvm.store
//       CHECK:   llvm.getelementptr %[[TO:.+]][8192]
//       CHECK:   llvm.getelementptr %[[TO]][57344]
//       CHECK:   llvm.return
func.func @turns(%n: index, %x: !pool)
    attributes {gdn_gpu.kernel = {threads = 256 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %i = gdn_gpu.block_id 0
  %c0 = arith.constant 0 : index
  %m = gdn_gpu.load %x[%i, %c0, %c0] dims [1, 2] aligned 16 : !pool, !turns
  gdn_gpu.store %m, %x[%i, %c0, %c0] dims [1, 2] aligned 16 : !turns, !pool
  return
}

// Eight rows of a thread over 16 lanes: four exchanges leave four of them, then two, then one;
// one more adds the last two lanes, and each row's sum comes from the lane that has it: eight
// lanes of the row's own half (mask 16, clamp 31).
// CHECK-LABEL: llvm.func @shared(
//   CHECK-DAG:   %[[C1:.+]] = arith.constant 1 : i32
//   CHECK-DAG:   %[[C2:.+]] = arith.constant 2 : i32
//   CHECK-DAG:   %[[C4:.+]] = arith.constant 4 : i32
//   CHECK-DAG:   %[[C7:.+]] = arith.constant 7 : i32
//   CHECK-DAG:   %[[C8:.+]] = arith.constant 8 : i32
//   CHECK-DAG:   %[[HALF:.+]] = arith.constant 4127 : i32
//       CHECK:   %[[BIT:.+]] = arith.andi %{{.+}}, %[[C1]] : i32
//       CHECK:   %[[ODD:.+]] = arith.cmpi ne, %[[BIT]], %{{.+}} : i32
//       CHECK:   %[[KEPT:.+]] = arith.select %[[ODD]], %[[ROW1:.+]], %[[ROW0:.+]] : f32
//       CHECK:   %[[GIVEN:.+]] = arith.select %[[ODD]], %[[ROW0]], %[[ROW1]] : f32
//       CHECK:   %[[OTHER:.+]] = nvvm.shfl.sync bfly %{{.+}}, %[[GIVEN]], %[[C1]], %{{.+}} : f32 -> f32
//       CHECK:   arith.addf %[[KEPT]], %[[OTHER]] : f32
// CHECK-COUNT-3:   nvvm.shfl.sync bfly %{{.+}}, %{{.+}}, %[[C1]],
// CHECK-COUNT-2:   nvvm.shfl.sync bfly %{{.+}}, %{{.+}}, %[[C2]],
//       CHECK:   nvvm.shfl.sync bfly %{{.+}}, %{{.+}}, %[[C4]],
//   CHECK-NOT:   arith.select
//       CHECK:   %[[LAST:.+]] = nvvm.shfl.sync bfly %{{.+}}, %{{.+}}, %[[C8]],
//       CHECK:   %[[SUM:.+]] = arith.addf %{{.+}}, %[[LAST]] : f32
// CHECK-COUNT-7:   nvvm.shfl.sync idx %{{.+}}, %[[SUM]], %{{.+}}, %[[HALF]] : f32 -> f32
//       CHECK:   nvvm.shfl.sync idx %{{.+}}, %[[SUM]], %[[C7]], %[[HALF]] : f32 -> f32
//   CHECK-NOT:   nvvm.shfl.sync
//       CHECK:   llvm.return
func.func @shared(%n: index, %x: !pool, %y: !rows)
    attributes {gdn_gpu.kernel = {threads = 256 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %i = gdn_gpu.block_id 0
  %c0 = arith.constant 0 : index
  %m = gdn_gpu.load %x[%i, %c0, %c0] dims [1, 2] aligned 16 : !pool, !turns
  %s = gdn_gpu.map_rows %m : !turns -> !sums {
  ^bb0(%r: index, %row: vector<128xf32>):
    %sum = vector.reduction <add>, %row fastmath<reassoc> : vector<128xf32> into f32
    gdn_gpu.yield %sum : f32
  } {share_sums}
  gdn_gpu.store %s, %y[%i, %c0] dims [1] : !sums, !rows
  return
}

#eight = #gdn_gpu.rows<warps = 1, lanes = 8, vector = 4>

// Three rows of a thread: an odd number is not shared out. Three exchanges for each.
// CHECK-LABEL: llvm.func @three(
//   CHECK-NOT:   nvvm.shfl.sync idx
// CHECK-COUNT-9:   nvvm.shfl.sync bfly
//   CHECK-NOT:   nvvm.shfl.sync
//       CHECK:   llvm.return
func.func @three(%n: index, %x: memref<?x12x32xf32, strided<[384, 32, 1]>>, %y: memref<?x12xf32, strided<[12, 1]>>)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %i = gdn_gpu.block_id 0
  %c0 = arith.constant 0 : index
  %m = gdn_gpu.load %x[%i, %c0, %c0] dims [1, 2] aligned 16
      : memref<?x12x32xf32, strided<[384, 32, 1]>>, !gdn_gpu.fragment<12x32xf32, #eight>
  %s = gdn_gpu.map_rows %m : !gdn_gpu.fragment<12x32xf32, #eight> -> !gdn_gpu.fragment<12xf32, #gdn_gpu.per_row<#eight>> {
  ^bb0(%r: index, %row: vector<32xf32>):
    %sum = vector.reduction <add>, %row fastmath<reassoc> : vector<32xf32> into f32
    gdn_gpu.yield %sum : f32
  } {share_sums}
  gdn_gpu.store %s, %y[%i, %c0] dims [1] : !gdn_gpu.fragment<12xf32, #gdn_gpu.per_row<#eight>>, memref<?x12xf32, strided<[12, 1]>>
  return
}

// Six: of two lanes each goes on with three, and with these as above.
// CHECK-LABEL: llvm.func @six(
// CHECK-COUNT-9:   nvvm.shfl.sync bfly
// CHECK-COUNT-6:   nvvm.shfl.sync idx
//   CHECK-NOT:   nvvm.shfl.sync
//       CHECK:   llvm.return
func.func @six(%n: index, %x: memref<?x24x32xf32, strided<[768, 32, 1]>>, %y: memref<?x24xf32, strided<[24, 1]>>)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %i = gdn_gpu.block_id 0
  %c0 = arith.constant 0 : index
  %m = gdn_gpu.load %x[%i, %c0, %c0] dims [1, 2] aligned 16
      : memref<?x24x32xf32, strided<[768, 32, 1]>>, !gdn_gpu.fragment<24x32xf32, #eight>
  %s = gdn_gpu.map_rows %m : !gdn_gpu.fragment<24x32xf32, #eight> -> !gdn_gpu.fragment<24xf32, #gdn_gpu.per_row<#eight>> {
  ^bb0(%r: index, %row: vector<32xf32>):
    %sum = vector.reduction <add>, %row fastmath<reassoc> : vector<32xf32> into f32
    gdn_gpu.yield %sum : f32
  } {share_sums}
  gdn_gpu.store %s, %y[%i, %c0] dims [1] : !gdn_gpu.fragment<24xf32, #gdn_gpu.per_row<#eight>>, memref<?x24xf32, strided<[24, 1]>>
  return
}
