// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_tile.conv1d: parse, print, and print again, in both forms.
//
// RUN: gdn-tile-opt %s | gdn-tile-opt | FileCheck %s
// RUN: gdn-tile-opt -mlir-print-op-generic %s | gdn-tile-opt | FileCheck %s

// CHECK-LABEL: func.func @with_bias
//  CHECK-SAME:   %[[X:[a-z0-9]+]]: vector<16x64xf32>, %[[WINDOW:[a-z0-9]+]]: vector<3x64xf32>, %[[WEIGHT:[a-z0-9]+]]: vector<4x64xf32>, %[[BIAS:[a-z0-9]+]]: vector<64xf32>, %[[N:[a-z0-9]+]]: index
//       CHECK:   %[[Y:.+]], %[[NEXT:.+]] = gdn_tile.conv1d %[[X]], %[[WINDOW]], %[[WEIGHT]] bias(%[[BIAS]] : vector<64xf32>) valid(%[[N]])
//  CHECK-SAME:     : vector<16x64xf32>, vector<3x64xf32>, vector<4x64xf32>
//       CHECK:   return %[[Y]], %[[NEXT]] : vector<16x64xf32>, vector<3x64xf32>
func.func @with_bias(%x: vector<16x64xf32>, %win: vector<3x64xf32>,
                     %w: vector<4x64xf32>, %bias: vector<64xf32>, %n: index)
    -> (vector<16x64xf32>, vector<3x64xf32>) {
  %y, %next = gdn_tile.conv1d %x, %win, %w bias(%bias : vector<64xf32>) valid(%n)
      : vector<16x64xf32>, vector<3x64xf32>, vector<4x64xf32>
  return %y, %next : vector<16x64xf32>, vector<3x64xf32>
}

// The shortest window there is, without bias.
// CHECK-LABEL: func.func @two_taps
//       CHECK:   gdn_tile.conv1d %{{.+}}, %{{.+}}, %{{.+}} valid(%{{.+}})
//  CHECK-SAME:     : vector<1x64xf32>, vector<1x64xf32>, vector<2x64xf32>
func.func @two_taps(%x: vector<1x64xf32>, %win: vector<1x64xf32>,
                    %w: vector<2x64xf32>, %n: index) -> vector<1x64xf32> {
  %y, %next = gdn_tile.conv1d %x, %win, %w valid(%n)
      : vector<1x64xf32>, vector<1x64xf32>, vector<2x64xf32>
  return %y : vector<1x64xf32>
}
