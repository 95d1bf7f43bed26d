// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Channels as mbarriers and tiles in shared memory: who arrives how often, which
// phase is waited for, and copies that bring their bytes along.
//
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm=every-thread-arrives -canonicalize -cse | FileCheck %s --check-prefix=EVERY
// RUN: sed 's/1x8xf32, depth = 2/1x8xf32, depth = 40/' %s | gdn-gpu-opt -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s --check-prefix=MANY
// RUN: not gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm=bulk-copies=false 2>&1 | FileCheck %s --check-prefix=OLD

// A lane has two places where there are more than lanes.
// MANY: %[[LANE:.+]] = arith.andi %{{.+}}, %c31
// MANY: %[[SECOND:.+]] = arith.addi %[[LANE]], %c32_i32
// MANY: arith.cmpi slt, %[[SECOND]], %c40_i32

// OLD: 'gdn_gpu.channel' op has no code on a target without bulk copies

// CHECK-LABEL: llvm.func @sums(
//  CHECK-SAME:   blocks_per_sm = 2 : i32
//   CHECK-DAG:   %[[LANE:.+]] = arith.andi %{{.+}}, %c31
//   CHECK-DAG:   %[[WARP:.+]] = arith.shrui %{{.+}}, %c5
//       CHECK:   %[[BASE:.+]] = llvm.ptrtoint %{{.+}} : !llvm.ptr<3> to i32
// The ring: a copy makes a part full, the warp that has it makes its buffer free.
// The sums: two warps fill them, two roles of a warp empty them.
//       CHECK:   "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.+}}, %c1_i32
//       CHECK:   "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.+}}, %c1_i32
//       CHECK:   "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.+}}, %c2_i32
//       CHECK:   "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.+}}, %c2_i32
//       CHECK:   "fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;"
//  CHECK-NEXT:   nvvm.barrier0
// The role that sums: it empties the ring from parity 0 on, and fills the sums
// from parity 1, the round before the first.
//       CHECK:   scf.if
//       CHECK:     llvm.store %c0_i32, %[[PLACE:.+]] : i32, !llvm.ptr
//       CHECK:     llvm.store %c0_i32, %[[PARITY:.+]] : i32, !llvm.ptr
//       CHECK:     llvm.store %c0_i32, %[[SUMS_PLACE:.+]] : i32, !llvm.ptr
//       CHECK:     llvm.store %c1_i32, %[[SUMS_PARITY:.+]] : i32, !llvm.ptr
//       CHECK:     "griddepcontrol.wait;"
// Its units are its share of them.
//       CHECK:     arith.divui
//       CHECK:     arith.divui
//       CHECK:     scf.for
// Of the ring each warp waits for its part.
//       CHECK:       %[[AT:.+]] = llvm.load %[[PLACE]]
//       CHECK:       %[[PHASE:.+]] = llvm.load %[[PARITY]]
//       CHECK:       %[[FIRST:.+]] = arith.muli %[[AT]], %c2_i32
//       CHECK:       arith.addi %[[FIRST]], %[[WARP]]
//       CHECK:       mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1;{{.*}}%[[PHASE]]
//       CHECK:       llvm.load %{{.+}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
//       CHECK:       nvvm.shfl.sync
//       CHECK:       nvvm.bar.warp.sync
//       CHECK:       %[[IS_FIRST:.+]] = arith.cmpi eq, %[[LANE]], %c0
//       CHECK:       scf.if %[[IS_FIRST]] {
//  CHECK-NEXT:         "mbarrier.arrive.shared::cta.b64 _, [$0];"
// At the end of the ring the buffer is 0 again, and the parity the other one.
//       CHECK:       %[[OVER:.+]] = arith.cmpi eq, %{{.+}}, %c4_i32
//       CHECK:       arith.xori %{{.+}}, %c1_i32
//       CHECK:       arith.select %[[OVER]], %c0_i32
//       CHECK:       mbarrier.try_wait.parity
//       CHECK:       llvm.store %{{.+}}, %{{.+}} {alignment = 4 : i64} : f32, !llvm.ptr<3>
//       CHECK:       mbarrier.arrive.shared
// The role that copies: a lane for each part.
//       CHECK:     llvm.store %c1_i32, %[[PARITY]]
//       CHECK:     scf.for
//       CHECK:       scf.if %[[HAS_PART:.+]] {
//       CHECK:         mbarrier.try_wait.parity
//       CHECK:       scf.if %[[HAS_PART]] {
//       CHECK:         "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r,~{memory}" %{{.+}}, %c512_i32
//       CHECK:         "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];", "r,l,r,r,~{memory}" %{{.+}}, %{{.+}}, %c512_i32, %{{.+}}
//   CHECK-NOT:         "mbarrier.arrive.shared
//       CHECK:     scf.for

// EVERY: "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.+}}, %c1_i32
// EVERY: "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.+}}, %c32_i32
// EVERY: "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.+}}, %c64_i32
// EVERY: "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.+}}, %c64_i32
// EVERY-NOT: nvvm.bar.warp.sync

#two = #gdn_gpu.rows<warps = 2, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 8, vector = 4>
!ring = !gdn_gpu.channel<8x32xf32, depth = 4, parts = 2>
!sums = !gdn_gpu.channel<1x8xf32, depth = 2>

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

// Of receives that follow one another the first asks all barriers, and waits for all; a ring that
// is led has none, and of one that is received ahead it is the next buffer's.
// CHECK-LABEL: llvm.func @together(
//       CHECK:   %[[PLACE:.+]] = llvm.load %[[RING:.+]] : !llvm.ptr -> i32
//       CHECK:   %[[NEXT:.+]] = arith.addi %{{.+}}, %c1_i32
//       CHECK:   arith.cmpi eq, %[[NEXT]], %c2_i32
//       CHECK:   mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1;\0Ambarrier.try_wait.parity.shared::cta.b64 also, [$2], $3;\0Aand.pred done, done, also;\0Ambarrier.try_wait.parity.shared::cta.b64 also, [$4], $5;\0Aand.pred done, done, also;\0A@done bra
//   CHECK-NOT:   mbarrier.try_wait
//       CHECK:   "mbarrier.arrive.shared
//       CHECK:   "mbarrier.arrive.shared
//       CHECK:   .reg .pred done;\0AWAIT:\0Ambarrier.try_wait
!vector = !gdn_gpu.channel<32xf32, depth = 2>
func.func @together(%n: index, %y: memref<?x32xf32>)
    attributes {gdn_gpu.kernel = {threads = 64 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %a = gdn_gpu.channel : !vector
  %led = gdn_gpu.channel : !vector with %a : !vector
  %b = gdn_gpu.channel : !vector
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %ta = gdn_gpu.receive %a : !vector -> !gdn_gpu.shared<32xf32>
      %tl = gdn_gpu.receive %led : !vector -> !gdn_gpu.shared<32xf32>
      %tb = gdn_gpu.receive %b : !vector -> !gdn_gpu.shared<32xf32>
      %next = gdn_gpu.receive ahead %b : !vector -> !gdn_gpu.shared<32xf32>
      %i = gdn_gpu.block_id 0
      %fa = gdn_gpu.load_shared %ta : !gdn_gpu.shared<32xf32> -> !gdn_gpu.fragment<32xf32, #gdn_gpu.per_column<#one>>
      %fb = gdn_gpu.load_shared %tb : !gdn_gpu.shared<32xf32> -> !gdn_gpu.fragment<32xf32, #gdn_gpu.per_column<#one>>
      gdn_gpu.store %fa, %y[%i, %c0] dims [1] : !gdn_gpu.fragment<32xf32, #gdn_gpu.per_column<#one>>, memref<?x32xf32>
      gdn_gpu.store %fb, %y[%i, %c0] dims [1] : !gdn_gpu.fragment<32xf32, #gdn_gpu.per_column<#one>>, memref<?x32xf32>
      gdn_gpu.release %b : !vector
      gdn_gpu.release %b : !vector
      gdn_gpu.release %led : !vector
      gdn_gpu.release %a : !vector
    }
    gdn_gpu.warps 1 for 1 {
      %zero = arith.constant 0.0 : f32
      %f = gdn_gpu.fill %zero : f32 -> !gdn_gpu.fragment<32xf32, #gdn_gpu.per_column<#one>>
      %ta = gdn_gpu.acquire %a : !vector -> !gdn_gpu.shared<32xf32>
      %tl = gdn_gpu.acquire %led : !vector -> !gdn_gpu.shared<32xf32>
      gdn_gpu.store_shared %f, %ta : !gdn_gpu.fragment<32xf32, #gdn_gpu.per_column<#one>>, !gdn_gpu.shared<32xf32>
      gdn_gpu.store_shared %f, %tl : !gdn_gpu.fragment<32xf32, #gdn_gpu.per_column<#one>>, !gdn_gpu.shared<32xf32>
      gdn_gpu.commit %led : !vector
      gdn_gpu.commit %a : !vector
      %tb = gdn_gpu.acquire %b : !vector -> !gdn_gpu.shared<32xf32>
      gdn_gpu.store_shared %f, %tb : !gdn_gpu.fragment<32xf32, #gdn_gpu.per_column<#one>>, !gdn_gpu.shared<32xf32>
      gdn_gpu.commit %b : !vector
    }
  }
  return
}

// Rows that need not follow one another are copied one by one where they do not.
// CHECK-LABEL: llvm.func @rows(
//       CHECK:   %[[IS_ONE:.+]] = arith.cmpi eq, %{{.+}}, %c128_i64
//       CHECK:   scf.if %[[IS_ONE]] {
//       CHECK:     cp.async.bulk{{.+}} %c1024_i32
//       CHECK:   } else {
//       CHECK:     scf.for
//       CHECK:       cp.async.bulk{{.+}} %c128_i32
func.func @rows(%n: index, %x: memref<?x32xf32, strided<[?, 1]>>, %y: memref<?x32xf32>)
    attributes {gdn_gpu.kernel = {threads = 64 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c = gdn_gpu.channel : !gdn_gpu.channel<8x32xf32, depth = 2>
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %tile = gdn_gpu.acquire %c : !gdn_gpu.channel<8x32xf32, depth = 2> -> !gdn_gpu.shared<8x32xf32>
      gdn_gpu.copy %x[%c0, %c0] dims [0, 1], %tile : memref<?x32xf32, strided<[?, 1]>>, !gdn_gpu.shared<8x32xf32>
      gdn_gpu.commit %c : !gdn_gpu.channel<8x32xf32, depth = 2>
    }
    gdn_gpu.warps 1 for 1 {
      %tile = gdn_gpu.receive %c : !gdn_gpu.channel<8x32xf32, depth = 2> -> !gdn_gpu.shared<8x32xf32>
      %t = gdn_gpu.load_shared %tile : !gdn_gpu.shared<8x32xf32> -> !gdn_gpu.fragment<8x32xf32, #one>
      gdn_gpu.store %t, %y[%c0, %c0] dims [0, 1] : !gdn_gpu.fragment<8x32xf32, #one>, memref<?x32xf32>
      gdn_gpu.release %c : !gdn_gpu.channel<8x32xf32, depth = 2>
    }
  }
  return
}
