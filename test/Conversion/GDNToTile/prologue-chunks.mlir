// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The prologue with `chunk-pieces`: a block has a chunk of inputs, with the window ahead of it
// unless the sequence begins there, as one tile, of which each of four pieces takes its rows. Pieces
// of few tokens, and of decays per channel, load their own.
//
// RUN: gdn-opt %S/fused-conv.mlir -gdn-fuse=conv-with-rule -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged whole-loads chunk-pieces=16 variants=fused:fused=2;conv=with-rule,staged: value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse | FileCheck %s
// RUN: gdn-opt %S/fused-conv.mlir -gdn-fuse=conv-with-rule -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged whole-loads variants=fused:fused=2;conv=with-rule,staged: value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse | FileCheck %s --check-prefix=APART
// RUN: gdn-compile --preset=kimi-linear-48b-a3b --io=bf16 --state=f32 --only=prefill --target=sm_90a --emit=gpu | FileCheck %s --check-prefix=CHANNELS

// CHANNELS-LABEL: func.func @prefill__prologue
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
