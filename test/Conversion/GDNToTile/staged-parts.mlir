// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stages whose products take operands in two parts of f16: with write strengths up to 2, and
// of inputs in f32, whose queries and values have two parts as well.
//
// RUN: gdn-compile --preset=olmo-hybrid-7b --io=bf16 --only=prefill --emit=gdn -o %t.mlir
// RUN: gdn-opt %t.mlir -gdn-fuse -convert-gdn-to-tile="value-heads token-by-token precision=mixed-io chunk-stages=staged short-chunks=32:2<=parts" -canonicalize -cse | FileCheck %s
// RUN: gdn-opt %t.mlir -gdn-fuse -convert-gdn-to-tile="value-heads precision=mixed chunk-stages=staged short-chunks=32:parts<=1" -canonicalize -cse | FileCheck %s --check-prefix=LONG
// RUN: gdn-compile --preset=qwen3.5-4b --io=f32 --only=prefill --emit=gdn -o %t.f32.mlir
// RUN: gdn-opt %t.f32.mlir -gdn-fuse -convert-gdn-to-tile="value-heads precision=mixed chunk-stages=staged" -canonicalize -cse | FileCheck %s --check-prefix=WIDE

// Neither segments nor work in the recurrence.
// RUN: gdn-opt %t.f32.mlir -gdn-fuse -convert-gdn-to-tile="value-heads precision=mixed chunk-stages=staged variants=fused:fused=2,segments-4:segments=4,staged:" -canonicalize -cse | FileCheck %s --check-prefix=ALONE
//     ALONE: variant = "staged"
// ALONE-NOT: segments-4
// ALONE-NOT: "fused"

// Keys have two parts, queries and values one.
// CHECK-LABEL: func.func @prefill__prologue(
//  CHECK-SAME:   memref<?x?x32x96xf16>, %{{[a-z0-9]+}}: memref<?x?x32x96xf16>, %{{[a-z0-9]+}}: memref<?x?x32x96xf16>, %{{[a-z0-9]+}}: memref<?x?x32x192xf16>)
//       CHECK:   arith.truncf
//       CHECK:   arith.extf
//       CHECK:   arith.subf
//       CHECK:   arith.truncf

// Three products are one of f32; of queries two.
// CHECK-LABEL: func.func @prefill__intra_chunk(
//  CHECK-SAME:   facts = {chunk = "32", chunk_from = "1", precision = "parts"}
//       CHECK:   %[[LOW:.+]] = gdn_tile.matmul %[[K1:[^,]+]], %[[KT0:[^ ]+]] :
//       CHECK:   %[[BOTH:.+]] = gdn_tile.matmul %[[K0:[^,]+]], %[[KT0]] acc(%[[LOW]] :
//       CHECK:   gdn_tile.matmul %[[K0]], %{{[^ ]+}} acc(%[[BOTH]] :
// The inverse of the first part, and two steps of Newton's.
//       CHECK:   gdn_tile.tri_inverse %{{.+}} : vector<32x32xf16>
// CHECK-COUNT-7: gdn_tile.matmul

// CHECK-LABEL: func.func @prefill__inter_chunk(
//       CHECK:   scf.for
// M K^T, with all of the first part of K ahead of the second.
//       CHECK:     %[[M1:.+]] = gdn_tile.matmul %{{[^,]+}}, %[[FIRST:[^ ]+]] :
//       CHECK:     %[[M2:.+]] = gdn_tile.matmul %{{[^,]+}}, %[[FIRST]] acc(%[[M1]] :
//       CHECK:     gdn_tile.matmul %{{[^,]+}}, %{{[^ ]+}} acc(%[[M2]] :
// M Q^T, O and M.
// CHECK-COUNT-7: gdn_tile.matmul
//   CHECK-NOT:   gdn_tile.matmul

// LONG: facts = {chunk = "64", chunk_from = "1", precision = "parts"}

// WIDE-LABEL: func.func @prefill__inter_chunk(
//       WIDE:   scf.for
// WIDE-COUNT-12: gdn_tile.matmul
//   WIDE-NOT:   gdn_tile.matmul
