// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The levels of a prefill entry, stage by stage, and what none of them leaves
// behind. The last stages run in the tool of the tile level.
//
// RUN: gdn-opt %s -gdn-fuse | FileCheck %s --check-prefix=FUSED
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile -canonicalize -cse \
// RUN:   | FileCheck %s --check-prefix=TILES --implicit-check-not='= gdn.' --implicit-check-not=tensor
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile -canonicalize -cse \
// RUN:   | gdn-tile-opt -gdn-tile-fuse-rows -convert-tile-to-cpu -canonicalize -cse \
// RUN:   | FileCheck %s --check-prefix=LOOPS --implicit-check-not='gdn_tile.{{[a-z0-9_]+}} %'
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile -canonicalize -cse \
// RUN:   | gdn-tile-opt -gdn-tile-fuse-rows -convert-tile-to-cpu -canonicalize -cse -gdn-expand-cpu-math \
// RUN:   | FileCheck %s --check-prefix=MATH --implicit-check-not='math.{{exp|log}}'

// One kernel holds all ops.
// FUSED-LABEL: func.func @prefill
//       FUSED:   gdn.kernel "prefill" {
//       FUSED:     gdn.conv1d
//       FUSED:     gdn.delta_rule
//       FUSED:   return

// TILES-LABEL: func.func @prefill
//  TILES-SAME:   grid = ["N + 1", "Hk"]
//       TILES:   gdn_tile.delta_scan

// LOOPS-LABEL: func.func @prefill(%{{.+}}: !llvm.ptr, %{{.+}}: i64, %{{.+}}: i64, %{{.+}}: !llvm.ptr
//  LOOPS-SAME:   scratch_bytes
//       LOOPS:   vector.fma

//  MATH-LABEL: func.func @prefill
//        MATH:   math.fma
func.func @prefill(
    %q: tensor<?x?x32xbf16> {gdn.name = "q", gdn.dims = ["T", "Hk", "32"]},
    %k: tensor<?x?x32xbf16> {gdn.name = "k", gdn.dims = ["T", "Hk", "32"]},
    %v: tensor<?x?x32xbf16> {gdn.name = "v", gdn.dims = ["T", "Hv", "32"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %w: tensor<?x4xbf16> {gdn.name = "conv_weight", gdn.dims = ["64*Hk + 32*Hv", "4"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %cp: !gdn.pool<?x?x3xbf16> {gdn.name = "conv_pool", gdn.dims = ["P", "64*Hk + 32*Hv", "3"]},
    %sp: !gdn.pool<?x?x32x32xbf16> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "32", "32"]})
    -> (tensor<?x?x32xbf16> {gdn.name = "core", gdn.dims = ["T", "Hv", "32"]})
    attributes {gdn.entry} {
  %qc, %kc, %vc = gdn.conv1d %q, %k, %v weight(%w) silu pool(%cp)
        slots(%slots) sequences(%cu)
        : (tensor<?x?x32xbf16>, tensor<?x?x32xbf16>, tensor<?x?x32xbf16>),
          tensor<?x4xbf16>, !gdn.pool<?x?x3xbf16>, tensor<?xi32>, tensor<?xi32>
          -> tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x?x32xf32>
  %core = gdn.delta_rule %qc, %kc, %vc gates(%g, %beta) pool(%sp)
        slots(%slots) sequences(%cu)
        : tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x?x32xf32>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x32x32xbf16>,
          tensor<?xi32>, tensor<?xi32> -> tensor<?x?x32xbf16>
  return %core : tensor<?x?x32xbf16>
}
