// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel of token-wise ops: a block per four tokens and head, no slots, no
// branch; the last block has what is left, which may be nothing.
//
// RUN: gdn-opt %s -convert-gdn-to-tile -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func.func @token_ops(
//  CHECK-SAME:   %[[X:[a-z0-9]+]]: memref<?x?x64xf32, strided<[?, ?, 1], offset: ?>> {gdn.name = "x"}
//  CHECK-SAME:   grid = ["T floordiv 4 + 1", "H"]
//   CHECK-NOT:   scf.if
//       CHECK:   %[[N:.+]] = gdn_tile.block_id 0
//       CHECK:   %[[H:.+]] = gdn_tile.block_id 1
//       CHECK:   %[[T:.+]] = arith.muli %[[N]], %c4
//       CHECK:   %[[LEFT:.+]] = arith.subi %{{.+}}, %[[T]]
//       CHECK:   %[[ROWS:.+]] = arith.minui %[[LEFT]], %c4
//       CHECK:   gdn_tile.load %{{.+}}[%[[T]], %[[H]], {{.+}}] dims [0, 3] rows(%[[ROWS]])
//       CHECK:   gdn_tile.map_rows
//       CHECK:     vector.reduction <add>
//       CHECK:     math.rsqrt
//       CHECK:     arith.truncf
//       CHECK:   gdn_tile.store %{{.+}}[%[[T]], %[[H]], {{.+}}] dims [0, 3] rows(%[[ROWS]])
//   CHECK-NOT:   gdn_tile.fill
func.func @token_ops(
    %x: tensor<?x?x64xf32> {gdn.name = "x", gdn.dims = ["T", "H", "64"]},
    %z: tensor<?x?x64xbf16> {gdn.name = "z", gdn.dims = ["T", "H", "64"]},
    %w: tensor<64xf32> {gdn.name = "w", gdn.dims = ["64"]})
    -> (tensor<?x?x64xbf16> {gdn.name = "y", gdn.dims = ["T", "H", "64"]})
    attributes {gdn.entry} {
  %y = gdn.kernel "token_ops" {
    %n = gdn.gated_rms_norm %x, %z, %w silu
        : tensor<?x?x64xf32>, tensor<?x?x64xbf16>, tensor<64xf32>
          -> tensor<?x?x64xbf16>
    gdn.yield %n : tensor<?x?x64xbf16>
  } : tensor<?x?x64xbf16>
  return %y : tensor<?x?x64xbf16>
}
