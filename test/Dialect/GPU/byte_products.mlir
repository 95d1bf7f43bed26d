// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.share_byte_products, share_column_parts and add_part_products: parse,
// print, and print again, in both forms.
//
// RUN: gdn-gpu-opt %s | gdn-gpu-opt | FileCheck %s
// RUN: gdn-gpu-opt -mlir-print-op-generic %s | gdn-gpu-opt | FileCheck %s

#rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 16>
!bytes = !gdn_gpu.fragment<8x128xi8, #rows>
!numbers = !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#rows>>
!row = !gdn_gpu.shared<3x128xi8>
!sums = !gdn_gpu.shared<4x8xf32>

// CHECK-LABEL: func.func @one(
//       CHECK: gdn_gpu.share_byte_products %{{.+}} low() scales(%{{.+}}), %{{.+}} scaled(%{{.+}}) to(%{{.+}}), %{{.+}} scaled(%{{.+}}) to(%{{.+}}), %{{.+}} : !gdn_gpu.fragment<8x128xi8, #{{.+}}>, !gdn_gpu.fragment<8xf32, {{.+}}>, !gdn_gpu.shared<3x128xi8>, !gdn_gpu.shared<4x8xf32>
func.func @one(%upper: !bytes, %scales: !numbers, %x: f32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %key = gdn_gpu.alloc : !row
  %query = gdn_gpu.alloc : !row
  %to = gdn_gpu.alloc : !sums
  gdn_gpu.share_byte_products %upper low() scales(%scales),
      %key scaled(%x) to(%c0), %query scaled(%x) to(%c1), %to
      : !bytes, !numbers, !row, !sums
  return
}

// CHECK-LABEL: func.func @two(
//       CHECK: gdn_gpu.share_byte_products %[[A:.+]], %[[B:.+]] low(%[[C:.+]], %[[D:.+]]) scales(%{{.+}}, %{{.+}}),
func.func @two(%a: !bytes, %b: !bytes, %c: !bytes, %d: !bytes,
               %s: !numbers, %t: !numbers, %x: f32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %key = gdn_gpu.alloc : !row
  %query = gdn_gpu.alloc : !row
  %to = gdn_gpu.alloc : !sums
  gdn_gpu.share_byte_products %a, %b low(%c, %d) scales(%s, %t),
      %key scaled(%x) to(%c0), %query scaled(%x) to(%c2), %to
      : !bytes, !numbers, !row, !sums
  return
}

// CHECK-LABEL: func.func @parts(
//       CHECK: gdn_gpu.share_column_parts %[[KEYS:.+]], %[[PARTS:.+]] : <12x128xf32>, <128x32xbf16>
//       CHECK: gdn_gpu.add_part_products %{{.+}}, %{{.+}}[%{{.+}}], %{{.+}}, %[[PARTS]] : <8x128xf32, #{{.+}}>, <24x8xf32>, <12xf32>, <128x32xbf16>
func.func @parts(%state: !gdn_gpu.fragment<8x128xf32, #rows>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %keys = gdn_gpu.alloc : !gdn_gpu.shared<12x128xf32>
  %deltas = gdn_gpu.alloc : !gdn_gpu.shared<24x8xf32>
  %weights = gdn_gpu.alloc : !gdn_gpu.shared<12xf32>
  %parts = gdn_gpu.alloc : !gdn_gpu.shared<128x32xbf16>
  gdn_gpu.share_column_parts %keys, %parts
      : !gdn_gpu.shared<12x128xf32>, !gdn_gpu.shared<128x32xbf16>
  %new = gdn_gpu.add_part_products %state, %deltas[%i], %weights, %parts
      : !gdn_gpu.fragment<8x128xf32, #rows>, !gdn_gpu.shared<24x8xf32>,
        !gdn_gpu.shared<12xf32>, !gdn_gpu.shared<128x32xbf16>
  return
}

// Keys and deltas of 16 bits.
// CHECK-LABEL: func.func @narrow_parts(
//       CHECK: gdn_gpu.share_column_parts spread %[[KEYS:.+]], %[[PARTS:.+]] : <12x128xf16>, <128x32xbf16>
//       CHECK: gdn_gpu.add_part_products %{{.+}}, %{{.+}}[%{{.+}}], %{{.+}}, %[[PARTS]] : <8x128xf32, #{{.+}}>, <24x8xf16>, <12xf32>, <128x32xbf16>
func.func @narrow_parts(%state: !gdn_gpu.fragment<8x128xf32, #rows>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %keys = gdn_gpu.alloc : !gdn_gpu.shared<12x128xf16>
  %deltas = gdn_gpu.alloc : !gdn_gpu.shared<24x8xf16>
  %weights = gdn_gpu.alloc : !gdn_gpu.shared<12xf32>
  %parts = gdn_gpu.alloc : !gdn_gpu.shared<128x32xbf16>
  gdn_gpu.share_column_parts spread %keys, %parts
      : !gdn_gpu.shared<12x128xf16>, !gdn_gpu.shared<128x32xbf16>
  %new = gdn_gpu.add_part_products %state, %deltas[%i], %weights, %parts
      : !gdn_gpu.fragment<8x128xf32, #rows>, !gdn_gpu.shared<24x8xf16>,
        !gdn_gpu.shared<12xf32>, !gdn_gpu.shared<128x32xbf16>
  return
}
