// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops that look at others which are wrong themselves, or stand further down,
// where they have not been verified.
//
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics

#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!tile = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
func.func @result_in_warps_without_a_number(%x: !tile, %buffer: !gdn_gpu.shared<128xf32>)
    attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  // expected-error@+1 {{'gdn_gpu.warps' op expects result 0 to be used on the same warps only}}
  %t = gdn_gpu.warps 1 for 1 -> !tile {
    gdn_gpu.yield %x : !tile
  }
  "gdn_gpu.warps"() <{first = 1 : i64}> ({
    // expected-note@+1 {{other use}}
    gdn_gpu.store_shared %t, %buffer : !tile, !gdn_gpu.shared<128xf32>
    gdn_gpu.yield
  }) : () -> ()
  return
}

// -----

// One more than the largest number is not below the number of warps.
func.func @more_warps_than_numbers() attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  // expected-error@+1 {{'gdn_gpu.warps' op expects warps below 2, set by 'threads' of 'gdn_gpu.kernel' of the function, but got warps up to 9223372036854775807}}
  gdn_gpu.warps 1 for 9223372036854775807 {
  }
  return
}

// -----

func.func @roles_of_all_numbers() attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  gdn_gpu.roles {
    // expected-error@+1 {{'gdn_gpu.warps' op expects warps below 2, set by 'threads' of 'gdn_gpu.kernel' of the function, but got warps up to 9223372036854775807}}
    gdn_gpu.warps 1 for 9223372036854775807 {
    }
  }
  return
}

// -----

func.func @arrival_without_a_warp() attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  gdn_gpu.warps 0 for 1 {
    // expected-error@+1 {{'gdn_gpu.await_arrivals' op expects a gdn_gpu.arrive in its function}}
    gdn_gpu.await_arrivals
  }
  "gdn_gpu.arrive"() : () -> ()
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!tile = !gdn_gpu.fragment<64x128xbf16, #rows>
!buffer = !gdn_gpu.shared<64x128xbf16, swizzled>
func.func @product_awaited_before_it_starts(%k: !tile)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, warpgroups}} {
  %buffer = gdn_gpu.alloc : !buffer
  %s = gdn_gpu.await_matmul %p : !gdn_gpu.async_token<64x64xf32, #rows>
  // expected-error@+1 {{'gdn_gpu.start_matmul' op expects one gdn_gpu.await_matmul of its result, in the same block}}
  %p = gdn_gpu.start_matmul %k, transpose %buffer : !tile, !buffer -> !gdn_gpu.async_token<64x64xf32, #rows>
  return
}

// -----

#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!tile = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
func.func @load_of_what_is_not_begun(%x: memref<?xf32>, %n: index, %buffer: !gdn_gpu.shared<128xf32>)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  // expected-error@+1 {{'gdn_gpu.load' op expects 'begun' to be the place of a gdn_gpu.begin_load of the same tile}}
  %t = gdn_gpu.load %x[%n] dims [0] begun(%buffer : !gdn_gpu.shared<128xf32>) : memref<?xf32>, !tile
  "gdn_gpu.begin_load"(%buffer) : (!gdn_gpu.shared<128xf32>) -> ()
  return
}

// -----

func.func @copy_to_what_is_not_acquired(%x: memref<?x32xf32>, %n: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  // expected-error@+1 {{'gdn_gpu.copy' op expects 'tile' to come from a gdn_gpu.acquire}}
  gdn_gpu.copy %x[%n, %n] dims [0, 1], %tile : memref<?x32xf32>, !gdn_gpu.shared<8x32xf32>
  %tile = "gdn_gpu.acquire"() : () -> !gdn_gpu.shared<8x32xf32>
  return
}

// -----

!ring = !gdn_gpu.channel<8x32xf32, depth = 4>
func.func @acquire_without_a_tile()
    attributes {gdn_gpu.kernel = {threads = 32 : i64, cluster = 2 : i64}} {
  %ring = gdn_gpu.channel paired : !ring
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 alternate {
      // expected-error@+1 {{'gdn_gpu.acquire' op requires one result}}
      "gdn_gpu.acquire"(%ring) : (!ring) -> ()
    }
  }
  return
}

// -----

func.func @warps_with_an_argument() attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  // expected-error@+1 {{'gdn_gpu.warps' op region should have no arguments}}
  "gdn_gpu.warps"() <{first = 0 : i64, count = 1 : i64}> ({
  ^bb0(%warp: index):
    "gdn_gpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

func.func @roles_with_an_argument() attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  // expected-error@+1 {{'gdn_gpu.roles' op region should have no arguments}}
  "gdn_gpu.roles"() ({
  ^bb0(%warp: index):
  }) : () -> ()
  return
}

// -----

func.func @units_with_an_argument()
    attributes {gdn_gpu.kernel = {threads = 32 : i64, blocks_per_sm = 1 : i64}} {
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      // expected-error@+1 {{'gdn_gpu.units' op region should have no arguments}}
      "gdn_gpu.units"() ({
      ^bb0(%unit: index):
      }) : () -> ()
    }
  }
  return
}
