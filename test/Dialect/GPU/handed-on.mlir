// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiles that roles change in place and hand on, and a role in turns:
// round trip, both forms, and a program that gdn-gpu-check lets pass.
//
// RUN: gdn-gpu-opt %s | gdn-gpu-opt | FileCheck %s
// RUN: gdn-gpu-opt %s -mlir-print-op-generic | gdn-gpu-opt | FileCheck %s
// RUN: gdn-gpu-opt %s -gdn-gpu-check -o /dev/null

!keys = !gdn_gpu.channel<32x128xbf16, depth = 5, swizzled>
!made = !gdn_gpu.channel<32x128xf16, depth = 5, swizzled>
!logs = !gdn_gpu.channel<32x128xf32, depth = 5, swizzled>
!first = !gdn_gpu.channel<16x128xf16, depth = 2, swizzled>
!decays = !gdn_gpu.channel<2x128xf32, depth = 2>

// CHECK-LABEL: func.func @chunks(
//       CHECK:   %[[Q:.+]] = gdn_gpu.channel : <32x128xbf16, depth = 5, swizzled>
//       CHECK:   %[[G:.+]] = gdn_gpu.channel zeroed : <32x128xf32, depth = 5, swizzled> with %[[Q]]
//       CHECK:   %[[Q1:.+]] = gdn_gpu.channel : <32x128xf16, depth = 5, swizzled> of %[[Q]] :
//       CHECK:   gdn_gpu.channel : <32x128xf32, depth = 5, swizzled> with %[[Q1]] : {{.+}} of %[[G]] :
//       CHECK:     gdn_gpu.hand_on %[[Q]] to %[[Q1]] :
//       CHECK:   gdn_gpu.warps 5 for 2 in_turns 2 {
func.func @chunks(%n: index, %x: !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>>>)
    attributes {gdn_gpu.kernel = {threads = 224 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %q = gdn_gpu.channel : !keys
  %k = gdn_gpu.channel : !keys with %q : !keys
  %g = gdn_gpu.channel zeroed : !logs with %q : !keys
  %q1 = gdn_gpu.channel : !made of %q : !keys
  %g1 = gdn_gpu.channel : !logs with %q1 : !made of %g : !logs
  %f = gdn_gpu.channel : !first
  %d = gdn_gpu.channel : !decays with %f : !first
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 4 {
      scf.for %i = %c0 to %n step %c1 {
        %qt = gdn_gpu.receive %q : !keys -> !gdn_gpu.shared<32x128xbf16, swizzled>
        %kt = gdn_gpu.receive %k : !keys -> !gdn_gpu.shared<32x128xbf16, swizzled>
        %gt = gdn_gpu.receive %g : !logs -> !gdn_gpu.shared<32x128xf32, swizzled>
        %ft = gdn_gpu.acquire %f : !first -> !gdn_gpu.shared<16x128xf16, swizzled>
        %dt = gdn_gpu.acquire %d : !decays -> !gdn_gpu.shared<2x128xf32>
        gdn_gpu.decay_within %qt, %kt, %gt, %ft, %dt
            : !gdn_gpu.shared<32x128xbf16, swizzled>, !gdn_gpu.shared<32x128xf32, swizzled>,
              !gdn_gpu.shared<16x128xf16, swizzled>, !gdn_gpu.shared<2x128xf32>
        gdn_gpu.commit %d : !decays
        gdn_gpu.commit %f : !first
        gdn_gpu.hand_on %q to %q1 : !keys, !made
      }
    }
    gdn_gpu.warps 4 for 1 {
      scf.for %i = %c0 to %n step %c1 {
        %qt = gdn_gpu.acquire %q : !keys -> !gdn_gpu.shared<32x128xbf16, swizzled>
        %kt = gdn_gpu.acquire %k : !keys -> !gdn_gpu.shared<32x128xbf16, swizzled>
        %gt = gdn_gpu.acquire %g : !logs -> !gdn_gpu.shared<32x128xf32, swizzled>
        gdn_gpu.commit %g : !logs
        gdn_gpu.commit %k : !keys
        gdn_gpu.commit %q : !keys
        %ft = gdn_gpu.receive %f : !first -> !gdn_gpu.shared<16x128xf16, swizzled>
        gdn_gpu.release %f : !first
      }
    }
    gdn_gpu.warps 5 for 2 in_turns 2 {
      gdn_gpu.each_warp 0 for 2 {
      ^bb0(%turn: index):
        scf.for %i = %turn to %n step %c2 {
          %qt = gdn_gpu.receive %q1 : !made -> !gdn_gpu.shared<32x128xf16, swizzled>
          gdn_gpu.release %q1 : !made
        }
      }
    }
  }
  return
}

// Two tiles in a turn, of which the leader is handed on.
// CHECK-LABEL: func.func @twice(
func.func @twice() attributes {gdn_gpu.kernel = {threads = 96 : i64}} {
  %q = gdn_gpu.channel : !keys
  %k = gdn_gpu.channel : !keys with %q : !keys
  %q1 = gdn_gpu.channel : !keys of %q : !keys
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %qt = gdn_gpu.acquire %q : !keys -> !gdn_gpu.shared<32x128xbf16, swizzled>
      %kt = gdn_gpu.acquire %k : !keys -> !gdn_gpu.shared<32x128xbf16, swizzled>
      gdn_gpu.commit %k : !keys
      gdn_gpu.commit %q : !keys
    }
    gdn_gpu.warps 1 for 1 {
      %qt = gdn_gpu.receive %q : !keys -> !gdn_gpu.shared<32x128xbf16, swizzled>
      %kt = gdn_gpu.receive %k : !keys -> !gdn_gpu.shared<32x128xbf16, swizzled>
      gdn_gpu.hand_on %q to %q1 : !keys, !keys
      %qs = gdn_gpu.receive %q : !keys -> !gdn_gpu.shared<32x128xbf16, swizzled>
      %ks = gdn_gpu.receive %k : !keys -> !gdn_gpu.shared<32x128xbf16, swizzled>
      gdn_gpu.hand_on %q to %q1 : !keys, !keys
    }
    gdn_gpu.warps 2 for 1 {
      %qt = gdn_gpu.receive %q1 : !keys -> !gdn_gpu.shared<32x128xbf16, swizzled>
      gdn_gpu.release %q1 : !keys
    }
  }
  return
}
