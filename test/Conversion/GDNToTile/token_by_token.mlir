// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prefill that is computed token by token, where no stage of chunks is taken: with write
// strengths up to 2, as here, or with inputs of f32. What the sequence keeps is written in the
// turn of its last token, windows of the key head by the last block that has read them, so that
// nothing follows the loop. With `precision=mixed` it has no chunks either.
//
// RUN: gdn-compile --preset=olmo-hybrid-7b --io=bf16 --write-slots --only=prefill --emit=gdn -o %t.mlir
// RUN: gdn-opt %t.mlir -gdn-fuse -convert-gdn-to-tile="value-heads token-by-token precision=mixed chunk-stages=staged" -canonicalize -cse | FileCheck %s
// RUN: gdn-opt %t.mlir -gdn-fuse -convert-gdn-to-tile="value-heads token-by-token precision=mixed" -canonicalize -cse | FileCheck %s --check-prefix=ALONE

// Others are as they were: layers that write with at most 1.
// RUN: gdn-compile --preset=qwen3.5-4b --io=bf16 --only=prefill --emit=gdn -o %t.single.mlir
// RUN: gdn-opt %t.single.mlir -gdn-fuse -convert-gdn-to-tile="value-heads precision=mixed" -canonicalize -cse -o %t.without.mlir
// RUN: gdn-opt %t.single.mlir -gdn-fuse -convert-gdn-to-tile="value-heads token-by-token precision=mixed" -canonicalize -cse | diff - %t.without.mlir

// RUN: gdn-compile --preset=olmo-hybrid-7b --io=bf16 --checkpoints --only=prefill --emit=gdn -o %t.inside.mlir
// RUN: gdn-opt %t.inside.mlir -gdn-fuse -convert-gdn-to-tile="value-heads token-by-token" -canonicalize -cse | FileCheck %s --check-prefix=INSIDE

// ALONE: facts = {chunk_from = "never"}
// ALONE-NOT: variant

// CHECK-LABEL: func.func @prefill(
//       CHECK:   %[[ONE:.+]] = arith.constant 1 : index
//       CHECK:   %[[LAST_Q:.+]] = gdn_tile.last_in_group
//       CHECK:   %[[LAST_K:.+]] = gdn_tile.last_in_group
// Where to write is known before the first token.
//       CHECK:   memref.load %{{.+}}[%{{.+}}] : memref<?xi32
//       CHECK:   scf.for %[[T:.+]] = %[[BEGIN:[^ ]+]] to %[[END:.+]] step %[[ONE]] iter_args(
//       CHECK:     gdn_tile.delta_scan
//       CHECK:     %[[NEXT:.+]] = arith.addi %[[T]], %[[ONE]]
//       CHECK:     %[[IS_END:.+]] = arith.cmpi eq, %[[NEXT]], %[[END]]
//       CHECK:     %[[WRITES_Q:.+]] = arith.andi %[[IS_END]], %{{.+}} : i1
//       CHECK:     scf.if %[[WRITES_Q]] {
//       CHECK:       gdn_tile.store {{.+}}vector<3x96xbf16>
//       CHECK:     scf.if %{{.+}} {
//       CHECK:       gdn_tile.store {{.+}}vector<3x96xbf16>
//       CHECK:     scf.if %{{.+}} {
//       CHECK:       gdn_tile.store {{.+}}vector<3x192xbf16>
//       CHECK:     scf.if %{{.+}} {
//       CHECK:       gdn_tile.store {{.+}}vector<192x96xf32>
//       CHECK:     scf.yield
//  CHECK-NEXT:   }
//  CHECK-NEXT: } else {

// States inside of the sequence: behind a multiple of 64 tokens its checkpoints are asked whether one
// lies there, whose count is above all before it. Different blocks write the windows of the key
// head, so that no two branches are one.
// INSIDE-LABEL: func.func @prefill(
//       INSIDE:   scf.for %[[T:.+]] = %[[BEGIN:[^ ]+]] to
//       INSIDE:     gdn_tile.delta_scan
//       INSIDE:     %[[COUNT:.+]] = arith.subi %{{.+}}, %[[BEGIN]] : index
//       INSIDE:     %[[REST:.+]] = arith.andi %[[COUNT]], %c63 : index
//       INSIDE:     %[[SLOT:.+]] = scf.if %{{.+}} -> (index) {
//       INSIDE:       %[[FOUND:.+]]:2 = scf.for %{{.+}} iter_args(%[[MOST:.+]] = %c0, %{{.+}} = %c-1) -> (index, index) {
//       INSIDE:         %[[N:.+]] = arith.index_cast
//       INSIDE:         arith.cmpi sgt, %[[N]], %[[MOST]] : index
//       INSIDE:       scf.yield %[[FOUND]]#1 : index
//       INSIDE:     arith.cmpi ult, %[[SLOT]], %{{.+}} : index
// INSIDE-COUNT-2:   gdn_tile.store {{.+}}vector<3x96xbf16>
//       INSIDE:     gdn_tile.store {{.+}}vector<3x192xbf16>
//       INSIDE:     gdn_tile.store {{.+}}vector<192x96xf32>
// INSIDE-COUNT-2:   gdn_tile.store {{.+}}vector<3x96xbf16>
//       INSIDE:     gdn_tile.store {{.+}}vector<3x192xbf16>
//       INSIDE:     gdn_tile.store {{.+}}vector<192x96xf32>
//       INSIDE:     scf.yield
