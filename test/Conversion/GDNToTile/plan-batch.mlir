// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A block for each sequence counts the elements of all, and stores its own: what begins with
// its sequence, and the element of its number if that is behind the last one.
//
// RUN: gdn-opt %s -convert-gdn-to-tile -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func.func @plan(
//  CHECK-SAME:     %[[SEQUENCES:[a-z0-9]+]]: index {gdn.name = "N"}
//  CHECK-SAME:     %[[STARTS:[a-z0-9]+]]: memref<?xi32, strided<[1], offset: ?>> {gdn.name = "query_start_loc"}
//  CHECK-SAME:     %[[LENS:[a-z0-9]+]]: memref<?xi32, strided<[1], offset: ?>> {gdn.name = "seq_lens"}
//  CHECK-SAME:     %[[TABLE:[a-z0-9]+]]: memref<?x?xi64, strided<[?, 1], offset: ?>> {gdn.name = "block_table"}
//  CHECK-SAME:     %[[DRAFTS:[a-z0-9]+]]: memref<?xi32, strided<[1], offset: ?>> {gdn.name = "num_drafts"}
//  CHECK-SAME:     %[[COUNTS:[a-z0-9]+]]: memref<?xi32, strided<[1], offset: ?>> {gdn.name = "num_accepted"}
//  CHECK-SAME:     %[[OWN:[a-z0-9]+]]: memref<?xi1, strided<[1], offset: ?>> {gdn.name = "is_prefill"}
//  CHECK-SAME:     %[[CU:[a-z0-9]+]]: memref<?xi32, strided<[1], offset: ?>> {gdn.name = "cu_seqlens"}
//  CHECK-SAME:     %[[SLOTS:[a-z0-9]+]]: memref<?xi64, strided<[1], offset: ?>> {gdn.name = "slots"}
//  CHECK-SAME:     %[[WRITE:[a-z0-9]+]]: memref<?xi64, strided<[1], offset: ?>> {gdn.name = "write_slots"}
//  CHECK-SAME:     %[[INITIAL:[a-z0-9]+]]: memref<?xi1, strided<[1], offset: ?>> {gdn.name = "has_initial"}
//  CHECK-SAME:     %[[TAKEN:[a-z0-9]+]]: memref<?xi1, strided<[1], offset: ?>> {gdn.name = "taken"}
//  CHECK-SAME:     gdn_tile.stage = {grid = ["N"], symbols = ["N", "B"]}
//   CHECK-DAG:   %[[MINUS:.+]] = arith.constant -1 : i64
//       CHECK:   %[[N:.+]] = gdn_tile.block_id 0
//       CHECK:   %[[TOTALS:.+]]:6 = scf.for %{{.+}} = %c0 to %[[SEQUENCES]] step %c1
//       CHECK:     memref.load %[[STARTS]]
//       CHECK:     memref.load %[[DRAFTS]]
//       CHECK:     memref.load %[[LENS]]
//   CHECK-NOT:     memref.store
//       CHECK:     scf.yield
//       CHECK:   memref.store %[[IS:.+]], %[[OWN]][%[[N]]]
// The element that begins with the sequence.
//       CHECK:   scf.if %[[TOTALS]]#4 {
//       CHECK:     memref.store %{{.+}}, %[[CU]][%[[AT:.+]]] :
//  CHECK-NEXT:     memref.store %[[IS]], %[[TAKEN]][%[[AT]]]
//  CHECK-NEXT:     scf.if %[[IS]] {
//       CHECK:       %[[GOES_ON:.+]] = arith.cmpi sgt
//  CHECK-NEXT:       memref.store %[[GOES_ON]], %[[INITIAL]][%[[AT]]]
//       CHECK:       scf.if
//  CHECK-NEXT:         memref.load %[[TABLE]][%[[N]], %c0]
//       CHECK:       memref.store %{{.+}}, %[[WRITE]][%[[AT]]]
//       CHECK:       %[[COUNT:.+]] = memref.load %[[COUNTS]][%[[N]]]
//       CHECK:       %[[COLUMN:.+]] = arith.select %[[GOES_ON]], %{{.+}}, %c0
//       CHECK:       %[[IN:.+]] = arith.cmpi ult, %[[COLUMN]], %{{.+}}
//       CHECK:       scf.if
//  CHECK-NEXT:         memref.load %[[TABLE]][%[[N]], %[[COLUMN]]]
//       CHECK:       memref.store %{{.+}}, %[[SLOTS]][%[[AT]]]
//       CHECK:     } else {
//       CHECK:       memref.store %true, %[[INITIAL]][%[[AT]]]
//  CHECK-NEXT:       memref.store %[[MINUS]], %[[WRITE]][%[[AT]]]
//  CHECK-NEXT:       memref.store %[[MINUS]], %[[SLOTS]][%[[AT]]]
// The element of the block's number.
//       CHECK:   %[[BEHIND:.+]] = arith.cmpi uge, %[[N]], %[[TOTALS]]#1
//       CHECK:   scf.if %[[BEHIND]] {
//       CHECK:     memref.store %{{.+}}, %[[CU]][%[[N]]]
//  CHECK-NEXT:     memref.store %false, %[[TAKEN]][%[[N]]]
//  CHECK-NEXT:     memref.store %true, %[[INITIAL]][%[[N]]]
//  CHECK-NEXT:     memref.store %[[MINUS]], %[[WRITE]][%[[N]]]
//  CHECK-NEXT:     memref.store %[[MINUS]], %[[SLOTS]][%[[N]]]
// One block has the end.
//       CHECK:   %[[FIRST:.+]] = arith.cmpi eq, %[[N]], %c0
//       CHECK:   scf.if %[[FIRST]] {
//       CHECK:     memref.store %{{.+}}, %[[CU]][%[[SEQUENCES]]]

// What the entry does not give is not stored, and what it gives twice is stored twice. Without
// counts a sequence of one token is no verify.
// CHECK-LABEL: func.func @some_results(
//  CHECK-SAME:     %[[LENS:[a-z0-9]+]]: memref<?xi32, strided<[1], offset: ?>> {gdn.name = "seq_lens"}
//  CHECK-SAME:     %[[ONE:[a-z0-9]+]]: memref<?xi1, strided<[1], offset: ?>> {gdn.name = "taken"}
//  CHECK-SAME:     %[[TWO:[a-z0-9]+]]: memref<?xi1, strided<[1], offset: ?>> {gdn.name = "taken_too"}
//   CHECK-NOT:   memref.load %[[LENS]]
//   CHECK-NOT:   memref.store
//       CHECK:   memref.store %[[IS:.+]], %[[ONE]][%[[AT:.+]]] :
//  CHECK-NEXT:   memref.store %[[IS]], %[[TWO]][%[[AT]]]
//   CHECK-NOT:   memref.store
//       CHECK:   memref.store %false, %[[ONE]]
//  CHECK-NEXT:   memref.store %false, %[[TWO]]
//   CHECK-NOT:   memref.store
//       CHECK:   return
func.func @plan(
    %starts: tensor<?xi32> {gdn.name = "query_start_loc", gdn.dims = ["N + 1"]},
    %lens: tensor<?xi32> {gdn.name = "seq_lens", gdn.dims = ["N"]},
    %table: tensor<?x?xi64> {gdn.name = "block_table", gdn.dims = ["N", "B"]},
    %drafts: tensor<?xi32> {gdn.name = "num_drafts", gdn.dims = ["N"]},
    %counts: tensor<?xi32> {gdn.name = "num_accepted", gdn.dims = ["N"]})
    -> (tensor<?xi1> {gdn.name = "is_prefill", gdn.dims = ["N"]},
        tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
        tensor<?xi64> {gdn.name = "slots", gdn.dims = ["N"]},
        tensor<?xi64> {gdn.name = "write_slots", gdn.dims = ["N"]},
        tensor<?xi1> {gdn.name = "has_initial", gdn.dims = ["N"]},
        tensor<?xi1> {gdn.name = "taken", gdn.dims = ["N"]})
    attributes {gdn.entry} {
  %plan:6 = gdn.kernel "plan" {
    %own:6 = gdn.plan_batch sequences(%starts, %lens) table(%table) drafts(%drafts)
        accepted(%counts)
        : tensor<?xi32>, tensor<?xi32>, tensor<?x?xi64>, tensor<?xi32>, accepted tensor<?xi32>
          -> tensor<?xi1>, tensor<?xi32>, tensor<?xi64>, tensor<?xi64>, tensor<?xi1>, tensor<?xi1>
    gdn.yield %own#0, %own#1, %own#2, %own#3, %own#4, %own#5
        : tensor<?xi1>, tensor<?xi32>, tensor<?xi64>, tensor<?xi64>, tensor<?xi1>, tensor<?xi1>
  } : tensor<?xi1>, tensor<?xi32>, tensor<?xi64>, tensor<?xi64>, tensor<?xi1>, tensor<?xi1>
  return %plan#0, %plan#1, %plan#2, %plan#3, %plan#4, %plan#5
      : tensor<?xi1>, tensor<?xi32>, tensor<?xi64>, tensor<?xi64>, tensor<?xi1>, tensor<?xi1>
}

func.func @some_results(
    %starts: tensor<?xi32> {gdn.name = "query_start_loc", gdn.dims = ["N + 1"]},
    %lens: tensor<?xi32> {gdn.name = "seq_lens", gdn.dims = ["N"]},
    %table: tensor<?x?xi32> {gdn.name = "block_table", gdn.dims = ["N", "B"]},
    %drafts: tensor<?xi32> {gdn.name = "num_drafts", gdn.dims = ["N"]})
    -> (tensor<?xi1> {gdn.name = "taken", gdn.dims = ["N"]},
        tensor<?xi1> {gdn.name = "taken_too", gdn.dims = ["N"]})
    attributes {gdn.entry} {
  %plan = gdn.kernel "plan" {
    %own:6 = gdn.plan_batch sequences(%starts, %lens) table(%table) drafts(%drafts)
        : tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>, tensor<?xi32>
          -> tensor<?xi1>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi1>, tensor<?xi1>
    gdn.yield %own#5 : tensor<?xi1>
  } : tensor<?xi1>
  return %plan, %plan : tensor<?xi1>, tensor<?xi1>
}
