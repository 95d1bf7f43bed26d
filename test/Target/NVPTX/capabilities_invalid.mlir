// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a chip does not have is an error before LLVM's code generator, which
// ends the process on some of these, sees it. All of it compiles for sm_90a but
// the last.
//
// RUN: not gdn-compile %s --target=sm_80 --emit=ptx 2>&1 | FileCheck %s --check-prefix=SM80
// RUN: not gdn-compile %s --target=sm_90a --emit=ptx 2>&1 | FileCheck %s --check-prefix=SM90

// SM90-NOT: error:
// SM90: error: 'llvm.inline_asm' op needs packed f32 arithmetic, which the target sm_90a does not have
// SM90-NOT: error:

// SM80: error: 'llvm.func' op needs dependent launch, which the target sm_80 does not have
llvm.func @kernel(%words: !llvm.ptr {llvm.byval = !llvm.array<3 x i64>,
                                     llvm.align = 8 : i64,
                                     nvvm.grid_constant})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128>,
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]},
                gdn_gpu.launch = {threads = 128 : i32, dependent = true}} {
  // SM80: error: 'nvvm.griddepcontrol' op needs dependent launch, which the target sm_80 does not have
  nvvm.griddepcontrol wait
  // SM80: error: 'nvvm.setmaxregister' op needs setmaxnreg, which the target sm_80 does not have
  nvvm.setmaxregister increase 128
  // SM80: error: 'nvvm.wgmma.fence.aligned' op needs wgmma, which the target sm_80 does not have
  nvvm.wgmma.fence.aligned
  // SM80: error: 'nvvm.cluster.arrive' op needs clusters, which the target sm_80 does not have
  nvvm.cluster.arrive {aligned}
  // SM80: error: 'nvvm.cp.async.bulk.commit.group' op needs bulk copies, which the target sm_80 does not have
  nvvm.cp.async.bulk.commit.group
  // SM80: error: 'llvm.inline_asm' op needs setmaxnreg, which the target sm_80 does not have
  llvm.inline_asm has_side_effects asm_dialect = att
      "{ setmaxnreg.dec.sync.aligned.u32 40; }", "" : () -> ()
  %x = llvm.mlir.constant(0 : i64) : i64
  // SM80: error: 'llvm.inline_asm' op needs packed f32 arithmetic, which the target sm_80 does not have
  %y = llvm.inline_asm asm_dialect = att
      "fma.rn.f32x2 $0, $1, $1, $1;", "=l,l" %x : (i64) -> i64
  // SM80-NOT: error:
  llvm.return
}
