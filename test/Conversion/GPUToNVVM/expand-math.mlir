// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-expand-gpu-math: no function of math is left, no division, and no
// conversion of bf16.
//
// RUN: gdn-gpu-opt %s -gdn-expand-gpu-math | FileCheck %s

// CHECK-LABEL: func.func @exp
//       CHECK:   %[[CAPPED:.+]] = arith.minimumf
//       CHECK:   %[[X:.+]] = arith.maximumf %[[CAPPED]]
//       CHECK:   %[[SHIFTED:.+]] = math.fma %[[X]]
//       CHECK:   %[[J:.+]] = arith.subf %[[SHIFTED]]
//       CHECK:   math.fma %[[J]], %{{.+}}, %[[X]]
//       CHECK:   %[[POWER:.+]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
//       CHECK:   %[[SCALE:.+]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%[[J]])
//       CHECK:   arith.mulf %[[POWER]], %[[SCALE]]
//   CHECK-NOT:   math.exp
func.func @exp(%x: f32) -> f32 {
  %y = math.exp %x : f32
  return %y : f32
}

// A power of two that may be an approximation is the chip's.
// CHECK-LABEL: func.func @power
//       CHECK:   llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%{{.+}})
//   CHECK-NOT:   math.exp2
func.func @power(%x: f32) -> f32 {
  %y = math.exp2 %x fastmath<afn> : f32
  return %y : f32
}

// A vector goes element by element where there is an intrinsic.
// CHECK-LABEL: func.func @gates
//   CHECK-NOT:   math.{{exp|log|rsqrt}}
//   CHECK-NOT:   arith.divf
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.ftz.f"
//       CHECK:   return
func.func @gates(%x: vector<2xf32>) -> (vector<2xf32>, vector<2xf32>) {
  %e = math.exp %x : vector<2xf32>
  %l = math.log1p %e : vector<2xf32>
  %r = math.rsqrt %x : vector<2xf32>
  return %l, %r : vector<2xf32>, vector<2xf32>
}

// CHECK-LABEL: func.func @divisions
//  CHECK-SAME:   %[[X:.+]]: f32, %[[Y:.+]]: f32
//       CHECK:   %[[EXACT:.+]] = arith.constant 7.812500e-03 : f32
//       CHECK:   llvm.call_intrinsic "llvm.nvvm.div.full"(%[[X]], %[[Y]])
//       CHECK:   llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%[[Y]])
//       CHECK:   arith.mulf %[[X]], %[[EXACT]]
//   CHECK-NOT:   arith.divf
func.func @divisions(%x: f32, %y: f32) -> (f32, f32, f32) {
  %one = arith.constant 1.0 : f32
  %size = arith.constant 128.0 : f32
  %a = arith.divf %x, %y : f32
  %b = arith.divf %one, %y : f32
  %c = arith.divf %x, %size : f32
  return %a, %b, %c : f32, f32, f32
}

// Pairs in one register, both ways; single ones alone.
// CHECK-LABEL: func.func @bf16
//       CHECK:   vector.bitcast %{{.+}} : vector<4xbf16> to vector<2xi32>
//   CHECK-DAG:   arith.shli %{{.+}} : vector<2xi32>
//   CHECK-DAG:   arith.andi %{{.+}} : vector<2xi32>
//       CHECK:   vector.shuffle %{{.+}} [0, 2, 1, 3]
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.nvvm.ff2bf16x2.rn"
//       CHECK:   arith.extui %{{.+}} : i16 to i32
//       CHECK:   arith.shli %{{.+}} : i32
//       CHECK:   llvm.call_intrinsic "llvm.nvvm.f2bf16.rn"
//   CHECK-NOT:   arith.{{extf|truncf}}
func.func @bf16(%x: vector<4xbf16>, %y: bf16) -> (vector<4xbf16>, bf16) {
  %a = arith.extf %x : vector<4xbf16> to vector<4xf32>
  %b = arith.addf %a, %a : vector<4xf32>
  %c = arith.truncf %b : vector<4xf32> to vector<4xbf16>
  %d = arith.extf %y : bf16 to f32
  %e = arith.addf %d, %d : f32
  %f = arith.truncf %e : f32 to bf16
  return %c, %f : vector<4xbf16>, bf16
}

// The chip has these for f32 alone: what is in another type stays.
// CHECK-LABEL: func.func @wide
//       CHECK:   math.exp %{{.+}} : f64
//       CHECK:   math.exp2 %{{.+}} : f64
//       CHECK:   math.rsqrt %{{.+}} : f64
//       CHECK:   arith.divf %{{.+}} : f64
//       CHECK:   arith.truncf %{{.+}} : f64 to bf16
//   CHECK-NOT:   llvm.call_intrinsic
//       CHECK:   return
func.func @wide(%x: f64) -> (f64, bf16) {
  %e = math.exp %x : f64
  %p = math.exp2 %e fastmath<afn> : f64
  %r = math.rsqrt %p : f64
  %d = arith.divf %r, %x : f64
  %n = arith.truncf %d : f64 to bf16
  return %d, %n : f64, bf16
}
