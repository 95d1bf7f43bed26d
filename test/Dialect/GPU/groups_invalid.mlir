// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.groups and gdn_gpu.pick: every message of their verifiers, and what
// gdn-gpu-check refuses inside.
//
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics -gdn-gpu-check

func.func @groups_c1_warps() attributes {gdn_gpu.threads = 256 : i64} {
  gdn_gpu.warps 0 for 4 {
    // expected-error@+1 {{'gdn_gpu.groups' op expects to be outside other gdn_gpu.warps}}
    gdn_gpu.groups 2 {
    ^bb0(%i: index):
    }
  }
  return
}

// -----

func.func @groups_c1_threads() {
  // expected-error@+1 {{'gdn_gpu.groups' op expects a function with 'gdn_gpu.threads' around it}}
  gdn_gpu.groups 2 {
  ^bb0(%i: index):
  }
  return
}

// -----

func.func @groups_c1_count() attributes {gdn_gpu.threads = 256 : i64} {
  // expected-error@+1 {{'gdn_gpu.groups' op expects a number of groups that divides the 8 warps of the block, but got 3}}
  gdn_gpu.groups 3 {
  ^bb0(%i: index):
  }
  return
}

// -----

func.func @groups_c2() attributes {gdn_gpu.threads = 256 : i64} {
  // expected-error@+1 {{'gdn_gpu.groups' op expects the body to have one argument, the number of the group, an index}}
  gdn_gpu.groups 2 {
  ^bb0:
  }
  return
}

// -----

#all = #gdn_gpu.rows<warps = 8, lanes = 4, vector = 2>
func.func @groups_c3(%x: f32) attributes {gdn_gpu.threads = 256 : i64} {
  gdn_gpu.groups 2 {
  ^bb0(%i: index):
    // expected-error@+1 {{'gdn_gpu.fill' op expects fragments laid out over 4 warps, those of a group, but got '!gdn_gpu.fragment<64x64xf32, #gdn_gpu.rows<warps = 8, lanes = 4, vector = 2>>'}}
    %t = gdn_gpu.fill %x : f32 -> !gdn_gpu.fragment<64x64xf32, #all>
  }
  return
}

// -----

func.func @warps_of_a_group() attributes {gdn_gpu.threads = 256 : i64} {
  gdn_gpu.groups 2 {
  ^bb0(%i: index):
    // expected-error@+1 {{'gdn_gpu.warps' op expects warps below 4, those of a group, but got warps up to 4}}
    gdn_gpu.warps 4 for 1 {
    }
  }
  return
}

// -----

#half = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
func.func @groups_c4_write(%x: f32) attributes {gdn_gpu.threads = 256 : i64} {
  %a = gdn_gpu.alloc : !gdn_gpu.shared<64x64xf32>
  gdn_gpu.groups 2 {
  ^bb0(%i: index):
    %t = gdn_gpu.fill %x : f32 -> !gdn_gpu.fragment<64x64xf32, #half>
    // expected-error@+1 {{'gdn_gpu.share' op expects a tile of the group, by gdn_gpu.pick, since it writes inside gdn_gpu.groups}}
    gdn_gpu.share %t, %a : !gdn_gpu.fragment<64x64xf32, #half>, !gdn_gpu.shared<64x64xf32>
  }
  return
}

// -----

func.func @groups_c4_copy(%x: memref<?x64xf32>, %n: index) attributes {gdn_gpu.threads = 256 : i64} {
  %a = gdn_gpu.alloc : !gdn_gpu.shared<64x64xf32>
  %b = gdn_gpu.alloc : !gdn_gpu.shared<64x64xf32>
  gdn_gpu.groups 2 {
  ^bb0(%i: index):
    %own = gdn_gpu.pick %i of %a, %b : !gdn_gpu.shared<64x64xf32>, !gdn_gpu.shared<64x64xf32> -> !gdn_gpu.shared<64x64xf32>
    // expected-error@+1 {{'gdn_gpu.begin_copy' op expects to be outside gdn_gpu.groups}}
    gdn_gpu.begin_copy %x[%n, %n] dims [0, 1], %own : memref<?x64xf32>, !gdn_gpu.shared<64x64xf32>
  }
  return
}

// -----

#half = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
#all = #gdn_gpu.rows<warps = 8, lanes = 4, vector = 2>
func.func @no_barrier_behind(%x: f32) attributes {gdn_gpu.threads = 256 : i64} {
  %a = gdn_gpu.alloc : !gdn_gpu.shared<64x64xf32>
  %b = gdn_gpu.alloc : !gdn_gpu.shared<64x64xf32>
  gdn_gpu.groups 2 {
  ^bb0(%i: index):
    %t = gdn_gpu.fill %x : f32 -> !gdn_gpu.fragment<64x64xf32, #half>
    %own = gdn_gpu.pick %i of %a, %b : !gdn_gpu.shared<64x64xf32>, !gdn_gpu.shared<64x64xf32> -> !gdn_gpu.shared<64x64xf32>
    // expected-note@+1 {{access before it}}
    gdn_gpu.share %t, %own : !gdn_gpu.fragment<64x64xf32, #half>, !gdn_gpu.shared<64x64xf32>
    // A barrier of the group is none of the block.
    gdn_gpu.barrier
  }
  // expected-error@+1 {{'gdn_gpu.fetch' op expects a gdn_gpu.barrier between it and the access before it}}
  %t = gdn_gpu.fetch %a : !gdn_gpu.shared<64x64xf32> -> !gdn_gpu.fragment<64x64xf32, #all>
  return
}

// -----

#half = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
#all = #gdn_gpu.rows<warps = 8, lanes = 4, vector = 2>
func.func @no_barrier_before(%x: f32) attributes {gdn_gpu.threads = 256 : i64} {
  %a = gdn_gpu.alloc : !gdn_gpu.shared<64x64xf32>
  %t = gdn_gpu.fill %x : f32 -> !gdn_gpu.fragment<64x64xf32, #all>
  // expected-note@+1 {{access before it}}
  gdn_gpu.share %t, %a : !gdn_gpu.fragment<64x64xf32, #all>, !gdn_gpu.shared<64x64xf32>
  gdn_gpu.groups 2 {
  ^bb0(%i: index):
    gdn_gpu.barrier
    // expected-error@+1 {{'gdn_gpu.fetch' op expects a gdn_gpu.barrier between it and the access before it}}
    %u = gdn_gpu.fetch %a : !gdn_gpu.shared<64x64xf32> -> !gdn_gpu.fragment<64x64xf32, #half>
  }
  return
}

// -----

func.func @pick_c1_group(%n: index) attributes {gdn_gpu.threads = 256 : i64} {
  %a = gdn_gpu.alloc : !gdn_gpu.shared<64xf32>
  %b = gdn_gpu.alloc : !gdn_gpu.shared<64xf32>
  gdn_gpu.groups 2 {
  ^bb0(%i: index):
    // expected-error@+1 {{'gdn_gpu.pick' op expects 'group' to be the argument of a gdn_gpu.groups around it}}
    %own = gdn_gpu.pick %n of %a, %b : !gdn_gpu.shared<64xf32>, !gdn_gpu.shared<64xf32> -> !gdn_gpu.shared<64xf32>
  }
  return
}

// -----

func.func @pick_c1_count() attributes {gdn_gpu.threads = 256 : i64} {
  %a = gdn_gpu.alloc : !gdn_gpu.shared<64xf32>
  gdn_gpu.groups 2 {
  ^bb0(%i: index):
    // expected-error@+1 {{'gdn_gpu.pick' op expects 2 tiles, one per group, but got 1}}
    %own = gdn_gpu.pick %i of %a : !gdn_gpu.shared<64xf32> -> !gdn_gpu.shared<64xf32>
  }
  return
}

// -----

func.func @pick_c2_type() attributes {gdn_gpu.threads = 256 : i64} {
  %a = gdn_gpu.alloc : !gdn_gpu.shared<64xf32>
  %b = gdn_gpu.alloc : !gdn_gpu.shared<32xf32>
  gdn_gpu.groups 2 {
  ^bb0(%i: index):
    // expected-error@+1 {{'gdn_gpu.pick' op expects tile 1 to be '!gdn_gpu.shared<64xf32>', as the result, but got '!gdn_gpu.shared<32xf32>'}}
    %own = gdn_gpu.pick %i of %a, %b : !gdn_gpu.shared<64xf32>, !gdn_gpu.shared<32xf32> -> !gdn_gpu.shared<64xf32>
  }
  return
}

// -----

func.func @pick_c2_twice() attributes {gdn_gpu.threads = 256 : i64} {
  %a = gdn_gpu.alloc : !gdn_gpu.shared<64xf32>
  gdn_gpu.groups 2 {
  ^bb0(%i: index):
    // expected-error@+1 {{'gdn_gpu.pick' op expects tile 1 to be another one than those before it}}
    %own = gdn_gpu.pick %i of %a, %a : !gdn_gpu.shared<64xf32>, !gdn_gpu.shared<64xf32> -> !gdn_gpu.shared<64xf32>
  }
  return
}
