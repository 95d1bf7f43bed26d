// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program that keeps the state after every token walks them in a loop: no
// decode step, so this schedule leaves it as it is.
//
// RUN: gdn-opt %S/../Conversion/GDNToTile/token-slots.mlir -gdn-fuse -convert-gdn-to-tile=value-heads -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-resident-recurrence -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func.func @verify(
//   CHECK-NOT:   gdn_gpu
//       CHECK:   scf.for {{.*}} step %c1
//       CHECK:     gdn_tile.delta_scan
