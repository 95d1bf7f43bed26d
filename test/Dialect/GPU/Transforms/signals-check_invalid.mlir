// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-gpu-check: stages of an entry that do not add up to what another one awaits.
//
// RUN: gdn-gpu-opt %s -split-input-file -o /dev/null
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics -gdn-gpu-check

// A stage that says nothing of what it writes.
#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 1>
!one = !gdn_gpu.fragment<1xf32, #gdn_gpu.per_row<#row>>
func.func @e__clear(%out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %i: index, %zero: !one)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {stage_of = "e", variant = ["roles", "other"]}} {
  gdn_gpu.store %zero, %counters[%i] dims [0] : !one, memref<?xf32>
  return
}
// expected-error@+1 {{'func.func' op expects stage 'e__rule', which writes 'out', to signal region 1 of the workspace, of which stage 'e__norm' awaits 128, but got no gdn_gpu.signal}}
func.func @e__rule(%out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %n: index, %i: index, %x: i32, %c: i1)
    attributes {gdn_gpu.kernel = {threads = 128 : i64},
                gdn_tile.stage = {same_chunks = 2 : i64, stage_of = "e", variant = "roles"}} {
  gdn_gpu.store_element %x, %out[%i] : i32, memref<?xi32>
  return
}
func.func @e__norm(%out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {follows = 1 : i64, stage_of = "e", variant = "roles"}} {
  gdn_gpu.each_warp 0 for 1 {
  ^bb0(%w: index):
    // expected-note@+1 {{stage 'e__norm' awaits 128 of a counter here}}
    gdn_gpu.await_signals 128, %counters[%i] : memref<?xf32>
    %a = memref.load %out[%i] : memref<?xi32>
  }
  return
}

// -----

// Another one does.
#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 1>
!one = !gdn_gpu.fragment<1xf32, #gdn_gpu.per_row<#row>>
func.func @e__clear(%out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %i: index, %zero: !one)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {stage_of = "e", variant = ["roles", "other"]}} {
  gdn_gpu.store %zero, %counters[%i] dims [0] : !one, memref<?xf32>
  return
}
func.func @e__rule(%out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %n: index, %i: index, %x: i32, %c: i1)
    attributes {gdn_gpu.kernel = {threads = 128 : i64},
                gdn_tile.stage = {same_chunks = 2 : i64, stage_of = "e", variant = "roles"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c64 = arith.constant 64 : index
  %c320 = arith.constant 320 : index
  gdn_gpu.store_element %x, %out[%i] : i32, memref<?xi32>
  gdn_gpu.warps 0 for 2 {
    %least = arith.minsi %n, %c5 : index
    gdn_gpu.signal 32, %counters[%n] last(%least) : memref<?xf32>
  }
  gdn_gpu.warps 2 for 2 {
    scf.for %t = %c0 to %n step %c64 {
      %before = arith.subi %t, %c320 : index
      %count = arith.select %c, %c1, %c0 : index
      gdn_gpu.signal 32, %counters[%before] last(%count) : memref<?xf32>
    }
  }
  return
}
// expected-error@+1 {{'func.func' op expects stage 'e__others', which writes 'out', to signal region 1 of the workspace, of which stage 'e__norm' awaits 128, but got no gdn_gpu.signal}}
func.func @e__others(%out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %n: index, %i: index, %x: i32, %c: i1)
    attributes {gdn_gpu.kernel = {threads = 128 : i64},
                gdn_tile.stage = {same_chunks = 2 : i64, stage_of = "e", variant = "roles"}} {
  gdn_gpu.store_element %x, %out[%i] : i32, memref<?xi32>
  return
}
func.func @e__norm(%out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {follows = 1 : i64, stage_of = "e", variant = "roles"}} {
  gdn_gpu.each_warp 0 for 1 {
  ^bb0(%w: index):
    // expected-note@+1 {{stage 'e__norm' awaits 128 of a counter here}}
    gdn_gpu.await_signals 128, %counters[%i] : memref<?xf32>
    %a = memref.load %out[%i] : memref<?xi32>
  }
  return
}

// -----

// It signals another array.
#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 1>
!one = !gdn_gpu.fragment<1xf32, #gdn_gpu.per_row<#row>>
func.func @e__clear(%out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %i: index, %zero: !one)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {stage_of = "e", variant = ["roles", "other"]}} {
  gdn_gpu.store %zero, %counters[%i] dims [0] : !one, memref<?xf32>
  return
}
// expected-error@+1 {{'func.func' op expects stage 'e__rule', which writes 'out', to signal region 1 of the workspace}}
func.func @e__rule(%out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %more: memref<?xf32>, %n: index, %i: index, %x: i32, %c: i1)
    attributes {gdn_gpu.kernel = {threads = 128 : i64},
                gdn_tile.stage = {same_chunks = 2 : i64, stage_of = "e", variant = "roles"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c64 = arith.constant 64 : index
  %c320 = arith.constant 320 : index
  gdn_gpu.store_element %x, %out[%i] : i32, memref<?xi32>
  gdn_gpu.warps 0 for 2 {
    %least = arith.minsi %n, %c5 : index
    gdn_gpu.signal 32, %more[%n] last(%least) : memref<?xf32>
  }
  gdn_gpu.warps 2 for 2 {
    scf.for %t = %c0 to %n step %c64 {
      %before = arith.subi %t, %c320 : index
      %count = arith.select %c, %c1, %c0 : index
      gdn_gpu.signal 32, %more[%before] last(%count) : memref<?xf32>
    }
  }
  return
}
func.func @e__norm(%out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {follows = 1 : i64, stage_of = "e", variant = "roles"}} {
  gdn_gpu.each_warp 0 for 1 {
  ^bb0(%w: index):
    // expected-note@+1 {{stage 'e__norm' awaits 128 of a counter here}}
    gdn_gpu.await_signals 128, %counters[%i] : memref<?xf32>
    %a = memref.load %out[%i] : memref<?xi32>
  }
  return
}

// -----

// The roles do not add up.
#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 1>
!one = !gdn_gpu.fragment<1xf32, #gdn_gpu.per_row<#row>>
func.func @e__clear(%out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %i: index, %zero: !one)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {stage_of = "e", variant = ["roles", "other"]}} {
  gdn_gpu.store %zero, %counters[%i] dims [0] : !one, memref<?xf32>
  return
}
func.func @e__rule(%out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %n: index, %i: index, %x: i32, %c: i1)
    attributes {gdn_gpu.kernel = {threads = 128 : i64},
                gdn_tile.stage = {same_chunks = 2 : i64, stage_of = "e", variant = "roles"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c64 = arith.constant 64 : index
  %c320 = arith.constant 320 : index
  gdn_gpu.store_element %x, %out[%i] : i32, memref<?xi32>
  gdn_gpu.warps 0 for 2 {
    %least = arith.minsi %n, %c5 : index
    // expected-error@+1 {{'gdn_gpu.signal' op expects stage 'e__rule' to add up to 128 in a counter of region 1 of the workspace, which stage 'e__norm' awaits, but got 64, 16 of 2 warps in 2 blocks with the same chunks}}
    gdn_gpu.signal 16, %counters[%n] last(%least) : memref<?xf32>
  }
  gdn_gpu.warps 2 for 2 {
    scf.for %t = %c0 to %n step %c64 {
      %before = arith.subi %t, %c320 : index
      %count = arith.select %c, %c1, %c0 : index
      gdn_gpu.signal 32, %counters[%before] last(%count) : memref<?xf32>
    }
  }
  return
}
func.func @e__norm(%out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {follows = 1 : i64, stage_of = "e", variant = "roles"}} {
  gdn_gpu.each_warp 0 for 1 {
  ^bb0(%w: index):
    // expected-note@+1 {{stage 'e__norm' awaits 128 of a counter here}}
    gdn_gpu.await_signals 128, %counters[%i] : memref<?xf32>
    %a = memref.load %out[%i] : memref<?xi32>
  }
  return
}

// -----

// Nor does one block.
#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 1>
!one = !gdn_gpu.fragment<1xf32, #gdn_gpu.per_row<#row>>
func.func @e__clear(%out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %i: index, %zero: !one)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {stage_of = "e", variant = ["roles", "other"]}} {
  gdn_gpu.store %zero, %counters[%i] dims [0] : !one, memref<?xf32>
  return
}
func.func @e__rule(%out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %n: index, %i: index, %x: i32, %c: i1)
    attributes {gdn_gpu.kernel = {threads = 128 : i64},
                gdn_tile.stage = {same_chunks = 1 : i64, stage_of = "e", variant = "roles"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c64 = arith.constant 64 : index
  %c320 = arith.constant 320 : index
  gdn_gpu.store_element %x, %out[%i] : i32, memref<?xi32>
  gdn_gpu.warps 0 for 2 {
    %least = arith.minsi %n, %c5 : index
    // expected-error@+1 {{'gdn_gpu.signal' op expects stage 'e__rule' to add up to 128 in a counter of region 1 of the workspace, which stage 'e__norm' awaits, but got 64, 32 of 2 warps in 1 blocks with the same chunks}}
    gdn_gpu.signal 32, %counters[%n] last(%least) : memref<?xf32>
  }
  gdn_gpu.warps 2 for 2 {
    scf.for %t = %c0 to %n step %c64 {
      %before = arith.subi %t, %c320 : index
      %count = arith.select %c, %c1, %c0 : index
      gdn_gpu.signal 32, %counters[%before] last(%count) : memref<?xf32>
    }
  }
  return
}
func.func @e__norm(%out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {follows = 1 : i64, stage_of = "e", variant = "roles"}} {
  gdn_gpu.each_warp 0 for 1 {
  ^bb0(%w: index):
    // expected-note@+1 {{stage 'e__norm' awaits 128 of a counter here}}
    gdn_gpu.await_signals 128, %counters[%i] : memref<?xf32>
    %a = memref.load %out[%i] : memref<?xi32>
  }
  return
}

// -----

// Nobody says anything of the last turns.
#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 1>
!one = !gdn_gpu.fragment<1xf32, #gdn_gpu.per_row<#row>>
func.func @e__clear(%out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %i: index, %zero: !one)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {stage_of = "e", variant = ["roles", "other"]}} {
  gdn_gpu.store %zero, %counters[%i] dims [0] : !one, memref<?xf32>
  return
}
func.func @e__rule(%out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %n: index, %i: index, %x: i32, %c: i1)
    attributes {gdn_gpu.kernel = {threads = 128 : i64},
                gdn_tile.stage = {same_chunks = 2 : i64, stage_of = "e", variant = "roles"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c64 = arith.constant 64 : index
  %c320 = arith.constant 320 : index
  gdn_gpu.store_element %x, %out[%i] : i32, memref<?xi32>
  gdn_gpu.warps 2 for 2 {
    scf.for %t = %c0 to %n step %c64 {
      %before = arith.subi %t, %c320 : index
      %count = arith.select %c, %c1, %c0 : index
      // expected-error@+1 {{'gdn_gpu.signal' op expects another gdn_gpu.signal of region 1 of the workspace in stage 'e__rule', behind the loop, of the last 5, of which this one says nothing, but got none}}
      gdn_gpu.signal 32, %counters[%before] last(%count) : memref<?xf32>
    }
  }
  return
}
func.func @e__norm(%out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {follows = 1 : i64, stage_of = "e", variant = "roles"}} {
  gdn_gpu.each_warp 0 for 1 {
  ^bb0(%w: index):
    // expected-note@+1 {{stage 'e__norm' awaits 128 of a counter here}}
    gdn_gpu.await_signals 128, %counters[%i] : memref<?xf32>
    %a = memref.load %out[%i] : memref<?xi32>
  }
  return
}

// -----

// Nor of those before.
#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 1>
!one = !gdn_gpu.fragment<1xf32, #gdn_gpu.per_row<#row>>
func.func @e__clear(%out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %i: index, %zero: !one)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {stage_of = "e", variant = ["roles", "other"]}} {
  gdn_gpu.store %zero, %counters[%i] dims [0] : !one, memref<?xf32>
  return
}
func.func @e__rule(%out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %n: index, %i: index, %x: i32, %c: i1)
    attributes {gdn_gpu.kernel = {threads = 128 : i64},
                gdn_tile.stage = {same_chunks = 2 : i64, stage_of = "e", variant = "roles"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c64 = arith.constant 64 : index
  %c320 = arith.constant 320 : index
  gdn_gpu.store_element %x, %out[%i] : i32, memref<?xi32>
  gdn_gpu.warps 0 for 2 {
    %least = arith.minsi %n, %c5 : index
    // expected-error@+1 {{'gdn_gpu.signal' op expects another gdn_gpu.signal of region 1 of the workspace in stage 'e__rule', in a loop, of the turns ahead of the last 5, of which this one says nothing, but got none}}
    gdn_gpu.signal 32, %counters[%n] last(%least) : memref<?xf32>
  }
  return
}
func.func @e__norm(%out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {follows = 1 : i64, stage_of = "e", variant = "roles"}} {
  gdn_gpu.each_warp 0 for 1 {
  ^bb0(%w: index):
    // expected-note@+1 {{stage 'e__norm' awaits 128 of a counter here}}
    gdn_gpu.await_signals 128, %counters[%i] : memref<?xf32>
    %a = memref.load %out[%i] : memref<?xi32>
  }
  return
}

// -----

// One turn has no signal.
#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 1>
!one = !gdn_gpu.fragment<1xf32, #gdn_gpu.per_row<#row>>
func.func @e__clear(%out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %i: index, %zero: !one)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {stage_of = "e", variant = ["roles", "other"]}} {
  gdn_gpu.store %zero, %counters[%i] dims [0] : !one, memref<?xf32>
  return
}
func.func @e__rule(%out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %n: index, %i: index, %x: i32, %c: i1)
    attributes {gdn_gpu.kernel = {threads = 128 : i64},
                gdn_tile.stage = {same_chunks = 2 : i64, stage_of = "e", variant = "roles"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %c320 = arith.constant 320 : index
  gdn_gpu.store_element %x, %out[%i] : i32, memref<?xi32>
  gdn_gpu.warps 0 for 2 {
    %least = arith.minsi %n, %c4 : index
    // expected-error@+1 {{'gdn_gpu.signal' op expects another gdn_gpu.signal of region 1 of the workspace in stage 'e__rule', in a loop, of the turns ahead of the last 4, of which this one says nothing, but got one of those ahead of the last 5}}
    gdn_gpu.signal 32, %counters[%n] last(%least) : memref<?xf32>
  }
  gdn_gpu.warps 2 for 2 {
    scf.for %t = %c0 to %n step %c64 {
      %before = arith.subi %t, %c320 : index
      %count = arith.select %c, %c1, %c0 : index
      gdn_gpu.signal 32, %counters[%before] last(%count) : memref<?xf32>
    }
  }
  return
}
func.func @e__norm(%out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {follows = 1 : i64, stage_of = "e", variant = "roles"}} {
  gdn_gpu.each_warp 0 for 1 {
  ^bb0(%w: index):
    // expected-note@+1 {{stage 'e__norm' awaits 128 of a counter here}}
    gdn_gpu.await_signals 128, %counters[%i] : memref<?xf32>
    %a = memref.load %out[%i] : memref<?xi32>
  }
  return
}

// -----

// Nobody signals at all.
#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 1>
!one = !gdn_gpu.fragment<1xf32, #gdn_gpu.per_row<#row>>
func.func @e__clear(%out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %i: index, %zero: !one)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {stage_of = "e", variant = ["roles", "other"]}} {
  gdn_gpu.store %zero, %counters[%i] dims [0] : !one, memref<?xf32>
  return
}
func.func @e__norm(%out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {follows = 1 : i64, stage_of = "e", variant = "roles"}} {
  gdn_gpu.each_warp 0 for 1 {
  ^bb0(%w: index):
    // expected-error@+1 {{'gdn_gpu.await_signals' op expects a stage ahead of 'e__norm' to signal region 1 of the workspace, but got none}}
    gdn_gpu.await_signals 128, %counters[%i] : memref<?xf32>
    %a = memref.load %out[%i] : memref<?xi32>
  }
  return
}

// -----

// What was there before counts, too.
#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 1>
!one = !gdn_gpu.fragment<1xf32, #gdn_gpu.per_row<#row>>
func.func @e__clear(%out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %old: memref<?xf32>, %i: index, %zero: !one)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {stage_of = "e", variant = ["roles", "other"]}} {
  gdn_gpu.store %zero, %old[%i] dims [0] : !one, memref<?xf32>
  return
}
func.func @e__rule(%out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %n: index, %i: index, %x: i32, %c: i1)
    attributes {gdn_gpu.kernel = {threads = 128 : i64},
                gdn_tile.stage = {same_chunks = 2 : i64, stage_of = "e", variant = "roles"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c64 = arith.constant 64 : index
  %c320 = arith.constant 320 : index
  gdn_gpu.store_element %x, %out[%i] : i32, memref<?xi32>
  gdn_gpu.warps 0 for 2 {
    %least = arith.minsi %n, %c5 : index
    gdn_gpu.signal 32, %counters[%n] last(%least) : memref<?xf32>
  }
  gdn_gpu.warps 2 for 2 {
    scf.for %t = %c0 to %n step %c64 {
      %before = arith.subi %t, %c320 : index
      %count = arith.select %c, %c1, %c0 : index
      gdn_gpu.signal 32, %counters[%before] last(%count) : memref<?xf32>
    }
  }
  return
}
func.func @e__norm(%out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {follows = 1 : i64, stage_of = "e", variant = "roles"}} {
  gdn_gpu.each_warp 0 for 1 {
  ^bb0(%w: index):
    // expected-error@+1 {{'gdn_gpu.await_signals' op expects a stage ahead of 'e__rule', which signals, to clear region 1 of the workspace, but got none}}
    gdn_gpu.await_signals 128, %counters[%i] : memref<?xf32>
    %a = memref.load %out[%i] : memref<?xi32>
  }
  return
}

// -----

// Cleared behind the signals.
#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 1>
!one = !gdn_gpu.fragment<1xf32, #gdn_gpu.per_row<#row>>
func.func @e__rule(%out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %n: index, %i: index, %x: i32, %c: i1)
    attributes {gdn_gpu.kernel = {threads = 128 : i64},
                gdn_tile.stage = {same_chunks = 2 : i64, stage_of = "e", variant = "roles"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c64 = arith.constant 64 : index
  %c320 = arith.constant 320 : index
  gdn_gpu.store_element %x, %out[%i] : i32, memref<?xi32>
  gdn_gpu.warps 0 for 2 {
    %least = arith.minsi %n, %c5 : index
    gdn_gpu.signal 32, %counters[%n] last(%least) : memref<?xf32>
  }
  gdn_gpu.warps 2 for 2 {
    scf.for %t = %c0 to %n step %c64 {
      %before = arith.subi %t, %c320 : index
      %count = arith.select %c, %c1, %c0 : index
      gdn_gpu.signal 32, %counters[%before] last(%count) : memref<?xf32>
    }
  }
  return
}
func.func @e__clear(%out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %i: index, %zero: !one)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {stage_of = "e", variant = ["roles", "other"]}} {
  gdn_gpu.store %zero, %counters[%i] dims [0] : !one, memref<?xf32>
  return
}
func.func @e__norm(%out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {follows = 1 : i64, stage_of = "e", variant = "roles"}} {
  gdn_gpu.each_warp 0 for 1 {
  ^bb0(%w: index):
    // expected-error@+1 {{'gdn_gpu.await_signals' op expects a stage ahead of 'e__rule', which signals, to clear region 1 of the workspace, but got none}}
    gdn_gpu.await_signals 128, %counters[%i] : memref<?xf32>
    %a = memref.load %out[%i] : memref<?xi32>
  }
  return
}
