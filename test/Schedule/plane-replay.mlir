// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decode with states in two planes: bytes in registers, of which two blocks fit
// beside each other; products without the pending tokens; and the state in f32 only
// where it receives them, all rows at once, from what threads have loaded.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile=value-heads -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-persistent-recurrence="replay-units=300 shared-bytes=115712" -gdn-schedule-resident-recurrence -canonicalize -cse -o %t
// RUN: FileCheck %s < %t
// RUN: gdn-gpu-opt %t | gdn-gpu-opt -gdn-gpu-place-barriers -gdn-gpu-check -o /dev/null
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile=value-heads -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-resident-recurrence="crowded-units=4096 sparse-units=264" -canonicalize -cse -o %t.crowded
// RUN: FileCheck %s --check-prefix=CROWDED < %t.crowded
// RUN: gdn-gpu-opt %t.crowded | gdn-gpu-opt -gdn-gpu-place-barriers -gdn-gpu-check -o /dev/null
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile=value-heads -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-resident-recurrence="sparse-units=264 sparse-rows=48" | FileCheck %s --check-prefix=TURNS
//
// Launches of two turns of blocks take the variant "sparse" of the upper plane, too, if they
// have many rows.
//
// TURNS-LABEL: func.func @upper_sparse(
//  TURNS-SAME:   conditions = {{\[\[\["N", "Hv"\], \["528"\]\], \{any = \[\[\[\["N", "Hv"\], \["264"\]\]\], \[\[\["397"\], \["N", "Hv"\]\], \[\["48"\], \["N"\]\]\]\]\}\]}}

// RUN: sed 's/?x?x16x/?x?x10x/g; s/"16"/"10"/g' %s | gdn-opt -gdn-fuse -convert-gdn-to-tile=value-heads -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-resident-recurrence -canonicalize -cse -o %t.odd
// RUN: FileCheck %s --check-prefix=ODD < %t.odd
// RUN: gdn-gpu-opt %t.odd -gdn-gpu-place-barriers -gdn-gpu-check -o /dev/null
//
// Of ten tokens, with room for twelve.
//
//   ODD-LABEL: func.func @decode(
//         ODD:   gdn_gpu.begin_copy %{{.+}} : memref<?x?x10x128xf32, {{.+}}>, <12x128xf32>
//         ODD:   gdn_gpu.share_column_parts spread %{{.+}} : <12x128xf32>, <128x32xbf16>
//         ODD:   gdn_gpu.add_part_products %{{.+}} : <128x128xf32, {{.+}}>, <12x128xf32>

// For many sequences the same with four warps, and more blocks beside each other.
//
// Its last warp, which makes no operand, waits for the count and copies tokens; the
// others ask for the state, and get the count with the tokens. So the gates are made by
// the warp of the value, which asks for what they are made of ahead of its other work.
//
//   CROWDED-DAG: #[[$CROSSED:.+]] = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 16, crossed = true>
// CROWDED-LABEL: func.func @decode_crowded(
//  CROWDED-SAME:   min_blocks = 4 : i64, threads = 128
//  CROWDED-SAME:   conditions = {{\[\[\["4096"\], \["N", "Hv"\]\]\]}}
//  CROWDED-SAME:   variant = "crowded"
//   CROWDED-NOT:   memref.load %{{.+}} : memref<?x?xi32
//       CROWDED:   gdn_gpu.begin_copy scattered %{{.+}} dims [1] rows(%c1), %[[COUNT:.+]] : memref<?x?xi32, {{.+}}>, <4xi32>
//  CROWDED-NEXT:   gdn_gpu.warps 3 for 1 {
//       CROWDED:     memref.load %{{.+}} : memref<?x?xi32
// CROWDED-COUNT-3:     gdn_gpu.begin_copy
//       CROWDED:   }
//       CROWDED:   gdn_gpu.load %{{.+}} <128x128xi8,
//       CROWDED:   gdn_gpu.warps 2 for 1 {
//  CROWDED-NEXT:     gdn_gpu.load %{{.+}} <1x128xbf16,
//  CROWDED-NEXT:     gdn_gpu.load %{{.+}} <1xf32,
//  CROWDED-NEXT:     gdn_gpu.load %{{.+}} <1xf32,
// CROWDED-COUNT-3:     gdn_gpu.store_shared
//  CROWDED-NEXT:   }
//  CROWDED-NEXT:   gdn_gpu.await_copies
//  CROWDED-NEXT:   gdn_gpu.barrier
//       CROWDED:   gdn_gpu.load_shared_element %[[COUNT]][%c0] : <4xi32> -> i32
//       CROWDED:   gdn_gpu.add_part_products %{{.+}} : <32x128xf32, {{.+}}>, <64x32xf32>
// CROWDED-LABEL: func.func @decode(
//  CROWDED-SAME:   min_blocks = 2 : i64, threads = 256
//       CROWDED:   memref.load %{{.+}} : memref<?x?xi32
//   CROWDED-NOT:   gdn_gpu.begin_copy scattered %{{.+}} : memref<?x?xi32
// Beside one plane the warp that copies tokens also makes what remains of them and of the
// state, and one barrier is enough ahead of the products.
//
// CROWDED-LABEL: func.func @upper_crowded(
//  CROWDED-SAME:   min_blocks = 6 : i64, threads = 128
//       CROWDED:   %[[COPIED:.+]] = gdn_gpu.warps 3 for 1 -> i32 {
// CROWDED-COUNT-2:     gdn_gpu.begin_copy
//  CROWDED-NEXT:     arith.index_cast
//  CROWDED-NEXT:     gdn_gpu.yield
//       CROWDED:   gdn_gpu.await_launch
//       CROWDED:   %[[ROWS:.+]] = arith.index_cast %[[COPIED]] : i32 to index
//       CROWDED:   %[[DECAYS:.+]] = gdn_gpu.load %{{.+}} rows(%[[ROWS]]) : memref<?x?x16xf32, {{.+}}>, <16xf32,
// CROWDED-COUNT-16:   gdn_gpu.extract %[[DECAYS]]
//       CROWDED:   gdn_gpu.store_shared %{{.+}}, %{{.+}} : <16xf32, {{.+}}>, <16xf32>
//       CROWDED:   gdn_gpu.store_shared %{{.+}}, %[[KEPT:.+]] : <1xf32, {{.+}}>, <1xf32>
//       CROWDED:   gdn_gpu.await_copies
//  CROWDED-NEXT:   gdn_gpu.barrier
//   CROWDED-NOT:   gdn_gpu.barrier
//       CROWDED:   gdn_gpu.load_shared_element %[[KEPT]][%c0] : <1xf32> -> f32
//   CROWDED-NOT:   gdn_gpu.{{barrier|take_ticket}}
//       CROWDED:   gdn_gpu.share_byte_products
//       CROWDED:   gdn_gpu.add_part_products
// Who is the last to have read the pending keys is asked behind the products: an answer
// would be spilled beside the state.
//       CROWDED:   gdn_gpu.take_ticket
//  CROWDED-NEXT:   gdn_gpu.yield
//  CROWDED-NEXT:   }
//  CROWDED-NEXT:   gdn_gpu.barrier
//       CROWDED:   gdn_gpu.store
//
// Where all blocks have room two are enough, and the state stays in registers for a
// fold; the lower plane comes to shared memory where it is to receive its tokens.
//
// CROWDED-LABEL: func.func @upper_sparse(
//  CROWDED-SAME:   min_blocks = 2 : i64, threads = 256
//  CROWDED-SAME:   conditions = {{\[\[\["N", "Hv"\], \["264"\]\]\]}}
//  CROWDED-SAME:   variant = "sparse"
//       CROWDED:   %[[UPPER:.+]] = gdn_gpu.load %{{.+}} <128x128xi8,
//       CROWDED:   %[[SCALES:.+]] = gdn_gpu.load %{{.+}} <128xf32,
//       CROWDED:   %[[ROWS:.+]] = arith.select %{{.+}}, %c128, %c0 : index
//       CROWDED:   gdn_gpu.begin_copy %{{.+}} rows(%[[ROWS]]), %[[LOW:.+]] : {{.+}} <128x128xi8>
//       CROWDED:   gdn_gpu.await_launch
//       CROWDED:   gdn_gpu.share_byte_products %[[UPPER]] low() scales(%[[SCALES]]),
//       CROWDED:   scf.if
//  CROWDED-NEXT:     gdn_gpu.share_column_parts spread
//       CROWDED:   gdn_gpu.arrive for 7
//       CROWDED:   gdn_gpu.warps 7 for 1 {
//  CROWDED-NEXT:     gdn_gpu.await_arrivals
//       CROWDED:   scf.if
//       CROWDED:     gdn_gpu.load_shared %[[LOW]] row(%c0) : <128x128xi8> -> <128x128xi8,
//       CROWDED:     gdn_gpu.add_part_products
// CROWDED-COUNT-3:     gdn_gpu.store
//
// CROWDED-LABEL: func.func @upper(
//  CROWDED-SAME:   min_blocks = 3 : i64, threads = 256
//       CROWDED:   gdn_gpu.share_column_parts %
//       CROWDED:   scf.for

// A lane has pieces of sixteen columns. The sums over pending tokens are made ahead of
// the fold, ahead of which the last warp makes the output while others fold. There is no persistent kernel.
//
//   CHECK-DAG: #[[$PART:.+]] = #gdn_gpu.rows<warps = 8, lanes = 4, vector = 16>{{$}}
//   CHECK-NOT: func.func @decode_persistent
// CHECK-LABEL: func.func @decode(
//  CHECK-SAME:   gdn_gpu.allow = "spills up to 128 bytes:
//  CHECK-SAME:   min_blocks = 2
//       CHECK:   %[[UPPER:.+]] = gdn_gpu.load %{{.+}} dims [2, 3] aligned 16 : {{.+}} <128x128xi8, #[[$PART]]>
//       CHECK:   %[[SCALES:.+]] = gdn_gpu.load %{{.+}} dims [2] : {{.+}} <128xf32, #gdn_gpu.per_row<#[[$PART]]>>
//       CHECK:   %[[LOW:.+]] = gdn_gpu.load %{{.+}} dims [2, 3] aligned 16 : {{.+}} <128x128xi8, #[[$PART]]>
// What remains of pending tokens is made while the launch ahead runs.
//       CHECK:   gdn_gpu.warps 7 for 1 {
//       CHECK:     math.exp
//       CHECK:   gdn_gpu.await_launch
// A query and a key become three rows of bytes each, of which none counts where an
// element is not finite.
//       CHECK: %[[ENDLESS:.+]] = arith.cmpi uge, %{{.+}}, %c255_i32 : i32
//  CHECK-NEXT: arith.select %[[ENDLESS]], %{{.+}}, %{{.+}} : f32
// CHECK-COUNT-3: arith.trunci %{{.+}} : vector<128xi32> to vector<128xi8>
// CHECK-COUNT-3: arith.trunci %{{.+}} : vector<128xi32> to vector<128xi8>
//       CHECK:   gdn_gpu.share_byte_products %[[UPPER]] low(%[[LOW]]) scales(%[[SCALES]]), {{.+}} to(%c0), {{.+}} to(%c1), %{{.+}}
//       CHECK:   scf.if %[[FULL:.+]] {
//  CHECK-NEXT:     gdn_gpu.share_column_parts spread %{{.+}}, %[[KEYS:.+]] : <16x128xf32>, <128x32xbf16>
//       CHECK:   gdn_gpu.barrier
//       CHECK:   gdn_gpu.warps 0 for 4
//       CHECK:   gdn_gpu.arrive for 7
//  CHECK-NEXT:   gdn_gpu.warps 7 for 1 {
//  CHECK-NEXT:     gdn_gpu.await_arrivals
//       CHECK:   scf.if %[[FULL]] {
//   CHECK-NOT:     gdn_gpu.load %
//       CHECK:     gdn_gpu.add_part_products %{{.+}}, %{{.+}}, %{{.+}}, %[[KEYS]] : <128x128xf32, #[[$PART]]>, <16x128xf32>,
//   CHECK-NOT:     gdn_gpu.barrier
// CHECK-COUNT-3:     gdn_gpu.store
//   CHECK-NOT:   gdn_gpu.barrier
func.func @decode(%Hk: index {gdn.name = "Hk"}, %Hv: index {gdn.name = "Hv"}, %q: tensor<?x?x128xbf16> {gdn.dims = ["N", "Hk", "128"], gdn.name = "q"}, %k: tensor<?x?x128xbf16> {gdn.dims = ["N", "Hk", "128"], gdn.name = "k"}, %v: tensor<?x?x128xbf16> {gdn.dims = ["N", "Hv", "128"], gdn.name = "v"}, %log_decay: tensor<?x?xf32> {gdn.dims = ["N", "Hv"], gdn.name = "log_decay"}, %beta: tensor<?x?xf32> {gdn.dims = ["N", "Hv"], gdn.name = "beta"}, %slots: tensor<?xi32> {gdn.dims = ["N"], gdn.name = "slots"}, %state_pool: !gdn.pool<?x?x128x128xi8> {gdn.dims = ["P", "Hv", "128", "128"], gdn.name = "state_pool"}, %state_scales: !gdn.pool<?x?x128xf32> {gdn.dims = ["P", "Hv", "128"], gdn.name = "state_scales"}, %state_low: !gdn.pool<?x?x128x128xi8> {gdn.dims = ["P", "Hv", "128", "128"], gdn.name = "state_low"}, %pending_keys: !gdn.pool<?x?x16x128xf32> {gdn.dims = ["P", "Hk", "16", "128"], gdn.name = "pending_keys"}, %pending_deltas: !gdn.pool<?x?x16x128xf32> {gdn.dims = ["P", "Hv", "16", "128"], gdn.name = "pending_deltas"}, %pending_decays: !gdn.pool<?x?x16xf32> {gdn.dims = ["P", "Hv", "16"], gdn.name = "pending_decays"}, %pending_counts: !gdn.pool<?x?xi32> {gdn.dims = ["P", "Hk"], gdn.name = "pending_counts"}) -> (tensor<?x?x128xbf16> {gdn.dims = ["N", "Hv", "128"], gdn.name = "core"}) attributes {gdn.entry} {
  %core = gdn.delta_rule %q, %k, %v gates(%log_decay, %beta) pool(%state_pool) slots(%slots) scales(%state_scales) low(%state_low) pending(%pending_keys, %pending_deltas, %pending_decays) counts(%pending_counts) : tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x128x128xi8>, tensor<?xi32> scales !gdn.pool<?x?x128xf32> low !gdn.pool<?x?x128x128xi8> pending !gdn.pool<?x?x16x128xf32>, !gdn.pool<?x?x16x128xf32>, !gdn.pool<?x?x16xf32> counts !gdn.pool<?x?xi32> -> tensor<?x?x128xbf16>
  return %core : tensor<?x?x128xbf16>
}

// Of the upper plane alone three blocks fit. Where the state is to receive its pending
// tokens, 64 rows at a time are loaded again, with the lower plane.
//
// CHECK-LABEL: func.func @upper(
//  CHECK-SAME:   min_blocks = 3
//       CHECK:   %[[UPPER:.+]] = gdn_gpu.load %{{.+}} <128x128xi8,
//       CHECK:   %[[SCALES:.+]] = gdn_gpu.load %{{.+}} <128xf32,
//       CHECK:   gdn_gpu.await_launch
//       CHECK:   gdn_gpu.share_byte_products %[[UPPER]] low() scales(%[[SCALES]]),
//       CHECK:   scf.if
// CHECK-COUNT-3:     gdn_gpu.load %{{.+}} <64x
//       CHECK:     gdn_gpu.share_column_parts %
//  CHECK-NEXT:     gdn_gpu.barrier
//       CHECK:     scf.for %{{.+}} iter_args(
// CHECK-COUNT-3:       gdn_gpu.load %{{.+}} <64x
//       CHECK:       gdn_gpu.add_part_products %{{.+}} : <64x128xf32, {{.+}}>, <32x64xf32>,
//       CHECK:       gdn_gpu.barrier
// CHECK-COUNT-3:       gdn_gpu.store
func.func @upper(%Hk: index {gdn.name = "Hk"}, %Hv: index {gdn.name = "Hv"}, %q: tensor<?x?x128xbf16> {gdn.dims = ["N", "Hk", "128"], gdn.name = "q"}, %k: tensor<?x?x128xbf16> {gdn.dims = ["N", "Hk", "128"], gdn.name = "k"}, %v: tensor<?x?x128xbf16> {gdn.dims = ["N", "Hv", "128"], gdn.name = "v"}, %log_decay: tensor<?x?xf32> {gdn.dims = ["N", "Hv"], gdn.name = "log_decay"}, %beta: tensor<?x?xf32> {gdn.dims = ["N", "Hv"], gdn.name = "beta"}, %slots: tensor<?xi32> {gdn.dims = ["N"], gdn.name = "slots"}, %state_pool: !gdn.pool<?x?x128x128xi8> {gdn.dims = ["P", "Hv", "128", "128"], gdn.name = "state_pool"}, %state_scales: !gdn.pool<?x?x128xf32> {gdn.dims = ["P", "Hv", "128"], gdn.name = "state_scales"}, %state_low: !gdn.pool<?x?x128x128xi8> {gdn.dims = ["P", "Hv", "128", "128"], gdn.name = "state_low"}, %pending_keys: !gdn.pool<?x?x16x128xf32> {gdn.dims = ["P", "Hk", "16", "128"], gdn.name = "pending_keys"}, %pending_deltas: !gdn.pool<?x?x16x128xf32> {gdn.dims = ["P", "Hv", "16", "128"], gdn.name = "pending_deltas"}, %pending_decays: !gdn.pool<?x?x16xf32> {gdn.dims = ["P", "Hv", "16"], gdn.name = "pending_decays"}, %pending_counts: !gdn.pool<?x?xi32> {gdn.dims = ["P", "Hk"], gdn.name = "pending_counts"}) -> (tensor<?x?x128xbf16> {gdn.dims = ["N", "Hv", "128"], gdn.name = "core"}) attributes {gdn.entry} {
  %core = gdn.delta_rule %q, %k, %v gates(%log_decay, %beta) pool(%state_pool) slots(%slots) scales(%state_scales) low(%state_low) pending(%pending_keys, %pending_deltas, %pending_decays) counts(%pending_counts) {reads_upper} : tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x128x128xi8>, tensor<?xi32> scales !gdn.pool<?x?x128xf32> low !gdn.pool<?x?x128x128xi8> pending !gdn.pool<?x?x16x128xf32>, !gdn.pool<?x?x16x128xf32>, !gdn.pool<?x?x16xf32> counts !gdn.pool<?x?xi32> -> tensor<?x?x128xbf16>
  return %core : tensor<?x?x128xbf16>
}

// Pending tokens in f16 come to shared memory as they are; scales are with the weights.
//
// CHECK-LABEL: func.func @narrow(
//       CHECK:   gdn_gpu.begin_copy {{.+}} rows(%[[COUNT:[0-9a-z_]+]]), %[[KEYS:.+]] : {{.+}} <16x128xf16>
//       CHECK:   gdn_gpu.begin_copy {{.+}} rows(%[[COUNT]]), %[[DELTAS:.+]] : {{.+}} <16x128xf16>
//       CHECK:   gdn_gpu.load %{{.+}} rows(%[[COUNT]]) : {{.+}} <16xf32,
//       CHECK:   %[[SCALE:.+]] = gdn_gpu.load %{{.+}} rows(%[[COUNT]]) : {{.+}} <16xf32,
//       CHECK:   gdn_gpu.map_rows %[[SCALE]]
//       CHECK:     math.exp
//  CHECK-NEXT:     arith.mulf
// Keys are multiplied as they are, by planes that become f32 in the product's sums.
//       CHECK:   gdn_gpu.share_key_columns %[[KEYS]], %[[COLUMNS:.+]] : <16x128xf16>, <8x264xf16>
//       CHECK:   gdn_gpu.map_rows %{{.+}} : !gdn_gpu.fragment<1x128xf32, {{.+}} -> !gdn_gpu.fragment<1x128xf16, {{.+}}>, !gdn_gpu.fragment<1xf32
//       CHECK:   %[[UNIT:.+]] = gdn_gpu.token_unit %[[WEIGHTS:.+]] : <16xf32>
//       CHECK:   gdn_gpu.fold_planes {{.+}}, %[[WEIGHTS]] unit(%[[UNIT]]), %[[COLUMNS]] : <128x128xi8, {{.+}}>, <128xf32, {{.+}}>, <16x128xf16>, <16xf32>, <8x264xf16>
// CHECK-COUNT-3:     gdn_gpu.store
//
// In blocks of four warps eight rows are the columns of a product: lanes of a row are
// four apart. There are registers for the next rows of both planes, and for what loops
// have made ahead.
//
// CROWDED-LABEL: func.func @narrow_crowded(
//   CROWDED-NOT:   keep_loops
//       CROWDED:   gdn_gpu.share_key_columns left
//       CROWDED:   scf.for {{.+}} iter_args({{.+}} -> (!gdn_gpu.fragment<32x128xi8, #[[$CROSSED]]>, !gdn_gpu.fragment<32xf32, {{.+}}>, !gdn_gpu.fragment<32x128xi8, #[[$CROSSED]]>) {
//       CROWDED:     gdn_gpu.fold_planes
// CROWDED-COUNT-3:   gdn_gpu.store
func.func @narrow(%Hk: index {gdn.name = "Hk"}, %Hv: index {gdn.name = "Hv"}, %q: tensor<?x?x128xbf16> {gdn.dims = ["N", "Hk", "128"], gdn.name = "q"}, %k: tensor<?x?x128xbf16> {gdn.dims = ["N", "Hk", "128"], gdn.name = "k"}, %v: tensor<?x?x128xbf16> {gdn.dims = ["N", "Hv", "128"], gdn.name = "v"}, %log_decay: tensor<?x?xf32> {gdn.dims = ["N", "Hv"], gdn.name = "log_decay"}, %beta: tensor<?x?xf32> {gdn.dims = ["N", "Hv"], gdn.name = "beta"}, %slots: tensor<?xi32> {gdn.dims = ["N"], gdn.name = "slots"}, %state_pool: !gdn.pool<?x?x128x128xi8> {gdn.dims = ["P", "Hv", "128", "128"], gdn.name = "state_pool"}, %state_scales: !gdn.pool<?x?x128xf32> {gdn.dims = ["P", "Hv", "128"], gdn.name = "state_scales"}, %state_low: !gdn.pool<?x?x128x128xi8> {gdn.dims = ["P", "Hv", "128", "128"], gdn.name = "state_low"}, %pending_keys: !gdn.pool<?x?x16x128xf16> {gdn.dims = ["P", "Hk", "16", "128"], gdn.name = "pending_keys"}, %pending_deltas: !gdn.pool<?x?x16x128xf16> {gdn.dims = ["P", "Hv", "16", "128"], gdn.name = "pending_deltas"}, %pending_decays: !gdn.pool<?x?x16xf32> {gdn.dims = ["P", "Hv", "16"], gdn.name = "pending_decays"}, %pending_counts: !gdn.pool<?x?xi32> {gdn.dims = ["P", "Hk"], gdn.name = "pending_counts"}, %pending_scales: !gdn.pool<?x?x16xf32> {gdn.dims = ["P", "Hv", "16"], gdn.name = "pending_scales"}) -> (tensor<?x?x128xbf16> {gdn.dims = ["N", "Hv", "128"], gdn.name = "core"}) attributes {gdn.entry} {
  %core = gdn.delta_rule %q, %k, %v gates(%log_decay, %beta) pool(%state_pool) slots(%slots) scales(%state_scales) low(%state_low) pending(%pending_keys, %pending_deltas, %pending_decays) counts(%pending_counts) delta_scales(%pending_scales) : tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x128x128xi8>, tensor<?xi32> scales !gdn.pool<?x?x128xf32> low !gdn.pool<?x?x128x128xi8> pending !gdn.pool<?x?x16x128xf16>, !gdn.pool<?x?x16x128xf16>, !gdn.pool<?x?x16xf32> counts !gdn.pool<?x?xi32> delta_scales !gdn.pool<?x?x16xf32> -> tensor<?x?x128xbf16>
  return %core : tensor<?x?x128xbf16>
}
