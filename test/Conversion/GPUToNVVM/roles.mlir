// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Roles, shared tiles and order: branches on the warp, pieces of 16 bytes in
// shared memory, counters and launch dependences.
//
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm=dependent-launch=false | FileCheck %s --check-prefix=OLD

#state = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#warp = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#warp>>

// CHECK-LABEL: llvm.func @roles(
//  CHECK-SAME:   dependent = true
//       CHECK:   %[[LANE:.+]] = arith.andi %{{.+}}, %c31
//       CHECK:   %[[WARP:.+]] = arith.shrui %{{.+}}, %c5
//       CHECK:   llvm.inline_asm has_side_effects asm_dialect = att "griddepcontrol.wait;", "~{memory}"
//       CHECK:   llvm.inline_asm has_side_effects asm_dialect = att "griddepcontrol.launch_dependents;"
//       CHECK:   %[[HERE:.+]] = arith.cmpi ult, %{{.+}}, %c1
//       CHECK:   scf.if %[[HERE]]
//       CHECK:     llvm.load {{.+}} : !llvm.ptr<1> -> vector<4xf32>
//       CHECK:     llvm.store %{{.+}}, %{{.+}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<3>
// The limit of the counter depends on all lanes' registers.
//       CHECK:     %[[BITS:.+]] = arith.xori
//       CHECK:     %[[ZERO:.+]] = llvm.inline_asm asm_dialect = att "{ .reg .f32 x; mov.b32 x, $1; mul.rn.f32 x, x, 0f00000000; cvt.rzi.u32.f32 $0, x; }", "=r,r" %{{.+}} : (i32) -> i32
//       CHECK:     nvvm.vote.sync any
// One lane counts, without a branch.
//       CHECK:     %[[COUNTED:.+]] = llvm.inline_asm has_side_effects asm_dialect = att "{ .reg .pred first; setp.eq.s32 first, $1, 0; mov.u32 $0, 0; @first atom.relaxed.gpu.global.inc.u32 $0, [$2], $3; }", "=&r,r,l,r,~{memory}" %[[LANE]]
//       CHECK:     %[[TICKET:.+]] = nvvm.shfl.sync idx %{{.+}}, %[[COUNTED]]
//       CHECK:     %[[LAST:.+]] = arith.cmpi eq, %[[TICKET]]
//       CHECK:     scf.if %[[LAST]]
//       CHECK:       nvvm.bar.warp.sync
//       CHECK:   nvvm.barrier0
// CHECK-COUNT-4: llvm.load %{{.+}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
// CHECK-COUNT-4: llvm.load %{{.+}} {alignment = 4 : i64} : !llvm.ptr<3> -> f32
//       CHECK: llvm.mlir.global internal @roles_shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<544 x i8>

//       OLD: llvm.func @roles(
//  OLD-SAME:   dependent = false
//   OLD-NOT:   griddepcontrol
func.func @roles(%n: index, %x: memref<?x128xf32>, %y: memref<128x128xf32>)
    attributes {gdn_gpu.kernel = {threads = 256 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %i = gdn_gpu.block_id 0
  %buffer = gdn_gpu.alloc : !gdn_gpu.shared<128xf32>
  %gate = gdn_gpu.alloc : !gdn_gpu.shared<5xf32>
  gdn_gpu.await_launch
  gdn_gpu.release_launch
  gdn_gpu.warps 2 for 1 {
    %t = gdn_gpu.load %x[%i, %c0] dims [1] aligned 16 : memref<?x128xf32>, !one
    gdn_gpu.store_shared %t, %buffer : !one, !gdn_gpu.shared<128xf32>
    %last = gdn_gpu.last_reader %i of %n after %t : !one
    scf.if %last {
      gdn_gpu.warp_barrier
      gdn_gpu.store %t, %x[%i, %c0] dims [1] aligned 16 : !one, memref<?x128xf32>
    }
  }
  gdn_gpu.barrier
  %k = gdn_gpu.load_shared %buffer : !gdn_gpu.shared<128xf32> -> !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#state>>
  %v = gdn_gpu.load_shared %buffer : !gdn_gpu.shared<128xf32> -> !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#state>>
  %m = gdn_gpu.map_rows %k, %v : !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#state>>, !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#state>>
      -> !gdn_gpu.fragment<128x128xf32, #state> {
  ^bb0(%r: index, %key: vector<128xf32>, %value: f32):
    %all = vector.broadcast %value : f32 to vector<128xf32>
    %p = arith.mulf %all, %key : vector<128xf32>
    gdn_gpu.yield %p : vector<128xf32>
  }
  gdn_gpu.store %m, %y[%c0, %c0] dims [0, 1] aligned 16 : !gdn_gpu.fragment<128x128xf32, #state>, memref<128x128xf32>
  return
}

// More than 48 KiB are asked for at launch.
// CHECK-LABEL: llvm.func @large(
//  CHECK-SAME:   shared_bytes = 65536 : i64
//       CHECK: llvm.mlir.global external @large_shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
func.func @large(%n: index, %x: memref<?xf32>)
    attributes {gdn_gpu.kernel = {threads = 256 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %buffer = gdn_gpu.alloc : !gdn_gpu.shared<128x128xf32>
  return
}

// An element goes to all lanes from the one that has it: row 13 is the second of
// lanes 20 to 23.
// CHECK-LABEL: llvm.func @extract(
//   CHECK-DAG:   %[[FROM:.+]] = arith.constant 20 : i32
//       CHECK:   llvm.load %{{.+}} : !llvm.ptr<1> -> f32
//       CHECK:   %[[OWN:.+]] = llvm.load %{{.+}} : !llvm.ptr<1> -> f32
//       CHECK:   nvvm.shfl.sync idx %{{.+}}, %[[OWN]], %[[FROM]], %{{.+}} : f32 -> f32
func.func @extract(%n: index, %x: memref<16xf32>, %y: memref<1xf32>)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %t = gdn_gpu.load %x[%c0] dims [0] : memref<16xf32>,
      !gdn_gpu.fragment<16xf32, #gdn_gpu.per_row<#gdn_gpu.rows<warps = 1, lanes = 4, vector = 1>>>
  %e = gdn_gpu.extract %t[13] : !gdn_gpu.fragment<16xf32, #gdn_gpu.per_row<#gdn_gpu.rows<warps = 1, lanes = 4, vector = 1>>> -> f32
  %f = gdn_gpu.fill %e : f32 -> !gdn_gpu.fragment<1xf32, #gdn_gpu.per_row<#gdn_gpu.rows<warps = 1, lanes = 4, vector = 1>>>
  gdn_gpu.store %f, %y[%c0] dims [0] : !gdn_gpu.fragment<1xf32, #gdn_gpu.per_row<#gdn_gpu.rows<warps = 1, lanes = 4, vector = 1>>>, memref<1xf32>
  return
}

// Each warp by itself: its number is an index, and no layout counts it. With
// keep_loops what a role computes with is hidden from LLVM, which would take
// addresses of several roles together.
// CHECK-LABEL: llvm.func @each(
//       CHECK:   %[[WARP:.+]] = arith.shrui %{{.+}}, %c5
//       CHECK:   %[[FROM:.+]] = arith.subi %[[WARP]], %c2
//       CHECK:   arith.cmpi ult, %[[FROM]], %c4_i32
//       CHECK:   %[[OWN:.+]] = llvm.inline_asm has_side_effects {{.*}} "", "=r,0" %[[FROM]]
//       CHECK:   %[[W:.+]] = arith.index_castui %[[OWN]]
//       CHECK:   scf.for %{{.+}} = %[[W]] to
//       CHECK:   } {llvm.loop_annotation = #{{.+}}}
func.func @each(%n: index, %y: memref<?x128xf32>)
    attributes {gdn_gpu.kernel = {threads = 256 : i64, keep_loops},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  gdn_gpu.each_warp 2 for 4 {
  ^bb0(%w: index):
    scf.for %i = %w to %n step %c4 {
      %t = gdn_gpu.fill %zero : f32 -> !one
      gdn_gpu.store %t, %y[%i, %c0] dims [1] aligned 16 : !one, memref<?x128xf32>
    }
  }
  return
}

// A role with many registers and no results to copy has room for what its loop
// does not change.
//
// CHECK-LABEL: llvm.func @room(
//       CHECK:   "setmaxnreg.dec.sync.aligned.u32 208;"
//       CHECK:   scf.for
//   CHECK-NOT:   llvm.loop_annotation
//       CHECK:   "setmaxnreg.dec.sync.aligned.u32 24;"
//       CHECK:   scf.for
//       CHECK:   } {llvm.loop_annotation = #{{.+}}}
!rows_of_four = !gdn_gpu.fragment<64x128xf32, #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>>
func.func @room(%n: index, %y: memref<?x64x128xf32>)
    attributes {gdn_gpu.kernel = {threads = 256 : i64, keep_loops},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 4 registers 208 {
      scf.for %i = %c0 to %n step %c1 {
        %t = gdn_gpu.fill %zero : f32 -> !rows_of_four
        gdn_gpu.store %t, %y[%i, %c0, %c0] dims [1, 2] : !rows_of_four, memref<?x64x128xf32>
      }
    }
    gdn_gpu.warps 4 for 4 registers 24 {
      scf.for %i = %c0 to %n step %c1 {
        %t = gdn_gpu.fill %zero : f32 -> !rows_of_four
        gdn_gpu.store %t, %y[%i, %c0, %c0] dims [1, 2] : !rows_of_four, memref<?x64x128xf32>
      }
    }
  }
  return
}

// But beside what its loop carries, rows that are stored in each turn leave none.
//
// CHECK-LABEL: llvm.func @carried(
//       CHECK:   scf.for {{.+}} iter_args(
//       CHECK:   } {llvm.loop_annotation = #{{.+}}}
func.func @carried(%n: index, %y: memref<?x64x128xf32>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, keep_loops},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 4 registers 208 {
      %rows = gdn_gpu.fill %zero : f32 -> !rows_of_four
      %last = scf.for %i = %c0 to %n step %c1 iter_args(%at = %n) -> (index) {
        gdn_gpu.store %rows, %y[%at, %c0, %c0] dims [1, 2] : !rows_of_four, memref<?x64x128xf32>
        %next = arith.addi %at, %i : index
        scf.yield %next : index
      }
    }
  }
  return
}

// Two roles share a group of four warps, and the instruction that sets their
// registers. Some rows of a swizzled tile lie a number of bytes behind the first.
//
// CHECK-LABEL: llvm.func @shared_group(
//       CHECK:   "setmaxnreg.dec.sync.aligned.u32 240;"
//       CHECK:   %[[GROUP:.+]] = arith.divui
//       CHECK:   %[[SECOND:.+]] = arith.cmpi eq, %[[GROUP]], %c1_i32
//       CHECK:   scf.if %[[SECOND]]
//  CHECK-NEXT:     "setmaxnreg.dec.sync.aligned.u32 24;"
//   CHECK-NOT:   setmaxnreg
//       CHECK:   llvm.load %[[FROM:.+]] {alignment = 16 : i64} : !llvm.ptr<3> -> vector<8xbf16>
//       CHECK:   llvm.store %{{.+}}, %[[TO:.+]] {alignment = 16 : i64} : vector<8xbf16>
//       CHECK:   %[[NEXT:.+]] = llvm.getelementptr %[[FROM]][1024]
//       CHECK:   llvm.load %[[NEXT]]
//       CHECK:   llvm.getelementptr %[[TO]][1024]
#pieces = #gdn_gpu.rows<warps = 2, lanes = 8, vector = 8>
#group_of_four = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!keys = !gdn_gpu.channel<64x64xbf16, depth = 2, swizzled>
!key = !gdn_gpu.shared<64x64xbf16, swizzled>
!rows = !gdn_gpu.fragment<8x64xbf16, #pieces>
func.func @shared_group(%n: index)
    attributes {gdn_gpu.kernel = {threads = 256 : i64, warpgroups},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %one = arith.constant 1.0 : bf16
  %full = gdn_gpu.channel : !keys
  %scaled = gdn_gpu.channel : !keys
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 4 registers 240 {
      %t = gdn_gpu.fill %one : bf16 -> !gdn_gpu.fragment<64x64xbf16, #group_of_four>
      %p = gdn_gpu.receive %scaled : !keys -> !key
      %s = gdn_gpu.matmul warpgroup %t, %p
          : !gdn_gpu.fragment<64x64xbf16, #group_of_four>, !key
          -> !gdn_gpu.fragment<64x64xf32, #group_of_four>
      gdn_gpu.release %scaled : !keys
    }
    gdn_gpu.warps 4 for 2 registers 24 {
      %p = gdn_gpu.acquire %full : !keys -> !key
      %t = gdn_gpu.fill %one : bf16 -> !gdn_gpu.fragment<64x64xbf16, #pieces>
      gdn_gpu.store_shared %t, %p : !gdn_gpu.fragment<64x64xbf16, #pieces>, !key
      gdn_gpu.commit %full : !keys
    }
    gdn_gpu.warps 6 for 2 registers 24 {
      %p = gdn_gpu.receive %full : !keys -> !key
      %to = gdn_gpu.acquire %scaled : !keys -> !key
      %first = gdn_gpu.load_shared %p row(%c0) : !key -> !rows
      gdn_gpu.store_shared %first, %to row(%c0) : !rows, !key
      %next = gdn_gpu.load_shared %p row(%c8) : !key -> !rows
      gdn_gpu.store_shared %next, %to row(%c8) : !rows, !key
      gdn_gpu.commit %scaled : !keys
      gdn_gpu.release %full : !keys
    }
  }
  return
}

// Registers change hands; the numbers of a thread are kept; a role's barrier is
// its own, with no fence where nothing was written; what is filled for warpgroups is
// fenced before it is committed. A tile
// goes out by the columns of a group, behind a barrier of its own.
//
// CHECK-LABEL: llvm.func @registers(
//       CHECK:   scf.if
//       CHECK:     "setmaxnreg.dec.sync.aligned.u32 240;"
//       CHECK:     nvvm.shfl.sync idx
//       CHECK:     nvvm.barrier id = %c2_i32 number_of_threads = %c128_i32
// CHECK-COUNT-4:     llvm.load {{.+}} -> vector<4xi32>
//       CHECK:     nvvm.barrier id = %c2_i32 number_of_threads = %c128_i32
// CHECK-COUNT-4:     llvm.store {{.+}} : vector<4xi32>
//       CHECK:   scf.if
//       CHECK:     "setmaxnreg.dec.sync.aligned.u32 104;"
//   CHECK-NOT:     fence
//       CHECK:     nvvm.barrier id = %c3_i32 number_of_threads = %c128_i32
//       CHECK:     "fence.proxy.async.shared::cta;"
//       CHECK:     "mbarrier.arrive.shared::cta.b64 _, [$0];"
#group = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!ring = !gdn_gpu.channel<64x64xf16, depth = 2, swizzled>
!buffer = !gdn_gpu.shared<64x64xf16, swizzled>
!square = !gdn_gpu.fragment<64x64xf16, #group>
func.func @registers(%n: index, %y: memref<?x64xf16>)
    attributes {gdn_gpu.kernel = {threads = 256 : i64, warpgroups},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f16
  %ring = gdn_gpu.channel : !ring
  %own = gdn_gpu.alloc : !buffer
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 4 registers 240 {
      %t = gdn_gpu.fill %one : f16 -> !square
      %p = gdn_gpu.receive %ring : !ring -> !buffer
      %s = gdn_gpu.matmul warpgroup %t, %p : !square, !buffer
          -> !gdn_gpu.fragment<64x64xf32, #group>
      gdn_gpu.release %ring : !ring
      gdn_gpu.store_shared transpose %t, %own : !square, !buffer
      gdn_gpu.copy_out %own, %y[%c0, %c0] dims [0, 1] : !buffer, memref<?x64xf16>
    }
    gdn_gpu.warps 4 for 4 registers 104 {
      %t = gdn_gpu.fill %one : f16 -> !square
      gdn_gpu.barrier
      %p = gdn_gpu.acquire %ring : !ring -> !buffer
      gdn_gpu.store_shared %t, %p : !square, !buffer
      gdn_gpu.commit %ring : !ring
    }
  }
  return
}

// A channel with a leader has no barrier of its own, so the fence for what was
// copied stands at the commit of the leader, though that commit comes second.
//
// CHECK-LABEL: llvm.func @behind_a_leader(
//       CHECK:   "setmaxnreg.dec.sync.aligned.u32 104;"
//       CHECK:   nvvm.cp.async.wait.group 0
//   CHECK-NOT:   mbarrier.arrive
//       CHECK:   "fence.proxy.async.shared::cta;"
//       CHECK:   "mbarrier.arrive.shared::cta.b64 _, [$0];"
func.func @behind_a_leader(%n: index, %x: memref<?x64x64xf16>)
    attributes {gdn_gpu.kernel = {threads = 256 : i64, warpgroups},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f16
  %keys = gdn_gpu.channel : !ring
  %values = gdn_gpu.channel : !ring with %keys : !ring
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 4 registers 240 {
      %t = gdn_gpu.fill %one : f16 -> !square
      %k = gdn_gpu.receive %keys : !ring -> !buffer
      %v = gdn_gpu.receive %values : !ring -> !buffer
      %s = gdn_gpu.matmul warpgroup %t, %k : !square, !buffer
          -> !gdn_gpu.fragment<64x64xf32, #group>
      %u = gdn_gpu.matmul warpgroup %t, %v : !square, !buffer
          -> !gdn_gpu.fragment<64x64xf32, #group>
      gdn_gpu.release %values : !ring
      gdn_gpu.release %keys : !ring
    }
    gdn_gpu.warps 4 for 4 registers 104 {
      %k = gdn_gpu.acquire %keys : !ring -> !buffer
      %v = gdn_gpu.acquire %values : !ring -> !buffer
      gdn_gpu.begin_copy %x[%n, %c0, %c0] dims [1, 2], %k : memref<?x64x64xf16>, !buffer
      gdn_gpu.begin_copy %x[%n, %c0, %c0] dims [1, 2], %v : memref<?x64x64xf16>, !buffer
      gdn_gpu.await_copies
      gdn_gpu.commit %values : !ring
      gdn_gpu.commit %keys : !ring
    }
  }
  return
}
