// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One kernel for every target: each block scales one row of 128 f32 values by
// 3. The words are x (pointer, sizes, strides), N, the workspace, the units.
// It assembles everywhere, waits for nothing and calls nothing.
//
// RUN: gdn-compile %s --target=sm_80 --emit=report | FileCheck %s --check-prefix=REPORT
// RUN: gdn-compile %s --target=sm_86 --emit=report | FileCheck %s --check-prefix=REPORT
// RUN: gdn-compile %s --target=sm_89 --emit=report | FileCheck %s --check-prefix=REPORT
// RUN: gdn-compile %s --target=sm_90a --emit=report | FileCheck %s --check-prefix=REPORT
// RUN: gdn-compile %s --target=sm_100a --emit=report | FileCheck %s --check-prefix=REPORT
// RUN: gdn-compile %s --target=sm_103a --emit=report | FileCheck %s --check-prefix=REPORT
// RUN: gdn-compile %s --target=sm_120a --emit=report | FileCheck %s --check-prefix=REPORT
// RUN: gdn-compile %s --target=sm_80,sm_90a --emit=report | FileCheck %s --check-prefix=TWO
// RUN: gdn-compile %s --target=sm_90a --emit=ptx | FileCheck %s --check-prefix=PTX
// RUN: gdn-compile %s --target=sm_90a --emit=nvvm | FileCheck %s --check-prefix=NVVM
// RUN: gdn-compile %s --target=sm_90a --emit=llvm-ir | FileCheck %s --check-prefix=IR
// RUN: gdn-compile %s --target=sm_90a --emit=sass | FileCheck %s --check-prefix=SASS
// RUN: gdn-compile %s --target=sm_90a --ptxas=none --emit=report | FileCheck %s --check-prefix=NONE

// REPORT: {{^}}kernel {{ *}}target {{ *}}registers {{ *}}shared {{ *}}dynamic
// REPORT-NEXT: {{^}}scale {{ *}}sm_{{[0-9]+a?}} {{ *}}{{[1-9][0-9]?}} {{ *}}0 {{ *}}0 {{ *}}0 {{ *}}0 {{ *}}0 {{ *}}{{[1-9][0-9]+}} {{ *}}128 {{ *}}1 {{ *}}0 {{ *}}no{{$}}

// TWO: {{^}}scale {{ *}}sm_80
// TWO-NEXT: {{^}}scale {{ *}}sm_90a

// PTX: .version 9.0
// PTX-NEXT: .target sm_90a
// PTX: .visible .entry scale(
// PTX-NEXT: .param .align 8 .b8 scale_param_0[64]
// PTX: .reqntid 128
// No local copy of the parameter, and no fused product.
// PTX-NOT: .local
// PTX: mul.rn.f32

// NVVM: llvm.func @scale
// NVVM-SAME: gdn_gpu.launch = {threads = 128 : i32}

// IR: define ptx_kernel void @scale(ptr noundef readonly byval([8 x i64]) align 8

// SASS: .section{{.*}}.text.scale
// SASS: FMUL

// NONE: {{^}}scale {{ *}}sm_90a {{ *}}- {{ *}}- {{ *}}0
llvm.func @scale(%words: !llvm.ptr {llvm.byval = !llvm.array<8 x i64>,
                                    llvm.align = 8 : i64, llvm.noundef,
                                    nvvm.grid_constant})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128>,
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]},
                gdn_gpu.launch = {threads = 128 : i32}} {
  %base = llvm.load %words : !llvm.ptr -> !llvm.ptr<1>
  %strideAt = llvm.getelementptr %words[3] : (!llvm.ptr) -> !llvm.ptr, i64
  %stride = llvm.load %strideAt : !llvm.ptr -> i64
  %block = nvvm.read.ptx.sreg.ctaid.x : i32
  %thread = nvvm.read.ptx.sreg.tid.x : i32
  %row = llvm.sext %block : i32 to i64
  %offset = llvm.mul %row, %stride : i64
  %rowAt = llvm.getelementptr %base[%offset]
      : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
  %at = llvm.getelementptr %rowAt[%thread]
      : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
  %three = llvm.mlir.constant(3.0 : f32) : f32
  %x = llvm.load %at : !llvm.ptr<1> -> f32
  %y = llvm.fmul %x, %three : f32
  llvm.store %y, %at : f32, !llvm.ptr<1>
  llvm.return
}
