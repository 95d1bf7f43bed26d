// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Outputs as boxes: what may use their tile, so that whoever writes it waits until it has been
// read.
//
// RUN: gdn-gpu-opt %s -gdn-gpu-check -split-input-file -verify-diagnostics

// Right.
#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!view = memref<?x64xbf16, strided<[?, 1]>>
!half = !gdn_gpu.shared<64x64xbf16, swizzled>
!own = !gdn_gpu.fragment<64x64xbf16, #rows>

func.func @right(%v: !view, %i: index, %n: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, warpgroups}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : bf16
  %p = gdn_gpu.alloc : !half
  %f = gdn_gpu.fill %one : bf16 -> !own
  gdn_gpu.store_shared transpose %f, %p : !own, !half
  scf.for %at = %c0 to %n step %c1 {
    gdn_gpu.copy_out tensor_map %p, %v[%at, %c0] dims [0, 1] : !half, !view
    gdn_gpu.store_shared transpose %f, %p : !own, !half
  }
  return
}

// -----

// Nothing waits behind it.
#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!view = memref<?x64xbf16, strided<[?, 1]>>
!half = !gdn_gpu.shared<64x64xbf16, swizzled>
!own = !gdn_gpu.fragment<64x64xbf16, #rows>

func.func @nothing_behind(%v: !view, %i: index, %n: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, warpgroups}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : bf16
  %p = gdn_gpu.alloc : !half
  %f = gdn_gpu.fill %one : bf16 -> !own
  gdn_gpu.store_shared transpose %f, %p : !own, !half
  scf.for %at = %c0 to %n step %c1 {
    gdn_gpu.store_shared transpose %f, %p : !own, !half
    gdn_gpu.barrier
    // expected-error@+1 {{'gdn_gpu.copy_out' op expects a tile of gdn_gpu.alloc into which the same role stores the columns, once behind it in its block, and which nothing else writes, for 'tensor_map'}}
    gdn_gpu.copy_out tensor_map %p, %v[%at, %c0] dims [0, 1] : !half, !view
  }
  return
}

// -----

// Rows of each warp, not columns.
#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!view = memref<?x64xbf16, strided<[?, 1]>>
!half = !gdn_gpu.shared<64x64xbf16, swizzled>
!own = !gdn_gpu.fragment<64x64xbf16, #rows>

func.func @not_own(%v: !view, %i: index, %n: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, warpgroups}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : bf16
  %p = gdn_gpu.alloc : !half
  %f = gdn_gpu.fill %one : bf16 -> !own
  gdn_gpu.store_shared transpose %f, %p : !own, !half
  scf.for %at = %c0 to %n step %c1 {
    // expected-error@+1 {{'gdn_gpu.copy_out' op expects a tile of gdn_gpu.alloc into which the same role stores the columns, once behind it in its block, and which nothing else writes, for 'tensor_map'}}
    gdn_gpu.copy_out tensor_map %p, %v[%at, %c0] dims [0, 1] : !half, !view
    gdn_gpu.barrier
    // expected-note@+1 {{other use}}
    gdn_gpu.store_shared %f, %p : !own, !half
  }
  return
}

// -----

// Copies do not wait.
#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!view = memref<?x64xbf16, strided<[?, 1]>>
!half = !gdn_gpu.shared<64x64xbf16, swizzled>
!own = !gdn_gpu.fragment<64x64xbf16, #rows>

func.func @copied(%v: !view, %i: index, %n: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, warpgroups}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : bf16
  %p = gdn_gpu.alloc : !half
  %f = gdn_gpu.fill %one : bf16 -> !own
  gdn_gpu.store_shared transpose %f, %p : !own, !half
  scf.for %at = %c0 to %n step %c1 {
    // expected-error@+1 {{'gdn_gpu.copy_out' op expects a tile of gdn_gpu.alloc into which the same role stores the columns, once behind it in its block, and which nothing else writes, for 'tensor_map'}}
    gdn_gpu.copy_out tensor_map %p, %v[%at, %c0] dims [0, 1] : !half, !view
    gdn_gpu.store_shared transpose %f, %p : !own, !half
    // expected-note@+1 {{other use}}
    gdn_gpu.begin_copy per_warpgroup %v[%at, %c0] dims [0, 1], %p : !view, !half
    gdn_gpu.await_copies
  }
  return
}

// -----

// Under another name.
#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!view = memref<?x64xbf16, strided<[?, 1]>>
!half = !gdn_gpu.shared<64x64xbf16, swizzled>
!own = !gdn_gpu.fragment<64x64xbf16, #rows>

func.func @reshaped(%v: !view, %i: index, %n: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, warpgroups}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : bf16
  %a = gdn_gpu.alloc : !half
  %p = gdn_gpu.reshape %a : !half to !half
  %f = gdn_gpu.fill %one : bf16 -> !own
  gdn_gpu.store_shared transpose %f, %p : !own, !half
  scf.for %at = %c0 to %n step %c1 {
    // expected-error@+1 {{'gdn_gpu.copy_out' op expects a tile of gdn_gpu.alloc into which the same role stores the columns, once behind it in its block, and which nothing else writes, for 'tensor_map'}}
    gdn_gpu.copy_out tensor_map %p, %v[%at, %c0] dims [0, 1] : !half, !view
    gdn_gpu.store_shared transpose %f, %p : !own, !half
  }
  return
}

// -----

// Tiles lie anywhere.
#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!view = memref<?x64xbf16, strided<[?, 1]>>
!half = !gdn_gpu.shared<64x64xbf16, swizzled>
!own = !gdn_gpu.fragment<64x64xbf16, #rows>

func.func @no_groups(%v: !view, %i: index, %n: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : bf16
  %p = gdn_gpu.alloc : !half
  %f = gdn_gpu.fill %one : bf16 -> !own
  gdn_gpu.store_shared transpose %f, %p : !own, !half
  scf.for %at = %c0 to %n step %c1 {
    // expected-error@+1 {{'gdn_gpu.copy_out' op expects the function to have 'warpgroups' of 'gdn_gpu.kernel' for 'tensor_map'}}
    gdn_gpu.copy_out tensor_map %p, %v[%at, %c0] dims [0, 1] : !half, !view
    gdn_gpu.store_shared transpose %f, %p : !own, !half
  }
  return
}
