// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verify with states that are written when there is no room for the tokens. Tiles:
// the state with all that is pending goes from token to token. The schedule makes
// its products with the state as it is in memory, and adds what pending tokens
// give.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile=value-heads -canonicalize -cse -gdn-tile-fuse-rows -cse -o %t.tile
// RUN: FileCheck %s --check-prefix=TILE < %t.tile
// RUN: gdn-opt %t.tile -gdn-schedule-resident-tokens -canonicalize -cse -o %t
// RUN: FileCheck %s < %t
// RUN: gdn-gpu-opt %t -gdn-gpu-place-barriers -gdn-gpu-check -o /dev/null
//
// RUN: sed 's/?x?x16x/?x?x9x/g; s/"16"/"9"/g' %s | gdn-opt -gdn-fuse -convert-gdn-to-tile=value-heads -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-resident-tokens -canonicalize -cse -o %t.odd
// RUN: FileCheck %s --check-prefix=ODD < %t.odd
// RUN: gdn-gpu-opt %t.odd -gdn-gpu-place-barriers -gdn-gpu-check -o /dev/null
//
// Of nine tokens, with room for twelve.
//
//   ODD-LABEL: func.func @verify(
// ODD-COUNT-2:   gdn_gpu.begin_copy %{{.+}} : memref<?x?x9x128xf32, {{.+}}>, <12x128xf32>
//         ODD:   gdn_gpu.begin_copy scattered %{{.+}} : memref<?x?x9xf32, {{.+}}>, <12xf32>

// TILE-LABEL: func.func @verify(
//  TILE-SAME:   groups = ["2", "N + 1", "Hk"]
//       TILE:   %[[FULL:.+]] = arith.cmpi ugt
//       TILE:   %[[FIRST:.+]] = arith.select %[[FULL]], %{{.+}}, %[[N:.+]] : index
//       TILE:   %[[LAST:.+]] = gdn_tile.last_in_group
//       TILE:   %[[M:.+]], %[[WHOLE:.+]] = gdn_tile.delta_catch_up %{{.+}} count(%[[N]]) commit(%[[FULL]]) : vector<128x128xbf16>
//       TILE:   scf.if %[[FULL]] {
//  TILE-NEXT:     gdn_tile.store %[[M]],
//       TILE:   scf.if %[[LAST]] {
//       TILE:     memref.store %{{.+}} : memref<?x?xi32
//       TILE:   scf.for {{.*}} iter_args({{.*}}%[[STATE:.+]] = %[[WHOLE]]
//       TILE:     gdn_tile.delta_scan %[[STATE]]

// CHECK-LABEL: func.func @verify(
//  CHECK-SAME:   threads = 256 : i64
//       CHECK:   %[[STATE:.+]] = gdn_gpu.load %{{.+}} dims [2, 3] aligned 16
// CHECK-COUNT-3: gdn_gpu.begin_copy
// Histories have come, and pending tokens: one warp has their weights while others
// make the operands.
//       CHECK:   gdn_gpu.await_copies
//  CHECK-NEXT:   gdn_gpu.barrier
//  CHECK-NEXT:   gdn_gpu.warps 7 for 1 {
//       CHECK:     math.exp
//       CHECK:     gdn_gpu.store_shared %{{.+}}, %[[WEIGHTS:.+]] : <16xf32
//       CHECK:   gdn_gpu.barrier
//       CHECK:   gdn_gpu.take_ticket
// Pairs with the block's tokens, and a few pending ones at a time.
//       CHECK:   gdn_gpu.each_warp 0 for 8 {
//       CHECK:     gdn_gpu.store_shared %{{.+}} : <8xf32
//       CHECK:     scf.for
//       CHECK:       gdn_gpu.load_shared %{{.+}} : <16x128xf32> -> <4x128xf32
//       CHECK:       gdn_gpu.map_rows
// The state receives them if it is time, and is rounded.
//       CHECK:   %[[START:.+]] = scf.if %{{.+}} -> (!gdn_gpu.fragment<128x128xf32
//       CHECK:     arith.truncf
//       CHECK:     gdn_gpu.store %{{.+}} dims [2, 3] aligned 16
//       CHECK:   gdn_gpu.share_products %[[START]] exact(
//       CHECK:   gdn_gpu.barrier
// What they give the tokens, once for all of these.
//       CHECK:   scf.for {{.*}} -> ({{(!gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows[0-9]*>>(, )?)+}}) {
//       CHECK:   scf.if %{{.+}} {
//       CHECK:     gdn_gpu.store_element %{{.+}} : i32, memref<?x?xi32

func.func @verify(
    %hk: index {gdn.name = "Hk"}, %hv: index {gdn.name = "Hv"}, %steps: index {gdn.name = "S"},
    %qkvz: tensor<?x?xbf16> {gdn.name = "qkvz", gdn.dims = ["T", "256*Hk + 256*Hv"]},
    %ba: tensor<?x?xbf16> {gdn.name = "ba", gdn.dims = ["T", "2*Hv"]},
    %w: tensor<?x4xbf16> {gdn.name = "conv_weight", gdn.dims = ["256*Hk + 128*Hv", "4"]},
    %alog: tensor<?xf32> {gdn.name = "A_log", gdn.dims = ["Hv"]},
    %dt: tensor<?xf32> {gdn.name = "dt_bias", gdn.dims = ["Hv"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %ids: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %accepted: tensor<?xi32> {gdn.name = "num_accepted", gdn.dims = ["N"]},
    %cp: !gdn.pool<?x?x?xbf16> {gdn.name = "conv_pool", gdn.dims = ["P", "256*Hk + 128*Hv", "S + 3"]},
    %sp: !gdn.pool<?x?x128x128xbf16> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "128", "128"]},
    %pk: !gdn.pool<?x?x16x128xf32> {gdn.name = "pending_keys", gdn.dims = ["P", "Hk", "16", "128"]},
    %pd: !gdn.pool<?x?x16x128xf32> {gdn.name = "pending_deltas", gdn.dims = ["P", "Hv", "16", "128"]},
    %pg: !gdn.pool<?x?x16xf32> {gdn.name = "pending_decays", gdn.dims = ["P", "Hv", "16"]},
    %pc: !gdn.pool<?x?xi32> {gdn.name = "pending_counts", gdn.dims = ["P", "Hk"]})
    -> (tensor<?x?x128xf32> {gdn.name = "core", gdn.dims = ["T", "Hv", "128"]})
    attributes {gdn.entry} {
  %slots = gdn.counted_slots %ids[%accepted] up_to(%steps) sequences(%cu) max_tokens(8)
      : tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
  %q, %k, %v, %z = gdn.unpack "qkvz" interleaved %qkvz heads(%hk, %hv)
      : tensor<?x?xbf16> -> tensor<?x?x128xbf16>, tensor<?x?x128xbf16>,
        tensor<?x?x128xbf16>, tensor<?x?x128xbf16>
  %b, %a = gdn.unpack "ba" interleaved %ba heads(%hk, %hv)
      : tensor<?x?xbf16> -> tensor<?x?xbf16>, tensor<?x?xbf16>
  %qc, %kc, %vc = gdn.conv1d %q, %k, %v weight(%w) silu pool(%cp) slots(%slots)
      sequences(%cu) pending(%accepted)
      : (tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?x128xbf16>),
        tensor<?x4xbf16>, !gdn.pool<?x?x?xbf16>, tensor<?xi32>, tensor<?xi32>
        pending tensor<?xi32> -> tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<?x?x128xf32>
  %qn = gdn.l2norm %qc : tensor<?x?x128xf32> -> tensor<?x?x128xf32>
  %kn = gdn.l2norm %kc : tensor<?x?x128xf32> -> tensor<?x?x128xf32>
  %g, %beta = gdn.gates %a, %b, %alog, %dt
      : tensor<?x?xbf16>, tensor<?x?xbf16>, tensor<?xf32>, tensor<?xf32>
        -> tensor<?x?xf32>, tensor<?x?xf32>
  %core = gdn.delta_rule %qn, %kn, %vc gates(%g, %beta) pool(%sp) slots(%slots)
      sequences(%cu) accepted(%accepted) pending(%pk, %pd, %pg) counts(%pc)
      : tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<?x?x128xf32>,
        tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x128x128xbf16>, tensor<?xi32>, tensor<?xi32>
        accepted tensor<?xi32> pending !gdn.pool<?x?x16x128xf32>, !gdn.pool<?x?x16x128xf32>, !gdn.pool<?x?x16xf32>
        counts !gdn.pool<?x?xi32> -> tensor<?x?x128xf32>
  return %core : tensor<?x?x128xf32>
}
