// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-gpu-await-stages: of variants with a stage in roles, which stages begin while the one ahead
// of them runs, where they wait for it, and which let the next one begin.
//
// RUN: gdn-gpu-opt %s -gdn-gpu-await-stages -gdn-gpu-check | FileCheck %s

#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!row = !gdn_gpu.fragment<1x128xf32, #row>
!one = !gdn_gpu.fragment<1xf32, #gdn_gpu.per_row<#row>>

// The first stage begins when all ahead of the launch has ended, and releases those that begin early
// in all of its variants.
// CHECK-LABEL: func.func @e__keys(
//   CHECK-NOT:   await_launch
//       CHECK:   gdn_gpu.release_launch
//  CHECK-NEXT:   gdn_gpu.each_warp
func.func @e__keys(%x: memref<?x128xf32>, %y: memref<?x128xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {stage_of = "e", variant = "roles"}} {
  %c0 = arith.constant 0 : index
  gdn_gpu.each_warp 0 for 1 {
  ^bb0(%w: index):
    %a = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
    gdn_gpu.store %a, %y[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
  }
  return
}

// CHECK-LABEL: func.func @e__prologue(
//   CHECK-NOT:   _launch
//       CHECK: func.func @e__roles(
//  CHECK-SAME:   awaits_stage = 1 : i64
func.func @e__prologue(%x: memref<?x128xf32>, %y: memref<?x128xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {stage_of = "e", variant = ["pair", "staged"]}} {
  %c0 = arith.constant 0 : index
  gdn_gpu.each_warp 0 for 1 {
  ^bb0(%w: index):
    %a = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
    gdn_gpu.store %a, %y[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
  }
  return
}

// A role waits for itself, behind the numbers of the call and ahead of regions of the workspace. The
// norm behind it is in pieces.
//       CHECK:   memref.load
//   CHECK-NOT:   _launch
//       CHECK:   gdn_gpu.warps 0 for 1 {
//  CHECK-NEXT:     gdn_gpu.await_launch
//  CHECK-NEXT:     gdn_gpu.load
//   CHECK-NOT:   _launch
//       CHECK:   return
func.func @e__roles(%n: memref<?xi32>, %x: memref<?x128xf32>, %y: memref<?x128xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["N"], stage_of = "e", variant = "roles"}} {
  %c0 = arith.constant 0 : index
  %number = memref.load %n[%i] : memref<?xi32>
  %at = arith.index_cast %number : i32 to index
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %a = gdn_gpu.load %x[%at, %c0] dims [0, 1] : memref<?x128xf32>, !row
      gdn_gpu.store %a, %y[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
    }
  }
  return
}

// Two that overlap read what the prologue writes, and the first releases the second as it did. It
// begins behind the prologue.
// CHECK-LABEL: func.func @e__maps(
//       CHECK:   gdn_gpu.release_launch
//   CHECK-NOT:   _launch
//       CHECK: func.func @e__first(
//       CHECK:   gdn_gpu.release_launch
//  CHECK-NEXT:   gdn_gpu.roles
//       CHECK:   gdn_gpu.await_launch
//  CHECK-NEXT:   return
func.func @e__maps(%x: memref<?x128xf32>, %y: memref<?x128xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {overlaps = "next", stage_of = "e", variant = "pair"}} {
  %c0 = arith.constant 0 : index
  gdn_gpu.release_launch
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %a = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
      gdn_gpu.store %a, %y[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
    }
  }
  return
}
func.func @e__first(%x: memref<?x128xf32>, %y: memref<?x128xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {overlaps = "last", stage_of = "e", variant = "pair"}} {
  %c0 = arith.constant 0 : index
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %a = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
      gdn_gpu.store %a, %y[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
    }
  }
  gdn_gpu.await_launch
  return
}

// Behind both of them, and ahead of one more.
// CHECK-LABEL: func.func @e__scan(
//       CHECK:   gdn_gpu.await_launch
//  CHECK-NEXT:   gdn_gpu.release_launch
//  CHECK-NEXT:   gdn_gpu.load
// CHECK-LABEL: func.func @e__others(
//       CHECK:   gdn_gpu.warps 0 for 1 {
//  CHECK-NEXT:     gdn_gpu.await_launch
//   CHECK-NOT:   release_launch
func.func @e__scan(%x: memref<?x128xf32>, %y: memref<?x128xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {stage_of = "e", variant = "pair"}} {
  %c0 = arith.constant 0 : index
  %a = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
  gdn_gpu.store %a, %y[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
  return
}
func.func @e__others(%x: memref<?x128xf32>, %y: memref<?x128xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["N"], stage_of = "e", variant = "pair"}} {
  %c0 = arith.constant 0 : index
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %a = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
      gdn_gpu.store %a, %y[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
    }
  }
  return
}

// Blocks of a scan wait where they have something to do, and the first one in any case. Others that
// begin beside the first segments find out as early that they have nothing to do.
// CHECK-LABEL: func.func @h__first(
//       CHECK:   gdn_gpu.release_launch
// CHECK-LABEL: func.func @h__scan(
//  CHECK-SAME:   awaits_stage = 1 : i64
//       CHECK:   memref.load
//   CHECK-NOT:   _launch
//       CHECK:   scf.if
//  CHECK-NEXT:     gdn_gpu.await_launch
//  CHECK-NEXT:     gdn_gpu.release_launch
//  CHECK-NEXT:     gdn_gpu.load
//       CHECK:   }
//  CHECK-NEXT:   gdn_gpu.release_launch
//       CHECK:   gdn_gpu.block_id 0
//       CHECK:   scf.if
//  CHECK-NEXT:     gdn_gpu.await_launch
//  CHECK-NEXT:   }
//  CHECK-NEXT:   return
// CHECK-LABEL: func.func @h__others(
func.func @h__first(%x: memref<?x128xf32>, %y: memref<?x128xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {stage_of = "h", variant = "cut"}} {
  %c0 = arith.constant 0 : index
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %a = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
      gdn_gpu.store %a, %y[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
    }
  }
  return
}
func.func @h__scan(%n: memref<?xi32>, %x: memref<?x128xf32>, %y: memref<?x128xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["N"], stage_of = "h", variant = "cut"}} {
  %c0 = arith.constant 0 : index
  %number = memref.load %n[%i] : memref<?xi32>
  %at = arith.index_cast %number : i32 to index
  %isCut = arith.cmpi ugt, %at, %c0 : index
  scf.if %isCut {
    %a = gdn_gpu.load %x[%at, %c0] dims [0, 1] : memref<?x128xf32>, !row
    gdn_gpu.store %a, %y[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
  }
  return
}
func.func @h__others(%x: memref<?x128xf32>, %y: memref<?x128xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["N"], stage_of = "h", variant = "cut"}} {
  %c0 = arith.constant 0 : index
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %a = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
      gdn_gpu.store %a, %y[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
    }
  }
  return
}

// What comes behind all roles begins when these have ended.
// CHECK-LABEL: func.func @e__rounding(
//   CHECK-NOT:   _launch
func.func @e__rounding(%x: memref<?x128xf32>, %y: memref<?x128xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {stage_of = "e", variant = "pair"}} {
  %c0 = arith.constant 0 : index
  %a = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
  gdn_gpu.store %a, %y[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
  return
}

// Variants without roles stay, and so do passes over pieces.
// CHECK-LABEL: func.func @e__staged(
//   CHECK-NOT:   _launch
func.func @e__staged(%x: memref<?x128xf32>, %y: memref<?x128xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {stage_of = "e", variant = "staged"}} {
  %c0 = arith.constant 0 : index
  %a = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
  gdn_gpu.store %a, %y[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
  return
}
func.func @e__norm(%x: memref<?x128xf32>, %y: memref<?x128xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {stage_of = "e", variant = ["roles", "pair", "staged"]}} {
  %c0 = arith.constant 0 : index
  gdn_gpu.each_warp 0 for 1 {
  ^bb0(%w: index):
    %a = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
    gdn_gpu.store %a, %y[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
  }
  return
}

// What the call has given is read at once, pools, too, but for what a stage ahead has written. One
// that writes waits on each way that does, and one that does not use memory never.
// Where no role waits on every way, the first block does.
// CHECK-LABEL: func.func @f__ahead(
//       CHECK:   gdn_gpu.release_launch
// CHECK-LABEL: func.func @f__roles(
//       CHECK:   gdn_gpu.warps 0 for 1 {
//       CHECK:     scf.if
//       CHECK:       gdn_gpu.load %[[POOL:arg[0-9]+]]
//  CHECK-NEXT:       gdn_gpu.load
//  CHECK-NEXT:       gdn_gpu.await_launch
//  CHECK-NEXT:       gdn_gpu.store %{{.+}}, %[[POOL]]
//       CHECK:     } else {
//   CHECK-NOT:       _launch
//       CHECK:   gdn_gpu.warps 1 for 1 {
//  CHECK-NEXT:     scf.if
//  CHECK-NEXT:       gdn_gpu.await_launch
//  CHECK-NEXT:       gdn_gpu.load
//       CHECK:   gdn_gpu.warps 2 for 1 {
//   CHECK-NOT:     _launch
//       CHECK:   gdn_gpu.block_id 0
//       CHECK:   scf.if %{{.+}} {
//  CHECK-NEXT:     gdn_gpu.await_launch
//  CHECK-NEXT:   }
//  CHECK-NEXT:   return
func.func @f__ahead(%x: memref<?x128xf32> {gdn.name = "x"}, %w: memref<?x128xf32> {gdn.name = "w"},
                    %pool: memref<?x128xf32> {gdn.name = "pool"}, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {stage_of = "f", variant = "roles"}} {
  %c0 = arith.constant 0 : index
  %a = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
  gdn_gpu.store %a, %w[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
  return
}
func.func @f__roles(%x: memref<?x128xf32> {gdn.name = "x"}, %w: memref<?x128xf32> {gdn.name = "w"},
                    %pool: memref<?x128xf32> {gdn.name = "pool"}, %i: index, %c: i1)
    attributes {gdn_gpu.kernel = {threads = 96 : i64},
                gdn_tile.stage = {grid = ["N"], stage_of = "f", variant = "roles"}} {
  %c0 = arith.constant 0 : index
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      scf.if %c {
        %a = gdn_gpu.load %pool[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
        %b = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
        gdn_gpu.store %a, %pool[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
      } else {
        %a = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
      }
    }
    gdn_gpu.warps 1 for 1 {
      scf.if %c {
        %a = gdn_gpu.load %w[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
      }
    }
    gdn_gpu.warps 2 for 1 {
      %a = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
    }
  }
  return
}

// Whole heads wait ahead of all roles.
// CHECK-LABEL: func.func @g__roles(
//       CHECK:   gdn_gpu.await_launch
//  CHECK-NEXT:   gdn_gpu.roles
//   CHECK-NOT:   _launch
func.func @g__ahead(%x: memref<?x128xf32>, %y: memref<?x128xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {stage_of = "g", variant = "roles"}} {
  %c0 = arith.constant 0 : index
  %a = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
  gdn_gpu.store %a, %y[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
  return
}
func.func @g__roles(%x: memref<?x128xf32>, %y: memref<?x128xf32>, %i: index)
    attributes {gdn_gpu.kernel = {keep_loops, threads = 32 : i64},
                gdn_tile.stage = {stage_of = "g", variant = "roles"}} {
  %c0 = arith.constant 0 : index
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %a = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
      gdn_gpu.store %a, %y[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
    }
  }
  return
}

// A stage that follows begins as soon as all blocks of the one ahead have waited, in one of their
// roles; its first block ends behind all of those.
// CHECK-LABEL: func.func @n__keys(
// CHECK-LABEL: func.func @n__roles(
//       CHECK:   gdn_gpu.warps 0 for 1 {
//  CHECK-NEXT:     gdn_gpu.await_launch
//  CHECK-NEXT:     gdn_gpu.release_launch
//  CHECK-NEXT:     gdn_gpu.load
func.func @n__keys(%x: memref<?x128xf32>, %y: memref<?x128xf32>, %s: memref<?xf32>, %i: index,
                   %zero: !one)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {stage_of = "n", variant = "roles"}} {
  %c0 = arith.constant 0 : index
  gdn_gpu.store %zero, %s[%i] dims [0] : !one, memref<?xf32>
  gdn_gpu.each_warp 0 for 1 {
  ^bb0(%w: index):
    %a = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
    gdn_gpu.store %a, %y[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
  }
  return
}
func.func @n__roles(%x: memref<?x128xf32>, %y: memref<?x128xf32>, %s: memref<?xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["N"], stage_of = "n", variant = "roles"}} {
  %c0 = arith.constant 0 : index
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %a = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
      gdn_gpu.store %a, %y[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
      gdn_gpu.signal 64, %s[%i] : memref<?xf32>
    }
  }
  return
}

// CHECK-LABEL: func.func @n__norm(
//   CHECK-NOT:   await_launch
//       CHECK:   gdn_gpu.each_warp
//  CHECK-NEXT:   ^bb0
//  CHECK-NEXT:     gdn_gpu.await_signals 64
//       CHECK:   %[[FIRST:.+]] = arith.andi
//  CHECK-NEXT:   scf.if %[[FIRST]] {
//  CHECK-NEXT:     gdn_gpu.await_launch
func.func @n__norm(%x: memref<?x128xf32>, %y: memref<?x128xf32>, %s: memref<?xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {follows = 1 : i64, grid = ["N", "H"], stage_of = "n", variant = "roles"}} {
  %c0 = arith.constant 0 : index
  gdn_gpu.each_warp 0 for 1 {
  ^bb0(%w: index):
    gdn_gpu.await_signals 64, %s[%i] : memref<?xf32>
    %a = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
    gdn_gpu.store %a, %y[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
  }
  return
}

// One role releases it on both of its ways, the others on none.
// CHECK-LABEL: func.func @p__keys(
// CHECK-LABEL: func.func @p__roles(
//       CHECK:   gdn_gpu.warps 0 for 1 {
//  CHECK-NEXT:     scf.if
//  CHECK-NEXT:       gdn_gpu.await_launch
//  CHECK-NEXT:       gdn_gpu.release_launch
//       CHECK:       gdn_gpu.signal 64
//       CHECK:     } else {
//       CHECK:       gdn_gpu.await_launch
//  CHECK-NEXT:       gdn_gpu.release_launch
//  CHECK-NEXT:       gdn_gpu.store
//       CHECK:   gdn_gpu.warps 1 for 1 {
//  CHECK-NEXT:     scf.if
//  CHECK-NEXT:       gdn_gpu.await_launch
//   CHECK-NOT:     release_launch
//       CHECK:   return
func.func @p__keys(%x: memref<?x128xf32>, %y: memref<?x128xf32>, %s: memref<?xf32>, %i: index,
                   %zero: !one)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {stage_of = "p", variant = "roles"}} {
  %c0 = arith.constant 0 : index
  gdn_gpu.store %zero, %s[%i] dims [0] : !one, memref<?xf32>
  gdn_gpu.each_warp 0 for 1 {
  ^bb0(%w: index):
    %a = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
    gdn_gpu.store %a, %y[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
  }
  return
}
func.func @p__roles(%x: memref<?x128xf32>, %y: memref<?x128xf32>, %s: memref<?xf32>, %i: index,
                    %c: i1)
    attributes {gdn_gpu.kernel = {threads = 64 : i64},
                gdn_tile.stage = {grid = ["N"], stage_of = "p", variant = "roles"}} {
  %c0 = arith.constant 0 : index
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      scf.if %c {
        %a = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
        gdn_gpu.store %a, %y[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
        gdn_gpu.signal 64, %s[%i] : memref<?xf32>
      } else {
        %zero = arith.constant 0.0 : f32
        %zeros = gdn_gpu.fill %zero : f32 -> !row
        gdn_gpu.store %zeros, %y[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
        gdn_gpu.signal 64, %s[%i] : memref<?xf32>
      }
    }
    gdn_gpu.warps 1 for 1 {
      scf.if %c {
        %a = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
      }
    }
  }
  return
}
func.func @p__norm(%x: memref<?x128xf32>, %y: memref<?x128xf32>, %s: memref<?xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {follows = 1 : i64, grid = ["N"], stage_of = "p", variant = "roles"}} {
  %c0 = arith.constant 0 : index
  gdn_gpu.each_warp 0 for 1 {
  ^bb0(%w: index):
    gdn_gpu.await_signals 64, %s[%i] : memref<?xf32>
    %a = gdn_gpu.load %y[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
    gdn_gpu.store %a, %y[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
  }
  return
}

// A role in turns is no pass over pieces.
// CHECK-LABEL: func.func @t__ahead(
//       CHECK:   gdn_gpu.release_launch
// CHECK-LABEL: func.func @t__turns(
//       CHECK:   gdn_gpu.await_launch
//       CHECK:   gdn_gpu.each_warp
func.func @t__ahead(%x: memref<?x128xf32> {gdn.name = "x"}, %y: memref<?x128xf32> {gdn.name = "y"}, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {stage_of = "t", variant = "roles"}} {
  %c0 = arith.constant 0 : index
  %a = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
  gdn_gpu.store %a, %y[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
  return
}
func.func @t__turns(%y: memref<?x128xf32> {gdn.name = "y"}, %out: memref<?x128xf32> {gdn.name = "out"})
    attributes {gdn_gpu.kernel = {threads = 64 : i64, keep_loops},
                gdn_tile.stage = {stage_of = "t", variant = "roles"}} {
  %c0 = arith.constant 0 : index
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 2 in_turns 2 {
      gdn_gpu.each_warp 0 for 2 {
      ^bb0(%turn: index):
        %a = gdn_gpu.load %y[%turn, %c0] dims [0, 1] : memref<?x128xf32>, !row
        gdn_gpu.store %a, %out[%turn, %c0] dims [0, 1] : !row, memref<?x128xf32>
      }
    }
  }
  return
}
