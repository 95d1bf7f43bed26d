// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A decode entry with its state in the registers of a block: each operand of
// the scan is made by a warp of its own, shared, and loaded by all; the last
// warp does what follows. No tile op is left.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile=value-heads -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-resident-recurrence -canonicalize -cse -o %t
// RUN: FileCheck %s < %t
// RUN: gdn-gpu-opt %t -gdn-gpu-check -o /dev/null

// The state: 64 rows in turns to 8 warps; a row of 32 has 8 lanes.
//   CHECK-DAG: #[[$STATE:.+]] = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4, cyclic = true>
//   CHECK-DAG: #[[$WARP:.+]] = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 1>
//   CHECK-DAG: #[[$WIDE:.+]] = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 2>

// CHECK-LABEL: func.func @decode(
//  CHECK-SAME:   {gdn.name = "state_pool", gdn_gpu.alignment = 16 : i64}
//  CHECK-SAME:   min_blocks = 2 : i64, threads = 256 : i64}, gdn_tile.stage = {grid = ["N", "Hv"]
//       CHECK:   gdn_gpu.block_id 0
//       CHECK:   scf.if
// Windows and state are asked for before anything else of the row, and before
// the launch ahead has ended; but a window of 2 bytes for each lane is not.
//   CHECK-NOT:     gdn_gpu.warps 0
//       CHECK:     gdn_gpu.warps 2 for 1 {
//  CHECK-NEXT:       gdn_gpu.begin_load %{{.+}}, %[[V_BEGUN:.+]] : {{.+}}, <192xbf16>
//   CHECK-NOT:     gdn_gpu.begin_load
//       CHECK:     %[[M:.+]] = gdn_gpu.load %{{.+}} aligned 16 : {{.+}}, <64x32xf32, #[[$STATE]]>
//       CHECK:     gdn_gpu.await_launch
//  CHECK-NEXT:     gdn_gpu.release_launch
// A role asks for all it reads before it computes; query and key keep their new windows for the last reader of the old ones, and
// ask who that is as soon as they have read.
//       CHECK:     %[[Q_TICKET:.+]] = gdn_gpu.warps 0 for 1 -> i32 {
// CHECK-COUNT-3:       gdn_gpu.load
//   CHECK-NOT:       gdn_gpu.load
//       CHECK:       gdn_gpu.take_ticket
//       CHECK:       gdn_gpu.conv1d
//       CHECK:       gdn_gpu.store_shared %{{.+}}, %[[Q_PLACE:.+]] :
//       CHECK:       gdn_gpu.store_shared %{{.+}}, %[[Q_WINDOW:.+]] : <3x32xbf16, #[[$WARP]]>
//       CHECK:     gdn_gpu.warps 1 for 1 -> i32 {
//       CHECK:       gdn_gpu.store_shared %{{.+}}, %[[K_PLACE:.+]] :
//       CHECK:       gdn_gpu.store_shared %{{.+}}, %[[K_WINDOW:.+]] : <3x32xbf16, #[[$WARP]]>
// The windows of value channels have one reader. What has begun comes last.
//       CHECK:     gdn_gpu.warps 2 for 1 {
// CHECK-COUNT-2:       gdn_gpu.load
//       CHECK:       gdn_gpu.load {{.+}} begun(%[[V_BEGUN]] :
//       CHECK:       gdn_gpu.store_shared %{{.+}}, %[[V_PLACE:.+]] :
//       CHECK:       gdn_gpu.store
//       CHECK:     gdn_gpu.warps 3 for 1 {
//       CHECK:       math.log1p
// CHECK-COUNT-2:       gdn_gpu.store_shared
//       CHECK:     gdn_gpu.barrier
//       CHECK:     %[[K:.+]] = gdn_gpu.load_shared %[[K_PLACE]] row
//  CHECK-SAME:       #gdn_gpu.per_column<#[[$STATE]]>
//       CHECK:     %[[Q:.+]] = gdn_gpu.load_shared %[[Q_PLACE]] row
//       CHECK:     %[[V:.+]] = gdn_gpu.load_shared %[[V_PLACE]] row
//  CHECK-SAME:       #gdn_gpu.per_row<#[[$STATE]]>
//       CHECK:     %[[SCAN:.+]]:2 = gdn_gpu.map_rows %[[M]], %[[K]], %[[Q]], %[[V]]
// CHECK-COUNT-3:       vector.reduction <add>
//       CHECK:     gdn_gpu.store_shared %[[SCAN]]#1, %[[O_PLACE:.+]] row
//       CHECK:     gdn_gpu.store %[[SCAN]]#0
//       CHECK:     gdn_gpu.barrier
//       CHECK:     gdn_gpu.warps 7 for 1 {
//  CHECK-NEXT:       gdn_gpu.load_shared %[[O_PLACE]]
//       CHECK:       gdn_gpu.store
//       CHECK:     gdn_gpu.warps 0 for 1 {
//  CHECK-NEXT:       %[[WINDOW:.+]] = gdn_gpu.load_shared %[[Q_WINDOW]]
//  CHECK-NEXT:       %[[LAST:.+]] = gdn_gpu.is_last %[[Q_TICKET]]
//  CHECK-NEXT:       scf.if %[[LAST]] {
//  CHECK-NEXT:         gdn_gpu.store %[[WINDOW]]
//       CHECK:     gdn_gpu.warps 1 for 1 {
//  CHECK-NEXT:       gdn_gpu.load_shared %[[K_WINDOW]]
// A row that is not live: zeros, and nothing of the pools.
//       CHECK:   } else {
//  CHECK-NEXT:     gdn_gpu.await_launch
//       CHECK:     gdn_gpu.fill
//   CHECK-NOT:     gdn_gpu.load
//   CHECK-NOT: gdn_tile.store

func.func @decode(
    %hk: index {gdn.name = "Hk"}, %hv: index {gdn.name = "Hv"},
    %qkvz: tensor<?x?xbf16> {gdn.name = "qkvz", gdn.dims = ["N", "64*Hk + 128*Hv"]},
    %ba: tensor<?x?xbf16> {gdn.name = "ba", gdn.dims = ["N", "2*Hv"]},
    %w: tensor<?x4xf32> {gdn.name = "conv_weight", gdn.dims = ["64*Hk + 64*Hv", "4"]},
    %alog: tensor<?xf32> {gdn.name = "A_log", gdn.dims = ["Hv"]},
    %dt: tensor<?xf32> {gdn.name = "dt_bias", gdn.dims = ["Hv"]},
    %nw: tensor<64xf32> {gdn.name = "norm_weight", gdn.dims = ["64"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %cp: !gdn.pool<?x?x3xbf16> {gdn.name = "conv_pool", gdn.dims = ["P", "64*Hk + 64*Hv", "3"]},
    %sp: !gdn.pool<?x?x64x32xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "32"]})
    -> (tensor<?x?x64xbf16> {gdn.name = "out", gdn.dims = ["N", "Hv", "64"]})
    attributes {gdn.entry} {
  %q, %k, %v, %z = gdn.unpack "qkvz" interleaved %qkvz heads(%hk, %hv)
      : tensor<?x?xbf16> -> tensor<?x?x32xbf16>, tensor<?x?x32xbf16>,
        tensor<?x?x64xbf16>, tensor<?x?x64xbf16>
  %b, %a = gdn.unpack "ba" interleaved %ba heads(%hk, %hv)
      : tensor<?x?xbf16> -> tensor<?x?xbf16>, tensor<?x?xbf16>
  %o = gdn.kernel "decode" {
    %qc, %kc, %vc = gdn.conv1d %q, %k, %v weight(%w) silu pool(%cp) slots(%slots)
        : (tensor<?x?x32xbf16>, tensor<?x?x32xbf16>, tensor<?x?x64xbf16>),
          tensor<?x4xf32>, !gdn.pool<?x?x3xbf16>, tensor<?xi32>
          -> tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x?x64xf32>
    %qn = gdn.l2norm %qc : tensor<?x?x32xf32> -> tensor<?x?x32xf32>
    %kn = gdn.l2norm %kc : tensor<?x?x32xf32> -> tensor<?x?x32xf32>
    %g, %beta = gdn.gates %a, %b, %alog, %dt
        : tensor<?x?xbf16>, tensor<?x?xbf16>, tensor<?xf32>, tensor<?xf32>
          -> tensor<?x?xf32>, tensor<?x?xf32>
    %core = gdn.delta_rule %qn, %kn, %vc gates(%g, %beta) pool(%sp) slots(%slots)
        : tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x?x64xf32>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x64x32xf32>,
          tensor<?xi32> -> tensor<?x?x64xf32>
    %y = gdn.gated_rms_norm %core, %z, %nw silu
        : tensor<?x?x64xf32>, tensor<?x?x64xbf16>, tensor<64xf32>
          -> tensor<?x?x64xbf16>
    %m = gdn.mask_sequences %y of(%sp) slots(%slots)
        : tensor<?x?x64xbf16>, !gdn.pool<?x?x64x32xf32>, tensor<?xi32>
          -> tensor<?x?x64xbf16>
    gdn.yield %m : tensor<?x?x64xbf16>
  } : tensor<?x?x64xbf16>
  return %o : tensor<?x?x64xbf16>
}
