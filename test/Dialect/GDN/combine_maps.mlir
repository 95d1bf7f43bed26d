// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.combine_maps: parse, print, and print again, in both forms.
//
// RUN: gdn-opt %s | gdn-opt | FileCheck %s
// RUN: gdn-opt -mlir-print-op-generic %s | gdn-opt | FileCheck %s

// CHECK-LABEL: func.func @own(
//       CHECK:   %{{.+}} = gdn.combine_maps segments(%{{.+}}, %{{.+}}) of(%{{.+}}, %{{.+}}) : tensor<?x?x24x16xf32>, tensor<?x?x16x16xf32>, tensor<?xi32>, tensor<?xi64>
//       CHECK:   return %{{.+}} : tensor<?x?x40x16xf32>
func.func @own(%h: tensor<?x?x24x16xf32>, %p: tensor<?x?x16x16xf32>,
               %first: tensor<?xi32>, %count: tensor<?xi64>) -> tensor<?x?x40x16xf32> {
  %maps = gdn.combine_maps segments(%h, %p) of(%first, %count)
      : tensor<?x?x24x16xf32>, tensor<?x?x16x16xf32>, tensor<?xi32>, tensor<?xi64>
  return %maps : tensor<?x?x40x16xf32>
}
