// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: gdn-opt %s | FileCheck %s
// RUN: gdn-opt %s -mlir-print-op-generic | gdn-opt | FileCheck %s

// CHECK-LABEL: func.func @commit(
//       CHECK:   gdn.commit_conv1d %{{.+}}[%{{.+}}] accepted(%{{.+}}) window 3 : !gdn.pool<?x?x7xbf16>, tensor<?xi32>, tensor<?xi32>
func.func @commit(%pool: !gdn.pool<?x?x7xbf16>, %slots: tensor<?xi32>, %accepted: tensor<?xi32>) {
  gdn.commit_conv1d %pool[%slots] accepted(%accepted) window 3
      : !gdn.pool<?x?x7xbf16>, tensor<?xi32>, tensor<?xi32>
  return
}
