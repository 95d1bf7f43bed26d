// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// States that lie as [dk, dv] (gdn.contiguous = 2): the dimensions of the pool and of its tiles are
// those of other states, and the stride of the values is the one that is known. Slots are copied in
// pieces whose rows lie side by side: some keys of all values.
//
// RUN: gdn-opt %s -convert-gdn-to-tile -canonicalize -cse | FileCheck %s
// RUN: gdn-opt %s -convert-gdn-to-tile | gdn-tile-opt -o /dev/null

// CHECK-LABEL: func.func @decode(
//  CHECK-SAME:   %[[POOL:[a-z0-9]+]]: memref<?x?x64x32xf32, strided<[?, ?, 1, ?], offset: ?>> {gdn.name = "state_pool"}
//       CHECK:   gdn_tile.load %[[POOL]][{{.+}}] dims [2, 3] : {{.+}} vector<64x32xf32>
//       CHECK:   gdn_tile.store %{{.+}}, %[[POOL]][{{.+}}] dims [2, 3] : vector<64x32xf32>
func.func @decode(
    %q: tensor<?x?x32xf32> {gdn.name = "q", gdn.dims = ["N", "Hk", "32"]},
    %k: tensor<?x?x32xf32> {gdn.name = "k", gdn.dims = ["N", "Hk", "32"]},
    %v: tensor<?x?x64xf32> {gdn.name = "v", gdn.dims = ["N", "Hv", "64"]},
    %g: tensor<?x?xf32> {gdn.name = "log_decay", gdn.dims = ["N", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["N", "Hv"]},
    %pool: !gdn.pool<?x?x64x32xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "32"], gdn.contiguous = 2 : i64},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]})
    -> (tensor<?x?x64xf32> {gdn.name = "core", gdn.dims = ["N", "Hv", "64"]})
    attributes {gdn.entry} {
  %o = gdn.kernel "decode" {
    %y = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots)
        : tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>,
          tensor<?x?xf32>, !gdn.pool<?x?x64x32xf32>, tensor<?xi32> -> tensor<?x?x64xf32>
    gdn.yield %y : tensor<?x?x64xf32>
  } : tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}

// 64 keys of 128 values of f16 are 16 KiB.
// CHECK-LABEL: func.func @copy(
//  CHECK-SAME:     %[[POOL:[a-z0-9]+]]: memref<?x?x128x256xf16, strided<[?, ?, 1, ?], offset: ?>>
//  CHECK-SAME:     grid = ["N", "Hv", "4"]
//       CHECK:   %[[KEY:.+]] = arith.muli %{{.+}}, %c64
//       CHECK:   %[[PIECE:.+]] = gdn_tile.load %[[POOL]][%{{.+}}, %{{.+}}, %c0, %[[KEY]]] dims [3, 2] : {{.+}}vector<64x128xf16>
//  CHECK-NEXT:   gdn_tile.store %[[PIECE]], %[[POOL]][%{{.+}}, %{{.+}}, %c0, %[[KEY]]] dims [3, 2]
func.func @copy(
    %from: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %to: tensor<?xi32> {gdn.name = "write_slots", gdn.dims = ["N"]},
    %pool: !gdn.pool<?x?x128x256xf16> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "128", "256"], gdn.contiguous = 2 : i64})
    attributes {gdn.entry} {
  gdn.kernel "copy" {
    gdn.pool_copy %pool[%from] to %pool[%to]
        : !gdn.pool<?x?x128x256xf16>, tensor<?xi32> to !gdn.pool<?x?x128x256xf16>, tensor<?xi32>
    gdn.yield
  }
  return
}
