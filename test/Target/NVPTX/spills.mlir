// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Spilled registers and ptxas' warnings about performance (C75xx) fail the
// build, unless the kernel has a measured reason; a name without a reason is
// none. PTX alone is not judged. Where an entry has another variant, for all
// calls, the one with the kernel is left out instead.
//
// RUN: split-file %s %t
// RUN: not gdn-compile %t/spills.mlir --target=sm_80 --emit=report 2>&1 | FileCheck %t/spills.mlir
// RUN: gdn-compile %t/spills.mlir --target=sm_80 --emit=ptx | FileCheck %t/spills.mlir --check-prefix=PTX
// RUN: sed 's/REASON/spills:/' %t/spills.mlir > %t/empty.mlir
// RUN: not gdn-compile %t/empty.mlir --target=sm_80 --emit=report 2>&1 | FileCheck %t/spills.mlir
// RUN: sed 's/REASON/spills: 3 %% faster than without, see the results/' %t/spills.mlir > %t/allowed.mlir
// RUN: gdn-compile %t/allowed.mlir --target=sm_80 --emit=report | FileCheck %t/spills.mlir --check-prefix=REPORT
// RUN: sed 's/REASON/spills up to 100000 bytes: outside of loops/' %t/spills.mlir > %t/some.mlir
// RUN: gdn-compile %t/some.mlir --target=sm_80 --emit=report | FileCheck %t/spills.mlir --check-prefix=REPORT
// RUN: sed 's/REASON/spills up to 4 bytes: outside of loops/' %t/spills.mlir > %t/few.mlir
// RUN: not gdn-compile %t/few.mlir --target=sm_80 --emit=report 2>&1 | FileCheck %t/spills.mlir
// RUN: not gdn-compile %t/warning.mlir --target=sm_90a --emit=report 2>&1 | FileCheck %t/warning.mlir
// RUN: sed 's/REASON/C7508: the count is set by the launch/' %t/warning.mlir > %t/excused.mlir
// RUN: gdn-compile %t/excused.mlir --target=sm_90a --emit=report | FileCheck %t/warning.mlir --check-prefix=REPORT
// RUN: sed -e 's/REASON/spills up to 0 bytes: none/' -e 's/nvvm.maxnreg = 24/nvvm.minctasm = 32/' %t/spills.mlir > %t/wish.mlir
// RUN: not gdn-compile %t/wish.mlir --target=sm_80 --emit=report 2>&1 | FileCheck %t/spills.mlir --check-prefix=WISH
// RUN: sed 's/gdn_gpu.allow/gdn_gpu.fewer_blocks, gdn_gpu.allow/' %t/wish.mlir > %t/fewer.mlir
// RUN: gdn-compile %t/fewer.mlir --target=sm_80 --emit=report 2>&1 | FileCheck %t/spills.mlir --check-prefix=FEWER

// RUN: gdn-compile %t/variants.mlir --target=sm_80 --emit=report 2>&1 | FileCheck %t/variants.mlir
// RUN: sed 's/variant = "all"/conditions = [[["N"], ["2"]]], &/' %t/variants.mlir > %t/some_calls.mlir
// RUN: not gdn-compile %t/some_calls.mlir --target=sm_80 --emit=report 2>&1 | FileCheck %t/variants.mlir --check-prefix=SOME

// RUN: sed -e 's/conditions = {few = [^}]*},//' -e 's/variant = "all"/workspace = [["N", "4"]], &/' %t/variants.mlir > %t/workspace.mlir
// RUN: not gdn-compile %t/workspace.mlir --target=sm_80 --emit=report 2>&1 | FileCheck %t/variants.mlir --check-prefix=SOME

//--- spills.mlir
// CHECK: error: 'k' expects no spilled registers on sm_80, but got {{[1-9][0-9]*}} bytes of stores and {{[1-9][0-9]*}} bytes of loads with 24 registers; 'gdn_gpu.allow' = "spills: <measured reason>" lets it pass
// PTX: .maxnreg 24
// REPORT: {{^}}k {{ *}}sm_80 {{ *}}24 {{ *}}0 {{ *}}0 {{ *}}{{[1-9][0-9]*}} {{ *}}{{[1-9][0-9]*}} {{ *}}{{[1-9][0-9]*}}
// WISH: error: 'k' expects no spilled registers on sm_80, but got {{[1-9][0-9]*}} bytes of stores and {{[1-9][0-9]*}} bytes of loads with 64 registers
// FEWER: remark: 'k' spills with 64 registers on sm_80: it gets those of 28 blocks per SM, not of 32
// FEWER: {{^}}k {{ *}}sm_80 {{ *}}{{[0-9]+}} {{ *}}0 {{ *}}0 {{ *}}0 {{ *}}0 {{ *}}0
llvm.func @k(%words: !llvm.ptr {llvm.byval = !llvm.array<3 x i64>,
                                llvm.align = 8 : i64, nvvm.grid_constant})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>, nvvm.maxnreg = 24 : i32,
                gdn_gpu.allow = "REASON", gdn_tile.stage = {grid = ["N"], symbols = ["N"]},
                gdn_gpu.launch = {threads = 32 : i32}} {
  %at = llvm.load %words : !llvm.ptr -> !llvm.ptr<1>
  %x = llvm.load volatile %at : !llvm.ptr<1> -> vector<64xf32>
  %y = llvm.fadd %x, %x : vector<64xf32>
  llvm.store volatile %y, %at : vector<64xf32>, !llvm.ptr<1>
  llvm.return
}

//--- warning.mlir
// CHECK: error: expects no warning of ptxas about performance on sm_90a, but got: (C7508) Potential Performance Loss: 'setmaxnreg' ignored
// REPORT: {{^}}k {{ *}}sm_90a
llvm.func @k(%words: !llvm.ptr {llvm.byval = !llvm.array<3 x i64>,
                                llvm.align = 8 : i64, nvvm.grid_constant})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128>, gdn_gpu.allow = ["REASON"],
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]},
                gdn_gpu.launch = {threads = 128 : i32}} {
  nvvm.setmaxregister increase 128
  llvm.return
}

//--- variants.mlir
// The stage that both variants have stays, in one of them.
// CHECK: warning: 'k__spills' on sm_80 spills {{[1-9][0-9]*}} bytes of registers; it is left out, and calls of 'k' take another variant
// CHECK-NOT: error
// CHECK: {{^}}k__both
// CHECK-NOT: k__spills
// CHECK: {{^}}k__all
// SOME: error: 'k__spills' expects no spilled registers on sm_80
llvm.func @k__both(%words: !llvm.ptr {llvm.byval = !llvm.array<3 x i64>,
                                      llvm.align = 8 : i64, nvvm.grid_constant})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>,
                gdn_tile.stage = {stage_of = "k", variant = ["few", "all"],
                                  conditions = {few = [[["N"], ["2"]]]}, grid = ["N"],
                                  symbols = ["N"]}, gdn_gpu.launch = {threads = 32 : i32}} {
  llvm.return
}
llvm.func @k__spills(%words: !llvm.ptr {llvm.byval = !llvm.array<3 x i64>,
                                        llvm.align = 8 : i64, nvvm.grid_constant})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>, nvvm.maxnreg = 24 : i32,
                gdn_tile.stage = {stage_of = "k", variant = "few", grid = ["N"], symbols = ["N"]},
                gdn_gpu.launch = {threads = 32 : i32}} {
  %at = llvm.load %words : !llvm.ptr -> !llvm.ptr<1>
  %x = llvm.load volatile %at : !llvm.ptr<1> -> vector<64xf32>
  %y = llvm.fadd %x, %x : vector<64xf32>
  llvm.store volatile %y, %at : vector<64xf32>, !llvm.ptr<1>
  llvm.return
}
llvm.func @k__all(%words: !llvm.ptr {llvm.byval = !llvm.array<3 x i64>,
                                     llvm.align = 8 : i64, nvvm.grid_constant})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>,
                gdn_tile.stage = {stage_of = "k", variant = "all", grid = ["N"], symbols = ["N"]},
                gdn_gpu.launch = {threads = 32 : i32}} {
  %at = llvm.load %words : !llvm.ptr -> !llvm.ptr<1>
  llvm.store volatile %at, %at : !llvm.ptr<1>, !llvm.ptr<1>
  llvm.return
}
