// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The variant "segments" of a prefill entry: three stages, of which the first
// writes what each segment does to the state, the second the states before the
// segments, the third the results of all segments but the first.
//
// RUN: gdn-opt %s -convert-gdn-to-tile='tokens=8 chunk=16 chunk-from=-1 segments=3 segments-from=100' -canonicalize -cse -canonicalize | FileCheck %s
// RUN: gdn-opt %s -convert-gdn-to-tile='tokens=8 chunk=16 chunk-from=-1 segments=2' -canonicalize -cse | FileCheck %s --check-prefix=TWO
// RUN: gdn-opt %s -convert-gdn-to-tile='tokens=8 value-heads segments=3' | FileCheck %s --check-prefix=ONE
// RUN: gdn-opt %s -convert-gdn-to-tile='chunk=2 segments=3' | FileCheck %s --check-prefix=ONE

// The one-pass program knows nothing of it.
// CHECK-LABEL: func.func @prefill(
//   CHECK-NOT:   variant

// CHECK-LABEL: func.func @prefill__maps(
//  CHECK-SAME:   %[[K:[a-z0-9]+]]: memref<?x?x32xbf16, strided<[?, ?, 1], offset: ?>> {gdn.name = "k"}
//  CHECK-SAME:   %[[CONV:[a-z0-9]+]]: memref<?x?x3xbf16, strided<[?, ?, ?], offset: ?>> {gdn.name = "conv_pool"}
//  CHECK-SAME:   %[[POOL:[a-z0-9]+]]: memref<?x?x32x32xbf16, strided<[?, ?, ?, 1], offset: ?>> {gdn.name = "state_pool"}
//  CHECK-SAME:   %[[STATES:[a-z0-9]+]]: memref<?x?x2x32x32xf32>, %[[MAPS:[a-z0-9]+]]: memref<?x?x1x32x32xf32>)
//  CHECK-SAME:   conditions = {{\[\[}}["2", "N", "Hk"], ["workers"]], {{\[}}["100", "N"], ["T"]]]
//  CHECK-SAME:   grid = ["N + 1", "Hk", "2"]
//  CHECK-SAME:   stage_of = "prefill"
//  CHECK-SAME:   variant = "segments"
//  CHECK-SAME:   workspace = {{\[\[}}"N", "Hv", "2", "32", "32", "4"], ["N", "Hv", "1", "32", "32", "4"]]
//   CHECK-DAG:   %[[C0:.+]] = arith.constant 0 : index
//   CHECK-DAG:   %[[SEQUENCE:.+]] = gdn_tile.block_id 0
//   CHECK-DAG:   %[[SEGMENT:.+]] = gdn_tile.block_id 2
//       CHECK:   %[[IS_FIRST:.+]] = arith.cmpi eq, %[[SEGMENT]], %[[C0]]

// A segment has a third of the sequence's chunks, rounded up.
//       CHECK:   scf.if %{{.+}} {
//       CHECK:     %[[LENGTH:.+]] = arith.subi %[[END:.+]], %[[BEGIN:.+]] : index
//       CHECK:     %[[CHUNKS:.+]] = arith.ceildivui %[[LENGTH]], %c16
//       CHECK:     %[[SHARE:.+]] = arith.ceildivui %[[CHUNKS]], %c3
//       CHECK:     %[[TOKENS:.+]] = arith.muli %[[SHARE]], %c16

// The first: an ordinary pass. A sequence that ends with it goes to its pools.
//       CHECK:     scf.if %[[IS_FIRST]] {
//       CHECK:       %[[NEXT:.+]] = arith.addi %[[BEGIN]], %[[TOKENS]]
//       CHECK:       %[[FIRST_END:.+]] = arith.minui %[[NEXT]], %[[END]]
//       CHECK:       %[[IS_LAST:.+]] = arith.cmpi eq, %[[FIRST_END]], %[[END]]
//       CHECK:         gdn_tile.delta_scan
//       CHECK:         scf.if %[[IS_LAST]] {
//       CHECK:           gdn_tile.store %{{.+}}, %[[CONV]]
//       CHECK:           gdn_tile.store %{{.+}}, %[[POOL]]
//       CHECK:         } else {
//       CHECK:           gdn_tile.store %{{.+}}, %[[STATES]][%[[SEQUENCE]], %{{.+}}, %[[C0]], %[[C0]], %[[C0]]] dims [3, 4]

// The others, if one follows them: keys and values, windows from the inputs,
// H from zero and P from one, by the same scores.
//       CHECK:     } else {
//       CHECK:       %[[OWN_END:.+]] = arith.addi %[[OWN_BEGIN:.+]], %[[TOKENS]]
//       CHECK:       %[[GOES_ON:.+]] = arith.cmpi ult, %[[OWN_END]], %[[END]]
//       CHECK:       scf.if %[[GOES_ON]] {
//       CHECK:         %[[BEFORE:.+]] = arith.subi %[[OWN_BEGIN]], %c3
//       CHECK:         gdn_tile.load %[[K]][%[[BEFORE]], %{{.+}}, %[[C0]]] dims [0, 2] : {{.+}}, vector<3x32xbf16>
//       CHECK:         %[[H0:.+]] = gdn_tile.fill
//       CHECK:         %[[P0:.+]] = gdn_tile.map_rows -> vector<32x32xf32>
//       CHECK:         %[[AFTER:.+]]:4 = scf.for %{{.+}} = %[[OWN_BEGIN]] to %[[OWN_END]] step %c16 iter_args(%{{.+}} = %{{.+}}, %{{.+}} = %{{.+}}, %[[H:.+]] = %[[H0]], %[[P:.+]] = %[[P0]])
// CHECK-COUNT-2:           gdn_tile.conv1d
//       CHECK:           gdn_tile.tri_inverse
//       CHECK:           gdn_tile.matmul %{{.+}}, %[[H]]
//   CHECK-NOT:           gdn_tile.tri_inverse
//       CHECK:           gdn_tile.matmul %{{.+}}, %[[P]]
//   CHECK-NOT:           gdn_tile.store
//       CHECK:           scf.yield
//       CHECK:         %[[H_LAST:.+]] = gdn_tile.transpose %[[AFTER]]#2
//       CHECK:         gdn_tile.store %[[H_LAST]], %[[STATES]][%[[SEQUENCE]], %{{.+}}, %[[SEGMENT]], %[[C0]], %[[C0]]]
//       CHECK:         %[[P_LAST:.+]] = gdn_tile.transpose %[[AFTER]]#3
//       CHECK:         gdn_tile.store %[[P_LAST]], %[[MAPS]]

// Skipped sequences and padding get their zeros from the blocks of the first.
//       CHECK:   } else {
//       CHECK:     scf.if %[[IS_FIRST]] {
//       CHECK:       gdn_tile.fill

// CHECK-LABEL: func.func @prefill__scan(
//  CHECK-SAME:   %[[STATES:[a-z0-9]+]]: memref<?x?x2x32x32xf32>, %[[MAPS:[a-z0-9]+]]: memref<?x?x1x32x32xf32>)
//  CHECK-SAME:   grid = ["N", "Hv"]
//       CHECK:     %[[COUNT:.+]] = arith.ceildivui
//       CHECK:     %[[START:.+]] = gdn_tile.load %[[STATES]]
//       CHECK:     %[[LAST:.+]] = arith.subi
//       CHECK:     scf.for %[[S:.+]] = %c1 to %[[LAST]] step %c1 iter_args(%[[STATE:.+]] = %[[START]])
//       CHECK:       %[[H:.+]] = gdn_tile.load %[[STATES]][%{{.+}}, %{{.+}}, %[[S]], {{.+}}
//       CHECK:       %[[P:.+]] = gdn_tile.load %[[MAPS]]
//       CHECK:       %[[NEXT:.+]] = gdn_tile.matmul %[[STATE]], %[[P]] acc(%[[H]] : vector<32x32xf32>)
//       CHECK:       gdn_tile.store %[[NEXT]], %[[STATES]][%{{.+}}, %{{.+}}, %[[S]], {{.+}}
//       CHECK:       scf.yield %[[NEXT]]

// CHECK-LABEL: func.func @prefill__segments(
//  CHECK-SAME:   %[[Q:[a-z0-9]+]]: memref<?x?x32xbf16, strided<[?, ?, 1], offset: ?>> {gdn.name = "q"}
//  CHECK-SAME:   %[[POOL:[a-z0-9]+]]: memref<?x?x32x32xbf16, strided<[?, ?, ?, 1], offset: ?>> {gdn.name = "state_pool"}
//  CHECK-SAME:   %[[STATES:[a-z0-9]+]]: memref<?x?x2x32x32xf32>, %{{[a-z0-9]+}}: memref<?x?x1x32x32xf32>)
//  CHECK-SAME:   grid = ["N", "Hk", "2"]
//       CHECK:     %[[BEFORE:.+]] = arith.subi %{{.+}}, %c3
//       CHECK:     gdn_tile.load %[[Q]][%[[BEFORE]], {{.+}}, vector<3x32xbf16>
//   CHECK-NOT:     gdn_tile.load %[[POOL]]
//       CHECK:     gdn_tile.load %[[STATES]][%{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}] dims [3, 4]
//   CHECK-NOT:     gdn_tile.load %[[POOL]]
//       CHECK:     gdn_tile.delta_scan
//       CHECK:     scf.if
//       CHECK:       gdn_tile.store %{{.+}}, %[[POOL]]

// Of two segments the first leaves what the second starts from: no scan.
// TWO-LABEL: func.func @prefill__maps(
//  TWO-SAME:   workspace = {{\[\[}}"N", "Hv", "1", "32", "32", "4"]]
//   TWO-NOT:   gdn_tile.tri_inverse
//   TWO-NOT: @prefill__scan
//       TWO: func.func @prefill__segments(

// A block per value head has no segments, nor has a chunk shorter than the
// windows of the convolution.
// ONE: func.func @prefill(
// ONE-NOT: variant
func.func @prefill(
    %q: tensor<?x?x32xbf16> {gdn.name = "q", gdn.dims = ["T", "Hk", "32"]},
    %k: tensor<?x?x32xbf16> {gdn.name = "k", gdn.dims = ["T", "Hk", "32"]},
    %v: tensor<?x?x32xbf16> {gdn.name = "v", gdn.dims = ["T", "Hv", "32"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %w: tensor<?x4xbf16> {gdn.name = "conv_weight", gdn.dims = ["64*Hk + 32*Hv", "4"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %cp: !gdn.pool<?x?x3xbf16> {gdn.name = "conv_pool", gdn.dims = ["P", "64*Hk + 32*Hv", "3"]},
    %sp: !gdn.pool<?x?x32x32xbf16> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "32", "32"]})
    -> (tensor<?x?x32xbf16> {gdn.name = "core", gdn.dims = ["T", "Hv", "32"]})
    attributes {gdn.entry} {
  %o = gdn.kernel "prefill" {
    %qc, %kc, %vc = gdn.conv1d %q, %k, %v weight(%w) silu pool(%cp)
        slots(%slots) sequences(%cu)
        : (tensor<?x?x32xbf16>, tensor<?x?x32xbf16>, tensor<?x?x32xbf16>),
          tensor<?x4xbf16>, !gdn.pool<?x?x3xbf16>, tensor<?xi32>, tensor<?xi32>
          -> tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x?x32xf32>
    %core = gdn.delta_rule %qc, %kc, %vc gates(%g, %beta) pool(%sp)
        slots(%slots) sequences(%cu)
        : tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x?x32xf32>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x32x32xbf16>,
          tensor<?xi32>, tensor<?xi32> -> tensor<?x?x32xbf16>
    gdn.yield %core : tensor<?x?x32xbf16>
  } : tensor<?x?x32xbf16>
  return %o : tensor<?x?x32xbf16>
}
