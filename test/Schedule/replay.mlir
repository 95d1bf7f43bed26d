// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decode with states that are written every 16 tokens: the program of a block per
// value head, and the variant "persistent".
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile=value-heads -canonicalize -cse -gdn-tile-fuse-rows -cse -o %t.tile
// RUN: FileCheck %s --check-prefix=TILE < %t.tile
// RUN: gdn-opt %t.tile -gdn-schedule-persistent-recurrence="replay-units=300 shared-bytes=115712" -gdn-schedule-resident-recurrence -canonicalize -cse -o %t
// RUN: FileCheck %s < %t
// RUN: gdn-gpu-opt %t -gdn-gpu-place-barriers -gdn-gpu-check -o /dev/null
// RUN: gdn-opt %t.tile -gdn-schedule-persistent-recurrence="replay-units=0 shared-bytes=115712" | FileCheck %s --check-prefix=NONE
// NONE-NOT: gdn_gpu
//
// RUN: sed 's/?x?x16x/?x?x13x/g; s/"16"/"13"/g' %s | gdn-opt -gdn-fuse -convert-gdn-to-tile=value-heads -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-persistent-recurrence="replay-units=300 shared-bytes=115712" -gdn-schedule-resident-recurrence -canonicalize -cse -o %t.odd
// RUN: FileCheck %s --check-prefix=ODD < %t.odd
// RUN: gdn-gpu-opt %t.odd -gdn-gpu-place-barriers -gdn-gpu-check -o /dev/null
//
// Memory has 13 tokens, and a block room for 16, of which some are zeros always.
//
//     ODD-NOT: func.func @decode_persistent
//   ODD-LABEL: func.func @decode(
// ODD-COUNT-2:   gdn_gpu.begin_copy %{{.+}} : memref<?x?x13x128xf32, {{.+}}>, <16x128xf32>
//         ODD:   gdn_gpu.load %{{.+}} rows(%{{.+}}) : memref<?x?x13xf32, {{.+}}>, <16xf32,

// The last of a key head's blocks to have read writes its window, the keys and the
// count in one branch.
//
// TILE-LABEL: func.func @decode(
//  TILE-SAME:   groups = ["2", "N", "Hk"]
//       TILE:   scf.if
//       TILE:     %[[N:.+]] = arith.minui
//       TILE:     %[[FULL:.+]] = arith.cmpi ugt
//       TILE:     %[[M:.+]], %[[O:.+]], %[[D:.+]] = gdn_tile.delta_replay %{{.+}} pending({{.+}}) count(%[[N]]) commit(%[[FULL]])
//       TILE:     scf.if %[[FULL]] {
//  TILE-NEXT:       gdn_tile.store %[[M]],
//  TILE-NEXT:     }
//       TILE:     gdn_tile.store %[[D]],
//       TILE:     %[[LAST:.+]] = gdn_tile.last_in_group
//       TILE:     scf.if %[[LAST]] {
//       TILE:       gdn_tile.store %{{.+}} dims [2, 3]
//       TILE:       memref.store %{{.+}} : memref<?x?xi32
//       TILE:       gdn_tile.store %{{.+}} dims [2, 1]

// CHECK-LABEL: func.func @decode_persistent(
//  CHECK-SAME:   blocks_per_sm = 2 : i64, keep_loops, min_blocks = 2 : i64, threads = 320 : i64
//  CHECK-SAME:   conditions = {{.}}{{.}}["300"], ["N", "Hv"]], {{.}}["N", "Hv"], ["2147483647"]]]
//   CHECK-DAG:   %[[RING:.+]] = gdn_gpu.channel : <32x128xf32, depth = {{[0-9]}}, parts = 4>
//   CHECK-DAG:   %[[KEYS:.+]] = gdn_gpu.channel : <16x128xf32, depth = 2>
//   CHECK-DAG:   gdn_gpu.channel : <16x128xf32, depth = 2> with %[[KEYS]]
//   CHECK-DAG:   %[[PRODUCTS:.+]] = gdn_gpu.channel : <2x128xf32, depth = 2>
//   CHECK-DAG:   %[[COUNTS:.+]] = gdn_gpu.channel : <1xi32, depth = 2>
//       CHECK:   gdn_gpu.roles {
// The scan: what its unit is comes from another role, and the state is stored only
// if it receives the tokens.
//       CHECK:     gdn_gpu.warps 0 for 4 {
//       CHECK:       gdn_gpu.units {
//   CHECK-NOT:         arith.divui
//   CHECK-NOT:         gdn_gpu.block_id
//       CHECK:         gdn_gpu.receive %[[COUNTS]]
//       CHECK:         gdn_gpu.receive %[[KEYS]]
//       CHECK:         %[[MADE:.+]] = gdn_gpu.acquire %[[PRODUCTS]]
//       CHECK:         scf.for
//  CHECK-NEXT:           %[[ROWS:.+]] = gdn_gpu.receive %[[RING]]
//       CHECK:           %[[STATE:.+]] = scf.if
//       CHECK:             scf.for
//       CHECK:             gdn_gpu.store %{{.+}} dims [2, 3] aligned 16
//       CHECK:           gdn_gpu.map_rows %[[STATE]],
//       CHECK:             vector.reduction
//       CHECK:             vector.reduction
//   CHECK-NOT:             vector.reduction
//       CHECK:           gdn_gpu.release %[[RING]]
//       CHECK:         gdn_gpu.commit %[[PRODUCTS]]
// The key's role stores behind the end of copies from where it stores to.
//       CHECK:     gdn_gpu.warps 5 for 1 {
//       CHECK:       gdn_gpu.receive %[[KEYS]]
//       CHECK:       gdn_gpu.release %[[KEYS]]
//       CHECK:       gdn_gpu.last_reader
//       CHECK:         gdn_gpu.store_element %{{.+}} : i32, memref<?x?xi32
// The pending tokens of units to come, before the launch ahead has ended.
//       CHECK:     gdn_gpu.warps 9 for 1 {
//  CHECK-NEXT:       gdn_gpu.units {
//       CHECK:         memref.load %{{.+}} : memref<?x?xi32
// CHECK-COUNT-3:       gdn_gpu.begin_copy
//       CHECK:         gdn_gpu.await_copies
//       CHECK:         gdn_gpu.commit %[[KEYS]]

// The last warp makes what remains of pending tokens ahead of the wait; their terms are
// added up by four warps, in an order of tokens as one would.
//
// CHECK-LABEL: func.func @decode(
//   CHECK-DAG:   gdn_gpu.load %{{.+}} dims [2, 3] aligned 16
// CHECK-COUNT-2: gdn_gpu.begin_copy
//   CHECK-NOT:   gdn_gpu.begin_copy
//       CHECK:   gdn_gpu.warps 7 for 1 {
//       CHECK:     gdn_gpu.load %{{.+}} rows(%{{.+}}) : memref<?x?x16xf32, {{.+}}>, <16xf32,
//       CHECK:     math.exp
//       CHECK:   gdn_gpu.await_launch
//       CHECK:   gdn_gpu.await_copies
//  CHECK-NEXT:   gdn_gpu.barrier
//       CHECK:   gdn_gpu.take_ticket
//   CHECK-NOT:   gdn_gpu.barrier
//       CHECK:   %[[STATE:.+]] = scf.if
//       CHECK:     gdn_gpu.store %{{.+}} dims [2, 3] aligned 16
//       CHECK:   gdn_gpu.map_rows %[[STATE]],
//       CHECK:   gdn_gpu.barrier
//       CHECK:   gdn_gpu.warps 0 for 4 {
// CHECK-COUNT-2:   gdn_gpu.load_shared %{{.+}} : <8x32xf32> -> <4x32xf32,
// CHECK-COUNT-16:  gdn_gpu.load_shared %{{.+}} : <64x32xf32> -> <4x32xf32,
// CHECK-COUNT-2:   gdn_gpu.store_shared %{{.+}} : <4x32xf32, {{.+}}>, <4x32xf32>
//       CHECK:   %[[MEETS:.+]] = gdn_gpu.warps 7 for 1 -> f32 {
//       CHECK:   gdn_gpu.barrier
//       CHECK:   gdn_gpu.warps 7 for 1
//       CHECK:     vector.broadcast %[[MEETS]]
//       CHECK:   gdn_gpu.is_last
//       CHECK:     gdn_gpu.store_element %{{.+}} : i32, memref<?x?xi32

func.func @decode(
    %hk: index {gdn.name = "Hk"}, %hv: index {gdn.name = "Hv"},
    %qkvz: tensor<?x?xbf16> {gdn.name = "qkvz", gdn.dims = ["N", "256*Hk + 256*Hv"]},
    %ba: tensor<?x?xbf16> {gdn.name = "ba", gdn.dims = ["N", "2*Hv"]},
    %w: tensor<?x4xbf16> {gdn.name = "conv_weight", gdn.dims = ["256*Hk + 128*Hv", "4"]},
    %alog: tensor<?xf32> {gdn.name = "A_log", gdn.dims = ["Hv"]},
    %dt: tensor<?xf32> {gdn.name = "dt_bias", gdn.dims = ["Hv"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %cp: !gdn.pool<?x?x3xbf16> {gdn.name = "conv_pool", gdn.dims = ["P", "256*Hk + 128*Hv", "3"]},
    %sp: !gdn.pool<?x?x128x128xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "128", "128"]},
    %pk: !gdn.pool<?x?x16x128xf32> {gdn.name = "pending_keys", gdn.dims = ["P", "Hk", "16", "128"]},
    %pd: !gdn.pool<?x?x16x128xf32> {gdn.name = "pending_deltas", gdn.dims = ["P", "Hv", "16", "128"]},
    %pg: !gdn.pool<?x?x16xf32> {gdn.name = "pending_decays", gdn.dims = ["P", "Hv", "16"]},
    %pc: !gdn.pool<?x?xi32> {gdn.name = "pending_counts", gdn.dims = ["P", "Hk"]})
    -> (tensor<?x?x128xf32> {gdn.name = "core", gdn.dims = ["N", "Hv", "128"]})
    attributes {gdn.entry} {
  %q, %k, %v, %z = gdn.unpack "qkvz" interleaved %qkvz heads(%hk, %hv)
      : tensor<?x?xbf16> -> tensor<?x?x128xbf16>, tensor<?x?x128xbf16>,
        tensor<?x?x128xbf16>, tensor<?x?x128xbf16>
  %b, %a = gdn.unpack "ba" interleaved %ba heads(%hk, %hv)
      : tensor<?x?xbf16> -> tensor<?x?xbf16>, tensor<?x?xbf16>
  %qc, %kc, %vc = gdn.conv1d %q, %k, %v weight(%w) silu pool(%cp) slots(%slots)
      : (tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?x128xbf16>),
        tensor<?x4xbf16>, !gdn.pool<?x?x3xbf16>, tensor<?xi32>
        -> tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<?x?x128xf32>
  %qn = gdn.l2norm %qc : tensor<?x?x128xf32> -> tensor<?x?x128xf32>
  %kn = gdn.l2norm %kc : tensor<?x?x128xf32> -> tensor<?x?x128xf32>
  %g, %beta = gdn.gates %a, %b, %alog, %dt
      : tensor<?x?xbf16>, tensor<?x?xbf16>, tensor<?xf32>, tensor<?xf32>
        -> tensor<?x?xf32>, tensor<?x?xf32>
  %core = gdn.delta_rule %qn, %kn, %vc gates(%g, %beta) pool(%sp) slots(%slots)
      pending(%pk, %pd, %pg) counts(%pc)
      : tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<?x?x128xf32>,
        tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x128x128xf32>, tensor<?xi32>
        pending !gdn.pool<?x?x16x128xf32>, !gdn.pool<?x?x16x128xf32>, !gdn.pool<?x?x16xf32>
        counts !gdn.pool<?x?xi32> -> tensor<?x?x128xf32>
  return %core : tensor<?x?x128xf32>
}
