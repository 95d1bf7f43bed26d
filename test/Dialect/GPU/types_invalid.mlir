// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Types and layouts of gdn_gpu: every message.
//
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{expects 'warps' to be at least 1, but got 0}}
func.func private @no_warps(!gdn_gpu.fragment<8x8xf32, #gdn_gpu.rows<warps = 0, lanes = 8, vector = 4>>)

// -----

// expected-error@+1 {{expects 'lanes' to be a power of two up to 32, but got 12}}
func.func private @odd_lanes(!gdn_gpu.fragment<8x8xf32, #gdn_gpu.rows<warps = 1, lanes = 12, vector = 4>>)

// -----

// expected-error@+1 {{expects 'vector' to be a power of two up to 64, but got 3}}
func.func private @odd_vector(!gdn_gpu.fragment<8x8xf32, #gdn_gpu.rows<warps = 1, lanes = 8, vector = 3>>)

// -----

// expected-error@+1 {{expects a tile of rank 1 or 2, but got rank 3}}
func.func private @fragment_of_rank_3(!gdn_gpu.fragment<2x8x8xf32, #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>>)

// -----

// expected-error@+1 {{expects static sizes of at least 1, but got ?}}
func.func private @dynamic_size(!gdn_gpu.fragment<?x8xf32, #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>>)

// -----

// expected-error@+1 {{expects static sizes of at least 1, but got 0}}
func.func private @no_rows(!gdn_gpu.shared<0x8xf32>)

// -----

// expected-error@+1 {{expects elements of f32, bf16 or f16, of i32 in rank 1, or of i8 in rank 2, but got 'i32'}}
func.func private @integers(!gdn_gpu.shared<8x8xi32>)

// -----

// expected-error@+1 {{expects a tile of rank 2 to have the layout 'rows', but got #gdn_gpu.per_row<<warps = 8, lanes = 8, vector = 4>>}}
func.func private @matrix_per_row(!gdn_gpu.fragment<8x8xf32, #gdn_gpu.per_row<#gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>>>)

// -----

// expected-error@+1 {{expects a tile of rank 1 to have the layout 'per_row' or 'per_column', but got #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>}}
func.func private @vector_in_rows(!gdn_gpu.fragment<8xf32, #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>>)

// -----

// expected-error@+1 {{expects a swizzled tile to have rank 2 and rows of a multiple of 16 bytes, but got rank 2 and 24 bytes}}
func.func private @swizzled_rows(!gdn_gpu.shared<64x12xf16, swizzled>)

// -----

// expected-error@+1 {{expects 'depth' to be at least 1, but got 0}}
func.func private @no_depth(!gdn_gpu.channel<8x8xf32, depth = 0>)

// -----

// expected-error@+1 {{expects 'parts' from 1 to 32 that divide the rows, which are 8, but got 3}}
func.func private @odd_parts(!gdn_gpu.channel<8x8xf32, depth = 2, parts = 3>)

// -----

// expected-error@+1 {{expects elements of f32, bf16 or f16, of i32 in rank 1, or of i8 in rank 2, but got 'i32'}}
func.func private @channel_of_integers(!gdn_gpu.channel<8x8xi32, depth = 2>)

// -----

// expected-error@+1 {{expects a swizzled tile to have rank 2 and rows of a}}
func.func private @swizzled_row(!gdn_gpu.channel<64xbf16, depth = 2, swizzled>)

// -----

// expected-error@+1 {{expects 'apart' to be 1, or more in a swizzled tile with rows of a multiple of 128 bytes, but got 2 and 64 bytes}}
func.func private @apart_without_panels(!gdn_gpu.channel<8x32xf16, depth = 2, swizzled, apart = 2>)

// -----

// expected-error@+1 {{expects one of 'cyclic', 'tall' and 'crossed'}}
func.func private @cyclic_and_tall(!gdn_gpu.fragment<8x8xf32, #gdn_gpu.rows<warps = 1, lanes = 8, vector = 4, cyclic = true, tall = true>>)
