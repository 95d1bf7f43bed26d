// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every attribute of gdn_tile, on a program and on the code made of it.
//
// RUN: gdn-tile-opt %s | gdn-tile-opt | FileCheck %s
// RUN: gdn-tile-opt -mlir-print-op-generic %s | gdn-tile-opt | FileCheck %s

// CHECK-LABEL: func.func @program(
//  CHECK-SAME:   gdn_tile.stage = {bits = "staged"
//  CHECK-SAME:   conditions = {{\[\[}}["2", "N", "H"], ["workers"]], {{\[\[}}], ["dependent"]]]
//  CHECK-SAME:   facts = {chunk = "64"}
//  CHECK-SAME:   grid = ["T floordiv 64 + N", "H"]
//  CHECK-SAME:   groups = ["2", "N", "H"]
//  CHECK-SAME:   multiples = ["H", "2"]
//  CHECK-SAME:   overlaps = "next"
//  CHECK-SAME:   stage_of = "prefill", symbols = ["N", "T", "H"]
//  CHECK-SAME:   variant = ["staged", "staged-v-split-2"]
//  CHECK-SAME:   workspace = {{\[\[}}"N", "4"], ["4"]]
func.func @program(%n: index, %t: index, %h: index, %x: memref<?xf32, strided<[2]>>,
                   %w: memref<?xf32>, %last: memref<i32>)
    attributes {gdn_tile.stage = {grid = ["T floordiv 64 + N", "H"], symbols = ["N", "T", "H"],
                                  groups = ["2", "N", "H"], multiples = ["H", "2"],
                                  facts = {chunk = "64"}, stage_of = "prefill",
                                  variant = ["staged", "staged-v-split-2"],
                                  workspace = [["N", "4"], ["4"]],
                                  conditions = [[["2", "N", "H"], ["workers"]], [[], ["dependent"]]],
                                  overlaps = "next", bits = "staged"}} {
  return
}

// CHECK-LABEL: func.func private @last()
//  CHECK-SAME:   conditions = {staged = {{\[\[}}["N"], ["2"]], {any = {{\[\[\[}}["N"], ["1"]]], {{\[\[}}["T"], ["N"]], {{\[}}["4"], ["T"]]]]}, {any_batch = {{\[\[\]}}, {{\[\[}}["N"], ["3"]]]]}]}
//  CHECK-SAME:   grid = ["N + 1", "H", "2"], overlaps = "last", same_chunks = 2 : i64, variant = "staged"
func.func private @last()
    attributes {gdn_tile.stage = {overlaps = "last", variant = "staged", grid = ["N + 1", "H", "2"],
                                  same_chunks = 2,
                                  conditions = {staged = [[["N"], ["2"]], {any = [[[["N"], ["1"]]], [[["T"], ["N"]], [["4"], ["T"]]]]}, {any_batch = [[], [[["N"], ["3"]]]]}]}}}

// CHECK-LABEL: func.func private @row_values()
//  CHECK-SAME:   gdn_tile.stage = {grid = ["N", "H"], row_values = 8 : i64}
func.func private @row_values() attributes {gdn_tile.stage = {grid = ["N", "H"], row_values = 8}}

// CHECK-LABEL: func.func private @awaits_stage()
//  CHECK-SAME:   gdn_tile.stage = {awaits_stage = 1 : i64}
func.func private @awaits_stage() attributes {gdn_tile.stage = {awaits_stage = 1}}

// CHECK-LABEL: func.func private @blocks_stay()
//  CHECK-SAME:   gdn_tile.stage = {blocks_stay = 1 : i64, grid = ["N", "H"]}
func.func private @blocks_stay() attributes {gdn_tile.stage = {grid = ["N", "H"], blocks_stay = 1}}

// CHECK-LABEL: func.func private @follows()
//  CHECK-SAME:   gdn_tile.stage = {follows = 1 : i64, grid = ["N", "H"]}
func.func private @follows() attributes {gdn_tile.stage = {grid = ["N", "H"], follows = 1}}

// CHECK-LABEL: func.func private @copies_ahead()
//  CHECK-SAME:   gdn_tile.stage = {copies_ahead = 1 : i64, grid = ["N", "H"]}
func.func private @copies_ahead() attributes {gdn_tile.stage = {grid = ["N", "H"], copies_ahead = 1}}

// CHECK-LABEL: func.func private @token_pieces()
//  CHECK-SAME:   gdn_tile.stage = {grid = ["N", "H", "4"], token_pieces = 4 : i64}
func.func private @token_pieces()
    attributes {gdn_tile.stage = {grid = ["N", "H", "4"], token_pieces = 4}}

// A loop over tokens; the rest is in token-loop.mlir.
// CHECK-LABEL: func.func @loop(
//       CHECK:   } {gdn_tile.tokens = 8 : i64}
func.func @loop(%begin: index, %end: index) {
  %c1 = arith.constant 1 : index
  scf.for %t = %begin to %end step %c1 {
  } {gdn_tile.tokens = 8}
  return
}

// Code has words, not symbols and regions, as arguments.
// CHECK-LABEL: func.func private @code(index)
//  CHECK-SAME:   scratch_bytes = 512 : i64, symbols = ["N", "H"]
func.func private @code(index)
    attributes {gdn_tile.stage = {scratch_bytes = 512, symbols = ["N", "H"],
                                  workspace = [["N", "4"]]}}
// CHECK-LABEL: llvm.func @lowered(!llvm.ptr)
//  CHECK-SAME:   grid = ["N"], symbols = ["N"]
llvm.func @lowered(!llvm.ptr)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"], workspace = [["N", "4"]]}}
