// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fragments from global memory: the three ways, who asks what, and what is not
// read.
//
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s

#state = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#half = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 8>
#warp = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>

// Everything is known: 16 loads of 16 bytes, no question. The program writes
// the view, so they are not invariant.
// CHECK-LABEL: llvm.func @aligned(
//   CHECK-NOT:   scf.if
// CHECK-COUNT-16: llvm.load %{{.+}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
//   CHECK-NOT:   llvm.load {{.+}} -> vector
//       CHECK:   llvm.return
func.func @aligned(%n: index, %x: memref<?x128x128xf32, strided<[?, 128, 1]>>)
    attributes {gdn_gpu.kernel = {threads = 256 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %i = gdn_gpu.block_id 0
  %c0 = arith.constant 0 : index
  %m = gdn_gpu.load %x[%i, %c0, %c0] dims [1, 2] aligned 16
      : memref<?x128x128xf32, strided<[?, 128, 1]>>, !gdn_gpu.fragment<128x128xf32, #state>
  gdn_gpu.store %m, %x[%i, %c0, %c0] dims [1, 2] aligned 16
      : !gdn_gpu.fragment<128x128xf32, #state>, memref<?x128x128xf32, strided<[?, 128, 1]>>
  return
}

// Eight bf16 in 16 bytes; alignment is asked of address and stride.
// CHECK-LABEL: llvm.func @asks(
//       CHECK:   %[[ADDRESS:.+]] = llvm.ptrtoint
//       CHECK:   %[[BITS:.+]] = arith.ori %[[ADDRESS]],
//       CHECK:   %[[LOW:.+]] = arith.andi %[[BITS]], %c15
//       CHECK:   %[[FITS:.+]] = arith.cmpi eq, %[[LOW]], %c0
//       CHECK:   scf.if %[[FITS]] -> (vector<8xi32>) {
// CHECK-COUNT-2:     llvm.load %{{.+}} invariant {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xbf16>
//   CHECK-NOT:     llvm.load
//       CHECK:   } else {
// CHECK-COUNT-16:  llvm.load %{{.+}} invariant {alignment = 2 : i64} : !llvm.ptr<1> -> bf16
func.func @asks(%n: index, %x: memref<?x?xbf16, strided<[?, 1]>>, %y: memref<64x64xbf16>)
    attributes {gdn_gpu.kernel = {threads = 256 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %i = gdn_gpu.block_id 0
  %c0 = arith.constant 0 : index
  %m = gdn_gpu.load %x[%i, %c0] dims [0, 1]
      : memref<?x?xbf16, strided<[?, 1]>>, !gdn_gpu.fragment<64x64xbf16, #half>
  gdn_gpu.store %m, %y[%c0, %c0] dims [0, 1] aligned 16 : !gdn_gpu.fragment<64x64xbf16, #half>, memref<64x64xbf16>
  return
}

// Steps side by side: a lane reads the three steps of its four channels as three
// times 8 bytes. Channels side by side: 8 bytes per step. Elements are transposed
// around behind the branch, where nothing that is asked for next waits for them.
// CHECK-LABEL: llvm.func @window(
//       CHECK:   scf.if %{{.+}} -> (vector<6xi32>) {
// CHECK-COUNT-3:     llvm.load %{{.+}} {alignment = 8 : i64} : !llvm.ptr<1> -> vector<4xbf16>
//       CHECK:   } else {
//       CHECK:     scf.if %{{.+}} -> (vector<6xi32>) {
// CHECK-COUNT-3:       llvm.load %{{.+}} {alignment = 8 : i64} : !llvm.ptr<1> -> vector<4xbf16>
//   CHECK-NOT:       vector.shuffle
//       CHECK:     } else {
// CHECK-COUNT-12:      llvm.load %{{.+}} -> bf16
//       CHECK:   %[[IS:.+]] = arith.cmpi ne
//       CHECK:   vector.shuffle %{{.+}} [0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11]
//       CHECK:   arith.select %[[IS]]
func.func @window(%n: index, %x: memref<?x?x3xbf16, strided<[?, ?, ?]>>, %y: memref<3x128xbf16>)
    attributes {gdn_gpu.kernel = {threads = 256 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %i = gdn_gpu.block_id 0
  %c0 = arith.constant 0 : index
  gdn_gpu.await_launch
  gdn_gpu.warps 0 for 1 {
    %m = gdn_gpu.load %x[%i, %c0, %c0] dims [2, 1]
        : memref<?x?x3xbf16, strided<[?, ?, ?]>>, !gdn_gpu.fragment<3x128xbf16, #warp>
    gdn_gpu.store %m, %y[%c0, %c0] dims [0, 1] aligned 16 : !gdn_gpu.fragment<3x128xbf16, #warp>, memref<3x128xbf16>
  }
  return
}

// Rows past the limit, and columns past the tile, are not read.
// CHECK-LABEL: llvm.func @tail(
//       CHECK:   %[[ROW:.+]] = arith.cmpi sgt, %{{.+}}, %c0{{.*}} : i64
//       CHECK:   scf.if %[[ROW]] -> (vector<4xf32>) {
//       CHECK:     %[[COLUMN:.+]] = arith.cmpi slt, %{{.+}}, %c96{{.*}} : i32
//       CHECK:     scf.if %[[COLUMN]] -> (vector<4xf32>) {
//       CHECK:       llvm.load %{{.+}} -> vector<4xf32>
//       CHECK:   } else {
//  CHECK-NEXT:     scf.yield %cst
func.func @tail(%n: index, %x: memref<?x?xf32, strided<[?, 1]>>, %y: memref<1x96xf32>)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %i = gdn_gpu.block_id 0
  %c0 = arith.constant 0 : index
  %m = gdn_gpu.load %x[%i, %c0] dims [0, 1] rows(%n) aligned 16
      : memref<?x?xf32, strided<[?, 1]>>, !gdn_gpu.fragment<1x96xf32, #warp>
  gdn_gpu.store %m, %y[%c0, %c0] dims [0, 1] aligned 16 : !gdn_gpu.fragment<1x96xf32, #warp>, memref<1x96xf32>
  return
}

// None of the rows or all: one branch around both ways to them.
// CHECK-LABEL: llvm.func @none_or_all(
//       CHECK:   %[[SOME:.+]] = arith.cmpi ne
//       CHECK:   scf.if %[[SOME]] -> (vector<8xi32>) {
//       CHECK:     scf.if
// CHECK-COUNT-4:     llvm.load %{{.+}} -> vector<4xbf16>
//   CHECK-NOT:     scf.if
//       CHECK:     } else {
// CHECK-COUNT-16:    llvm.load %{{.+}} -> bf16
//   CHECK-NOT:   scf.if
//       CHECK:   llvm.store
func.func @none_or_all(%n: index, %x: memref<?x?xbf16, strided<[?, 1]>>, %y: memref<4x128xbf16>)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %i = gdn_gpu.block_id 0
  %c0 = arith.constant 0 : index
  %m = gdn_gpu.load %x[%i, %c0] dims [0, 1] rows(%n) whole
      : memref<?x?xbf16, strided<[?, 1]>>, !gdn_gpu.fragment<4x128xbf16, #warp>
  gdn_gpu.store %m, %y[%c0, %c0] dims [0, 1] aligned 16 : !gdn_gpu.fragment<4x128xbf16, #warp>, memref<4x128xbf16>
  return
}
