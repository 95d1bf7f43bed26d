// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The body of a module has no order, so values may go round there: folds that
// look at where a value comes from end all the same.
//
// RUN: gdn-opt %s -allow-unregistered-dialect -canonicalize | FileCheck %s

// CHECK: %[[A:.+]] = gdn.l2norm %[[B:.+]] :
// CHECK: %[[B]] = gdn.l2norm %[[A]] :
// CHECK: %[[M:.+]] = gdn.mask_sequences %[[B]] of(
// CHECK: "test.use"(%[[M]])
%pool, %slots = "test.inputs"() : () -> (!gdn.pool<?x?x8x8xf32>, tensor<?xi32>)
%a = gdn.l2norm %b : tensor<?x?x8xf32> -> tensor<?x?x8xf32>
%b = gdn.l2norm %a : tensor<?x?x8xf32> -> tensor<?x?x8xf32>
%m = gdn.mask_sequences %b of(%pool) slots(%slots)
    : tensor<?x?x8xf32>, !gdn.pool<?x?x8x8xf32>, tensor<?xi32> -> tensor<?x?x8xf32>
"test.use"(%m) : (tensor<?x?x8xf32>) -> ()
