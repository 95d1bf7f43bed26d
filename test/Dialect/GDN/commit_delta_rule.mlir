// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: gdn-opt %s | FileCheck %s
// RUN: gdn-opt %s -mlir-print-op-generic | gdn-opt | FileCheck %s

// CHECK-LABEL: func.func @commit(
//       CHECK:   gdn.commit_delta_rule %{{.+}}[%{{.+}}] accepted(%{{.+}}) pending(%{{.+}}, %{{.+}}, %{{.+}}) : !gdn.pool<?x?x64x128xbf16>, tensor<?xi64> accepted tensor<?xi32> pending !gdn.pool<?x?x4x128xf32>, !gdn.pool<?x?x4x64xf32>, !gdn.pool<?x?x4xf32>
func.func @commit(%pool: !gdn.pool<?x?x64x128xbf16>, %slots: tensor<?xi64>, %accepted: tensor<?xi32>,
    %keys: !gdn.pool<?x?x4x128xf32>, %deltas: !gdn.pool<?x?x4x64xf32>, %decays: !gdn.pool<?x?x4xf32>) {
  gdn.commit_delta_rule %pool[%slots] accepted(%accepted) pending(%keys, %deltas, %decays)
      : !gdn.pool<?x?x64x128xbf16>, tensor<?xi64> accepted tensor<?xi32>
        pending !gdn.pool<?x?x4x128xf32>, !gdn.pool<?x?x4x64xf32>, !gdn.pool<?x?x4xf32>
  return
}

// A decay per channel, and as many tokens as the caller's pools hold.
// CHECK-LABEL: func.func @channels(
//       CHECK:   gdn.commit_delta_rule {{.*}} !gdn.pool<?x?x?x128xf32>
func.func @channels(%pool: !gdn.pool<?x?x64x128xf32>, %slots: tensor<?xi32>, %accepted: tensor<?xi32>,
    %keys: !gdn.pool<?x?x?x128xf32>, %deltas: !gdn.pool<?x?x?x64xf32>, %decays: !gdn.pool<?x?x?x128xf32>) {
  gdn.commit_delta_rule %pool[%slots] accepted(%accepted) pending(%keys, %deltas, %decays)
      : !gdn.pool<?x?x64x128xf32>, tensor<?xi32> accepted tensor<?xi32>
        pending !gdn.pool<?x?x?x128xf32>, !gdn.pool<?x?x?x64xf32>, !gdn.pool<?x?x?x128xf32>
  return
}

// States in planes.
// CHECK-LABEL: func.func @planes(
//       CHECK:   gdn.commit_delta_rule {{.*}} counts(%{{.+}}) scales(%{{.+}}) low(%{{.+}}) : !gdn.pool<?x?x64x128xi8>, {{.*}} scales !gdn.pool<?x?x64xf32> low !gdn.pool<?x?x64x128xi8>
func.func @planes(%pool: !gdn.pool<?x?x64x128xi8>, %slots: tensor<?xi32>, %keys: !gdn.pool<?x?x16x128xf32>,
    %deltas: !gdn.pool<?x?x16x64xf32>, %decays: !gdn.pool<?x?x16xf32>, %counts: !gdn.pool<?x?xi32>,
    %scales: !gdn.pool<?x?x64xf32>, %low: !gdn.pool<?x?x64x128xi8>) {
  gdn.commit_delta_rule %pool[%slots] pending(%keys, %deltas, %decays) counts(%counts) scales(%scales) low(%low)
      : !gdn.pool<?x?x64x128xi8>, tensor<?xi32> pending !gdn.pool<?x?x16x128xf32>, !gdn.pool<?x?x16x64xf32>,
        !gdn.pool<?x?x16xf32> counts !gdn.pool<?x?xi32> scales !gdn.pool<?x?x64xf32> low !gdn.pool<?x?x64x128xi8>
  return
}
