// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Blocks of whole heads that stay for one unit after the other: the role of gates takes the next
// unit, and each other role is told its number where it ends with the one before. Channels go on
// from unit to unit, so a chunk that the producer has beside the last one is given back, too; and
// no copy of values is left under way.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=fused:fused=2;blocks=stay,staged: value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-tile-products="warps=12" -gdn-gpu-use-warpgroups -canonicalize -cse -gdn-gpu-place-barriers -gdn-gpu-overlap-products -gdn-gpu-check | FileCheck %s
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=fused-v-split-2:fused=2;v-split=2,staged: value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse | sed 's/same_chunks = 2/blocks_stay = 1 : i64, same_chunks = 2/' | not gdn-opt -gdn-schedule-tile-products="warps=12" 2>&1 | FileCheck %s --check-prefix=PAIR

// PAIR: expects no pairs of blocks, and one warp for gates, where blocks stay

// CHECK-LABEL: func.func @prefill__inter_chunk_fused_stay(
//  CHECK-SAME:   blocks_per_sm = 1 : i64
//  CHECK-SAME:   counters = ["1"]
//       CHECK:   %[[SCALED:.+]] = gdn_gpu.channel : <64x128xf16, depth = 1, swizzled>
//       CHECK:   %[[MADE:.+]] = gdn_gpu.channel : <64x64xf16, depth = 2, swizzled>
//       CHECK:   %[[GATES:.+]] = gdn_gpu.channel : <64xf32, depth = 6>
//       CHECK:   %[[KEYS:.+]] = gdn_gpu.channel : <64x128xbf16, depth = 4, swizzled>
//       CHECK:   %[[UNITS:.+]] = gdn_gpu.channel : <1xf32, depth = 1>
//  CHECK-NEXT:   gdn_gpu.roles {
//  CHECK-NEXT:   gdn_gpu.warps 0 for 8 registers 192 {
//  CHECK-NEXT:     gdn_gpu.units taken {
//       CHECK:       gdn_gpu.block_id 0
//       CHECK:       gdn_gpu.start_matmul
//       CHECK:       gdn_gpu.await_copies
//       CHECK:       %[[IS_ODD:.+]] = arith.cmpi eq, %{{.+}}, %c1
//  CHECK-NEXT:       scf.if %[[IS_ODD]] {
//  CHECK-NEXT:         gdn_gpu.receive %[[KEYS]]
//  CHECK-NEXT:         gdn_gpu.receive %[[GATES]]
//  CHECK-NEXT:         gdn_gpu.receive %[[MADE]]
//  CHECK-NEXT:         gdn_gpu.release %[[MADE]]
//  CHECK-NEXT:         gdn_gpu.release %[[GATES]]
//  CHECK-NEXT:         gdn_gpu.release %[[KEYS]]
//  CHECK-NEXT:       }
//       CHECK:       %[[TOLD:.+]] = gdn_gpu.receive %[[UNITS]]
//       CHECK:       gdn_gpu.load_shared_element %[[TOLD]]
//       CHECK:       gdn_gpu.release %[[UNITS]]
//       CHECK:       gdn_gpu.yield %{{.+}} : index
//       CHECK:   gdn_gpu.warps 8 for 4 registers 104 {
//  CHECK-NEXT:     gdn_gpu.units taken {
//       CHECK:       gdn_gpu.release %[[KEYS]]
//       CHECK:       gdn_gpu.release %[[KEYS]]
//   CHECK-NOT:       gdn_gpu.release
//       CHECK:       gdn_gpu.receive %[[UNITS]]
//       CHECK:   gdn_gpu.warps 12 for 1 registers 24 {
//  CHECK-NEXT:     gdn_gpu.units taken {
//       CHECK:       gdn_gpu.receive %[[UNITS]]
//       CHECK:   gdn_gpu.warps 13 for 1 registers 24 {
//  CHECK-NEXT:     gdn_gpu.units taken {
//       CHECK:       %[[NEXT:.+]] = gdn_gpu.take_unit
//       CHECK:       %[[PLACE:.+]] = gdn_gpu.acquire %[[UNITS]]
//       CHECK:       gdn_gpu.store_shared %{{.+}}, %[[PLACE]]
//       CHECK:       gdn_gpu.commit %[[UNITS]]
//  CHECK-NEXT:       gdn_gpu.yield %[[NEXT]] : index
//       CHECK:   gdn_gpu.warps 14 for 2 registers 24 {
//  CHECK-NEXT:     gdn_gpu.units taken {
// Who scales has no chunk beside the last one, either.
//       CHECK:       gdn_gpu.commit %[[SCALED]]
//       CHECK:       scf.if
//  CHECK-NEXT:         gdn_gpu.receive %[[KEYS]]
//  CHECK-NEXT:         gdn_gpu.receive %[[GATES]]
//  CHECK-NEXT:         gdn_gpu.release %[[GATES]]
//  CHECK-NEXT:         gdn_gpu.release %[[KEYS]]
//       CHECK:       gdn_gpu.receive %[[UNITS]]

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
