// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A warp says what it has stored by an addition with release, which has no branch; who awaits it
// asks with acquire.
//
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s

// CHECK-LABEL: llvm.func @tell(
//       CHECK:   nvvm.bar.warp.sync
//       CHECK:   setp.lt.s32 some, $0, $1; @some red.release.gpu.global.add.u32 [$2], $3; }
func.func @tell(%n: index, %i: index, %x: memref<?x?xf32>)
    attributes {gdn_gpu.kernel = {threads = 64 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N", "I"]}} {
  gdn_gpu.warps 0 for 2 {
    gdn_gpu.signal 16, %x[%i, %i] last(%n) : memref<?x?xf32>
  }
  return
}

// CHECK-LABEL: llvm.func @follow(
//       CHECK:   ld.acquire.gpu.global.u32 seen, [$0];
//  CHECK-SAME:   nanosleep.u32 200;
func.func @follow(%n: index, %i: index, %x: memref<?x?xf32>)
    attributes {gdn_gpu.kernel = {threads = 64 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N", "I"]}} {
  gdn_gpu.each_warp 0 for 2 {
  ^bb0(%w: index):
    gdn_gpu.await_signals 128, %x[%i, %i] : memref<?x?xf32>
  }
  return
}
