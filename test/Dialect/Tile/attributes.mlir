// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every attribute of gdn_tile, on a program and on the code made of it.
//
// RUN: gdn-tile-opt %s | gdn-tile-opt | FileCheck %s
// RUN: gdn-tile-opt -mlir-print-op-generic %s | gdn-tile-opt | FileCheck %s

// CHECK-LABEL: func.func @program(
//  CHECK-SAME:   gdn_tile.bits = "staged"
//  CHECK-SAME:   gdn_tile.conditions = {{\[\[}}["2", "N", "H"], ["workers"]], {{\[\[}}], ["dependent"]]]
//  CHECK-SAME:   gdn_tile.facts = {chunk = "64"}
//  CHECK-SAME:   gdn_tile.grid = ["T floordiv 64 + N", "H"]
//  CHECK-SAME:   gdn_tile.groups = ["2", "N", "H"]
//  CHECK-SAME:   gdn_tile.multiples = ["H", "2"]
//  CHECK-SAME:   gdn_tile.overlaps = "next"
//  CHECK-SAME:   gdn_tile.stage_of = "prefill", gdn_tile.symbols = ["N", "T", "H"]
//  CHECK-SAME:   gdn_tile.variant = ["staged", "staged-v-split-2"]
//  CHECK-SAME:   gdn_tile.workspace = {{\[\[}}"N", "4"], ["4"]]
func.func @program(%n: index, %t: index, %h: index, %x: memref<?xf32, strided<[2]>>,
                   %w: memref<?xf32>, %last: memref<i32>)
    attributes {gdn_tile.grid = ["T floordiv 64 + N", "H"], gdn_tile.symbols = ["N", "T", "H"],
                gdn_tile.groups = ["2", "N", "H"], gdn_tile.multiples = ["H", "2"],
                gdn_tile.facts = {chunk = "64"}, gdn_tile.stage_of = "prefill",
                gdn_tile.variant = ["staged", "staged-v-split-2"],
                gdn_tile.workspace = [["N", "4"], ["4"]],
                gdn_tile.conditions = [[["2", "N", "H"], ["workers"]], [[], ["dependent"]]],
                gdn_tile.overlaps = "next", gdn_tile.bits = "staged"} {
  return
}

// CHECK-LABEL: func.func private @last()
//  CHECK-SAME:   gdn_tile.conditions = {staged = {{\[\[}}["N"], ["2"]], {any = {{\[\[\[}}["N"], ["1"]]], {{\[\[}}["T"], ["N"]], {{\[}}["4"], ["T"]]]]}]}
//  CHECK-SAME:   gdn_tile.grid = ["N + 1", "H", "2"], gdn_tile.overlaps = "last", gdn_tile.same_chunks = 2 : i64, gdn_tile.variant = "staged"
func.func private @last()
    attributes {gdn_tile.overlaps = "last", gdn_tile.variant = "staged",
                gdn_tile.grid = ["N + 1", "H", "2"], gdn_tile.same_chunks = 2,
                gdn_tile.conditions = {staged = [[["N"], ["2"]],
                    {any = [[[["N"], ["1"]]], [[["T"], ["N"]], [["4"], ["T"]]]]}]}}

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
//  CHECK-SAME:   gdn_tile.scratch_bytes = 512 : i64, gdn_tile.symbols = ["N", "H"]
func.func private @code(index)
    attributes {gdn_tile.scratch_bytes = 512, gdn_tile.symbols = ["N", "H"],
                gdn_tile.workspace = [["N", "4"]]}
// CHECK-LABEL: llvm.func @lowered(!llvm.ptr)
//  CHECK-SAME:   gdn_tile.grid = ["N"], gdn_tile.symbols = ["N"]
llvm.func @lowered(!llvm.ptr)
    attributes {gdn_tile.grid = ["N"], gdn_tile.symbols = ["N"],
                gdn_tile.workspace = [["N", "4"]]}
