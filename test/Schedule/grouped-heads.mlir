// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Outputs that are stored to heads in groups, by `memref.expand_shape` of an argument: what copies
// them out writes to the argument, at head group * 2 + r, with a tensor map in the loop. A view that
// has the same heads without saying so is written to as it is, without a tensor map.
//
// RUN: gdn-opt %s -gdn-schedule-tile-products="warps=12" -gdn-gpu-use-warpgroups -canonicalize -cse -gdn-gpu-place-barriers -gdn-gpu-check | FileCheck %s
// RUN: sed 's/memref.expand_shape .* : !values into/memref.reinterpret_cast %%out to offset: [0], sizes: [%%T, %%groups, 2, 128], strides: [%%s0, %%s1, %%s2, 1] : !values to/' %s | gdn-opt -gdn-schedule-tile-products="warps=12" -gdn-gpu-use-warpgroups -canonicalize -cse -gdn-gpu-place-barriers -gdn-gpu-check | FileCheck %s --check-prefix=UNSAID

!keys = memref<?x?x64xbf16, strided<[?, ?, 1]>>
!values = memref<?x?x128xbf16, strided<[?, ?, 1]>>
!grouped = memref<?x?x2x128xbf16, strided<[?, ?, ?, 1]>>

// CHECK-LABEL: func.func @outputs_of_grouped_heads(
//  CHECK-SAME:   memref<?x128x64xf32>{{.*}}, %[[OUT:[a-z0-9]+]]: memref<?x?x128xbf16, strided<[?, ?, 1]>> {gdn_gpu.alignment = 16 : i64}
//   CHECK-NOT:   memref.expand_shape
//       CHECK:   %[[GROUP:.+]] = arith.divui %[[H:.+]], %c2
//       CHECK:   %[[R:.+]] = arith.remui %[[H]], %c2
//       CHECK:   scf.for
//       CHECK:     %[[OTHERS:.+]] = arith.muli %[[GROUP]], %c2
//       CHECK:     %[[HEAD:.+]] = arith.addi %[[OTHERS]], %[[R]]
//       CHECK:     gdn_gpu.copy_out tensor_map %{{.+}}, %[[OUT]][%{{.+}}, %[[HEAD]], %c0] dims [0, 2] rows(%{{.+}}) : <64x128xbf16, swizzled>
//       CHECK:     scf.yield
// Behind the loop there may be fewer rows.
//       CHECK:   gdn_gpu.copy_out %{{.+}}, %[[OUT]][%{{.+}}, %{{.+}}, %c0] dims [0, 2]

// UNSAID-LABEL: func.func @outputs_of_grouped_heads(
//       UNSAID:   %[[VIEW:.+]] = memref.reinterpret_cast
//   UNSAID-NOT:   copy_out tensor_map
//       UNSAID:   gdn_gpu.copy_out %{{.+}}, %[[VIEW]][%{{.+}}, %{{.+}}, %{{.+}}, %c0] dims [0, 3]
//   UNSAID-NOT:   copy_out tensor_map
func.func @outputs_of_grouped_heads(%T: index, %H: index, %k: !keys, %v: !values,
                                     %g: memref<?x?xf32>, %states: memref<?x128x64xf32>,
                                     %out: !values, %s0: index, %s1: index, %s2: index)
    attributes {gdn_tile.stage = {grid = ["H"], symbols = ["T", "H"]}} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %h = gdn_tile.block_id 0
  %groups = arith.divui %H, %c2 : index
  %group = arith.divui %h, %c2 : index
  %r = arith.remui %h, %c2 : index
  %outs = memref.expand_shape %out [[0], [1, 2], [3]] output_shape [%T, %groups, 2, 128] : !values into !grouped
  %start = gdn_tile.load %states[%h, %c0, %c0] dims [1, 2] : memref<?x128x64xf32>, vector<128x64xf32>
  %end = scf.for %t = %c0 to %T step %c64 iter_args(%state = %start) -> (vector<128x64xf32>) {
    %left = arith.subi %T, %t : index
    %n = arith.minui %left, %c64 : index
    %key = gdn_tile.load %k[%t, %group, %c0] dims [0, 2] rows(%n) : !keys, vector<64x64xbf16>
    %value = gdn_tile.load %v[%t, %h, %c0] dims [0, 2] rows(%n) : !values, vector<64x128xbf16>
    %log = gdn_tile.load %g[%t, %h] dims [0] rows(%n) : memref<?x?xf32>, vector<64xf32>
    %decay = gdn_tile.map_rows %log : vector<64xf32> -> vector<64xf32> {
    ^bb0(%i: index, %of: f32):
      %x = math.exp %of : f32
      gdn_tile.yield %x : f32
    }
    %keyT = gdn_tile.transpose %key : vector<64x64xbf16> -> vector<64x64xbf16>
    %scores = gdn_tile.matmul %key, %keyT : vector<64x64xbf16>, vector<64x64xbf16> -> vector<64x64xf32>
    %narrow = gdn_tile.map_rows %scores : vector<64x64xf32> -> vector<64x64xf16> {
    ^bb0(%i: index, %row: vector<64xf32>):
      %x = arith.truncf %row : vector<64xf32> to vector<64xf16>
      gdn_tile.yield %x : vector<64xf16>
    }
    %inverse = gdn_tile.tri_inverse %narrow : vector<64x64xf16>
    %solveT = gdn_tile.transpose %inverse : vector<64x64xf16> -> vector<64x64xf16>
    %solve = gdn_tile.map_rows %solveT : vector<64x64xf16> -> vector<64x64xf16> {
    ^bb0(%i: index, %row: vector<64xf16>):
      %x = arith.addf %row, %row : vector<64xf16>
      gdn_tile.yield %x : vector<64xf16>
    }
    %rounded = gdn_tile.map_rows %state : vector<128x64xf32> -> vector<128x64xbf16> {
    ^bb0(%i: index, %row: vector<64xf32>):
      %x = arith.truncf %row : vector<64xf32> to vector<64xbf16>
      gdn_tile.yield %x : vector<64xbf16>
    }
    %known = gdn_tile.matmul %rounded, %keyT : vector<128x64xbf16>, vector<64x64xbf16> -> vector<128x64xf32>
    %valueT = gdn_tile.transpose %value : vector<64x128xbf16> -> vector<128x64xbf16>
    %error = gdn_tile.map_rows %valueT, %known : vector<128x64xbf16>, vector<128x64xf32> -> vector<128x64xf16> {
    ^bb0(%i: index, %row: vector<64xbf16>, %of: vector<64xf32>):
      %wide = arith.extf %row : vector<64xbf16> to vector<64xf32>
      %faded = arith.mulf %of, %decay : vector<64xf32>
      %less = arith.subf %wide, %faded : vector<64xf32>
      %x = arith.truncf %less : vector<64xf32> to vector<64xf16>
      gdn_tile.yield %x : vector<64xf16>
    }
    %delta = gdn_tile.matmul %error, %solve : vector<128x64xf16>, vector<64x64xf16> -> vector<128x64xf32>
    %written = gdn_tile.map_rows %delta : vector<128x64xf32> -> vector<128x64xbf16> {
    ^bb0(%i: index, %row: vector<64xf32>):
      %x = arith.truncf %row : vector<64xf32> to vector<64xbf16>
      gdn_tile.yield %x : vector<64xbf16>
    }
    %next = gdn_tile.matmul %written, %key acc(%state : vector<128x64xf32>) : vector<128x64xbf16>, vector<64x64xbf16> -> vector<128x64xf32>
    %deltaT = gdn_tile.transpose %delta : vector<128x64xf32> -> vector<64x128xf32>
    %o = gdn_tile.map_rows %deltaT : vector<64x128xf32> -> vector<64x128xbf16> {
    ^bb0(%i: index, %row: vector<128xf32>):
      %x = arith.truncf %row : vector<128xf32> to vector<128xbf16>
      gdn_tile.yield %x : vector<128xbf16>
    }
    gdn_tile.store %o, %outs[%t, %group, %r, %c0] dims [0, 3] rows(%n) full_until_last : vector<64x128xbf16>, !grouped
    scf.yield %next : vector<128x64xf32>
  }
  gdn_tile.store %end, %states[%h, %c0, %c0] dims [1, 2] : vector<128x64xf32>, memref<?x128x64xf32>
  return
}
