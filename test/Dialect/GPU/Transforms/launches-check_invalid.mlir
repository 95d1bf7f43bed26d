// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-gpu-check: what may not stand ahead of gdn_gpu.await_launch, launches that may end before
// those ahead of them, and halves of pairs that nobody waits for.
//
// RUN: gdn-gpu-opt %s -split-input-file -o /dev/null
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics -gdn-gpu-check

func.func @written_ahead(%x: memref<?xi32>, %i: index, %v: i32, %c: i1)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  scf.if %c {
    // expected-note@+1 {{the program awaits the launch here}}
    gdn_gpu.await_launch
  }
  // expected-error@+1 {{'gdn_gpu.store_element' op expects a gdn_gpu.await_launch before it on every way, since an earlier launch may use what it writes}}
  gdn_gpu.store_element %v, %x[%i] : i32, memref<?xi32>
  return
}

// -----

#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
func.func @read_ahead(%x: memref<?x128xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{'gdn_gpu.load' op expects a gdn_gpu.await_launch before it on every way, since an earlier launch may write what it reads}}
  %a = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x128xf32>, !gdn_gpu.fragment<1x128xf32, #row>
  // expected-note@+1 {{the program awaits the launch here}}
  gdn_gpu.await_launch
  return
}

// -----

// A region of the workspace is no argument of the call.
#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
func.func @region_ahead(%region: memref<?x128xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {awaits_stage = 1 : i64, stage_of = "e", variant = "a"}} {
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{'gdn_gpu.load' op expects a gdn_gpu.await_launch before it on every way, since an earlier launch may write what it reads}}
  %new = gdn_gpu.load %region[%i, %c0] dims [0, 1] : memref<?x128xf32>, !gdn_gpu.fragment<1x128xf32, #row>
  // expected-note@+1 {{the program awaits the launch here}}
  gdn_gpu.await_launch
  return
}

// -----

// Nothing of this call is ahead of its first stage, so who writes its arguments is.
#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
func.func @first_stage(%x: memref<?x128xf32> {gdn.name = "x"}, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {stage_of = "e", variant = "a"}} {
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{'gdn_gpu.load' op expects a gdn_gpu.await_launch before it on every way, since an earlier launch may write what it reads}}
  %new = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x128xf32>, !gdn_gpu.fragment<1x128xf32, #row>
  // expected-note@+1 {{the program awaits the launch here}}
  gdn_gpu.await_launch
  return
}

// -----

// A number that is no number of the call.
func.func @gate_ahead(%x: memref<?xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  // expected-error@+1 {{'memref.load' op expects a gdn_gpu.await_launch before it on every way, since an earlier launch may write what it reads}}
  %a = memref.load %x[%i] : memref<?xf32>
  // expected-note@+1 {{the program awaits the launch here}}
  gdn_gpu.await_launch
  return
}

// -----

// Another role does not wait for this one.
func.func @role_ahead(%x: memref<?xi32>, %i: index, %v: i32)
    attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      // expected-note@+1 {{the program awaits the launch here}}
      gdn_gpu.await_launch
    }
    gdn_gpu.warps 1 for 1 {
      // expected-error@+1 {{'gdn_gpu.store_element' op expects a gdn_gpu.await_launch before it on every way}}
      gdn_gpu.store_element %v, %x[%i] : i32, memref<?xi32>
    }
  }
  return
}

// -----

// There may be no turn of the loop.
func.func @loop_ahead(%x: memref<?xi32>, %i: index, %n: index, %v: i32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %j = %c0 to %n step %c1 {
    // expected-note@+1 {{the program awaits the launch here}}
    gdn_gpu.await_launch
  }
  // expected-error@+1 {{'gdn_gpu.store_element' op expects a gdn_gpu.await_launch before it on every way}}
  gdn_gpu.store_element %v, %x[%i] : i32, memref<?xi32>
  return
}

// -----

func.func @released_ahead() attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  // expected-error@+1 {{'gdn_gpu.release_launch' op expects a gdn_gpu.await_launch before it on every way, since the next launch may begin behind it, and waits for this one alone}}
  gdn_gpu.release_launch
  // expected-note@+1 {{the program awaits the launch here}}
  gdn_gpu.await_launch
  return
}

// -----

func.func @nobody_waits() attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.arrive' op expects a gdn_gpu.await_arrivals in its function, but got none}}
  gdn_gpu.arrive for 3
  return
}

// -----

func.func @no_answer(%head: index, %n: index) attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %asked = gdn_gpu.warps 0 for 1 -> i32 {
    // expected-error@+1 {{'gdn_gpu.take_ticket' op expects a gdn_gpu.is_last of its ticket, but got none}}
    %t = gdn_gpu.take_ticket %head of %n
    gdn_gpu.yield %t : i32
  }
  return
}

// -----

#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
func.func @not_taken(%x: memref<?x128xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %c0 = arith.constant 0 : index
  %buffer = gdn_gpu.alloc : !gdn_gpu.shared<128xf32>
  // expected-error@+1 {{'gdn_gpu.begin_load' op expects a gdn_gpu.load that takes the tile from its buffer, but got none}}
  gdn_gpu.begin_load %x[%i, %c0] dims [0, 1], %buffer
      : memref<?x128xf32>, !gdn_gpu.fragment<1x128xf32, #row>, !gdn_gpu.shared<128xf32>
  return
}

// -----

#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
func.func @begun_on_one_way(%x: memref<?x128xf32>, %i: index, %c: i1)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %c0 = arith.constant 0 : index
  %buffer = gdn_gpu.alloc : !gdn_gpu.shared<128xf32>
  scf.if %c {
    // expected-note@+1 {{begun here}}
    gdn_gpu.begin_load %x[%i, %c0] dims [0, 1], %buffer
        : memref<?x128xf32>, !gdn_gpu.fragment<1x128xf32, #row>, !gdn_gpu.shared<128xf32>
  }
  // expected-error@+1 {{'gdn_gpu.load' op expects the gdn_gpu.begin_load of its tile before it on every way, by the same warps}}
  %a = gdn_gpu.load %x[%i, %c0] dims [0, 1] begun(%buffer : !gdn_gpu.shared<128xf32>)
      : memref<?x128xf32>, !gdn_gpu.fragment<1x128xf32, #row>
  return
}

// -----

#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
func.func @begun_by_others(%x: memref<?x128xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  %c0 = arith.constant 0 : index
  %buffer = gdn_gpu.alloc : !gdn_gpu.shared<128xf32>
  gdn_gpu.warps 0 for 1 {
    // expected-note@+1 {{begun here}}
    gdn_gpu.begin_load %x[%i, %c0] dims [0, 1], %buffer
        : memref<?x128xf32>, !gdn_gpu.fragment<1x128xf32, #row>, !gdn_gpu.shared<128xf32>
  }
  gdn_gpu.warps 1 for 1 {
    // expected-error@+1 {{'gdn_gpu.load' op expects the gdn_gpu.begin_load of its tile before it on every way, by the same warps}}
    %a = gdn_gpu.load %x[%i, %c0] dims [0, 1] begun(%buffer : !gdn_gpu.shared<128xf32>)
        : memref<?x128xf32>, !gdn_gpu.fragment<1x128xf32, #row>
  }
  return
}

// -----

#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!row = !gdn_gpu.fragment<1x128xf32, #row>
func.func @written_before_taken(%x: memref<?x128xf32>, %i: index, %new: !row)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %c0 = arith.constant 0 : index
  %buffer = gdn_gpu.alloc : !gdn_gpu.shared<128xf32>
  // expected-note@+1 {{begins to load it}}
  gdn_gpu.begin_load %x[%i, %c0] dims [0, 1], %buffer
      : memref<?x128xf32>, !row, !gdn_gpu.shared<128xf32>
  // expected-error@+1 {{'gdn_gpu.store' op expects to be behind the gdn_gpu.load that takes what was there before}}
  gdn_gpu.store %new, %x[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
  // expected-note@+1 {{takes it}}
  %a = gdn_gpu.load %x[%i, %c0] dims [0, 1] begun(%buffer : !gdn_gpu.shared<128xf32>)
      : memref<?x128xf32>, !row
  return
}

// -----

// The launch ahead may still run where a signal of it has come.
func.func @released_beside(%x: memref<?xf32>, %i: index, %c: i1)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  gdn_gpu.each_warp 0 for 1 {
  ^bb0(%w: index):
    gdn_gpu.await_signals 64, %x[%i] : memref<?xf32>
  }
  // expected-error@+1 {{'gdn_gpu.release_launch' op expects no gdn_gpu.await_signals in the program, since the next launch waits for this one alone}}
  gdn_gpu.release_launch
  scf.if %c {
    gdn_gpu.await_launch
  }
  return
}

// -----

// Who comes next waits for this launch alone, which may end before those ahead of it where no block
// has work.
func.func @ends_ahead(%x: memref<?xi32>, %i: index, %v: i32, %c: i1)
    attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      scf.if %c {
        // expected-error@+1 {{'gdn_gpu.await_launch' op expects some warp to await the launch on every way to the end of the program, in every block or in the first one, since the next launch waits for this one alone}}
        gdn_gpu.await_launch
        gdn_gpu.store_element %v, %x[%i] : i32, memref<?xi32>
      }
    }
  }
  return
}

// -----

// There may be no second block.
func.func @second_block(%c: i1)
    attributes {gdn_gpu.kernel = {threads = 64 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c1 = arith.constant 1 : index
  %b = gdn_gpu.block_id 0
  %second = arith.cmpi eq, %b, %c1 : index
  scf.if %second {
    // expected-error@+1 {{'gdn_gpu.await_launch' op expects some warp to await the launch on every way to the end of the program}}
    gdn_gpu.await_launch
  }
  return
}

// -----

// In the first block not on every way.
func.func @first_with_work(%c: i1)
    attributes {gdn_gpu.kernel = {threads = 64 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %b = gdn_gpu.block_id 0
  %first = arith.cmpi eq, %b, %c0 : index
  %both = arith.andi %first, %c : i1
  scf.if %both {
    // expected-error@+1 {{'gdn_gpu.await_launch' op expects some warp to await the launch on every way to the end of the program}}
    gdn_gpu.await_launch
  }
  return
}

// -----

// Who signals may still run.
func.func @signals_alone(%x: memref<?xf32>, %i: index, %c: i1)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  gdn_gpu.each_warp 0 for 1 {
  ^bb0(%w: index):
    gdn_gpu.await_signals 64, %x[%i] : memref<?xf32>
  }
  scf.if %c {
    // expected-error@+1 {{'gdn_gpu.await_launch' op expects some warp to await the launch on every way to the end of the program}}
    gdn_gpu.await_launch
  }
  return
}
