// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.combine_maps: one case per way to break a constraint that the verifier owns.
//
// RUN: gdn-opt %s -split-input-file -verify-diagnostics

func.func @c1_linear(%h: tensor<?x?x128x128xf32>, %p: tensor<?x?x64x128xf32>, %n: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.combine_maps' op expects dim 2 of 'linear' to be dk = 128, set by dim 3 of 'constant', but got 64}}
  %0 = gdn.combine_maps segments(%h, %p) of(%n, %n)
      : tensor<?x?x128x128xf32>, tensor<?x?x64x128xf32>, tensor<?xi32>, tensor<?xi32>
  return
}

// -----

func.func @c1_dynamic(%h: tensor<?x?x?x128xf32>, %p: tensor<?x?x128x128xf32>, %n: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.combine_maps' op expects dim 2 of 'constant', dv, to be static, but got a dynamic size}}
  %0 = gdn.combine_maps segments(%h, %p) of(%n, %n)
      : tensor<?x?x?x128xf32>, tensor<?x?x128x128xf32>, tensor<?xi32>, tensor<?xi32>
  return
}

// -----

func.func @c1_segments(%h: tensor<3x?x128x128xf32>, %p: tensor<4x?x128x128xf32>, %n: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.combine_maps' op expects dim 0 of 'linear' to be M = 3, set by dim 0 of 'constant', but got 4}}
  %0 = gdn.combine_maps segments(%h, %p) of(%n, %n)
      : tensor<3x?x128x128xf32>, tensor<4x?x128x128xf32>, tensor<?xi32>, tensor<?xi32>
  return
}

// -----

func.func @c2_counts(%h: tensor<?x?x128x128xf32>, %p: tensor<?x?x128x128xf32>, %first: tensor<2xi32>, %count: tensor<3xi32>) {
  // expected-error @+1 {{'gdn.combine_maps' op expects dim 0 of 'num_segments' to be N = 2, set by dim 0 of 'first_segments', but got 3}}
  %0 = gdn.combine_maps segments(%h, %p) of(%first, %count)
      : tensor<?x?x128x128xf32>, tensor<?x?x128x128xf32>, tensor<2xi32>, tensor<3xi32>
  return
}
