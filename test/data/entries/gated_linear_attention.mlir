// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gated linear attention alone, on ready queries, keys, values and log decays. Heads
// of 128; no model of tools/scripts/presets.py has it, so this is how it is compiled.

// Sequences of any length, with all that their states may do.
func.func @prefill(
    %q: tensor<?x?x128xbf16> {gdn.name = "q", gdn.dims = ["T", "Hk", "128"]},
    %k: tensor<?x?x128xbf16> {gdn.name = "k", gdn.dims = ["T", "Hk", "128"]},
    %v: tensor<?x?x128xbf16> {gdn.name = "v", gdn.dims = ["T", "Hv", "128"]},
    %log_decay: tensor<?x?xf32> {gdn.name = "log_decay", gdn.dims = ["T", "Hv"]},
    %cu_seqlens: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %write_slots: tensor<?xi32> {gdn.name = "write_slots", gdn.dims = ["N"]},
    %has_initial: tensor<?xi1> {gdn.name = "has_initial", gdn.dims = ["N"]},
    %cu_checkpoints: tensor<?xi32> {gdn.name = "cu_checkpoints", gdn.dims = ["N + 1"]},
    %checkpoint_tokens: tensor<?xi32> {gdn.name = "checkpoint_tokens", gdn.dims = ["C"]},
    %checkpoint_slots: tensor<?xi32> {gdn.name = "checkpoint_slots", gdn.dims = ["C"]},
    %state_pool: !gdn.pool<?x?x128x128xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "128", "128"]})
    -> (tensor<?x?x128xbf16> {gdn.name = "core", gdn.dims = ["T", "Hv", "128"]})
    attributes {gdn.entry, gdn.facts = {layout = "ready"}} {
  %core = gdn.gated_linear_attention %q, %k, %v decay(%log_decay)
      pool(%state_pool) slots(%slots -> %write_slots) sequences(%cu_seqlens) initial(%has_initial)
      checkpoints(%cu_checkpoints, %checkpoint_tokens, %checkpoint_slots)
      : tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?xf32>,
        !gdn.pool<?x?x128x128xf32>, tensor<?xi32> into tensor<?xi32>, tensor<?xi32> initial tensor<?xi1>
        checkpoints tensor<?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x128xbf16>
  return %core : tensor<?x?x128xbf16>
}

// One token per sequence.
func.func @decode(
    %q: tensor<?x?x128xbf16> {gdn.name = "q", gdn.dims = ["N", "Hk", "128"]},
    %k: tensor<?x?x128xbf16> {gdn.name = "k", gdn.dims = ["N", "Hk", "128"]},
    %v: tensor<?x?x128xbf16> {gdn.name = "v", gdn.dims = ["N", "Hv", "128"]},
    %log_decay: tensor<?x?xf32> {gdn.name = "log_decay", gdn.dims = ["N", "Hv"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %state_pool: !gdn.pool<?x?x128x128xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "128", "128"]})
    -> (tensor<?x?x128xbf16> {gdn.name = "core", gdn.dims = ["N", "Hv", "128"]})
    attributes {gdn.entry, gdn.facts = {layout = "ready"}} {
  %core = gdn.gated_linear_attention %q, %k, %v decay(%log_decay)
      pool(%state_pool) slots(%slots)
      : tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?xf32>,
        !gdn.pool<?x?x128x128xf32>, tensor<?xi32> -> tensor<?x?x128xbf16>
  return %core : tensor<?x?x128xbf16>
}

// The same with states of 16 bits: on GPUs there is a second schedule for these.
func.func @decode_narrow(
    %q: tensor<?x?x128xbf16> {gdn.name = "q", gdn.dims = ["N", "Hk", "128"]},
    %k: tensor<?x?x128xbf16> {gdn.name = "k", gdn.dims = ["N", "Hk", "128"]},
    %v: tensor<?x?x128xbf16> {gdn.name = "v", gdn.dims = ["N", "Hv", "128"]},
    %log_decay: tensor<?x?xf32> {gdn.name = "log_decay", gdn.dims = ["N", "Hv"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %state_pool: !gdn.pool<?x?x128x128xbf16> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "128", "128"]})
    -> (tensor<?x?x128xbf16> {gdn.name = "core", gdn.dims = ["N", "Hv", "128"]})
    attributes {gdn.entry, gdn.facts = {layout = "ready"}} {
  %core = gdn.gated_linear_attention %q, %k, %v decay(%log_decay)
      pool(%state_pool) slots(%slots)
      : tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?xf32>,
        !gdn.pool<?x?x128x128xbf16>, tensor<?xi32> -> tensor<?x?x128xbf16>
  return %core : tensor<?x?x128xbf16>
}

// With a decay per channel of the key.
func.func @decode_channels(
    %q: tensor<?x?x128xbf16> {gdn.name = "q", gdn.dims = ["N", "Hk", "128"]},
    %k: tensor<?x?x128xbf16> {gdn.name = "k", gdn.dims = ["N", "Hk", "128"]},
    %v: tensor<?x?x128xbf16> {gdn.name = "v", gdn.dims = ["N", "Hv", "128"]},
    %log_decay: tensor<?x?x128xf32> {gdn.name = "log_decay", gdn.dims = ["N", "Hv", "128"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %state_pool: !gdn.pool<?x?x128x128xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "128", "128"]})
    -> (tensor<?x?x128xbf16> {gdn.name = "core", gdn.dims = ["N", "Hv", "128"]})
    attributes {gdn.entry, gdn.facts = {layout = "ready"}} {
  %core = gdn.gated_linear_attention %q, %k, %v decay(%log_decay)
      pool(%state_pool) slots(%slots)
      : tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?x128xf32>,
        !gdn.pool<?x?x128x128xf32>, tensor<?xi32> -> tensor<?x?x128xbf16>
  return %core : tensor<?x?x128xbf16>
}

// Drafts: the state after every token goes to a slot of its own.
func.func @verify(
    %q: tensor<?x?x128xbf16> {gdn.name = "q", gdn.dims = ["T", "Hk", "128"]},
    %k: tensor<?x?x128xbf16> {gdn.name = "k", gdn.dims = ["T", "Hk", "128"]},
    %v: tensor<?x?x128xbf16> {gdn.name = "v", gdn.dims = ["T", "Hv", "128"]},
    %log_decay: tensor<?x?xf32> {gdn.name = "log_decay", gdn.dims = ["T", "Hv"]},
    %cu_seqlens: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %token_slots: tensor<?x?xi32> {gdn.name = "token_slots", gdn.dims = ["N", "S"]},
    %num_accepted: tensor<?xi32> {gdn.name = "num_accepted", gdn.dims = ["N"]},
    %state_pool: !gdn.pool<?x?x128x128xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "128", "128"]})
    -> (tensor<?x?x128xbf16> {gdn.name = "core", gdn.dims = ["T", "Hv", "128"]})
    attributes {gdn.entry, gdn.facts = {layout = "ready"}} {
  %slots = gdn.accepted_slots %token_slots[%num_accepted] sequences(%cu_seqlens) max_tokens(8)
      : tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?xi32>
  %core = gdn.gated_linear_attention %q, %k, %v decay(%log_decay)
      pool(%state_pool) slots(%slots) sequences(%cu_seqlens) token_slots(%token_slots)
      : tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?xf32>,
        !gdn.pool<?x?x128x128xf32>, tensor<?xi32>, tensor<?xi32> token_slots tensor<?x?xi32> -> tensor<?x?x128xbf16>
  return %core : tensor<?x?x128xbf16>
}
