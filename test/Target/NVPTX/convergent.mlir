// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Inline assembly is convergent, whoever wrote it: the two calls of a barrier
// in the branches of a condition do not become one behind it, and no branch
// takes in what stands before it.
//
// RUN: gdn-compile %s --target=sm_90a --emit=llvm-ir | FileCheck %s

// CHECK-LABEL: define ptx_kernel void @k
// CHECK: br i1
// CHECK-COUNT-2: call void asm sideeffect "bar.sync 1, 32;", ""() #[[ATTRIBUTES:[0-9]+]]
// CHECK-NOT: asm sideeffect
// CHECK: attributes #[[ATTRIBUTES]] = { convergent
llvm.func @k(%words: !llvm.ptr {llvm.byval = !llvm.array<3 x i64>,
                                llvm.align = 8 : i64, nvvm.grid_constant})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 64>,
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]},
                gdn_gpu.launch = {threads = 64 : i32}} {
  %at = llvm.load %words : !llvm.ptr -> !llvm.ptr<1>
  %thread = nvvm.read.ptx.sreg.tid.x : i32
  %limit = llvm.mlir.constant(32 : i32) : i32
  %isFirst = llvm.icmp "slt" %thread, %limit : i32
  llvm.cond_br %isFirst, ^first, ^second
^first:
  llvm.inline_asm has_side_effects asm_dialect = att "bar.sync 1, 32;", "" : () -> ()
  llvm.br ^end
^second:
  llvm.inline_asm has_side_effects asm_dialect = att "bar.sync 1, 32;", "" : () -> ()
  llvm.store %thread, %at : i32, !llvm.ptr<1>
  llvm.br ^end
^end:
  llvm.return
}
