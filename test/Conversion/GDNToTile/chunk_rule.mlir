// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Without chunk-from, the vectors of the target, what tokens and chunks cost there and the
// dimensions of the heads (16 and 64) decide from how many tokens on a chunk pays, or that none
// does.
//
// RUN: gdn-opt %S/chunk.mlir -gdn-fuse -convert-gdn-to-tile="lanes=16 form-costs=3.9,0.77,1.1,12,1.18,0.00648,0.92,1.16,1.1,0.34" -canonicalize -cse | FileCheck %s --check-prefix=WIDE
// RUN: gdn-opt %S/chunk.mlir -gdn-fuse -convert-gdn-to-tile="lanes=8 form-costs=2.9,0.51,0.34,10,1.01,0.01083,1,1,1.93,0.25" | FileCheck %s --check-prefix=NARROW
// RUN: gdn-opt %S/chunk.mlir -gdn-fuse -convert-gdn-to-tile="lanes=16 form-costs=3.9,0.77,1.1,12,1.18,0.00648,0.92,1.16,1.1,0.34 chunk-from=-1" | FileCheck %s --check-prefix=NARROW
// RUN: gdn-opt %S/chunk.mlir -gdn-fuse -convert-gdn-to-tile="lanes=16" | FileCheck %s --check-prefix=NARROW
// RUN: gdn-opt %S/chunk.mlir -gdn-fuse -convert-gdn-to-tile="lanes=8 form-costs=2.9,0.51,0.34,10,1.01,0.01083,1,1,1.93,0.25 chunk-from=7" -canonicalize -cse | FileCheck %s --check-prefix=GIVEN

// WIDE: arith.maxui %{{.+}}, %c34 :
// WIDE: arith.cmpi uge, %{{.+}}, %c41 :
// WIDE: gdn_tile.tri_inverse

// NARROW-NOT: gdn_tile.tri_inverse
//     NARROW: gdn_tile.delta_scan
// NARROW-NOT: gdn_tile.tri_inverse

// GIVEN: arith.maxui %{{.+}}, %c7 :
