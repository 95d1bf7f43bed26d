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

!panel = !gdn_gpu.channel<64x64xbf16, depth = 2, swizzled>
!whole = !gdn_gpu.shared<64x64xbf16, swizzled>

// Whatever shape it has there.
func.func @read_before_receive(%x: memref<?x64xbf16>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c = gdn_gpu.channel : !panel
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 2 {
      %t = gdn_gpu.receive %c : !panel -> !whole
      gdn_gpu.release %c : !panel
    }
    gdn_gpu.warps 2 for 2 {
      %t = gdn_gpu.acquire %c : !panel -> !whole
      %f = gdn_gpu.reshape %t : !whole to !whole
      // expected-error@+1 {{'gdn_gpu.copy_out' op expects to write a tile that was acquired, by gdn_gpu.store_shared, gdn_gpu.begin_copy or gdn_gpu.copy}}
      gdn_gpu.copy_out %f, %x[%c0, %c0] dims [0, 1] : !whole, memref<?x64xbf16>
      gdn_gpu.commit %c : !panel
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
    attributes {gdn_gpu.kernel = {threads = 128 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c = gdn_gpu.channel : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 2 {
      %s = gdn_gpu.fill %v : f32 -> !two
      %t = gdn_gpu.receive %c : !chan -> !tile
      // expected-error@+1 {{'gdn_gpu.store_shared' op expects to read a tile that was received, by gdn_gpu.load_shared, gdn_gpu.load_shared_element or a product}}
      gdn_gpu.store_shared %s, %t : !two, !tile
      gdn_gpu.release %c : !chan
    }
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

func.func @release_without_receive(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c = gdn_gpu.channel : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 2 {
      %t = gdn_gpu.receive %c : !chan -> !tile
      %f = gdn_gpu.load_shared %t : !tile -> !two
      gdn_gpu.release %c : !chan
      // expected-error@+1 {{'gdn_gpu.release' op expects a gdn_gpu.receive of the channel before it in the same block}}
      gdn_gpu.release %c : !chan
    }
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

func.func @commit_without_acquire(%x: memref<?x32xf32>, %v: f32)
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
      // expected-error@+1 {{'gdn_gpu.commit' op expects a gdn_gpu.acquire of the channel on every way before it}}
      gdn_gpu.commit %c : !chan
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

func.func @receive_without_release(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c = gdn_gpu.channel : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 2 {
      // expected-error@+1 {{'gdn_gpu.receive' op expects a gdn_gpu.release of the channel behind it in the same block}}
      %t = gdn_gpu.receive %c : !chan -> !tile
      %f = gdn_gpu.load_shared %t : !tile -> !two
    }
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

func.func @acquired_twice(%x: memref<?x32xf32>, %v: f32)
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
      %u = gdn_gpu.acquire %c : !chan -> !tile
      %s = gdn_gpu.fill %v : f32 -> !one
      // expected-error@+1 {{'gdn_gpu.acquire' op expects a gdn_gpu.commit of the channel on every way from the gdn_gpu.acquire before it}}
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

func.func @released_in_a_branch(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c = gdn_gpu.channel : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 2 {
      %b = arith.constant true
      %t = gdn_gpu.receive %c : !chan -> !tile
      %f = gdn_gpu.load_shared %t : !tile -> !two
      scf.if %b {
        // expected-error@+1 {{'gdn_gpu.release' op expects a gdn_gpu.receive of the channel before it in the same block}}
        gdn_gpu.release %c : !chan
      }
    }
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

func.func @read_behind_release(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c = gdn_gpu.channel : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 2 {
      %t = gdn_gpu.receive %c : !chan -> !tile
      // expected-note@+1 {{given up here}}
      gdn_gpu.release %c : !chan
      // expected-error@+1 {{'gdn_gpu.load_shared' op expects a tile that has not been given up}}
      %f = gdn_gpu.load_shared %t : !tile -> !two
    }
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

func.func @written_behind_commit(%x: memref<?x32xf32>, %v: f32)
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
      // expected-note@+1 {{given up here}}
      gdn_gpu.commit %c : !chan
      // expected-error@+1 {{'gdn_gpu.store_shared' op expects a tile that has not been given up}}
      gdn_gpu.store_shared %s, %t : !one, !tile
    }
  }
  return
}

// -----

!chan = !gdn_gpu.channel<64x128xbf16, depth = 2, swizzled>
!tile = !gdn_gpu.shared<64x128xbf16, swizzled>
#four = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!four = !gdn_gpu.fragment<64x128xbf16, #four>

func.func @turns_differ(%n: index) attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c = gdn_gpu.channel : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 4 {
      %t = gdn_gpu.receive %c : !chan -> !tile
      %f = gdn_gpu.load_shared %t : !tile -> !four
      gdn_gpu.release %c : !chan
    }
    gdn_gpu.warps 4 for 4 {
      // expected-error@+1 {{'scf.for' op expects as many gdn_gpu.acquire as gdn_gpu.commit of a channel in a turn}}
      scf.for %i = %c0 to %n step %c1 {
        %t = gdn_gpu.acquire %c : !chan -> !tile
      }
      gdn_gpu.commit %c : !chan
    }
  }
  return
}

// -----

!chan = !gdn_gpu.channel<64x128xbf16, depth = 2, swizzled>
!tile = !gdn_gpu.shared<64x128xbf16, swizzled>
#four = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!four = !gdn_gpu.fragment<64x128xbf16, #four>

func.func @open_on_one_way(%b: i1) attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %c = gdn_gpu.channel : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 4 {
      %t = gdn_gpu.receive %c : !chan -> !tile
      %f = gdn_gpu.load_shared %t : !tile -> !four
      gdn_gpu.release %c : !chan
    }
    gdn_gpu.warps 4 for 4 {
      scf.if %b {
        %t = gdn_gpu.acquire %c : !chan -> !tile
      }
      // expected-error@+1 {{'gdn_gpu.acquire' op expects a gdn_gpu.commit of the channel on every way from the gdn_gpu.acquire before it}}
      %t = gdn_gpu.acquire %c : !chan -> !tile
      gdn_gpu.commit %c : !chan
    }
  }
  return
}

// -----

!chan = !gdn_gpu.channel<64x128xbf16, depth = 2, swizzled>
!tile = !gdn_gpu.shared<64x128xbf16, swizzled>
#four = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!four = !gdn_gpu.fragment<64x128xbf16, #four>

func.func @commit_before_await(%x: memref<?x128xbf16>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %c0 = arith.constant 0 : index
  %c = gdn_gpu.channel : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 4 {
      %t = gdn_gpu.receive %c : !chan -> !tile
      %f = gdn_gpu.load_shared %t : !tile -> !four
      gdn_gpu.release %c : !chan
    }
    gdn_gpu.warps 4 for 4 {
      %t = gdn_gpu.acquire %c : !chan -> !tile
      // expected-note@+1 {{copy}}
      gdn_gpu.begin_copy %x[%i, %c0] dims [0, 1], %t : memref<?x128xbf16>, !tile
      // expected-error@+1 {{'gdn_gpu.commit' op expects a gdn_gpu.await_copies between it and the copy before it}}
      gdn_gpu.commit %c : !chan
    }
  }
  return
}

// -----

!chan = !gdn_gpu.channel<64x128xbf16, depth = 2, swizzled>
!tile = !gdn_gpu.shared<64x128xbf16, swizzled>
#four = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!four = !gdn_gpu.fragment<64x128xbf16, #four>

func.func @read_by_filler(%f: !four) attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %c = gdn_gpu.channel : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 4 {
      %t = gdn_gpu.receive %c : !chan -> !tile
      %g = gdn_gpu.load_shared %t : !tile -> !four
      gdn_gpu.release %c : !chan
    }
    gdn_gpu.warps 4 for 4 {
      %t = gdn_gpu.acquire %c : !chan -> !tile
      // expected-note@+1 {{access before it}}
      gdn_gpu.store_shared %f, %t : !four, !tile
      %own = gdn_gpu.commit %c : !chan -> !tile
      // expected-error@+1 {{'gdn_gpu.load_shared' op expects a gdn_gpu.barrier between it and the access before it}}
      %g = gdn_gpu.load_shared %own : !tile -> !four
    }
  }
  return
}

// -----

!chan = !gdn_gpu.channel<64x128xbf16, depth = 2, swizzled>
!tile = !gdn_gpu.shared<64x128xbf16, swizzled>
#four = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!four = !gdn_gpu.fragment<64x128xbf16, #four>

func.func @leader_after(%f: !four) attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %c = gdn_gpu.channel : !chan
  %d = gdn_gpu.channel : !chan with %c : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 4 {
      %t = gdn_gpu.receive %c : !chan -> !tile
      %u = gdn_gpu.receive %d : !chan -> !tile
      %g = gdn_gpu.load_shared %u : !tile -> !four
      gdn_gpu.release %c : !chan
      // expected-error@+1 {{'gdn_gpu.release' op expects to be behind the gdn_gpu.receive of the channel's leader and before its gdn_gpu.release}}
      gdn_gpu.release %d : !chan
    }
    gdn_gpu.warps 4 for 4 {
      %t = gdn_gpu.acquire %c : !chan -> !tile
      %u = gdn_gpu.acquire %d : !chan -> !tile
      gdn_gpu.store_shared %f, %u : !four, !tile
      gdn_gpu.commit %d : !chan
      gdn_gpu.commit %c : !chan
    }
  }
  return
}

// -----

!chan = !gdn_gpu.channel<64x128xbf16, depth = 2, swizzled>
!tile = !gdn_gpu.shared<64x128xbf16, swizzled>
#four = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!four = !gdn_gpu.fragment<64x128xbf16, #four>

func.func @never_committed(%f: !four) attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %c = gdn_gpu.channel : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 4 {
      %t = gdn_gpu.receive %c : !chan -> !tile
      %g = gdn_gpu.load_shared %t : !tile -> !four
      gdn_gpu.release %c : !chan
    }
    gdn_gpu.warps 4 for 4 {
      // expected-error@+1 {{'gdn_gpu.acquire' op expects a gdn_gpu.commit of the channel in its role}}
      %t = gdn_gpu.acquire %c : !chan -> !tile
      gdn_gpu.store_shared %f, %t : !four, !tile
    }
  }
  return
}

// -----

!chan = !gdn_gpu.channel<64x128xbf16, depth = 2, swizzled>
!tile = !gdn_gpu.shared<64x128xbf16, swizzled>
#four = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!four = !gdn_gpu.fragment<64x128xbf16, #four>

func.func @ahead_of_nothing(%f: !four) attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %c = gdn_gpu.channel : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 4 {
      // expected-error@+1 {{'gdn_gpu.receive' op expects to stand right behind a gdn_gpu.receive of the channel that is not ahead}}
      %t = gdn_gpu.receive ahead %c : !chan -> !tile
      gdn_gpu.release %c : !chan
    }
    gdn_gpu.warps 4 for 4 {
      %t = gdn_gpu.acquire %c : !chan -> !tile
      gdn_gpu.store_shared %f, %t : !four, !tile
      gdn_gpu.commit %c : !chan
    }
  }
  return
}

// -----

!chan = !gdn_gpu.channel<64x128xbf16, depth = 2, swizzled>
!tile = !gdn_gpu.shared<64x128xbf16, swizzled>
#four = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!four = !gdn_gpu.fragment<64x128xbf16, #four>

func.func @ahead_kept(%f: !four) attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %c = gdn_gpu.channel : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 4 {
      %t = gdn_gpu.receive %c : !chan -> !tile
      // expected-error@+1 {{'gdn_gpu.receive' op expects a gdn_gpu.release of the channel behind it in the same block}}
      %u = gdn_gpu.receive ahead %c : !chan -> !tile
      gdn_gpu.release %c : !chan
    }
    gdn_gpu.warps 4 for 4 {
      %t = gdn_gpu.acquire %c : !chan -> !tile
      gdn_gpu.store_shared %f, %t : !four, !tile
      gdn_gpu.commit %c : !chan
    }
  }
  return
}

// -----

!chan = !gdn_gpu.channel<64x128xbf16, depth = 2, swizzled>
!tile = !gdn_gpu.shared<64x128xbf16, swizzled>
#four = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!four = !gdn_gpu.fragment<64x128xbf16, #four>

func.func @ahead_given_up(%f: !four) attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %c = gdn_gpu.channel : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 4 {
      %t = gdn_gpu.receive %c : !chan -> !tile
      %u = gdn_gpu.receive ahead %c : !chan -> !tile
      gdn_gpu.release %c : !chan
      %g = gdn_gpu.load_shared %u : !tile -> !four
      // expected-note@+1 {{given up here}}
      gdn_gpu.release %c : !chan
      // expected-error@+1 {{'gdn_gpu.load_shared' op expects a tile that has not been given up}}
      %h = gdn_gpu.load_shared %u : !tile -> !four
    }
    gdn_gpu.warps 4 for 4 {
      %t = gdn_gpu.acquire %c : !chan -> !tile
      gdn_gpu.store_shared %f, %t : !four, !tile
      gdn_gpu.commit %c : !chan
    }
  }
  return
}

// -----

!chan = !gdn_gpu.channel<2x64xf32, depth = 2>
!tile = !gdn_gpu.shared<2x64xf32>

func.func @exchanged_by_another_role()
    attributes {gdn_gpu.kernel = {cluster = 2 : i64, threads = 64 : i64}} {
  %c = gdn_gpu.channel exchanged : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %t = gdn_gpu.acquire %c : !chan -> !tile
      gdn_gpu.commit %c : !chan
    }
    gdn_gpu.warps 1 for 1 {
      // expected-error@+1 {{'gdn_gpu.receive' op expects the role to empty the channel that fills it}}
      %t = gdn_gpu.receive %c : !chan -> !tile
      gdn_gpu.release %c : !chan
    }
  }
  return
}

// -----

!chan = !gdn_gpu.channel<2x64xf32, depth = 2>
!tile = !gdn_gpu.shared<2x64xf32>

func.func @exchanged_before_it_is_given()
    attributes {gdn_gpu.kernel = {cluster = 2 : i64, threads = 32 : i64}} {
  %c = gdn_gpu.channel exchanged : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      // expected-error@+1 {{'gdn_gpu.receive' op expects to stand right behind the gdn_gpu.commit of the channel, which is exchanged}}
      %r = gdn_gpu.receive %c : !chan -> !tile
      gdn_gpu.release %c : !chan
      %t = gdn_gpu.acquire %c : !chan -> !tile
      gdn_gpu.commit %c : !chan
    }
  }
  return
}
