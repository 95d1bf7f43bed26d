// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// precision=mixed: every operand of a product is rounded by a cast, sums and
// the state are f32, and what is proportional to values is kept times 1/16.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="chunk-from=1 chunk=32 precision=mixed" -canonicalize -cse -gdn-tile-fuse-rows | FileCheck %s
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="chunk-from=1 chunk=32 precision=mixed-io" -canonicalize -cse -gdn-tile-fuse-rows | FileCheck %s --check-prefix=IO
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="chunk-from=1 chunk=32 precision=f32" -canonicalize -cse | FileCheck %s --check-prefix=F32 --implicit-check-not=xf16
// RUN: not gdn-opt %s -convert-gdn-to-tile="precision=half" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not gdn-compile %s --precision=half -o %t 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// UNKNOWN: Cannot find option named 'half'

// CHECK-LABEL: func.func @prefill
//  CHECK-SAME:   facts = {chunk = "32", chunk_from = "1", precision = "mixed"}
//   CHECK-DAG:   %[[SIXTEENTH:.+]] = arith.constant dense<6.250000e-02> : vector<{{16|64}}xf32>
// The state in, times 1/16.
//       CHECK:   gdn_tile.load {{.*}}vector<64x16xf32>
//       CHECK:   %[[IN:.+]] = gdn_tile.map_rows
//       CHECK:     arith.mulf
//       CHECK:   gdn_tile.transpose %[[IN]] : vector<64x16xf32> -> vector<16x64xf32>
//       CHECK:   scf.for {{.*}} iter_args(%[[S:.+]] = %{{.+}}) -> (vector<16x64xf32>)
// Queries and keys.
//       CHECK:     arith.truncf %{{.+}} : vector<16xf32> to vector<16xf16>
//       CHECK:     arith.truncf %{{.+}} : vector<16xf32> to vector<16xf16>
// Decay down to e^-1 stays outside of products.
//       CHECK:     %[[G:.+]] = gdn_tile.prefix_sum
//       CHECK:     %[[H:.+]]:2 = gdn_tile.map_rows %{{.+}}, %[[G]]
//       CHECK:       arith.maximumf
//       CHECK:       arith.minimumf
//       CHECK:       arith.maximumf
//       CHECK:     gdn_tile.decay_matrix %[[H]]#1
// The products of keys and of queries with keys wait for nothing.
//       CHECK:     gdn_tile.matmul {{.*}} {lower_result} : vector<32x16xf16>, vector<16x32xf16> -> vector<32x32xf32>
//       CHECK:     gdn_tile.matmul {{.*}} {lower_result} : vector<32x16xf16>, vector<16x32xf16> -> vector<32x32xf32>
// The triangle, its inverse, and the inverse with decays.
//       CHECK:     arith.truncf %{{.+}} : vector<32xf32> to vector<32xf16>
//       CHECK:     %[[A:.+]] = gdn_tile.tri_inverse %{{.+}} : vector<32x32xf16>
//       CHECK:     %[[T:.+]] = gdn_tile.map_rows %[[A]], {{.*}} -> vector<32x32xf16>
//       CHECK:       arith.mulf %{{.+}} : vector<32xf16>
// The decayed scores.
//       CHECK:     %[[P:.+]] = gdn_tile.map_rows {{.*}} -> vector<32x32xf16>
// What an error becomes in the state and in the outputs, rounded after the sum.
//       CHECK:     %[[PT:.+]] = gdn_tile.matmul %[[P]], %[[T]] {lower_lhs}
//       CHECK:     %[[Z:.+]] = gdn_tile.map_rows %[[PT]], %[[H]]#0 {{.*}} -> vector<32x32xf16>
//       CHECK:     gdn_tile.suffix_sum %[[H]]#1
//       CHECK:     %[[TK:.+]] = gdn_tile.matmul transpose %[[T]], %{{.+}} : vector<32x32xf16>, vector<32x16xf16> -> vector<32x16xf32>
//       CHECK:     %[[Y:.+]] = gdn_tile.map_rows %[[TK]] : vector<32x16xf32> -> vector<32x16xf16>
// The state as an operand; what it does not know of the values.
//       CHECK:     %[[SN:.+]] = gdn_tile.map_rows %[[S]] : vector<16x64xf32> -> vector<16x64xf16>
//       CHECK:     gdn_tile.matmul %[[K:.+]], %[[SN]] : vector<32x16xf16>, vector<16x64xf16> -> vector<32x64xf32>
//       CHECK:     %[[W:.+]] = gdn_tile.map_rows {{.*}} -> vector<32x64xf16>
//       CHECK:       arith.truncf %{{.+}} : vector<64xf32> to vector<64xf16>
// The output.
//       CHECK:     gdn_tile.matmul %{{.+}}, %[[SN]] : vector<32x16xf16>, vector<16x64xf16> -> vector<32x64xf32>
//       CHECK:     gdn_tile.matmul %[[Z]], %[[W]] acc(%{{.+}} : vector<32x64xf32>) {lower_lhs}
// The next state, in f32.
//       CHECK:     %[[NEXT:.+]] = gdn_tile.matmul transpose %[[Y]], %[[W]] acc(%{{.+}} : vector<16x64xf32>) : vector<32x16xf16>, vector<32x64xf16> -> vector<16x64xf32>
//       CHECK:     scf.yield %[[NEXT]] : vector<16x64xf32>

// Keys, queries and the state in the type of the keys in memory.
//    IO-LABEL: func.func @prefill
//     IO-SAME:   facts = {chunk = "32", chunk_from = "1", precision = "mixed-io"}
//          IO:   gdn_tile.matmul {{.*}} : vector<32x16xbf16>, vector<16x32xbf16> -> vector<32x32xf32>
//          IO:   gdn_tile.matmul {{.*}} : vector<32x16xbf16>, vector<16x32xbf16> -> vector<32x32xf32>
//          IO:   gdn_tile.tri_inverse %{{.+}} : vector<32x32xf16>
//          IO:   gdn_tile.matmul {{.*}} : vector<32x32xf16>, vector<32x32xf16> -> vector<32x32xf32>
//          IO:   gdn_tile.matmul transpose {{.*}} : vector<32x32xf16>, vector<32x16xf16> -> vector<32x16xf32>
//          IO:   gdn_tile.matmul {{.*}} : vector<32x16xbf16>, vector<16x64xbf16> -> vector<32x64xf32>
//          IO:   gdn_tile.matmul {{.*}} : vector<32x16xbf16>, vector<16x64xbf16> -> vector<32x64xf32>
//          IO:   gdn_tile.matmul {{.*}} : vector<32x32xf16>, vector<32x64xf16> -> vector<32x64xf32>
//          IO:   gdn_tile.matmul transpose {{.*}} : vector<32x16xf16>, vector<32x64xf16> -> vector<16x64xf32>

//   F32-LABEL: func.func @prefill
//    F32-SAME:   facts = {chunk = "32", chunk_from = "1", precision = "f32"}
//         F32:   gdn_tile.tri_inverse %{{.+}} : vector<32x32xf32>
//         F32:   gdn_tile.matmul transpose {{.*}} : vector<32x16xf32>, vector<32x64xf32> -> vector<16x64xf32>
func.func @prefill(
    %q: tensor<?x?x16xbf16> {gdn.name = "q", gdn.dims = ["T", "Hk", "16"]},
    %k: tensor<?x?x16xbf16> {gdn.name = "k", gdn.dims = ["T", "Hk", "16"]},
    %v: tensor<?x?x64xbf16> {gdn.name = "v", gdn.dims = ["T", "Hv", "64"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %pool: !gdn.pool<?x?x64x16xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "16"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]})
    -> (tensor<?x?x64xbf16> {gdn.name = "core", gdn.dims = ["T", "Hv", "64"]})
    attributes {gdn.entry} {
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x16xbf16>, tensor<?x?x16xbf16>, tensor<?x?x64xbf16>, tensor<?x?xf32>,
        tensor<?x?xf32>, !gdn.pool<?x?x64x16xf32>, tensor<?xi32>, tensor<?xi32>
        -> tensor<?x?x64xbf16>
  return %o : tensor<?x?x64xbf16>
}
