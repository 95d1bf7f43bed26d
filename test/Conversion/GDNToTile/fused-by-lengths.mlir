// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Few long sequences: two recurrences, of whole heads and of V-splits of two, whose blocks look at
// the sequence bounds and go on in one of them, the longest sequence first. The second
// begins beside the first.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=fused-by-lengths:fused=2;by-lengths=165/132;when=2<=sequences&sequences<=8&51*workers<=100*sequences*heads&sequences*heads<=workers&4096*sequences<=tokens,fused:fused=2;when=256*sequences<=tokens&(51*workers<=100*sequences*heads&sequences*heads<=workers|150*workers<=100*sequences*heads&sequences*heads<=2*workers|220*workers<=100*sequences*heads),staged: value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse | FileCheck %s
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged value-heads" -canonicalize -cse | FileCheck %s --check-prefix=SPLIT

// SPLIT-NOT: by-lengths

// CHECK-LABEL: func.func @prefill__inter_chunk_by_lengths_1(
//  CHECK-SAME:   bits = "fused"
//  CHECK-SAME:   conditions = {{\[\[}}["2"], ["N"]], {{\[}}["N"], ["8"]], {{\[}}["51", "workers"], ["100", "N", "Hv"]], {{\[}}["N", "Hv"], ["workers"]], {{\[}}["4096", "N"], ["T"]]]
//  CHECK-SAME:   grid = ["N + 1", "Hv"]
//  CHECK-SAME:   overlaps = "next"
//  CHECK-SAME:   variant = "fused-by-lengths"
// The longest sequence, its tokens, those of all, the last bound.
//       CHECK:   %[[SEQUENCES:.+]]:4 = scf.for %[[SEQUENCE:.+]] = %c0 to %{{.+}} step %c1 iter_args(%[[AT:.+]] = %c0, %[[MOST:.+]] = %c0, %[[ALL:.+]] = %c0, %[[LAST:.+]] = %{{.+}}) -> (index, index, index, index)
//       CHECK:     %[[TOKENS:.+]] = arith.subi %{{.+}}, %[[LAST]]
//       CHECK:     %[[LONGER:.+]] = arith.cmpi ugt, %[[TOKENS]], %[[MOST]]
//   CHECK-DAG:     %[[NEXT:.+]] = arith.select %[[LONGER]], %[[SEQUENCE]], %[[AT]]
//   CHECK-DAG:     %[[LONGEST:.+]] = arith.maxui %[[TOKENS]], %[[MOST]]
//   CHECK-DAG:     %[[SUM:.+]] = arith.addi %[[TOKENS]], %[[ALL]]
//       CHECK:     scf.yield %[[NEXT]], %[[LONGEST]], %[[SUM]], %{{.+}}
//       CHECK:   %[[OTHERS:.+]] = arith.subi %[[SEQUENCES]]#2, %[[SEQUENCES]]#1
// None counts where all halves fit beside each other.
//       CHECK:   %[[FIT:.+]] = arith.cmpi ule, %{{.+}}, %c132
//       CHECK:   %[[REST:.+]] = arith.select %[[FIT]], %c0, %[[OTHERS]]
//       CHECK:   %[[COST:.+]] = arith.muli %{{.+}}, %[[REST]]
//       CHECK:   %[[LIMIT:.+]] = arith.muli %[[SEQUENCES]]#1, %c165
//       CHECK:   %[[WHOLE:.+]] = arith.cmpi uge, %[[COST]], %[[LIMIT]]
// The longest sequence first, the others behind it.
//       CHECK:   %[[LATER:.+]] = arith.cmpi ule, %[[PLACE:.+]], %[[SEQUENCES]]#0
//       CHECK:   %[[OTHER:.+]] = arith.select %[[LATER]], %{{.+}}, %[[PLACE]]
//       CHECK:   arith.select %{{.+}}, %[[SEQUENCES]]#0, %[[OTHER]]
//       CHECK:   %[[LIVE:.+]] = arith.andi %{{.+}}, %[[WHOLE]]
//       CHECK:   scf.if %[[LIVE]]
//       CHECK:     -> (vector<128x64xf32>)

// CHECK-LABEL: func.func @prefill__inter_chunk_by_lengths_2(
//  CHECK-SAME:   bits = "fused"
//  CHECK-SAME:   grid = ["N + 1", "Hv", "2"]
//  CHECK-SAME:   overlaps = "last"
//       CHECK:   %[[VSPLIT:.+]] = arith.cmpi ult, %{{.+}}, %{{.+}}
//       CHECK:   scf.if
//       CHECK:     -> (vector<64x64xf32>)

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
