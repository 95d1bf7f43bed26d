// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pending tokens and commits that have no tile program.
//
// RUN: gdn-opt %s -split-input-file -o /dev/null
// RUN: gdn-opt %s -split-input-file -convert-gdn-to-tile -verify-diagnostics

func.func @pending_of_one(
    %w: tensor<?x4xf32> {gdn.name = "w", gdn.dims = ["32*Hv", "4"]},
    %cp: !gdn.pool<?x?x7xf32> {gdn.name = "conv_pool", gdn.dims = ["P", "32*Hv", "7"]},
    %q: tensor<?x?x32xf32> {gdn.name = "q", gdn.dims = ["T", "Hk", "32"]},
    %v: tensor<?x?x32xf32> {gdn.name = "v", gdn.dims = ["T", "Hv", "32"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "Hv"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %pool: !gdn.pool<?x?x32x32xf32> {gdn.name = "pool", gdn.dims = ["P", "Hv", "32", "32"]})
    -> (tensor<?x?x32xf32> {gdn.name = "y", gdn.dims = ["T", "Hv", "32"]})
    attributes {gdn.entry} {
  %o = gdn.kernel "k" {
    %vc = gdn.conv1d %v weight(%w) silu pool(%cp) slots(%slots) sequences(%cu) pending(%slots)
        : (tensor<?x?x32xf32>), tensor<?x4xf32>, !gdn.pool<?x?x7xf32>, tensor<?xi32>, tensor<?xi32>
          pending tensor<?xi32> -> tensor<?x?x32xf32>
    // expected-error@+1 {{'gdn.delta_rule' op expects the pending tokens of the other ops in its kernel}}
    %y = gdn.delta_rule %q, %q, %vc gates(%g, %g) pool(%pool) slots(%slots) sequences(%cu)
        : tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x?x32xf32>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x32x32xf32>,
          tensor<?xi32>, tensor<?xi32> -> tensor<?x?x32xf32>
    gdn.yield %y : tensor<?x?x32xf32>
  } : tensor<?x?x32xf32>
  return %o : tensor<?x?x32xf32>
}

// -----

func.func @pending_in_slots_of_any_count(
    %w: tensor<?x4xf32> {gdn.name = "w", gdn.dims = ["32*H", "4"]},
    %cp: !gdn.pool<?x?x7xf32> {gdn.name = "conv_pool", gdn.dims = ["P", "32*H", "7"]},
    %v: tensor<?x?x32xf32> {gdn.name = "v", gdn.dims = ["T", "H", "32"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %accepted: tensor<?xi32> {gdn.name = "num_accepted", gdn.dims = ["N"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]})
    -> (tensor<?x?x32xf32> {gdn.name = "y", gdn.dims = ["T", "H", "32"]})
    attributes {gdn.entry} {
  %o = gdn.kernel "k" {
    // expected-error@+1 {{'gdn.conv1d' op expects its slots to be those that gdn.counted_slots gives for the same 'num_accepted' on the way to tiles}}
    %y = gdn.conv1d %v weight(%w) silu pool(%cp) slots(%slots) sequences(%cu) pending(%accepted)
        : (tensor<?x?x32xf32>), tensor<?x4xf32>, !gdn.pool<?x?x7xf32>, tensor<?xi32>, tensor<?xi32>
          pending tensor<?xi32> -> tensor<?x?x32xf32>
    gdn.yield %y : tensor<?x?x32xf32>
  } : tensor<?x?x32xf32>
  return %o : tensor<?x?x32xf32>
}

// -----

func.func @pending_with_bounds_of_other_rows(
    %w: tensor<?x4xf32> {gdn.name = "w", gdn.dims = ["32*H", "4"]},
    %cp: !gdn.pool<?x?x7xf32> {gdn.name = "conv_pool", gdn.dims = ["P", "32*H", "7"]},
    %v: tensor<?x?x32xf32> {gdn.name = "v", gdn.dims = ["T", "H", "32"]},
    %ids: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %accepted: tensor<?xi32> {gdn.name = "num_accepted", gdn.dims = ["N"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %others: tensor<?xi32> {gdn.name = "others", gdn.dims = ["N + 1"]})
    -> (tensor<?x?x32xf32> {gdn.name = "y", gdn.dims = ["T", "H", "32"]})
    attributes {gdn.entry} {
  %four = arith.constant 4 : index
  %slots = gdn.counted_slots %ids[%accepted] up_to(%four) sequences(%others) max_tokens(8)
      : tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
  %o = gdn.kernel "k" {
    // expected-error@+1 {{'gdn.conv1d' op expects the sequences whose tokens gdn.counted_slots counts to be its own on the way to tiles}}
    %y = gdn.conv1d %v weight(%w) silu pool(%cp) slots(%slots) sequences(%cu) pending(%accepted)
        : (tensor<?x?x32xf32>), tensor<?x4xf32>, !gdn.pool<?x?x7xf32>, tensor<?xi32>, tensor<?xi32>
          pending tensor<?xi32> -> tensor<?x?x32xf32>
    gdn.yield %y : tensor<?x?x32xf32>
  } : tensor<?x?x32xf32>
  return %o : tensor<?x?x32xf32>
}

// -----

func.func @commits_of_other_rows(
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %others: tensor<?xi32> {gdn.name = "others", gdn.dims = ["N"]},
    %a: !gdn.pool<?x?x5xf16> {gdn.name = "a", gdn.dims = ["P", "D", "5"]},
    %pool: !gdn.pool<?x?x64x16xf32> {gdn.name = "pool", gdn.dims = ["P", "H", "64", "16"]},
    %keys: !gdn.pool<?x?x2x16xf32> {gdn.name = "keys", gdn.dims = ["P", "H", "2", "16"]},
    %deltas: !gdn.pool<?x?x2x64xf32> {gdn.name = "deltas", gdn.dims = ["P", "H", "2", "64"]},
    %decays: !gdn.pool<?x?x2xf32> {gdn.name = "decays", gdn.dims = ["P", "H", "2"]})
    attributes {gdn.entry} {
  gdn.kernel "k" {
    // expected-note@+1 {{other op}}
    gdn.commit_conv1d %a[%slots] accepted(%slots) window 3
        : !gdn.pool<?x?x5xf16>, tensor<?xi32>, tensor<?xi32>
    // expected-error@+1 {{'gdn.commit_delta_rule' op expects the slots and accepted tokens of the other op in its kernel}}
    gdn.commit_delta_rule %pool[%others] accepted(%slots) pending(%keys, %deltas, %decays)
        : !gdn.pool<?x?x64x16xf32>, tensor<?xi32> accepted tensor<?xi32>
          pending !gdn.pool<?x?x2x16xf32>, !gdn.pool<?x?x2x64xf32>, !gdn.pool<?x?x2xf32>
  }
  return
}

// -----

func.func @two_commits_of_a_kind(
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %a: !gdn.pool<?x?x5xf16> {gdn.name = "a", gdn.dims = ["P", "D", "5"]},
    %b: !gdn.pool<?x?x5xf16> {gdn.name = "b", gdn.dims = ["P", "D", "5"]})
    attributes {gdn.entry} {
  gdn.kernel "k" {
    gdn.commit_conv1d %a[%slots] accepted(%slots) window 3
        : !gdn.pool<?x?x5xf16>, tensor<?xi32>, tensor<?xi32>
    // expected-error@+1 {{'gdn.commit_conv1d' op expects to be the only one of its kernel}}
    gdn.commit_conv1d %b[%slots] accepted(%slots) window 3
        : !gdn.pool<?x?x5xf16>, tensor<?xi32>, tensor<?xi32>
  }
  return
}

// -----

func.func @several_tokens_and_counts(
    %q: tensor<?x?x32xf32> {gdn.name = "q", gdn.dims = ["T", "H", "32"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "H"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %pool: !gdn.pool<?x?x32x32xf32> {gdn.name = "pool", gdn.dims = ["P", "H", "32", "32"]},
    %keys: !gdn.pool<?x?x8x32xf32> {gdn.name = "keys", gdn.dims = ["P", "H", "8", "32"]},
    %deltas: !gdn.pool<?x?x8x32xf32> {gdn.name = "deltas", gdn.dims = ["P", "H", "8", "32"]},
    %decays: !gdn.pool<?x?x8xf32> {gdn.name = "decays", gdn.dims = ["P", "H", "8"]},
    %counts: !gdn.pool<?x?xi32> {gdn.name = "counts", gdn.dims = ["P", "H"]})
    -> (tensor<?x?x32xf32> {gdn.name = "y", gdn.dims = ["T", "H", "32"]})
    attributes {gdn.entry} {
  %o = gdn.kernel "k" {
    // expected-error@+1 {{'gdn.delta_rule' op has no tile program with sequences of several tokens ('sequences') and with tokens that are pending over several steps ('counts'), unless the next step accepts some ('accepted')}}
    %y = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) sequences(%cu)
        pending(%keys, %deltas, %decays) counts(%counts)
        : tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x?x32xf32>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x32x32xf32>,
          tensor<?xi32>, tensor<?xi32> pending !gdn.pool<?x?x8x32xf32>, !gdn.pool<?x?x8x32xf32>,
          !gdn.pool<?x?x8xf32> counts !gdn.pool<?x?xi32> -> tensor<?x?x32xf32>
    gdn.yield %y : tensor<?x?x32xf32>
  } : tensor<?x?x32xf32>
  return %o : tensor<?x?x32xf32>
}
