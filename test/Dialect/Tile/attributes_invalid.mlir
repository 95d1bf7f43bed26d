// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the attributes of gdn_tile may say of a function.
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

// -----

// expected-error@+1 {{'func.func' op expects 'gdn_tile.variant' to be a string or several, but got 3 : i64}}
func.func @variant_is_a_number() attributes {gdn_tile.variant = 3} {
  return
}

// -----

// expected-error@+1 {{'func.func' op expects 'gdn_tile.beside' to be "next" or "last", but got "first"}}
func.func @beside_whom() attributes {gdn_tile.beside = "first"} {
  return
}

// -----

// expected-error@+1 {{'func.func' op expects 'gdn_tile.bits' to be a string, but got ["split"]}}
func.func @bits_are_several() attributes {gdn_tile.bits = ["split"]} {
  return
}

// -----

// expected-error@+1 {{'func.func' op expects 'gdn_tile.workspace' to be an array of arrays of strings, but got ["N"]}}
func.func @regions_are_strings() attributes {gdn_tile.workspace = ["N"]} {
  return
}

// -----

// expected-error@+1 {{'func.func' op expects an argument for each of the 1 regions of 'gdn_tile.workspace'}}
func.func @region_without_argument()
    attributes {gdn_tile.workspace = [["N", "4"]]} {
  return
}

// -----

// expected-error@+1 {{'func.func' op expects argument 1 to be a row-major memref of rank 2, region 0 of 'gdn_tile.workspace', but got 'memref<?xf32>'}}
func.func @region_of_another_rank(%n: index, %w: memref<?xf32>)
    attributes {gdn_tile.workspace = [["N", "8", "4"]]} {
  return
}

// -----

// expected-error@+1 {{'func.func' op expects argument 0 to be a row-major memref of rank 1, region 0 of 'gdn_tile.workspace', but got 'memref<?xf32, strided<[2]>>'}}
func.func @region_with_strides(%w: memref<?xf32, strided<[2]>>)
    attributes {gdn_tile.workspace = [["N", "4"]]} {
  return
}

// -----

// expected-error@+1 {{'func.func' op expects 'gdn_tile.conditions' to be an array of pairs of arrays of strings, or several by name, but got [["N"]]}}
func.func @condition_is_no_pair() attributes {gdn_tile.conditions = [["N"]]} {
  return
}
