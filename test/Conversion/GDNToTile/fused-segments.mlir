// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Segments of sequences whose blocks prepare their chunks themselves. First segments are computed
// beside the maps of the others, by halves of the values; four segments are for more heads,
// have whole states, and the first ones among the others.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=fused-segments-9:fused=2;v-split=2;segments=9;scan=1344;when=16*heads<=workers&sequences<=2&4608<=tokens,fused-segments-4:fused=2;segments=4;when=5*heads<=workers&sequences<=2&3072<=tokens&workers<=8*heads,staged: value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse | FileCheck %s
// RUN: not gdn-opt %s -gdn-fuse -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=fused-segments-2:fused=2;segments=2" 2>&1 | FileCheck %s --check-prefix=LEAST

// LEAST: expects the option 'variants' to hold variants of prefill, but of 'fused-segments-2:fused=2;segments=2': expected at least 3 segments of a fused variant, got 2

// CHECK-LABEL: func.func @prefill__maps_fused_segments_9(
//  CHECK-SAME:   bits = "fused-segments-9"
//  CHECK-SAME:   conditions = {{\[\[}}["16", "Hv"], ["workers"]], {{\[}}["N"], ["2"]], {{\[}}["4608"], ["T"]]]
// As many as there can be, of all sequences.
//  CHECK-SAME:   grid = ["7", "Hv", "2"]
//  CHECK-SAME:   overlaps = "next"
//  CHECK-SAME:   workspace = {{\[\[}}"N + 9", "Hv", "128", "128", "4"], ["N + 9", "Hv", "128", "128", "2"]]
// Of two sequences the longer one has as many tokens less in its first segment as the other has, or
// one segment less; or both are whole, or are cut evenly.
//       CHECK:   %[[LENGTH:.+]] = arith.muli %{{.+}}, %c64
//       CHECK:   %[[PAIR:.+]] = arith.cmpi eq, %{{.+}}, %c2
//       CHECK:   %[[CUT:.+]]:3 = scf.if %[[PAIR]] -> (index, index, index) {
//       CHECK:     %[[SECOND:.+]] = arith.cmpi ugt, %[[B:.+]], %[[A:.+]] :
//       CHECK:     %[[LONGER:.+]] = arith.select %[[SECOND]], %[[B]], %[[A]]
//       CHECK:     %[[SHORTER:.+]] = arith.select %[[SECOND]], %[[A]], %[[B]]
// As far as to the slots of the next sequence.
//       CHECK:     %[[ROOM:.+]] = arith.subi %[[LENGTH]], %{{.+}}
//       CHECK:     %[[MOST:.+]] = arith.minui %[[SHORTER]], %[[ROOM]]
//       CHECK:     %[[PAST:.+]] = arith.remui %[[MOST]], %c64
//       CHECK:     %[[SHIFT:.+]] = arith.subi %[[MOST]], %[[PAST]]
//       CHECK:     %[[SHORT:.+]] = arith.cmpi ult, %[[SHORTER]], %[[LENGTH]]
//       CHECK:     %[[COST:.+]] = arith.addi %{{.+}}, %c1344
//       CHECK:     %[[WHOLE:.+]] = arith.cmpi ule, %[[LONGER]], %[[COST]]
//       CHECK:     %[[FEWER:.+]] = arith.ceildivui %[[LONGER]], %c512
//       CHECK:     %[[LITTLE:.+]] = arith.cmpi ule,
// Neither has more segments than of that length. Ahead of both there are no tokens.
//       CHECK:     %[[AHEAD:.+]] = arith.cmpi eq, %{{.+}}, %c0 :
//       CHECK:     %[[MOST_L:.+]] = arith.maxui %{{.+}}, %c1 :
//       CHECK:     %[[OF_L:.+]] = arith.muli %[[MOST_L]], %c64
//       CHECK:     %[[MOST_S:.+]] = arith.maxui %{{.+}}, %c1 :
//       CHECK:     %[[OF_S:.+]] = arith.muli %[[MOST_S]], %c64
//       CHECK:     %[[CHUNKS:.+]] = arith.maxui
//       CHECK:     %[[EVEN:.+]] = arith.muli %[[CHUNKS]], %c64
//       CHECK:     %[[BOTH:.+]] = arith.select %[[AHEAD]], %[[EVEN]], %[[LENGTH]]
//       CHECK:     arith.select %[[SHORT]], %{{.+}}, %[[BOTH]]
//       CHECK:     scf.yield
//       CHECK:     scf.yield %[[LENGTH]], %c0, %c0
// Past the sequences with fewer segments than two: its number counts from 1.
//       CHECK:   %[[FOUND:.+]]:3 = scf.for %[[N:.+]] = %c0 to %{{.+}} step %c1 iter_args(%[[AT:.+]] = %c0, %[[REST:.+]] = %{{.+}}, %{{.+}} = %{{.+}})
//       CHECK:     %[[RAISED:.+]] = arith.maxui %{{.+}}, %c2
//       CHECK:     %[[OWN:.+]] = arith.subi %[[RAISED]], %c2
//       CHECK:     arith.cmpi eq, %[[AT]], %[[N]]
//       CHECK:     arith.cmpi uge, %[[REST]], %[[OWN]]
//       CHECK:   arith.addi %[[FOUND]]#1, %c1
// From nothing or the identity, never from the pool; and no outputs.
//   CHECK-NOT:   gdn_tile.load
//       CHECK:   gdn_tile.map_rows
//   CHECK-NOT:   gdn_tile.load
//       CHECK:   scf.for {{.*}} -> (vector<128x128xf32>)
//       CHECK:     gdn_tile.tri_inverse
//   CHECK-NOT:     gdn_tile.store
//       CHECK:     scf.yield
// CHECK-LABEL: func.func @prefill__first_fused_segments_9(
//  CHECK-SAME:   grid = ["N + 1", "Hv", "2"]
//  CHECK-SAME:   overlaps = "last"
//       CHECK:   scf.for {{.*}} -> (vector<64x128xf32>)
//       CHECK:     gdn_tile.tri_inverse
//       CHECK:     gdn_tile.store
//       CHECK:     scf.yield
// CHECK-LABEL: func.func @prefill__scan_fused_segments_9(
//   CHECK-NOT:   overlaps
// CHECK-LABEL: func.func @prefill__inter_chunk_fused_segments_9(
//   CHECK-NOT:   overlaps
//  CHECK-SAME:   grid = ["8", "Hv", "2"]
//       CHECK:   arith.maxui %{{.+}}, %c1
//       CHECK:   scf.for {{.*}} -> (vector<64x128xf32>)

// CHECK-LABEL: func.func @prefill__maps_fused_segments_4(
//   CHECK-NOT:   overlaps
//  CHECK-SAME:   conditions = {{\[\[}}["5", "Hv"], ["workers"]], {{\[}}["N"], ["2"]], {{\[}}["3072"], ["T"]], {{\[}}["workers"], ["8", "Hv"]], {{\[}}["1"], ["N"]]]
//  CHECK-SAME:   grid = ["N + 4", "Hv", "2"]
//   CHECK-NOT: func.func @prefill__first_fused_segments_4(
// All maps of a sequence at once, and what a segment adds a product ahead.
// CHECK-LABEL: func.func @prefill__scan_fused_segments_4(
//   CHECK-NOT:   scf.for
//       CHECK:   %[[P1:.+]] = gdn_tile.load {{.+}} rows(%{{.+}}) : {{.+}}, vector<128x128xf16>
//       CHECK:   %[[P2:.+]] = gdn_tile.load {{.+}} rows(%{{.+}}) : {{.+}}, vector<128x128xf16>
//       CHECK:   %[[M1:.+]] = gdn_tile.load {{.+}}, vector<64x128xf32>
//       CHECK:   %[[H1:.+]] = gdn_tile.load {{.+}} rows(%{{.+}}) : {{.+}}, vector<64x128xf32>
//       CHECK:   %[[H2:.+]] = gdn_tile.load {{.+}} rows(%{{.+}}) : {{.+}}, vector<64x128xf32>
//       CHECK:   %[[M2:.+]] = gdn_tile.matmul %{{.+}}, %[[P1]] acc(%[[H1]] :
//       CHECK:   gdn_tile.store %[[M2]], {{.+}} rows(%{{.+}})
//       CHECK:   %[[M3:.+]] = gdn_tile.matmul %{{.+}}, %[[P2]] acc(%[[H2]] :
//       CHECK:   gdn_tile.store %[[M3]], {{.+}} rows(%{{.+}})
//   CHECK-NOT:   gdn_tile.matmul
// CHECK-LABEL: func.func @prefill__inter_chunk_fused_segments_4(
//  CHECK-SAME:   grid = ["N + 5", "Hv"]
//       CHECK:   scf.for {{.*}} -> (vector<128x128xf32>)
func.func @prefill(
    %q: tensor<?x?x128xbf16> {gdn.name = "q", gdn.dims = ["T", "Hk", "128"]},
    %k: tensor<?x?x128xbf16> {gdn.name = "k", gdn.dims = ["T", "Hk", "128"]},
    %v: tensor<?x?x128xbf16> {gdn.name = "v", gdn.dims = ["T", "Hv", "128"]},
    %g: tensor<?x?xf32> {gdn.name = "log_decay", gdn.dims = ["T", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %pool: !gdn.pool<?x?x128x128xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "128", "128"]})
    -> (tensor<?x?x128xbf16> {gdn.name = "core", gdn.dims = ["T", "Hv", "128"]})
    attributes {gdn.entry} {
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?xf32>,
        tensor<?x?xf32>, !gdn.pool<?x?x128x128xf32>, tensor<?xi32>, tensor<?xi32>
        -> tensor<?x?x128xbf16>
  return %o : tensor<?x?x128xbf16>
}
