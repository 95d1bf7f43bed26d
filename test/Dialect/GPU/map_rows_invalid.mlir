// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.map_rows: every message of its verifier.
//
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @c1_no_result(%m: !state, %v: !row, %k: !column, %x: vector<128xf32>, %o: !one)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.map_rows' op expects at least one result}}
  "gdn_gpu.map_rows"(%m) ({
  ^bb0(%i: index, %r: vector<128xf32>):
    gdn_gpu.yield
  }) : (!state) -> ()
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @c1_two_layouts(%m: !state, %v: !row, %k: !column, %x: vector<128xf32>, %o: !one)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.map_rows' op expects every layout to belong to #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>, the layout of the first result, but got #gdn_gpu.per_column<<warps = 1, lanes = 32, vector = 4>>}}
  %y = gdn_gpu.map_rows %o : !one -> !state {
  ^bb0(%i: index, %r: vector<128xf32>):
    gdn_gpu.yield %r : vector<128xf32>
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @c1_result_per_column(%m: !state, %v: !row, %k: !column, %x: vector<128xf32>, %o: !one)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.map_rows' op expects no result to be 'per_column', which is the same for every row, but got '!gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<<warps = 8, lanes = 8, vector = 4>>>'}}
  %y = gdn_gpu.map_rows %m : !state -> !column {
  ^bb0(%i: index, %r: vector<128xf32>):
    gdn_gpu.yield %r : vector<128xf32>
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @c1_rows(%m: !state, %v: !row, %k: !column, %x: vector<128xf32>, %o: !one)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.map_rows' op expects every input and result to have 64 rows, set by the first result, but got 128}}
  %y = gdn_gpu.map_rows %m : !state -> !gdn_gpu.fragment<64x128xf32, #rows> {
  ^bb0(%i: index, %r: vector<128xf32>):
    gdn_gpu.yield %r : vector<128xf32>
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @c1_columns(%m: !state, %v: !row, %k: !column, %x: vector<128xf32>, %o: !one)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.map_rows' op expects every input and result to have 64 columns, but got 128}}
  %y = gdn_gpu.map_rows %m : !state -> !gdn_gpu.fragment<128x64xf32, #rows> {
  ^bb0(%i: index, %r: vector<128xf32>):
    gdn_gpu.yield %r : vector<128xf32>
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @c2_count(%m: !state, %v: !row, %k: !column, %x: vector<128xf32>, %o: !one)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.map_rows' op expects the body to have 2 arguments, the row number and one per input, but got 1}}
  %y = gdn_gpu.map_rows %m : !state -> !state {
  ^bb0(%i: index):
    gdn_gpu.yield %x : vector<128xf32>
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @c2_row_number(%m: !state, %v: !row, %k: !column, %x: vector<128xf32>, %o: !one)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.map_rows' op expects the first argument of the body to be the row number, an index, but got 'i32'}}
  %y = gdn_gpu.map_rows %m : !state -> !state {
  ^bb0(%i: i32, %r: vector<128xf32>):
    gdn_gpu.yield %r : vector<128xf32>
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @c2_row(%m: !state, %v: !row, %k: !column, %x: vector<128xf32>, %o: !one)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.map_rows' op expects argument 1 of the body to be 'f32', what a row has of its input, but got 'vector<128xf32>'}}
  %y = gdn_gpu.map_rows %v : !row -> !state {
  ^bb0(%i: index, %r: vector<128xf32>):
    gdn_gpu.yield %r : vector<128xf32>
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @c3_count(%m: !state, %v: !row, %k: !column, %x: vector<128xf32>, %o: !one)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %y = gdn_gpu.map_rows %m : !state -> !state {
  ^bb0(%i: index, %r: vector<128xf32>):
    // expected-error@+1 {{'gdn_gpu.yield' op expects 1 operands, one per result, but got 0}}
    gdn_gpu.yield
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @c3_type(%m: !state, %v: !row, %k: !column, %x: vector<128xf32>, %o: !one)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %y = gdn_gpu.map_rows %m : !state -> !row {
  ^bb0(%i: index, %r: vector<128xf32>):
    // expected-error@+1 {{'gdn_gpu.yield' op expects operand 0 to be 'f32', what a row has of its result, but got 'vector<128xf32>'}}
    gdn_gpu.yield %r : vector<128xf32>
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @c4_memory(%m: !state, %v: !row, %k: !column, %x: vector<128xf32>, %o: !one)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %y = gdn_gpu.map_rows %m : !state -> !state {
  ^bb0(%i: index, %r: vector<128xf32>):
    // expected-error@+1 {{'memref.alloca' op expects to be outside gdn_gpu.map_rows, whose body has arith, math, vector.broadcast, vector.step and vector.reduction only}}
    %a = memref.alloca() : memref<1xf32>
    gdn_gpu.yield %r : vector<128xf32>
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @c4_minimum(%m: !state, %v: !row, %k: !column, %x: vector<128xf32>, %o: !one)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %y = gdn_gpu.map_rows %m : !state -> !state {
  ^bb0(%i: index, %r: vector<128xf32>):
    // expected-error@+1 {{'vector.reduction' op expects a sum or the largest of f32 without 'acc' in a gdn_gpu.map_rows}}
    %a = vector.reduction <minimumf>, %r : vector<128xf32> into f32
    gdn_gpu.yield %r : vector<128xf32>
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @c4_broadcast(%m: !state, %z: vector<1xf32>)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %y = gdn_gpu.map_rows %m : !state -> !state {
  ^bb0(%i: index, %r: vector<128xf32>):
    // expected-error@+1 {{'vector.broadcast' op expects to broadcast a scalar in a gdn_gpu.map_rows, but got 'vector<1xf32>'}}
    %a = vector.broadcast %z : vector<1xf32> to vector<128xf32>
    gdn_gpu.yield %r : vector<128xf32>
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @c4_constant(%m: !state, %v: !row, %k: !column, %x: vector<128xf32>, %o: !one)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %y = gdn_gpu.map_rows %m : !state -> !state {
  ^bb0(%i: index, %r: vector<128xf32>):
    // expected-error@+1 {{'arith.constant' op expects one value in all elements of a vector of a gdn_gpu.map_rows}}
    %a = arith.constant dense<[1.0, 2.0]> : vector<2xf32>
    gdn_gpu.yield %r : vector<128xf32>
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @c4_outside(%m: !state, %v: !row, %k: !column, %x: vector<128xf32>, %o: !one)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %y = gdn_gpu.map_rows %m : !state -> !state {
  ^bb0(%i: index, %r: vector<128xf32>):
    // expected-error@+1 {{'arith.addf' op expects vectors of the gdn_gpu.map_rows around it or constants of one value, but got one from outside}}
    %a = arith.addf %r, %x : vector<128xf32>
    gdn_gpu.yield %r : vector<128xf32>
  }
  return
}
