// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A variant of "staged" for few tokens: its pass over memory has short pieces, all
// else it has from the one with as many blocks for a head.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="precision=mixed chunk-stages=staged variants=staged-v-split-2-short:pieces=8;v-split=2;when=tokens*heads<=128*workers&tokens<=2047,staged-v-split-4:v-split=4;when=4*sequences*heads<=workers,staged-v-split-2:v-split=2,staged:" -canonicalize -cse | FileCheck %s
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=staged-short:pieces=8,staged:" | FileCheck %s --check-prefix=NOTHING
// RUN: not gdn-opt %s -convert-gdn-to-tile="variants=staged-short:pieces=6" 2>&1 | FileCheck %s --check-prefix=SIX
// RUN: not gdn-opt %s -convert-gdn-to-tile="variants=staged-short:pieces=12" 2>&1 | FileCheck %s --check-prefix=TWELVE

//    SIX: error: expects pieces of a power of two of tokens from 4 on in the option 'variants', but got 6
// TWELVE: error: expects pieces of a power of two of tokens from 4 on in the option 'variants', but got 12

// Keys and queries that are in memory as products take them need no pass.
// NOTHING-NOT: short

// Two groups of tokens in a piece. It is asked first.
// CHECK-LABEL: func.func @prefill__prologue_short(
//  CHECK-SAME:   bits = "staged"
//  CHECK-SAME:   conditions = {{\[\[}}["T", "Hv"], ["128", "workers"]], {{\[}}["T"], ["2047"]]]
//  CHECK-SAME:   grid = ["T floordiv 64 + N", "Hk + Hk", "8"]
//  CHECK-SAME:   token_pieces = 8 : i64, variant = "staged-v-split-2-short"
//       CHECK:   gdn_tile.load {{.*}}, vector<4x64xbf16>
// CHECK-LABEL: func.func @prefill__prologue(
//  CHECK-SAME:   grid = ["T floordiv 64 + N", "Hk + Hk", "2"]
//  CHECK-SAME:   token_pieces = 2 : i64, variant = ["staged-v-split-4", "staged-v-split-2", "staged"]

// Both have the stages between. Parts of 32 values have conditions.
// CHECK-LABEL: func.func @prefill__intra_chunk(
//  CHECK-SAME:   variant = ["staged-v-split-4", "staged-v-split-2-short", "staged-v-split-2", "staged"]
// CHECK-LABEL: func.func @prefill__inter_chunk_v_split_4(
//  CHECK-SAME:   variant = "staged-v-split-4"
// CHECK-LABEL: func.func @prefill__inter_chunk_v_split_2(
//  CHECK-SAME:   bits = "staged"
//  CHECK-SAME:   variant = ["staged-v-split-2-short", "staged-v-split-2"]
func.func @prefill(
    %q: tensor<?x?x64xbf16> {gdn.name = "q", gdn.dims = ["T", "Hk", "64"]},
    %k: tensor<?x?x64xbf16> {gdn.name = "k", gdn.dims = ["T", "Hk", "64"]},
    %v: tensor<?x?x128xbf16> {gdn.name = "v", gdn.dims = ["T", "Hv", "128"]},
    %g: tensor<?x?xf32> {gdn.name = "log_decay", gdn.dims = ["T", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %pool: !gdn.pool<?x?x128x64xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "128", "64"]})
    -> (tensor<?x?x128xbf16> {gdn.name = "core", gdn.dims = ["T", "Hv", "128"]})
    attributes {gdn.entry} {
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x64xbf16>, tensor<?x?x64xbf16>, tensor<?x?x128xbf16>, tensor<?x?xf32>,
        tensor<?x?xf32>, !gdn.pool<?x?x128x64xf32>, tensor<?xi32>, tensor<?xi32>
        -> tensor<?x?x128xbf16>
  return %o : tensor<?x?x128xbf16>
}
