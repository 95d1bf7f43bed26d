// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A stage of a variant: the addresses of the regions of the workspace are the
// words behind the symbols; a region is row-major, with the sizes of its forms.
//
// RUN: gdn-tile-opt %s -convert-tile-to-cpu=lanes=8 -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func.func @stage(
//  CHECK-SAME:   %[[WORDS:[a-z0-9]+]]: !llvm.ptr,
//  CHECK-SAME:   conditions = {{\[\[}}["2", "N"], ["workers"]]]
//  CHECK-SAME:   stage_of = "prefill"
//  CHECK-SAME:   variant = "halves"
//  CHECK-SAME:   workspace = {{\[\[}}"N", "2*H + 1", "8", "4"], ["3", "8", "4"]]
//       CHECK:   %[[N_WORD:.+]] = llvm.load %[[WORDS]]
//       CHECK:   llvm.getelementptr %[[WORDS]][1]
//       CHECK:   %[[H_WORD:.+]] = llvm.load
//       CHECK:   %[[H:.+]] = arith.index_cast %[[H_WORD]]
//       CHECK:   %[[TWICE:.+]] = arith.muli %[[H]], %c2
//       CHECK:   %[[SIZE:.+]] = arith.addi %[[TWICE]], %c1
//       CHECK:   llvm.getelementptr %[[WORDS]][2]
//       CHECK:   %[[STRIDE:.+]] = arith.muli %[[SIZE]], %c8
//       CHECK:   %[[ROW:.+]] = arith.index_cast %[[STRIDE]]
//       CHECK:   llvm.insertvalue %[[ROW]], %{{.+}}[4, 0]
//       CHECK:   %[[PAIRS:.+]] = builtin.unrealized_conversion_cast
//       CHECK:   llvm.getelementptr %[[WORDS]][3]
//       CHECK:   %[[MORE:.+]] = builtin.unrealized_conversion_cast

// Axes of the grid are forms too.
//       CHECK:   scf.for %[[UNIT:.+]] =
//   CHECK-DAG:     arith.remui %[[UNIT]], %[[SIZE]]
//   CHECK-DAG:     arith.divui %[[UNIT]], %[[SIZE]]
//       CHECK:     memref.store %{{.+}}, %[[PAIRS]]
//       CHECK:     memref.store %{{.+}}, %[[MORE]]
func.func @stage(%n: index, %h: index, %pairs: memref<?x?x8xf32>, %more: memref<3x8xf32>)
    attributes {gdn_tile.stage = {grid = ["N", "2*H + 1"], symbols = ["N", "H"],
                                  stage_of = "prefill", variant = "halves",
                                  workspace = [["N", "2*H + 1", "8", "4"], ["3", "8", "4"]],
                                  conditions = [[["2", "N"], ["workers"]]]}} {
  %i = gdn_tile.block_id 0
  %j = gdn_tile.block_id 1
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gdn_tile.fill %zero : f32 -> vector<8xf32>
  gdn_tile.store %t, %pairs[%i, %j, %c0] dims [2] : vector<8xf32>, memref<?x?x8xf32>
  gdn_tile.store %t, %more[%c1, %c0] dims [1] : vector<8xf32>, memref<3x8xf32>
  return
}
