// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The delta rule on its own: queries, keys, values and gates come ready, in
// bf16 and f32. What `cpu_bench` measures against a matrix product.

func.func @prefill(
    %q: tensor<?x?x128xbf16> {gdn.name = "q", gdn.dims = ["T", "Hk", "128"]},
    %k: tensor<?x?x128xbf16> {gdn.name = "k", gdn.dims = ["T", "Hk", "128"]},
    %v: tensor<?x?x128xbf16> {gdn.name = "v", gdn.dims = ["T", "Hv", "128"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %cu_seqlens: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %state_pool: !gdn.pool<?x?x128x128xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "128", "128"]})
    -> (tensor<?x?x128xbf16> {gdn.name = "core", gdn.dims = ["T", "Hv", "128"]})
    attributes {gdn.entry} {
  %core = gdn.delta_rule %q, %k, %v gates(%g, %beta)
      pool(%state_pool) slots(%slots) sequences(%cu_seqlens)
      : tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x128x128xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x128xbf16>
  return %core : tensor<?x?x128xbf16>
}
