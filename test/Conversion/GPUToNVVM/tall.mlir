// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows of a thread that are neighbours (tall), of arrays whose columns lie side by side: one access
// for the rows of a column.
//
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s

#tall = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4, tall = true>
!wide = !gdn_gpu.fragment<128x128xf32, #tall>
!narrow = !gdn_gpu.fragment<128x128xbf16, #tall>

// 16 columns of four rows, 16 bytes each: the next column of a piece is 512 bytes away, the next
// piece 32 columns. A lane is four rows from the next one with others.
// CHECK-LABEL: llvm.func @wide(
//   CHECK-DAG:   %[[C4:.+]] = arith.constant 4 : i32
//   CHECK-DAG:   %[[C8:.+]] = arith.constant 8 : i32
//       CHECK:   %[[GROUP:.+]] = arith.divui %{{.+}}, %[[C8]] : i32
//       CHECK:   arith.muli %[[GROUP]], %[[C4]] : i32
//       CHECK:   llvm.load %{{.+}} {alignment = 16 : i64} : {{.+}} -> vector<4xf32>
//       CHECK:   llvm.getelementptr %[[FIRST:.+]][512]
//       CHECK:   llvm.getelementptr %[[FIRST]][16384]
// CHECK-COUNT-16:   llvm.store %{{.+}} {alignment = 16 : i64} : vector<4xf32>
//   CHECK-NOT:   llvm.store
//       CHECK:   llvm.return
func.func @wide(%n: index, %x: memref<?x128x128xf32, strided<[16384, 1, 128]>>)
    attributes {gdn_gpu.kernel = {threads = 256 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %i = gdn_gpu.block_id 0
  %c0 = arith.constant 0 : index
  %m = gdn_gpu.load %x[%i, %c0, %c0] dims [1, 2] aligned 16 : memref<?x128x128xf32, strided<[16384, 1, 128]>>, !wide
  gdn_gpu.store %m, %x[%i, %c0, %c0] dims [1, 2] aligned 16 : !wide, memref<?x128x128xf32, strided<[16384, 1, 128]>>
  return
}

// Of 16 bits a thread has 8 bytes of a column. Where nothing is known of the address and of the
// stride from column to column, the code asks, and goes element by element else.
// CHECK-LABEL: llvm.func @narrow(
//       CHECK:   scf.if
//       CHECK:     llvm.load %{{.+}} {alignment = 8 : i64} : {{.+}} -> vector<4xbf16>
//       CHECK:   else
//       CHECK:     llvm.load %{{.+}} {alignment = 2 : i64} : {{.+}} -> bf16
//       CHECK:   llvm.return
func.func @narrow(%n: index, %x: memref<?x128x128xbf16, strided<[?, 1, ?], offset: ?>>)
    attributes {gdn_gpu.kernel = {threads = 256 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %i = gdn_gpu.block_id 0
  %c0 = arith.constant 0 : index
  %m = gdn_gpu.load %x[%i, %c0, %c0] dims [1, 2] : memref<?x128x128xbf16, strided<[?, 1, ?], offset: ?>>, !narrow
  gdn_gpu.store %m, %x[%i, %c0, %c0] dims [1, 2] : !narrow, memref<?x128x128xbf16, strided<[?, 1, ?], offset: ?>>
  return
}

// Rows that are not all there are read element by element.
// CHECK-LABEL: llvm.func @some_rows(
//   CHECK-NOT:   alignment = 16
//       CHECK:   llvm.load %{{.+}} {alignment = 4 : i64} : {{.+}} -> f32
//       CHECK:   llvm.return
func.func @some_rows(%n: index, %x: memref<?x128x128xf32, strided<[16384, 1, 128]>>, %rows: memref<?xi32>, %y: memref<?x128x128xf32, strided<[16384, 1, 128]>>)
    attributes {gdn_gpu.kernel = {threads = 256 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %i = gdn_gpu.block_id 0
  %c0 = arith.constant 0 : index
  %count = memref.load %rows[%i] : memref<?xi32>
  %valid = arith.index_cast %count : i32 to index
  %m = gdn_gpu.load %x[%i, %c0, %c0] dims [1, 2] rows(%valid) aligned 16 : memref<?x128x128xf32, strided<[16384, 1, 128]>>, !wide
  gdn_gpu.store %m, %y[%i, %c0, %c0] dims [1, 2] rows(%valid) aligned 16 : !wide, memref<?x128x128xf32, strided<[16384, 1, 128]>>
  return
}
