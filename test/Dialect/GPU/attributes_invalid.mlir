// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attributes of gdn_gpu that there are not, of wrong values, and where they may
// not stand.
//
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{'func.func' op expects an attribute that gdn_gpu has, but got 'gdn_gpu.kernels'; like it is 'gdn_gpu.kernel'}}
func.func private @slip() attributes {gdn_gpu.kernels = {threads = 32}}

// -----

// expected-error@+1 {{'func.func' op expects an attribute that gdn_gpu has, but got 'gdn_gpu.stages'; there are 'gdn_gpu.kernel', 'gdn_gpu.alignment', 'gdn_gpu.fewer_blocks', 'gdn_gpu.allow', 'gdn_gpu.launch', 'gdn_gpu.alignments', 'gdn_gpu.layouts', 'gdn_gpu.digest', 'gdn_gpu.code'}}
func.func private @unknown() attributes {gdn_gpu.stages = 4}

// -----

// expected-error@+1 {{'builtin.module' op expects 'gdn_gpu.kernel' on functions of other dialects than llvm only}}
module attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
}

// -----

// expected-error@+1 {{'builtin.module' op expects 'gdn_gpu.allow' on functions only}}
module attributes {gdn_gpu.allow = []} {
}

// -----

// expected-error@+1 {{'llvm.func' op expects 'gdn_gpu.kernel' on functions of other dialects than llvm only}}
llvm.func @cluster_of_code() attributes {gdn_gpu.kernel = {threads = 32, cluster = 2}}

// -----

// expected-error@+1 {{'func.func' op expects 'gdn_gpu.alignment' on arguments of functions only, but got it on result 0}}
func.func private @of_a_result() -> (memref<4xf32> {gdn_gpu.alignment = 16 : i64})

// -----

// expected-error@+1 {{'func.func' op expects 'gdn_gpu.kernel' on functions of other dialects than llvm only, but got it on argument 0}}
func.func private @of_an_argument(index {gdn_gpu.kernel = {warpgroups}})

// -----

func.func @of_an_op() attributes {gdn_gpu.kernel = {threads = 32}} {
  // expected-error@+1 {{'gdn_gpu.barrier' op expects 'gdn_gpu.kernel' on functions of other dialects than llvm only}}
  gdn_gpu.barrier {gdn_gpu.kernel = {finish_products}}
  return
}

// -----

// expected-error@+1 {{'func.func' op expects 'threads' of 'gdn_gpu.kernel' to be an i64 from 32 to 1024, whole warps of 32, but got 2048 : i64}}
func.func private @threads_0() attributes {gdn_gpu.kernel = {threads = 2048}}

// -----

// expected-error@+1 {{'func.func' op expects 'threads' of 'gdn_gpu.kernel' to be an i64 from 32 to 1024, whole warps of 32, but got 100 : i64}}
func.func private @threads_1() attributes {gdn_gpu.kernel = {threads = 100}}

// -----

// expected-error@+1 {{'func.func' op expects 'threads' of 'gdn_gpu.kernel' to be an i64 from 32 to 1024, whole warps of 32, but got 0 : i64}}
func.func private @threads_2() attributes {gdn_gpu.kernel = {threads = 0}}

// -----

// expected-error@+1 {{'func.func' op expects 'threads' of 'gdn_gpu.kernel' to be an i64 from 32 to 1024, whole warps of 32, but got 32 : i32}}
func.func private @threads_3() attributes {gdn_gpu.kernel = {threads = 32 : i32}}

// -----

// expected-error@+1 {{'func.func' op expects 'threads' of 'gdn_gpu.kernel' to be an i64 from 32 to 1024, whole warps of 32, but got 32 : ui64}}
func.func private @threads_4() attributes {gdn_gpu.kernel = {threads = 32 : ui64}}

// -----

// expected-error@+1 {{'func.func' op expects 'threads' of 'gdn_gpu.kernel' to be an i64 from 32 to 1024, whole warps of 32, but got 3.200000e+01 : f64}}
func.func private @threads_5() attributes {gdn_gpu.kernel = {threads = 32.0 : f64}}

// -----

// expected-error@+1 {{'func.func' op expects 'min_blocks' of 'gdn_gpu.kernel' to be an i64 from 1 to 32, but got "two"}}
func.func private @min_blocks_0() attributes {gdn_gpu.kernel = {min_blocks = "two"}}

// -----

// expected-error@+1 {{'func.func' op expects 'min_blocks' of 'gdn_gpu.kernel' to be an i64 from 1 to 32, but got 0 : i64}}
func.func private @min_blocks_1() attributes {gdn_gpu.kernel = {min_blocks = 0}}

// -----

// expected-error@+1 {{'func.func' op expects 'min_blocks' of 'gdn_gpu.kernel' to be an i64 from 1 to 32, but got 33 : i64}}
func.func private @min_blocks_2() attributes {gdn_gpu.kernel = {min_blocks = 33}}

// -----

// expected-error@+1 {{'func.func' op expects 'blocks_per_sm' of 'gdn_gpu.kernel' to be an i64 from 0 to 32, but got -1 : i64}}
func.func private @blocks_per_sm_0() attributes {gdn_gpu.kernel = {blocks_per_sm = -1}}

// -----

// expected-error@+1 {{'func.func' op expects 'blocks_per_sm' of 'gdn_gpu.kernel' to be an i64 from 0 to 32, but got true}}
func.func private @blocks_per_sm_1() attributes {gdn_gpu.kernel = {blocks_per_sm = true}}

// -----

// expected-error@+1 {{'func.func' op expects 'cluster' of 'gdn_gpu.kernel' to be an i64 from 1 to 8, but got "x"}}
func.func private @cluster_0() attributes {gdn_gpu.kernel = {cluster = "x"}}

// -----

// expected-error@+1 {{'func.func' op expects 'cluster' of 'gdn_gpu.kernel' to be an i64 from 1 to 8, but got 16 : i64}}
func.func private @cluster_1() attributes {gdn_gpu.kernel = {cluster = 16}}

// -----

// expected-error@+1 {{'func.func' op expects 'cluster' of 'gdn_gpu.kernel' to be an i64 from 1 to 8, but got 2 : i128}}
func.func private @cluster_2() attributes {gdn_gpu.kernel = {cluster = 2 : i128}}

// -----

// expected-error@+1 {{'func.func' op expects 'counters' of 'gdn_gpu.kernel' to be an array of linear forms, but got 4 : i64}}
func.func private @counters_0() attributes {gdn_gpu.kernel = {counters = 4}}

// -----

// expected-error@+1 {{'func.func' op expects 'counters' of 'gdn_gpu.kernel' to be an array of linear forms, but got [4]}}
func.func private @counters_1() attributes {gdn_gpu.kernel = {counters = [4]}}

// -----

// expected-error@+1 {{'func.func' op expects 'counters' of 'gdn_gpu.kernel' to hold linear forms, but form 1 is not: expected a number after '*', as a form is linear, at column 3 of "N*H", but got 'H'}}
func.func private @counter_is_no_form() attributes {gdn_gpu.kernel = {counters = ["2", "N*H"]}}

// -----

// expected-error@+1 {{'func.func' op expects 'keep_loops' of 'gdn_gpu.kernel' to be a unit attribute, but got true}}
func.func private @keep_loops() attributes {gdn_gpu.kernel = {keep_loops = true}}

// -----

// expected-error@+1 {{'func.func' op expects 'rows_apart' of 'gdn_gpu.kernel' to be a unit attribute, but got true}}
func.func private @rows_apart() attributes {gdn_gpu.kernel = {rows_apart = true}}

// -----

// expected-error@+1 {{'func.func' op expects 'finish_products' of 'gdn_gpu.kernel' to be a unit attribute, but got true}}
func.func private @finish_products() attributes {gdn_gpu.kernel = {finish_products = true}}

// -----

// expected-error@+1 {{'func.func' op expects 'single_warps' of 'gdn_gpu.kernel' to be a unit attribute, but got true}}
func.func private @single_warps() attributes {gdn_gpu.kernel = {single_warps = true}}

// -----

// expected-error@+1 {{'func.func' op expects 'stores_matrices' of 'gdn_gpu.kernel' to be a unit attribute, but got true}}
func.func private @stores_matrices() attributes {gdn_gpu.kernel = {stores_matrices = true}}

// -----

// expected-error@+1 {{'func.func' op expects 'warpgroups' of 'gdn_gpu.kernel' to be a unit attribute, but got true}}
func.func private @warpgroups() attributes {gdn_gpu.kernel = {warpgroups = true}}

// -----

// expected-error@+1 {{'func.func' op expects 'aligned_variant' of 'gdn_gpu.kernel' to be a unit attribute, but got true}}
func.func private @aligned_variant() attributes {gdn_gpu.kernel = {aligned_variant = true}}

// -----

// expected-error@+1 {{'func.func' op expects 'promised' of 'gdn_gpu.kernel' to be a unit attribute, but got true}}
func.func private @promised() attributes {gdn_gpu.kernel = {promised = true}}

// -----

// expected-error@+1 {{'func.func' op expects 'gdn_gpu.fewer_blocks' to be a unit attribute, but got true}}
func.func private @fewer_blocks() attributes {gdn_gpu.fewer_blocks = true}

// -----

// expected-error@+1 {{'func.func' op expects 'gdn_gpu.alignment' of argument 0 to be an i64, a power of two up to 4096, but got 3 : i64}}
func.func private @alignment_3(memref<?xf32> {gdn_gpu.alignment = 3})

// -----

// expected-error@+1 {{'func.func' op expects 'gdn_gpu.alignment' of argument 0 to be an i64, a power of two up to 4096, but got 0 : i64}}
func.func private @alignment_0(memref<?xf32> {gdn_gpu.alignment = 0})

// -----

// expected-error@+1 {{'func.func' op expects 'gdn_gpu.alignment' of argument 0 to be an i64, a power of two up to 4096, but got 8192 : i64}}
func.func private @alignment_8192(memref<?xf32> {gdn_gpu.alignment = 8192})

// -----

// expected-error@+1 {{'func.func' op expects 'gdn_gpu.alignment' of argument 0 to be an i64, a power of two up to 4096, but got 16 : i32}}
func.func private @alignment_16_i32(memref<?xf32> {gdn_gpu.alignment = 16 : i32})

// -----

// expected-error@+1 {{'func.func' op expects 'gdn_gpu.alignment' on memrefs only, but argument 1 is 'index'}}
func.func private @alignment_of_an_index(memref<?xf32>, index {gdn_gpu.alignment = 16})

// -----

// expected-error@+1 {{'func.func' op expects 'gdn_gpu.allow' to be "spills: <reason>", "spills up to <n> bytes: <reason>", "C<number>: <reason>" or an array of these, but got 4 : i64}}
func.func private @allow_0() attributes {gdn_gpu.allow = 4}

// -----

// expected-error@+1 {{'func.func' op expects 'gdn_gpu.allow' to be "spills: <reason>", "spills up to <n> bytes: <reason>", "C<number>: <reason>" or an array of these, but got ["spills: few", 4]}}
func.func private @allow_1() attributes {gdn_gpu.allow = ["spills: few", 4]}

// -----

// expected-error@+1 {{'func.func' op expects 'gdn_gpu.allow' to be "spills: <reason>", "spills up to <n> bytes: <reason>", "C<number>: <reason>" or an array of these, but got "spils: few"}}
func.func private @allow_2() attributes {gdn_gpu.allow = "spils: few"}

// -----

// expected-error@+1 {{'func.func' op expects 'gdn_gpu.allow' to be "spills: <reason>", "spills up to <n> bytes: <reason>", "C<number>: <reason>" or an array of these, but got "spills up to many bytes: few"}}
func.func private @allow_3() attributes {gdn_gpu.allow = "spills up to many bytes: few"}

// -----

// expected-error@+1 {{'func.func' op expects 'gdn_gpu.allow' to be "spills: <reason>", "spills up to <n> bytes: <reason>", "C<number>: <reason>" or an array of these, but got ["C75x8: measured"]}}
func.func private @allow_4() attributes {gdn_gpu.allow = ["C75x8: measured"]}

// -----

// expected-error@+1 {{'func.func' op expects 'gdn_gpu.launch' on functions of the llvm dialect only}}
func.func private @launch_of_a_program() attributes {gdn_gpu.launch = {threads = 32 : i32}}

// -----

// expected-error@+1 {{'llvm.func' op expects 'gdn_gpu.launch' to be a dictionary, but got "once"}}
llvm.func @launch() attributes {gdn_gpu.launch = "once"}

// -----

// expected-error@+1 {{'llvm.func' op expects 'threads' in 'gdn_gpu.launch', but got none}}
llvm.func @launch_without_threads() attributes {gdn_gpu.launch = {cluster = 2 : i32}}

// -----

// expected-error@+1 {{'llvm.func' op expects a field that 'gdn_gpu.launch' has, but got 'warps'; there are 'threads', 'shared_bytes', 'cluster', 'blocks_per_sm', 'dependent', 'counters', 'tensor_maps'}}
llvm.func @launch_of_warps() attributes {gdn_gpu.launch = {threads = 32 : i32, warps = 1 : i32}}

// -----

// expected-error@+1 {{'llvm.func' op expects 'threads' of 'gdn_gpu.launch' to be an integer of at least 1, but got 0 : i32}}
llvm.func @launch_threads() attributes {gdn_gpu.launch = {threads = 0 : i32}}

// -----

// expected-error@+1 {{'llvm.func' op expects 'shared_bytes' of 'gdn_gpu.launch' to be an integer of at least 0, but got -1 : i64}}
llvm.func @launch_shared_bytes() attributes {gdn_gpu.launch = {threads = 32 : i32, shared_bytes = -1 : i64}}

// -----

// expected-error@+1 {{'llvm.func' op expects 'cluster' of 'gdn_gpu.launch' to be an integer of at least 1, but got 0 : i32}}
llvm.func @launch_cluster() attributes {gdn_gpu.launch = {threads = 32 : i32, cluster = 0 : i32}}

// -----

// expected-error@+1 {{'llvm.func' op expects 'blocks_per_sm' of 'gdn_gpu.launch' to be an integer of at least 0, but got 1.000000e+00 : f32}}
llvm.func @launch_blocks_per_sm() attributes {gdn_gpu.launch = {threads = 32 : i32, blocks_per_sm = 1.0 : f32}}

// -----

// expected-error@+1 {{'llvm.func' op expects 'dependent' of 'gdn_gpu.launch' to be true or false, but got 1 : i32}}
llvm.func @launch_dependent() attributes {gdn_gpu.launch = {threads = 32 : i32, dependent = 1 : i32}}

// -----

// expected-error@+1 {{'llvm.func' op expects 'counters' of 'gdn_gpu.launch' to be linear forms or a product, but got 7 : i32}}
llvm.func @launch_counters() attributes {gdn_gpu.launch = {threads = 32 : i32, counters = 7 : i32}}

// -----

// expected-error@+1 {{'llvm.func' op expects 'tensor_maps' of 'gdn_gpu.launch' to be an array, but got 7 : i32}}
llvm.func @launch_tensor_maps() attributes {gdn_gpu.launch = {threads = 32 : i32, tensor_maps = 7 : i32}}

// -----

// expected-error@+1 {{'llvm.func' op expects 'gdn_gpu.alignments' to be an array<i64> of powers of two up to 4096, or 0, but got array<i64: 16, 24>}}
llvm.func @alignments() attributes {gdn_gpu.alignments = array<i64: 16, 24>}

// -----

// expected-error@+1 {{'llvm.func' op expects 'gdn_gpu.alignments' to be an array<i64> of powers of two up to 4096, or 0, but got array<i32: 16>}}
llvm.func @alignments_of_another_type() attributes {gdn_gpu.alignments = array<i32: 16>}

// -----

// expected-error@+1 {{'llvm.func' op expects 'gdn_gpu.layouts' to be an array of array<i64>, a power of two up to 4096 or 0, then strides of at least 0, but got [array<i64: 16, 0, 1>, array<i64: 16, -1>]}}
llvm.func @layouts() attributes {gdn_gpu.layouts = [array<i64: 16, 0, 1>, array<i64: 16, -1>]}

// -----

// expected-error@+1 {{'llvm.func' op expects 'gdn_gpu.layouts' to be an array of array<i64>, a power of two up to 4096 or 0, then strides of at least 0, but got [array<i64>]}}
llvm.func @layout_of_nothing() attributes {gdn_gpu.layouts = [array<i64>]}

// -----

// expected-error@+1 {{'llvm.func' op expects 'gdn_gpu.digest' to be a string, but got 12 : i64}}
llvm.func @digest() attributes {gdn_gpu.digest = 12}

// -----

// expected-error@+1 {{'llvm.func' op expects 'gdn_gpu.code' to be a flat symbol reference, but got "k"}}
llvm.func @code() attributes {gdn_gpu.code = "k"}

// -----

// expected-error@+1 {{'func.func' op expects 'gdn_gpu.kernel' to be a dictionary, but got 128 : i64}}
func.func private @kernel_is_a_number() attributes {gdn_gpu.kernel = 128}

// -----

// expected-error@+1 {{'func.func' op expects 'threads' in 'gdn_gpu.kernel', but got none}}
func.func private @kernel_without_threads() attributes {gdn_gpu.kernel = {keep_loops}}

// -----

// expected-error@+1 {{'func.func' op expects a field that 'gdn_gpu.kernel' has, but got 'thread'; like it is 'threads'}}
func.func private @field_slip() attributes {gdn_gpu.kernel = {thread = 32}}

// -----

// expected-error@+1 {{'func.func' op expects a field that 'gdn_gpu.kernel' has, but got 'stages'; there are 'threads', 'min_blocks', 'blocks_per_sm', 'cluster', 'counters', 'keep_loops', 'rows_apart', 'finish_products', 'single_warps', 'stores_matrices', 'warpgroups', 'aligned_variant', 'promised'}}
func.func private @unknown_field() attributes {gdn_gpu.kernel = {stages = 4, threads = 32}}
