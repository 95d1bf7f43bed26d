// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.share_part_products: parse, print, and print again, in both forms; and
// gdn_gpu.add_part_products in the layout of a state of 16 bits.
//
// RUN: gdn-gpu-opt %s | gdn-gpu-opt | FileCheck %s
// RUN: gdn-gpu-opt -mlir-print-op-generic %s | gdn-gpu-opt | FileCheck %s

#rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 8>

// CHECK-LABEL: func.func @bf16(
//       CHECK: gdn_gpu.share_part_products %{{.+}}, %{{.+}} scaled(%{{.+}}), %{{.+}} scaled(%{{.+}}), %{{.+}} : <16x128xbf16, #{{.+}}>, <3x128xbf16>, <2x16xf32>
func.func @bf16(%state: !gdn_gpu.fragment<16x128xbf16, #rows>, %x: f32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %key = gdn_gpu.alloc : !gdn_gpu.shared<3x128xbf16>
  %query = gdn_gpu.alloc : !gdn_gpu.shared<3x128xbf16>
  %to = gdn_gpu.alloc : !gdn_gpu.shared<2x16xf32>
  gdn_gpu.share_part_products %state, %key scaled(%x), %query scaled(%x), %to
      : !gdn_gpu.fragment<16x128xbf16, #rows>, !gdn_gpu.shared<3x128xbf16>, !gdn_gpu.shared<2x16xf32>
  return
}

// CHECK-LABEL: func.func @f16(
//       CHECK: gdn_gpu.share_part_products %{{.+}} : <32x96xf16, #{{.+}}>, <3x96xf16>, <2x32xf32>
func.func @f16(%state: !gdn_gpu.fragment<32x96xf16, #rows>, %x: f32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %key = gdn_gpu.alloc : !gdn_gpu.shared<3x96xf16>
  %to = gdn_gpu.alloc : !gdn_gpu.shared<2x32xf32>
  gdn_gpu.share_part_products %state, %key scaled(%x), %key scaled(%x), %to
      : !gdn_gpu.fragment<32x96xf16, #rows>, !gdn_gpu.shared<3x96xf16>, !gdn_gpu.shared<2x32xf32>
  return
}

// CHECK-LABEL: func.func @fold(
//       CHECK: gdn_gpu.add_part_products %{{.+}} : <8x96xf32, #{{.+}}>, <8x8xf32>, <8xf32>, <96x32xbf16>
func.func @fold(%state: !gdn_gpu.fragment<8x96xf32, #rows>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %deltas = gdn_gpu.alloc : !gdn_gpu.shared<8x8xf32>
  %weights = gdn_gpu.alloc : !gdn_gpu.shared<8xf32>
  %parts = gdn_gpu.alloc : !gdn_gpu.shared<96x32xbf16>
  %new = gdn_gpu.add_part_products %state, %deltas[%i], %weights, %parts
      : !gdn_gpu.fragment<8x96xf32, #rows>, !gdn_gpu.shared<8x8xf32>, !gdn_gpu.shared<8xf32>, !gdn_gpu.shared<96x32xbf16>
  return
}
