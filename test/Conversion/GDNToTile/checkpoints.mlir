// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// States inside sequences: the tokens of a sequence in pieces that end at its checkpoints,
// in both forms of the recurrence. An entry without them has no such loop.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile -canonicalize -cse | FileCheck %s
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="chunk-from=1 chunk=128" -canonicalize -cse | FileCheck %s --check-prefix=CHUNK
// RUN: gdn-opt %S/prefill.mlir -gdn-fuse -convert-gdn-to-tile -canonicalize -cse | FileCheck %s --check-prefix=NONE

// CHECK-LABEL: func.func @prefill(
//  CHECK-SAME:   %[[CONVS:[a-z0-9]+]]: memref<?x?x3xf16, {{[^{]+}} {gdn.name = "conv_pool"}
//  CHECK-SAME:   %[[STATES:[a-z0-9]+]]: memref<?x?x64x16xbf16, {{[^{]+}} {gdn.name = "state_pool"}
//  CHECK-SAME:   %[[BOUNDS:[a-z0-9]+]]: memref<?xi32, strided<[1], offset: ?>> {gdn.name = "cu_checkpoints"}
//  CHECK-SAME:   %[[TOKENS:[a-z0-9]+]]: memref<?xi32, strided<[1], offset: ?>> {gdn.name = "checkpoint_tokens"}
//  CHECK-SAME:   %[[SLOTS:[a-z0-9]+]]: memref<?xi64, strided<[1], offset: ?>> {gdn.name = "checkpoint_slots"}
// The sequence's checkpoints, clamped to those there are.
//       CHECK:   %[[N:.+]] = gdn_tile.block_id 0
//       CHECK:   %[[COUNT:.+]] = memref.dim %[[TOKENS]]
//       CHECK:   memref.load %[[BOUNDS]][%[[N]]]
//       CHECK:   arith.minsi %{{.+}}, %[[COUNT]]
//       CHECK:   %[[FIRST:.+]] = arith.maxsi %{{.+}}, %c0
//       CHECK:   memref.load %[[BOUNDS]]
//       CHECK:   %[[HIGH:.+]] = arith.minsi %{{.+}}, %[[COUNT]]
//       CHECK:   %[[END:.+]] = arith.maxsi %[[HIGH]], %[[FIRST]]
// One turn for each, and one for the rest of the sequence.
//       CHECK:   scf.for %[[R:.+]] = %c0
//       CHECK:     %[[TURNS:.+]] = arith.addi %[[END]], %c1
//       CHECK:     %[[LAST:.+]]:{{[0-9]}} = scf.for %[[C:.+]] = %[[FIRST]] to %[[TURNS]] step %c1 iter_args({{.*}}%[[DONE:[a-z0-9]+]] = %[[BEGIN:[a-z0-9_#]+]])
//       CHECK:       %[[IS:.+]] = arith.cmpi slt, %[[C]], %[[END]]
//       CHECK:       %[[STOP:.+]]:2 = scf.if %[[IS]] -> (index, index) {
//       CHECK:         memref.load %[[TOKENS]][%[[C]]]
//       CHECK:         %[[AFTER:.+]] = arith.index_cast
//       CHECK:         %[[REST:.+]] = arith.andi %[[AFTER]], %c63
//       CHECK:         arith.cmpi eq, %[[REST]], %c0
//       CHECK:         arith.cmpi sgt, %[[AFTER]],
//       CHECK:         arith.cmpi sle, %[[AFTER]],
//       CHECK:         memref.load %[[SLOTS]][%[[C]]]
//       CHECK:         scf.yield
//       CHECK:       } else {
//       CHECK:         scf.yield %{{.+}}, %c-1
// Blocks of 16 tokens up to there.
//       CHECK:       %[[T:.+]]:{{[0-9]}} = scf.for %{{.+}} = %[[DONE]] to %[[STOP]]#0 step %c16
//       CHECK:         gdn_tile.delta_scan
// Windows of q and k once per key head, v and the state for each value head;
// rounded as they go to the pool, and carried on in f32.
//       CHECK:       %[[IS0:.+]] = arith.cmpi eq, %[[R]], %c0
//       CHECK:       scf.if
//       CHECK:         gdn_tile.store %{{.+}}, %[[CONVS]][%[[STOP]]#1,
//       CHECK:       scf.if
//       CHECK:         gdn_tile.store %{{.+}}, %[[CONVS]][%[[STOP]]#1,
//       CHECK:       scf.if
//       CHECK:         gdn_tile.store %{{.+}}, %[[CONVS]][%[[STOP]]#1,
//       CHECK:       scf.if
//       CHECK:         %[[ROUNDED:.+]] = gdn_tile.map_rows %[[T]]#{{[0-9]}} : vector<64x16xf32> -> vector<64x16xbf16>
//       CHECK:         gdn_tile.store %[[ROUNDED]], %[[STATES]][%[[STOP]]#1,
//       CHECK:       scf.yield {{.*}}, %[[STOP]]#0

// Chunks of 128 start anew at a checkpoint; the state is stored as the pool has
// it.
// CHUNK-LABEL: func.func @prefill(
//       CHUNK:   %[[STOP:.+]]:2 = scf.if
//       CHUNK:   %[[T:.+]]:{{[0-9]}} = scf.for %{{.+}} to %[[STOP]]#0 step %c128
//       CHUNK:     gdn_tile.tri_inverse
//       CHUNK:   %[[M:.+]] = gdn_tile.transpose %[[T]]#{{[0-9]}} : vector<16x64xf32> -> vector<64x16xf32>
//       CHUNK:   gdn_tile.map_rows %[[M]]
//       CHUNK:   gdn_tile.store %{{.+}}[%[[STOP]]#1,

// Without checkpoints a sequence's tokens are one loop.
// NONE-NOT: arith.constant 63
//     NONE: %{{.+}}:4 = scf.for {{.*}} step %c16
// NONE-NOT: arith.cmpi sle
func.func @prefill(
    %q: tensor<?x?x16xf16> {gdn.name = "q", gdn.dims = ["T", "Hk", "16"]},
    %k: tensor<?x?x16xf16> {gdn.name = "k", gdn.dims = ["T", "Hk", "16"]},
    %v: tensor<?x?x64xf16> {gdn.name = "v", gdn.dims = ["T", "Hv", "64"]},
    %w: tensor<?x4xf16> {gdn.name = "conv_weight", gdn.dims = ["32*Hk + 64*Hv", "4"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %cp: !gdn.pool<?x?x3xf16> {gdn.name = "conv_pool", gdn.dims = ["P", "32*Hk + 64*Hv", "3"]},
    %pool: !gdn.pool<?x?x64x16xbf16> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "16"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %cc: tensor<?xi32> {gdn.name = "cu_checkpoints", gdn.dims = ["N + 1"]},
    %ct: tensor<?xi32> {gdn.name = "checkpoint_tokens", gdn.dims = ["C"]},
    %cs: tensor<?xi64> {gdn.name = "checkpoint_slots", gdn.dims = ["C"]})
    -> (tensor<?x?x64xf32> {gdn.name = "core", gdn.dims = ["T", "Hv", "64"]})
    attributes {gdn.entry} {
  %c:3 = gdn.conv1d %q, %k, %v weight(%w) silu pool(%cp) slots(%slots) sequences(%cu)
      checkpoints(%cc, %ct, %cs)
      : (tensor<?x?x16xf16>, tensor<?x?x16xf16>, tensor<?x?x64xf16>), tensor<?x4xf16>,
        !gdn.pool<?x?x3xf16>, tensor<?xi32>, tensor<?xi32>
        checkpoints tensor<?xi32>, tensor<?xi32>, tensor<?xi64>
        -> tensor<?x?x16xf32>, tensor<?x?x16xf32>, tensor<?x?x64xf32>
  %o = gdn.delta_rule %c#0, %c#1, %c#2 gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      checkpoints(%cc, %ct, %cs)
      : tensor<?x?x16xf32>, tensor<?x?x16xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>,
        tensor<?x?xf32>, !gdn.pool<?x?x64x16xbf16>, tensor<?xi32>, tensor<?xi32>
        checkpoints tensor<?xi32>, tensor<?xi32>, tensor<?xi64>
        -> tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}
