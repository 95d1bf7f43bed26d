// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The families of instructions that lowerings use, on every target that has
// them: what all have, and what Hopper and later have. The checks refuse none
// of it, and ptxas accepts it.
//
// RUN: split-file %s %t
// RUN: gdn-compile %t/ampere.mlir --target=sm_80,sm_86,sm_89,sm_90a,sm_100a,sm_103a,sm_120a --emit=report | FileCheck %t/ampere.mlir
// RUN: gdn-compile %t/hopper.mlir --target=sm_90a,sm_100a,sm_103a,sm_120a --emit=report | FileCheck %t/hopper.mlir
// RUN: gdn-compile %t/hopper.mlir --target=sm_90a --emit=ptx | FileCheck %t/hopper.mlir --check-prefix=PTX

//--- ampere.mlir
// CHECK-COUNT-7: {{^}}k {{ *}}sm_{{[0-9]+a?}} {{ *}}{{[0-9]+}} {{ *}}0 {{ *}}1024 {{ *}}0 {{ *}}0 {{ *}}0 {{ *}}{{[0-9]+}} {{ *}}32 {{ *}}1
llvm.mlir.global external @smem() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<0 x i8>
llvm.func @k(%words: !llvm.ptr {llvm.byval = !llvm.array<3 x i64>,
                                llvm.align = 8 : i64, nvvm.grid_constant})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>,
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]},
                gdn_gpu.launch = {threads = 32 : i32, shared_bytes = 1024 : i64}} {
  %at = llvm.load %words : !llvm.ptr -> !llvm.ptr<1>
  %smem = llvm.mlir.addressof @smem : !llvm.ptr<3>
  %lane = nvvm.read.ptx.sreg.laneid : i32
  %shared = llvm.getelementptr %smem[%lane] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, vector<8xf16>
  %global = llvm.getelementptr %at[%lane] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<8xf16>
  nvvm.cp.async.shared.global %shared, %global, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
  nvvm.cp.async.commit.group
  nvvm.cp.async.wait.group 0
  nvvm.barrier0
  %a = nvvm.ldmatrix %shared {num = 4 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>}
      : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
  %a0 = llvm.extractvalue %a[0] : !llvm.struct<(i32, i32, i32, i32)>
  %a1 = llvm.extractvalue %a[1] : !llvm.struct<(i32, i32, i32, i32)>
  %a2 = llvm.extractvalue %a[2] : !llvm.struct<(i32, i32, i32, i32)>
  %a3 = llvm.extractvalue %a[3] : !llvm.struct<(i32, i32, i32, i32)>
  %zero = llvm.mlir.constant(0.0 : f32) : f32
  %d = nvvm.mma.sync A[%a0, %a1, %a2, %a3] B[%a0, %a1] C[%zero, %zero, %zero, %zero]
      {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>,
       multiplicandAPtxType = #nvvm.mma_type<bf16>,
       multiplicandBPtxType = #nvvm.mma_type<bf16>,
       shape = #nvvm.shape<m = 16, n = 8, k = 16>}
      : (i32, i32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
  %d0 = llvm.extractvalue %d[0] : !llvm.struct<(f32, f32, f32, f32)>
  %exp = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"(%d0) : (f32) -> f32
  %to = llvm.getelementptr %at[%lane] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
  llvm.store %exp, %to : f32, !llvm.ptr<1>
  llvm.return
}

//--- hopper.mlir
// CHECK-COUNT-4: {{^}}k {{ *}}sm_{{[0-9]+a}} {{.*}} 128 {{ *}}2 {{ *}}4 {{ *}}yes
// PTX: .extern .shared .align 128 .b8 smem[];
// PTX: .explicitcluster
// PTX: griddepcontrol.wait;
// PTX: cp.async.bulk.shared
llvm.mlir.global external @smem() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<0 x i8>
llvm.func @k(%words: !llvm.ptr {llvm.byval = !llvm.array<3 x i64>,
                                llvm.align = 8 : i64, nvvm.grid_constant})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128>, nvvm.cluster_dim = array<i32: 2, 1, 1>,
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]},
                gdn_gpu.launch = {threads = 128 : i32, shared_bytes = 4096 : i64, cluster = 2 : i32,
                                  blocks_per_sm = 4 : i32, dependent = true}} {
  %at = llvm.load %words : !llvm.ptr -> !llvm.ptr<1>
  %smem = llvm.mlir.addressof @smem : !llvm.ptr<3>
  %data = llvm.getelementptr %smem[128] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
  %cluster = llvm.addrspacecast %data : !llvm.ptr<3> to !llvm.ptr<7>
  %thread = nvvm.read.ptx.sreg.tid.x : i32
  %zero = llvm.mlir.constant(0 : i32) : i32
  %one = llvm.mlir.constant(1 : i32) : i32
  %bytes = llvm.mlir.constant(1024 : i32) : i32
  %ticks = llvm.mlir.constant(10000000 : i32) : i32
  %isFirst = llvm.icmp "eq" %thread, %zero : i32
  nvvm.griddepcontrol wait
  llvm.cond_br %isFirst, ^issue, ^wait
^issue:
  nvvm.mbarrier.init %smem, %one : !llvm.ptr<3>, i32
  nvvm.fence.mbarrier.init
  nvvm.mbarrier.arrive.expect_tx %smem, %bytes : !llvm.ptr<3>, i32
  nvvm.cp.async.bulk.shared.cluster.global %cluster, %at, %smem, %bytes
      : !llvm.ptr<7>, !llvm.ptr<1>
  llvm.br ^wait
^wait:
  nvvm.barrier0
  nvvm.mbarrier.try_wait.parity %smem, %zero, %ticks : !llvm.ptr<3>, i32, i32
  nvvm.cluster.arrive {aligned}
  nvvm.cluster.wait {aligned}
  nvvm.griddepcontrol launch_dependents
  %x = llvm.load %data : !llvm.ptr<3> -> i32
  llvm.store %x, %at : i32, !llvm.ptr<1>
  llvm.return
}
