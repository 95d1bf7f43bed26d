// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The convolution of values in the recurrence of a variant that does its intra-chunk work itself,
// where the kernel and the variant ask for it. The loop over chunks carries the window in front of a
// chunk, which begins with the pool's. The prologue of such a variant has queries and keys alone.
//
// RUN: gdn-opt %s -gdn-fuse=conv-with-rule -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=fused:fused=2;conv=with-rule,staged: value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse | FileCheck %s
func.func @prefill(
    %Hk: index {gdn.name = "Hk"}, %Hv: index {gdn.name = "Hv"},
    %qkv: tensor<?x?xbf16> {gdn.name = "qkv", gdn.dims = ["T", "256*Hk + 128*Hv"]},
    %g: tensor<?x?xf32> {gdn.name = "log_decay", gdn.dims = ["T", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %w: tensor<?x4xbf16> {gdn.name = "conv_weight", gdn.dims = ["256*Hk + 128*Hv", "4"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %windows: !gdn.pool<?x?x3xbf16> {gdn.name = "conv_pool", gdn.dims = ["P", "256*Hk + 128*Hv", "3"]},
    %states: !gdn.pool<?x?x128x128xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "128", "128"]})
    -> (tensor<?x?x128xbf16> {gdn.name = "out", gdn.dims = ["T", "Hv", "128"]})
    attributes {gdn.entry} {
  %parts:3 = gdn.unpack "qkv" flat %qkv heads(%Hk, %Hv)
      : tensor<?x?xbf16> -> tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?x128xbf16>
  %conv:3 = gdn.conv1d %parts#0, %parts#1, %parts#2 weight(%w) silu pool(%windows) slots(%slots)
      sequences(%cu)
      : (tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?x128xbf16>), tensor<?x4xbf16>,
        !gdn.pool<?x?x3xbf16>, tensor<?xi32>, tensor<?xi32>
        -> tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<?x?x128xf32>
  %q = gdn.l2norm %conv#0 : tensor<?x?x128xf32> -> tensor<?x?x128xf32>
  %k = gdn.l2norm %conv#1 : tensor<?x?x128xf32> -> tensor<?x?x128xf32>
  %o = gdn.delta_rule %q, %k, %conv#2 gates(%g, %beta) pool(%states) slots(%slots) sequences(%cu)
      : tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<?x?xf32>,
        tensor<?x?xf32>, !gdn.pool<?x?x128x128xf32>, tensor<?xi32>, tensor<?xi32>
        -> tensor<?x?x128xbf16>
  return %o : tensor<?x?x128xbf16>
}
