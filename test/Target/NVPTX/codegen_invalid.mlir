// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Code that LLVM or ptxas would refuse, or end the process on, and code that
// nobody defines: an error with a name, and the tool lives to say it.
//
// RUN: split-file %s %t
// RUN: not gdn-compile %t/math.mlir --target=sm_90a --emit=ptx 2>&1 | FileCheck %t/math.mlir
// RUN: not gdn-compile %t/undefined.mlir --target=sm_90a --emit=ptx 2>&1 | FileCheck %t/undefined.mlir
// RUN: not gdn-compile %t/fatal.mlir --target=sm_80 --emit=ptx 2>&1 | FileCheck %t/fatal.mlir
// RUN: not gdn-compile %t/unsupported.mlir --target=sm_80 --emit=ptx 2>&1 | FileCheck %t/unsupported.mlir
// RUN: not gdn-compile %t/assembly.mlir --target=sm_80 --emit=report 2>&1 | FileCheck %t/assembly.mlir
// RUN: not gdn-compile %t/none.mlir --target=sm_80 --emit=report 2>&1 | FileCheck %t/none.mlir

//--- math.mlir
llvm.func @k(%words: !llvm.ptr {llvm.byval = !llvm.array<3 x i64>,
                                llvm.align = 8 : i64, nvvm.grid_constant})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>,
                gdn_gpu.launch = {threads = 32 : i32}} {
  %x = llvm.load %words : !llvm.ptr -> f32
  // CHECK: error: 'llvm.intr.exp' op has no instruction on a GPU, and kernels have no library to take it from: expects a form made of ex2, lg2 and arithmetic
  %y = llvm.intr.exp(%x) : (f32) -> f32
  // CHECK: error: 'llvm.intr.sin' op has no instruction on a GPU
  %z = llvm.intr.sin(%x) : (f32) -> f32
  // CHECK-NOT: error:
  %a = llvm.intr.sin(%x) {fastmathFlags = #llvm.fastmath<afn>} : (f32) -> f32
  %b = llvm.intr.exp2(%x) : (f32) -> f32
  llvm.return
}

//--- undefined.mlir
// CHECK: error: the kernels refer to '__nv_expf', 'table', but an image has no library to take it from
llvm.func @__nv_expf(f32) -> f32
llvm.mlir.global external @table() {addr_space = 1 : i32} : f32
llvm.mlir.global external @smem() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
llvm.func @k(%words: !llvm.ptr {llvm.byval = !llvm.array<3 x i64>,
                                llvm.align = 8 : i64, nvvm.grid_constant})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>,
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]},
                gdn_gpu.launch = {threads = 32 : i32}} {
  %to = llvm.load %words : !llvm.ptr -> !llvm.ptr<1>
  %table = llvm.mlir.addressof @table : !llvm.ptr<1>
  %smem = llvm.mlir.addressof @smem : !llvm.ptr<3>
  %x = llvm.load %table : !llvm.ptr<1> -> f32
  %y = llvm.call @__nv_expf(%x) : (f32) -> f32
  llvm.store volatile %y, %smem : f32, !llvm.ptr<3>
  llvm.store %y, %to : f32, !llvm.ptr<1>
  llvm.return
}

//--- fatal.mlir
// An intrinsic by its name, which no table of ours looks through.
// CHECK: error: the code generator for sm_80 failed: Cannot select: intrinsic %llvm.nvvm.setmaxnreg.inc.sync.aligned.u32
llvm.func @k(%words: !llvm.ptr {llvm.byval = !llvm.array<3 x i64>,
                                llvm.align = 8 : i64, nvvm.grid_constant})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>,
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]},
                gdn_gpu.launch = {threads = 32 : i32}} {
  %n = llvm.mlir.constant(128 : i32) : i32
  llvm.call_intrinsic "llvm.nvvm.setmaxnreg.inc.sync.aligned.u32"(%n) : (i32) -> ()
  llvm.return
}

//--- unsupported.mlir
// CHECK: error: the code generator for sm_80 refuses the kernels: {{.*}}unsupported cmpxchg
llvm.func @k(%words: !llvm.ptr {llvm.byval = !llvm.array<3 x i64>,
                                llvm.align = 8 : i64, nvvm.grid_constant})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>,
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]},
                gdn_gpu.launch = {threads = 32 : i32}} {
  %to = llvm.load %words : !llvm.ptr -> !llvm.ptr<1>
  %one = llvm.mlir.constant(1 : i128) : i128
  %old = llvm.cmpxchg %to, %one, %one acq_rel monotonic : !llvm.ptr<1>, i128
  llvm.return
}

//--- assembly.mlir
// CHECK: error: ptxas {{[0-9.]+}} refuses the code for sm_80:
// CHECK-NEXT: ptxas ptx, line {{[0-9]+}}; error   : Not a name of any known instruction: 'frobnicate'
llvm.func @k(%words: !llvm.ptr {llvm.byval = !llvm.array<3 x i64>,
                                llvm.align = 8 : i64, nvvm.grid_constant})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>,
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]},
                gdn_gpu.launch = {threads = 32 : i32}} {
  llvm.inline_asm has_side_effects asm_dialect = att "frobnicate;", "" : () -> ()
  llvm.return
}

//--- none.mlir
// CHECK: error: expects at least one entry with a schedule, or a kernel, but got none
llvm.func @f() {
  llvm.return
}
