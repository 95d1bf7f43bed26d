// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Units that blocks take: every message of their verifiers.
//
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics

func.func @units_c3_nothing_given(%n: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64, blocks_per_sm = 1 : i64, counters = ["1"]},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      // expected-error@+1 {{'gdn_gpu.units' op expects a gdn_gpu.yield of the next unit, an index, at its end where it is taken, and only there, and units that are not contiguous then}}
      gdn_gpu.units taken {
        %i = gdn_gpu.block_id 0
      }
    }
  }
  return
}

// -----

func.func @units_c3_given(%n: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64, blocks_per_sm = 1 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      // expected-error@+1 {{'gdn_gpu.units' op expects a gdn_gpu.yield of the next unit}}
      gdn_gpu.units {
        %i = gdn_gpu.block_id 0
        gdn_gpu.yield %i : index
      }
    }
  }
  return
}

// -----

func.func @units_c3_contiguous(%n: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64, blocks_per_sm = 1 : i64, counters = ["1"]},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      // expected-error@+1 {{'gdn_gpu.units' op expects a gdn_gpu.yield of the next unit}}
      gdn_gpu.units contiguous taken {
        %i = gdn_gpu.take_unit
        gdn_gpu.yield %i : index
      }
    }
  }
  return
}

// -----

func.func @take_unit_c1_dealt(%n: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64, blocks_per_sm = 1 : i64, counters = ["1"]},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      gdn_gpu.units {
        // expected-error@+1 {{'gdn_gpu.take_unit' op expects to be in the body of a gdn_gpu.units that is taken, of a role of one warp}}
        %i = gdn_gpu.take_unit
      }
    }
  }
  return
}

// -----

func.func @take_unit_c1_two_warps(%n: index)
    attributes {gdn_gpu.kernel = {threads = 64 : i64, blocks_per_sm = 1 : i64, counters = ["1"]},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 2 {
      gdn_gpu.units taken {
        // expected-error@+1 {{'gdn_gpu.take_unit' op expects to be in the body of a gdn_gpu.units that is taken, of a role of one warp}}
        %i = gdn_gpu.take_unit
        gdn_gpu.yield %i : index
      }
    }
  }
  return
}

// -----

func.func @take_unit_c1_in_a_branch(%n: index, %is: i1)
    attributes {gdn_gpu.kernel = {threads = 32 : i64, blocks_per_sm = 1 : i64, counters = ["1"]},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      gdn_gpu.units taken {
        %i = gdn_gpu.block_id 0
        scf.if %is {
          // expected-error@+1 {{'gdn_gpu.take_unit' op expects to be in the body of a gdn_gpu.units that is taken, of a role of one warp}}
          %next = gdn_gpu.take_unit
        }
        gdn_gpu.yield %i : index
      }
    }
  }
  return
}

// -----

func.func @take_unit_c2(%n: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64, blocks_per_sm = 1 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      gdn_gpu.units taken {
        // expected-error@+1 {{'gdn_gpu.take_unit' op expects a function with one of 'counters' of 'gdn_gpu.kernel' around it}}
        %i = gdn_gpu.take_unit
        gdn_gpu.yield %i : index
      }
    }
  }
  return
}
