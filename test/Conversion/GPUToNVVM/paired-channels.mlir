// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A channel of two blocks: each fills every second buffer, and sends it to the
// other, whose barrier counts the bytes.
//
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm="every-thread-arrives" -canonicalize -cse | FileCheck %s --check-prefix=EVERY

// EVERY-LABEL: llvm.func @pair(
//       EVERY:   arith.select %{{.+}}, %c64_i32, %c1_i32
//       EVERY:   "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.+}}, %c64_i32

#one = #gdn_gpu.rows<warps = 1, lanes = 8, vector = 4>
#two = #gdn_gpu.rows<warps = 2, lanes = 8, vector = 4>
!chan = !gdn_gpu.channel<8x32xf32, depth = 4>
!tile = !gdn_gpu.shared<8x32xf32>
!one = !gdn_gpu.fragment<8x32xf32, #one>
!two = !gdn_gpu.fragment<8x32xf32, #two>

// CHECK-LABEL: llvm.func @pair(
//  CHECK-SAME:   cluster = 2 : i32
//       CHECK:   %[[BLOCK:.+]] = llvm.inline_asm asm_dialect = att "mov.u32 $0, %cluster_ctarank;"
// A place of its own is full when the block's warps arrive, one of the other
// block when its bytes do; both blocks' readers make it free.
//       CHECK:   %[[TURN:.+]] = arith.xori %[[NUMBER:.+]], %[[BLOCK]]
//       CHECK:   %[[ODD:.+]] = arith.andi %[[TURN]], %c1_i32
//       CHECK:   %[[OWN:.+]] = arith.cmpi eq, %[[ODD]], %c0_i32
//       CHECK:   %[[FILLING:.+]] = arith.select %[[OWN]], %c2_i32, %c1_i32
//       CHECK:   "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.+}}, %[[FILLING]]
//       CHECK:   "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.+}}, %c2_i32
//       CHECK:   "fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;"
//  CHECK-NEXT:   "barrier.cluster.arrive.release; barrier.cluster.wait.acquire;"
// Who fills begins at the block's number and goes on by two.
//       CHECK:     llvm.store %[[BLOCK]], %[[PLACE:.+]] : i32, !llvm.ptr
//       CHECK:     mbarrier.try_wait.parity.shared::cta.b64 done
//       CHECK:     "fence.proxy.async.shared::cta;"
//       CHECK:     nvvm.barrier id
//       CHECK:     %[[OTHER:.+]] = arith.xori %[[BLOCK]], %c1_i32
//       CHECK:     %[[FULL:.+]] = llvm.inline_asm {{.*}}"mapa.shared::cluster.u32 $0, $1, $2;", "=r,r,r" %{{.+}}, %[[OTHER]]
//       CHECK:     "mbarrier.arrive.expect_tx.shared::cluster.b64 _, [$0], $1;", "r,r,~{memory}" %[[FULL]], %c1024_i32
//       CHECK:     %[[THERE:.+]] = llvm.inline_asm {{.*}}"mapa.shared::cluster.u32 $0, $1, $2;"
//       CHECK:     "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];", "r,r,r,r,~{memory}" %[[THERE]], %{{.+}}, %c1024_i32, %[[FULL]]
//       CHECK:     "mbarrier.arrive.shared::cta.b64 _, [$0];"
//       CHECK:     arith.addi %{{.+}}, %c2_i32
// Who empties takes all buffers, and tells the block that fills the buffer.
//       CHECK:     llvm.store %c0_i32
//       CHECK:     mbarrier.try_wait.parity.shared::cta.b64 done
//       CHECK:     %[[FILLER:.+]] = arith.andi %{{.+}}, %c1_i32
//       CHECK:     "mapa.shared::cluster.u32 $0, $1, $2;", "=r,r,r" %{{.+}}, %[[FILLER]]
//       CHECK:     "mbarrier.arrive.shared::cluster.b64 _, [$0];"
//       CHECK:     arith.addi %{{.+}}, %c1_i32
// Neither ends while the other may ask for what it has.
//       CHECK:   "barrier.cluster.arrive.release; barrier.cluster.wait.acquire;"
//  CHECK-NEXT:   llvm.return
func.func @pair(%n: index, %out: memref<?x32xf32>)
    attributes {gdn_gpu.kernel = {cluster = 2 : i64, threads = 96 : i64},
                gdn_tile.stage = {grid = ["N", "2"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %v = arith.constant 1.0 : f32
  %ring = gdn_gpu.channel paired : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 2 alternate {
      %block = gdn_gpu.block_id 1
      scf.for %i = %block to %n step %c2 {
        %t = gdn_gpu.acquire %ring : !chan -> !tile
        %f = gdn_gpu.fill %v : f32 -> !two
        gdn_gpu.store_shared %f, %t : !two, !tile
        gdn_gpu.commit %ring : !chan
      }
    }
    gdn_gpu.warps 2 for 1 {
      scf.for %i = %c0 to %n step %c1 {
        %t = gdn_gpu.receive %ring : !chan -> !tile
        gdn_gpu.release %ring : !chan
      }
    }
  }
  return
}

// Of a ring that each block fills for itself an alternate role empties every second buffer: the
// others wait for one role less.
// CHECK-LABEL: llvm.func @alternate_reader(
//       CHECK:   %[[BLOCK:.+]] = llvm.inline_asm asm_dialect = att "mov.u32 $0, %cluster_ctarank;"
//       CHECK:   %[[TURN:.+]] = arith.xori %[[NUMBER:.+]], %[[BLOCK]]
//       CHECK:   %[[EMPTYING:.+]] = arith.select %{{.+}}, %c3_i32, %c2_i32
//       CHECK:   "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.+}}, %c1_i32
//       CHECK:   "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %{{.+}}, %[[EMPTYING]]
//   CHECK-NOT:   mapa
//       CHECK:   llvm.return
func.func @alternate_reader(%n: index, %out: memref<?x32xf32>)
    attributes {gdn_gpu.kernel = {cluster = 2 : i64, threads = 128 : i64},
                gdn_tile.stage = {grid = ["N", "2"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %v = arith.constant 1.0 : f32
  %ring = gdn_gpu.channel : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      scf.for %i = %c0 to %n step %c1 {
        %t = gdn_gpu.acquire %ring : !chan -> !tile
        %f = gdn_gpu.fill %v : f32 -> !one
        gdn_gpu.store_shared %f, %t : !one, !tile
        gdn_gpu.commit %ring : !chan
      }
    }
    gdn_gpu.warps 1 for 2 {
      scf.for %i = %c0 to %n step %c1 {
        %t = gdn_gpu.receive %ring : !chan -> !tile
        gdn_gpu.release %ring : !chan
      }
    }
    gdn_gpu.warps 3 for 1 alternate {
      %block = gdn_gpu.block_id 1
      scf.for %i = %block to %n step %c2 {
        %t = gdn_gpu.receive %ring : !chan -> !tile
        gdn_gpu.release %ring : !chan
      }
    }
  }
  return
}

// What goes together is awaited together: the bytes of both tiles at one barrier.
// CHECK-LABEL: llvm.func @follower(
//       CHECK:     "mbarrier.arrive.expect_tx.shared::cluster.b64 _, [$0], $1;", "r,r,~{memory}" %[[FULL:.+]], %c2048_i32
//       CHECK:     "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];", "r,r,r,r,~{memory}" %{{.+}}, %{{.+}}, %c1024_i32, %[[FULL]]
//       CHECK:     "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];", "r,r,r,r,~{memory}" %{{.+}}, %{{.+}}, %c1024_i32, %[[FULL]]
//   CHECK-NOT:     cp.async.bulk
//       CHECK:   llvm.return
func.func @follower(%n: index, %out: memref<?x32xf32>)
    attributes {gdn_gpu.kernel = {cluster = 2 : i64, threads = 96 : i64},
                gdn_tile.stage = {grid = ["N", "2"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %v = arith.constant 1.0 : f32
  %ring = gdn_gpu.channel paired : !chan
  %other = gdn_gpu.channel paired : !chan with %ring : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 2 alternate {
      %block = gdn_gpu.block_id 1
      scf.for %i = %block to %n step %c2 {
        %t = gdn_gpu.acquire %ring : !chan -> !tile
        %u = gdn_gpu.acquire %other : !chan -> !tile
        %f = gdn_gpu.fill %v : f32 -> !two
        gdn_gpu.store_shared %f, %t : !two, !tile
        gdn_gpu.store_shared %f, %u : !two, !tile
        gdn_gpu.commit %other : !chan
        gdn_gpu.commit %ring : !chan
      }
    }
    gdn_gpu.warps 2 for 1 {
      scf.for %i = %c0 to %n step %c1 {
        %t = gdn_gpu.receive %ring : !chan -> !tile
        %u = gdn_gpu.receive %other : !chan -> !tile
        gdn_gpu.release %other : !chan
        gdn_gpu.release %ring : !chan
      }
    }
  }
  return
}
