// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_tile.last_in_group: every message of the constraint that the verifier
// owns (C1), and of the attribute that it asks for.
//
// RUN: gdn-tile-opt %s -split-input-file -verify-diagnostics

func.func @c1_no_groups(%group: index, %count: index) -> i1 {
  // expected-error@+1 {{'gdn_tile.last_in_group' op expects a function with 'groups' of 'gdn_tile.stage' around it}}
  %last = gdn_tile.last_in_group %group of %count
  return %last : i1
}

// -----

// expected-error@+1 {{'func.func' op expects 'groups' of 'gdn_tile.stage' to be an array of linear forms, but got 3 : i64}}
func.func @groups_type() attributes {gdn_tile.stage = {groups = 3 : i64}} {
  return
}
