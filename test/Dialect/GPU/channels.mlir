// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Roles, units and channels: round trip, both forms, and a program that
// gdn-gpu-check lets pass: a tile in another shape, two roles that empty one
// channel, a loop inside a tile's time.
//
// RUN: gdn-gpu-opt %s | gdn-gpu-opt | FileCheck %s
// RUN: gdn-gpu-opt %s -mlir-print-op-generic | gdn-gpu-opt | FileCheck %s
// RUN: gdn-gpu-opt %s -gdn-gpu-check -o /dev/null

#two = #gdn_gpu.rows<warps = 2, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 8, vector = 4>
!ring = !gdn_gpu.channel<8x32xf32, depth = 4, parts = 2>
!sums = !gdn_gpu.channel<1x8xf32, depth = 2>

// CHECK-LABEL: func.func @sums(
//       CHECK:   %[[RING:.+]] = gdn_gpu.channel : <8x32xf32, depth = 4, parts = 2>
//       CHECK:   %[[SUMS:.+]] = gdn_gpu.channel : <1x8xf32, depth = 2>
//       CHECK:   gdn_gpu.roles {
//  CHECK-NEXT:     gdn_gpu.warps 0 for 2 {
//       CHECK:       gdn_gpu.await_launch
//  CHECK-NEXT:       gdn_gpu.units contiguous {
//       CHECK:         %[[TILE:.+]] = gdn_gpu.receive %[[RING]] : <8x32xf32, depth = 4, parts = 2> -> <8x32xf32>
//       CHECK:         gdn_gpu.load_shared %[[TILE]]
//       CHECK:         gdn_gpu.release %[[RING]] : <8x32xf32, depth = 4, parts = 2>
//       CHECK:         %[[PLACE:.+]] = gdn_gpu.acquire %[[SUMS]] : <1x8xf32, depth = 2> -> <8xf32>
//       CHECK:         gdn_gpu.store_shared %{{.+}}, %[[PLACE]]
//       CHECK:         gdn_gpu.commit %[[SUMS]] : <1x8xf32, depth = 2>
//       CHECK:     gdn_gpu.warps 2 for 1 {
//  CHECK-NEXT:       gdn_gpu.units contiguous {
//       CHECK:         %[[NEXT:.+]] = gdn_gpu.acquire %[[RING]]
//       CHECK:         gdn_gpu.copy %{{.+}}[%{{.+}}, %{{.+}}] dims [0, 1], %[[NEXT]] : memref<?x32xf32>, <8x32xf32>
//       CHECK:     gdn_gpu.warps 3 for 1 {
func.func @sums(%n: index, %x: memref<?x32xf32> {gdn.name = "x"}, %y: memref<?xf32>, %z: memref<?xf32>,
                %none: index {gdn.name = "x_null_slot"})
    attributes {gdn_gpu.kernel = {threads = 160 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %ring = gdn_gpu.channel : !ring
  %sums = gdn_gpu.channel : !sums
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 2 {
      gdn_gpu.await_launch
      gdn_gpu.units contiguous {
        %tile = gdn_gpu.receive %ring : !ring -> !gdn_gpu.shared<8x32xf32>
        %t = gdn_gpu.load_shared %tile : !gdn_gpu.shared<8x32xf32> -> !gdn_gpu.fragment<8x32xf32, #two>
        %s = gdn_gpu.map_rows %t : !gdn_gpu.fragment<8x32xf32, #two>
            -> !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#two>> {
        ^bb0(%row: index, %v: vector<32xf32>):
          %sum = vector.reduction <add>, %v fastmath<reassoc> : vector<32xf32> into f32
          gdn_gpu.yield %sum : f32
        }
        gdn_gpu.release %ring : !ring
        %buffer = gdn_gpu.acquire %sums : !sums -> !gdn_gpu.shared<8xf32>
        gdn_gpu.store_shared %s, %buffer : !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#two>>, !gdn_gpu.shared<8xf32>
        gdn_gpu.commit %sums : !sums
      }
    }
    gdn_gpu.warps 2 for 1 {
      gdn_gpu.units contiguous {
        %i = gdn_gpu.block_id 0
        %first = arith.muli %i, %c8 : index
        %tile = gdn_gpu.acquire %ring : !ring -> !gdn_gpu.shared<8x32xf32>
        gdn_gpu.copy %x[%first, %c0] dims [0, 1], %tile : memref<?x32xf32>, !gdn_gpu.shared<8x32xf32>
        gdn_gpu.commit %ring : !ring
      }
    }
    gdn_gpu.warps 3 for 1 {
      gdn_gpu.await_launch
      gdn_gpu.units contiguous {
        %i = gdn_gpu.block_id 0
        %first = arith.muli %i, %c8 : index
        %tile = gdn_gpu.receive %sums : !sums -> !gdn_gpu.shared<1x8xf32>
        scf.for %j = %c0 to %c1 step %c1 {
          %t = gdn_gpu.load_shared %tile row(%j) : !gdn_gpu.shared<1x8xf32> -> !gdn_gpu.fragment<8xf32, #gdn_gpu.per_column<#one>>
          gdn_gpu.store %t, %y[%first] dims [0] : !gdn_gpu.fragment<8xf32, #gdn_gpu.per_column<#one>>, memref<?xf32>
        }
        gdn_gpu.release %sums : !sums
      }
    }
    gdn_gpu.warps 4 for 1 {
      gdn_gpu.await_launch
      gdn_gpu.units contiguous {
        %i = gdn_gpu.block_id 0
        %first = arith.muli %i, %c8 : index
        %tile = gdn_gpu.receive %sums : !sums -> !gdn_gpu.shared<8xf32>
        %t = gdn_gpu.load_shared %tile : !gdn_gpu.shared<8xf32> -> !gdn_gpu.fragment<8xf32, #gdn_gpu.per_column<#one>>
        gdn_gpu.release %sums : !sums
        gdn_gpu.store %t, %z[%first] dims [0] : !gdn_gpu.fragment<8xf32, #gdn_gpu.per_column<#one>>, memref<?xf32>
      }
    }
  }
  return
}

// Tiles that come and go with those of another channel, swizzled; a copy that is
// under way from one turn to the next; who fills a tile reads it as well. Columns
// that each warp has for itself need no barrier.
//
// CHECK-LABEL: func.func @roles(
//       CHECK:   %[[KEYS:.+]] = gdn_gpu.channel : <64x64xbf16, depth = 2, swizzled>
//       CHECK:   %[[GATES:.+]] = gdn_gpu.channel : <64xf32, depth = 2> with %[[KEYS]] : !gdn_gpu.channel<64x64xbf16, depth = 2, swizzled>
//       CHECK:   gdn_gpu.warps 0 for 4 registers 96 {
//       CHECK:     gdn_gpu.begin_copy per_warpgroup
//       CHECK:     gdn_gpu.receive ahead %[[KEYS]]
//       CHECK:     gdn_gpu.copy_out %{{.+}}, %{{.+}}[%{{.+}}, %{{.+}}] dims [0, 1] rows(%{{.+}}) full_until_last :
//       CHECK:   gdn_gpu.warps 4 for 4 registers 24 {
//       CHECK:     %[[OWN:.+]] = gdn_gpu.commit %[[KEYS]] : <64x64xbf16, depth = 2, swizzled> -> !gdn_gpu.shared<64x64xbf16, swizzled>
//       CHECK:     gdn_gpu.load_shared %[[OWN]]
#four = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!keys = !gdn_gpu.channel<64x64xbf16, depth = 2, swizzled>
!gates = !gdn_gpu.channel<64xf32, depth = 2>
!key = !gdn_gpu.shared<64x64xbf16, swizzled>
!gate = !gdn_gpu.shared<64xf32>
!tile = !gdn_gpu.fragment<64x64xbf16, #four>
func.func @roles(%n: index, %x: memref<?x64xbf16>, %y: memref<?x64xbf16>, %one: f32)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %keys = gdn_gpu.channel : !keys
  %gates = gdn_gpu.channel : !gates with %keys : !keys
  %buffer = gdn_gpu.alloc : !key
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 4 registers 96 {
      gdn_gpu.begin_copy per_warpgroup %y[%c0, %c0] dims [0, 1], %buffer : memref<?x64xbf16>, !key
      scf.for %t = %c0 to %n step %c64 {
        %k = gdn_gpu.receive %keys : !keys -> !key
        %g = gdn_gpu.receive %gates : !gates -> !gate
        %k2 = gdn_gpu.receive ahead %keys : !keys -> !key
        %g2 = gdn_gpu.receive ahead %gates : !gates -> !gate
        %a = gdn_gpu.load_shared %k : !key -> !tile
        %b = gdn_gpu.load_shared_element %g[%c0] : !gate -> f32
        gdn_gpu.release %gates : !gates
        gdn_gpu.release %keys : !keys
        %a2 = gdn_gpu.load_shared %k2 : !key -> !tile
        gdn_gpu.release %gates : !gates
        gdn_gpu.release %keys : !keys
        gdn_gpu.await_copies
        %transposed = gdn_gpu.load_shared transpose %buffer : !key -> !tile
        gdn_gpu.store_shared transpose %transposed, %buffer : !tile, !key
        gdn_gpu.copy_out %buffer, %y[%t, %c0] dims [0, 1] rows(%n) full_until_last : !key, memref<?x64xbf16>
        gdn_gpu.begin_copy per_warpgroup %y[%t, %c0] dims [0, 1], %buffer : memref<?x64xbf16>, !key
      }
    }
    gdn_gpu.warps 4 for 4 registers 24 {
      %row = gdn_gpu.fill %one : f32 -> !gdn_gpu.fragment<64xf32, #gdn_gpu.per_column<#four>>
      %first = gdn_gpu.acquire %keys : !keys -> !key
      gdn_gpu.begin_copy %x[%c0, %c0] dims [0, 1], %first : memref<?x64xbf16>, !key
      scf.for %t = %c0 to %n step %c64 {
        gdn_gpu.await_copies
        gdn_gpu.barrier
        %g = gdn_gpu.acquire %gates : !gates -> !gate
        gdn_gpu.store_shared %row, %g : !gdn_gpu.fragment<64xf32, #gdn_gpu.per_column<#four>>, !gate
        gdn_gpu.commit %gates : !gates
        %own = gdn_gpu.commit %keys : !keys -> !key
        %a = gdn_gpu.load_shared %own : !key -> !tile
        %next = gdn_gpu.acquire %keys : !keys -> !key
        gdn_gpu.begin_copy %x[%t, %c0] dims [0, 1], %next : memref<?x64xbf16>, !key
      }
    }
  }
  return
}
