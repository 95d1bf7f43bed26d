// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-gpu-opt does not know the gdn_tile dialect: an op of it that a lowering left
// behind is a parse error, in either form.
//
// RUN: gdn-tile-opt %s -o /dev/null
// RUN: not gdn-gpu-opt %s 2>&1 | FileCheck %s
// RUN: gdn-tile-opt -mlir-print-op-generic %s | not gdn-gpu-opt 2>&1 | FileCheck %s --check-prefix=GENERIC

//   CHECK: error: Dialect `gdn_tile' not found for custom op 'gdn_tile.fill'
// GENERIC: error: operation being parsed with an unregistered dialect
func.func @leak(%x: f32) {
  %0 = gdn_tile.fill %x : f32 -> vector<4xf32>
  return
}
