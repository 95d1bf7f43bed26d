// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the attributes of gdn_gpu may say, and of what.
//
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{'func.func' op expects 'gdn_gpu.threads' to be an integer from 32 to 1024, but got 2048 : i64}}
func.func private @too_many_threads() attributes {gdn_gpu.threads = 2048 : i64}

// -----

// expected-error@+1 {{'func.func' op expects 'gdn_gpu.threads' to be whole warps of 32 threads, but got 100}}
func.func private @part_of_a_warp() attributes {gdn_gpu.threads = 100 : i64}

// -----

// expected-error@+1 {{'func.func' op expects 'gdn_gpu.min_blocks' to be an integer from 1 to 32, but got "two"}}
func.func private @min_blocks() attributes {gdn_gpu.min_blocks = "two"}

// -----

// expected-error@+1 {{'func.func' op expects 'gdn_gpu.blocks_per_sm' to be an integer from 0 to 32, but got -1 : i64}}
func.func private @blocks_per_sm() attributes {gdn_gpu.blocks_per_sm = -1 : i64}

// -----

// expected-error@+1 {{'func.func' op expects 'gdn_gpu.counters' to be an array of strings, but got 4 : i64}}
func.func private @counters() attributes {gdn_gpu.counters = 4 : i64}

// -----

// expected-error@+1 {{'func.func' op expects 'gdn_gpu.launch' to be a dictionary, but got "once"}}
func.func private @launch() attributes {gdn_gpu.launch = "once"}

// -----

// expected-error@+1 {{'builtin.module' op expects 'gdn_gpu.threads' on a function only}}
module attributes {gdn_gpu.threads = 32 : i64} {
}

// -----

// expected-error@+1 {{'func.func' op expects 'gdn_gpu.cluster' to be an integer from 1 to 8, but got "x"}}
func.func private @cluster() attributes {gdn_gpu.cluster = "x"}

// -----

// expected-error@+1 {{'func.func' op expects 'gdn_gpu.cluster' to be an integer from 1 to 8, but got 16 : i64}}
func.func private @cluster_size() attributes {gdn_gpu.cluster = 16 : i64}
