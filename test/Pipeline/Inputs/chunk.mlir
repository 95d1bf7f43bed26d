// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.delta_rule on ready operands: what the tests chunk_*.mlir follow down.
func.func @prefill(
    %q: tensor<?x?x16xf32> {gdn.name = "q", gdn.dims = ["T", "Hk", "16"]},
    %k: tensor<?x?x16xf32> {gdn.name = "k", gdn.dims = ["T", "Hk", "16"]},
    %v: tensor<?x?x16xf32> {gdn.name = "v", gdn.dims = ["T", "Hv", "16"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %pool: !gdn.pool<?x?x16x16xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "16", "16"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]})
    -> (tensor<?x?x16xf32> {gdn.name = "core", gdn.dims = ["T", "Hv", "16"]})
    attributes {gdn.entry} {
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x16xf32>, tensor<?x?x16xf32>, tensor<?x?x16xf32>, tensor<?x?xf32>,
        tensor<?x?xf32>, !gdn.pool<?x?x16x16xf32>, tensor<?xi32>, tensor<?xi32>
        -> tensor<?x?x16xf32>
  return %o : tensor<?x?x16xf32>
}
