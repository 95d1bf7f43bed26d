// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attributes of gdn that there are not, of wrong values, and where they may not
// stand; those of an entry's schema are in entry_invalid.mlir.
//
// RUN: gdn-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{'func.func' op expects an attribute that gdn has, but got 'gdn.entri'; like it is 'gdn.entry'}}
func.func @slip() attributes {gdn.entri} {
  return
}

// -----

// expected-error@+1 {{'func.func' op expects an attribute that gdn has, but got 'gdn.alignment' of argument 0; there are 'gdn.entry', 'gdn.facts', 'gdn.name', 'gdn.dims', 'gdn.contiguous', 'gdn.severity', 'gdn.message'}}
func.func @unknown(%x: tensor<?xf32> {gdn.alignment = 16 : i64}) {
  return
}

// -----

// expected-error@+1 {{'func.func' op expects an attribute that gdn has, but got 'gdn.dim' of result 0; like it is 'gdn.dims'}}
func.func private @slip_of_a_result() -> (tensor<?xf32> {gdn.dim = ["T"]})

// -----

func.func @unknown_of_an_op(%x: tensor<?x?x8xf32>) {
  // expected-error@+1 {{'gdn.l2norm' op expects an attribute that gdn has, but got 'gdn.epsilon'}}
  %y = gdn.l2norm %x {gdn.epsilon = 1.0} : tensor<?x?x8xf32> -> tensor<?x?x8xf32>
  return
}

// -----

func.func @on_an_op() {
  // expected-error@+1 {{'arith.constant' op expects 'gdn.entry' on functions only}}
  %c = arith.constant {gdn.entry} 1 : index
  return
}

// -----

// expected-error@+1 {{'func.func' op expects 'gdn.entry' on functions only, but got it on argument 1}}
func.func private @entry_of_an_argument(index, index {gdn.entry})

// -----

// expected-error@+1 {{'func.func' op expects 'gdn.facts' on functions only, but got it on result 0}}
func.func private @facts_of_a_result() -> (index {gdn.facts = {}})

// -----

// expected-error@+1 {{'func.func' op expects 'gdn.facts' to be a dictionary of strings, but got {chunk = 64 : i64}}}
func.func private @fact_is_a_number() attributes {gdn.facts = {chunk = 64}}

// -----

// expected-error@+1 {{'builtin.module' op expects 'gdn.facts' on functions only}}
module attributes {gdn.facts = {}} {
}

// -----

// expected-error@+1 {{'func.func' op expects 'gdn.dims' on arguments and results of functions only}}
func.func private @dims_of_a_function() attributes {gdn.dims = ["T"]}

// -----

// expected-error@+1 {{'func.func' op expects 'gdn.message' on modules only}}
func.func private @message_of_a_function() attributes {gdn.message = "left out"}

// -----

// expected-error@+1 {{'builtin.module' op expects 'gdn.message' to be a string, but got 1 : i64}}
module attributes {gdn.message = 1} {
}

// -----

// expected-error@+1 {{'builtin.module' op expects 'gdn.severity' to be an i32 from 0 to 3, but got 4 : i32}}
module attributes {gdn.severity = 4 : i32} {
}

// -----

// expected-error@+1 {{'builtin.module' op expects 'gdn.severity' to be an i32 from 0 to 3, but got 1 : ui32}}
module attributes {gdn.severity = 1 : ui32} {
}
