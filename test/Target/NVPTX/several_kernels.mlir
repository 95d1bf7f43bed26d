// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that share nothing become code by themselves, ones that share
// memory or a function in one piece. The text is one either way, with the
// kernels in order. Of kernels with the same code and the same allowances it
// has the first.
//
// RUN: split-file %s %t
// RUN: gdn-compile %t/apart.mlir --target=sm_90a --emit=ptx | FileCheck %t/apart.mlir
// RUN: gdn-compile %t/apart.mlir --target=sm_90a --emit=report | FileCheck %t/apart.mlir --check-prefix=REPORT
// RUN: gdn-compile %t/shared.mlir --target=sm_90a --emit=ptx | FileCheck %t/shared.mlir
// RUN: sed 's/2[.]0 : f32/1.0 : f32/' %t/apart.mlir > %t/same.mlir
// RUN: gdn-compile %t/same.mlir --target=sm_90a --emit=ptx | FileCheck %t/apart.mlir --check-prefix=SAME
// RUN: gdn-compile %t/same.mlir --target=sm_90a --emit=report | FileCheck %t/apart.mlir --check-prefix=REPORT
// RUN: sed 's/nvvm.kernel,/&gdn_gpu.allow = "C7508: none",/' %t/same.mlir > %t/allowed.mlir
// RUN: sed '0,/nvvm.kernel,/s//&gdn_gpu.allow = "C7508: none",/' %t/same.mlir > %t/one_allowed.mlir
// RUN: gdn-compile %t/allowed.mlir --target=sm_90a --emit=ptx | FileCheck %t/apart.mlir --check-prefix=SAME
// RUN: gdn-compile %t/one_allowed.mlir --target=sm_90a --emit=ptx | FileCheck %t/apart.mlir --check-prefix=BOTH
// RUN: gdn-compile %t/shared.mlir --target=sm_90a --emit=report | FileCheck %t/apart.mlir --check-prefix=REPORT

//--- apart.mlir
// CHECK-COUNT-1: .version
// CHECK-NOT: .version
// CHECK: .extern .shared .align 16 .b8 first_shared[];
// CHECK-NOT: second_shared
// CHECK: .entry first(
// CHECK: [first_shared]
// CHECK-NOT: .version
// CHECK: .extern .shared .align 16 .b8 second_shared[];
// CHECK: .entry second(
// CHECK: [second_shared]
// SAME: .entry first(
// SAME-NOT: .entry
// BOTH: .entry first(
// BOTH: .entry second(
// REPORT: {{^}}first {{ *}}sm_90a
// REPORT: {{^}}second {{ *}}sm_90a
llvm.mlir.global external @second_shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
llvm.mlir.global external @first_shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
llvm.func @first(%words: !llvm.ptr {llvm.byval = !llvm.array<3 x i64>,
                                    llvm.align = 8 : i64, nvvm.grid_constant})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>,
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]},
                gdn_gpu.launch = {threads = 32 : i32}} {
  %to = llvm.mlir.addressof @first_shared : !llvm.ptr<3>
  %x = llvm.mlir.constant(1.0 : f32) : f32
  llvm.store volatile %x, %to : f32, !llvm.ptr<3>
  llvm.return
}
llvm.func @second(%words: !llvm.ptr {llvm.byval = !llvm.array<3 x i64>,
                                     llvm.align = 8 : i64, nvvm.grid_constant})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>,
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]},
                gdn_gpu.launch = {threads = 32 : i32}} {
  %to = llvm.mlir.addressof @second_shared : !llvm.ptr<3>
  %x = llvm.mlir.constant(2.0 : f32) : f32
  llvm.store volatile %x, %to : f32, !llvm.ptr<3>
  llvm.return
}

//--- shared.mlir
// CHECK-COUNT-1: .version
// CHECK-COUNT-1: .extern .shared .align 16 .b8 both_shared[];
// CHECK-NOT: .extern
// CHECK: .entry first(
// CHECK: .entry second(
llvm.mlir.global external @both_shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
llvm.func @put(%to: !llvm.ptr<3>) attributes {no_inline} {
  %x = llvm.mlir.constant(1.0 : f32) : f32
  llvm.store volatile %x, %to : f32, !llvm.ptr<3>
  llvm.return
}
llvm.func @first(%words: !llvm.ptr {llvm.byval = !llvm.array<3 x i64>,
                                    llvm.align = 8 : i64, nvvm.grid_constant})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>,
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]},
                gdn_gpu.launch = {threads = 32 : i32}} {
  %to = llvm.mlir.addressof @both_shared : !llvm.ptr<3>
  llvm.call @put(%to) : (!llvm.ptr<3>) -> ()
  llvm.return
}
llvm.func @second(%words: !llvm.ptr {llvm.byval = !llvm.array<3 x i64>,
                                     llvm.align = 8 : i64, nvvm.grid_constant})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>,
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]},
                gdn_gpu.launch = {threads = 32 : i32}} {
  %to = llvm.mlir.addressof @both_shared : !llvm.ptr<3>
  llvm.call @put(%to) : (!llvm.ptr<3>) -> ()
  llvm.call @put(%to) : (!llvm.ptr<3>) -> ()
  llvm.return
}
