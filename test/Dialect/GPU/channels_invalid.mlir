// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Roles, units and channels: every message of their verifiers.
//
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics

!ring = !gdn_gpu.channel<8x32xf32, depth = 4, parts = 2>
!chan = !gdn_gpu.channel<8x32xf32, depth = 2>
!tile = !gdn_gpu.shared<8x32xf32>
#two = #gdn_gpu.rows<warps = 2, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 8, vector = 4>
!two = !gdn_gpu.fragment<8x32xf32, #two>
!one = !gdn_gpu.fragment<8x32xf32, #one>

func.func @c1_roles_inside(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %t = arith.constant true
  scf.if %t {
    // expected-error@+1 {{'gdn_gpu.roles' op expects to be directly in a function, but is in 'scf.if'}}
    gdn_gpu.roles {
      gdn_gpu.warps 0 for 1 {
      }
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

func.func @c1_roles_twice(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  // expected-error@+1 {{'gdn_gpu.roles' op expects to be the only gdn_gpu.roles of its function}}
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
    }
  }
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
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

func.func @c2_not_a_role(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  gdn_gpu.roles {
    // expected-error@+1 {{'arith.constant' op expects to be in a gdn_gpu.warps: a gdn_gpu.roles has nothing else}}
    %c0 = arith.constant 0 : index
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

func.func @c2_results(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  gdn_gpu.roles {
    // expected-error@+1 {{'gdn_gpu.warps' op expects no results of a role, but got 1}}
    %r = gdn_gpu.warps 0 for 1 -> f32 {
      gdn_gpu.yield %v : f32
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

func.func @c2_warp_in_two(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 3 {
    }
    // expected-error@+1 {{'gdn_gpu.warps' op expects warps that no other role has, but got warp 2 again}}
    gdn_gpu.warps 2 for 1 {
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

func.func @units_c1(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  // expected-error@+1 {{'gdn_gpu.units' op expects to be inside a role of gdn_gpu.roles, and in no other gdn_gpu.units}}
  gdn_gpu.units {
    %i = gdn_gpu.block_id 0
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

func.func @channel_c1(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      // expected-error@+1 {{'gdn_gpu.channel' op expects to be directly in the function, but is in 'gdn_gpu.warps'}}
      %c = gdn_gpu.channel : !chan
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

func.func @acquire_c1(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c = gdn_gpu.channel : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      // expected-error@+1 {{'gdn_gpu.acquire' op expects a tile of the element type and size of '!gdn_gpu.shared<8x32xf32>', but got '!gdn_gpu.shared<8x16xf32>'}}
      %t = gdn_gpu.acquire %c : !chan -> !gdn_gpu.shared<8x16xf32>
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

func.func @receive_c1(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c = gdn_gpu.channel : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      // expected-error@+1 {{'gdn_gpu.receive' op expects a tile of the element type and size of '!gdn_gpu.shared<8x32xf32>', but got '!gdn_gpu.shared<8x32xbf16>'}}
      %t = gdn_gpu.receive %c : !chan -> !gdn_gpu.shared<8x32xbf16>
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

func.func @copy_c3_not_acquired(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %t = gdn_gpu.alloc : !tile
  // expected-error@+1 {{'gdn_gpu.copy' op expects 'tile' to come from a gdn_gpu.acquire}}
  gdn_gpu.copy %x[%c0, %c0] dims [0, 1], %t : memref<?x32xf32>, !tile
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

func.func @copy_c3_shape(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c = gdn_gpu.channel : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %t = gdn_gpu.acquire %c : !chan -> !gdn_gpu.shared<16x16xf32>
      // expected-error@+1 {{'gdn_gpu.copy' op expects a tile of rank 2 in the shape of its channel, '!gdn_gpu.shared<8x32xf32>', but got '!gdn_gpu.shared<16x16xf32>'}}
      gdn_gpu.copy %x[%c0, %c0] dims [0, 1], %t : memref<?x32xf32>, !gdn_gpu.shared<16x16xf32>
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

func.func @copy_c3_rows(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c = gdn_gpu.channel : !gdn_gpu.channel<8x3xf32, depth = 2>
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %t = gdn_gpu.acquire %c : !gdn_gpu.channel<8x3xf32, depth = 2> -> !gdn_gpu.shared<8x3xf32>
      // expected-error@+1 {{'gdn_gpu.copy' op expects rows of a multiple of 16 bytes, but got 12}}
      gdn_gpu.copy %x[%c0, %c0] dims [0, 1], %t : memref<?x32xf32>, !gdn_gpu.shared<8x3xf32>
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

func.func @copy_c3_columns(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c = gdn_gpu.channel : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %t = gdn_gpu.acquire %c : !chan -> !tile
      // expected-error@+1 {{'gdn_gpu.copy' op expects the elements of a row to lie side by side in 'view', but got 'memref<?x32xf32>'}}
      gdn_gpu.copy %x[%c0, %c0] dims [1, 0], %t : memref<?x32xf32>, !tile
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

func.func @copy_c1(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c = gdn_gpu.channel : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %t = gdn_gpu.acquire %c : !chan -> !tile
      // expected-error@+1 {{'gdn_gpu.copy' op expects one index per dimension of 'view', which is 2, but got 1}}
      gdn_gpu.copy %x[%c0] dims [0, 1], %t : memref<?x32xf32>, !tile
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

func.func @await_launch_c1(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  gdn_gpu.warps 0 for 1 {
    // expected-error@+1 {{'gdn_gpu.await_launch' op expects to be outside gdn_gpu.warps, which only some warps enter}}
    gdn_gpu.await_launch
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

func.func @units_c2(%x: memref<?x32xf32>, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 128 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      // expected-error@+1 {{'gdn_gpu.units' op expects a function with 'blocks_per_sm' of 'gdn_gpu.kernel' of at least 1 around it}}
      gdn_gpu.units {
        %i = gdn_gpu.block_id 0
      }
    }
  }
  return
}

// -----

!chan = !gdn_gpu.channel<8x32xf32, depth = 2>

func.func @channel_c5_depth() attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %c = gdn_gpu.channel : !chan
  // expected-error@+1 {{'gdn_gpu.channel' op expects the depth of its leader, and no parts, but got '!gdn_gpu.channel<8x32xf32, depth = 3>' beside '!gdn_gpu.channel<8x32xf32, depth = 2>'}}
  %d = gdn_gpu.channel : !gdn_gpu.channel<8x32xf32, depth = 3> with %c : !chan
  return
}

// -----

!chan = !gdn_gpu.channel<8x32xf32, depth = 2>

func.func @channel_c5_led() attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %c = gdn_gpu.channel : !chan
  %d = gdn_gpu.channel : !chan with %c : !chan
  // expected-error@+1 {{'gdn_gpu.channel' op expects its leader to be a gdn_gpu.channel that has none}}
  %e = gdn_gpu.channel : !chan with %d : !chan
  return
}

// -----

!chan = !gdn_gpu.channel<8x32xf32, depth = 2>

func.func @commit_tile(%v: f32) attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %c = gdn_gpu.channel : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      // expected-error@+1 {{'gdn_gpu.commit' op expects a tile of the element type and size of '!gdn_gpu.shared<8x32xf32>', but got '!gdn_gpu.shared<8x16xf32>'}}
      %t = gdn_gpu.commit %c : !chan -> !gdn_gpu.shared<8x16xf32>
    }
  }
  return
}

// -----

func.func @receive_c3(%f: f32) attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  %ring = gdn_gpu.channel : !gdn_gpu.channel<8x32xf32, depth = 1>
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      // expected-error@+1 {{'gdn_gpu.receive' op expects a channel of at least two ring stages and no parts to receive ahead from, but got '!gdn_gpu.channel<8x32xf32, depth = 1>'}}
      %tile = gdn_gpu.receive ahead %ring : !gdn_gpu.channel<8x32xf32, depth = 1> -> !gdn_gpu.shared<8x32xf32>
    }
  }
  return
}

// -----

func.func @channel_c6_depth(%f: f32)
    attributes {gdn_gpu.kernel = {cluster = 2 : i64, threads = 64 : i64}} {
  // expected-error@+1 {{'gdn_gpu.channel' op expects an even depth and no parts where roles are alternate, but got '!gdn_gpu.channel<8x32xf32, depth = 3>'}}
  %ring = gdn_gpu.channel paired : !gdn_gpu.channel<8x32xf32, depth = 3>
  return
}

// -----

func.func @channel_c6_alone(%f: f32)
    attributes {gdn_gpu.kernel = {cluster = 2 : i64, threads = 64 : i64}} {
  // expected-error@+1 {{'gdn_gpu.channel' op expects to be paired if, and only if, the role that fills it is alternate}}
  %ring = gdn_gpu.channel : !gdn_gpu.channel<8x32xf32, depth = 2>
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 alternate {
      %tile = gdn_gpu.acquire %ring : !gdn_gpu.channel<8x32xf32, depth = 2> -> !gdn_gpu.shared<8x32xf32>
      gdn_gpu.commit %ring : !gdn_gpu.channel<8x32xf32, depth = 2>
    }
  }
  return
}

// -----

!chan = !gdn_gpu.channel<8x32xf32, depth = 2>

func.func @channel_c5_paired()
    attributes {gdn_gpu.kernel = {cluster = 2 : i64, threads = 128 : i64}} {
  %c = gdn_gpu.channel : !chan
  // expected-error@+1 {{'gdn_gpu.channel' op expects its leader to be paired as well, or neither}}
  %d = gdn_gpu.channel paired : !chan with %c : !chan
  return
}

// -----

func.func @channel_c6_parts()
    attributes {gdn_gpu.kernel = {cluster = 2 : i64, threads = 64 : i64}} {
  // expected-error@+1 {{'gdn_gpu.channel' op expects an even depth and no parts where roles are alternate, but got '!gdn_gpu.channel<8x32xf32, depth = 2, parts = 4>'}}
  %ring = gdn_gpu.channel paired : !gdn_gpu.channel<8x32xf32, depth = 2, parts = 4>
  return
}

// -----

!chan = !gdn_gpu.channel<8x32xf32, depth = 2>
!tile = !gdn_gpu.shared<8x32xf32>

func.func @channel_c6_all() attributes {gdn_gpu.kernel = {cluster = 2 : i64, threads = 64 : i64}} {
  // expected-error@+1 {{'gdn_gpu.channel' op expects a role that receives each of its tiles beside those that are alternate}}
  %ring = gdn_gpu.channel : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %t = gdn_gpu.acquire %ring : !chan -> !tile
      gdn_gpu.commit %ring : !chan
    }
    gdn_gpu.warps 1 for 1 alternate {
      %t = gdn_gpu.receive %ring : !chan -> !tile
      gdn_gpu.release %ring : !chan
    }
  }
  return
}

// -----

!chan = !gdn_gpu.channel<8x32xf32, depth = 2>
!tile = !gdn_gpu.shared<8x32xf32>

func.func @channel_c6_copied(%x: memref<8x32xf32, strided<[32, 1]>>)
    attributes {gdn_gpu.kernel = {cluster = 2 : i64, threads = 64 : i64}} {
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{'gdn_gpu.channel' op expects to be filled by threads where it is paired, not by copies}}
  %ring = gdn_gpu.channel paired : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 alternate {
      %t = gdn_gpu.acquire %ring : !chan -> !tile
      gdn_gpu.copy %x[%c0, %c0] dims [0, 1], %t : memref<8x32xf32, strided<[32, 1]>>, !tile
      gdn_gpu.commit %ring : !chan
    }
    gdn_gpu.warps 1 for 1 {
      %t = gdn_gpu.receive %ring : !chan -> !tile
      gdn_gpu.release %ring : !chan
    }
  }
  return
}

// -----

!chan = !gdn_gpu.channel<8x32xf32, depth = 2>

func.func @receive_c3_alternate()
    attributes {gdn_gpu.kernel = {cluster = 2 : i64, threads = 64 : i64}} {
  %ring = gdn_gpu.channel paired : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 alternate {
      // expected-error@+1 {{'gdn_gpu.receive' op expects a channel of at least four ring stages and no parts to receive ahead from, but got '!gdn_gpu.channel<8x32xf32, depth = 2>'}}
      %tile = gdn_gpu.receive ahead %ring : !chan -> !gdn_gpu.shared<8x32xf32>
    }
    gdn_gpu.warps 1 for 1 {
      %tile = gdn_gpu.receive %ring : !chan -> !gdn_gpu.shared<8x32xf32>
    }
  }
  return
}

// -----

func.func @channel_c7_rows()
    attributes {gdn_gpu.kernel = {cluster = 2 : i64, threads = 64 : i64}} {
  // expected-error@+1 {{'gdn_gpu.channel' op expects two rows of a multiple of 16 bytes, a depth of at least 2, and neither leader, parts, swizzle nor alternate roles where it is exchanged, but got '!gdn_gpu.channel<3x64xf32, depth = 2>'}}
  %ring = gdn_gpu.channel exchanged : !gdn_gpu.channel<3x64xf32, depth = 2>
  return
}

// -----

func.func @channel_c7_depth()
    attributes {gdn_gpu.kernel = {cluster = 2 : i64, threads = 64 : i64}} {
  // expected-error@+1 {{but got '!gdn_gpu.channel<2x64xf32, depth = 1>'}}
  %ring = gdn_gpu.channel exchanged : !gdn_gpu.channel<2x64xf32, depth = 1>
  return
}

// -----

!chan = !gdn_gpu.channel<2x64xf32, depth = 2>
!tile = !gdn_gpu.shared<2x64xf32>

func.func @channel_c7_alternate() attributes {gdn_gpu.kernel = {cluster = 2 : i64, threads = 64 : i64}} {
  // expected-error@+1 {{nor alternate roles where it is exchanged, but got}}
  %ring = gdn_gpu.channel exchanged : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 alternate {
      %t = gdn_gpu.acquire %ring : !chan -> !tile
      gdn_gpu.commit %ring : !chan
    }
  }
  return
}
