// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A decode entry with states that stream through blocks which stay: a second
// program, the variant "persistent", of roles and channels; the tile program is left
// for the other variant.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile=value-heads -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-persistent-recurrence="min-units=100 max-units=200" -canonicalize -cse -o %t
// RUN: FileCheck %s < %t
// RUN: gdn-opt %t -gdn-schedule-resident-recurrence -canonicalize -cse | gdn-gpu-opt -gdn-gpu-check -o /dev/null
//
// States of f32 have a bound of their own, 0 for none of them; a state is passed
// over where no ring of two buffers fits.
// RUN: sed s/x128x64xbf16/x128x64xf32/ %s | gdn-opt -gdn-fuse -convert-gdn-to-tile=value-heads -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-persistent-recurrence=max-wide-units=0 | FileCheck %s --check-prefix=NONE
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile=value-heads -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-persistent-recurrence=shared-bytes=20000 | FileCheck %s --check-prefix=NONE
// NONE-NOT: gdn_gpu.roles
//
// RUN: sed s/x128x64xbf16/x128x64xf32/ %s | gdn-opt -gdn-fuse -convert-gdn-to-tile=value-heads -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-persistent-recurrence=max-wide-units=700 | FileCheck %s --check-prefix=WIDE
// WIDE: conditions = {{.}}{{.}}["1"], ["dependent"]], {{.}}["512"], ["N", "Hv"]], {{.}}["N", "Hv"], ["700"]]]

// The variant "narrow" of what is resident, for states of 16 bits: four warps whose
// rows are widened one at a time, in two goes.
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile=value-heads -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-resident-recurrence=narrow-units=300 -canonicalize -cse -o %t.narrow
// RUN: FileCheck %s --check-prefix=NARROW < %t.narrow
// RUN: gdn-gpu-opt %t.narrow -gdn-gpu-check -o /dev/null
//
// A state of 128 x 128 bf16 has as many words as the threads of a narrow kernel take.
//
// RUN: sed 's/x64xbf16/x128xbf16/g; s/x64xf32/x128xf32/g; s/128\*Hk/256*Hk/g; s/"64"/"128"/g' %s | gdn-opt -gdn-fuse -convert-gdn-to-tile=value-heads -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-resident-recurrence=narrow-units=300 | FileCheck %s --check-prefix=MOST
// MOST-LABEL: func.func @decode_narrow(
// RUN: sed s/x128x64xbf16/x128x64xf32/ %s | gdn-opt -gdn-fuse -convert-gdn-to-tile=value-heads -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-resident-recurrence=narrow-units=300 | FileCheck %s --check-prefix=WHOLE
// WHOLE-NOT: narrow

// NARROW-LABEL: func.func @decode_narrow(
//  NARROW-SAME:   min_blocks = 3 : i64, rows_apart, threads = 128 : i64
//  NARROW-SAME:   conditions = {{.}}{{.}}["300"], ["N", "Hv"]]]
//  NARROW-SAME:   stage_of = "decode"
//  NARROW-SAME:   variant = "narrow"
//       NARROW:   %[[M:.+]] = gdn_gpu.load {{.+}} aligned 16
//       NARROW:   gdn_gpu.await_launch
//       NARROW:   %[[SCAN:.+]]:2 = gdn_gpu.map_rows %[[M]],
//       NARROW:     vector.reduction
//       NARROW:   gdn_gpu.store_shared %[[SCAN]]#0
// What the warp of the output reads is on its way while the state is updated.
//       NARROW:   gdn_gpu.warps 3 for 1 -> !gdn_gpu.fragment<
//       NARROW:     gdn_gpu.load
//       NARROW:   %[[NEXT:.+]] = gdn_gpu.map_rows %[[M]], %{{.+}}, %[[SCAN]]#1
//   NARROW-NOT:     vector.reduction
//       NARROW:   gdn_gpu.store %[[NEXT]]
// NARROW-LABEL: func.func @decode(

// Four warps share rows as eight do where the state is resident: eight lanes each.
//       CHECK: #[[$STATE:.+]] = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 8>

// CHECK-LABEL: func.func @decode_persistent(
//  CHECK-SAME:   {gdn.name = "state_pool", gdn_gpu.alignment = 16 : i64}
//  CHECK-SAME:   blocks_per_sm = 2 : i64, min_blocks = 2 : i64, threads = 288 : i64
//  CHECK-SAME:   conditions = {{.}}{{.}}["1"], ["dependent"]], {{.}}["100"], ["N", "Hv"]], {{.}}["N", "Hv"], ["200"]]]
//  CHECK-SAME:   stage_of = "decode"
//  CHECK-SAME:   variant = "persistent"
//   CHECK-DAG:   %[[RING:.+]] = gdn_gpu.channel : <64x64xbf16, depth = 6, parts = 4>
//       CHECK:   gdn_gpu.roles {
// The scan: half of a state at a time. The ring's buffer is free as soon as the
// rows are in registers.
//       CHECK:     gdn_gpu.warps 0 for 4 {
//  CHECK-NEXT:       gdn_gpu.await_launch
//  CHECK-NEXT:       gdn_gpu.units {
//       CHECK:         scf.if
//       CHECK:           gdn_gpu.receive %[[KEYS:.+]] : <1x64xf32, depth = 3> -> <64xf32>
//       CHECK:           gdn_gpu.receive %[[QUERIES:.+]] : <1x64xf32, depth = 3> -> <64xf32>
//       CHECK:           %[[VALUE:.+]] = gdn_gpu.receive %[[VALUES:.+]] : <1x128xf32, depth = 3> -> <2x64xf32>
//       CHECK:           %[[OUT:.+]] = gdn_gpu.acquire %[[OUTPUTS:.+]] : <1x128xf32, depth = 3> -> <2x64xf32>
//       CHECK:           scf.for %[[CHUNK:.+]] = %c0 to %c2
//  CHECK-NEXT:             %[[TILE:.+]] = gdn_gpu.receive %[[RING]]
//  CHECK-NEXT:             %[[ROWS:.+]] = gdn_gpu.load_shared %[[TILE]] : <64x64xbf16> -> <64x64xbf16, #[[$STATE]]>
//  CHECK-NEXT:             %[[V:.+]] = gdn_gpu.load_shared %[[VALUE]] row(%[[CHUNK]])
//       CHECK:             %[[STEP:.+]]:2 = gdn_gpu.map_rows %[[ROWS]]
//   CHECK-NOT:             gdn_gpu.release
//       CHECK:             }
//  CHECK-NEXT:             gdn_gpu.release %[[RING]]
//       CHECK:             gdn_gpu.store_shared %[[STEP]]#1, %[[OUT]] row(%[[CHUNK]])
//       CHECK:             gdn_gpu.store %[[STEP]]#0, %{{.+}} dims [2, 3] aligned 16
//       CHECK:           gdn_gpu.release %[[VALUES]]
//       CHECK:           gdn_gpu.commit %[[OUTPUTS]]
// The query: what waits for other blocks comes behind what the scan waits for.
//       CHECK:     gdn_gpu.warps 4 for 1 {
//  CHECK-NEXT:       gdn_gpu.await_launch
//  CHECK-NEXT:       gdn_gpu.release_launch
//       CHECK:           gdn_gpu.conv1d
//       CHECK:           gdn_gpu.acquire %[[QUERIES]]
//       CHECK:           gdn_gpu.commit %[[QUERIES]]
//       CHECK:           gdn_gpu.last_reader
//       CHECK:     gdn_gpu.warps 5 for 1 {
//  CHECK-NEXT:       gdn_gpu.await_launch
//   CHECK-NOT:       gdn_gpu.release_launch
//       CHECK:           gdn_gpu.commit %[[KEYS]]
//       CHECK:     gdn_gpu.warps 6 for 1 {
//       CHECK:           gdn_gpu.commit %[[VALUES]]
// CHECK-COUNT-2:         gdn_gpu.commit
//       CHECK:           gdn_gpu.store
// What follows from the output, and zeros of rows that are not live.
//       CHECK:     gdn_gpu.warps 7 for 1 {
//       CHECK:           gdn_gpu.receive %[[OUTPUTS]] : <1x128xf32, depth = 3> -> <1x128xf32>
//       CHECK:           gdn_gpu.store
//       CHECK:         } else {
//       CHECK:           gdn_gpu.store
// States of units to come, before the launch ahead has ended.
//       CHECK:     gdn_gpu.warps 8 for 1 {
//  CHECK-NEXT:       gdn_gpu.units {
// CHECK-COUNT-3:       gdn_gpu.prefetch
//       CHECK:           scf.for
//  CHECK-NEXT:             %[[NEXT:.+]] = gdn_gpu.acquire %[[RING]]
//       CHECK:             gdn_gpu.copy %{{.+}} dims [2, 3], %[[NEXT]]
//  CHECK-NEXT:             gdn_gpu.commit %[[RING]]

// CHECK-LABEL: func.func @decode(
//       CHECK:   gdn_tile.delta_scan

func.func @decode(
    %hk: index {gdn.name = "Hk"}, %hv: index {gdn.name = "Hv"},
    %qkvz: tensor<?x?xbf16> {gdn.name = "qkvz", gdn.dims = ["N", "128*Hk + 256*Hv"]},
    %ba: tensor<?x?xbf16> {gdn.name = "ba", gdn.dims = ["N", "2*Hv"]},
    %w: tensor<?x4xf32> {gdn.name = "conv_weight", gdn.dims = ["128*Hk + 128*Hv", "4"]},
    %alog: tensor<?xf32> {gdn.name = "A_log", gdn.dims = ["Hv"]},
    %dt: tensor<?xf32> {gdn.name = "dt_bias", gdn.dims = ["Hv"]},
    %nw: tensor<128xf32> {gdn.name = "norm_weight", gdn.dims = ["128"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %cp: !gdn.pool<?x?x3xbf16> {gdn.name = "conv_pool", gdn.dims = ["P", "128*Hk + 128*Hv", "3"]},
    %sp: !gdn.pool<?x?x128x64xbf16> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "128", "64"]})
    -> (tensor<?x?x128xbf16> {gdn.name = "out", gdn.dims = ["N", "Hv", "128"]})
    attributes {gdn.entry} {
  %q, %k, %v, %z = gdn.unpack "qkvz" interleaved %qkvz heads(%hk, %hv)
      : tensor<?x?xbf16> -> tensor<?x?x64xbf16>, tensor<?x?x64xbf16>,
        tensor<?x?x128xbf16>, tensor<?x?x128xbf16>
  %b, %a = gdn.unpack "ba" interleaved %ba heads(%hk, %hv)
      : tensor<?x?xbf16> -> tensor<?x?xbf16>, tensor<?x?xbf16>
  %o = gdn.kernel "decode" {
    %qc, %kc, %vc = gdn.conv1d %q, %k, %v weight(%w) silu pool(%cp) slots(%slots)
        : (tensor<?x?x64xbf16>, tensor<?x?x64xbf16>, tensor<?x?x128xbf16>),
          tensor<?x4xf32>, !gdn.pool<?x?x3xbf16>, tensor<?xi32>
          -> tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x128xf32>
    %qn = gdn.l2norm %qc : tensor<?x?x64xf32> -> tensor<?x?x64xf32>
    %kn = gdn.l2norm %kc : tensor<?x?x64xf32> -> tensor<?x?x64xf32>
    %g, %beta = gdn.gates %a, %b, %alog, %dt
        : tensor<?x?xbf16>, tensor<?x?xbf16>, tensor<?xf32>, tensor<?xf32>
          -> tensor<?x?xf32>, tensor<?x?xf32>
    %core = gdn.delta_rule %qn, %kn, %vc gates(%g, %beta) pool(%sp) slots(%slots)
        : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x128xf32>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x128x64xbf16>,
          tensor<?xi32> -> tensor<?x?x128xf32>
    %y = gdn.gated_rms_norm %core, %z, %nw silu
        : tensor<?x?x128xf32>, tensor<?x?x128xbf16>, tensor<128xf32>
          -> tensor<?x?x128xbf16>
    %m = gdn.mask_sequences %y of(%sp) slots(%slots)
        : tensor<?x?x128xbf16>, !gdn.pool<?x?x128x64xbf16>, tensor<?xi32>
          -> tensor<?x?x128xbf16>
    gdn.yield %m : tensor<?x?x128xbf16>
  } : tensor<?x?x128xbf16>
  return %o : tensor<?x?x128xbf16>
}
