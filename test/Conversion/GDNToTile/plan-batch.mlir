// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A block for each sequence counts the elements of all, and stores its own: what verify and a
// commit read of its sequence, the element that begins with it, and the element of its number if
// that is behind the last one.
//
// RUN: gdn-opt %s -convert-gdn-to-tile -canonicalize -cse | FileCheck %s

// Limits are symbols, and `limits` is not read.
// CHECK-LABEL: func.func @plan(
//  CHECK-SAME:     %[[SEQUENCES:[a-z0-9]+]]: index {gdn.name = "N"}
//  CHECK-SAME:     %[[TOKENS:[a-z0-9]+]]: index {gdn.name = "T"}
//  CHECK-SAME:     %[[COLUMNS:[a-z0-9]+]]: index {gdn.name = "S"}
//  CHECK-SAME:     %[[STARTS:[a-z0-9]+]]: memref<?xi32, strided<[1], offset: ?>> {gdn.name = "query_start_loc"}
//  CHECK-SAME:     %[[LENS:[a-z0-9]+]]: memref<?xi32, strided<[1], offset: ?>> {gdn.name = "seq_lens"}
//  CHECK-SAME:     %[[TABLE:[a-z0-9]+]]: memref<?x?xi64, strided<[?, 1], offset: ?>> {gdn.name = "block_table"}
//  CHECK-SAME:     %[[DRAFTS:[a-z0-9]+]]: memref<?xi32, strided<[1], offset: ?>> {gdn.name = "num_drafts"}
//  CHECK-SAME:     %[[COUNTS:[a-z0-9]+]]: memref<?xi32, strided<[1], offset: ?>> {gdn.name = "num_accepted"}
//  CHECK-SAME:     %[[LIMITS:[a-z0-9]+]]: memref<?x?xi1, strided<[?, 1], offset: ?>> {gdn.name = "limits"}
//  CHECK-SAME:     %[[OWN:[a-z0-9]+]]: memref<?xi1, strided<[1], offset: ?>> {gdn.name = "is_prefill"}
//  CHECK-SAME:     %[[VERIFY_CU:[a-z0-9]+]]: memref<?xi32, strided<[1], offset: ?>> {gdn.name = "verify_cu_seqlens"}
//  CHECK-SAME:     %[[ACCEPTED:[a-z0-9]+]]: memref<?xi32, strided<[1], offset: ?>> {gdn.name = "verify_accepted"}
//  CHECK-SAME:     %[[CU:[a-z0-9]+]]: memref<?xi32, strided<[1], offset: ?>> {gdn.name = "prefill_cu_seqlens"}
//  CHECK-SAME:     %[[SLOTS:[a-z0-9]+]]: memref<?xi64, strided<[1], offset: ?>> {gdn.name = "prefill_slots"}
//  CHECK-SAME:     %[[WRITE:[a-z0-9]+]]: memref<?xi64, strided<[1], offset: ?>> {gdn.name = "prefill_write_slots"}
//  CHECK-SAME:     %[[INITIAL:[a-z0-9]+]]: memref<?xi1, strided<[1], offset: ?>> {gdn.name = "prefill_has_initial"}
//  CHECK-SAME:     %[[TAKEN:[a-z0-9]+]]: memref<?xi1, strided<[1], offset: ?>> {gdn.name = "prefill_taken"}
//  CHECK-SAME:     gdn_tile.stage = {grid = ["N"], symbols = ["N", "B", "T", "S"]}
//   CHECK-NOT:   %[[LIMITS]]
//   CHECK-DAG:   %[[MINUS:.+]] = arith.constant -1 : i64
//       CHECK:   %[[N:.+]] = gdn_tile.block_id 0
//       CHECK:   memref.load %[[STARTS]][%c0]
//  CHECK-NEXT:   arith.index_cast
//  CHECK-NEXT:   arith.maxsi %{{.+}}, %c0
// The loop over all sequences stores nothing.
//       CHECK:   %[[TOTALS:.+]]:7 = scf.for %{{.+}} = %c0 to %[[SEQUENCES]] step %c1 iter_args(%[[FIRST:[a-z0-9]+]] =
//   CHECK-NOT:     memref.store
//       CHECK:     memref.load %[[STARTS]]
//  CHECK-NEXT:     %[[NEXT:.+]] = arith.index_cast
//  CHECK-NEXT:     arith.maxsi %[[FIRST]], %[[NEXT]]
//       CHECK:     memref.load %[[DRAFTS]]
//       CHECK:     memref.load %[[LENS]]
//   CHECK-NOT:     memref.store
//       CHECK:     scf.yield
// The padding, and what each sequence behind the last one has of it.
//       CHECK:   %[[SHARERS:.+]] = arith.subi %[[SEQUENCES]], %[[TOTALS]]#3
//       CHECK:   %[[END:.+]] = arith.minsi %[[TOKENS]], %[[TOTALS]]#0
//       CHECK:   %[[SHARE:.+]] = arith.divui
//       CHECK:   %[[LAST:.+]] = arith.select %{{.+}}, %[[TOKENS]], %[[END]]
// The block's sequence.
//       CHECK:   arith.cmpi sle, %{{.+}}, %[[TOKENS]]
//       CHECK:   arith.cmpi sle, %{{.+}}, %[[COLUMNS]]
//       CHECK:   arith.cmpi ult, %{{.+}}, %[[COLUMNS]]
//       CHECK:   memref.store %[[IS:.+]], %[[OWN]][%[[N]]]
//       CHECK:   memref.store %{{.+}}, %[[VERIFY_CU]][%[[N]]]
//       CHECK:   memref.store %{{.+}}, %[[ACCEPTED]][%[[N]]]
// The element that begins with it.
//       CHECK:   scf.if %[[TOTALS]]#6 {
//       CHECK:     memref.store %{{.+}}, %[[CU]][%[[TOTALS]]#5]
//  CHECK-NEXT:     memref.store %[[IS]], %[[TAKEN]][%[[TOTALS]]#5]
//       CHECK:     memref.store %{{.+}}, %[[INITIAL]][%[[TOTALS]]#5]
//       CHECK:     %[[WIDTH:.+]] = memref.dim %[[TABLE]], %c1
//       CHECK:     scf.if
//  CHECK-NEXT:       memref.load %[[TABLE]][%[[N]], %c0]
//       CHECK:     memref.store %{{.+}}, %[[WRITE]][%[[TOTALS]]#5]
//       CHECK:     %[[COLUMN:.+]] = arith.select %{{.+}}, %{{.+}}, %c0
//  CHECK-NEXT:     arith.cmpi ult, %[[COLUMN]], %[[WIDTH]]
//       CHECK:     scf.if
//  CHECK-NEXT:       memref.load %[[TABLE]][%[[N]], %[[COLUMN]]]
//       CHECK:     memref.store %{{.+}}, %[[SLOTS]][%[[TOTALS]]#5]
// The element of the block's number.
//       CHECK:   %[[BEHIND:.+]] = arith.cmpi uge, %[[N]], %[[TOTALS]]#1
//       CHECK:   scf.if %[[BEHIND]] {
//       CHECK:     arith.select %{{.+}}, %[[END]], %[[LAST]]
//       CHECK:     memref.store %{{.+}}, %[[CU]][%[[N]]]
//  CHECK-NEXT:     memref.store %false, %[[TAKEN]][%[[N]]]
//  CHECK-NEXT:     memref.store %true, %[[INITIAL]][%[[N]]]
//  CHECK-NEXT:     memref.store %[[MINUS]], %[[WRITE]][%[[N]]]
//  CHECK-NEXT:     memref.store %[[MINUS]], %[[SLOTS]][%[[N]]]
// One block has the ends.
//       CHECK:   %[[ZERO:.+]] = arith.cmpi eq, %[[N]], %c0
//       CHECK:   scf.if %[[ZERO]] {
//  CHECK-NEXT:     %[[CAST:.+]] = arith.index_cast %[[LAST]]
//  CHECK-NEXT:     memref.store %[[CAST]], %[[CU]][%[[SEQUENCES]]]
//  CHECK-NEXT:     memref.store %[[CAST]], %[[VERIFY_CU]][%[[SEQUENCES]]]

// Counts of pending tokens begin with 0, and a limit may be a constant. Slots of a commit are
// read where the sequence is prefill's and goes on, and its count is not 0.
// CHECK-LABEL: func.func @commits_of_prefill(
//  CHECK-SAME:     %[[TABLE:[a-z0-9]+]]: memref<?x?xi32, strided<[?, 1], offset: ?>> {gdn.name = "block_table"}
//  CHECK-SAME:     %[[VERIFY:[a-z0-9]+]]: memref<?xi32, strided<[1], offset: ?>> {gdn.name = "verify_slots"}
//  CHECK-SAME:     %[[COMMIT:[a-z0-9]+]]: memref<?xi32, strided<[1], offset: ?>> {gdn.name = "commit_slots"}
//  CHECK-SAME:     %[[ACCEPTED:[a-z0-9]+]]: memref<?xi32, strided<[1], offset: ?>> {gdn.name = "commit_accepted"}
//       CHECK:   %[[N:.+]] = gdn_tile.block_id 0
//       CHECK:   scf.for
//       CHECK:     scf.yield
//       CHECK:   %[[OWN:.+]] = arith.andi %{{.+}}, %{{.+}} : i1
//       CHECK:   %[[GOES_ON:.+]] = arith.cmpi sgt
//       CHECK:   arith.cmpi sle, %{{.+}}, %c4
//       CHECK:   arith.cmpi ule, %[[COUNT:.+]], %c4
//       CHECK:   %[[COUNTED:.+]] = arith.ori
//  CHECK-NEXT:   %[[VALID:.+]] = arith.andi %{{.+}}, %[[COUNTED]]
//  CHECK-NEXT:   arith.xori %[[OWN]], %true
//       CHECK:   memref.store %{{.+}}, %[[VERIFY]][%[[N]]]
//       CHECK:   %[[WAITS:.+]] = arith.cmpi sgt, %[[COUNT]], %c0
//  CHECK-NEXT:   %[[LATER:.+]] = arith.andi %[[GOES_ON]], %[[WAITS]]
//  CHECK-NEXT:   %[[ALL:.+]] = arith.andi %[[VALID]], %[[LATER]]
//  CHECK-NEXT:   %[[COMMITS:.+]] = arith.andi %[[ALL]], %[[OWN]]
//  CHECK-NEXT:   arith.andi %{{.+}}, %[[COMMITS]]
//       CHECK:   scf.if
//  CHECK-NEXT:     memref.load %[[TABLE]][%[[N]], %c0]
//       CHECK:   memref.store %{{.+}}, %[[COMMIT]][%[[N]]]
//  CHECK-NEXT:   arith.select %[[COMMITS]], %[[COUNT]], %c0
//       CHECK:   memref.store %{{.+}}, %[[ACCEPTED]][%[[N]]]

// What the entry does not give is not stored, and what it gives twice is stored twice. Without
// counts a sequence of one token is no verify, so that lengths do not matter.
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
    %t: index {gdn.name = "T"}, %s: index {gdn.name = "S"},
    %starts: tensor<?xi32> {gdn.name = "query_start_loc", gdn.dims = ["N + 1"]},
    %lens: tensor<?xi32> {gdn.name = "seq_lens", gdn.dims = ["N"]},
    %table: tensor<?x?xi64> {gdn.name = "block_table", gdn.dims = ["N", "B"]},
    %drafts: tensor<?xi32> {gdn.name = "num_drafts", gdn.dims = ["N"]},
    %counts: tensor<?xi32> {gdn.name = "num_accepted", gdn.dims = ["N"]},
    %limits: tensor<?x?xi1> {gdn.name = "limits", gdn.dims = ["T", "S"]})
    -> (tensor<?xi1> {gdn.name = "is_prefill", gdn.dims = ["N"]},
        tensor<?xi32> {gdn.name = "verify_cu_seqlens", gdn.dims = ["N + 1"]},
        tensor<?xi32> {gdn.name = "verify_accepted", gdn.dims = ["N"]},
        tensor<?xi32> {gdn.name = "prefill_cu_seqlens", gdn.dims = ["N + 1"]},
        tensor<?xi64> {gdn.name = "prefill_slots", gdn.dims = ["N"]},
        tensor<?xi64> {gdn.name = "prefill_write_slots", gdn.dims = ["N"]},
        tensor<?xi1> {gdn.name = "prefill_has_initial", gdn.dims = ["N"]},
        tensor<?xi1> {gdn.name = "prefill_taken", gdn.dims = ["N"]})
    attributes {gdn.entry} {
  %plan:8 = gdn.kernel "plan" {
    %own, %verify:3, %prefill:5, %commit:2 =
        gdn.plan_batch sequences(%starts, %lens) table(%table) drafts(%drafts) limits(%t, %s)
        accepted(%counts)
        : tensor<?xi32>, tensor<?xi32>, tensor<?x?xi64>, tensor<?xi32>, accepted tensor<?xi32>
    gdn.yield %own, %verify#0, %verify#2, %prefill#0, %prefill#1, %prefill#2, %prefill#3, %prefill#4
        : tensor<?xi1>, tensor<?xi32>, tensor<?xi32>,
          tensor<?xi32>, tensor<?xi64>, tensor<?xi64>, tensor<?xi1>, tensor<?xi1>
  } : tensor<?xi1>, tensor<?xi32>, tensor<?xi32>,
      tensor<?xi32>, tensor<?xi64>, tensor<?xi64>, tensor<?xi1>, tensor<?xi1>
  return %plan#0, %plan#1, %plan#2, %plan#3, %plan#4, %plan#5, %plan#6, %plan#7
      : tensor<?xi1>, tensor<?xi32>, tensor<?xi32>,
        tensor<?xi32>, tensor<?xi64>, tensor<?xi64>, tensor<?xi1>, tensor<?xi1>
}

func.func @commits_of_prefill(
    %t: index {gdn.name = "T"},
    %starts: tensor<?xi32> {gdn.name = "query_start_loc", gdn.dims = ["N + 1"]},
    %lens: tensor<?xi32> {gdn.name = "seq_lens", gdn.dims = ["N"]},
    %table: tensor<?x?xi32> {gdn.name = "block_table", gdn.dims = ["N", "B"]},
    %drafts: tensor<?xi32> {gdn.name = "num_drafts", gdn.dims = ["N"]},
    %counts: tensor<?xi32> {gdn.name = "num_accepted", gdn.dims = ["N"]},
    %limits: tensor<?xi1> {gdn.name = "limits", gdn.dims = ["T"]})
    -> (tensor<?xi32> {gdn.name = "verify_slots", gdn.dims = ["N"]},
        tensor<?xi32> {gdn.name = "commit_slots", gdn.dims = ["N"]},
        tensor<?xi32> {gdn.name = "commit_accepted", gdn.dims = ["N"]})
    attributes {gdn.entry} {
  %s = arith.constant 4 : index
  %plan:3 = gdn.kernel "plan" {
    %own:11 = gdn.plan_batch sequences(%starts, %lens) table(%table) drafts(%drafts) limits(%t, %s)
        accepted(%counts) commits prefill
        : tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>, tensor<?xi32>, accepted tensor<?xi32>
    gdn.yield %own#2, %own#9, %own#10 : tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
  } : tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
  return %plan#0, %plan#1, %plan#2 : tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
}

func.func @some_results(
    %starts: tensor<?xi32> {gdn.name = "query_start_loc", gdn.dims = ["N + 1"]},
    %lens: tensor<?xi32> {gdn.name = "seq_lens", gdn.dims = ["N"]},
    %table: tensor<?x?xi32> {gdn.name = "block_table", gdn.dims = ["N", "B"]},
    %drafts: tensor<?xi32> {gdn.name = "num_drafts", gdn.dims = ["N"]})
    -> (tensor<?xi1> {gdn.name = "taken", gdn.dims = ["N"]},
        tensor<?xi1> {gdn.name = "taken_too", gdn.dims = ["N"]})
    attributes {gdn.entry} {
  %t = arith.constant 64 : index
  %s = arith.constant 4 : index
  %plan = gdn.kernel "plan" {
    %own:11 = gdn.plan_batch sequences(%starts, %lens) table(%table) drafts(%drafts) limits(%t, %s)
        : tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>, tensor<?xi32>
    gdn.yield %own#8 : tensor<?xi1>
  } : tensor<?xi1>
  return %plan, %plan : tensor<?xi1>, tensor<?xi1>
}
