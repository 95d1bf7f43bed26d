// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program of token-wise work whose last axis is pieces of tokens (`token_pieces`): four of them
// go to the warps, each with the tokens of its own coordinate; a loop may carry tiles, and what is
// read is asked for first. More than two warps are for few tokens, and have registers of twice
// as many. A program of a kernel without a rule has a warp for each block. Left alone are a program
// with a sum over tokens, one with more pieces than a block takes, and a convolution whose bias is
// computed.
//
// RUN: gdn-opt %s -gdn-schedule-token-groups -gdn-gpu-check | FileCheck %s

// With `row_values` a lane has as many values of a row side by side, here a warp two rows at once;
// it stores over what other lanes have loaded.
// RUN: gdn-opt %S/../Conversion/GDNToTile/fused-norm.mlir -gdn-fuse=norm-with-rule -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=fused-v-split-2:fused=2;v-split=2;norm=behind,staged: value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-token-groups | FileCheck %s --check-prefix=SIDE
// SIDE: #[[$ROW:.+]] = #gdn_gpu.rows<warps = 1, lanes = 16, vector = 8>
// SIDE-LABEL: func.func @prefill__norm(
//       SIDE:   gdn_gpu.each_warp 0 for 2
//       SIDE:     gdn_gpu.load {{.+}} <4x128xbf16, #[[$ROW]]>
//       SIDE:     vector.reduction
//       SIDE:     gdn_gpu.warp_barrier
//  SIDE-NEXT:     gdn_gpu.store

!inputs = memref<?x?x128xbf16, strided<[?, ?, 1], offset: ?>>

// CHECK-LABEL: func.func @inputs(
//  CHECK-SAME:   %[[X:[a-z0-9]+]]: memref<?x?x128xbf16
//  CHECK-SAME:   min_blocks = 2 : i64, threads = 128 : i64}, gdn_tile.stage = {grid = ["T", "H"], symbols = ["T", "H"]}
//       CHECK:   gdn_gpu.each_warp 0 for 4 {
//       CHECK:   ^bb0(%[[GROUP:.+]]: index):
//       CHECK:     %[[H:.+]] = gdn_gpu.block_id 1
//       CHECK:     %[[FIRST:.+]] = arith.muli %[[GROUP]], %c8
//       CHECK:     scf.if
//       CHECK:       gdn_gpu.load %{{.+}}<4x128xf32
//       CHECK:       %[[IN:.+]] = gdn_gpu.load %[[X]][%[[FIRST]], %[[H]], %c0] dims [0, 2] rows(%{{.+}}) : {{.+}}<8x128xbf16, #[[$ROWS:.+]]>
//       CHECK:       %[[Y:.+]], %{{.+}} = gdn_gpu.conv1d
//       CHECK:       %[[UNIT:.+]] = gdn_gpu.map_rows %[[Y]]
//       CHECK:         vector.reduction <add>
//       CHECK:       gdn_gpu.store %[[UNIT]], %{{.+}}[%[[FIRST]], %[[H]], %c0]
func.func @inputs(%T: index, %H: index, %x: !inputs, %w: memref<4x128xf32>, %out: !inputs)
    attributes {gdn_tile.stage = {grid = ["T", "H", "4"], symbols = ["T", "H"], token_pieces = 4}} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %h = gdn_tile.block_id 1
  %group = gdn_tile.block_id 2
  %first = arith.muli %group, %c8 : index
  %live = arith.cmpi ult, %first, %T : index
  scf.if %live {
    %weight = gdn_tile.load %w[%c0, %c0] dims [0, 1] : memref<4x128xf32>, vector<4x128xf32>
    %window = gdn_tile.fill %zero : f32 -> vector<3x128xf32>
    %in = gdn_tile.load %x[%first, %h, %c0] dims [0, 2] rows(%T) : !inputs, vector<8x128xbf16>
    %wide = gdn_tile.map_rows %in : vector<8x128xbf16> -> vector<8x128xf32> {
    ^bb0(%i: index, %row: vector<128xbf16>):
      %n = arith.extf %row : vector<128xbf16> to vector<128xf32>
      gdn_tile.yield %n : vector<128xf32>
    }
    %y, %next = gdn_tile.conv1d %wide, %window, %weight valid(%c8) : vector<8x128xf32>, vector<3x128xf32>, vector<4x128xf32>
    %unit = gdn_tile.map_rows %y : vector<8x128xf32> -> vector<8x128xbf16> {
    ^bb0(%i: index, %row: vector<128xf32>):
      %squares = arith.mulf %row, %row : vector<128xf32>
      %sum = vector.reduction <add>, %squares fastmath<reassoc> : vector<128xf32> into f32
      %length = math.rsqrt %sum : f32
      %all = vector.broadcast %length : f32 to vector<128xf32>
      %r = arith.mulf %row, %all : vector<128xf32>
      %n = arith.truncf %r : vector<128xf32> to vector<128xbf16>
      gdn_tile.yield %n : vector<128xbf16>
    }
    gdn_tile.store %unit, %out[%first, %h, %c0] dims [0, 2] : vector<8x128xbf16>, !inputs
  }
  return
}

// Narrow tiles leave registers for twice as many blocks. The weight is a row.
// CHECK-LABEL: func.func @recurrence(
//  CHECK-SAME:   min_blocks = 16 : i64, threads = 64 : i64}, gdn_tile.stage = {grid = ["T"]
//       CHECK:   gdn_gpu.each_warp 0 for 2 {
//       CHECK:     %[[WEIGHT:.+]] = gdn_gpu.load {{.*}}<128xbf16, #gdn_gpu.per_column
//       CHECK:     %[[START:.+]] = gdn_gpu.load
//       CHECK:     scf.for {{.*}} iter_args(%[[HELD:.+]] = %[[START]]) -> (!gdn_gpu.fragment<4x128xbf16
//       CHECK:       %[[NEXT:.+]] = gdn_gpu.load
//       CHECK:       %[[OUT:.+]] = gdn_gpu.map_rows %[[HELD]], %[[WEIGHT]]
//       CHECK:       gdn_gpu.store %[[OUT]]
//       CHECK:       scf.yield %[[NEXT]]
func.func @recurrence(%T: index, %x: memref<?x128xbf16>, %w: memref<128xbf16>)
    attributes {gdn_tile.stage = {grid = ["T", "2"], symbols = ["T"], token_pieces = 2}} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %t = gdn_tile.block_id 1
  %weight = gdn_tile.load %w[%c0] dims [0] : memref<128xbf16>, vector<128xbf16>
  %start = gdn_tile.load %x[%t, %c0] dims [0, 1] : memref<?x128xbf16>, vector<4x128xbf16>
  %end = scf.for %at = %t to %T step %c4 iter_args(%held = %start) -> (vector<4x128xbf16>) {
    %out = gdn_tile.map_rows %held : vector<4x128xbf16> -> vector<4x128xbf16> {
    ^bb0(%i: index, %row: vector<128xbf16>):
      %r = arith.mulf %row, %weight : vector<128xbf16>
      gdn_tile.yield %r : vector<128xbf16>
    }
    %behind = arith.addi %at, %c4 : index
    %next = gdn_tile.load %x[%behind, %c0] dims [0, 1] : memref<?x128xbf16>, vector<4x128xbf16>
    gdn_tile.store %out, %x[%at, %c0] dims [0, 1] : vector<4x128xbf16>, memref<?x128xbf16>
    scf.yield %next : vector<4x128xbf16>
  }
  return
}

// CHECK-LABEL: func.func @sums(
//  CHECK-SAME:   grid = ["T", "4"]
//       CHECK:   gdn_tile.prefix_sum
func.func @sums(%T: index, %x: memref<?x64xf32>)
    attributes {gdn_tile.stage = {grid = ["T", "4"], symbols = ["T"], token_pieces = 4}} {
  %c0 = arith.constant 0 : index
  %t = gdn_tile.block_id 0
  %g = gdn_tile.load %x[%t, %c0] dims [1] : memref<?x64xf32>, vector<64xf32>
  %s = gdn_tile.prefix_sum %g : vector<64xf32>
  %e = gdn_tile.map_rows %s : vector<64xf32> -> vector<64xf32> {
  ^bb0(%i: index, %v: f32):
    %r = math.exp %v : f32
    gdn_tile.yield %r : f32
  }
  gdn_tile.store %e, %x[%t, %c0] dims [1] : vector<64xf32>, memref<?x64xf32>
  return
}

// CHECK-LABEL: func.func @whole(
//  CHECK-SAME:   %[[BIAS:[a-z0-9]+]]: memref<64xf32>
//  CHECK-SAME:   threads = 32 : i64}, gdn_tile.stage = {grid = ["T", "4"], symbols = ["T"]}
//       CHECK:   gdn_gpu.warps 0 for 1 {
//   CHECK-DAG:     %[[T:.+]] = gdn_gpu.block_id 0
//   CHECK-DAG:     %[[H:.+]] = gdn_gpu.block_id 1
//       CHECK:     %[[B:.+]] = gdn_gpu.load %[[BIAS]]{{.*}}<64xf32, #gdn_gpu.per_column
//       CHECK:     %[[Y:.+]], %{{.+}} = gdn_gpu.conv1d %{{.+}}, %{{.+}}, %{{.+}} bias(%[[B]] :
//       CHECK:     gdn_gpu.store %[[Y]], %{{.+}}[%[[T]], %[[H]], %c0]
func.func @whole(%T: index, %bias: memref<64xf32>, %x: memref<?x4x64xf32>)
    attributes {gdn_tile.stage = {grid = ["T", "4"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  %t = gdn_tile.block_id 0
  %h = gdn_tile.block_id 1
  %b = gdn_tile.load %bias[%c0] dims [0] : memref<64xf32>, vector<64xf32>
  %weight = gdn_tile.fill %one : f32 -> vector<2x64xf32>
  %window = gdn_tile.fill %one : f32 -> vector<1x64xf32>
  %in = gdn_tile.load %x[%t, %h, %c0] dims [0, 2] : memref<?x4x64xf32>, vector<1x64xf32>
  %y, %next = gdn_tile.conv1d %in, %window, %weight bias(%b : vector<64xf32>) valid(%c1) : vector<1x64xf32>, vector<1x64xf32>, vector<2x64xf32>
  gdn_tile.store %y, %x[%t, %h, %c0] dims [0, 2] : vector<1x64xf32>, memref<?x4x64xf32>
  return
}

// What the last block of a group does: all have read the view that it writes.
// CHECK-LABEL: func.func @last(
//       CHECK:   gdn_gpu.warps 0 for 1 {
//       CHECK:     %[[OLD:.+]] = gdn_gpu.load %{{.+}} : memref<?x64xf32>
//       CHECK:     %[[LAST:.+]] = gdn_gpu.last_reader %{{.+}} of %c4{{.*}} after %[[OLD]]
//       CHECK:     scf.if %[[LAST]] {
//       CHECK:       %[[NEW:.+]] = gdn_gpu.map_rows
//       CHECK:       gdn_gpu.store %[[NEW]]
func.func @last(%T: index, %x: memref<?x64xf32>)
    attributes {gdn_tile.stage = {grid = ["T", "4"], groups = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %t = gdn_tile.block_id 0
  %old = gdn_tile.load %x[%t, %c0] dims [0, 1] : memref<?x64xf32>, vector<1x64xf32>
  %last = gdn_tile.last_in_group %t of %c4
  scf.if %last {
    %new = gdn_tile.map_rows %old : vector<1x64xf32> -> vector<1x64xf32> {
    ^bb0(%i: index, %row: vector<64xf32>):
      %r = arith.addf %row, %row : vector<64xf32>
      gdn_tile.yield %r : vector<64xf32>
    }
    gdn_tile.store %new, %x[%t, %c0] dims [0, 1] : vector<1x64xf32>, memref<?x64xf32>
  }
  return
}

// What is loaded inside of the branch and stored to the same view: the lanes of the warp meet
// between the two, since more than one of them may hold an element.
// CHECK-LABEL: func.func @last_loads(
//       CHECK:     %[[LAST:.+]] = gdn_gpu.last_reader
//       CHECK:     scf.if %[[LAST]] {
//       CHECK:       gdn_gpu.load %{{.+}} : memref<?x64xf32>
//       CHECK:       gdn_gpu.warp_barrier
//       CHECK:       gdn_gpu.store
//   CHECK-NOT:       gdn_gpu.warp_barrier
func.func @last_loads(%T: index, %x: memref<?x64xf32>)
    attributes {gdn_tile.stage = {grid = ["T", "4"], groups = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %t = gdn_tile.block_id 0
  %next = arith.addi %t, %c1 : index
  %last = gdn_tile.last_in_group %t of %c4
  scf.if %last {
    %old = gdn_tile.load %x[%next, %c0] dims [0, 1] : memref<?x64xf32>, vector<1x64xf32>
    %new = gdn_tile.map_rows %old : vector<1x64xf32> -> vector<1x64xf32> {
    ^bb0(%i: index, %row: vector<64xf32>):
      %r = arith.addf %row, %row : vector<64xf32>
      gdn_tile.yield %r : vector<64xf32>
    }
    gdn_tile.store %new, %x[%t, %c0] dims [0, 1] : vector<1x64xf32>, memref<?x64xf32>
    gdn_tile.store %new, %x[%next, %c0] dims [0, 1] : vector<1x64xf32>, memref<?x64xf32>
  }
  return
}

// CHECK-LABEL: func.func @bias_of_another_type(
//   CHECK-NOT:   gdn_gpu
//       CHECK:   gdn_tile.block_id 0
func.func @bias_of_another_type(%T: index, %bias: memref<64xbf16>, %x: memref<?x64xf32>)
    attributes {gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  %t = gdn_tile.block_id 0
  %narrow = gdn_tile.load %bias[%c0] dims [0] : memref<64xbf16>, vector<64xbf16>
  %b = gdn_tile.map_rows %narrow : vector<64xbf16> -> vector<64xf32> {
  ^bb0(%i: index, %v: bf16):
    %r = arith.extf %v : bf16 to f32
    gdn_tile.yield %r : f32
  }
  %weight = gdn_tile.fill %one : f32 -> vector<2x64xf32>
  %window = gdn_tile.fill %one : f32 -> vector<1x64xf32>
  %in = gdn_tile.load %x[%t, %c0] dims [0, 1] : memref<?x64xf32>, vector<1x64xf32>
  %y, %next = gdn_tile.conv1d %in, %window, %weight bias(%b : vector<64xf32>) valid(%c1) : vector<1x64xf32>, vector<1x64xf32>, vector<2x64xf32>
  gdn_tile.store %y, %x[%t, %c0] dims [0, 1] : vector<1x64xf32>, memref<?x64xf32>
  return
}

// CHECK-LABEL: func.func @many_pieces(
//  CHECK-SAME:   grid = ["T", "32"], symbols = ["T"], token_pieces = 32 : i64
//   CHECK-NOT:   gdn_gpu
//       CHECK:   gdn_tile.block_id 1
func.func @many_pieces(%T: index, %x: memref<?x32x64xf32>)
    attributes {gdn_tile.stage = {grid = ["T", "32"], symbols = ["T"], token_pieces = 32}} {
  %c0 = arith.constant 0 : index
  %t = gdn_tile.block_id 0
  %piece = gdn_tile.block_id 1
  %row = gdn_tile.load %x[%t, %piece, %c0] dims [1, 2] : memref<?x32x64xf32>, vector<1x64xf32>
  %twice = gdn_tile.map_rows %row : vector<1x64xf32> -> vector<1x64xf32> {
  ^bb0(%i: index, %v: vector<64xf32>):
    %r = arith.addf %v, %v : vector<64xf32>
    gdn_tile.yield %r : vector<64xf32>
  }
  gdn_tile.store %twice, %x[%t, %piece, %c0] dims [1, 2] : vector<1x64xf32>, memref<?x32x64xf32>
  return
}

// None of the rows or all, where the program says so.
// CHECK-LABEL: func.func @none_or_all(
//       CHECK:   gdn_gpu.load {{.+}} rows(%{{.+}}) whole : {{.+}}<2x64xf32
//       CHECK:   gdn_gpu.load {{.+}} rows(%{{[a-z0-9]+}}) : {{.+}}<1x64xf32
func.func @none_or_all(%T: index, %x: memref<?x64xf32>, %y: memref<?x64xf32>)
    attributes {gdn_tile.stage = {grid = ["T", "2"], symbols = ["T"], token_pieces = 2}} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %t = gdn_tile.block_id 0
  %piece = gdn_tile.block_id 1
  %rest = arith.remui %T, %c2 : index
  %even = arith.subi %T, %rest : index
  %some = arith.minui %even, %c2 : index
  %group = gdn_tile.load %x[%t, %c0] dims [0, 1] rows(%some) whole : memref<?x64xf32>, vector<2x64xf32>
  %last = gdn_tile.load %x[%t, %c0] dims [0, 1] rows(%rest) : memref<?x64xf32>, vector<1x64xf32>
  gdn_tile.store %group, %y[%t, %c0] dims [0, 1] : vector<2x64xf32>, memref<?x64xf32>
  gdn_tile.store %last, %y[%t, %c0] dims [0, 1] : vector<1x64xf32>, memref<?x64xf32>
  return
}
