// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-gpu-check: who may be on which side of a channel, parts, copies, and units.
//
// RUN: gdn-gpu-opt %s -split-input-file -o /dev/null
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics -gdn-gpu-check

!ring = !gdn_gpu.channel<8x32xf32, depth = 4, parts = 2>
!chan = !gdn_gpu.channel<8x32xf32, depth = 2>
!tile = !gdn_gpu.shared<8x32xf32>
#two = #gdn_gpu.rows<warps = 2, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 8, vector = 4>
!two = !gdn_gpu.fragment<8x32xf32, #two>
!one = !gdn_gpu.fragment<8x32xf32, #one>

func.func @outside_of_roles(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c = gdn_gpu.channel : !chan
  // expected-error@+1 {{'gdn_gpu.release' op expects to be inside a role of gdn_gpu.roles}}
  gdn_gpu.release %c : !chan
  return
}

// -----

!ring = !gdn_gpu.channel<8x32xf32, depth = 4, parts = 2>
!chan = !gdn_gpu.channel<8x32xf32, depth = 2>
!tile = !gdn_gpu.shared<8x32xf32>
#two = #gdn_gpu.rows<warps = 2, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 8, vector = 4>
!two = !gdn_gpu.fragment<8x32xf32, #two>
!one = !gdn_gpu.fragment<8x32xf32, #one>

func.func @nobody_empties(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  // expected-error@+1 {{'gdn_gpu.channel' op expects a role that fills the channel and one that empties it}}
  %c = gdn_gpu.channel : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 2 for 1 {
      %s = gdn_gpu.fill %v : f32 -> !one
      %t = gdn_gpu.acquire %c : !chan -> !tile
      gdn_gpu.store_shared %s, %t : !one, !tile
      gdn_gpu.commit %c : !chan
    }
  }
  return
}

// -----

!ring = !gdn_gpu.channel<8x32xf32, depth = 4, parts = 2>
!chan = !gdn_gpu.channel<8x32xf32, depth = 2>
!tile = !gdn_gpu.shared<8x32xf32>
#two = #gdn_gpu.rows<warps = 2, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 8, vector = 4>
!two = !gdn_gpu.fragment<8x32xf32, #two>
!one = !gdn_gpu.fragment<8x32xf32, #one>

func.func @two_fill(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c = gdn_gpu.channel : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %s = gdn_gpu.fill %v : f32 -> !one
      // expected-error@+1 {{'gdn_gpu.acquire' op expects one role to fill the channel}}
      %t = gdn_gpu.acquire %c : !chan -> !tile
      gdn_gpu.store_shared %s, %t : !one, !tile
      gdn_gpu.commit %c : !chan
    }
    // expected-note@+1 {{other role that fills it}}
    gdn_gpu.warps 1 for 1 {
      %s = gdn_gpu.fill %v : f32 -> !one
      %t = gdn_gpu.acquire %c : !chan -> !tile
      gdn_gpu.store_shared %s, %t : !one, !tile
      gdn_gpu.commit %c : !chan
    }
    gdn_gpu.warps 2 for 2 {
      %t = gdn_gpu.receive %c : !chan -> !tile
      %f = gdn_gpu.load_shared %t : !tile -> !two
      gdn_gpu.release %c : !chan
    }
  }
  return
}

// -----

!ring = !gdn_gpu.channel<8x32xf32, depth = 4, parts = 2>
!chan = !gdn_gpu.channel<8x32xf32, depth = 2>
!tile = !gdn_gpu.shared<8x32xf32>
#two = #gdn_gpu.rows<warps = 2, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 8, vector = 4>
!two = !gdn_gpu.fragment<8x32xf32, #two>
!one = !gdn_gpu.fragment<8x32xf32, #one>

func.func @one_role_on_both_sides(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c = gdn_gpu.channel : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %s = gdn_gpu.fill %v : f32 -> !one
      %t = gdn_gpu.acquire %c : !chan -> !tile
      gdn_gpu.store_shared %s, %t : !one, !tile
      gdn_gpu.commit %c : !chan
      // expected-error@+1 {{'gdn_gpu.receive' op expects another role to empty the channel than the one that fills it}}
      %u = gdn_gpu.receive %c : !chan -> !tile
      gdn_gpu.release %c : !chan
    }
  }
  return
}

// -----

!ring = !gdn_gpu.channel<8x32xf32, depth = 4, parts = 2>
!chan = !gdn_gpu.channel<8x32xf32, depth = 2>
!tile = !gdn_gpu.shared<8x32xf32>
#two = #gdn_gpu.rows<warps = 2, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 8, vector = 4>
!two = !gdn_gpu.fragment<8x32xf32, #two>
!one = !gdn_gpu.fragment<8x32xf32, #one>

func.func @parts_of_other_warps(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c = gdn_gpu.channel : !ring
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      // expected-error@+1 {{'gdn_gpu.receive' op expects a role of as many warps as the channel has parts, which are 2, but got 1}}
      %t = gdn_gpu.receive %c : !ring -> !tile
      gdn_gpu.release %c : !ring
    }
    gdn_gpu.warps 2 for 1 {
      %t = gdn_gpu.acquire %c : !ring -> !tile
      gdn_gpu.copy %x[%c0, %c0] dims [0, 1], %t : memref<?x32xf32>, !tile
      gdn_gpu.commit %c : !ring
    }
  }
  return
}

// -----

!ring = !gdn_gpu.channel<8x32xf32, depth = 4, parts = 2>
!chan = !gdn_gpu.channel<8x32xf32, depth = 2>
!tile = !gdn_gpu.shared<8x32xf32>
#two = #gdn_gpu.rows<warps = 2, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 8, vector = 4>
!two = !gdn_gpu.fragment<8x32xf32, #two>
!one = !gdn_gpu.fragment<8x32xf32, #one>

func.func @part_of_another(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c = gdn_gpu.channel : !ring
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 2 {
      %t = gdn_gpu.receive %c : !ring -> !tile
      // expected-error@+1 {{'gdn_gpu.load_shared' op expects a gdn_gpu.load_shared of the whole tile with a part in each warp, since the channel is in 2 parts}}
      %f = gdn_gpu.load_shared %t row(%c0) : !tile -> !gdn_gpu.fragment<32xf32, #gdn_gpu.per_column<#two>>
      gdn_gpu.release %c : !ring
    }
    gdn_gpu.warps 2 for 1 {
      %t = gdn_gpu.acquire %c : !ring -> !tile
      gdn_gpu.copy %x[%c0, %c0] dims [0, 1], %t : memref<?x32xf32>, !tile
      gdn_gpu.commit %c : !ring
    }
  }
  return
}

// -----

!ring = !gdn_gpu.channel<8x32xf32, depth = 4, parts = 2>
!tile = !gdn_gpu.shared<8x32xf32>
#turns = #gdn_gpu.rows<warps = 2, lanes = 16, vector = 2, cyclic = true>

// Rows in turns: a warp's are not those of its part.
func.func @rows_of_another(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c = gdn_gpu.channel : !ring
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 2 {
      %t = gdn_gpu.receive %c : !ring -> !tile
      // expected-error@+1 {{'gdn_gpu.load_shared' op expects a gdn_gpu.load_shared of the whole tile with a part in each warp, since the channel is in 2 parts}}
      %f = gdn_gpu.load_shared %t : !tile -> !gdn_gpu.fragment<8x32xf32, #turns>
      gdn_gpu.release %c : !ring
    }
    gdn_gpu.warps 2 for 1 {
      %t = gdn_gpu.acquire %c : !ring -> !tile
      gdn_gpu.copy %x[%c0, %c0] dims [0, 1], %t : memref<?x32xf32>, !tile
      gdn_gpu.commit %c : !ring
    }
  }
  return
}

// -----

!ring = !gdn_gpu.channel<8x32xf32, depth = 4, parts = 2>
!tile = !gdn_gpu.shared<8x32xf32>
#two = #gdn_gpu.rows<warps = 2, lanes = 8, vector = 4>
!two = !gdn_gpu.fragment<8x32xf32, #two>

// The copy engine does not wait for reads that are under way.
func.func @read_under_way(%x: memref<?x32xf32>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c = gdn_gpu.channel : !ring
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 2 {
      %t = gdn_gpu.receive %c : !ring -> !tile
      // expected-note@+1 {{loaded here}}
      %f = gdn_gpu.load_shared %t : !tile -> !two
      // expected-error@+1 {{'gdn_gpu.release' op expects what was loaded to be used before, since gdn_gpu.copy fills the channel}}
      gdn_gpu.release %c : !ring
      gdn_gpu.store %f, %x[%c0, %c0] dims [0, 1] : !two, memref<?x32xf32>
    }
    gdn_gpu.warps 2 for 1 {
      %t = gdn_gpu.acquire %c : !ring -> !tile
      gdn_gpu.copy %x[%c0, %c0] dims [0, 1], %t : memref<?x32xf32>, !tile
      gdn_gpu.commit %c : !ring
    }
  }
  return
}

// -----

!ring = !gdn_gpu.channel<8x32xf32, depth = 2>
!tile = !gdn_gpu.shared<8x32xf32>
#one = #gdn_gpu.rows<warps = 1, lanes = 8, vector = 4>
!row = !gdn_gpu.fragment<64xf32, #gdn_gpu.per_column<#one>>

// In another shape it is the same tile.
func.func @reshaped_under_way(%x: memref<?x32xf32>, %y: memref<64xf32>)
    attributes {gdn_gpu.kernel = {threads = 64 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c = gdn_gpu.channel : !ring
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %t = gdn_gpu.receive %c : !ring -> !tile
      %r = gdn_gpu.reshape %t : !tile to !gdn_gpu.shared<4x64xf32>
      // expected-note@+1 {{loaded here}}
      %f = gdn_gpu.load_shared %r row(%c0) : !gdn_gpu.shared<4x64xf32> -> !row
      // expected-error@+1 {{'gdn_gpu.release' op expects what was loaded to be used before, since gdn_gpu.copy fills the channel}}
      gdn_gpu.release %c : !ring
      gdn_gpu.store %f, %y[%c0] dims [0] : !row, memref<64xf32>
    }
    gdn_gpu.warps 1 for 1 {
      %t = gdn_gpu.acquire %c : !ring -> !tile
      gdn_gpu.copy %x[%c0, %c0] dims [0, 1], %t : memref<?x32xf32>, !tile
      gdn_gpu.commit %c : !ring
    }
  }
  return
}

// -----

!ring = !gdn_gpu.channel<8x32xf32, depth = 4, parts = 2>
!chan = !gdn_gpu.channel<8x32xf32, depth = 2>
!tile = !gdn_gpu.shared<8x32xf32>
#two = #gdn_gpu.rows<warps = 2, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 8, vector = 4>
!two = !gdn_gpu.fragment<8x32xf32, #two>
!one = !gdn_gpu.fragment<8x32xf32, #one>

func.func @parts_without_copies(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  // expected-error@+1 {{'gdn_gpu.channel' op expects gdn_gpu.copy to fill a channel in parts}}
  %c = gdn_gpu.channel : !ring
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 2 {
      %t = gdn_gpu.receive %c : !ring -> !tile
      %f = gdn_gpu.load_shared %t : !tile -> !two
      gdn_gpu.release %c : !ring
    }
    gdn_gpu.warps 2 for 1 {
      %s = gdn_gpu.fill %v : f32 -> !one
      %t = gdn_gpu.acquire %c : !ring -> !tile
      gdn_gpu.store_shared %s, %t : !one, !tile
      gdn_gpu.commit %c : !ring
    }
  }
  return
}

// -----

!ring = !gdn_gpu.channel<8x32xf32, depth = 4, parts = 2>
!chan = !gdn_gpu.channel<8x32xf32, depth = 2>
!tile = !gdn_gpu.shared<8x32xf32>
#two = #gdn_gpu.rows<warps = 2, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 8, vector = 4>
!two = !gdn_gpu.fragment<8x32xf32, #two>
!one = !gdn_gpu.fragment<8x32xf32, #one>

func.func @copied_and_shared(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c = gdn_gpu.channel : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 2 {
      %t = gdn_gpu.receive %c : !chan -> !tile
      %f = gdn_gpu.load_shared %t : !tile -> !two
      gdn_gpu.release %c : !chan
    }
    gdn_gpu.warps 2 for 1 {
      %s = gdn_gpu.fill %v : f32 -> !one
      %t = gdn_gpu.acquire %c : !chan -> !tile
      gdn_gpu.copy %x[%c0, %c0] dims [0, 1], %t : memref<?x32xf32>, !tile
      // expected-error@+1 {{'gdn_gpu.store_shared' op expects a channel that gdn_gpu.copy does not fill}}
      gdn_gpu.store_shared %s, %t : !one, !tile
      gdn_gpu.commit %c : !chan
    }
  }
  return
}

// -----

!ring = !gdn_gpu.channel<8x32xf32, depth = 4, parts = 2>
!chan = !gdn_gpu.channel<8x32xf32, depth = 2>
!tile = !gdn_gpu.shared<8x32xf32>
#two = #gdn_gpu.rows<warps = 2, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 8, vector = 4>
!two = !gdn_gpu.fragment<8x32xf32, #two>
!one = !gdn_gpu.fragment<8x32xf32, #one>

func.func @copied_twice(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c = gdn_gpu.channel : !ring
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 2 {
      %t = gdn_gpu.receive %c : !ring -> !tile
      %f = gdn_gpu.load_shared %t : !tile -> !two
      gdn_gpu.release %c : !ring
    }
    gdn_gpu.warps 2 for 1 {
      %t = gdn_gpu.acquire %c : !ring -> !tile
      // expected-error@+1 {{'gdn_gpu.copy' op expects to be the only gdn_gpu.copy of its tile}}
      gdn_gpu.copy %x[%c0, %c0] dims [0, 1], %t : memref<?x32xf32>, !tile
      gdn_gpu.copy %x[%c0, %c0] dims [0, 1], %t : memref<?x32xf32>, !tile
      gdn_gpu.commit %c : !ring
    }
  }
  return
}

// -----

!ring = !gdn_gpu.channel<8x32xf32, depth = 4, parts = 2>
!chan = !gdn_gpu.channel<8x32xf32, depth = 2>
!tile = !gdn_gpu.shared<8x32xf32>
#two = #gdn_gpu.rows<warps = 2, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 8, vector = 4>
!two = !gdn_gpu.fragment<8x32xf32, #two>
!one = !gdn_gpu.fragment<8x32xf32, #one>

func.func @copied_in_a_branch(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c = gdn_gpu.channel : !ring
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 2 {
      %t = gdn_gpu.receive %c : !ring -> !tile
      %f = gdn_gpu.load_shared %t : !tile -> !two
      gdn_gpu.release %c : !ring
    }
    gdn_gpu.warps 2 for 1 {
      %b = arith.constant true
      %t = gdn_gpu.acquire %c : !ring -> !tile
      scf.if %b {
        // expected-error@+1 {{'gdn_gpu.copy' op expects to be in the block of the gdn_gpu.acquire of its tile}}
        gdn_gpu.copy %x[%c0, %c0] dims [0, 1], %t : memref<?x32xf32>, !tile
      }
      gdn_gpu.commit %c : !ring
    }
  }
  return
}

// -----

!ring = !gdn_gpu.channel<8x32xf32, depth = 4, parts = 2>
!chan = !gdn_gpu.channel<8x32xf32, depth = 2>
!tile = !gdn_gpu.shared<8x32xf32>
#two = #gdn_gpu.rows<warps = 2, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 8, vector = 4>
!two = !gdn_gpu.fragment<8x32xf32, #two>
!one = !gdn_gpu.fragment<8x32xf32, #one>

func.func @copied_by_two_warps(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c = gdn_gpu.channel : !ring
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 2 {
      %t = gdn_gpu.receive %c : !ring -> !tile
      %f = gdn_gpu.load_shared %t : !tile -> !two
      gdn_gpu.release %c : !ring
    }
    gdn_gpu.warps 2 for 2 {
      %t = gdn_gpu.acquire %c : !ring -> !tile
      // expected-error@+1 {{'gdn_gpu.copy' op expects to be inside a role of one warp, but got 2}}
      gdn_gpu.copy %x[%c0, %c0] dims [0, 1], %t : memref<?x32xf32>, !tile
      gdn_gpu.commit %c : !ring
    }
  }
  return
}

// -----

!ring = !gdn_gpu.channel<8x32xf32, depth = 4, parts = 2>
!chan = !gdn_gpu.channel<8x32xf32, depth = 2>
!tile = !gdn_gpu.shared<8x32xf32>
#two = #gdn_gpu.rows<warps = 2, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 8, vector = 4>
!two = !gdn_gpu.fragment<8x32xf32, #two>
!one = !gdn_gpu.fragment<8x32xf32, #one>

func.func @not_copied(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c = gdn_gpu.channel : !ring
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 2 {
      %t = gdn_gpu.receive %c : !ring -> !tile
      %f = gdn_gpu.load_shared %t : !tile -> !two
      gdn_gpu.release %c : !ring
    }
    gdn_gpu.warps 2 for 1 {
      %t = gdn_gpu.acquire %c : !ring -> !tile
      gdn_gpu.copy %x[%c0, %c0] dims [0, 1], %t : memref<?x32xf32>, !tile
      gdn_gpu.commit %c : !ring
      // expected-error@+1 {{'gdn_gpu.acquire' op expects a gdn_gpu.copy of the tile, since copies fill the channel}}
      %u = gdn_gpu.acquire %c : !ring -> !tile
      gdn_gpu.commit %c : !ring
    }
  }
  return
}

// -----

!ring = !gdn_gpu.channel<8x32xf32, depth = 4, parts = 2>
!chan = !gdn_gpu.channel<8x32xf32, depth = 2>
!tile = !gdn_gpu.shared<8x32xf32>
#two = #gdn_gpu.rows<warps = 2, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 8, vector = 4>
!two = !gdn_gpu.fragment<8x32xf32, #two>
!one = !gdn_gpu.fragment<8x32xf32, #one>

func.func @unit_of_nothing(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  // expected-error@+1 {{'gdn_gpu.block_id' op expects to be inside a gdn_gpu.units, since the function has some}}
  %i = gdn_gpu.block_id 0
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      gdn_gpu.units {
        %j = gdn_gpu.block_id 0
      }
    }
  }
  return
}

// -----

func.func @units_c4_some_dealt(%n: index)
    attributes {gdn_gpu.kernel = {threads = 64 : i64, blocks_per_sm = 1 : i64, counters = ["1"]},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      // expected-error@+1 {{'gdn_gpu.units' op expects all gdn_gpu.units of the function to be taken, by one gdn_gpu.take_unit}}
      gdn_gpu.units taken {
        %i = gdn_gpu.take_unit
        gdn_gpu.yield %i : index
      }
    }
    gdn_gpu.warps 1 for 1 {
      gdn_gpu.units {
        %i = gdn_gpu.block_id 0
      }
    }
  }
  return
}

// -----

func.func @units_c4_taken_twice(%n: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64, blocks_per_sm = 1 : i64, counters = ["1"]},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      // expected-error@+1 {{'gdn_gpu.units' op expects all gdn_gpu.units of the function to be taken, by one gdn_gpu.take_unit}}
      gdn_gpu.units taken {
        %i = gdn_gpu.take_unit
        %j = gdn_gpu.take_unit
        gdn_gpu.yield %j : index
      }
    }
  }
  return
}
