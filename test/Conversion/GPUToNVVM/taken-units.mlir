// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Units that blocks take: a block begins with that of its number, one warp counts on,
// and each role goes on with what it is given, which all lanes have of the first one.
//
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s
// RUN: sed 's/threads = 64/keep_loops, threads = 64/' %s | gdn-gpu-opt -convert-gdn-gpu-to-nvvm | FileCheck %s --check-prefix=KEEP

// Nothing of a unit is computed ahead of all of them.
// KEEP: #[[LICM:.+]] = #llvm.loop_licm<disable = true>
// KEEP: scf.while
// KEEP: attributes {llvm.loop_annotation = #

// CHECK-LABEL: llvm.func @taken(
//  CHECK-SAME:   blocks_per_sm = 1 : i32
//  CHECK-SAME:   counters = ["1"]
//       CHECK:   scf.if
//       CHECK:     %[[FIRST:.+]] = nvvm.read.ptx.sreg.ctaid.x
//       CHECK:     scf.while (%[[UNIT:.+]] = %[[FIRST]])
//       CHECK:       %[[IS:.+]] = arith.cmpi slt, %[[UNIT]], %{{.+}} : i32
//  CHECK-NEXT:       scf.condition(%[[IS]])
//       CHECK:       %[[TICKET:.+]] = llvm.inline_asm has_side_effects {{.*}}atom.relaxed.gpu.global.inc.u32
//       CHECK:       %[[BLOCKS:.+]] = nvvm.read.ptx.sreg.nctaid.x
//       CHECK:       %[[NUMBER:.+]] = arith.addi %[[TICKET]], %[[BLOCKS]]
//       CHECK:       %[[NEXT:.+]] = nvvm.shfl.sync idx %{{.+}}, %[[NUMBER]], %c0_i32, %c31_i32
//       CHECK:       scf.yield %{{.+}} : i32
//       CHECK:   scf.if
//       CHECK:     scf.while
//       CHECK:       %[[BITS:.+]] = llvm.load %{{.+}} : !llvm.ptr<3> -> f32
//       CHECK:       mbarrier.arrive
//       CHECK:       %[[GIVEN:.+]] = nvvm.shfl.sync idx
//       CHECK:       scf.yield %[[GIVEN]] : i32

#one = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
!numbers = !gdn_gpu.channel<1xf32, depth = 1>
!number = !gdn_gpu.fragment<1xf32, #gdn_gpu.per_row<#one>>

func.func @taken(%n: index, %x: memref<?xf32>)
    attributes {gdn_gpu.kernel = {threads = 64 : i64, blocks_per_sm = 1 : i64, counters = ["1"]},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %numbers = gdn_gpu.channel : !numbers
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      gdn_gpu.units taken {
        %next = gdn_gpu.take_unit
        %word = arith.index_cast %next : index to i32
        %bits = arith.bitcast %word : i32 to f32
        %t = gdn_gpu.fill %bits : f32 -> !number
        %place = gdn_gpu.acquire %numbers : !numbers -> !gdn_gpu.shared<1xf32>
        gdn_gpu.store_shared %t, %place : !number, !gdn_gpu.shared<1xf32>
        gdn_gpu.commit %numbers : !numbers
        gdn_gpu.yield %next : index
      }
    }
    gdn_gpu.warps 1 for 1 {
      gdn_gpu.units taken {
        %i = gdn_gpu.block_id 0
        %word = arith.index_cast %i : index to i32
        %own = arith.sitofp %word : i32 to f32
        %t = gdn_gpu.fill %own : f32 -> !number
        gdn_gpu.store %t, %x[%i] dims [0] : !number, memref<?xf32>
        %tile = gdn_gpu.receive %numbers : !numbers -> !gdn_gpu.shared<1xf32>
        %bits = gdn_gpu.load_shared_element %tile[%c0] : !gdn_gpu.shared<1xf32> -> f32
        gdn_gpu.release %numbers : !numbers
        %next_word = arith.bitcast %bits : f32 to i32
        %next = arith.index_cast %next_word : i32 to index
        gdn_gpu.yield %next : index
      }
    }
  }
  return
}
