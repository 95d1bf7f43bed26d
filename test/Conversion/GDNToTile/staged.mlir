// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The variant "staged" of a prefill entry: what does not depend on the state, for
// every chunk, and the inter-chunk recurrence with states in rows.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="precision=mixed-io chunk=32 chunk-stages=staged longest-first" -canonicalize -cse -gdn-tile-fuse-rows -cse | FileCheck %s
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="precision=mixed chunk=32 chunk-stages=staged longest-first" -canonicalize -cse -gdn-tile-fuse-rows -cse | FileCheck %s --check-prefix=MIXED
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=staged-v-split-4:v-split=4;when=(256<=values&values<=256|4*sequences*heads<=workers),staged:" -canonicalize -cse | FileCheck %s --check-prefix=VSPLIT
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=staged-v-split-3:v-split=3,staged:" -canonicalize -cse | FileCheck %s --check-prefix=WHOLE

// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="value-heads precision=mixed-io chunk-stages=staged short-chunks=32:keys<=16" -canonicalize -cse | FileCheck %s --check-prefix=SHORT
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="value-heads precision=mixed-io chunk-stages=staged short-chunks=32:17<=keys" -canonicalize -cse | FileCheck %s --check-prefix=LONG
// SHORT: grid = ["T floordiv 32 + N", "Hv"]
//  LONG: grid = ["T floordiv 64 + N", "Hv"]
// RUN: not gdn-opt %s -gdn-fuse -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=staged:,again:" 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: error: 'func.func' op expects variants of prefill that differ in how work is split, but got 'again' besides another

// RUN: not gdn-opt %s -gdn-fuse -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=staged:v-split=2,staged:" 2>&1 | FileCheck %s --check-prefix=NAMES
// NAMES: error: 'func.func' op expects variants of prefill with names of their own, but got 'staged' twice

// The one-pass program stays as it is.
// CHECK-LABEL: func.func @prefill(
//  CHECK-SAME:   grid = ["N + 1", "Hk"]
//   CHECK-NOT:   variant

// A block per chunk slot and value head. Keys and queries are in memory as
// products take them: the workspace has Y, Z and the gates.
// CHECK-LABEL: func.func @prefill__intra_chunk(
//  CHECK-SAME:   %[[K:[a-z0-9]+]]: memref<?x?x16xbf16, strided<[?, ?, 1], offset: ?>> {gdn.name = "k"}
//  CHECK-SAME:   %[[CU:[a-z0-9]+]]: memref<?xi32, strided<[1], offset: ?>> {gdn.name = "cu_seqlens"}
//  CHECK-SAME:   %[[Y:[a-z0-9]+]]: memref<?x?x32x16xf16>, %[[Z:[a-z0-9]+]]: memref<?x?x32x32xf16>, %[[GATES:[a-z0-9]+]]: memref<?x?x4x32xf32>, %[[ORDER:[a-z0-9]+]]: memref<?x1xf32>)
//  CHECK-SAME:   grid = ["T floordiv 32 + N", "Hv"]
//  CHECK-SAME:   stage_of = "prefill"
//  CHECK-SAME:   variant = "staged"
//  CHECK-SAME:   workspace = {{\[\[}}"T floordiv 32 + N", "Hv", "32", "16", "2"], ["T floordiv 32 + N", "Hv", "32", "32", "2"], ["T floordiv 32 + N", "Hv", "4", "32", "4"], ["N", "1", "4"]]
//       CHECK:   %[[SLOT:.+]] = gdn_tile.block_id 0

// The rank of sequence SLOT in the order of the recurrence, longest first.
//       CHECK:   arith.cmpi ult, %[[SLOT]], %[[SEQUENCES:.+]] : index
//       CHECK:   scf.if
//       CHECK:     %[[COUNT:.+]] = arith.select %{{.+}}, %[[SEQUENCES]], %c0
//       CHECK:     %[[PLACE:.+]]:2 = scf.for {{.*}} to %[[COUNT]] step %c1
//       CHECK:       memref.load %[[CU]]
//       CHECK:       arith.cmpi ugt
//       CHECK:     gdn_tile.store %{{.+}}, %[[ORDER]][%[[PLACE]]#0, %c0] dims [1] : vector<1xf32>

// The sequence, by as many steps as the number of sequences has bits.
//       CHECK:   %[[ZEROS:.+]] = math.ctlz
//       CHECK:   scf.for {{.*}} iter_args(%[[FOUND:.+]] = %c0) -> (index)
//       CHECK:     %[[SEQUENCE:.+]] = arith.addi %[[FOUND]], %{{.+}} : index
//       CHECK:     %[[AT:.+]] = arith.minui %[[SEQUENCE]], %{{.+}} : index
//       CHECK:     memref.load %[[CU]][%[[AT]]]
//       CHECK:     arith.divui %{{.+}}, %c32
//       CHECK:     arith.cmpi ule, %{{.+}}, %[[SLOT]] : index

// Only a live sequence's chunk; tokens past its end are zeros.
//       CHECK:   scf.if
//       CHECK:     %[[KEY:.+]] = gdn_tile.load %[[K]]{{.*}} rows(%{{.+}}) {{.*}}, vector<32x16xbf16>
//   CHECK-NOT:     scf.if
//       CHECK:     gdn_tile.matmul %[[KEY]], %{{.+}} {lower_result}
//       CHECK:     gdn_tile.tri_inverse
//       CHECK:     gdn_tile.store %{{.+}}, %[[Y]][%[[SLOT]], %{{.+}}, %c0, %c0] dims [2, 3]
//       CHECK:     gdn_tile.store %{{.+}}, %[[Z]][%[[SLOT]], %{{.+}}, %c0, %c0] dims [2, 3]
//       CHECK:     gdn_tile.store %{{.+}}, %[[GATES]][%[[SLOT]], %{{.+}}, %c0, %c0] dims [3]
//       CHECK:     gdn_tile.store %{{.+}}, %[[GATES]][%[[SLOT]], %{{.+}}, %c1, %c0] dims [3]
//       CHECK:     gdn_tile.store %{{.+}}, %[[GATES]][%[[SLOT]], %{{.+}}, %c2, %c0] dims [3]
//       CHECK:     gdn_tile.store %{{.+}}, %[[GATES]][%[[SLOT]], %{{.+}}, %c3, %c0] dims [3]

// CHECK-LABEL: func.func @prefill__inter_chunk(
//  CHECK-SAME:   %[[Y:[a-z0-9]+]]: memref<?x?x32x16xf16>, %[[Z:[a-z0-9]+]]: memref<?x?x32x32xf16>, %[[GATES:[a-z0-9]+]]: memref<?x?x4x32xf32>, %[[ORDER:[a-z0-9]+]]: memref<?x1xf32>)
//  CHECK-SAME:   grid = ["N + 1", "Hv"]
// The sequence that has this place in the order.
//       CHECK:   %[[PLACE:.+]] = gdn_tile.block_id 0
//       CHECK:   scf.if
//       CHECK:     memref.load %[[ORDER]][%[[PLACE]], %c0]
// The state stays in rows: it is transposed nowhere.
//       CHECK:   gdn_tile.load {{.*}} rows(%{{.+}}) : {{.*}}, vector<64x16xf32>
//       CHECK:   scf.for {{.*}} iter_args(%[[M:.+]] = %{{.+}}) -> (vector<64x16xf32>)
//   CHECK-NOT:     gdn_tile.transpose {{.*}} vector<64x16x
//       CHECK:     %[[V:.+]] = gdn_tile.load {{.*}} rows(%{{.+}}) {{.*}}, vector<32x64xbf16>
//       CHECK:     %[[TO_STATE:.+]] = gdn_tile.load %[[Y]]
//       CHECK:     %[[TO_OUTPUT:.+]] = gdn_tile.load %[[Z]]
//       CHECK:     %[[DECAY:.+]] = gdn_tile.load %[[GATES]]{{.*}}vector<32xf32>
//       CHECK:     %[[STRENGTH:.+]] = gdn_tile.load %[[GATES]]
//       CHECK:     %[[END:.+]] = gdn_tile.load %[[GATES]]
//       CHECK:     %[[HELD:.+]] = gdn_tile.map_rows %[[M]] : vector<64x16xf32> -> vector<64x16xbf16>
//       CHECK:     %[[U:.+]] = gdn_tile.matmul %[[HELD]], %{{.+}} : vector<64x16xbf16>, vector<16x32xbf16> -> vector<64x32xf32>
//       CHECK:     gdn_tile.matmul %[[HELD]]
//       CHECK:     %[[VT:.+]] = gdn_tile.transpose %[[V]]
//       CHECK:     %[[W:.+]] = gdn_tile.map_rows %[[VT]], %[[U]] {{.*}} -> vector<64x32xf16>
//       CHECK:       arith.mulf %{{.+}}, %[[DECAY]]
//       CHECK:       arith.mulf %{{.+}}, %[[STRENGTH]]
//       CHECK:     gdn_tile.matmul %[[W]], %{{.+}} acc(
//       CHECK:     %[[FADED:.+]] = gdn_tile.map_rows %[[M]] : vector<64x16xf32> -> vector<64x16xf32>
//       CHECK:       vector.extract %[[END]][0]
//       CHECK:     %[[NEXT:.+]] = gdn_tile.matmul %[[W]], %[[TO_STATE]] acc(%[[FADED]]
//       CHECK:     scf.yield %[[NEXT]]
//       CHECK:   gdn_tile.store
// Sequences that are skipped, and padding.
//       CHECK:   } else {
//       CHECK:     gdn_tile.fill

// What is not in memory as products take it, a stage before the others makes, a
// block for a piece of 32 tokens of one head of queries or keys, in f16. Groups of
// four tokens follow one another; each is loaded while the one before is worked on.
// MIXED-LABEL: func.func @prefill__prologue(
//  MIXED-SAME:   %[[Q16:[a-z0-9]+]]: memref<?x?x32x16xf16>, %[[K16:[a-z0-9]+]]: memref<?x?x32x16xf16>)
//  MIXED-SAME:   grid = ["T floordiv 32 + N", "Hk + Hk", "1"]
//  MIXED-SAME:   token_pieces = 1 : i64
//  MIXED-SAME:   {{\[\[}}"T floordiv 32 + N", "Hk", "32", "16", "2"], ["T floordiv 32 + N", "Hk", "32", "16", "2"]]
//       MIXED:   %[[UNIT:.+]] = gdn_tile.block_id 1
//       MIXED:   scf.if
//       MIXED:     %[[FIRST:.+]] = gdn_tile.load {{.*}}, vector<4x16xbf16>
//       MIXED:     scf.for {{.*}} step %c4 iter_args(%[[HELD:.+]] = %[[FIRST]]
//       MIXED:       %[[NEXT:.+]] = gdn_tile.load
//       MIXED:       gdn_tile.store %{{.+}}, %[[Q16]][%{{.+}}, %[[UNIT]], %{{.+}}, %c0] dims [2, 3] : vector<4x16xf16>
//       MIXED:       scf.yield %[[NEXT]]
//       MIXED:     gdn_tile.fill
//       MIXED:   scf.if
//       MIXED:       gdn_tile.store %{{.+}}, %[[K16]]
// MIXED-LABEL: func.func @prefill__intra_chunk(
//  MIXED-SAME:   %[[Q16:[a-z0-9]+]]: memref<?x?x32x16xf16>, %[[K16:[a-z0-9]+]]: memref<?x?x32x16xf16>,
//       MIXED:   gdn_tile.load %[[Q16]]
//       MIXED:   gdn_tile.load %[[K16]]
// MIXED-LABEL: func.func @prefill__inter_chunk(

// Four blocks share the recurrence: each has 16 of 64 values, rows of the state. The
// variant has the first stage in common with the one without parts.
// VSPLIT-LABEL: func.func @prefill__intra_chunk(
//  VSPLIT-SAME:   grid = ["T floordiv 64 + N", "Hv"]
//  VSPLIT-SAME:   variant = ["staged-v-split-4", "staged"]
// VSPLIT-LABEL: func.func @prefill__inter_chunk_v_split_4(
//  VSPLIT-SAME:   conditions = {{\[\[}}["4", "N", "Hv"], ["workers"]]]
//  VSPLIT-SAME:   grid = ["N + 1", "Hv", "4"]
//       VSPLIT:   %[[WHICH:.+]] = gdn_tile.block_id 2
//       VSPLIT:   %[[FIRST:.+]] = arith.muli %[[WHICH]], %c16
//       VSPLIT:   gdn_tile.load %{{.+}}[%{{.+}}, %{{.+}}, %[[FIRST]], %c0] dims [2, 3] {{.*}}, vector<16x16xf32>
//       VSPLIT:   gdn_tile.load %{{.+}}[%{{.+}}, %{{.+}}, %{{.+}}, %[[FIRST]]] dims [0, 3] {{.*}}, vector<64x16xbf16>
//       VSPLIT:   gdn_tile.store %{{.+}}, %{{.+}}[%{{.+}}, %{{.+}}, %{{.+}}, %[[FIRST]]] dims [0, 3]
//       VSPLIT:   gdn_tile.store %{{.+}}, %{{.+}}[%{{.+}}, %{{.+}}, %[[FIRST]], %c0] dims [2, 3]
// VSPLIT-LABEL: func.func @prefill__inter_chunk(
//  VSPLIT-SAME:   grid = ["N + 1", "Hv"]
// Three would not have the same number.
// WHOLE-LABEL: func.func @prefill__intra_chunk(
//  WHOLE-SAME:   variant = "staged"
// WHOLE-LABEL: func.func @prefill__inter_chunk(
//  WHOLE-SAME:   grid = ["N + 1", "Hv"]
//   WHOLE-NOT:   conditions
func.func @prefill(
    %q: tensor<?x?x16xbf16> {gdn.name = "q", gdn.dims = ["T", "Hk", "16"]},
    %k: tensor<?x?x16xbf16> {gdn.name = "k", gdn.dims = ["T", "Hk", "16"]},
    %v: tensor<?x?x64xbf16> {gdn.name = "v", gdn.dims = ["T", "Hv", "64"]},
    %g: tensor<?x?xf32> {gdn.name = "log_decay", gdn.dims = ["T", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %has: tensor<?xi1> {gdn.name = "has_initial", gdn.dims = ["N"]},
    %pool: !gdn.pool<?x?x64x16xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "16"]})
    -> (tensor<?x?x64xbf16> {gdn.name = "core", gdn.dims = ["T", "Hv", "64"]})
    attributes {gdn.entry} {
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu) initial(%has)
      : tensor<?x?x16xbf16>, tensor<?x?x16xbf16>, tensor<?x?x64xbf16>, tensor<?x?xf32>,
        tensor<?x?xf32>, !gdn.pool<?x?x64x16xf32>, tensor<?xi32>, tensor<?xi32> initial tensor<?xi1>
        -> tensor<?x?x64xbf16>
  return %o : tensor<?x?x64xbf16>
}
