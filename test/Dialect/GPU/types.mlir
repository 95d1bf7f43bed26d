// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Types and layouts of gdn_gpu: parse, print, and print again.
//
// RUN: gdn-gpu-opt %s | gdn-gpu-opt | FileCheck %s
// RUN: gdn-gpu-opt -mlir-print-op-generic %s | gdn-gpu-opt | FileCheck %s

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 1>
#turns = #gdn_gpu.rows<warps = 8, lanes = 16, vector = 4, cyclic = true>
#plain = #gdn_gpu.rows<warps = 4, lanes = 16, vector = 4, cyclic = false>
#tall = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4, tall = true>

// CHECK-DAG: #[[$TURNS:.+]] = #gdn_gpu.rows<warps = 8, lanes = 16, vector = 4, cyclic = true>
// CHECK-DAG: #[[$PLAIN:.+]] = #gdn_gpu.rows<warps = 4, lanes = 16, vector = 4>
// CHECK-DAG: #[[$TALL:.+]] = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4, tall = true>
// CHECK-DAG: #[[$ROWS:.+]] = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
// CHECK-DAG: #[[$ONE:.+]] = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 1>
// CHECK-LABEL: func.func private @types(
//  CHECK-SAME:   !gdn_gpu.fragment<128x96xf32, #[[$ROWS]]>,
//  CHECK-SAME:   !gdn_gpu.fragment<128xbf16, #gdn_gpu.per_row<#[[$ROWS]]>>,
//  CHECK-SAME:   !gdn_gpu.fragment<96xf16, #gdn_gpu.per_column<#[[$ONE]]>>,
//  CHECK-SAME:   !gdn_gpu.shared<4x128xf32>, !gdn_gpu.shared<1xbf16>,
//  CHECK-SAME:   !gdn_gpu.shared<64x96xf16, swizzled>, !gdn_gpu.fragment<128x128xf32, #[[$TURNS]]>,
//  CHECK-SAME:   !gdn_gpu.fragment<128x128xf32, #[[$PLAIN]]>, !gdn_gpu.fragment<128x128xf32, #[[$TALL]]>)
func.func private @types(!gdn_gpu.fragment<128x96xf32, #rows>,
                         !gdn_gpu.fragment<128xbf16, #gdn_gpu.per_row<#rows>>,
                         !gdn_gpu.fragment<96xf16, #gdn_gpu.per_column<#one>>,
                         !gdn_gpu.shared<4x128xf32>, !gdn_gpu.shared<1xbf16>,
                         !gdn_gpu.shared<64x96xf16, swizzled>, !gdn_gpu.fragment<128x128xf32, #turns>,
                         !gdn_gpu.fragment<128x128xf32, #plain>, !gdn_gpu.fragment<128x128xf32, #tall>)
