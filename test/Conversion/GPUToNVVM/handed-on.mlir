// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A ring whose tiles are handed on: one memory, a barrier for each place and
// channel that counts those who fill it, and one that says that a place is
// free, at which the last roles arrive. A group of warps of a role in turns begins
// at the place of its number and goes on by as many as there are groups.
//
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s

!ring = !gdn_gpu.channel<8x64xf16, depth = 3, swizzled>
!tile = !gdn_gpu.shared<8x64xf16, swizzled>
#one = #gdn_gpu.rows<warps = 1, lanes = 8, vector = 8>

// CHECK-LABEL: llvm.func @chain(
// Zeros, 16 bytes a thread.
//       CHECK:   scf.for %{{.+}} = %{{.+}} to %c192_i32 step %c160_i32
//  CHECK-NEXT:     arith.muli %{{.+}}, %c16_i32
//       CHECK:     llvm.store %cst, %{{.+}} {alignment = 16 : i64} : vector<4xi32>
// What is loaded: one warp fills a place, and two free it. What is made: two
// warps in turn and one beside them; no barrier of its own for what is free.
//       CHECK:   "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.+}}, %c1_i32
//       CHECK:   "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.+}}, %c1_i32
//       CHECK:   "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.+}}, %c2_i32
//   CHECK-NOT:   mbarrier.init
// Who fills waits until a place is free.
//       CHECK:   llvm.store %c1_i32, %[[PARITY:.+]] :
//       CHECK:   mbarrier.try_wait
//       CHECK:   "mbarrier.arrive.shared::cta.b64 _, [$0];"
//       CHECK:   %[[TURN:.+]] = arith.subi %{{.+}}, %c1_i32
//       CHECK:   llvm.store %[[TURN]], %[[PLACE:.+]] :
//       CHECK:   mbarrier.try_wait
//       CHECK:   "fence.proxy.async.shared::cta;"
//       CHECK:   "mbarrier.arrive.shared::cta.b64 _, [$0];"
//       CHECK:   %[[NEXT:.+]] = arith.addi %{{.+}}, %c2_i32
//       CHECK:   %[[IS_BEFORE:.+]] = arith.cmpi {{.+}}, %[[NEXT]], %c3_i32
//       CHECK:   %[[AGAIN:.+]] = arith.addi %{{.+}}, %c-1_i32
//       CHECK:   arith.select %[[IS_BEFORE]], %[[NEXT]], %[[AGAIN]]
func.func @chain(%n: index, %out: memref<?x64xf16>)
    attributes {gdn_gpu.kernel = {threads = 160 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %loaded = gdn_gpu.channel zeroed : !ring
  %made = gdn_gpu.channel : !ring of %loaded : !ring
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      scf.for %i = %c0 to %n step %c1 {
        %t = gdn_gpu.acquire %loaded : !ring -> !tile
        gdn_gpu.commit %loaded : !ring
      }
    }
    gdn_gpu.warps 1 for 2 in_turns 2 {
      gdn_gpu.each_warp 0 for 2 {
      ^bb0(%turn: index):
        scf.for %i = %turn to %n step %c2 {
          %t = gdn_gpu.receive %loaded : !ring -> !tile
          gdn_gpu.hand_on %loaded to %made : !ring, !ring
        }
      }
    }
    gdn_gpu.warps 3 for 1 {
      scf.for %i = %c0 to %n step %c1 {
        %t = gdn_gpu.receive %loaded : !ring -> !tile
        gdn_gpu.hand_on %loaded to %made : !ring, !ring
      }
    }
    gdn_gpu.warps 4 for 1 {
      %first = gdn_gpu.block_id 0
      scf.for %i = %c0 to %n step %c1 {
        %t = gdn_gpu.receive %made : !ring -> !tile
        %x = gdn_gpu.load_shared %t : !tile -> !gdn_gpu.fragment<8x64xf16, #one>
        gdn_gpu.release %made : !ring
        gdn_gpu.store %x, %out[%first, %c0] dims [0, 1] : !gdn_gpu.fragment<8x64xf16, #one>, memref<?x64xf16>
      }
    }
  }
  return
}

// Two groups of two warps fill places in turn: two warps a place.
// CHECK-LABEL: llvm.func @groups(
//       CHECK:   "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.+}}, %c2_i32
//       CHECK:   "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.+}}, %c1_i32
//   CHECK-NOT:   mbarrier.init
//       CHECK:   %[[GROUP:.+]] = arith.divui %{{.+}}, %c2_i32
//       CHECK:   llvm.store %[[GROUP]], %{{.+}} :
//       CHECK:   mbarrier.try_wait
//       CHECK:   "mbarrier.arrive.shared::cta.b64 _, [$0];"
//       CHECK:   arith.addi %{{.+}}, %c2_i32
func.func @groups(%n: index, %out: memref<?x64xf16>)
    attributes {gdn_gpu.kernel = {threads = 160 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %ring = gdn_gpu.channel : !ring
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 4 in_turns 2 {
      gdn_gpu.each_warp 0 for 4 {
      ^bb0(%warp: index):
        %turn = arith.divui %warp, %c2 : index
        scf.for %i = %turn to %n step %c2 {
          %t = gdn_gpu.acquire %ring : !ring -> !tile
          gdn_gpu.commit %ring : !ring
        }
      }
    }
    gdn_gpu.warps 4 for 1 {
      %first = gdn_gpu.block_id 0
      scf.for %i = %c0 to %n step %c1 {
        %t = gdn_gpu.receive %ring : !ring -> !tile
        %x = gdn_gpu.load_shared %t : !tile -> !gdn_gpu.fragment<8x64xf16, #one>
        gdn_gpu.release %ring : !ring
        gdn_gpu.store %x, %out[%first, %c0] dims [0, 1] : !gdn_gpu.fragment<8x64xf16, #one>, memref<?x64xf16>
      }
    }
  }
  return
}
