// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A state of which four blocks share the recurrence, and not two: `where` is false. There are no segments,
// whose maps of 256 x 256 no block has the registers for: `where` is false, too.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=staged-segments-8:v-split=4;segments=8;where=keys<=128,staged-v-split-4:v-split=4;when=(256<=values&values<=256|4*sequences*heads<=workers),staged-v-split-2:v-split=2;where=keys*values<=32768,staged:" -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func.func @prefill__intra_chunk(
//  CHECK-SAME:   variant = ["staged-v-split-4", "staged"]
//   CHECK-NOT:   segments
// CHECK-LABEL: func.func @prefill__inter_chunk_v_split_4(
//  CHECK-SAME:   bits = "staged"
//   CHECK-NOT:   conditions
//  CHECK-SAME:   grid = ["N + 1", "Hv", "4"]
//       CHECK:   scf.for {{.*}} -> (vector<64x256xf32>)
// CHECK-LABEL: func.func @prefill__inter_chunk(
//       CHECK:   scf.for {{.*}} -> (vector<256x256xf32>)
func.func @prefill(
    %q: tensor<?x?x256xbf16> {gdn.name = "q", gdn.dims = ["T", "Hk", "256"]},
    %k: tensor<?x?x256xbf16> {gdn.name = "k", gdn.dims = ["T", "Hk", "256"]},
    %v: tensor<?x?x256xbf16> {gdn.name = "v", gdn.dims = ["T", "Hv", "256"]},
    %g: tensor<?x?xf32> {gdn.name = "log_decay", gdn.dims = ["T", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %pool: !gdn.pool<?x?x256x256xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "256", "256"]})
    -> (tensor<?x?x256xbf16> {gdn.name = "core", gdn.dims = ["T", "Hv", "256"]})
    attributes {gdn.entry} {
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x256xbf16>, tensor<?x?x256xbf16>, tensor<?x?x256xbf16>, tensor<?x?xf32>,
        tensor<?x?xf32>, !gdn.pool<?x?x256x256xf32>, tensor<?xi32>, tensor<?xi32>
        -> tensor<?x?x256xbf16>
  return %o : tensor<?x?x256xbf16>
}
