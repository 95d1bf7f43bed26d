// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.conv_columns: every message of its verifier, (C1) to (C3) and (C5), and what barriers it
// needs (C4).
//
// RUN: gdn-gpu-opt %s -gdn-gpu-check -split-input-file -verify-diagnostics

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!inputs = !gdn_gpu.shared<64x64xbf16, swizzled>
!window = !gdn_gpu.fragment<64x3xbf16, #rows>
!weight = !gdn_gpu.fragment<64x4xbf16, #rows>
!values = !gdn_gpu.shared<64x64xf16, swizzled>

func.func @c1_plain(%inputs: !gdn_gpu.shared<64x64xbf16>, %window: !window, %weight: !weight, %values: !values)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.conv_columns' op expects 'inputs' to be swizzled, of 16 bits, with a multiple of 16 rows, but got '!gdn_gpu.shared<64x64xbf16>'}}
  %next = gdn_gpu.conv_columns %inputs, %window, %weight to %values : !gdn_gpu.shared<64x64xbf16>, !window, !weight, !values {
  ^bb0(%row: vector<64xf32>):
    %rounded = arith.truncf %row : vector<64xf32> to vector<64xf16>
    gdn_gpu.yield %rounded : vector<64xf16>
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!inputs = !gdn_gpu.shared<64x64xbf16, swizzled>
!window = !gdn_gpu.fragment<64x3xbf16, #rows>
!weight = !gdn_gpu.fragment<64x4xbf16, #rows>
!values = !gdn_gpu.shared<64x64xf16, swizzled>

func.func @c1_tokens(%inputs: !gdn_gpu.shared<8x64xbf16, swizzled>, %window: !window, %weight: !weight, %values: !values)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.conv_columns' op expects 'inputs' to be swizzled, of 16 bits, with a multiple of 16 rows, but got '!gdn_gpu.shared<8x64xbf16, swizzled>'}}
  %next = gdn_gpu.conv_columns %inputs, %window, %weight to %values : !gdn_gpu.shared<8x64xbf16, swizzled>, !window, !weight, !values {
  ^bb0(%row: vector<64xf32>):
    %rounded = arith.truncf %row : vector<64xf32> to vector<64xf16>
    gdn_gpu.yield %rounded : vector<64xf16>
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!inputs = !gdn_gpu.shared<64x64xbf16, swizzled>
!window = !gdn_gpu.fragment<64x3xbf16, #rows>
!weight = !gdn_gpu.fragment<64x4xbf16, #rows>
!values = !gdn_gpu.shared<64x64xf16, swizzled>

func.func @c1_values(%inputs: !inputs, %window: !window, %weight: !weight, %values: !gdn_gpu.shared<32x64xf16, swizzled>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.conv_columns' op expects 'values' to be swizzled, of 16 bits, in the shape of '!gdn_gpu.shared<64x64xbf16, swizzled>', but got '!gdn_gpu.shared<32x64xf16, swizzled>'}}
  %next = gdn_gpu.conv_columns %inputs, %window, %weight to %values : !inputs, !window, !weight, !gdn_gpu.shared<32x64xf16, swizzled> {
  ^bb0(%row: vector<64xf32>):
    %rounded = arith.truncf %row : vector<64xf32> to vector<64xf16>
    gdn_gpu.yield %rounded : vector<64xf16>
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!inputs = !gdn_gpu.shared<64x64xbf16, swizzled>
!window = !gdn_gpu.fragment<64x3xbf16, #rows>
!weight = !gdn_gpu.fragment<64x4xbf16, #rows>
!values = !gdn_gpu.shared<64x64xf16, swizzled>

func.func @c1_layout(%inputs: !inputs, %window: !gdn_gpu.fragment<64x3xbf16, #gdn_gpu.rows<warps = 4, lanes = 8, vector = 8>>, %weight: !weight, %values: !values)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.conv_columns' op expects 'window' to be in a layout of matrix instructions over 4 warps, 16 rows to a warp, but got '!gdn_gpu.fragment<64x3xbf16, #gdn_gpu.rows<warps = 4, lanes = 8, vector = 8>>'}}
  %next = gdn_gpu.conv_columns %inputs, %window, %weight to %values : !inputs, !gdn_gpu.fragment<64x3xbf16, #gdn_gpu.rows<warps = 4, lanes = 8, vector = 8>>, !weight, !values {
  ^bb0(%row: vector<64xf32>):
    %rounded = arith.truncf %row : vector<64xf32> to vector<64xf16>
    gdn_gpu.yield %rounded : vector<64xf16>
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!inputs = !gdn_gpu.shared<64x64xbf16, swizzled>
!window = !gdn_gpu.fragment<64x3xbf16, #rows>
!weight = !gdn_gpu.fragment<64x4xbf16, #rows>
!values = !gdn_gpu.shared<64x64xf16, swizzled>

// Of 128 channels a warp would have two blocks of rows.
func.func @c1_channels(%inputs: !gdn_gpu.shared<64x128xbf16, swizzled>, %window: !gdn_gpu.fragment<128x3xbf16, #rows>, %weight: !gdn_gpu.fragment<128x4xbf16, #rows>, %values: !gdn_gpu.shared<64x128xf16, swizzled>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.conv_columns' op expects 'window' to be in a layout of matrix instructions over 8 warps, 16 rows to a warp, but got '!gdn_gpu.fragment<128x3xbf16, #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>>'}}
  %next = gdn_gpu.conv_columns %inputs, %window, %weight to %values : !gdn_gpu.shared<64x128xbf16, swizzled>, !gdn_gpu.fragment<128x3xbf16, #rows>, !gdn_gpu.fragment<128x4xbf16, #rows>, !gdn_gpu.shared<64x128xf16, swizzled> {
  ^bb0(%row: vector<64xf32>):
    %rounded = arith.truncf %row : vector<64xf32> to vector<64xf16>
    gdn_gpu.yield %rounded : vector<64xf16>
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!inputs = !gdn_gpu.shared<64x64xbf16, swizzled>
!window = !gdn_gpu.fragment<64x3xbf16, #rows>
!weight = !gdn_gpu.fragment<64x4xbf16, #rows>
!values = !gdn_gpu.shared<64x64xf16, swizzled>

func.func @c1_taps(%inputs: !inputs, %window: !gdn_gpu.fragment<64x8xbf16, #rows>, %weight: !gdn_gpu.fragment<64x9xbf16, #rows>, %values: !values)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.conv_columns' op expects 'weight' to be 64x2 to 64x8 in the layout of 'window', but got '!gdn_gpu.fragment<64x9xbf16, #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>>'}}
  %next = gdn_gpu.conv_columns %inputs, %window, %weight to %values : !inputs, !gdn_gpu.fragment<64x8xbf16, #rows>, !gdn_gpu.fragment<64x9xbf16, #rows>, !values {
  ^bb0(%row: vector<64xf32>):
    %rounded = arith.truncf %row : vector<64xf32> to vector<64xf16>
    gdn_gpu.yield %rounded : vector<64xf16>
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!inputs = !gdn_gpu.shared<64x64xbf16, swizzled>
!window = !gdn_gpu.fragment<64x3xbf16, #rows>
!weight = !gdn_gpu.fragment<64x4xbf16, #rows>
!values = !gdn_gpu.shared<64x64xf16, swizzled>

func.func @c1_window(%inputs: !inputs, %window: !gdn_gpu.fragment<64x3xf16, #rows>, %weight: !weight, %values: !values)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.conv_columns' op expects 'window' to be '!gdn_gpu.fragment<64x3xbf16, #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>>', but got '!gdn_gpu.fragment<64x3xf16, #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>>'}}
  %next = gdn_gpu.conv_columns %inputs, %window, %weight to %values : !inputs, !gdn_gpu.fragment<64x3xf16, #rows>, !weight, !values {
  ^bb0(%row: vector<64xf32>):
    %rounded = arith.truncf %row : vector<64xf32> to vector<64xf16>
    gdn_gpu.yield %rounded : vector<64xf16>
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!inputs = !gdn_gpu.shared<64x64xbf16, swizzled>
!window = !gdn_gpu.fragment<64x3xbf16, #rows>
!weight = !gdn_gpu.fragment<64x4xbf16, #rows>
!values = !gdn_gpu.shared<64x64xf16, swizzled>

func.func @c2(%inputs: !inputs, %window: !window, %weight: !weight, %values: !values)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.conv_columns' op expects the body to take 'vector<64xf32>' and to give 'vector<64xf16>'}}
  %next = gdn_gpu.conv_columns %inputs, %window, %weight to %values : !inputs, !window, !weight, !values {
  ^bb0(%row: vector<64xf32>):
    gdn_gpu.yield %row : vector<64xf32>
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!inputs = !gdn_gpu.shared<64x64xbf16, swizzled>
!window = !gdn_gpu.fragment<64x3xbf16, #rows>
!weight = !gdn_gpu.fragment<64x4xbf16, #rows>
!values = !gdn_gpu.shared<64x64xf16, swizzled>

func.func @c3_sum(%inputs: !inputs, %window: !window, %weight: !weight, %values: !values)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %next = gdn_gpu.conv_columns %inputs, %window, %weight to %values : !inputs, !window, !weight, !values {
  ^bb0(%row: vector<64xf32>):
    // expected-error@+1 {{'vector.reduction' op expects to be outside gdn_gpu.conv_columns, whose body has arith and math on elements only}}
    %sum = vector.reduction <add>, %row : vector<64xf32> into f32
    %rounded = arith.truncf %row : vector<64xf32> to vector<64xf16>
    gdn_gpu.yield %rounded : vector<64xf16>
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!inputs = !gdn_gpu.shared<64x64xbf16, swizzled>
!window = !gdn_gpu.fragment<64x3xbf16, #rows>
!weight = !gdn_gpu.fragment<64x4xbf16, #rows>
!values = !gdn_gpu.shared<64x64xf16, swizzled>

func.func @c3_outside(%inputs: !inputs, %window: !window, %weight: !weight, %values: !values, %more: vector<64xf32>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %next = gdn_gpu.conv_columns %inputs, %window, %weight to %values : !inputs, !window, !weight, !values {
  ^bb0(%row: vector<64xf32>):
    // expected-error@+1 {{'arith.addf' op expects vectors of the gdn_gpu.conv_columns around it or constants of one value, but got one from outside}}
    %sum = arith.addf %row, %more : vector<64xf32>
    %rounded = arith.truncf %sum : vector<64xf32> to vector<64xf16>
    gdn_gpu.yield %rounded : vector<64xf16>
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!inputs = !gdn_gpu.shared<64x64xbf16, swizzled>
!window = !gdn_gpu.fragment<64x3xbf16, #rows>
!weight = !gdn_gpu.fragment<64x4xbf16, #rows>
!values = !gdn_gpu.shared<64x64xf16, swizzled>

// Tiles that all warps have copied have to meet at a barrier.
func.func @c4(%window: !window, %weight: !weight, %v: memref<?x64xbf16, strided<[?, 1]>>, %t: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %c0 = arith.constant 0 : index
  %inputs = gdn_gpu.alloc : !inputs
  %values = gdn_gpu.alloc : !values
  // expected-note@+1 {{access before it}}
  gdn_gpu.begin_copy %v[%t, %c0] dims [0, 1], %inputs : memref<?x64xbf16, strided<[?, 1]>>, !inputs
  gdn_gpu.await_copies
  // expected-error@+1 {{'gdn_gpu.conv_columns' op expects a gdn_gpu.barrier between it and the access before it}}
  %next = gdn_gpu.conv_columns %inputs, %window, %weight to %values : !inputs, !window, !weight, !values {
  ^bb0(%row: vector<64xf32>):
    %rounded = arith.truncf %row : vector<64xf32> to vector<64xf16>
    gdn_gpu.yield %rounded : vector<64xf16>
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!inputs = !gdn_gpu.shared<64x64xbf16, swizzled>
!window = !gdn_gpu.fragment<64x3xbf16, #rows>
!weight = !gdn_gpu.fragment<64x4xbf16, #rows>
!values = !gdn_gpu.shared<64x64xf16, swizzled>

// So do those that another warp reads.
func.func @c4_values(%window: !window, %weight: !weight, %v: memref<?x64xbf16, strided<[?, 1]>>, %t: index)
    -> !gdn_gpu.fragment<64x64xf16, #gdn_gpu.rows<warps = 4, lanes = 8, vector = 8>>
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %c0 = arith.constant 0 : index
  %inputs = gdn_gpu.alloc : !inputs
  gdn_gpu.begin_copy per_warpgroup %v[%t, %c0] dims [0, 1], %inputs : memref<?x64xbf16, strided<[?, 1]>>, !inputs
  gdn_gpu.await_copies
  %values = gdn_gpu.reshape %inputs : !inputs to !values
  // expected-note@+1 {{access before it}}
  %next = gdn_gpu.conv_columns %inputs, %window, %weight to %values : !inputs, !window, !weight, !values {
  ^bb0(%row: vector<64xf32>):
    %rounded = arith.truncf %row : vector<64xf32> to vector<64xf16>
    gdn_gpu.yield %rounded : vector<64xf16>
  }
  // expected-error@+1 {{'gdn_gpu.load_shared' op expects a gdn_gpu.barrier between it and the access before it}}
  %y = gdn_gpu.load_shared %values
      : !values -> !gdn_gpu.fragment<64x64xf16, #gdn_gpu.rows<warps = 4, lanes = 8, vector = 8>>
  return %y : !gdn_gpu.fragment<64x64xf16, #gdn_gpu.rows<warps = 4, lanes = 8, vector = 8>>
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!inputs = !gdn_gpu.shared<64x64xbf16, swizzled>
!window = !gdn_gpu.fragment<64x3xbf16, #rows>
!weight = !gdn_gpu.fragment<64x4xbf16, #rows>
!values = !gdn_gpu.shared<64x64xf16, swizzled>

func.func @c5(%inputs: !inputs, %window: !window, %weight: !weight, %values: !values)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  gdn_gpu.warps 0 for 4 {
    // expected-error@+1 {{'gdn_gpu.conv_columns' op expects to be outside}}
    %next = gdn_gpu.conv_columns %inputs, %window, %weight to %values : !inputs, !window, !weight, !values {
    ^bb0(%row: vector<64xf32>):
      %rounded = arith.truncf %row : vector<64xf32> to vector<64xf16>
      gdn_gpu.yield %rounded : vector<64xf16>
    }
  }
  return
}
