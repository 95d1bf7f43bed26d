// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// States after every token of sequences that have a bound: longer ones are skipped, and the
// loop over tokens ends at the bound, for schedules to see.
//
// A bound that no sequence reaches is one that can be added to the first token.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile -canonicalize -cse | FileCheck %s
// RUN: sed 's/max_tokens(6)/max_tokens(9223372036854775807)/' %s \
// RUN:   | gdn-opt -gdn-fuse -convert-gdn-to-tile -canonicalize -cse | FileCheck %s --check-prefix=LARGE

// LARGE-LABEL: func.func @verify(
//       LARGE:   arith.addi %{{.+}}, %c281474976710656 : index

// CHECK-LABEL: func.func @verify(
//       CHECK:   %[[LONG:.+]] = arith.cmpi sgt, %{{.+}}, %c6
//       CHECK:   %[[SLOT:.+]] = arith.select %[[LONG]], %c-1, %{{.+}} : index
//       CHECK:   arith.cmpi ult, %[[SLOT]],
//       CHECK:   %[[MOST:.+]] = arith.addi %[[BEGIN:.+]], %c6 : index
//       CHECK:   %[[LAST:.+]] = arith.minsi %{{.+}}, %[[MOST]] : index
//       CHECK:   scf.for %{{.+}} = %[[BEGIN]] to %[[LAST]] step %c1 iter_args(
func.func @verify(
    %q: tensor<?x?x16xf32> {gdn.name = "q", gdn.dims = ["T", "H", "16"]},
    %k: tensor<?x?x16xf32> {gdn.name = "k", gdn.dims = ["T", "H", "16"]},
    %v: tensor<?x?x64xf32> {gdn.name = "v", gdn.dims = ["T", "H", "64"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "H"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "H"]},
    %pool: !gdn.pool<?x?x64x16xf32> {gdn.name = "state_pool", gdn.dims = ["P", "H", "64", "16"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %table: tensor<?x?xi32> {gdn.name = "token_slots", gdn.dims = ["N", "S"]},
    %accepted: tensor<?xi32> {gdn.name = "num_accepted", gdn.dims = ["N"]})
    -> (tensor<?x?x64xf32> {gdn.name = "core", gdn.dims = ["T", "H", "64"]})
    attributes {gdn.entry} {
  %slots = gdn.accepted_slots %table[%accepted] sequences(%cu) max_tokens(6)
      : tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?xi32>
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      token_slots(%table)
      : tensor<?x?x16xf32>, tensor<?x?x16xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>,
        tensor<?x?xf32>, !gdn.pool<?x?x64x16xf32>, tensor<?xi32>, tensor<?xi32>
        token_slots tensor<?x?xi32> -> tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}
