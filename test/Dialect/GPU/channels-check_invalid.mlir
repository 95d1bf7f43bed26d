// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-gpu-check: every order of ops on a channel that it refuses.
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

func.func @read_before_receive(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.threads = 128 : i64, gdn_gpu.blocks_per_sm = 2 : i64, gdn_tile.grid = ["N"], gdn_tile.symbols = ["N"]} {
  %c0 = arith.constant 0 : index
  %c = gdn_gpu.channel : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 2 {
      %t = gdn_gpu.receive %c : !chan -> !tile
      %f = gdn_gpu.fetch %t : !tile -> !two
      gdn_gpu.release %c : !chan
    }
    gdn_gpu.warps 2 for 1 {
      %t = gdn_gpu.acquire %c : !chan -> !tile
      // expected-error@+1 {{'gdn_gpu.fetch' op expects to write a tile that was acquired, by gdn_gpu.share or gdn_gpu.copy}}
      %f = gdn_gpu.fetch %t : !tile -> !one
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

func.func @write_before_acquire(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.threads = 128 : i64, gdn_gpu.blocks_per_sm = 2 : i64, gdn_tile.grid = ["N"], gdn_tile.symbols = ["N"]} {
  %c0 = arith.constant 0 : index
  %c = gdn_gpu.channel : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 2 {
      %s = gdn_gpu.fill %v : f32 -> !two
      %t = gdn_gpu.receive %c : !chan -> !tile
      // expected-error@+1 {{'gdn_gpu.share' op expects to read a tile that was received, by gdn_gpu.fetch or gdn_gpu.fetch_element}}
      gdn_gpu.share %s, %t : !two, !tile
      gdn_gpu.release %c : !chan
    }
    gdn_gpu.warps 2 for 1 {
      %s = gdn_gpu.fill %v : f32 -> !one
      %t = gdn_gpu.acquire %c : !chan -> !tile
      gdn_gpu.share %s, %t : !one, !tile
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

func.func @release_without_receive(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.threads = 128 : i64, gdn_gpu.blocks_per_sm = 2 : i64, gdn_tile.grid = ["N"], gdn_tile.symbols = ["N"]} {
  %c0 = arith.constant 0 : index
  %c = gdn_gpu.channel : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 2 {
      %t = gdn_gpu.receive %c : !chan -> !tile
      %f = gdn_gpu.fetch %t : !tile -> !two
      gdn_gpu.release %c : !chan
      // expected-error@+1 {{'gdn_gpu.release' op expects a gdn_gpu.receive of the channel before it in the same block}}
      gdn_gpu.release %c : !chan
    }
    gdn_gpu.warps 2 for 1 {
      %s = gdn_gpu.fill %v : f32 -> !one
      %t = gdn_gpu.acquire %c : !chan -> !tile
      gdn_gpu.share %s, %t : !one, !tile
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

func.func @commit_without_acquire(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.threads = 128 : i64, gdn_gpu.blocks_per_sm = 2 : i64, gdn_tile.grid = ["N"], gdn_tile.symbols = ["N"]} {
  %c0 = arith.constant 0 : index
  %c = gdn_gpu.channel : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 2 {
      %t = gdn_gpu.receive %c : !chan -> !tile
      %f = gdn_gpu.fetch %t : !tile -> !two
      gdn_gpu.release %c : !chan
    }
    gdn_gpu.warps 2 for 1 {
      // expected-error@+1 {{'gdn_gpu.commit' op expects a gdn_gpu.acquire of the channel before it in the same block}}
      gdn_gpu.commit %c : !chan
      %s = gdn_gpu.fill %v : f32 -> !one
      %t = gdn_gpu.acquire %c : !chan -> !tile
      gdn_gpu.share %s, %t : !one, !tile
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

func.func @receive_without_release(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.threads = 128 : i64, gdn_gpu.blocks_per_sm = 2 : i64, gdn_tile.grid = ["N"], gdn_tile.symbols = ["N"]} {
  %c0 = arith.constant 0 : index
  %c = gdn_gpu.channel : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 2 {
      // expected-error@+1 {{'gdn_gpu.receive' op expects a gdn_gpu.release of the channel behind it in the same block}}
      %t = gdn_gpu.receive %c : !chan -> !tile
      %f = gdn_gpu.fetch %t : !tile -> !two
    }
    gdn_gpu.warps 2 for 1 {
      %s = gdn_gpu.fill %v : f32 -> !one
      %t = gdn_gpu.acquire %c : !chan -> !tile
      gdn_gpu.share %s, %t : !one, !tile
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

func.func @acquired_twice(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.threads = 128 : i64, gdn_gpu.blocks_per_sm = 2 : i64, gdn_tile.grid = ["N"], gdn_tile.symbols = ["N"]} {
  %c0 = arith.constant 0 : index
  %c = gdn_gpu.channel : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 2 {
      %t = gdn_gpu.receive %c : !chan -> !tile
      %f = gdn_gpu.fetch %t : !tile -> !two
      gdn_gpu.release %c : !chan
    }
    gdn_gpu.warps 2 for 1 {
      // expected-error@+1 {{'gdn_gpu.acquire' op expects a gdn_gpu.commit of the channel behind it in the same block}}
      %u = gdn_gpu.acquire %c : !chan -> !tile
      %s = gdn_gpu.fill %v : f32 -> !one
      %t = gdn_gpu.acquire %c : !chan -> !tile
      gdn_gpu.share %s, %t : !one, !tile
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

func.func @released_in_a_branch(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.threads = 128 : i64, gdn_gpu.blocks_per_sm = 2 : i64, gdn_tile.grid = ["N"], gdn_tile.symbols = ["N"]} {
  %c0 = arith.constant 0 : index
  %c = gdn_gpu.channel : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 2 {
      %b = arith.constant true
      %t = gdn_gpu.receive %c : !chan -> !tile
      %f = gdn_gpu.fetch %t : !tile -> !two
      scf.if %b {
        // expected-error@+1 {{'gdn_gpu.release' op expects a gdn_gpu.receive of the channel before it in the same block}}
        gdn_gpu.release %c : !chan
      }
    }
    gdn_gpu.warps 2 for 1 {
      %s = gdn_gpu.fill %v : f32 -> !one
      %t = gdn_gpu.acquire %c : !chan -> !tile
      gdn_gpu.share %s, %t : !one, !tile
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

func.func @read_behind_release(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.threads = 128 : i64, gdn_gpu.blocks_per_sm = 2 : i64, gdn_tile.grid = ["N"], gdn_tile.symbols = ["N"]} {
  %c0 = arith.constant 0 : index
  %c = gdn_gpu.channel : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 2 {
      %t = gdn_gpu.receive %c : !chan -> !tile
      // expected-note@+1 {{given up here}}
      gdn_gpu.release %c : !chan
      // expected-error@+1 {{'gdn_gpu.fetch' op expects a tile that has not been given up}}
      %f = gdn_gpu.fetch %t : !tile -> !two
    }
    gdn_gpu.warps 2 for 1 {
      %s = gdn_gpu.fill %v : f32 -> !one
      %t = gdn_gpu.acquire %c : !chan -> !tile
      gdn_gpu.share %s, %t : !one, !tile
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

func.func @written_behind_commit(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.threads = 128 : i64, gdn_gpu.blocks_per_sm = 2 : i64, gdn_tile.grid = ["N"], gdn_tile.symbols = ["N"]} {
  %c0 = arith.constant 0 : index
  %c = gdn_gpu.channel : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 2 {
      %t = gdn_gpu.receive %c : !chan -> !tile
      %f = gdn_gpu.fetch %t : !tile -> !two
      gdn_gpu.release %c : !chan
    }
    gdn_gpu.warps 2 for 1 {
      %s = gdn_gpu.fill %v : f32 -> !one
      %t = gdn_gpu.acquire %c : !chan -> !tile
      // expected-note@+1 {{given up here}}
      gdn_gpu.commit %c : !chan
      // expected-error@+1 {{'gdn_gpu.share' op expects a tile that has not been given up}}
      gdn_gpu.share %s, %t : !one, !tile
    }
  }
  return
}
