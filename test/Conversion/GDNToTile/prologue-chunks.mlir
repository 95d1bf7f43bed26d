// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The prologue with `chunk-pieces`: a block has a chunk of inputs, with the window ahead of it
// unless the sequence begins there, as one tile, of which each of four pieces takes its rows. Pieces
// of few tokens load their own, and so do those of decays per channel ahead of stages. For blocks that
// prepare their chunks of decays per channel a tile has two chunks.
//
// RUN: gdn-opt %S/fused-conv.mlir -gdn-fuse=conv-with-rule -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged whole-loads chunk-pieces=16 variants=fused:fused=2;conv=with-rule,staged: value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse | FileCheck %s
// RUN: gdn-opt %S/fused-conv.mlir -gdn-fuse=conv-with-rule -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged whole-loads variants=fused:fused=2;conv=with-rule,staged: value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse | FileCheck %s --check-prefix=APART
// RUN: gdn-compile --preset=kimi-linear-48b-a3b --io=bf16 --state=f32 --only=prefill --target=sm_90a --emit=gpu | FileCheck %s --check-prefix=CHANNELS

// Slots are of 64 tokens, and the chunk of a piece is known by its number among them: the second of
// two that lies behind the sequence's end has no place. Gates have tiles as large as those with a window.
// CHANNELS-LABEL: func.func @prefill__prologue_fused(
//  CHANNELS-SAME:   gdn_gpu.kernel = {min_blocks = 10 : i64, threads = 128 : i64}
//  CHANNELS-SAME:   grid = ["T floordiv 64 + N", "Hv + Hk + Hk + Hv"]
//       CHANNELS:   %[[TILE:.+]] = gdn_gpu.alloc : <67x128xbf16>
//   CHANNELS-NOT:   gdn_gpu.alloc : <{{[0-9]+}}x128xbf16>
//       CHANNELS:   gdn_gpu.begin_copy any_alignment {{.+}}, %[[TILE]] : {{.+}}, <67x128xbf16>
//       CHANNELS:   gdn_gpu.each_warp 0 for 4 {
//       CHANNELS:     ^bb0(%[[WARP:.+]]: index):
//       CHANNELS:     %[[AT:.+]] = arith.muli %[[WARP]], %c16
//       CHANNELS:     %[[CHUNK:.+]] = arith.divui %[[AT]], %c32
//       CHANNELS:     %[[BEFORE:.+]] = arith.muli %[[CHUNK]], %c32
//       CHANNELS:     %[[IN_CHUNK:.+]] = arith.subi %[[AT]], %[[BEFORE]]
//       CHANNELS:     %[[SLOT:.+]] = arith.addi %{{.+}}, %[[CHUNK]]
//       CHANNELS:     %[[IS_THERE:.+]] = arith.cmpi ult, %[[BEFORE]], %{{.+}}
//       CHANNELS:     %[[PLACES:.+]] = arith.select %[[IS_THERE]], %c16, %c0
//       CHANNELS:     scf.for
//       CHANNELS:       %[[TO:.+]] = arith.addi %[[IN_CHUNK]], %{{.+}}
//       CHANNELS:       gdn_gpu.store %{{.+}}[%[[SLOT]], %{{.+}}, %[[TO]], %c0]
//       CHANNELS:     scf.for {{.+}} to %[[PLACES]] step %c4
// CHANNELS-COUNT-3: gdn_gpu.begin_copy any_alignment {{.+}}, %[[TILE]] : {{.+}}, <67x128xbf16>
//   CHANNELS-NOT:   any_alignment
//       CHANNELS:   gdn_gpu.store {{.+}} rows(%{{.+}}) : <16xf32, {{.+}}>, memref<?x?x1x32xf32>
// CHANNELS-LABEL: func.func @prefill__prologue(
//   CHANNELS-NOT:   rows(%{{.+}}) whole
//   CHANNELS-NOT:   any_alignment

// CHECK-LABEL: func.func @prefill__prologue_keys(
//  CHECK-SAME:   token_pieces = 4
//       CHECK:   %[[PIECE:.+]] = gdn_tile.block_id 2
//       CHECK:   %[[LEAD:.+]] = arith.select %{{.+}}, %c0, %c3 : index
//       CHECK:   %[[FIRST:.+]] = arith.subi %{{.+}}, %[[LEAD]] : index
//       CHECK:   %[[ROWS:.+]] = arith.addi %{{.+}}, %[[LEAD]] : index
//       CHECK:   %[[CHUNK:.+]] = gdn_tile.load %{{.+}}[%[[FIRST]], {{.+}} rows(%[[ROWS]]) {{.+}}, vector<67x{{[0-9]+}}xbf16>
//       CHECK:   gdn_tile.load {{.+}} whole {{.+}}, vector<3x
//       CHECK:   gdn_tile.extract_rows %[[CHUNK]][%{{.+}}] rows(%{{.+}}) {{.+}} -> vector<3x
//       CHECK:   scf.for
//       CHECK:     gdn_tile.extract_rows %[[CHUNK]][%{{.+}}] : {{.+}} -> vector<4x

// APART-LABEL: func.func @prefill__prologue_keys(
//  APART-SAME:   token_pieces = 2
//       APART:   gdn_tile.load {{.+}} whole {{.+}}, vector<4x
//   APART-NOT:   extract_rows
