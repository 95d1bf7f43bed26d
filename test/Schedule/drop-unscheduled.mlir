// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tile program goes; programs of gdn_gpu and functions without
// a grid stay.
//
// RUN: gdn-opt %s -gdn-drop-unscheduled | FileCheck %s

// One stage of a variant is nothing without the others.
//
//   CHECK-NOT: @prefill
//       CHECK: func.func @decode
//       CHECK: func.func @other
//   CHECK-NOT: @ready()
//       CHECK: func.func @ready__inter_chunk
func.func @prefill__intra_chunk()
    attributes {gdn_tile.stage = {grid = ["N"], stage_of = "prefill", variant = "staged"},
                gdn_gpu.kernel = {threads = 32 : i64}} {
  return
}
func.func @prefill__inter_chunk()
    attributes {gdn_tile.stage = {grid = ["N"], stage_of = "prefill", variant = "staged"}} {
  return
}
func.func @prefill() attributes {gdn_tile.stage = {grid = ["N"]}} {
  return
}
func.func @decode()
    attributes {gdn_tile.stage = {grid = ["N"]}, gdn_gpu.kernel = {threads = 32 : i64}} {
  return
}
func.func @other() {
  return
}
func.func @ready() attributes {gdn_tile.stage = {grid = ["N"]}} {
  return
}
func.func @ready__inter_chunk()
    attributes {gdn_tile.stage = {grid = ["N"], stage_of = "ready", variant = "staged"},
                gdn_gpu.kernel = {threads = 32 : i64}} {
  return
}

// Of the two variants that share a stage, one is whole.
//       CHECK: func.func @both__intra_chunk
//  CHECK-SAME:   variant = "whole"
//   CHECK-NOT: @both__half
//       CHECK: func.func @both__whole
func.func @both__intra_chunk()
    attributes {gdn_tile.stage = {grid = ["N"], stage_of = "both", variant = ["half", "whole"]},
                gdn_gpu.kernel = {threads = 32 : i64}} {
  return
}
func.func @both__half()
    attributes {gdn_tile.stage = {grid = ["N"], stage_of = "both", variant = "half"}} {
  return
}
func.func @both__whole()
    attributes {gdn_tile.stage = {grid = ["N"], stage_of = "both", variant = "whole"},
                gdn_gpu.kernel = {threads = 32 : i64}} {
  return
}

// A variant with conditions is nothing without one that takes all calls.
//   CHECK-NOT: @large
//       CHECK: func.func @small_persistent
//       CHECK: func.func @small(
func.func @large_persistent()
    attributes {gdn_tile.stage = {grid = ["N"], stage_of = "large", variant = "persistent",
                                  conditions = [[["9"], ["N"]]]},
                gdn_gpu.kernel = {threads = 32 : i64}} {
  return
}
func.func @large() attributes {gdn_tile.stage = {grid = ["N"]}} {
  return
}
func.func @small_persistent()
    attributes {gdn_tile.stage = {grid = ["N"], stage_of = "small", variant = "persistent",
                                  conditions = [[["9"], ["N"]]]},
                gdn_gpu.kernel = {threads = 32 : i64}} {
  return
}
func.func @small()
    attributes {gdn_tile.stage = {grid = ["N"]}, gdn_gpu.kernel = {threads = 32 : i64}} {
  return
}
