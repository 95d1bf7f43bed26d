// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.apply_maps: one case per way to break a constraint that the verifier owns.
//
// RUN: gdn-opt %s -split-input-file -verify-diagnostics

func.func @c1_slots(%pool: !gdn.pool<?x?x24x16xf32>, %slots: tensor<?xi32>, %to: tensor<2xi32>, %maps: tensor<?x?x?x40x16xf32>, %rank: tensor<1xi32>, %h: tensor<?x?x24x16xf32>, %p: tensor<?x?x16x16xf32>, %first: tensor<3xi32>, %count: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.apply_maps' op expects dim 0 of 'write_slots' to be N = 3, set by dim 0 of 'first_segments', but got 2}}
  %0 = gdn.apply_maps %pool[%slots to %to] ranks(%maps, %rank) segments(%h, %p) of(%first, %count)
      : !gdn.pool<?x?x24x16xf32>, tensor<?xi32>, tensor<2xi32>, tensor<?x?x?x40x16xf32>, tensor<1xi32>, tensor<?x?x24x16xf32>, tensor<?x?x16x16xf32>, tensor<3xi32>, tensor<?xi32>
  return
}

// -----

func.func @c2_pool(%pool: !gdn.pool<?x?x16x16xf32>, %slots: tensor<?xi32>, %to: tensor<?xi32>, %maps: tensor<?x?x?x40x16xf32>, %rank: tensor<1xi32>, %h: tensor<?x?x24x16xf32>, %p: tensor<?x?x16x16xf32>, %first: tensor<?xi32>, %count: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.apply_maps' op expects dim 2 of 'pool' to be dv = 24, set by dim 2 of 'constant', but got 16}}
  %0 = gdn.apply_maps %pool[%slots to %to] ranks(%maps, %rank) segments(%h, %p) of(%first, %count)
      : !gdn.pool<?x?x16x16xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?x?x?x40x16xf32>, tensor<1xi32>, tensor<?x?x24x16xf32>, tensor<?x?x16x16xf32>, tensor<?xi32>, tensor<?xi32>
  return
}

// -----

func.func @c2_elements(%pool: !gdn.pool<?x?x24x16xi8>, %slots: tensor<?xi32>, %to: tensor<?xi32>, %maps: tensor<?x?x?x40x16xf32>, %rank: tensor<1xi32>, %h: tensor<?x?x24x16xf32>, %p: tensor<?x?x16x16xf32>, %first: tensor<?xi32>, %count: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.apply_maps' op expects the elements of 'pool' to be floats, but got 'i8'}}
  %0 = gdn.apply_maps %pool[%slots to %to] ranks(%maps, %rank) segments(%h, %p) of(%first, %count)
      : !gdn.pool<?x?x24x16xi8>, tensor<?xi32>, tensor<?xi32>, tensor<?x?x?x40x16xf32>, tensor<1xi32>, tensor<?x?x24x16xf32>, tensor<?x?x16x16xf32>, tensor<?xi32>, tensor<?xi32>
  return
}

// -----

func.func @c2_maps(%pool: !gdn.pool<?x?x24x16xf32>, %slots: tensor<?xi32>, %to: tensor<?xi32>, %maps: tensor<?x?x?x32x16xf32>, %rank: tensor<1xi32>, %h: tensor<?x?x24x16xf32>, %p: tensor<?x?x16x16xf32>, %first: tensor<?xi32>, %count: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.apply_maps' op expects dim 3 of 'maps' to be dv + 16 = 40, dv set by dim 2 of 'constant', but got 32}}
  %0 = gdn.apply_maps %pool[%slots to %to] ranks(%maps, %rank) segments(%h, %p) of(%first, %count)
      : !gdn.pool<?x?x24x16xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?x?x?x32x16xf32>, tensor<1xi32>, tensor<?x?x24x16xf32>, tensor<?x?x16x16xf32>, tensor<?xi32>, tensor<?xi32>
  return
}

// -----

func.func @c3_rank(%pool: !gdn.pool<?x?x24x16xf32>, %slots: tensor<?xi32>, %to: tensor<?xi32>, %maps: tensor<?x?x?x40x16xf32>, %rank: tensor<2xi32>, %h: tensor<?x?x24x16xf32>, %p: tensor<?x?x16x16xf32>, %first: tensor<?xi32>, %count: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.apply_maps' op expects 'rank' to have one element, but got 2}}
  %0 = gdn.apply_maps %pool[%slots to %to] ranks(%maps, %rank) segments(%h, %p) of(%first, %count)
      : !gdn.pool<?x?x24x16xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?x?x?x40x16xf32>, tensor<2xi32>, tensor<?x?x24x16xf32>, tensor<?x?x16x16xf32>, tensor<?xi32>, tensor<?xi32>
  return
}
