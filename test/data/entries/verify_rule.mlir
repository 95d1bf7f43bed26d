// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verify of the rule alone, on ready queries, keys, values and gates: a slot per
// token, and the count of accepted ones decides which is read.
func.func @verify(
    %q: tensor<?x?x32xf32> {gdn.name = "q", gdn.dims = ["T", "Hk", "32"]},
    %k: tensor<?x?x32xf32> {gdn.name = "k", gdn.dims = ["T", "Hk", "32"]},
    %v: tensor<?x?x64xf32> {gdn.name = "v", gdn.dims = ["T", "Hv", "64"]},
    %log_decay: tensor<?x?xf32> {gdn.name = "log_decay", gdn.dims = ["T", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %cu_seqlens: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %token_slots: tensor<?x?xi32> {gdn.name = "token_slots", gdn.dims = ["N", "S"]},
    %num_accepted: tensor<?xi32> {gdn.name = "num_accepted", gdn.dims = ["N"]},
    %state_pool: !gdn.pool<?x?x64x32xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "32"]})
    -> (tensor<?x?x64xf32> {gdn.name = "core", gdn.dims = ["T", "Hv", "64"]})
    attributes {gdn.entry, gdn.facts = {layout = "ready"}} {
  %slots = gdn.accepted_slots %token_slots[%num_accepted] sequences(%cu_seqlens) max_tokens(8)
      : tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?xi32>
  %core = gdn.delta_rule %q, %k, %v gates(%log_decay, %beta)
      pool(%state_pool) slots(%slots) sequences(%cu_seqlens) token_slots(%token_slots)
      : tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x32xf32>, tensor<?xi32>, tensor<?xi32> token_slots tensor<?x?xi32> -> tensor<?x?x64xf32>
  return %core : tensor<?x?x64xf32>
}
