// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attributes of gdn besides those of an entry's schema (entry.mlir): on
// programs, on code, and on the modules in which a kept compilation says what
// was said of it.
//
// RUN: gdn-opt %s | gdn-opt | FileCheck %s
// RUN: gdn-opt -mlir-print-op-generic %s | gdn-opt | FileCheck %s

// CHECK: func.func @program() attributes {gdn.entry, gdn.facts = {io = "bf16"}}
func.func @program() attributes {gdn.entry, gdn.facts = {io = "bf16"}} {
  return
}

// CHECK: llvm.func @code() attributes {gdn.entry, gdn.facts = {}}
llvm.func @code() attributes {gdn.entry, gdn.facts = {}}

// CHECK: module attributes {gdn.message = "left out", gdn.severity = 1 : i32}
module attributes {gdn.message = "left out", gdn.severity = 1 : i32} {
}
