// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.share_key_columns, token_unit and fold_planes: parse, print, and print
// again, in both forms.
//
// RUN: gdn-gpu-opt %s | gdn-gpu-opt | FileCheck %s
// RUN: gdn-gpu-opt -mlir-print-op-generic %s | gdn-gpu-opt | FileCheck %s

// CHECK-DAG: #[[$CROSSED:.+]] = #gdn_gpu.rows<warps = 1, lanes = 8, vector = 16, crossed = true>
// CHECK-DAG: #[[$ROWS:.+]] = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 16>

#crossed = #gdn_gpu.rows<warps = 1, lanes = 8, vector = 16, crossed = true>
#rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 16>

// CHECK-LABEL: func.func @both(
//  CHECK-SAME:   %[[UPPER:.+]]: !gdn_gpu.fragment<8x128xi8, #[[$CROSSED]]>, %[[LOW:.+]]: !gdn_gpu.fragment<8x128xi8, #[[$CROSSED]]>, %[[SCALES:.+]]: !gdn_gpu.fragment<8xf32, {{.+}}>, %[[KEPT:.+]]: f32, %[[I:.+]]: index)
//       CHECK:   gdn_gpu.share_key_columns left %[[FROM:.+]], %[[KEYS:.+]] : <12x128xf16>, <8x264xf16>
//       CHECK:   %[[UNIT:.+]] = gdn_gpu.token_unit %[[WEIGHTS:.+]] : <12xf32>
//       CHECK:   %{{.+}}, %{{.+}}, %{{.+}} = gdn_gpu.fold_planes %[[UPPER]] low(%[[LOW]] : !gdn_gpu.fragment<8x128xi8, #[[$CROSSED]]>) scales(%[[SCALES]]) kept(%[[KEPT]]), %{{.+}}[%[[I]]], %[[WEIGHTS]] unit(%[[UNIT]]), %[[KEYS]] : <8x128xi8, #[[$CROSSED]]>, <8xf32, {{.+}}>, <24x8xf16>, <12xf32>, <8x264xf16>
func.func @both(%upper: !gdn_gpu.fragment<8x128xi8, #crossed>, %low: !gdn_gpu.fragment<8x128xi8, #crossed>,
                %scales: !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#crossed>>, %kept: f32, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %from = gdn_gpu.alloc : !gdn_gpu.shared<12x128xf16>
  %keys = gdn_gpu.alloc : !gdn_gpu.shared<8x264xf16>
  %deltas = gdn_gpu.alloc : !gdn_gpu.shared<24x8xf16>
  %weights = gdn_gpu.alloc : !gdn_gpu.shared<12xf32>
  gdn_gpu.share_key_columns left %from, %keys : !gdn_gpu.shared<12x128xf16>, !gdn_gpu.shared<8x264xf16>
  %unit = gdn_gpu.token_unit %weights : !gdn_gpu.shared<12xf32>
  %new:3 = gdn_gpu.fold_planes %upper low(%low : !gdn_gpu.fragment<8x128xi8, #crossed>) scales(%scales) kept(%kept), %deltas[%i], %weights unit(%unit), %keys
      : !gdn_gpu.fragment<8x128xi8, #crossed>, !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#crossed>>,
        !gdn_gpu.shared<24x8xf16>, !gdn_gpu.shared<12xf32>, !gdn_gpu.shared<8x264xf16>
  return
}

// One plane, of sixteen rows; 256 columns and twenty tokens.
// CHECK-LABEL: func.func @one(
//       CHECK:   gdn_gpu.share_key_columns %{{.+}}, %{{.+}} : <20x256xf16>, <32x264xf16>
//       CHECK:   %{{.+}}, %{{.+}} = gdn_gpu.fold_planes rounded %{{.+}} low() scales(%{{.+}}) kept(%{{.+}}), %{{.+}}[%{{.+}}], %{{.+}} unit(%{{.+}}), %{{.+}} : <16x256xi8, #[[$ROWS]]>, <16xf32, {{.+}}>, <20x16xf16>, <20xf32>, <32x264xf16>
func.func @one(%upper: !gdn_gpu.fragment<16x256xi8, #rows>, %scales: !gdn_gpu.fragment<16xf32, #gdn_gpu.per_row<#rows>>,
               %kept: f32, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %from = gdn_gpu.alloc : !gdn_gpu.shared<20x256xf16>
  %keys = gdn_gpu.alloc : !gdn_gpu.shared<32x264xf16>
  %deltas = gdn_gpu.alloc : !gdn_gpu.shared<20x16xf16>
  %weights = gdn_gpu.alloc : !gdn_gpu.shared<20xf32>
  gdn_gpu.share_key_columns %from, %keys : !gdn_gpu.shared<20x256xf16>, !gdn_gpu.shared<32x264xf16>
  %unit = gdn_gpu.token_unit %weights : !gdn_gpu.shared<20xf32>
  %new:2 = gdn_gpu.fold_planes rounded %upper low() scales(%scales) kept(%kept), %deltas[%i], %weights unit(%unit), %keys
      : !gdn_gpu.fragment<16x256xi8, #rows>, !gdn_gpu.fragment<16xf32, #gdn_gpu.per_row<#rows>>,
        !gdn_gpu.shared<20x16xf16>, !gdn_gpu.shared<20xf32>, !gdn_gpu.shared<32x264xf16>
  return
}
