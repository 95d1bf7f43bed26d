// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// No function of math that a library would have to give, and no conversion of
// bf16 that a processor may lack; square roots and fused additions stay.
//
// RUN: gdn-tile-opt %s -gdn-expand-cpu-math \
// RUN:   | FileCheck %s --implicit-check-not='math.{{exp|log}}' --implicit-check-not=arith.truncf --implicit-check-not=arith.extf

// CHECK-LABEL: func.func @gates
//       CHECK:   math.fma %{{.+}} : vector<8xf32>
//       CHECK:   math.fma %{{.+}} : f32
func.func @gates(%x: vector<8xf32>, %s: f32) -> (vector<8xf32>, f32) {
  %e = math.exp %x : vector<8xf32>
  %l = math.log1p %e : vector<8xf32>
  %t = math.exp %s : f32
  return %l, %t : vector<8xf32>, f32
}

// CHECK-LABEL: func.func @norm
//       CHECK:   math.rsqrt %{{.+}} : f32
func.func @norm(%x: f32) -> f32 {
  %r = math.rsqrt %x : f32
  return %r : f32
}

// Rounded to nearest even with integers.
// CHECK-LABEL: func.func @convert
//       CHECK:   arith.shli %{{.+}} : vector<8xi32>
//       CHECK:   arith.shrui %{{.+}} : vector<8xi32>
func.func @convert(%x: vector<8xbf16>) -> vector<8xbf16> {
  %w = arith.extf %x : vector<8xbf16> to vector<8xf32>
  %d = arith.addf %w, %w : vector<8xf32>
  %n = arith.truncf %d : vector<8xf32> to vector<8xbf16>
  return %n : vector<8xbf16>
}

// Every processor that has the rest converts f16.
// CHECK-LABEL: func.func @half
//       CHECK:   arith.truncf %{{.+}} : vector<8xf32> to vector<8xf16>
func.func @half(%x: vector<8xf32>) -> vector<8xf16> {
  %n = arith.truncf %x : vector<8xf32> to vector<8xf16>
  return %n : vector<8xf16>
}
