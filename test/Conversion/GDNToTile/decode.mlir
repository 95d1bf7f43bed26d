// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A decode entry of the interleaved layout: one block per sequence and key head,
// six strided views of the packed projections, the slot check of every pool,
// zeros for a sequence that is not live, and rounding at the stores alone. No gdn op
// is left: the tool of the tile level reads the result.
//
// RUN: gdn-opt %s -convert-gdn-to-tile -canonicalize -cse | FileCheck %s
// RUN: gdn-opt %s -convert-gdn-to-tile | gdn-tile-opt -o /dev/null

// Symbols first, then a view per tensor, a view and a null slot per pool, and
// a view per result.
// CHECK-LABEL: func.func @decode(
//  CHECK-SAME:   %[[N_SIZE:[a-z0-9]+]]: index {gdn.name = "N"}, %[[HK:[a-z0-9]+]]: index {gdn.name = "Hk"}, %[[HV:[a-z0-9]+]]: index {gdn.name = "Hv"}, %{{[a-z0-9]+}}: index {gdn.name = "P"}
//  CHECK-SAME:   %[[QKVZ:[a-z0-9]+]]: memref<?x?xbf16, strided<[?, 1], offset: ?>> {gdn.name = "qkvz"}
//  CHECK-SAME:   %[[BA:[a-z0-9]+]]: memref<?x?xbf16, strided<[?, 1], offset: ?>> {gdn.name = "ba"}
//  CHECK-SAME:   %[[SLOTS:[a-z0-9]+]]: memref<?xi32, strided<[1], offset: ?>> {gdn.name = "slots"}
//  CHECK-SAME:   %[[CONV:[a-z0-9]+]]: memref<?x?x3xbf16, {{.+}}> {gdn.name = "conv_pool"}, %[[CONV_NULL:[a-z0-9]+]]: index {gdn.name = "conv_pool_null_slot"}
//  CHECK-SAME:   %[[STATES:[a-z0-9]+]]: memref<?x?x64x32xf32, strided<[?, ?, ?, 1], offset: ?>> {gdn.name = "state_pool"}, %[[STATES_NULL:[a-z0-9]+]]: index {gdn.name = "state_pool_null_slot"}
//  CHECK-SAME:   %[[OUT:[a-z0-9]+]]: memref<?x?x64xbf16, strided<[?, ?, 1], offset: ?>> {gdn.name = "out"}
//  CHECK-SAME:   grid = ["N", "Hk"], multiples = ["Hv", "Hk"], symbols = ["N", "Hk", "Hv", "P"]

// The block of one key head is 32 + 32 + 64 R + 64 R columns.
//   CHECK-DAG:   %[[C0:.+]] = arith.constant 0 : index
//   CHECK-DAG:   %[[C1:.+]] = arith.constant 1 : index
//   CHECK-DAG:   %[[C32:.+]] = arith.constant 32 : index
//   CHECK-DAG:   %[[C64:.+]] = arith.constant 64 : index
//       CHECK:   %[[R:.+]] = arith.divui %[[HV]], %[[HK]]
//       CHECK:   %{{.+}}, %[[START:.+]], %{{.+}}:2, %[[TOKEN:.+]]:2 = memref.extract_strided_metadata %[[QKVZ]]
//       CHECK:   %[[V_COLUMNS:.+]] = arith.muli %[[R]], %[[C64]]
//       CHECK:   %[[QKV_COLUMNS:.+]] = arith.addi %[[V_COLUMNS]], %[[C64]]
//       CHECK:   %[[GROUP:.+]] = arith.addi %[[QKV_COLUMNS]], %[[V_COLUMNS]]
//       CHECK:   %[[Q:.+]] = memref.reinterpret_cast %[[QKVZ]] to offset: [%[[START]]], sizes: [%{{.+}}, %[[HK]], 32], strides: [%[[TOKEN]]#0, %[[GROUP]], 1]
//       CHECK:   %[[K_START:.+]] = arith.addi %[[START]], %[[C32]]
//       CHECK:   memref.reinterpret_cast %[[QKVZ]] to offset: [%[[K_START]]], sizes: [%{{.+}}, %[[HK]], 32], strides: [%[[TOKEN]]#0, %[[GROUP]], 1]
//       CHECK:   %[[V_START:.+]] = arith.addi %[[START]], %[[C64]]
//       CHECK:   memref.reinterpret_cast %[[QKVZ]] to offset: [%[[V_START]]], sizes: [%{{.+}}, %[[HK]], %[[R]], 64], strides: [%[[TOKEN]]#0, %[[GROUP]], 64, 1]
//       CHECK:   %{{.+}}, %[[B_START:.+]], %{{.+}}:2, %[[BA_TOKEN:.+]]:2 = memref.extract_strided_metadata %[[BA]]
//       CHECK:   %[[BA_GROUP:.+]] = arith.addi %[[R]], %[[R]]
//       CHECK:   %[[A_START:.+]] = arith.addi %[[B_START]], %[[R]]
//       CHECK:   memref.reinterpret_cast %[[BA]] to offset: [%[[A_START]]], sizes: [%{{.+}}, %[[HK]], %[[R]]], strides: [%[[BA_TOKEN]]#0, %[[BA_GROUP]], 1]
//       CHECK:   memref.reinterpret_cast %[[BA]] to offset: [%[[B_START]]], sizes: [%{{.+}}, %[[HK]], %[[R]]], strides: [%[[BA_TOKEN]]#0, %[[BA_GROUP]], 1]
//       CHECK:   %[[Z_START:.+]] = arith.addi %[[START]], %[[QKV_COLUMNS]]
//       CHECK:   memref.reinterpret_cast %[[QKVZ]] to offset: [%[[Z_START]]], sizes: [%{{.+}}, %[[HK]], %[[R]], 64], strides: [%[[TOKEN]]#0, %[[GROUP]], 64, 1]

// A sequence is live if its slot counts in both pools.
//       CHECK:   %[[N:.+]] = gdn_tile.block_id 0
//       CHECK:   %[[H:.+]] = gdn_tile.block_id 1
//       CHECK:   %[[ID:.+]] = memref.load %[[SLOTS]][%[[N]]]
//       CHECK:   %[[SLOT:.+]] = arith.index_cast %[[ID]] : i32 to index
//       CHECK:   %[[CONV_SIZE:.+]] = memref.dim %[[CONV]], %[[C0]]
//       CHECK:   arith.cmpi ult, %[[SLOT]], %[[CONV_SIZE]]
//       CHECK:   arith.cmpi ne, %[[SLOT]], %[[CONV_NULL]]
//       CHECK:   %[[SIZE:.+]] = memref.dim %[[STATES]], %[[C0]]
//       CHECK:   arith.cmpi ult, %[[SLOT]], %[[SIZE]]
//       CHECK:   arith.cmpi ne, %[[SLOT]], %[[STATES_NULL]]
//       CHECK:   scf.if

// The windows of q and k are there once, and are the same for each value head.
//       CHECK:     gdn_tile.load %[[CONV]][%[[SLOT]], {{.+}} dims [2, 1]
//       CHECK:     gdn_tile.load %[[CONV]][%[[SLOT]], {{.+}} dims [2, 1]
//       CHECK:     scf.for %{{.+}} = %[[C0]] to %[[R]]
//       CHECK:       %[[STATE:.+]] = gdn_tile.load %[[STATES]][%[[SLOT]], %[[HEAD:.+]], %[[C0]], %[[C0]]] dims [2, 3]
//       CHECK:       gdn_tile.load %[[Q]][%[[N]], %[[H]], %[[C0]]] dims [0, 2] rows(%[[C1]])
// CHECK-COUNT-3:     gdn_tile.conv1d
//   CHECK-NOT:       arith.truncf
//       CHECK:       %[[NEXT:.+]], %{{.+}} = gdn_tile.delta_scan %[[STATE]], {{.+}} valid(%[[C1]])
//       CHECK:         arith.truncf %{{.+}} : vector<64xf32> to vector<64xbf16>
//       CHECK:       gdn_tile.store
//       CHECK:       gdn_tile.store %[[NEXT]], %[[STATES]][%[[SLOT]], %[[HEAD]], %[[C0]], %[[C0]]] dims [2, 3]
//       CHECK:     gdn_tile.store %{{.+}}, %[[CONV]]
//       CHECK:     gdn_tile.store %{{.+}}, %[[CONV]]
//       CHECK:   } else {
//       CHECK:     %[[ZEROS:.+]] = gdn_tile.fill %{{.+}} : bf16 -> vector<1x64xbf16>
//       CHECK:     gdn_tile.store %[[ZEROS]]
//   CHECK-NOT:   gdn_tile.load
func.func @decode(
    %hk: index {gdn.name = "Hk"}, %hv: index {gdn.name = "Hv"},
    %qkvz: tensor<?x?xbf16> {gdn.name = "qkvz", gdn.dims = ["N", "64*Hk + 128*Hv"]},
    %ba: tensor<?x?xbf16> {gdn.name = "ba", gdn.dims = ["N", "2*Hv"]},
    %w: tensor<?x4xf32> {gdn.name = "conv_weight", gdn.dims = ["64*Hk + 64*Hv", "4"]},
    %alog: tensor<?xf32> {gdn.name = "A_log", gdn.dims = ["Hv"]},
    %dt: tensor<?xf32> {gdn.name = "dt_bias", gdn.dims = ["Hv"]},
    %nw: tensor<64xf32> {gdn.name = "norm_weight", gdn.dims = ["64"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %cp: !gdn.pool<?x?x3xbf16> {gdn.name = "conv_pool", gdn.dims = ["P", "64*Hk + 64*Hv", "3"]},
    %sp: !gdn.pool<?x?x64x32xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "32"]})
    -> (tensor<?x?x64xbf16> {gdn.name = "out", gdn.dims = ["N", "Hv", "64"]})
    attributes {gdn.entry} {
  %q, %k, %v, %z = gdn.unpack "qkvz" interleaved %qkvz heads(%hk, %hv)
      : tensor<?x?xbf16> -> tensor<?x?x32xbf16>, tensor<?x?x32xbf16>,
        tensor<?x?x64xbf16>, tensor<?x?x64xbf16>
  %b, %a = gdn.unpack "ba" interleaved %ba heads(%hk, %hv)
      : tensor<?x?xbf16> -> tensor<?x?xbf16>, tensor<?x?xbf16>
  %o = gdn.kernel "decode" {
    %qc, %kc, %vc = gdn.conv1d %q, %k, %v weight(%w) silu pool(%cp) slots(%slots)
        : (tensor<?x?x32xbf16>, tensor<?x?x32xbf16>, tensor<?x?x64xbf16>),
          tensor<?x4xf32>, !gdn.pool<?x?x3xbf16>, tensor<?xi32>
          -> tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x?x64xf32>
    %qn = gdn.l2norm %qc : tensor<?x?x32xf32> -> tensor<?x?x32xf32>
    %kn = gdn.l2norm %kc : tensor<?x?x32xf32> -> tensor<?x?x32xf32>
    %g, %beta = gdn.gates %a, %b, %alog, %dt
        : tensor<?x?xbf16>, tensor<?x?xbf16>, tensor<?xf32>, tensor<?xf32>
          -> tensor<?x?xf32>, tensor<?x?xf32>
    %core = gdn.delta_rule %qn, %kn, %vc gates(%g, %beta) pool(%sp) slots(%slots)
        : tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x?x64xf32>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x64x32xf32>,
          tensor<?xi32> -> tensor<?x?x64xf32>
    %y = gdn.gated_rms_norm %core, %z, %nw silu
        : tensor<?x?x64xf32>, tensor<?x?x64xbf16>, tensor<64xf32>
          -> tensor<?x?x64xbf16>
    %m = gdn.mask_sequences %y of(%sp) slots(%slots)
        : tensor<?x?x64xbf16>, !gdn.pool<?x?x64x32xf32>, tensor<?xi32>
          -> tensor<?x?x64xbf16>
    gdn.yield %m : tensor<?x?x64xbf16>
  } : tensor<?x?x64xbf16>
  return %o : tensor<?x?x64xbf16>
}
