// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What products of a chunk take, with a decay per channel.
//
// RUN: gdn-gpu-opt %s | gdn-gpu-opt | FileCheck %s

#logs = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!tile = !gdn_gpu.shared<64x32xf16, swizzled>

// CHECK-LABEL: func.func @operands
//       CHECK:   gdn_gpu.decay_operands %{{.+}}, %[[Q:.+]], %[[K:.+]], %[[TE:.+]], %[[S:.+]], %[[E:.+]] : <64x32xf32, #{{.+}}>, <64x32xf16, swizzled>, <64x32xf16, swizzled>, <11x32xf32>, <32xf32> -> <64x64xf32, #{{.+}}>
func.func @operands(%g: !gdn_gpu.fragment<64x32xf32, #logs>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %q = gdn_gpu.alloc : !tile
  %k = gdn_gpu.alloc : !tile
  %t = gdn_gpu.alloc : !tile
  %s = gdn_gpu.alloc : !gdn_gpu.shared<11x32xf32>
  %e = gdn_gpu.alloc : !gdn_gpu.shared<32xf32>
  %p, %l = gdn_gpu.decay_operands %g, %q, %k, %t, %s, %e
      : !gdn_gpu.fragment<64x32xf32, #logs>, !tile, !tile, !gdn_gpu.shared<11x32xf32>,
        !gdn_gpu.shared<32xf32> -> !gdn_gpu.fragment<64x64xf32, #rows>
  return
}
