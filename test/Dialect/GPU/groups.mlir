// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.groups and gdn_gpu.pick: parse, print, print again; where barriers are
// placed around and inside them; and their code.
//
// RUN: gdn-gpu-opt %s | gdn-gpu-opt | FileCheck %s
// RUN: gdn-gpu-opt -mlir-print-op-generic %s | gdn-gpu-opt | FileCheck %s
// RUN: gdn-gpu-opt %s -gdn-gpu-place-barriers -gdn-gpu-check | FileCheck %s --check-prefix=PLACED
// RUN: gdn-gpu-opt %s -gdn-gpu-place-barriers -convert-gdn-gpu-to-nvvm | FileCheck %s --check-prefix=CODE

#half = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
#all = #gdn_gpu.rows<warps = 8, lanes = 4, vector = 2>
!half = !gdn_gpu.fragment<64x64xf32, #half>
!all = !gdn_gpu.fragment<64x64xf32, #all>
!tile = !gdn_gpu.shared<64x64xf32>

// CHECK-LABEL: func.func @own
//       CHECK:   gdn_gpu.groups 2 {
//  CHECK-NEXT:   ^bb0(%[[I:.+]]: index):
//       CHECK:     %[[OWN:.+]] = gdn_gpu.pick %[[I]] of %{{.+}}, %{{.+}} : !gdn_gpu.shared<64x64xf32>, !gdn_gpu.shared<64x64xf32> -> <64x64xf32>
//       CHECK:     gdn_gpu.share %{{.+}}, %[[OWN]]

// What a group shared it meets for; all meet before another turn and behind.
// PLACED-LABEL: func.func @own
//       PLACED:   scf.for
//  PLACED-NEXT:     gdn_gpu.barrier
//  PLACED-NEXT:     gdn_gpu.groups 2
//       PLACED:       gdn_gpu.share %
//  PLACED-NEXT:       gdn_gpu.barrier
//  PLACED-NEXT:       gdn_gpu.fetch
//       PLACED:     }
//  PLACED-NEXT:     gdn_gpu.barrier
//  PLACED-NEXT:     gdn_gpu.fetch

// CODE-LABEL: llvm.func @own
//       CODE:   %[[GROUP:.+]] = arith.divui %{{.+}}, %c4_i32
//       CODE:   %[[IS:.+]] = arith.cmpi eq, %[[GROUP]], %c1_i32
//       CODE:   llvm.select %[[IS]], %{{.+}}, %{{.+}} : i1, !llvm.ptr<3>
//       CODE:   %[[NUMBER:.+]] = arith.addi %[[GROUP]], %c1_i32
//       CODE:   nvvm.barrier id = %[[NUMBER]] number_of_threads = %c128_i32
func.func @own(%n: index, %out: memref<?x64xf32>)
    attributes {gdn_gpu.threads = 256 : i64, gdn_tile.grid = ["N"],
                gdn_tile.symbols = ["N"]} {
  %x = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = gdn_gpu.alloc : !tile
  %b = gdn_gpu.alloc : !tile
  scf.for %t = %c0 to %n step %c1 {
    gdn_gpu.groups 2 {
    ^bb0(%i: index):
      %one = gdn_gpu.fill %x : f32 -> !half
      %own = gdn_gpu.pick %i of %a, %b : !tile, !tile -> !tile
      gdn_gpu.share %one, %own : !half, !tile
      %back = gdn_gpu.fetch %own : !tile -> !half
      gdn_gpu.store %back, %out[%i, %c0] dims [0, 1] : !half, memref<?x64xf32>
    }
    %both = gdn_gpu.fetch %b : !tile -> !all
    gdn_gpu.store %both, %out[%t, %c0] dims [0, 1] : !all, memref<?x64xf32>
  }
  return
}
