// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A variant of "staged" whose recurrence does the intra-chunk work of its chunks itself: no stage before
// it, no workspace.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=fused:fused=2;when=256*sequences<=tokens&(51*workers<=100*sequences*heads&sequences*heads<=workers|150*workers<=100*sequences*heads&sequences*heads<=2*workers|220*workers<=100*sequences*heads),fused-v-split-2:fused=2;v-split=2;when=256*sequences<=tokens&(12*workers<=100*sequences*heads&2*sequences*heads<=workers|100*workers<=100*sequences*heads&2*sequences*heads<=3*workers),staged: value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse | FileCheck %s
// RUN: not gdn-opt %s -gdn-fuse -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=fused:fused=-1" 2>&1 | FileCheck %s --check-prefix=NEGATIVE

// NEGATIVE: expected 'fused' to be at least 1, got '-1'

// CHECK-LABEL: func.func @prefill__inter_chunk_fused(
//  CHECK-SAME:   conditions = {{\[\[\["256", "N"\], \["T"\]\]}}, {any = [
//  CHECK-SAME:     {{\[\[\["51", "workers"\], \["100", "N", "Hv"\]\], \[\["N", "Hv"\], \["workers"\]\]\]}},
//  CHECK-SAME:     {{\[\[\["150", "workers"\], \["100", "N", "Hv"\]\], \[\["N", "Hv"\], \["2", "workers"\]\]\]}},
//  CHECK-SAME:     {{\[\[\["220", "workers"\], \["100", "N", "Hv"\]\]\]}}]}]
//  CHECK-SAME:   variant = "fused", workspace = []
//       CHECK:   scf.for %{{.+}} = %{{.+}} to %{{.+}} step %c64 iter_args(%[[S:.+]] = %{{.+}}) -> (vector<128x64xf32>)
// CHECK-COUNT-5:     gdn_tile.load
//       CHECK:     gdn_tile.prefix_sum
//       CHECK:     %[[E:.+]] = gdn_tile.decay_matrix
//       CHECK:     %[[A:.+]] = gdn_tile.tri_inverse
//       CHECK:     gdn_tile.transpose %[[E]]
//       CHECK:     %[[TURNED:.+]] = gdn_tile.transpose %[[A]]
//       CHECK:     %[[T:.+]] = gdn_tile.map_rows %[[TURNED]], {{.*}} -> vector<64x64xf16>
//       CHECK:     %[[X:.+]] = gdn_tile.matmul %{{.+}}, %[[T]] :
//       CHECK:     gdn_tile.matmul {{.*}} acc(
//       CHECK:     %[[NEXT:.+]] = gdn_tile.matmul {{.*}} acc(
//       CHECK:     scf.yield %[[NEXT]]

// Half of the values each, for fewer sequences and heads; and where a wave of whole heads would
// be half empty, for 100 to 150 hundredths of the multiprocessors.
// CHECK-LABEL: func.func @prefill__inter_chunk_fused_v_split_2(
//  CHECK-SAME:   conditions = {{\[\[\["256", "N"\], \["T"\]\]}}, {any = [
//  CHECK-SAME:     {{\[\[\["12", "workers"\], \["100", "N", "Hv"\]\], \[\["2", "N", "Hv"\], \["workers"\]\]\]}},
//  CHECK-SAME:     {{\[\[\["100", "workers"\], \["100", "N", "Hv"\]\], \[\["2", "N", "Hv"\], \["3", "workers"\]\]\]}}]}]
//  CHECK-SAME:   grid = ["N + 1", "Hv", "2"]
//  CHECK-SAME:   variant = "fused-v-split-2"
//       CHECK:   -> (vector<64x64xf32>)

// What finds its chunks prepared comes behind.
// CHECK-LABEL: func.func @prefill__intra_chunk(
//  CHECK-SAME:   variant = "staged"
// CHECK-LABEL: func.func @prefill__inter_chunk(
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
