// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an entry does not take has no tokens, which its bounds say.
//
// RUN: gdn-opt %s -convert-gdn-to-tile -verify-diagnostics

func.func @decode(
    %q: tensor<?x?x32xbf16> {gdn.name = "q", gdn.dims = ["N", "Hk", "32"]},
    %k: tensor<?x?x32xbf16> {gdn.name = "k", gdn.dims = ["N", "Hk", "32"]},
    %v: tensor<?x?x64xbf16> {gdn.name = "v", gdn.dims = ["N", "Hv", "64"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["N", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["N", "Hv"]},
    %ids: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %flags: tensor<?xi1> {gdn.name = "is_prefill", gdn.dims = ["N"]},
    %sp: !gdn.pool<?x?x64x32xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "32"]})
    -> (tensor<?x?x64xbf16> {gdn.name = "core", gdn.dims = ["N", "Hv", "64"]})
    attributes {gdn.entry} {
  %slots = gdn.taken_slots %ids where(%flags) : tensor<?xi32>, tensor<?xi1>
  %o = gdn.kernel "decode" {
    // expected-error@+1 {{'gdn.delta_rule' op expects 'cu_seqlens' beside slots of gdn.taken_slots on the way to tiles}}
    %core = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%sp) slots(%slots)
        : tensor<?x?x32xbf16>, tensor<?x?x32xbf16>, tensor<?x?x64xbf16>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x64x32xf32>,
          tensor<?xi32> -> tensor<?x?x64xbf16>
    gdn.yield %core : tensor<?x?x64xbf16>
  } : tensor<?x?x64xbf16>
  return %o : tensor<?x?x64xbf16>
}
