// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// States after tokens in a pool of their own: it says which slots are live, and
// the sequence's own pool is read and never written.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func.func @verify(
//  CHECK-SAME:   %[[STATES:[a-z0-9]+]]: memref<?x?x64x16xf32, {{[^{]+}} {gdn.name = "state_pool"}
//  CHECK-SAME:   %[[BUFFER:[a-z0-9]+]]: memref<?x?x64x16xf32, {{[^{]+}} {gdn.name = "token_state_pool"}
//  CHECK-SAME:   %[[NULL:[a-z0-9]+]]: index {gdn.name = "token_state_pool_null_slot"}
//       CHECK:   gdn_tile.load %[[STATES]]
//       CHECK:   scf.for {{.*}} step %c1
//       CHECK:     %[[NEXT:.+]], %{{.+}} = gdn_tile.delta_scan
//       CHECK:     memref.dim %[[BUFFER]], %c0
//       CHECK:     arith.cmpi ne, %{{.+}}, %[[NULL]]
//       CHECK:     gdn_tile.store %[[NEXT]], %[[BUFFER]]
//   CHECK-NOT:   gdn_tile.store %{{.+}}, %[[STATES]]
func.func @verify(
    %q: tensor<?x?x16xf32> {gdn.name = "q", gdn.dims = ["T", "H", "16"]},
    %v: tensor<?x?x64xf32> {gdn.name = "v", gdn.dims = ["T", "H", "64"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "H"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %table: tensor<?x?xi32> {gdn.name = "token_slots", gdn.dims = ["N", "S"]},
    %pool: !gdn.pool<?x?x64x16xf32> {gdn.name = "state_pool", gdn.dims = ["P", "H", "64", "16"]},
    %buffer: !gdn.pool<?x?x64x16xf32> {gdn.name = "token_state_pool", gdn.dims = ["B", "H", "64", "16"]})
    -> (tensor<?x?x64xf32> {gdn.name = "core", gdn.dims = ["T", "H", "64"]})
    attributes {gdn.entry} {
  %o = gdn.delta_rule %q, %q, %v gates(%g, %g) pool(%pool) slots(%slots) sequences(%cu)
      token_slots(%table) token_pool(%buffer)
      : tensor<?x?x16xf32>, tensor<?x?x16xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>,
        tensor<?x?xf32>, !gdn.pool<?x?x64x16xf32>, tensor<?xi32>, tensor<?xi32>
        token_slots tensor<?x?xi32> token_pool !gdn.pool<?x?x64x16xf32> -> tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}
