// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.warps: every message of its verifier.
//
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @c1_nested() attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  gdn_gpu.warps 0 for 2 {
    // expected-error@+1 {{'gdn_gpu.warps' op expects to be outside other gdn_gpu.warps}}
    gdn_gpu.warps 0 for 1 {
    }
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @c1_no_threads() {
  // expected-error@+1 {{'gdn_gpu.warps' op expects a function with 'threads' of 'gdn_gpu.kernel' around it}}
  gdn_gpu.warps 0 for 1 {
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @c1_too_many() attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.warps' op expects warps below 8, set by 'threads' of 'gdn_gpu.kernel' of the function, but got warps up to 8}}
  gdn_gpu.warps 7 for 2 {
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @c2_count() attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %r = gdn_gpu.warps 0 for 1 -> f32 {
    // expected-error@+1 {{'gdn_gpu.yield' op expects 1 operands, one per result, but got 0}}
    gdn_gpu.yield
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @c2_type(%x: bf16) attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %r = gdn_gpu.warps 0 for 1 -> f32 {
    // expected-error@+1 {{'gdn_gpu.yield' op expects operand 0 to be 'f32', the type of its result, but got 'bf16'}}
    gdn_gpu.yield %x : bf16
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @c3_outside(%x: f32) attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.warps' op expects result 0 to be used on the same warps only}}
  %r = gdn_gpu.warps 0 for 1 -> f32 {
    gdn_gpu.yield %x : f32
  }
  // expected-note@+1 {{other use}}
  %y = arith.negf %r : f32
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @c3_other_warps(%x: f32) attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.warps' op expects result 0 to be used on the same warps only}}
  %r = gdn_gpu.warps 0 for 1 -> f32 {
    gdn_gpu.yield %x : f32
  }
  gdn_gpu.warps 1 for 1 {
    // expected-note@+1 {{other use}}
    %y = arith.negf %r : f32
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @c4_layout(%x: f32) attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  gdn_gpu.warps 0 for 1 {
    // expected-error@+1 {{'gdn_gpu.fill' op expects fragments laid out over 1 warps, set by the gdn_gpu.warps around it, but got '!gdn_gpu.fragment<128x128xf32, #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>>'}}
    %t = gdn_gpu.fill %x : f32 -> !state
  }
  return
}

// -----

func.func @c5_no_role() attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.warps' op expects 'registers' in a role of whole groups of four warps, or of a part of one}}
  gdn_gpu.warps 0 for 4 registers 64 {
  }
  return
}

// -----

func.func @c5_part_of_a_group() attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  gdn_gpu.roles {
    // expected-error@+1 {{'gdn_gpu.warps' op expects 'registers' in a role of whole groups of four warps, or of a part of one}}
    gdn_gpu.warps 2 for 4 registers 64 {
    }
  }
  return
}

// -----

func.func @c5_number() attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  gdn_gpu.roles {
    // expected-error@+1 {{'gdn_gpu.warps' op expects 'registers' to be a multiple of 8 from 24 to 256, but got 60}}
    gdn_gpu.warps 0 for 4 registers 60 {
    }
  }
  return
}

// -----

// 96 of 640 threads each; with 160, 64 and 64 the first roles would wait for registers that are not there.
func.func @more_than_there_are() attributes {gdn_gpu.kernel = {threads = 640 : i64}} {
  // expected-error@+1 {{'gdn_gpu.roles' op expects roles of at most 61440 registers together, those that the block begins with, but got 65536}}
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 8 registers 160 {
    }
    gdn_gpu.warps 8 for 8 registers 64 {
    }
    gdn_gpu.warps 16 for 4 registers 64 {
    }
  }
  return
}

// -----

func.func @group_in_part() attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 4 registers 240 {
    }
    // expected-error@+1 {{'gdn_gpu.warps' op expects roles of as many registers on the other warps of its group of four}}
    gdn_gpu.warps 4 for 2 registers 24 {
    }
    gdn_gpu.warps 6 for 2 registers 32 {
    }
  }
  return
}

// -----

func.func @warps_c6() attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  gdn_gpu.roles {
    // expected-error@+1 {{'gdn_gpu.warps' op expects to be a role of a function with 'cluster' of 'gdn_gpu.kernel' = 2 where it is alternate}}
    gdn_gpu.warps 0 for 1 alternate {
    }
  }
  return
}

// -----

func.func @warps_c6_many() attributes {gdn_gpu.kernel = {cluster = 4 : i64, threads = 64 : i64}} {
  gdn_gpu.roles {
    // expected-error@+1 {{'gdn_gpu.warps' op expects to be a role of a function with 'cluster' of 'gdn_gpu.kernel' = 2 where it is alternate}}
    gdn_gpu.warps 0 for 1 alternate {
    }
  }
  return
}

// -----

func.func @warps_c6_part() attributes {gdn_gpu.kernel = {cluster = 2 : i64, threads = 64 : i64}} {
  // expected-error@+1 {{'gdn_gpu.warps' op expects to be a role of a function with 'cluster' of 'gdn_gpu.kernel' = 2 where it is alternate}}
  gdn_gpu.warps 0 for 1 alternate {
  }
  return
}

// -----

// expected-error@+1 {{'gdn_gpu.warps' op expects to be a role of a function with 'cluster' of 'gdn_gpu.kernel' = 2 where it is alternate}}
gdn_gpu.warps 0 for 1 alternate {
}
