// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values that the consumers convolve. They load weights and the window in front of the sequence
// once, and carry what comes next in registers. A chunk's inputs are convolved in place, ahead of
// its products, and read where values are; then the next inputs are on their way. Other roles know
// nothing of it.
//
// RUN: gdn-opt %S/../Conversion/GDNToTile/fused-conv.mlir -gdn-fuse=conv-with-rule -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=fused:fused=2;conv=with-rule,staged: value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-tile-products="warps=12" -gdn-gpu-use-warpgroups -canonicalize -cse -gdn-gpu-place-barriers -gdn-gpu-overlap-products -gdn-gpu-check | FileCheck %s

// Where a stage has convolved them, each group waits for its state behind all that it asks for, and each
// window that a block leaves behind is moved by a warp of its own.
// RUN: gdn-opt %S/../Conversion/GDNToTile/fused-conv.mlir -gdn-fuse -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=fused-v-split-2:fused=2;v-split=2,staged: value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-tile-products="warps=8" -gdn-gpu-use-warpgroups -canonicalize -cse -gdn-gpu-place-barriers -gdn-gpu-overlap-products -gdn-gpu-check | FileCheck %s --check-prefix=HALVES

// HALVES-LABEL: func.func @prefill__inter_chunk_fused_v_split_2(
//       HALVES:   gdn_gpu.warps 0 for 4 registers 240 {
//       HALVES:     gdn_gpu.begin_copy per_warpgroup
//       HALVES:     %[[STATE:.+]] = gdn_gpu.map_rows
//       HALVES:     scf.for {{.+}} iter_args(%{{.+}} = %[[STATE]])
//       HALVES:     gdn_gpu.warps 0 for 1 {
//  HALVES-NEXT:       gdn_gpu.load
//       HALVES:       gdn_gpu.store
//       HALVES:     gdn_gpu.warps 1 for 1 {
//       HALVES:     gdn_gpu.warps 2 for 1 {
//       HALVES:   gdn_gpu.warps 4 for 4 registers 128

// CHECK-LABEL: func.func @prefill__inter_chunk_fused(
// Other calls take another variant: pieces of 16 bytes of the inputs.
//  CHECK-SAME:   gdn.name = "qkv", gdn_gpu.alignment = 16 : i64
//  CHECK-SAME:   promised
//       CHECK:   gdn_gpu.warps 0 for 8 registers 192 {
//       CHECK:     %[[WEIGHT:.+]] = gdn_gpu.load %{{.+}} dims [0, 1] : {{.+}}, <128x4xbf16, #[[ROWS:.+]]>
//       CHECK:     %[[FIRST:.+]] = gdn_gpu.load %{{.+}} dims [1, 2] : {{.+}}, <128x3xbf16, #[[ROWS]]>
// Whoever is done with the sequence writes the window behind it.
//  CHECK-NEXT:     gdn_gpu.barrier
//       CHECK:     gdn_gpu.begin_copy per_warpgroup %{{.+}}, %[[INPUTS:[0-9]+]] :
//       CHECK:     scf.for {{.+}} iter_args(%{{.+}} = %{{.+}}, %[[WINDOW:.+]] = %[[FIRST]])
//       CHECK:       gdn_gpu.await_copies
//       CHECK:       %[[VALUES:.+]] = gdn_gpu.reshape %[[INPUTS]] : {{.+}} to <64x128xf16, swizzled>
//  CHECK-NEXT:       %[[NEXT:.+]] = gdn_gpu.conv_columns %[[INPUTS]], %[[WINDOW]], %[[WEIGHT]] to %[[VALUES]]
//  CHECK-NEXT:       ^bb0(%{{.+}}: vector<64xf32>):
//       CHECK:         math.exp
//       CHECK:         gdn_gpu.yield %{{.+}} : vector<64xf16>
//       CHECK:       gdn_gpu.start_matmul
//       CHECK:       gdn_gpu.load_shared transpose %[[VALUES]]
//       CHECK:       gdn_gpu.begin_copy per_warpgroup %{{.+}}, %[[INPUTS]] :
//       CHECK:       scf.yield %{{.+}}, %[[NEXT]]
//       CHECK:   gdn_gpu.warps 8 for 4 registers 104 {
//   CHECK-NOT:     conv_columns
// Inputs of gates are a chunk ahead.
//       CHECK:   gdn_gpu.warps 13 for 1 registers 24 {
//       CHECK:     scf.for {{.+}} step %c64 iter_args(
//       CHECK:       gdn_gpu.load
//       CHECK:       gdn_gpu.acquire
//       CHECK:       gdn_gpu.commit
