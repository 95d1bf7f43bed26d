// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_tile.extract_rows: parse, print, and print again, in both forms.
//
// RUN: gdn-tile-opt %s | gdn-tile-opt | FileCheck %s
// RUN: gdn-tile-opt -mlir-print-op-generic %s | gdn-tile-opt | FileCheck %s

// CHECK-LABEL: func.func @rows(
//  CHECK-SAME:   %[[CHUNK:[a-z0-9]+]]: vector<67x128xbf16>, %[[T:[a-z0-9]+]]: index, %[[N:[a-z0-9]+]]: index
//       CHECK:   gdn_tile.extract_rows %[[CHUNK]][%[[T]]] : vector<67x128xbf16> -> vector<4x128xbf16>
//       CHECK:   gdn_tile.extract_rows %[[CHUNK]][%[[T]]] rows(%[[N]]) : vector<67x128xbf16> -> vector<3x128xbf16>
func.func @rows(%chunk: vector<67x128xbf16>, %t: index, %n: index)
    -> (vector<4x128xbf16>, vector<3x128xbf16>) {
  %group = gdn_tile.extract_rows %chunk[%t] : vector<67x128xbf16> -> vector<4x128xbf16>
  %window = gdn_tile.extract_rows %chunk[%t] rows(%n) : vector<67x128xbf16> -> vector<3x128xbf16>
  return %group, %window : vector<4x128xbf16>, vector<3x128xbf16>
}
