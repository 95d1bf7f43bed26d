// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every attribute of gdn_gpu, on a program and on a kernel.
//
// RUN: gdn-gpu-opt %s | gdn-gpu-opt | FileCheck %s
// RUN: gdn-gpu-opt -mlir-print-op-generic %s | gdn-gpu-opt | FileCheck %s

// CHECK-LABEL: func.func private @program(
//  CHECK-SAME:   memref<?xf32> {gdn_gpu.alignment = 16 : i64}, memref<?xf32> {gdn_gpu.alignment = 1 : i64}
//  CHECK-SAME:   gdn_gpu.allow = ["spills up to 16 bytes: addresses", "C7508: by the launch"]
//  CHECK-SAME:   gdn_gpu.fewer_blocks
//  CHECK-SAME:   gdn_gpu.kernel = {aligned_variant, blocks_per_sm = 2 : i64, cluster = 2 : i64, counters = ["2", "N"],
//  CHECK-SAME:     finish_products, keep_loops, min_blocks = 16 : i64, promised, rows_apart, single_warps, stores_matrices, threads = 1024 : i64, warpgroups}
func.func private @program(memref<?xf32> {gdn_gpu.alignment = 16 : i64},
                           memref<?xf32> {gdn_gpu.alignment = 1 : i64})
    attributes {gdn_gpu.kernel = {threads = 1024, min_blocks = 16, blocks_per_sm = 2, cluster = 2,
                                  counters = ["2", "N"], keep_loops, rows_apart, finish_products,
                                  single_warps, stores_matrices, warpgroups,
                                  aligned_variant, promised},
                gdn_gpu.fewer_blocks,
                gdn_gpu.allow = ["spills up to 16 bytes: addresses", "C7508: by the launch"]}

// CHECK-LABEL: llvm.func @kernel(!llvm.ptr)
//  CHECK-SAME:   gdn_gpu.alignments = array<i64: 16, 0>, gdn_gpu.allow = "spills: 3 words, measured"
//  CHECK-SAME:   gdn_gpu.code = @other, gdn_gpu.digest = "0f", gdn_gpu.fewer_blocks
//  CHECK-SAME:   gdn_gpu.launch = {blocks_per_sm = 0 : i32, cluster = 2 : i32, counters = ["2", "N"], dependent = true, shared_bytes = 4096 : i64, tensor_maps = [], threads = 128 : i32}
//  CHECK-SAME:   gdn_gpu.layouts = [array<i64: 16, 0, 1>, array<i64: 0>]
llvm.func @kernel(!llvm.ptr)
    attributes {gdn_gpu.launch = {threads = 128 : i32, shared_bytes = 4096 : i64, cluster = 2 : i32,
                                  blocks_per_sm = 0 : i32, dependent = true,
                                  counters = ["2", "N"], tensor_maps = []},
                gdn_gpu.alignments = array<i64: 16, 0>,
                gdn_gpu.layouts = [array<i64: 16, 0, 1>, array<i64: 0>],
                gdn_gpu.allow = "spills: 3 words, measured", gdn_gpu.fewer_blocks,
                gdn_gpu.digest = "0f", gdn_gpu.code = @other}
