// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-tile-opt does not know the gdn dialect: an op of it that a lowering left
// behind is a parse error, in either form.
//
// RUN: gdn-opt %s -o /dev/null
// RUN: not gdn-tile-opt %s 2>&1 | FileCheck %s
// RUN: gdn-opt -mlir-print-op-generic %s | not gdn-tile-opt 2>&1 | FileCheck %s --check-prefix=GENERIC

//   CHECK: error: Dialect `gdn' not found for custom op 'gdn.l2norm'
// GENERIC: error: operation being parsed with an unregistered dialect
func.func @leak(%x: tensor<?x?x128xf32>) {
  %0 = gdn.l2norm %x : tensor<?x?x128xf32> -> tensor<?x?x128xf32>
  return
}
