// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs that have no CPU code. Each is valid at the tile level.
//
// RUN: gdn-tile-opt %s -split-input-file -o /dev/null
// RUN: gdn-tile-opt %s -split-input-file -convert-tile-to-cpu -verify-diagnostics

// expected-error@+1 {{'func.func' op expects 'symbols' of 'gdn_tile.stage' on a function with 'grid' of 'gdn_tile.stage'}}
func.func @no_symbols(%n: index)
    attributes {gdn_tile.stage = {grid = ["N"]}} {
  return
}

// -----

// expected-error@+1 {{'func.func' op expects axis 1 of 'grid' of 'gdn_tile.stage' to be a linear form over 'symbols' of 'gdn_tile.stage', but got '2*M'}}
func.func @grid_has_another_symbol(%n: index)
    attributes {gdn_tile.stage = {grid = ["N", "2*M"], symbols = ["N"]}} {
  return
}

// -----

// expected-error@+1 {{'func.func' op expects sizes in 'workspace' of 'gdn_tile.stage' to be a linear form over 'symbols' of 'gdn_tile.stage', but got '2*M'}}
func.func @size_has_another_symbol(%n: index, %w: memref<?xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"], workspace = [["2*M", "4"]]}} {
  return
}

// -----

// expected-error@+1 {{'func.func' op expects a tile function to have no results, but got 1}}
func.func @results(%n: index, %x: memref<4xf32>) -> vector<4xf32>
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %a = gdn_tile.load %x[%c0] dims [0] : memref<4xf32>, vector<4xf32>
  return %a : vector<4xf32>
}

// -----

// expected-error@+1 {{'func.func' op expects a tile function to have one block, but got 2}}
func.func @blocks(%n: index, %x: memref<4xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %a = gdn_tile.load %x[%c0] dims [0] : memref<4xf32>, vector<4xf32>
  cf.br ^bb1
^bb1:
  gdn_tile.store %a, %x[%c0] dims [0] : vector<4xf32>, memref<4xf32>
  return
}

// -----

// expected-error@+1 {{'func.func' op expects argument 1 to be a strided memref or an index, but got 'vector<4xf32>'}}
func.func @tile_argument(%n: index, %t: vector<4xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  return
}

// -----

// expected-error@+1 {{'func.func' op expects argument 1 to be a strided memref or an index, but got 'memref<*xf32>'}}
func.func @unranked_argument(%n: index, %t: memref<*xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  return
}

// -----

func.func @constant_tile(%n: index, %x: memref<4xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %t = arith.constant dense<0.0> : vector<4xf32>
  // expected-error@+1 {{'gdn_tile.store' op expects its tiles to be results of gdn_tile ops or carried by scf.for}}
  gdn_tile.store %t, %x[%c0] dims [0] : vector<4xf32>, memref<4xf32>
  return
}

// -----

func.func @constant_carried(%n: index)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %t = arith.constant dense<0.0> : vector<f32>
  // expected-error@+1 {{'scf.for' op expects its tiles to be results of gdn_tile ops or carried by scf.for}}
  %r = scf.for %i = %n to %n step %n iter_args(%p = %t) -> (vector<f32>) {
    scf.yield %p : vector<f32>
  }
  return
}

// -----

func.func @other_use(%n: index, %x: memref<4xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %a = gdn_tile.load %x[%c0] dims [0] : memref<4xf32>, vector<4xf32>
  // expected-error@+1 {{'vector.extract' op expects to be a gdn_tile op or scf.for to use a tile}}
  %e = vector.extract %a[0] : f32 from vector<4xf32>
  return
}

// -----

func.func @other_result(%n: index, %x: memref<4xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{'vector.load' op expects to be a gdn_tile op or scf.for to have a tile as its result}}
  %a = vector.load %x[%c0] : memref<4xf32>, vector<4xf32>
  return
}

// -----

func.func @branch(%n: index, %x: memref<4xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %a = gdn_tile.load %x[%c0] dims [0] : memref<4xf32>, vector<4xf32>
  %z = arith.cmpi eq, %n, %c0 : index
  // expected-error@+1 {{'scf.if' op expects to be a gdn_tile op or scf.for to have a tile as its result}}
  %b = scf.if %z -> vector<4xf32> {
    scf.yield %a : vector<4xf32>
  } else {
    scf.yield %a : vector<4xf32>
  }
  return
}

// -----

func.func @row_op_on_a_row(%n: index, %x: memref<4xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %a = gdn_tile.load %x[%c0] dims [0] : memref<4xf32>, vector<4xf32>
  %b = gdn_tile.map_rows %a : vector<4xf32> -> vector<4xf32> {
  ^bb0(%i: index, %e: f32):
    // expected-error@+1 {{'gdn_tile.fill' op expects to be outside gdn_tile.map_rows, whose body works on rows}}
    %t = gdn_tile.fill %e : f32 -> vector<8xf32>
    gdn_tile.yield %e : f32
  }
  return
}

// -----

func.func @whole_matrix_in_a_body(%n: index, %x: memref<4x8xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %a = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<4x8xf32>, vector<4x8xf32>
  // expected-note@+1 {{make it an input to use its rows}}
  %b = gdn_tile.map_rows -> vector<4x8xf32> {
  ^bb0(%i: index):
    // expected-error@+1 {{'vector.extract' op expects a tile that a body uses whole to have rank 1, but got 'vector<4x8xf32>'}}
    %r = vector.extract %a[0] : vector<8xf32> from vector<4x8xf32>
    gdn_tile.yield %r : vector<8xf32>
  }
  return
}

// -----

func.func @narrow_operands(%n: index, %x: memref<8x8xbf16>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %a = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<8x8xbf16>, vector<8x8xbf16>
  // expected-error@+1 {{'gdn_tile.matmul' op expects operands in f32, to which gdn-tile-widen-operands brings them, but got 'bf16'}}
  %c = gdn_tile.matmul %a, %a : vector<8x8xbf16>, vector<8x8xbf16> -> vector<8x8xf32>
  return
}

// -----

func.func @blocks_of_a_pair(%n: index, %x: memref<64xf32>)
    attributes {gdn_tile.stage = {grid = ["N", "2"], symbols = ["N"], same_chunks = 2 : i64}} {
  %c0 = arith.constant 0 : index
  %own = gdn_tile.load %x[%c0] dims [0] : memref<64xf32>, vector<64xf32>
  // expected-error@+1 {{'gdn_tile.sum_of_pair' op expects blocks that share something, but on a CPU a block serves a whole key head}}
  %all = gdn_tile.sum_of_pair %own : vector<64xf32>
  gdn_tile.store %all, %x[%c0] dims [0] : vector<64xf32>, memref<64xf32>
  return
}

// -----

func.func @stages_beside(%n: index, %x: memref<64xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{'gdn_tile.signal' op expects stages that run beside each other, but on a CPU one runs behind the other}}
  gdn_tile.signal 64, %x[%c0] : memref<64xf32>
  return
}

// -----

func.func @rows_of_a_tile(%n: index, %x: memref<8x64xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %all = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<8x64xf32>, vector<8x64xf32>
  // expected-error@+1 {{'gdn_tile.extract_rows' op expects pieces that take rows of a block's tile, but on a CPU each loads its own}}
  %some = gdn_tile.extract_rows %all[%n] : vector<8x64xf32> -> vector<4x64xf32>
  gdn_tile.store %some, %x[%c0, %c0] dims [0, 1] : vector<4x64xf32>, memref<8x64xf32>
  return
}
