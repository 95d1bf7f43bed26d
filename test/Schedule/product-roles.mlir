// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loop over chunks with their intra-chunk work, in five roles: one copies keys and queries by
// tensor maps, one makes gates, one scales rows of keys, the producer makes the rest of what needs
// no state, two chunks at a time, and the consumers have the inter-chunk recurrence. A group of the
// consumers has columns of values and outputs for itself, and meets no other there. With half of the
// values for a block the consumers are one group, and those that load and scale are groups of their
// own. A stage that overlaps with the next lets it begin at once, and that one ends when the first
// has ended.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=fused-by-lengths:fused=2;by-lengths=165/132;when=2<=sequences&sequences<=8&51*workers<=100*sequences*heads&sequences*heads<=workers&4096*sequences<=tokens,fused:fused=2;when=256*sequences<=tokens&(51*workers<=100*sequences*heads&sequences*heads<=workers|150*workers<=100*sequences*heads&sequences*heads<=2*workers|220*workers<=100*sequences*heads),fused-v-split-2:fused=2;v-split=2;when=256*sequences<=tokens&(12*workers<=100*sequences*heads&2*sequences*heads<=workers|100*workers<=100*sequences*heads&2*sequences*heads<=3*workers),staged: value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-tile-products="warps=12" -gdn-gpu-use-warpgroups -canonicalize -cse -gdn-gpu-place-barriers -gdn-gpu-overlap-products -gdn-gpu-check | FileCheck %s
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=fused-by-lengths:fused=2;by-lengths=165/132;when=2<=sequences&sequences<=8&51*workers<=100*sequences*heads&sequences*heads<=workers&4096*sequences<=tokens,fused:fused=2;when=256*sequences<=tokens&(51*workers<=100*sequences*heads&sequences*heads<=workers|150*workers<=100*sequences*heads&sequences*heads<=2*workers|220*workers<=100*sequences*heads),fused-segments-5:fused=2;v-split=2;segments=5,fused-v-split-2:fused=2;v-split=2;when=256*sequences<=tokens&(12*workers<=100*sequences*heads&2*sequences*heads<=workers|100*workers<=100*sequences*heads&2*sequences*heads<=3*workers),staged: value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-tile-products="warps=12" -gdn-gpu-use-warpgroups -canonicalize -cse -gdn-gpu-place-barriers -gdn-gpu-overlap-products -gdn-gpu-check | FileCheck %s --check-prefix=BESIDE
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=fused-by-lengths:fused=2;by-lengths=165/132;when=2<=sequences&sequences<=8&51*workers<=100*sequences*heads&sequences*heads<=workers&4096*sequences<=tokens,fused:fused=2;when=256*sequences<=tokens&(51*workers<=100*sequences*heads&sequences*heads<=workers|150*workers<=100*sequences*heads&sequences*heads<=2*workers|220*workers<=100*sequences*heads),fused-segments-5:fused=2;v-split=2;segments=5,fused-v-split-2:fused=2;v-split=2;when=256*sequences<=tokens&(12*workers<=100*sequences*heads&2*sequences*heads<=workers|100*workers<=100*sequences*heads&2*sequences*heads<=3*workers),staged: value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-tile-products="warps=12" -gdn-gpu-use-warpgroups -canonicalize -cse -gdn-gpu-place-barriers -gdn-gpu-overlap-products -gdn-gpu-check | grep -B 6 await_launch | FileCheck %s --check-prefix=FIRST
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=fused-by-lengths:fused=2;by-lengths=165/132;when=2<=sequences&sequences<=8&51*workers<=100*sequences*heads&sequences*heads<=workers&4096*sequences<=tokens,fused:fused=2;when=256*sequences<=tokens&(51*workers<=100*sequences*heads&sequences*heads<=workers|150*workers<=100*sequences*heads&sequences*heads<=2*workers|220*workers<=100*sequences*heads),fused-v-split-2:fused=2;v-split=2;when=256*sequences<=tokens&(12*workers<=100*sequences*heads&2*sequences*heads<=workers|100*workers<=100*sequences*heads&2*sequences*heads<=3*workers),staged: value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse | sed 's/same_chunks = 2 : i64, //' | gdn-opt -gdn-schedule-tile-products="warps=12" -gdn-gpu-use-warpgroups -canonicalize -cse -gdn-gpu-place-barriers -gdn-gpu-overlap-products -gdn-gpu-check | FileCheck %s --check-prefix=APART

// CHECK-LABEL: func.func @prefill__inter_chunk_fused(
//  CHECK-SAME:   threads = 512 : i64
//       CHECK:   gdn_gpu.alloc : <80x64xf16, swizzled>
//       CHECK:   %[[SCALED:.+]] = gdn_gpu.channel : <64x128xf16, depth = 1, swizzled>
//       CHECK:   %[[MADE:.+]] = gdn_gpu.channel : <64x64xf16, depth = 2, swizzled>
//       CHECK:   gdn_gpu.channel : <64x64xf16, depth = 2, swizzled> with %[[MADE]]
//       CHECK:   %[[GATES:.+]] = gdn_gpu.channel : <64xf32, depth = 6>
//       CHECK:   %[[KEYS:.+]] = gdn_gpu.channel : <64x128xbf16, depth = 4, swizzled>
//       CHECK:   %[[QUERIES:.+]] = gdn_gpu.channel : <64x128xbf16, depth = 4, swizzled> with %[[KEYS]]
//       CHECK:   gdn_gpu.warps 0 for 8 registers 192 {
//       CHECK:     gdn_gpu.begin_copy per_warpgroup
//       CHECK:     scf.for
//   CHECK-NOT:     gdn_gpu.barrier
//       CHECK:       gdn_gpu.receive %[[KEYS]]
//       CHECK:       gdn_gpu.start_matmul
//       CHECK:       gdn_gpu.start_matmul
// The outputs of the turn before, if there was one, and when these have been read
// the next values.
//       CHECK:       gdn_gpu.copy_out tensor_map %[[OUT:[0-9]+]], %arg{{.*}} rows(%{{.+}})
//       CHECK:       gdn_gpu.release %[[KEYS]]
//       CHECK:       gdn_gpu.receive %[[GATES]]
//       CHECK:       gdn_gpu.await_copies
//       CHECK:       gdn_gpu.load_shared transpose
//       CHECK:       gdn_gpu.begin_copy per_warpgroup
//       CHECK:       gdn_gpu.receive %[[MADE]]
// X, then the outputs and the state from it. What is scaled has one buffer, so that it is
// received as late as can be: behind the decay of the state that it is added to, and ahead of
// that of the outputs.
//   CHECK-NOT:       gdn_gpu.receive %[[SCALED]]
//       CHECK:       %[[X:.+]] = gdn_gpu.start_matmul
//       CHECK:       gdn_gpu.await_matmul %[[X]]
//       CHECK:       %[[DECAYED:.+]] = gdn_gpu.map_rows %{{arg[0-9]+}} :
//       CHECK:       gdn_gpu.receive %[[SCALED]]
//  CHECK-NEXT:       gdn_gpu.load_shared
//  CHECK-NEXT:       %[[OUTPUTS:.+]] = gdn_gpu.map_rows
//       CHECK:       gdn_gpu.start_matmul {{.+}} acc(%[[OUTPUTS]] :
//  CHECK-NEXT:       gdn_gpu.start_matmul {{.+}} acc(%[[DECAYED]] :
//       CHECK:       gdn_gpu.store_shared transpose %{{.+}}, %[[OUT]]
//       CHECK:       gdn_gpu.release %[[SCALED]]
//       CHECK:       gdn_gpu.release %[[MADE]]
//       CHECK:       scf.yield
//       CHECK:     gdn_gpu.copy_out %[[OUT]]
//       CHECK:   gdn_gpu.warps 8 for 4 registers 104 {
//       CHECK:     scf.for %{{.+}} step %c128
//       CHECK:       gdn_gpu.receive %[[KEYS]]
//       CHECK:       gdn_gpu.receive ahead %[[KEYS]]
//       CHECK:       gdn_gpu.start_matmul
//       CHECK:       gdn_gpu.start_matmul
//       CHECK:       gdn_gpu.tri_inverse transposed %{{.+}}, %{{.+}} in
//       CHECK:       math.exp2
// What of the second chunk waits for no product comes ahead of the commit of the first, but
// takes no buffer yet.
//       CHECK:       gdn_gpu.acquire %[[MADE]]
//       CHECK:       gdn_gpu.start_matmul
//       CHECK:       gdn_gpu.start_matmul
//   CHECK-NOT:       gdn_gpu.commit
//   CHECK-NOT:       gdn_gpu.acquire
//       CHECK:       math.exp2
//       CHECK:       gdn_gpu.commit %[[MADE]]
//       CHECK:       gdn_gpu.release %[[KEYS]]
//       CHECK:       gdn_gpu.acquire %[[MADE]]
//       CHECK:       gdn_gpu.commit %[[MADE]]
//       CHECK:       gdn_gpu.release %[[KEYS]]
//       CHECK:   gdn_gpu.warps 12 for 1 registers 24 {
//       CHECK:     scf.for
//       CHECK:       gdn_gpu.acquire %[[KEYS]]
//       CHECK:       gdn_gpu.begin_copy tensor_map
//       CHECK:       gdn_gpu.begin_copy tensor_map
//   CHECK-NOT:       %[[GATES]]
//       CHECK:       gdn_gpu.await_copies
//       CHECK:       gdn_gpu.commit %[[KEYS]]
// Gates wait for no place of keys. A turn asks for the inputs of the next, and the first has no
// chunk.
//       CHECK:   gdn_gpu.warps 13 for 1 registers 24 {
//       CHECK:     %[[BEFORE:.+]] = arith.subi %[[BEGIN:.+]], %c64
//       CHECK:     scf.for %[[AT:.+]] = %[[BEFORE]] to %{{.+}} step %c64 iter_args(
//       CHECK:       %[[NEXT:.+]] = gdn_gpu.load
//   CHECK-NOT:       %[[KEYS]]
//       CHECK:       %[[IS:.+]] = arith.cmpi sge, %[[AT]], %[[BEGIN]]
//   CHECK-NOT:       gdn_gpu.acquire
//       CHECK:       scf.if %[[IS]] {
//       CHECK:         gdn_gpu.acquire %[[GATES]]
//   CHECK-NOT:         gdn_gpu.load
//       CHECK:         gdn_gpu.commit %[[GATES]]
//  CHECK-NEXT:       }
//  CHECK-NEXT:       scf.yield %[[NEXT]]
//       CHECK:   gdn_gpu.warps 14 for 2 registers 24 {
//       CHECK:       %[[KEY:.+]] = gdn_gpu.receive %[[KEYS]]
//       CHECK:       gdn_gpu.receive %[[GATES]]
//       CHECK:       %[[TO:.+]] = gdn_gpu.acquire %[[SCALED]]
// CHECK-COUNT-8:       gdn_gpu.store_shared %{{.+}}, %[[TO]] row(%{{.+}}) : <8x128xf16
//       CHECK:       gdn_gpu.commit %[[SCALED]]
//       CHECK:       gdn_gpu.release %[[KEYS]]

// CHECK-LABEL: func.func @prefill__inter_chunk_fused_v_split_2(
// Two blocks have the same chunks, and each prepares every second one for both.
//  CHECK-SAME:   cluster = 2 : i64
//  CHECK-SAME:   threads = 512 : i64
//       CHECK:   %[[SCALED2:.+]] = gdn_gpu.channel paired : <64x128xf16, depth = 2, swizzled>
//       CHECK:   %[[MADE2:.+]] = gdn_gpu.channel paired : <64x64xf16, depth = 2, swizzled>
//       CHECK:   gdn_gpu.channel paired : <64x64xf16, depth = 2, swizzled> with %[[MADE2]]
//       CHECK:   %[[GATES2:.+]] = gdn_gpu.channel paired : <64xf32, depth = 6>
//       CHECK:   %[[KEYS2:.+]] = gdn_gpu.channel : <64x128xbf16, depth = 4, swizzled>
//       CHECK:   gdn_gpu.warps 0 for 4 registers 240 {
// The consumers await outputs of the state when it has worked on values.
//       CHECK:     scf.for {{.+}} step %c64
//       CHECK:       %[[U:.+]] = gdn_gpu.start_matmul
//       CHECK:       %[[O:.+]] = gdn_gpu.start_matmul
//       CHECK:       gdn_gpu.receive %[[GATES2]]
//       CHECK:       gdn_gpu.await_matmul %[[U]]
//       CHECK:       gdn_gpu.begin_copy per_warpgroup
//       CHECK:       gdn_gpu.await_matmul %[[O]]
//       CHECK:       gdn_gpu.release %[[KEYS2]]
//       CHECK:       gdn_gpu.receive %[[MADE2]]
//       CHECK:   gdn_gpu.warps 4 for 4 registers 128 alternate {
//       CHECK:     %[[BLOCK:.+]] = gdn_gpu.block_id 2
//       CHECK:     %[[SKIP:.+]] = arith.muli %[[BLOCK]], %c64
//       CHECK:     %[[FROM:.+]] = arith.addi %{{.+}}, %[[SKIP]]
//       CHECK:     scf.for %{{.+}} = %[[FROM]] to %{{.+}} step %c128
//       CHECK:       gdn_gpu.receive %[[KEYS2]]
//   CHECK-NOT:       gdn_gpu.receive ahead
//       CHECK:       gdn_gpu.tri_inverse transposed %{{[^,]+}} in
//       CHECK:       gdn_gpu.commit %[[MADE2]]
//       CHECK:       gdn_gpu.release %[[KEYS2]]
// Keys and queries of all chunks: both blocks multiply the state by them.
//       CHECK:   gdn_gpu.warps 8 for 2 registers 72 {
//       CHECK:     scf.for {{.+}} step %c64
//       CHECK:   gdn_gpu.warps 10 for 2 registers 72 alternate {
//       CHECK:   gdn_gpu.warps 12 for 4 registers 72 alternate {
// Each of its warps scales rows of its own, four at once.
//       CHECK:     gdn_gpu.load_shared %{{.+}} row(%c0) : {{.+}} -> {{.*}}<16x128xbf16,
// Of a stage beside another the first block waits for it.
//       FIRST: %[[Y:.+]] = arith.cmpi eq, %{{.+}}, %c0
//  FIRST-NEXT: %[[XY:.+]] = arith.andi %{{.+}}, %[[Y]]
//  FIRST-NEXT: %[[Z:.+]] = arith.cmpi eq, %{{.+}}, %c0
//  FIRST-NEXT: %[[ALL:.+]] = arith.andi %[[XY]], %[[Z]]
//  FIRST-NEXT: scf.if %[[ALL]] {
//  FIRST-NEXT:   gdn_gpu.await_launch

// BESIDE-LABEL: func.func @prefill__inter_chunk_fused(
//   BESIDE-NOT:   _launch
// BESIDE-LABEL: func.func @prefill__maps_fused_segments_5(
// Both maps of a segment are of the same chunks.
//  BESIDE-SAME:   cluster = 2
//   BESIDE-NOT:   gdn_gpu.await_launch
//       BESIDE:   gdn_gpu.release_launch
// A block looks for its sequence once, ahead of all roles.
//   BESIDE-NOT:   gdn_gpu.warps
//       BESIDE:   scf.for %
//   BESIDE-NOT:   gdn_gpu.warps
//       BESIDE:   gdn_gpu.roles
//   BESIDE-NOT:   _launch
// BESIDE-LABEL: func.func @prefill__first_fused_segments_5(
//   BESIDE-NOT:   _launch
//       BESIDE:   gdn_gpu.roles
//   BESIDE-NOT:   _launch
//       BESIDE:     gdn_gpu.await_launch
//  BESIDE-NEXT:   }
//  BESIDE-NEXT:   return
// BESIDE-LABEL: func.func @prefill__scan_fused_segments_5(
//   BESIDE-NOT:   _launch
// With three blocks of the same chunks nobody has a neighbour, and each prepares its own.
// APART-LABEL: func.func @prefill__inter_chunk_fused_v_split_2(
//   APART-NOT:   cluster
//       APART:   threads = 512 : i64
//   APART-NOT:   gdn_gpu.channel paired
//       APART:   gdn_gpu.warps 0 for 4 registers 208 {
//       APART:     scf.for {{.+}} step %c64
//       APART:   gdn_gpu.warps 4 for 4 registers 160 {
//       APART:     scf.for {{.+}} step %c128
//       APART:       gdn_gpu.receive ahead
//       APART:       gdn_gpu.tri_inverse transposed %{{.+}}, %{{.+}} in
//   APART-NOT:   alternate
// APART-LABEL: func.func @prefill__intra_chunk(
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
