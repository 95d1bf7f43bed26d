// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A gated norm beside the state's last product. All consumers meet when they have shared their
// columns of the outputs, take rows, meet again and compute, while the product is under way: it is
// awaited behind the store. A role of two warps fetches what the norm reads of memory; nothing is
// scaled, and keys are kept until the end of a chunk.
//
// RUN: gdn-opt %s -gdn-fuse=norm-with-rule -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=fused:fused=2;norm=with-rule,staged: value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-tile-products="warps=12" -gdn-gpu-use-warpgroups -canonicalize -cse -gdn-gpu-place-barriers -gdn-gpu-overlap-products -gdn-gpu-check | FileCheck %s

// By halves of a row, two blocks exchange what they know of its sum.
// RUN: gdn-opt %s -gdn-fuse=norm-with-rule -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=fused-v-split-2:fused=2;v-split=2;norm=with-rule,staged: value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-tile-products="warps=12" -gdn-gpu-use-warpgroups -canonicalize -cse -gdn-gpu-place-barriers -gdn-gpu-overlap-products -gdn-gpu-check | FileCheck %s --check-prefix=HALVES
// Without a cluster there is nobody to exchange it with.
// RUN: gdn-opt %s -gdn-fuse=norm-with-rule -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=fused-v-split-2:fused=2;v-split=2;norm=with-rule,staged: value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse > %t.mlir
// RUN: sed '/@prefill__inter_chunk_fused_v_split_2/,/^  }/s/gdn_tile.block_id 1$/gdn_tile.block_id 2/' %t.mlir | not gdn-opt -gdn-schedule-tile-products="warps=12" 2>&1 | FileCheck %s --check-prefix=APART
// APART: error: 'gdn_tile.sum_of_pair' op is for two blocks that prepare chunks for each other, which these cannot

// HALVES-LABEL: func.func @prefill__inter_chunk_fused_v_split_2(
//  HALVES-SAME:   cluster = 2 : i64
//       HALVES:   %[[SUMS:.+]] = gdn_gpu.channel exchanged : <2x64xf32, depth = 2>
//       HALVES:   gdn_gpu.channel : <64x64xbf16, depth = 2, swizzled>
//       HALVES:   gdn_gpu.warps 0 for 4 registers 240 {
//       HALVES:       %[[S:.+]] = gdn_gpu.start_matmul {{.+}} acc({{.+}} -> <64x128xf32
//       HALVES:       %[[PART:.+]] = gdn_gpu.map_rows %{{.+}} -> !gdn_gpu.fragment<64xf32
//       HALVES:       %[[OWN:.+]] = gdn_gpu.acquire %[[SUMS]]
//       HALVES:       gdn_gpu.store_shared %[[PART]], %[[OWN]] row(%{{[0-9]+}})
//       HALVES:       gdn_gpu.commit %[[SUMS]]
// The gate, in the time that the other block takes.
//       HALVES:       %[[GATE:.+]] = gdn_gpu.map_rows %{{.+}} -> !gdn_gpu.fragment<64x64xf32
//       HALVES:       %[[BOTH:.+]] = gdn_gpu.receive %[[SUMS]]
//       HALVES:       %[[X:.+]] = gdn_gpu.load_shared %[[BOTH]] row(%c0)
//       HALVES:       %[[Y:.+]] = gdn_gpu.load_shared %[[BOTH]] row(%c1)
//       HALVES:       %[[SUM:.+]] = gdn_gpu.map_rows %[[X]], %[[Y]]
//       HALVES:       gdn_gpu.map_rows %{{.+}}, %[[GATE]], %[[SUM]]
//       HALVES:       gdn_gpu.await_matmul %[[S]]
//       HALVES:       gdn_gpu.release %[[SUMS]]

// CHECK-DAG: #[[$WIDE:.+]] = #gdn_gpu.rows<warps = 8, lanes = 16, vector = 8>

// CHECK-LABEL: func.func @prefill__inter_chunk_fused(
// Other calls take another variant.
//  CHECK-SAME:   gdn_gpu.alignment = 16 : i64
//  CHECK-SAME:   promised
//       CHECK:   %[[WEIGHT:.+]] = gdn_gpu.alloc : <128xf32>
//       CHECK:   %[[FETCHED:.+]] = gdn_gpu.channel : <64x128xbf16, depth = 1, swizzled>
//       CHECK:   %[[KEYS:.+]] = gdn_gpu.channel : <64x128xf16, depth = 4, swizzled>
//       CHECK:   gdn_gpu.warps 0 for 8 registers 192 {
//       CHECK:     scf.for
//       CHECK:       %[[Z:.+]] = gdn_gpu.receive %[[FETCHED]]
//       CHECK:       %[[O:.+]] = gdn_gpu.start_matmul {{.+}} acc({{.+}} -> <128x64xf32
//       CHECK:       %[[S:.+]] = gdn_gpu.start_matmul {{.+}} acc({{.+}} -> <128x128xf32
//       CHECK:       gdn_gpu.await_matmul %[[O]]
//       CHECK:       gdn_gpu.store_shared transpose %{{.+}}, %[[SHARED:[0-9a-z_]+]] :
//  CHECK-NEXT:       gdn_gpu.barrier
//  CHECK-NEXT:       %[[ROWS:.+]] = gdn_gpu.load_shared %[[SHARED]] : {{.+}} -> <64x128xbf16, #[[$WIDE]]>
//  CHECK-NEXT:       gdn_gpu.barrier
//       CHECK:       %[[GATE:.+]] = gdn_gpu.load_shared %[[Z]]
//       CHECK:       %[[W:.+]] = gdn_gpu.load_shared %[[WEIGHT]]
//       CHECK:       %[[Y:.+]] = gdn_gpu.map_rows %{{.+}}, %{{.+}}, %[[W]]
//       CHECK:       gdn_gpu.store %[[Y]], %{{.+}} aligned 16
//  CHECK-NEXT:       gdn_gpu.await_matmul %[[S]]
//       CHECK:       gdn_gpu.release %[[FETCHED]]
//       CHECK:       gdn_gpu.release %[[KEYS]]
//   CHECK-NOT:     gdn_gpu.copy_out
//       CHECK:   gdn_gpu.warps 8 for 4 registers 104 {
//       CHECK:   gdn_gpu.warps 12 for 1 registers 24 {
//       CHECK:   gdn_gpu.warps 13 for 1 registers 24 {
//       CHECK:   gdn_gpu.warps 14 for 2 registers 24 {
//       CHECK:     scf.for
//       CHECK:       %[[TO:.+]] = gdn_gpu.acquire %[[FETCHED]]
//       CHECK:       gdn_gpu.begin_copy %{{.+}}, %[[TO]]
//  CHECK-NEXT:       gdn_gpu.await_copies
//  CHECK-NEXT:       gdn_gpu.commit %[[FETCHED]]
func.func @prefill(
    %q: tensor<?x?x128xf16> {gdn.name = "q", gdn.dims = ["T", "Hk", "128"]},
    %k: tensor<?x?x128xf16> {gdn.name = "k", gdn.dims = ["T", "Hk", "128"]},
    %v: tensor<?x?x128xf16> {gdn.name = "v", gdn.dims = ["T", "Hv", "128"]},
    %g: tensor<?x?xf32> {gdn.name = "log_decay", gdn.dims = ["T", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %z: tensor<?x?x128xbf16> {gdn.name = "z", gdn.dims = ["T", "Hv", "128"]},
    %w: tensor<128xbf16> {gdn.name = "norm_weight", gdn.dims = ["128"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %pool: !gdn.pool<?x?x128x128xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "128", "128"]})
    -> (tensor<?x?x128xbf16> {gdn.name = "out", gdn.dims = ["T", "Hv", "128"]})
    attributes {gdn.entry} {
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x128xf16>, tensor<?x?x128xf16>, tensor<?x?x128xf16>, tensor<?x?xf32>,
        tensor<?x?xf32>, !gdn.pool<?x?x128x128xf32>, tensor<?xi32>, tensor<?xi32>
        -> tensor<?x?x128xf32>
  %y = gdn.gated_rms_norm %o, %z, %w silu
      : tensor<?x?x128xf32>, tensor<?x?x128xbf16>, tensor<128xbf16> -> tensor<?x?x128xbf16>
  %out = gdn.mask_sequences %y of(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x128xbf16>, !gdn.pool<?x?x128x128xf32>, tensor<?xi32>, tensor<?xi32>
        -> tensor<?x?x128xbf16>
  return %out : tensor<?x?x128xbf16>
}
