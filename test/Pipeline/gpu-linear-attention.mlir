// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gated linear attention on GPUs, from a layer written by hand: every entry has a
// kernel, and none spills a register, on a chip of each family.
//
// RUN: gdn-compile %gdn_data/entries/gated_linear_attention.mlir --target=sm_80,sm_90a --emit=report -o - | FileCheck %s --implicit-check-not="{{(decode|prefill|verify)[a-z_]* +sm_[0-9a-z]+ +[0-9]+ +[0-9]+ +[0-9]+ +([1-9]|0 +[1-9]|0 +0 +[1-9])}}"

// Of each kernel: registers, shared and dynamic shared memory; no stack, no spills.
//     CHECK: kernel
// CHECK-DAG: {{^}}prefill {{ *}}sm_80 {{[0-9 ]+}}
// CHECK-DAG: {{^}}decode {{ *}}sm_80 {{[0-9 ]+}}
// CHECK-DAG: {{^}}decode_channels {{ *}}sm_80 {{[0-9 ]+}}
// CHECK-DAG: {{^}}verify {{ *}}sm_80 {{[0-9 ]+}}
// CHECK-DAG: {{^}}decode_persistent {{ *}}sm_90a {{[0-9 ]+}}
// CHECK-DAG: {{^}}decode_narrow_persistent {{ *}}sm_90a {{[0-9 ]+}}
// CHECK-DAG: {{^}}prefill {{ *}}sm_90a {{[0-9 ]+}}
// CHECK-DAG: {{^}}verify {{ *}}sm_90a {{[0-9 ]+}}
