// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Without chunk-from, the vectors of the target and the dimensions of the heads
// (16 and 64) decide from how many tokens on a chunk pays, or that none does.
//
// RUN: gdn-opt %S/chunk.mlir -gdn-fuse -convert-gdn-to-tile="lanes=16" -canonicalize -cse | FileCheck %s --check-prefix=WIDE
// RUN: gdn-opt %S/chunk.mlir -gdn-fuse -convert-gdn-to-tile="lanes=8" | FileCheck %s --check-prefix=NARROW
// RUN: gdn-opt %S/chunk.mlir -gdn-fuse -convert-gdn-to-tile="lanes=16 chunk-from=-1" | FileCheck %s --check-prefix=NARROW
// RUN: gdn-opt %S/chunk.mlir -gdn-fuse -convert-gdn-to-tile="lanes=8 chunk-from=7" -canonicalize -cse | FileCheck %s --check-prefix=GIVEN

// WIDE: arith.maxui %{{.+}}, %c40 :
// WIDE: gdn_tile.tri_inverse

// NARROW-NOT: gdn_tile.tri_inverse
//     NARROW: gdn_tile.delta_scan
// NARROW-NOT: gdn_tile.tri_inverse

// GIVEN: arith.maxui %{{.+}}, %c7 :
