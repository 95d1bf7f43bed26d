// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions that are no tile programs, or have no body, are left alone.
//
// RUN: gdn-tile-opt %s -convert-tile-to-cpu | FileCheck %s

// CHECK: func.func private @external(index) attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}
func.func private @external(index) attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}}

// CHECK: func.func @host(%{{.+}}: vector<4xf32>) -> vector<4xf32>
func.func @host(%x: vector<4xf32>) -> vector<4xf32> {
  return %x : vector<4xf32>
}
