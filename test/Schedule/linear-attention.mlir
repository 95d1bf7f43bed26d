// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decode and drafts of gated linear attention in the schedules of the delta rule:
// one sum fewer for a row, and no write strength in shared memory.
//
// RUN: gdn-opt %gdn_data/entries/gated_linear_attention.mlir -gdn-fuse -convert-gdn-to-tile="value-heads token-by-token" -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-persistent-recurrence="min-units=100 max-units=200" -gdn-schedule-resident-recurrence=narrow-units=300 -gdn-schedule-resident-tokens -canonicalize -cse -o %t
// RUN: FileCheck %s < %t
// RUN: gdn-gpu-opt %t -gdn-gpu-check -o /dev/null

// No entry is left to another target.
// CHECK-NOT: gdn_tile.delta_scan
// CHECK-LABEL: func.func @prefill(
//       CHECK:   scf.for
//       CHECK:     gdn_gpu.map_rows
// CHECK-COUNT-2:     vector.reduction <add>
//   CHECK-NOT:     vector.reduction
//       CHECK:   } {share_sums}

// CHECK-LABEL: func.func @decode(
//       CHECK:   gdn_gpu.warps 3 for 1 {
// CHECK-COUNT-1:     gdn_gpu.store_shared
//       CHECK:   gdn_gpu.barrier
//       CHECK:   %[[SCAN:.+]]:2 = gdn_gpu.map_rows %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} :
// CHECK-COUNT-2:     vector.reduction <add>
//   CHECK-NOT:     vector.reduction
//       CHECK:   gdn_gpu.store %[[SCAN]]#0

// What the variant "narrow" may spill was not measured; "persistent" it has.
//   CHECK-NOT: func.func @decode_narrow_narrow
// CHECK-LABEL: func.func @decode_narrow_persistent(
//       CHECK:   gdn_gpu.roles
// CHECK-COUNT-2:     vector.reduction <add>
// CHECK-LABEL: func.func @decode_narrow(
// CHECK-LABEL: func.func @decode_channels(
//       CHECK:   gdn_gpu.map_rows %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} :
// CHECK-LABEL: func.func @verify(
//       CHECK:   scf.for
//       CHECK:     gdn_gpu.map_rows
