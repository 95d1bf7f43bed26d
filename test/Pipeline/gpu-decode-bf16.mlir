// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The decode step of a layer (heads of 128 x 128, state in bf16) on a GPU: the
// state is asked for in 16-byte loads, all of them before anything of it is
// used; no register is spilled on any chip, two blocks fit an SM.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile=value-heads -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-resident-recurrence -canonicalize -cse -o %t.gpu.mlir
// RUN: gdn-gpu-opt %t.gpu.mlir -gdn-gpu-to-llvm -o %t.new.mlir
// RUN: gdn-gpu-opt %t.gpu.mlir -gdn-gpu-to-llvm=dependent-launch=false -o %t.old.mlir
// RUN: gdn-compile %t.new.mlir --target=sm_90a --emit=ptx -o - | FileCheck %s
// RUN: gdn-compile %t.old.mlir --target=sm_80 --emit=report -o - | FileCheck %s --check-prefix=REPORT
// RUN: gdn-compile %t.old.mlir --target=sm_86 --emit=report -o - | FileCheck %s --check-prefix=REPORT
// RUN: gdn-compile %t.old.mlir --target=sm_89 --emit=report -o - | FileCheck %s --check-prefix=REPORT
// RUN: gdn-compile %t.new.mlir --target=sm_90a --emit=report -o - | FileCheck %s --check-prefix=REPORT
// RUN: gdn-compile %t.new.mlir --target=sm_100a --emit=report -o - | FileCheck %s --check-prefix=REPORT
// RUN: gdn-compile %t.new.mlir --target=sm_103a --emit=report -o - | FileCheck %s --check-prefix=REPORT
// RUN: gdn-compile %t.new.mlir --target=sm_120a --emit=report -o - | FileCheck %s --check-prefix=REPORT

// Registers, shared bytes; no dynamic shared memory, stack or spills; code,
// threads.
// REPORT: decode {{ *}}sm_{{[0-9a-z]+ +(12[0-8]|1[01][0-9]|[0-9]?[0-9]) +5920 +0 +0 +0 +0 +[0-9]+ +256}}

// CHECK: .visible .entry decode(
// CHECK: .reqntid 256
// CHECK: .minnctapersm 2
// CHECK-NOT: .local
// CHECK-NOT: fma
// CHECK-COUNT-8: ld.global.v4.b32
// CHECK: fma.rn.f32
// CHECK: bar{{.*}}sync
// CHECK-COUNT-8: st.global.v4.b32
// No calls of a library.
// CHECK-NOT: call

func.func @decode(
    %hk: index {gdn.name = "Hk"}, %hv: index {gdn.name = "Hv"},
    %qkvz: tensor<?x?xbf16> {gdn.name = "qkvz", gdn.dims = ["N", "256*Hk + 256*Hv"]},
    %ba: tensor<?x?xbf16> {gdn.name = "ba", gdn.dims = ["N", "2*Hv"]},
    %w: tensor<?x4xf32> {gdn.name = "conv_weight", gdn.dims = ["256*Hk + 128*Hv", "4"]},
    %alog: tensor<?xf32> {gdn.name = "A_log", gdn.dims = ["Hv"]},
    %dt: tensor<?xf32> {gdn.name = "dt_bias", gdn.dims = ["Hv"]},
    %nw: tensor<128xf32> {gdn.name = "norm_weight", gdn.dims = ["128"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %cp: !gdn.pool<?x?x3xbf16> {gdn.name = "conv_pool", gdn.dims = ["P", "256*Hk + 128*Hv", "3"]},
    %sp: !gdn.pool<?x?x128x128xbf16> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "128", "128"]})
    -> (tensor<?x?x128xbf16> {gdn.name = "out", gdn.dims = ["N", "Hv", "128"]})
    attributes {gdn.entry} {
  %q, %k, %v, %z = gdn.unpack "qkvz" interleaved %qkvz heads(%hk, %hv)
      : tensor<?x?xbf16> -> tensor<?x?x128xbf16>, tensor<?x?x128xbf16>,
        tensor<?x?x128xbf16>, tensor<?x?x128xbf16>
  %b, %a = gdn.unpack "ba" interleaved %ba heads(%hk, %hv)
      : tensor<?x?xbf16> -> tensor<?x?xbf16>, tensor<?x?xbf16>
  %o = gdn.kernel "decode" {
    %qc, %kc, %vc = gdn.conv1d %q, %k, %v weight(%w) silu pool(%cp) slots(%slots)
        : (tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?x128xbf16>),
          tensor<?x4xf32>, !gdn.pool<?x?x3xbf16>, tensor<?xi32>
          -> tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<?x?x128xf32>
    %qn = gdn.l2norm %qc : tensor<?x?x128xf32> -> tensor<?x?x128xf32>
    %kn = gdn.l2norm %kc : tensor<?x?x128xf32> -> tensor<?x?x128xf32>
    %g, %beta = gdn.gates %a, %b, %alog, %dt
        : tensor<?x?xbf16>, tensor<?x?xbf16>, tensor<?xf32>, tensor<?xf32>
          -> tensor<?x?xf32>, tensor<?x?xf32>
    %core = gdn.delta_rule %qn, %kn, %vc gates(%g, %beta) pool(%sp) slots(%slots)
        : tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<?x?x128xf32>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x128x128xbf16>,
          tensor<?xi32> -> tensor<?x?x128xf32>
    %y = gdn.gated_rms_norm %core, %z, %nw silu
        : tensor<?x?x128xf32>, tensor<?x?x128xbf16>, tensor<128xf32>
          -> tensor<?x?x128xbf16>
    %m = gdn.mask_sequences %y of(%sp) slots(%slots)
        : tensor<?x?x128xbf16>, !gdn.pool<?x?x128x128xbf16>, tensor<?xi32>
          -> tensor<?x?x128xbf16>
    gdn.yield %m : tensor<?x?x128xbf16>
  } : tensor<?x?x128xbf16>
  return %o : tensor<?x?x128xbf16>
}
