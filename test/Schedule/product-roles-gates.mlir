// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gates that are made of projections. A role of one warp asks for their inputs a chunk ahead where
// another stage is beside this one, as first segments are beside maps. Maps of four segments have no
// stage beside them and ask for a chunk's inputs when they come to it.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=fused-segments-9:fused=2;v-split=2;segments=9,fused-segments-4:fused=2;segments=4,staged: value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-tile-products="warps=12" -gdn-gpu-use-warpgroups -canonicalize -cse -gdn-gpu-place-barriers -gdn-gpu-overlap-products -gdn-gpu-check | FileCheck %s

// CHECK-LABEL: func.func @prefill__maps_fused_segments_9(
//  CHECK-SAME:   overlaps = "next"
//       CHECK:   gdn_gpu.warps 13 for 1 registers 24
//       CHECK:     scf.for {{.+}} iter_args(
//       CHECK:       gdn_gpu.load {{.+}}, <64xbf16,
//       CHECK:       gdn_gpu.load {{.+}}, <64xbf16,
//       CHECK:       scf.if
//       CHECK:         gdn_gpu.acquire
// CHECK-LABEL: func.func @prefill__maps_fused_segments_4(
//   CHECK-NOT:   overlaps
//       CHECK:   gdn_gpu.warps 13 for 1 registers 24 {
//   CHECK-NOT:     iter_args
//       CHECK:     scf.for %{{[a-z0-9]+}} = {{.+}} step %c64 {
//       CHECK:       gdn_gpu.load {{.+}}, <64xbf16,
//   CHECK-NOT:       scf.if
//       CHECK:       gdn_gpu.acquire

func.func @prefill(
    %q: tensor<?x?x128xbf16> {gdn.name = "q", gdn.dims = ["T", "Hk", "128"]},
    %k: tensor<?x?x128xbf16> {gdn.name = "k", gdn.dims = ["T", "Hk", "128"]},
    %v: tensor<?x?x128xbf16> {gdn.name = "v", gdn.dims = ["T", "Hv", "128"]},
    %a: tensor<?x?xbf16> {gdn.name = "a", gdn.dims = ["T", "Hv"]},
    %b: tensor<?x?xbf16> {gdn.name = "b", gdn.dims = ["T", "Hv"]},
    %a_log: tensor<?xf32> {gdn.name = "a_log", gdn.dims = ["Hv"]},
    %dt: tensor<?xf32> {gdn.name = "dt_bias", gdn.dims = ["Hv"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %pool: !gdn.pool<?x?x128x128xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "128", "128"]})
    -> (tensor<?x?x128xbf16> {gdn.name = "core", gdn.dims = ["T", "Hv", "128"]})
    attributes {gdn.entry} {
  %g, %beta = gdn.gates %a, %b, %a_log, %dt
      : tensor<?x?xbf16>, tensor<?x?xbf16>, tensor<?xf32>, tensor<?xf32>
        -> tensor<?x?xf32>, tensor<?x?xf32>
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?xf32>,
        tensor<?x?xf32>, !gdn.pool<?x?x128x128xf32>, tensor<?xi32>, tensor<?xi32>
        -> tensor<?x?x128xbf16>
  return %o : tensor<?x?x128xbf16>
}
