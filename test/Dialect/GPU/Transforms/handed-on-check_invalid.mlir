// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-gpu-check: how often roles hand tiles on, in which turns, and which units they go on with.
//
// RUN: gdn-gpu-opt %s -split-input-file -o /dev/null
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics -gdn-gpu-check

// What frees the place would come less often than it is counted.
!ring = !gdn_gpu.channel<32x64xf16, depth = 2, swizzled>
!tile = !gdn_gpu.shared<32x64xf16, swizzled>

func.func @hand_on_c3_sometimes(%c: i1) attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %loaded = gdn_gpu.channel : !ring
  %made = gdn_gpu.channel : !ring of %loaded : !ring
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %t = gdn_gpu.acquire %loaded : !ring -> !tile
      gdn_gpu.commit %loaded : !ring
    }
    gdn_gpu.warps 1 for 1 {
      scf.if %c {
        %t = gdn_gpu.receive %loaded : !ring -> !tile
        // expected-error@+1 {{'gdn_gpu.hand_on' op expects a role to give all tiles of a channel back, or to hand all of them on to the same channel}}
        gdn_gpu.hand_on %loaded to %made : !ring, !ring
      } else {
        %t = gdn_gpu.receive %loaded : !ring -> !tile
        gdn_gpu.release %loaded : !ring
      }
    }
    gdn_gpu.warps 3 for 1 {
      %t = gdn_gpu.receive %made : !ring -> !tile
      gdn_gpu.release %made : !ring
    }
  }
  return
}

// -----

!ring = !gdn_gpu.channel<32x64xf16, depth = 2, swizzled>
!tile = !gdn_gpu.shared<32x64xf16, swizzled>

func.func @hand_on_c3_to_two(%c: i1) attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %loaded = gdn_gpu.channel : !ring
  %made = gdn_gpu.channel : !ring of %loaded : !ring
  %other = gdn_gpu.channel : !ring of %loaded : !ring
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %t = gdn_gpu.acquire %loaded : !ring -> !tile
      gdn_gpu.commit %loaded : !ring
    }
    gdn_gpu.warps 1 for 1 {
      scf.if %c {
        %t = gdn_gpu.receive %loaded : !ring -> !tile
        // expected-error@+1 {{'gdn_gpu.hand_on' op expects a role to give all tiles of a channel back, or to hand all of them on to the same channel}}
        gdn_gpu.hand_on %loaded to %made : !ring, !ring
      } else {
        %t = gdn_gpu.receive %loaded : !ring -> !tile
        gdn_gpu.hand_on %loaded to %other : !ring, !ring
      }
    }
    gdn_gpu.warps 2 for 1 {
      %t = gdn_gpu.receive %other : !ring -> !tile
      gdn_gpu.release %other : !ring
    }
    gdn_gpu.warps 3 for 1 {
      %t = gdn_gpu.receive %made : !ring -> !tile
      gdn_gpu.release %made : !ring
    }
  }
  return
}

// -----

// The place would be there before the second.
!ring = !gdn_gpu.channel<32x64xf16, depth = 2, swizzled>
!tile = !gdn_gpu.shared<32x64xf16, swizzled>

func.func @hand_on_c4_twice() attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %loaded = gdn_gpu.channel : !ring
  %made = gdn_gpu.channel : !ring of %loaded : !ring
  %last = gdn_gpu.channel : !ring of %loaded : !ring
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %t = gdn_gpu.acquire %loaded : !ring -> !tile
      gdn_gpu.commit %loaded : !ring
    }
    gdn_gpu.warps 1 for 1 {
      %t = gdn_gpu.receive %loaded : !ring -> !tile
      gdn_gpu.hand_on %loaded to %made : !ring, !ring
    }
    gdn_gpu.warps 2 for 1 {
      %t = gdn_gpu.receive %loaded : !ring -> !tile
      // expected-error@+1 {{'gdn_gpu.hand_on' op expects a role to hand tiles on to a channel from one other channel alone}}
      gdn_gpu.hand_on %loaded to %last : !ring, !ring
      %m = gdn_gpu.receive %made : !ring -> !tile
      gdn_gpu.hand_on %made to %last : !ring, !ring
    }
    gdn_gpu.warps 3 for 1 {
      %t = gdn_gpu.receive %last : !ring -> !tile
      gdn_gpu.release %last : !ring
    }
  }
  return
}

// -----

!ring = !gdn_gpu.channel<32x64xf16, depth = 2, swizzled>
!tile = !gdn_gpu.shared<32x64xf16, swizzled>

func.func @hand_on_c5() attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %loaded = gdn_gpu.channel : !ring
  %made = gdn_gpu.channel : !ring of %loaded : !ring
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %t = gdn_gpu.acquire %loaded : !ring -> !tile
      gdn_gpu.commit %loaded : !ring
    }
    gdn_gpu.warps 1 for 1 {
      %t = gdn_gpu.receive %loaded : !ring -> !tile
      gdn_gpu.hand_on %loaded to %made : !ring, !ring
      // expected-error@+1 {{'gdn_gpu.receive' op expects another role to receive what this one hands on}}
      %m = gdn_gpu.receive %made : !ring -> !tile
      gdn_gpu.release %made : !ring
    }
    gdn_gpu.warps 3 for 1 {
      %t = gdn_gpu.receive %made : !ring -> !tile
      gdn_gpu.release %made : !ring
    }
  }
  return
}

// -----

// What hands tiles on to a channel gives none of it back.
!ring = !gdn_gpu.channel<32x64xf16, depth = 2, swizzled>
!tile = !gdn_gpu.shared<32x64xf16, swizzled>

func.func @receive_c2_of_another() attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %loaded = gdn_gpu.channel : !ring
  %made = gdn_gpu.channel : !ring of %loaded : !ring
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %t = gdn_gpu.acquire %loaded : !ring -> !tile
      gdn_gpu.commit %loaded : !ring
    }
    gdn_gpu.warps 1 for 1 {
      %t = gdn_gpu.receive %loaded : !ring -> !tile
      // expected-error@+1 {{'gdn_gpu.receive' op expects a gdn_gpu.release of the channel behind it in the same block}}
      %m = gdn_gpu.receive %made : !ring -> !tile
      gdn_gpu.hand_on %loaded to %made : !ring, !ring
    }
    gdn_gpu.warps 3 for 1 {
      %t = gdn_gpu.receive %made : !ring -> !tile
      gdn_gpu.release %made : !ring
    }
  }
  return
}

// -----

// Copies fill the memory, whoever hands it on.
!ring = !gdn_gpu.channel<32x64xf16, depth = 2, swizzled>
!tile = !gdn_gpu.shared<32x64xf16, swizzled>
!pair = !gdn_gpu.fragment<32x64xf16, #gdn_gpu.rows<warps = 1, lanes = 8, vector = 8>>

func.func @release_c2_of_memory(%x: memref<?x64xf16>)
    attributes {gdn_gpu.kernel = {threads = 96 : i64}} {
  %c0 = arith.constant 0 : index
  %loaded = gdn_gpu.channel : !ring
  %made = gdn_gpu.channel : !ring of %loaded : !ring
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %t = gdn_gpu.acquire %loaded : !ring -> !tile
      gdn_gpu.begin_copy tensor_map %x[%c0, %c0] dims [0, 1], %t : memref<?x64xf16>, !tile
      gdn_gpu.await_copies
      gdn_gpu.commit %loaded : !ring
    }
    gdn_gpu.warps 1 for 1 {
      %t = gdn_gpu.receive %loaded : !ring -> !tile
      gdn_gpu.hand_on %loaded to %made : !ring, !ring
    }
    gdn_gpu.warps 2 for 1 {
      %t = gdn_gpu.receive %made : !ring -> !tile
      // expected-note@+1 {{loaded here}}
      %f = gdn_gpu.load_shared %t : !tile -> !pair
      // expected-error@+1 {{'gdn_gpu.release' op expects what was loaded to be used before, since gdn_gpu.begin_copy tensor_map fills the channel}}
      gdn_gpu.release %made : !ring
      gdn_gpu.store %f, %x[%c0, %c0] dims [0, 1] : !pair, memref<?x64xf16>
    }
  }
  return
}

// -----

// Another number than the one that was taken.
!numbers = !gdn_gpu.channel<1xf32, depth = 1>
!number = !gdn_gpu.fragment<1xf32, #gdn_gpu.per_row<#gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>>>

func.func @units_c5(%n: index)
    attributes {gdn_gpu.kernel = {threads = 64 : i64, blocks_per_sm = 1 : i64, counters = ["1"]},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %numbers = gdn_gpu.channel : !numbers
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      gdn_gpu.units taken {
        %i = gdn_gpu.block_id 0
        %next = gdn_gpu.take_unit
        %word = arith.index_cast %i : index to i32
        %bits = arith.bitcast %word : i32 to f32
        %t = gdn_gpu.fill %bits : f32 -> !number
        %place = gdn_gpu.acquire %numbers : !numbers -> !gdn_gpu.shared<1xf32>
        gdn_gpu.store_shared %t, %place : !number, !gdn_gpu.shared<1xf32>
        gdn_gpu.commit %numbers : !numbers
        gdn_gpu.yield %next : index
      }
    }
    gdn_gpu.warps 1 for 1 {
      gdn_gpu.units taken {
        %tile = gdn_gpu.receive %numbers : !numbers -> !gdn_gpu.shared<1xf32>
        %bits = gdn_gpu.load_shared_element %tile[%c0] : !gdn_gpu.shared<1xf32> -> f32
        gdn_gpu.release %numbers : !numbers
        %word = arith.bitcast %bits : f32 to i32
        %next = arith.index_cast %word : i32 to index
        // expected-error@+1 {{'gdn_gpu.yield' op expects the number of a gdn_gpu.take_unit, or that from a channel that is filled with it}}
        gdn_gpu.yield %next : index
      }
    }
  }
  return
}
