// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decode with inputs and outputs of f32: what a role reads waits in shared memory, also what
// the last warp needs behind the scan, and no register is spilled on a chip of each family.
//
// RUN: gdn-compile --preset=qwen3-next-80b-a3b --io=f32 --state=f32 --only=decode --target=sm_80 --emit=gpu -o - | FileCheck %s
// RUN: gdn-compile --preset=qwen3-next-80b-a3b --io=f32 --state=f32 --only=decode --target=sm_80,sm_90a,sm_100a,sm_120a --emit=report -o - | FileCheck %s --check-prefix=REPORT --implicit-check-not="{{decode[a-z_]* +sm_[0-9a-z]+ +[0-9]+ +[0-9]+ +[0-9]+ +([1-9]|0 +[1-9]|0 +0 +[1-9])}}"

// CHECK-LABEL: func.func @decode_aligned(
// Windows, before the launch ahead has ended.
//       CHECK:   gdn_gpu.await_launch
//       CHECK:   gdn_gpu.warps 7 for 1 {
//  CHECK-NEXT:     gdn_gpu.begin_load %{{.+}}, %[[GATE:.+]] :
//  CHECK-NEXT:     gdn_gpu.begin_load %{{.+}}, %[[WEIGHT:.+]] :
//       CHECK:   gdn_gpu.warps 0 for 1 -> i32 {
//  CHECK-NEXT:     gdn_gpu.begin_load %{{.+}}, %[[INPUT:.+]] :
//  CHECK-NEXT:     gdn_gpu.begin_load %{{.+}}, %[[TAPS:.+]] :
//       CHECK:     gdn_gpu.load {{.+}} begun(%[[INPUT]] :
//       CHECK:     gdn_gpu.load {{.+}} begun(%[[TAPS]] :
//       CHECK:     gdn_gpu.take_ticket
//       CHECK:   gdn_gpu.barrier
//       CHECK:   gdn_gpu.map_rows {{.+}} -> {{.+}}
//       CHECK:   } {share_sums}
//       CHECK:   gdn_gpu.barrier
//       CHECK:   gdn_gpu.warps 7 for 1 {
//       CHECK:     gdn_gpu.load {{.+}} begun(%[[GATE]] :
//       CHECK:     gdn_gpu.load {{.+}} begun(%[[WEIGHT]] :

// Of each kernel: registers, shared and dynamic shared memory; no stack, no spills. Every target
// has the one for any layout of arrays.
//         REPORT: kernel
// REPORT-COUNT-4: decode {{ *}}sm_{{[0-9a-z]+ +[0-9]+ +[0-9]+ +[0-9]+ +0 +0 +0 }}
