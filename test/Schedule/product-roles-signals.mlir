// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Signals of what roles store, for a norm that follows. The warps that load say it of the chunk five
// turns before theirs: they fill a buffer that consumers gave back when its outputs were stored.
// Consumers say it of the last five, behind the last copy. The amount is shared by the warps. One
// role releases the norm as soon as it has waited, on each of its ways.
//
// RUN: gdn-opt %S/../Conversion/GDNToTile/norm-follows.mlir -gdn-fuse -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=halves:fused=2;v-split=2;norm=follows,staged: value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse -o %t
// RUN: gdn-opt %t -gdn-schedule-tile-products="warps=12 warpgroups" -gdn-schedule-token-groups -gdn-gpu-use-warpgroups -gdn-drop-unscheduled -canonicalize -cse -gdn-gpu-place-barriers -gdn-gpu-overlap-products -gdn-gpu-await-stages -gdn-gpu-check | FileCheck %s --check-prefixes=CHECK,HALVES
// RUN: gdn-opt %S/../Conversion/GDNToTile/norm-follows.mlir -gdn-fuse -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=segments:fused=2;v-split=2;segments=3;norm=follows,staged: value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-tile-products="warps=12 warpgroups" -gdn-schedule-token-groups -gdn-gpu-use-warpgroups -gdn-drop-unscheduled -canonicalize -cse -gdn-gpu-place-barriers -gdn-gpu-overlap-products -gdn-gpu-await-stages -gdn-gpu-check | FileCheck %s --check-prefixes=SEGMENTS,CHECK

// First segments end as a launch of their own, whose first block waits.
// SEGMENTS-LABEL: func.func @prefill__first_fused_segments_3_followed(
//       SEGMENTS:   gdn_gpu.signal 16, {{.+}} last(
//       SEGMENTS:   gdn_gpu.signal 32, {{.+}} last(
//       SEGMENTS:     gdn_gpu.await_launch
//  SEGMENTS-NEXT:   }
//  SEGMENTS-NEXT:   return

// HALVES-LABEL: func.func @prefill__inter_chunk_fused_v_split_2_followed(
// SEGMENTS-LABEL: func.func @prefill__inter_chunk_fused_segments_3_followed(
//  CHECK-SAME:   %[[COUNTERS:arg21]]: memref<?x?xf32>
//       CHECK:   gdn_gpu.warps 0 for 4 registers 240 {
//       CHECK:       gdn_gpu.await_launch
//  CHECK-NEXT:       gdn_gpu.release_launch
//       CHECK:       scf.for
//       CHECK:         gdn_gpu.copy_out
//       CHECK:       gdn_gpu.copy_out
//       CHECK:       %[[TURNS:.+]] = arith.ceildivsi %{{.+}}, %c64 : index
//  CHECK-NEXT:       %[[BEFORE:.+]] = arith.subi %[[TURNS]], %c1 : index
//  CHECK-NEXT:       %[[LAST:.+]] = arith.muli %[[BEFORE]], %c64 : index
//       CHECK:       %[[COUNT:.+]] = arith.minsi %[[TURNS]], %c5 : index
//  CHECK-NEXT:       gdn_gpu.signal 16, %[[COUNTERS]][%{{.+}}, %{{.+}}] last(%[[COUNT]])
//   CHECK-NOT:       gdn_gpu.copy_out
// Halves without a chunk move a state, which waits, too.
//      HALVES:     } else {
//      HALVES:       gdn_gpu.await_launch
// HALVES-NEXT:       gdn_gpu.release_launch
//       CHECK:   gdn_gpu.warps 4 for 4 registers 128 alternate {
//   CHECK-NOT:     _launch
//       CHECK:   gdn_gpu.warps 8 for 2 registers 72 {
//       CHECK:       gdn_gpu.await_launch
//   CHECK-NOT:       gdn_gpu.release_launch
//       CHECK:       scf.for %[[AT:.+]] = %[[BEGIN:.+]] to %{{.+}} step %c64 {
//       CHECK:         %[[IN:.+]] = arith.cmpi slt, %[[AT]],
//       CHECK:         gdn_gpu.await_copies
//       CHECK:         %[[STORED:.+]] = arith.subi %[[AT]], %c320 : index
//  CHECK-NEXT:         %[[SOME:.+]] = arith.cmpi sle, %[[BEGIN]], %[[STORED]] : index
//  CHECK-NEXT:         %[[TURN:.+]] = arith.andi %[[SOME]], %[[IN]] : i1
//       CHECK:         %[[ONE:.+]] = arith.select %[[TURN]], %c1, %c0 : index
//  CHECK-NEXT:         gdn_gpu.signal 32, %[[COUNTERS]][%{{.+}}, %{{.+}}] last(%[[ONE]])
//  CHECK-NEXT:       }
//   CHECK-NOT:   gdn_gpu.signal
//   CHECK-NOT:   release_launch
// No role of a segment waits where it has no chunk.
//       SEGMENTS:     gdn_gpu.await_launch
//  SEGMENTS-NEXT:   }
//  SEGMENTS-NEXT:   return

// HALVES-LABEL: func.func @prefill__norm_fused_v_split_2_followed(
// SEGMENTS-LABEL: func.func @prefill__norm_fused_segments_3_followed(
//   CHECK-NOT:   await_launch
//       CHECK:   gdn_gpu.each_warp
//   CHECK-NOT:   gdn_gpu.load
//       CHECK:     gdn_gpu.await_signals 128, %arg21[
//       CHECK:     gdn_gpu.load
//       CHECK:     gdn_gpu.await_launch
//  CHECK-NEXT:   }
//  CHECK-NEXT:   return

// Four warps of consumers cannot share 62.
// RUN: sed 's/gdn_tile.signal 64/gdn_tile.signal 62/' %t | not gdn-opt -mlir-print-op-on-diagnostic=false -gdn-schedule-tile-products="warps=12 warpgroups" 2>&1 | FileCheck %s --check-prefix=SHARE
// SHARE: error: 'gdn_tile.signal' op expects an amount that 4 warps of consumers can share

// Without an inverse there are no roles.
// RUN: sed '/_followed(/,/^  }/s/tri_inverse \(%%.*\) : \(.*\)/transpose \1 : \2 -> \2/' %t | gdn-opt -mlir-print-op-on-diagnostic=false -gdn-schedule-tile-products="warps=12 warpgroups" 2>&1 | FileCheck %s --check-prefix=ROLES
// ROLES: remark: 'prefill__inter_chunk_fused_v_split_2_followed' signals, which is for consumers of roles
// ROLES: func.func @prefill__inter_chunk_fused_v_split_2_followed(
// ROLES:   gdn_tile.signal 64
