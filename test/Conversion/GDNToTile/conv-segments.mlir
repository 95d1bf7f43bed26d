// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A ragged convolution without a rule has a variant for GPUs: blocks share a sequence, as many as the option `segments` says. A segment begins
// with the pool's window if it is the first, and else with the sequence's own inputs, if it has any
// tokens. The block that comes last of all writes the window, from the sequence's last tokens.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="value-heads segments=16 segments-from=256" -canonicalize -cse | FileCheck %s
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="value-heads segments=4 segments-from=96" -canonicalize -cse | FileCheck %s --check-prefix=FOUR
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile=value-heads -canonicalize -cse | FileCheck %s --check-prefix=WHOLE
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="segments=16" -canonicalize -cse | FileCheck %s --check-prefix=WHOLE
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="value-heads segments=16 tokens=2" -canonicalize -cse | FileCheck %s --check-prefix=WHOLE

// WHOLE-NOT: segments
//     WHOLE: func.func @conv(
// WHOLE-NOT: segments

// FOUR: conditions = {{\[\[}}["96", "N"], ["T"]]], grid = ["N + 1", "H", "4"],
// FOUR: gdn_tile.last_in_group %{{.+}} of %c4

// CHECK-LABEL: func.func @conv(
//  CHECK-SAME:   grid = ["N + 1", "H"], symbols
// CHECK-LABEL: func.func @conv__segments(
//  CHECK-SAME:   %[[X:[a-z0-9]+]]: memref<?x?x64xbf16, {{.+}}> {gdn.name = "x"}
//  CHECK-SAME:   conditions = {{\[\[}}["256", "N"], ["T"]]], grid = ["N + 1", "H", "16"], groups = ["1", "N + 1", "H"], stage_of = "conv", {{.+}} variant = "segments"
//       CHECK:   %[[SEGMENT:.+]] = gdn_tile.block_id 2
//       CHECK:   %[[SHARE:.+]] = arith.muli %{{.+}}, %c16
//       CHECK:   %[[OFFSET:.+]] = arith.muli %[[SEGMENT]], %[[SHARE]]
//       CHECK:   %[[BEGIN:.+]] = arith.minui
//       CHECK:   %[[END:.+]] = arith.minui
//       CHECK:   %[[LEAD:.+]] = arith.select
//       CHECK:   scf.if
//   CHECK-DAG:     %[[FIRST:.+]] = arith.cmpi eq, %[[BEGIN]], %[[START:.+]] : index
//   CHECK-DAG:     %[[EMPTY:.+]] = arith.cmpi eq, %[[BEGIN]], %[[END]]
//       CHECK:     %[[NONE:.+]] = arith.select %[[EMPTY]], %c0, %c3
//       CHECK:     %[[OWN:.+]] = arith.select %[[FIRST]], %c0, %[[NONE]]
//       CHECK:     gdn_tile.load %{{.+}} dims [2, 1] rows(%{{.+}}) : {{.+}} vector<3x64xbf16>
//       CHECK:     gdn_tile.load %{{.+}} dims [0, 3] rows(%[[OWN]]) : {{.+}} vector<3x64xbf16>
//       CHECK:     scf.for %{{.+}} = %[[BEGIN]] to %[[END]] step %c16
//       CHECK:     %[[LAST:.+]] = gdn_tile.last_in_group %{{.+}} of %c16
//       CHECK:     scf.if %[[LAST]] {
//       CHECK:       %[[COUNT:.+]] = arith.minui %{{.+}}, %c16
//       CHECK:       gdn_tile.load %{{.+}} dims [0, 3] rows(%[[COUNT]]) : {{.+}} vector<16x64xbf16>
//       CHECK:       %{{.+}}, %[[WINDOW:.+]] = gdn_tile.conv1d %{{.+}} valid(%[[COUNT]])
//       CHECK:       gdn_tile.store
func.func @conv(%H: index {gdn.name = "H"},
    %x: tensor<?x?x64xbf16> {gdn.name = "x", gdn.dims = ["T", "H", "64"]},
    %w: tensor<?x4xbf16> {gdn.name = "w", gdn.dims = ["64*H", "4"]},
    %cu: tensor<?xi32> {gdn.name = "cu", gdn.dims = ["N + 1"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %pool: !gdn.pool<?x?x3xbf16> {gdn.name = "pool", gdn.dims = ["P", "64*H", "3"]})
    -> (tensor<?x?x64xbf16> {gdn.name = "y", gdn.dims = ["T", "H", "64"]})
    attributes {gdn.entry} {
  %y = gdn.conv1d %x weight(%w) silu pool(%pool) slots(%slots) sequences(%cu)
      : (tensor<?x?x64xbf16>), tensor<?x4xbf16>, !gdn.pool<?x?x3xbf16>, tensor<?xi32>, tensor<?xi32>
        -> tensor<?x?x64xbf16>
  return %y : tensor<?x?x64xbf16>
}
