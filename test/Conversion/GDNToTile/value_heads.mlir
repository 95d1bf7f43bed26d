// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A block per value head: the grid counts value heads, the block finds its key
// head by division, and the windows of key and query, which all blocks of a key
// head read, are written by the last of them. The CPU refuses such a program.
//
// RUN: gdn-opt %s -convert-gdn-to-tile=value-heads -canonicalize -cse | FileCheck %s
// RUN: gdn-opt %s -convert-gdn-to-tile=value-heads | gdn-tile-opt -o /dev/null
// RUN: not gdn-opt %s -convert-gdn-to-tile=value-heads -convert-tile-to-cpu -o /dev/null 2>&1 | FileCheck %s --check-prefix=CPU

// CPU: error: 'gdn_tile.last_in_group' op expects blocks that share something, but on a CPU a block serves a whole key head

// CHECK-LABEL: func.func @decode(
//  CHECK-SAME:   %[[HK:[a-z0-9]+]]: index {gdn.name = "Hk"}, %[[HV:[a-z0-9]+]]: index {gdn.name = "Hv"}
//  CHECK-SAME:   grid = ["N", "Hv"], groups = ["2", "N", "Hk"], multiples = ["Hv", "Hk"]
//       CHECK:   %[[R:.+]] = arith.divui %[[HV]], %[[HK]]
//       CHECK:   %[[SEQUENCE:.+]] = gdn_tile.block_id 0
//       CHECK:   %[[HEAD:.+]] = gdn_tile.block_id 1
//   CHECK-DAG:   arith.remui %[[HEAD]], %[[R]]
//   CHECK-DAG:   %[[KEY_HEAD:.+]] = arith.divui %[[HEAD]], %[[R]]
//       CHECK:   gdn_tile.delta_scan
//       CHECK:   %[[BASE:.+]] = arith.muli %[[SEQUENCE]], %[[HK]]
//       CHECK:   %[[GROUP:.+]] = arith.addi %[[BASE]], %[[KEY_HEAD]]
//       CHECK:   %[[FIRST:.+]] = arith.muli %[[GROUP]], %{{.+}}
//       CHECK:   %[[LAST:.+]] = gdn_tile.last_in_group %[[FIRST]] of %[[R]]
//       CHECK:   scf.if %[[LAST]] {
//       CHECK:     gdn_tile.store %{{.+}} : vector<3x32xbf16>
//       CHECK:   %[[SECOND:.+]] = arith.addi %[[FIRST]], %{{.+}}
//       CHECK:   gdn_tile.last_in_group %[[SECOND]] of %[[R]]

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
