// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attributes and parameters of kernels: whole messages.
//
// RUN: split-file %s %t
// RUN: not gdn-compile %t/parameter.mlir --target=sm_90a --emit=ptx 2>&1 | FileCheck %t/parameter.mlir
// RUN: not gdn-compile %t/missing.mlir --target=sm_90a --emit=ptx 2>&1 | FileCheck %t/missing.mlir
// RUN: not gdn-compile %t/field.mlir --target=sm_90a --emit=ptx 2>&1 | FileCheck %t/field.mlir
// RUN: not gdn-compile %t/threads.mlir --target=sm_90a --emit=ptx 2>&1 | FileCheck %t/threads.mlir
// RUN: not gdn-compile %t/shared.mlir --target=sm_86 --emit=ptx 2>&1 | FileCheck %t/shared.mlir
// RUN: gdn-compile %t/shared.mlir --target=sm_90a --emit=ptx | FileCheck %t/shared.mlir --check-prefix=FITS
// RUN: not gdn-compile %t/cluster.mlir --target=sm_89 --emit=ptx 2>&1 | FileCheck %t/cluster.mlir
// RUN: not gdn-compile %t/reqntid.mlir --target=sm_90a --emit=ptx 2>&1 | FileCheck %t/reqntid.mlir
// RUN: not gdn-compile %t/alignments.mlir --target=sm_90a --emit=ptx 2>&1 | FileCheck %t/alignments.mlir
// RUN: not gdn-compile %t/counters.mlir --target=sm_90a --emit=ptx 2>&1 | FileCheck %t/counters.mlir
// RUN: not gdn-compile %t/tensor-maps.mlir --target=sm_90a --emit=ptx 2>&1 | FileCheck %t/tensor-maps.mlir
// RUN: not gdn-compile %t/box.mlir --target=sm_90a --emit=ptx 2>&1 | FileCheck %t/box.mlir
// RUN: not gdn-compile %t/pieces.mlir --target=sm_90a --emit=ptx 2>&1 | FileCheck %t/pieces.mlir
// RUN: not gdn-compile %t/many.mlir --target=sm_90a --emit=ptx 2>&1 | FileCheck %t/many.mlir
// RUN: not gdn-compile %t/rows-dim.mlir --target=sm_90a --emit=ptx 2>&1 | FileCheck %t/rows-dim.mlir
// RUN: not gdn-compile %t/rows.mlir --target=sm_90a --emit=ptx 2>&1 | FileCheck %t/rows.mlir

//--- parameter.mlir
// CHECK: error: 'llvm.func' op expects a kernel to take one pointer with 'llvm.byval' to an array of i64, 'llvm.align' = 8 or 64 and 'nvvm.grid_constant', but got none
llvm.func @k(%words: !llvm.ptr)
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>,
                gdn_gpu.launch = {threads = 32 : i32}} {
  llvm.return
}

//--- missing.mlir
// CHECK: error: 'llvm.func' op expects 'gdn_gpu.launch' to be a dictionary, but got none
llvm.func @k(%words: !llvm.ptr {llvm.byval = !llvm.array<3 x i64>,
                                llvm.align = 8 : i64, nvvm.grid_constant})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>} {
  llvm.return
}

//--- field.mlir
// CHECK: error: 'llvm.func' op expects the fields threads, shared_bytes, cluster, blocks_per_sm, dependent, counters, tensor_maps in 'gdn_gpu.launch', but got 'warps'
llvm.func @k(%words: !llvm.ptr {llvm.byval = !llvm.array<3 x i64>,
                                llvm.align = 8 : i64, nvvm.grid_constant})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>,
                gdn_gpu.launch = {threads = 32 : i32, warps = 1 : i32}} {
  llvm.return
}

//--- threads.mlir
// CHECK: error: 'llvm.func' op expects at most 1024 threads per block on the target sm_90a, but got 2048
llvm.func @k(%words: !llvm.ptr {llvm.byval = !llvm.array<3 x i64>,
                                llvm.align = 8 : i64, nvvm.grid_constant})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 2048>,
                gdn_gpu.launch = {threads = 2048 : i32}} {
  llvm.return
}

//--- shared.mlir
// CHECK: error: 'llvm.func' op expects at most 101376 bytes of shared memory per block on the target sm_86, but got 131072
// FITS: .entry k(
llvm.func @k(%words: !llvm.ptr {llvm.byval = !llvm.array<3 x i64>,
                                llvm.align = 8 : i64, nvvm.grid_constant})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>,
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]},
                gdn_gpu.launch = {threads = 32 : i32, shared_bytes = 131072 : i64}} {
  llvm.return
}

//--- cluster.mlir
// CHECK: error: 'llvm.func' op expects at most 1 blocks per cluster on the target sm_89, but got 2
llvm.func @k(%words: !llvm.ptr {llvm.byval = !llvm.array<3 x i64>,
                                llvm.align = 8 : i64, nvvm.grid_constant})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>,
                gdn_gpu.launch = {threads = 32 : i32, cluster = 2 : i32}} {
  llvm.return
}

//--- reqntid.mlir
// CHECK: error: 'llvm.func' op expects 'nvvm.reqntid' to be array<i32: 64>, the threads of 'gdn_gpu.launch', but got array<i32: 32>
llvm.func @k(%words: !llvm.ptr {llvm.byval = !llvm.array<3 x i64>,
                                llvm.align = 8 : i64, nvvm.grid_constant})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>,
                gdn_gpu.launch = {threads = 64 : i32}} {
  llvm.return
}

//--- alignments.mlir
// CHECK: error: 'llvm.func' op expects 'gdn_gpu.alignments' to be an array<i64> of powers of two up to 4096, or 0, but got array<i64: 16, 24>
llvm.func @k(%words: !llvm.ptr {llvm.byval = !llvm.array<3 x i64>,
                                llvm.align = 8 : i64, nvvm.grid_constant})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>,
                gdn_gpu.alignments = array<i64: 16, 24>,
                gdn_gpu.launch = {threads = 32 : i32}} {
  llvm.return
}

//--- layouts.mlir
// CHECK: error: 'llvm.func' op expects 'gdn_gpu.layouts' to be an array of array<i64>, a power of two up to 4096 or 0, then strides of at least 0, but got [array<i64: 16, 0, 1>, array<i64: 16, -1>]
llvm.func @k(%words: !llvm.ptr {llvm.byval = !llvm.array<3 x i64>,
                                llvm.align = 8 : i64, nvvm.grid_constant})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>,
                gdn_gpu.layouts = [array<i64: 16, 0, 1>, array<i64: 16, -1>],
                gdn_gpu.launch = {threads = 32 : i32}} {
  llvm.return
}

//--- counters.mlir
// CHECK: error: 'llvm.func' op expects 'counters' of 'gdn_gpu.launch' to be linear forms or a product, but got 7 : i32
llvm.func @k(%words: !llvm.ptr {llvm.byval = !llvm.array<3 x i64>,
                                llvm.align = 8 : i64, nvvm.grid_constant})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>,
                gdn_gpu.launch = {threads = 32 : i32, counters = 7 : i32}} {
  llvm.return
}

//--- tensor-maps.mlir
// CHECK: error: 'llvm.func' op expects 'tensor_maps' of 'gdn_gpu.launch' to be an array, but got 7 : i32
llvm.func @k(%words: !llvm.ptr {llvm.byval = !llvm.array<3 x i64>,
                                llvm.align = 8 : i64, nvvm.grid_constant})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>,
                gdn_gpu.launch = {threads = 32 : i32, tensor_maps = 7 : i32}} {
  llvm.return
}

//--- box.mlir
// CHECK: error: 'llvm.func' op expects 'tensor_maps' of 'gdn_gpu.launch' to have 'rows_dim' up to 2, 1 to 256 'rows', and 'param' or 'region' with 'sizes', and up to 4 'pieces', but got {param = 0 : i64, region = 0 : i64, rows = 64 : i64, rows_dim = 0 : i64}
llvm.func @k(%words: !llvm.ptr {llvm.byval = !llvm.array<3 x i64>,
                                llvm.align = 8 : i64, nvvm.grid_constant})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>,
                gdn_gpu.launch = {threads = 32 : i32,
                                  tensor_maps = [{param = 0, region = 0, rows = 64, rows_dim = 0}]}} {
  llvm.return
}

//--- pieces.mlir
// CHECK: error: 'llvm.func' op expects 'tensor_maps' of 'gdn_gpu.launch' to have 'rows_dim' up to 2, 1 to 256 'rows', and 'param' or 'region' with 'sizes', and up to 4 'pieces', but got {param = 0 : i64, pieces = 5 : i64, rows = 64 : i64, rows_dim = 0 : i64}
llvm.func @k(%words: !llvm.ptr {llvm.byval = !llvm.array<3 x i64>,
                                llvm.align = 8 : i64, nvvm.grid_constant})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>,
                gdn_gpu.launch = {threads = 32 : i32,
                                  tensor_maps = [{param = 0, pieces = 5, rows = 64, rows_dim = 0}]}} {
  llvm.return
}

//--- many.mlir
// CHECK: error: 'llvm.func' op expects at most 16 boxes, which the runtime takes, but got 17
#box = {param = 0, rows = 64, rows_dim = 0}
llvm.func @k(%words: !llvm.ptr {llvm.byval = !llvm.array<3 x i64>,
                                llvm.align = 8 : i64, nvvm.grid_constant})
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}, nvvm.kernel,
                nvvm.reqntid = array<i32: 32>,
                gdn_gpu.launch = {threads = 32 : i32, tensor_maps = [#box, #box, #box, #box, #box, #box, #box, #box, #box, #box, #box, #box, #box, #box, #box, #box, #box]}} {
  llvm.return
}

//--- rows-dim.mlir
// CHECK: error: 'llvm.func' op expects 'tensor_maps' of 'gdn_gpu.launch' to have 'rows_dim' up to 2, 1 to 256 'rows', and 'param' or 'region' with 'sizes', and up to 4 'pieces', but got {param = 0 : i64, rows = 64 : i64, rows_dim = 256 : i64}
llvm.func @k(%words: !llvm.ptr {llvm.byval = !llvm.array<3 x i64>,
                                llvm.align = 8 : i64, nvvm.grid_constant})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>,
                gdn_gpu.launch = {threads = 32 : i32, tensor_maps = [{param = 0, rows = 64, rows_dim = 256}]}} {
  llvm.return
}

//--- rows.mlir
// CHECK: error: 'llvm.func' op expects 'tensor_maps' of 'gdn_gpu.launch' to have 'rows_dim' up to 2, 1 to 256 'rows', and 'param' or 'region' with 'sizes', and up to 4 'pieces', but got {param = 0 : i64, rows = 0 : i64, rows_dim = 0 : i64}
llvm.func @k(%words: !llvm.ptr {llvm.byval = !llvm.array<3 x i64>,
                                llvm.align = 8 : i64, nvvm.grid_constant})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>,
                gdn_gpu.launch = {threads = 32 : i32, tensor_maps = [{param = 0, rows = 0, rows_dim = 0}]}} {
  llvm.return
}
