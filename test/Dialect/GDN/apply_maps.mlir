// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.apply_maps: parse, print, and print again, in both forms.
//
// RUN: gdn-opt %s | gdn-opt | FileCheck %s
// RUN: gdn-opt -mlir-print-op-generic %s | gdn-opt | FileCheck %s

// CHECK-LABEL: func.func @states(
//       CHECK:   %{{.+}} = gdn.apply_maps %{{.+}}[%{{.+}} to %{{.+}}] ranks(%{{.+}}, %{{.+}}) segments(%{{.+}}, %{{.+}}) of(%{{.+}}, %{{.+}}) : !gdn.pool<?x?x24x16xbf16>, tensor<?xi32>, tensor<?xi32>, tensor<?x?x?x40x16xf32>, tensor<1xi32>, tensor<?x?x24x16xf32>, tensor<?x?x16x16xf32>, tensor<?xi32>, tensor<?xi32>
//       CHECK:   return %{{.+}} : tensor<?x?x24x16xf32>
func.func @states(%pool: !gdn.pool<?x?x24x16xbf16>, %slots: tensor<?xi32>, %to: tensor<?xi32>,
                  %maps: tensor<?x?x?x40x16xf32>, %rank: tensor<1xi32>,
                  %h: tensor<?x?x24x16xf32>, %p: tensor<?x?x16x16xf32>,
                  %first: tensor<?xi32>, %count: tensor<?xi32>) -> tensor<?x?x24x16xf32> {
  %states = gdn.apply_maps %pool[%slots to %to] ranks(%maps, %rank) segments(%h, %p) of(%first, %count)
      : !gdn.pool<?x?x24x16xbf16>, tensor<?xi32>, tensor<?xi32>, tensor<?x?x?x40x16xf32>, tensor<1xi32>,
        tensor<?x?x24x16xf32>, tensor<?x?x16x16xf32>, tensor<?xi32>, tensor<?xi32>
  return %states : tensor<?x?x24x16xf32>
}
