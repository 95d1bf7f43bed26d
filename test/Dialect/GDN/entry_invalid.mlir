// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.entry, gdn.name, gdn.dims and gdn.contiguous: one case per constraint that the verifier
// owns (C1 to C11).
//
// RUN: gdn-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{'func.func' op expects 'gdn.name' of argument 0 to be a string that is an identifier, but got "a-b"}}
func.func @c1_not_an_identifier(%x: tensor<?xf32> {gdn.name = "a-b"}) {
  return
}

// -----

// expected-error @+1 {{'func.func' op expects 'gdn.name' of argument 0 to be a string that is an identifier, but got 3 : i64}}
func.func @c1_not_a_string(%x: tensor<?xf32> {gdn.name = 3}) {
  return
}

// -----

// expected-error @+1 {{'func.func' op expects 'gdn.name' of argument 0 to be a string that is an identifier, but got ""}}
func.func @c1_of_an_entry(%x: tensor<?xf32> {gdn.name = "", gdn.dims = ["T"]}) attributes {gdn.entry} {
  return
}

// -----

// expected-error @+1 {{'func.func' op expects 'gdn.dims' of argument 0 to be an array of strings, but got "T"}}
func.func @c2_not_an_array(%x: tensor<?xf32> {gdn.dims = "T"}) {
  return
}

// -----

// expected-error @+1 {{'func.func' op expects 'gdn.dims' of argument 0 to have one form per dimension, which is 2, but got 1}}
func.func @c2_number_of_forms(%x: tensor<?x?xf32> {gdn.dims = ["T"]}) {
  return
}

// -----

// expected-error @+1 {{'func.func' op expects 'gdn.dims' of result 0 to have one form per dimension, which is 1, but got 0}}
func.func @c2_of_a_result(%x: tensor<?xf32>) -> (tensor<?xf32> {gdn.dims = []}) {
  return %x : tensor<?xf32>
}

// -----

// expected-error @+1 {{'func.func' op expects 'gdn.dims' on tensors and pools only, but argument 0 is 'index'}}
func.func @c2_on_an_index(%n: index {gdn.name = "N", gdn.dims = []}) attributes {gdn.entry} {
  return
}

// -----

// expected-error @+1 {{'func.func' op expects 'gdn.dims' of argument 0 to hold linear forms, but form 0 is not: expected a number after '*', as a form is linear, at column 3 of "T*N", but got 'N'}}
func.func @c3_not_a_form(%x: tensor<?xf32> {gdn.dims = ["T*N"]}) {
  return
}

// -----

// Sizes are solved for symbols.
// expected-error @+1 {{'func.func' op expects 'gdn.dims' of argument 0 to hold linear forms, but form 0 has a quotient: "T floordiv 64"}}
func.func private @c3_quotient(tensor<?xf32> {gdn.dims = ["T floordiv 64"]})

// -----

// expected-error @+1 {{'func.func' op expects form 1 of 'gdn.dims' of argument 0 to be 128, set by its type, but got "64"}}
func.func @c4_static_size(%x: !gdn.pool<?x128xf32> {gdn.dims = ["P", "64"]}) {
  return
}

// -----

// expected-error @+1 {{'func.func' op expects form 0 of 'gdn.dims' of argument 0 to be 4, set by its type, but got "Hv"}}
func.func @c4_symbol_for_a_static_size(%x: tensor<4xf32> {gdn.dims = ["Hv"]}) {
  return
}

// -----

// expected-error @+1 {{'func.func' op expects argument 1 to be an index, a ranked tensor or a pool, but got 'f32'}}
func.func @c5_argument_type(%x: tensor<?xf32> {gdn.name = "x", gdn.dims = ["T"]}, %y: f32) attributes {gdn.entry} {
  return
}

// -----

// expected-error @+1 {{'func.func' op expects argument 0 to be an index, a ranked tensor or a pool, but got 'tensor<*xf32>'}}
func.func @c5_unranked(%y: tensor<*xf32>) attributes {gdn.entry} {
  return
}

// -----

// expected-error @+1 {{'func.func' op expects result 0 to be a ranked tensor, but got 'index'}}
func.func @c5_result_type(%n: index {gdn.name = "T"}, %x: tensor<?xf32> {gdn.name = "x", gdn.dims = ["T"]}) -> (index {gdn.name = "out"}) attributes {gdn.entry} {
  return %n : index
}

// -----

// expected-error @+1 {{'func.func' op expects the elements of argument 0 to be f32, bf16, f16, f64, i1, i32 or i64, but got 'i8'}}
func.func @c5_element_type(%x: tensor<?xi8> {gdn.name = "x", gdn.dims = ["T"]}) attributes {gdn.entry} {
  return
}

// -----

// expected-error @+1 {{'func.func' op expects an entry to have a body}}
func.func private @c6_declaration() attributes {gdn.entry}

// -----

// expected-error @+1 {{'func.func' op expects argument 1 of an entry to have 'gdn.name'}}
func.func @c7_no_name(%x: tensor<?xf32> {gdn.name = "x", gdn.dims = ["T"]}, %y: tensor<?xf32> {gdn.dims = ["T"]}) attributes {gdn.entry} {
  return
}

// -----

// expected-error @+1 {{'func.func' op expects argument 0 of an entry to have 'gdn.dims'}}
func.func @c7_no_dims(%x: !gdn.pool<?x?xf32> {gdn.name = "x"}) attributes {gdn.entry} {
  return
}

// -----

// expected-error @+1 {{'func.func' op expects result 0 of an entry to have 'gdn.name'}}
func.func @c7_result(%x: tensor<?xf32> {gdn.name = "x", gdn.dims = ["T"]}) -> tensor<?xf32> attributes {gdn.entry} {
  return %x : tensor<?xf32>
}

// -----

// expected-error @+1 {{'func.func' op expects argument 0 of an entry to have 'gdn.name'}}
func.func @c7_symbol(%n: index, %x: tensor<?xf32> {gdn.name = "x", gdn.dims = ["T"]}) attributes {gdn.entry} {
  return
}

// -----

// expected-error @+1 {{'func.func' op expects the names of an entry to be unique, but argument 0 and result 0 are both "x"}}
func.func @c8_unique(%x: tensor<?xf32> {gdn.name = "x", gdn.dims = ["T"]}) -> (tensor<?xf32> {gdn.name = "x", gdn.dims = ["T"]}) attributes {gdn.entry} {
  return %x : tensor<?xf32>
}

// -----

// expected-error @+1 {{'func.func' op expects the symbol "Hk" of argument 0 to occur in some 'gdn.dims' of the entry}}
func.func @c9_symbol_without_use(%n: index {gdn.name = "Hk"}, %x: tensor<?xf32> {gdn.name = "x", gdn.dims = ["T"]}) attributes {gdn.entry} {
  return
}

// -----

// expected-error @+1 {{'func.func' op expects the sizes of the parameters to give every symbol, but no form has only 'Hk' unknown}}
func.func @c10_unsolvable(%x: tensor<?x?xf32> {gdn.name = "x", gdn.dims = ["Hk + Hv", "T"]}) attributes {gdn.entry} {
  return
}

// -----

// expected-error @+1 {{'builtin.module' op expects 'gdn.entry' on functions only}}
module attributes {gdn.entry} {
}

// -----

// expected-error @+1 {{'func.func' op expects 'gdn.entry' to be a unit attribute, but got 1 : i32}}
func.func @value() attributes {gdn.entry = 1 : i32} {
  return
}

// -----

func.func @name_elsewhere(%x: tensor<?x?x8xf32>) {
  // expected-error @+1 {{'gdn.l2norm' op expects 'gdn.name' on arguments and results of functions only}}
  %y = gdn.l2norm %x {gdn.name = "x"} : tensor<?x?x8xf32> -> tensor<?x?x8xf32>
  return
}

// -----

// The function itself is at fault, and says so.
// expected-error @+1 {{expects argument attribute array to have the same number of elements as the number of function arguments, got 2, but expected 1}}
"func.func"() <{sym_name = "malformed", function_type = (index) -> (), arg_attrs = [{}, {}]}> ({
^bb0(%n: index):
  "func.return"() : () -> ()
}) {gdn.entry} : () -> ()

// -----

// expected-error @+1 {{'func.func' op requires attribute 'function_type'}}
"func.func"() <{sym_name = "untyped"}> ({
  "func.return"() : () -> ()
}) {gdn.entry} : () -> ()

// -----

// expected-error @+1 {{'func.func' op attribute 'arg_attrs' failed to satisfy constraint: Array of dictionary attributes}}
"func.func"() <{sym_name = "attributes_are_numbers", function_type = (index) -> (), arg_attrs = [1]}> ({
^bb0(%n: index):
  "func.return"() : () -> ()
}) {gdn.entry} : () -> ()

// -----

// expected-error @+1 {{'func.func' op expects 'gdn.contiguous' on pools only, but argument 0 is 'tensor<?x?xf32>'}}
func.func @c11_tensor(%x: tensor<?x?xf32> {gdn.contiguous = 1 : i64}) {
  return
}

// -----

// expected-error @+1 {{'func.func' op expects 'gdn.contiguous' of argument 0 to be a dimension from 1 to 3, but got 0}}
func.func @c11_slots(%x: !gdn.pool<?x?x8x8xf32> {gdn.contiguous = 0 : i64}) {
  return
}

// -----

// expected-error @+1 {{'func.func' op expects 'gdn.contiguous' of argument 0 to be a dimension from 1 to 3, but got 4}}
func.func @c11_past(%x: !gdn.pool<?x?x8x8xf32> {gdn.contiguous = 4 : i64}) {
  return
}

// -----

// expected-error @+1 {{'func.func' op expects 'gdn.contiguous' of argument 0 to be an i64, but got "kv"}}
func.func @c11_word(%x: !gdn.pool<?x?x8x8xf32> {gdn.contiguous = "kv"}) {
  return
}
