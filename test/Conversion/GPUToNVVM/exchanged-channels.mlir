// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A channel through which two blocks exchange rows: each sends its own to the
// other, whose barrier counts warps and bytes. Nobody waits for a free place, and
// the position goes on when what both gave has been read.
//
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s

#two = #gdn_gpu.rows<warps = 2, lanes = 8, vector = 4>
!chan = !gdn_gpu.channel<2x64xf32, depth = 2>
!tile = !gdn_gpu.shared<2x64xf32>
!sums = !gdn_gpu.fragment<64xf32, #gdn_gpu.per_row<#two>>

// CHECK-LABEL: llvm.func @exchange(
//       CHECK:   %[[BLOCK:.+]] = llvm.inline_asm asm_dialect = att "mov.u32 $0, %cluster_ctarank;"
// Two warps and the other block.
//       CHECK:   "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.+}}, %c3_i32
//       CHECK:   "barrier.cluster.arrive.release; barrier.cluster.wait.acquire;"
// The first round of places is waited for when it is full.
//       CHECK:     llvm.store %c0_i32, %[[PLACE:.+]] : i32, !llvm.ptr
//  CHECK-NEXT:     llvm.store %c0_i32, %[[PARITY:.+]] : i32, !llvm.ptr
//   CHECK-NOT:     mbarrier.try_wait
//       CHECK:     "fence.proxy.async.shared::cta;"
//       CHECK:     nvvm.barrier id
//       CHECK:     "mbarrier.arrive.expect_tx.shared::cluster.b64 _, [$0], $1;", "r,r,~{memory}" %{{.+}}, %c256_i32
//       CHECK:     %[[OWN:.+]] = arith.muli %[[BLOCK]], %c256_i32
//       CHECK:     %[[FROM:.+]] = arith.addi %{{.+}}, %[[OWN]]
//       CHECK:     "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];", "r,r,r,r,~{memory}" %{{.+}}, %[[FROM]], %c256_i32
//       CHECK:     "mbarrier.arrive.shared::cta.b64 _, [$0];"
//   CHECK-NOT:     llvm.store {{.*}} %[[PLACE]]
//       CHECK:     mbarrier.try_wait.parity.shared::cta.b64 done
//   CHECK-NOT:     mbarrier.arrive
//       CHECK:     llvm.store %{{.+}}, %[[PLACE]]
//       CHECK:   "barrier.cluster.arrive.release; barrier.cluster.wait.acquire;"
func.func @exchange(%n: index, %out: memref<?xf32>)
    attributes {gdn_gpu.kernel = {cluster = 2 : i64, threads = 64 : i64},
                gdn_tile.stage = {grid = ["N", "2"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v = arith.constant 1.0 : f32
  %ring = gdn_gpu.channel exchanged : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 2 {
      %block = gdn_gpu.block_id 1
      scf.for %i = %c0 to %n step %c1 {
        %own = gdn_gpu.fill %v : f32 -> !sums
        %t = gdn_gpu.acquire %ring : !chan -> !tile
        gdn_gpu.store_shared %own, %t row(%block) : !sums, !tile
        gdn_gpu.commit %ring : !chan
        %both = gdn_gpu.receive %ring : !chan -> !tile
        %first = gdn_gpu.load_shared %both row(%c0) : !tile -> !sums
        gdn_gpu.store %first, %out[%c0] dims [0] : !sums, memref<?xf32>
        gdn_gpu.release %ring : !chan
      }
    }
  }
  return
}
