// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The delta rule with an erase key beside the key (GDN-2), on ready inputs. No model of
// tools/scripts/presets.py has it, so this is how it is compiled, for CPUs.

// Sequences of any length, a decay per channel.
func.func @prefill(
    %q: tensor<?x?x64xbf16> {gdn.name = "q", gdn.dims = ["T", "Hk", "64"]},
    %k: tensor<?x?x64xbf16> {gdn.name = "k", gdn.dims = ["T", "Hk", "64"]},
    %v: tensor<?x?x64xbf16> {gdn.name = "v", gdn.dims = ["T", "Hv", "64"]},
    %log_decay: tensor<?x?x64xf32> {gdn.name = "log_decay", gdn.dims = ["T", "Hv", "64"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %erase: tensor<?x?x64xbf16> {gdn.name = "erase", gdn.dims = ["T", "Hk", "64"]},
    %cu_seqlens: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %write_slots: tensor<?xi32> {gdn.name = "write_slots", gdn.dims = ["N"]},
    %has_initial: tensor<?xi1> {gdn.name = "has_initial", gdn.dims = ["N"]},
    %state_pool: !gdn.pool<?x?x64x64xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "64"]})
    -> (tensor<?x?x64xbf16> {gdn.name = "core", gdn.dims = ["T", "Hv", "64"]})
    attributes {gdn.entry, gdn.facts = {layout = "ready"}} {
  %core = gdn.delta_rule %q, %k, %v gates(%log_decay, %beta) erase(%erase)
      pool(%state_pool) slots(%slots -> %write_slots) sequences(%cu_seqlens) initial(%has_initial)
      : tensor<?x?x64xbf16>, tensor<?x?x64xbf16>, tensor<?x?x64xbf16>, tensor<?x?x64xf32>, tensor<?x?xf32>
        erase tensor<?x?x64xbf16>, !gdn.pool<?x?x64x64xf32>, tensor<?xi32> into tensor<?xi32>, tensor<?xi32>
        initial tensor<?xi1> -> tensor<?x?x64xbf16>
  return %core : tensor<?x?x64xbf16>
}

// One token per sequence, a decay per head.
func.func @decode(
    %q: tensor<?x?x64xbf16> {gdn.name = "q", gdn.dims = ["N", "Hk", "64"]},
    %k: tensor<?x?x64xbf16> {gdn.name = "k", gdn.dims = ["N", "Hk", "64"]},
    %v: tensor<?x?x64xbf16> {gdn.name = "v", gdn.dims = ["N", "Hv", "64"]},
    %log_decay: tensor<?x?xf32> {gdn.name = "log_decay", gdn.dims = ["N", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["N", "Hv"]},
    %erase: tensor<?x?x64xbf16> {gdn.name = "erase", gdn.dims = ["N", "Hk", "64"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %state_pool: !gdn.pool<?x?x64x64xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "64"]})
    -> (tensor<?x?x64xbf16> {gdn.name = "core", gdn.dims = ["N", "Hv", "64"]})
    attributes {gdn.entry, gdn.facts = {layout = "ready"}} {
  %core = gdn.delta_rule %q, %k, %v gates(%log_decay, %beta) erase(%erase)
      pool(%state_pool) slots(%slots)
      : tensor<?x?x64xbf16>, tensor<?x?x64xbf16>, tensor<?x?x64xbf16>, tensor<?x?xf32>, tensor<?x?xf32>
        erase tensor<?x?x64xbf16>, !gdn.pool<?x?x64x64xf32>, tensor<?xi32> -> tensor<?x?x64xbf16>
  return %core : tensor<?x?x64xbf16>
}

// Tokens that stay pending for one step: their keys, not those they erase along, are kept.
func.func @verify(
    %S: index {gdn.name = "S"},
    %q: tensor<?x?x64xbf16> {gdn.name = "q", gdn.dims = ["T", "Hk", "64"]},
    %k: tensor<?x?x64xbf16> {gdn.name = "k", gdn.dims = ["T", "Hk", "64"]},
    %v: tensor<?x?x64xbf16> {gdn.name = "v", gdn.dims = ["T", "Hv", "64"]},
    %log_decay: tensor<?x?xf32> {gdn.name = "log_decay", gdn.dims = ["T", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %erase: tensor<?x?x64xbf16> {gdn.name = "erase", gdn.dims = ["T", "Hk", "64"]},
    %cu_seqlens: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %num_accepted: tensor<?xi32> {gdn.name = "num_accepted", gdn.dims = ["N"]},
    %state_pool: !gdn.pool<?x?x64x64xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "64"]},
    %pending_keys: !gdn.pool<?x?x?x64xf32> {gdn.name = "pending_keys", gdn.dims = ["P", "Hk", "S", "64"]},
    %pending_deltas: !gdn.pool<?x?x?x64xf32> {gdn.name = "pending_deltas", gdn.dims = ["P", "Hv", "S", "64"]},
    %pending_decays: !gdn.pool<?x?x?xf32> {gdn.name = "pending_decays", gdn.dims = ["P", "Hv", "S"]})
    -> (tensor<?x?x64xbf16> {gdn.name = "core", gdn.dims = ["T", "Hv", "64"]})
    attributes {gdn.entry, gdn.facts = {layout = "ready"}} {
  %live = gdn.counted_slots %slots[%num_accepted] up_to(%S) sequences(%cu_seqlens) max_tokens(8)
      : tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
  %core = gdn.delta_rule %q, %k, %v gates(%log_decay, %beta) erase(%erase)
      pool(%state_pool) slots(%live) sequences(%cu_seqlens) accepted(%num_accepted)
      pending(%pending_keys, %pending_deltas, %pending_decays)
      : tensor<?x?x64xbf16>, tensor<?x?x64xbf16>, tensor<?x?x64xbf16>, tensor<?x?xf32>, tensor<?x?xf32>
        erase tensor<?x?x64xbf16>, !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32> accepted tensor<?xi32>
        pending !gdn.pool<?x?x?x64xf32>, !gdn.pool<?x?x?x64xf32>, !gdn.pool<?x?x?xf32>
        -> tensor<?x?x64xbf16>
  return %core : tensor<?x?x64xbf16>
}

// The same as @decode, with states in two planes.
func.func @decode_planes(
    %q: tensor<?x?x64xbf16> {gdn.name = "q", gdn.dims = ["N", "Hk", "64"]},
    %k: tensor<?x?x64xbf16> {gdn.name = "k", gdn.dims = ["N", "Hk", "64"]},
    %v: tensor<?x?x64xbf16> {gdn.name = "v", gdn.dims = ["N", "Hv", "64"]},
    %log_decay: tensor<?x?xf32> {gdn.name = "log_decay", gdn.dims = ["N", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["N", "Hv"]},
    %erase: tensor<?x?x64xbf16> {gdn.name = "erase", gdn.dims = ["N", "Hk", "64"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %state_pool: !gdn.pool<?x?x64x64xi8> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "64"]},
    %state_scales: !gdn.pool<?x?x64xf32> {gdn.name = "state_scales", gdn.dims = ["P", "Hv", "64"]},
    %state_low: !gdn.pool<?x?x64x64xi8> {gdn.name = "state_low", gdn.dims = ["P", "Hv", "64", "64"]})
    -> (tensor<?x?x64xbf16> {gdn.name = "core", gdn.dims = ["N", "Hv", "64"]})
    attributes {gdn.entry, gdn.facts = {layout = "ready"}} {
  %core = gdn.delta_rule %q, %k, %v gates(%log_decay, %beta) erase(%erase)
      pool(%state_pool) slots(%slots) scales(%state_scales) low(%state_low)
      : tensor<?x?x64xbf16>, tensor<?x?x64xbf16>, tensor<?x?x64xbf16>, tensor<?x?xf32>, tensor<?x?xf32>
        erase tensor<?x?x64xbf16>, !gdn.pool<?x?x64x64xi8>, tensor<?xi32> scales !gdn.pool<?x?x64xf32>
        low !gdn.pool<?x?x64x64xi8> -> tensor<?x?x64xbf16>
  return %core : tensor<?x?x64xbf16>
}
