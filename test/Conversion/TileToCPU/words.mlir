// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The words of a call: per view its pointer, sizes and strides, per null slot its
// value, then the symbols (word 6, N, is read by nobody); the range of blocks and
// the axes of the grid.
//
// RUN: gdn-tile-opt %s -convert-tile-to-cpu=lanes=8 -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func.func @words(
//  CHECK-SAME:   %[[WORDS:[a-z0-9]+]]: !llvm.ptr, %[[BEGIN:[a-z0-9]+]]: i64, %[[END:[a-z0-9]+]]: i64, %[[SCRATCH:[a-z0-9]+]]: !llvm.ptr {llvm.align = 64 : i64, llvm.noalias})
//  CHECK-SAME:   grid = ["N", "H"], scratch_bytes = 64 : i64
//       CHECK:   %[[DATA:.+]] = llvm.load %[[WORDS]] : !llvm.ptr -> i64
//       CHECK:   %[[P0:.+]] = llvm.inttoptr %[[DATA]]
//       CHECK:   llvm.insertvalue %[[P0]], %{{.+}}[1]
//       CHECK:   llvm.getelementptr %[[WORDS]][1]
//       CHECK:   %[[SIZE0:.+]] = llvm.load
//       CHECK:   llvm.insertvalue %[[SIZE0]], %{{.+}}[3, 0]
//       CHECK:   llvm.getelementptr %[[WORDS]][2]
//       CHECK:   %[[SIZE1:.+]] = llvm.load
//       CHECK:   llvm.insertvalue %[[SIZE1]], %{{.+}}[3, 1]
//       CHECK:   llvm.getelementptr %[[WORDS]][3]
//       CHECK:   %[[STRIDE0:.+]] = llvm.load
//       CHECK:   llvm.insertvalue %[[STRIDE0]], %{{.+}}[4, 0]
//       CHECK:   llvm.getelementptr %[[WORDS]][4]
//       CHECK:   %[[STRIDE1:.+]] = llvm.load
//       CHECK:   llvm.insertvalue %[[STRIDE1]], %{{.+}}[4, 1]
//       CHECK:   %[[VIEW:.+]] = builtin.unrealized_conversion_cast
//       CHECK:   llvm.getelementptr %[[WORDS]][5]
//       CHECK:   %[[NULL_WORD:.+]] = llvm.load
//       CHECK:   %[[NULL:.+]] = arith.index_cast %[[NULL_WORD]]
//       CHECK:   llvm.getelementptr %[[WORDS]][7]
//       CHECK:   %[[H_WORD:.+]] = llvm.load
//       CHECK:   %[[H:.+]] = arith.index_cast %[[H_WORD]]
//       CHECK:   %[[FROM:.+]] = arith.index_cast %[[BEGIN]]
//       CHECK:   %[[TO:.+]] = arith.index_cast %[[END]]
//       CHECK:   scf.for %[[UNIT:.+]] = %[[FROM]] to %[[TO]]

// The last axis runs fastest.
//   CHECK-DAG:     %[[COLUMN:.+]] = arith.remui %[[UNIT]], %[[H]]
//   CHECK-DAG:     %[[ROW:.+]] = arith.divui %[[UNIT]], %[[H]]
//       CHECK:     memref.store %{{.+}}, %[[VIEW]][%[[ROW]], %[[COLUMN]]]
func.func @words(%n: index, %h: index, %x: memref<?x?xf32, strided<[?, ?]>>,
                 %null: index)
    attributes {gdn_tile.stage = {grid = ["N", "H"], symbols = ["N", "H"]}} {
  %row = gdn_tile.block_id 0
  %column = gdn_tile.block_id 1
  %i = arith.index_cast %null : index to i32
  %f = arith.sitofp %i : i32 to f32
  %t = gdn_tile.fill %f : f32 -> vector<1xf32>
  gdn_tile.store %t, %x[%row, %column] dims [1] : vector<1xf32>, memref<?x?xf32, strided<[?, ?]>>
  return
}
