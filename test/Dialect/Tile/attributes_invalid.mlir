// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What gdn_tile.grid, gdn_tile.symbols and gdn_tile.facts may say of a function.
//
// RUN: gdn-tile-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{'func.func' op expects 'gdn_tile.grid' to be an array of strings, but got 4 : i64}}
func.func @grid_is_a_number() attributes {gdn_tile.grid = 4} {
  return
}

// -----

// expected-error@+1 {{'func.func' op expects 'gdn_tile.symbols' to be an array of strings, but got [1]}}
func.func @symbols_are_numbers() attributes {gdn_tile.symbols = [1]} {
  return
}

// -----

// expected-error@+1 {{'func.func' op expects argument 1 to be an index, the value of symbol "Hk"}}
func.func @symbol_without_argument(%n: index)
    attributes {gdn_tile.symbols = ["N", "Hk"]} {
  return
}

// -----

// expected-error@+1 {{'builtin.module' op expects 'gdn_tile.grid' on a function only}}
module attributes {gdn_tile.grid = ["N"]} {
}

// -----

// expected-error@+1 {{'func.func' op expects 'gdn_tile.facts' to be a dictionary of strings, but got {chunk = 64 : i64}}}
func.func @fact_is_a_number() attributes {gdn_tile.facts = {chunk = 64}} {
  return
}
