// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decode with pending tokens and states of 16 bits: for many sequences a block of four
// warps has the state in registers as it is, and tensor cores multiply it with key and
// query, sums of three rows each. Where it receives its pending tokens it becomes f32,
// 32 rows at a time, and no warp waits for another there. No persistent kernel is made for these states; one is for others.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile=value-heads -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-persistent-recurrence="replay-units=300 max-narrow-replay-units=0 shared-bytes=115712" -gdn-schedule-resident-recurrence="crowded-narrow-units=1024" -canonicalize -cse -o %t
// RUN: FileCheck %s < %t
// RUN: gdn-gpu-opt %t | gdn-gpu-opt -gdn-gpu-place-barriers -gdn-gpu-check -o /dev/null
//
// Without the option they have what others have, and up to as many units as it says.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile=value-heads -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-persistent-recurrence="replay-units=300 max-narrow-replay-units=500 shared-bytes=115712" -gdn-schedule-resident-recurrence | FileCheck %s --check-prefix=PLAIN

//  PLAIN-LABEL: func.func @decode_persistent(
//   PLAIN-SAME:   conditions = {{\[\[\["300"\], \["N", "Hv"\]\], \[\["N", "Hv"\], \["500"\]\]\]}}
//    PLAIN-NOT: func.func @decode_crowded
//  PLAIN-LABEL: func.func @decode(
//    PLAIN-NOT:   share_part_products

//   CHECK-DAG: #[[$ROWS:.+]] = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 8, cyclic = true>
//   CHECK-DAG: #[[$PART:.+]] = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 8>{{$}}
//   CHECK-NOT: func.func @decode_persistent
// CHECK-LABEL: func.func @decode_crowded(
//  CHECK-SAME:   gdn_gpu.allow = "spills up to 128 bytes:
//  CHECK-SAME:   min_blocks = 4 : i64, threads = 128
//  CHECK-SAME:   bits = "crowded"
//  CHECK-SAME:   conditions = {{\[\[\["1024"\], \["N", "Hv"\]\]\]}}
//       CHECK:   %[[STATE:.+]] = gdn_gpu.load %{{.+}} dims [2, 3] aligned 16 : {{.+}} <128x128xbf16, #[[$ROWS]]>
//       CHECK:   gdn_gpu.await_launch
// A query and a key become three rows each.
// CHECK-COUNT-3: arith.truncf %{{.+}} : vector<128xf32> to vector<128xbf16>
// CHECK-COUNT-3: arith.truncf %{{.+}} : vector<128xf32> to vector<128xbf16>
//       CHECK:   gdn_gpu.share_part_products %[[STATE]], %{{.+}} scaled(%cst{{.*}}), %{{.+}} scaled(%cst{{.*}}), %{{.+}} : <128x128xbf16,
//       CHECK:   scf.if
//       CHECK:     gdn_gpu.load %{{.+}} <32x128xbf16, #[[$PART]]>
//       CHECK:     gdn_gpu.share_column_parts %{{.+}}, %[[KEYS:.+]] : <8x128xf32>, <128x32xbf16>
//       CHECK:     scf.for
//       CHECK:       gdn_gpu.load %{{.+}} <32x128xbf16, #[[$PART]]>
//       CHECK:       gdn_gpu.add_part_products %{{.+}}, %{{.+}}, %{{.+}}, %[[KEYS]] : <32x128xf32, #[[$PART]]>, <32x32xf32>,
//   CHECK-NOT:       gdn_gpu.barrier
//       CHECK:       gdn_gpu.store %{{.+}} <32x128xbf16, #[[$PART]]>
// CHECK-LABEL: func.func @decode(
//  CHECK-SAME:   threads = 256
//   CHECK-NOT:   share_part_products
func.func @decode(%Hk: index {gdn.name = "Hk"}, %Hv: index {gdn.name = "Hv"}, %q: tensor<?x?x128xbf16> {gdn.dims = ["N", "Hk", "128"], gdn.name = "q"}, %k: tensor<?x?x128xbf16> {gdn.dims = ["N", "Hk", "128"], gdn.name = "k"}, %v: tensor<?x?x128xbf16> {gdn.dims = ["N", "Hv", "128"], gdn.name = "v"}, %log_decay: tensor<?x?xf32> {gdn.dims = ["N", "Hv"], gdn.name = "log_decay"}, %beta: tensor<?x?xf32> {gdn.dims = ["N", "Hv"], gdn.name = "beta"}, %slots: tensor<?xi32> {gdn.dims = ["N"], gdn.name = "slots"}, %state_pool: !gdn.pool<?x?x128x128xbf16> {gdn.dims = ["P", "Hv", "128", "128"], gdn.name = "state_pool"}, %pending_keys: !gdn.pool<?x?x8x128xf32> {gdn.dims = ["P", "Hk", "8", "128"], gdn.name = "pending_keys"}, %pending_deltas: !gdn.pool<?x?x8x128xf32> {gdn.dims = ["P", "Hv", "8", "128"], gdn.name = "pending_deltas"}, %pending_decays: !gdn.pool<?x?x8xf32> {gdn.dims = ["P", "Hv", "8"], gdn.name = "pending_decays"}, %pending_counts: !gdn.pool<?x?xi32> {gdn.dims = ["P", "Hk"], gdn.name = "pending_counts"}) -> (tensor<?x?x128xbf16> {gdn.dims = ["N", "Hv", "128"], gdn.name = "core"}) attributes {gdn.entry} {
  %core = gdn.delta_rule %q, %k, %v gates(%log_decay, %beta) pool(%state_pool) slots(%slots) pending(%pending_keys, %pending_deltas, %pending_decays) counts(%pending_counts) : tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x128x128xbf16>, tensor<?xi32> pending !gdn.pool<?x?x8x128xf32>, !gdn.pool<?x?x8x128xf32>, !gdn.pool<?x?x8xf32> counts !gdn.pool<?x?xi32> -> tensor<?x?x128xbf16>
  return %core : tensor<?x?x128xbf16>
}

// Of f16 the sum of the rows counts a power of two.
//
// CHECK-LABEL: func.func @half_crowded(
// CHECK-COUNT-3: arith.truncf %{{.+}} : vector<128xf32> to vector<128xf16>
//       CHECK:   gdn_gpu.load_shared_element %{{.+}} : <1xf32> -> f32
//       CHECK:   gdn_gpu.share_part_products %{{.+}} scaled(%{{[0-9]+}}), %{{.+}} scaled(%{{[0-9]+}}), %{{.+}} : <128x128xf16,
func.func @half(%Hk: index {gdn.name = "Hk"}, %Hv: index {gdn.name = "Hv"}, %q: tensor<?x?x128xbf16> {gdn.dims = ["N", "Hk", "128"], gdn.name = "q"}, %k: tensor<?x?x128xbf16> {gdn.dims = ["N", "Hk", "128"], gdn.name = "k"}, %v: tensor<?x?x128xbf16> {gdn.dims = ["N", "Hv", "128"], gdn.name = "v"}, %log_decay: tensor<?x?xf32> {gdn.dims = ["N", "Hv"], gdn.name = "log_decay"}, %beta: tensor<?x?xf32> {gdn.dims = ["N", "Hv"], gdn.name = "beta"}, %slots: tensor<?xi32> {gdn.dims = ["N"], gdn.name = "slots"}, %state_pool: !gdn.pool<?x?x128x128xf16> {gdn.dims = ["P", "Hv", "128", "128"], gdn.name = "state_pool"}, %pending_keys: !gdn.pool<?x?x8x128xf32> {gdn.dims = ["P", "Hk", "8", "128"], gdn.name = "pending_keys"}, %pending_deltas: !gdn.pool<?x?x8x128xf32> {gdn.dims = ["P", "Hv", "8", "128"], gdn.name = "pending_deltas"}, %pending_decays: !gdn.pool<?x?x8xf32> {gdn.dims = ["P", "Hv", "8"], gdn.name = "pending_decays"}, %pending_counts: !gdn.pool<?x?xi32> {gdn.dims = ["P", "Hk"], gdn.name = "pending_counts"}) -> (tensor<?x?x128xbf16> {gdn.dims = ["N", "Hv", "128"], gdn.name = "core"}) attributes {gdn.entry} {
  %core = gdn.delta_rule %q, %k, %v gates(%log_decay, %beta) pool(%state_pool) slots(%slots) pending(%pending_keys, %pending_deltas, %pending_decays) counts(%pending_counts) : tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x128x128xf16>, tensor<?xi32> pending !gdn.pool<?x?x8x128xf32>, !gdn.pool<?x?x8x128xf32>, !gdn.pool<?x?x8xf32> counts !gdn.pool<?x?xi32> -> tensor<?x?x128xbf16>
  return %core : tensor<?x?x128xbf16>
}

//   CHECK-NOT: func.func @wide_crowded
//       CHECK: func.func @wide_persistent(
func.func @wide(%Hk: index {gdn.name = "Hk"}, %Hv: index {gdn.name = "Hv"}, %q: tensor<?x?x128xbf16> {gdn.dims = ["N", "Hk", "128"], gdn.name = "q"}, %k: tensor<?x?x128xbf16> {gdn.dims = ["N", "Hk", "128"], gdn.name = "k"}, %v: tensor<?x?x128xbf16> {gdn.dims = ["N", "Hv", "128"], gdn.name = "v"}, %log_decay: tensor<?x?xf32> {gdn.dims = ["N", "Hv"], gdn.name = "log_decay"}, %beta: tensor<?x?xf32> {gdn.dims = ["N", "Hv"], gdn.name = "beta"}, %slots: tensor<?xi32> {gdn.dims = ["N"], gdn.name = "slots"}, %state_pool: !gdn.pool<?x?x128x128xf32> {gdn.dims = ["P", "Hv", "128", "128"], gdn.name = "state_pool"}, %pending_keys: !gdn.pool<?x?x8x128xf32> {gdn.dims = ["P", "Hk", "8", "128"], gdn.name = "pending_keys"}, %pending_deltas: !gdn.pool<?x?x8x128xf32> {gdn.dims = ["P", "Hv", "8", "128"], gdn.name = "pending_deltas"}, %pending_decays: !gdn.pool<?x?x8xf32> {gdn.dims = ["P", "Hv", "8"], gdn.name = "pending_decays"}, %pending_counts: !gdn.pool<?x?xi32> {gdn.dims = ["P", "Hk"], gdn.name = "pending_counts"}) -> (tensor<?x?x128xbf16> {gdn.dims = ["N", "Hv", "128"], gdn.name = "core"}) attributes {gdn.entry} {
  %core = gdn.delta_rule %q, %k, %v gates(%log_decay, %beta) pool(%state_pool) slots(%slots) pending(%pending_keys, %pending_deltas, %pending_decays) counts(%pending_counts) : tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x128x128xf32>, tensor<?xi32> pending !gdn.pool<?x?x8x128xf32>, !gdn.pool<?x?x8x128xf32>, !gdn.pool<?x?x8xf32> counts !gdn.pool<?x?xi32> -> tensor<?x?x128xbf16>
  return %core : tensor<?x?x128xbf16>
}
