// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What convert-gdn-gpu-to-nvvm refuses.
//
// RUN: gdn-gpu-opt %s -split-input-file -o /dev/null
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics -convert-gdn-gpu-to-nvvm

// expected-error@+1 {{'func.func' op expects 'grid' of 'gdn_tile.stage' and 'symbols' of 'gdn_tile.stage' on a function with 'threads' of 'gdn_gpu.kernel'}}
func.func @no_symbols(%n: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}, gdn_tile.stage = {grid = ["N"]}} {
  return
}

// -----

// expected-error@+1 {{'func.func' op expects axis 1 of 'grid' of 'gdn_tile.stage' to be a linear form of the symbols, but got '2*M'}}
func.func @form(%n: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["N", "2*M"], symbols = ["N"]}} {
  return
}

// -----

// expected-error@+1 {{'func.func' op expects an index as first arguments for each of its symbols, which are 2, but got 1}}
func.func @symbols(%n: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N", "M"]}} {
  return
}

// -----

// expected-error@+1 {{'func.func' op expects a kernel to have no results, but got 1}}
func.func @result(%n: index) -> index
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  return %n : index
}

// -----

// expected-error@+1 {{'func.func' op expects a kernel to have one block, but got 2}}
func.func @blocks(%n: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  cf.br ^bb1
^bb1:
  return
}

// -----

// expected-error@+1 {{'func.func' op expects argument 1 to be a strided memref or an index, but got 'f32'}}
func.func @argument(%n: index, %x: f32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  return
}

// -----

func.func @op(%n: index, %x: memref<4xf32>)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  // expected-error@+1 {{'memref.alloca' op has no code on a GPU}}
  %a = memref.alloca() : memref<4xf32>
  return
}

// -----

func.func @vectors(%n: index, %x: memref<4xf32>)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c = arith.constant dense<1.0> : vector<4xf32>
  // expected-error@+1 {{'arith.addf' op expects vectors inside gdn_gpu.map_rows only}}
  %a = arith.addf %c, %c : vector<4xf32>
  return
}

// -----

// What gdn-gpu-check refuses is refused here as well.
func.func @race(%n: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %p = gdn_gpu.alloc : !gdn_gpu.shared<4xf32>
  %i = arith.constant 0 : index
  // expected-error@+1 {{'gdn_gpu.load_shared_element' op expects a tile that has been shared on every way to it}}
  %x = gdn_gpu.load_shared_element %p[%i] : !gdn_gpu.shared<4xf32> -> f32
  return
}
