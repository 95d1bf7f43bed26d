// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-gpu-check: tiles that several roles have received and one of them writes, and tiles of
// inverses in roles.
//
// RUN: gdn-gpu-opt %s -split-input-file -o /dev/null
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics -gdn-gpu-check

// It is received too late.
#one = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
!tile = !gdn_gpu.shared<32x128xf16, swizzled>
!logs = !gdn_gpu.shared<32x128xf32, swizzled>
!first = !gdn_gpu.shared<16x128xf16, swizzled>
!products = !gdn_gpu.shared<32x64xf16, swizzled>
!tiles = !gdn_gpu.channel<32x128xf16, depth = 2, swizzled>
!all_logs = !gdn_gpu.channel<32x128xf32, depth = 2, swizzled>
!firsts = !gdn_gpu.channel<16x128xf16, depth = 2, swizzled>
!decays = !gdn_gpu.channel<2x128xf32, depth = 2>
!all_products = !gdn_gpu.channel<32x64xf16, depth = 2, swizzled>
!ends = !gdn_gpu.channel<128xf32, depth = 2>
!signals = !gdn_gpu.channel<4xf32, depth = 2>

func.func @channel_c9_received_behind(%s: f32, %b: !gdn_gpu.fragment<32xf32, #gdn_gpu.per_row<#one>>)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %q = gdn_gpu.channel : !tiles
  %k = gdn_gpu.channel : !tiles with %q : !tiles
  %g = gdn_gpu.channel : !all_logs with %q : !tiles
  %p = gdn_gpu.channel zeroed : !all_products with %q : !tiles
  %e = gdn_gpu.channel : !ends with %q : !tiles
  %q2 = gdn_gpu.channel : !tiles of %q : !tiles
  %k2 = gdn_gpu.channel : !tiles with %q2 : !tiles of %k : !tiles
  %g2 = gdn_gpu.channel : !all_logs with %q2 : !tiles of %g : !all_logs
  %p2 = gdn_gpu.channel : !all_products with %q2 : !tiles of %p : !all_products
  %e2 = gdn_gpu.channel : !ends with %q2 : !tiles of %e : !ends
  %f = gdn_gpu.channel : !firsts
  %d = gdn_gpu.channel : !decays with %f : !firsts
  %between = gdn_gpu.channel : !signals
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 4 {
      %qt = gdn_gpu.acquire %q : !tiles -> !tile
      %kt = gdn_gpu.acquire %k : !tiles -> !tile
      %gt = gdn_gpu.acquire %g : !all_logs -> !logs
      %pt = gdn_gpu.acquire %p : !all_products -> !products
      %et = gdn_gpu.acquire %e : !ends -> !gdn_gpu.shared<128xf32>
      %ft = gdn_gpu.acquire %f : !firsts -> !first
      %dt = gdn_gpu.acquire %d : !decays -> !gdn_gpu.shared<2x128xf32>
      gdn_gpu.decay_within %qt, %kt, %gt, %ft, %dt
          : !tile, !logs, !first, !gdn_gpu.shared<2x128xf32>
      gdn_gpu.commit %d : !decays
      gdn_gpu.commit %f : !firsts
      gdn_gpu.commit %e : !ends
      gdn_gpu.commit %p : !all_products
      gdn_gpu.commit %g : !all_logs
      gdn_gpu.commit %k : !tiles
      gdn_gpu.commit %q : !tiles
    }
    gdn_gpu.warps 4 for 2 {
      %qt = gdn_gpu.receive %q : !tiles -> !tile
      %kt = gdn_gpu.receive %k : !tiles -> !tile
      %gt = gdn_gpu.receive %g : !all_logs -> !logs
      %pt = gdn_gpu.receive %p : !all_products -> !products
      %et = gdn_gpu.receive %e : !ends -> !gdn_gpu.shared<128xf32>
      %ft = gdn_gpu.receive %f : !firsts -> !first
      %dt = gdn_gpu.receive %d : !decays -> !gdn_gpu.shared<2x128xf32>
      %st = gdn_gpu.acquire %between : !signals -> !gdn_gpu.shared<4xf32>
      // expected-note@+1 {{written here}}
      gdn_gpu.decay_between %qt, %kt, %gt, %ft, %dt, %pt, %et scale(%s)
          : !tile, !logs, !first, !gdn_gpu.shared<2x128xf32>, !products,
            !gdn_gpu.shared<128xf32>
      gdn_gpu.commit %between : !signals
      gdn_gpu.release %d : !decays
      gdn_gpu.release %f : !firsts
      gdn_gpu.hand_on %q to %q2 : !tiles, !tiles
    }
    gdn_gpu.warps 6 for 1 {
      %qt = gdn_gpu.receive %q : !tiles -> !tile
      %gt = gdn_gpu.receive %g : !all_logs -> !logs
      %pt = gdn_gpu.receive %p : !all_products -> !products
      gdn_gpu.block_inverses %gt, %pt, %b scale(%s)
          : !logs, !products, !gdn_gpu.fragment<32xf32, #gdn_gpu.per_row<#one>>
      // expected-error@+1 {{'gdn_gpu.join_inverses' op expects a gdn_gpu.channel between it and the role that has received the same tile and writes it}}
      gdn_gpu.join_inverses %gt, %pt : !logs, !products
      %st = gdn_gpu.receive %between : !signals -> !gdn_gpu.shared<4xf32>
      gdn_gpu.release %between : !signals
      gdn_gpu.hand_on %q to %q2 : !tiles, !tiles
    }
    gdn_gpu.warps 7 for 1 {
      %t = gdn_gpu.receive %q2 : !tiles -> !tile
      gdn_gpu.release %q2 : !tiles
    }
  }
  return
}

// -----

// It is committed too early.
#one = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
!tile = !gdn_gpu.shared<32x128xf16, swizzled>
!logs = !gdn_gpu.shared<32x128xf32, swizzled>
!first = !gdn_gpu.shared<16x128xf16, swizzled>
!products = !gdn_gpu.shared<32x64xf16, swizzled>
!tiles = !gdn_gpu.channel<32x128xf16, depth = 2, swizzled>
!all_logs = !gdn_gpu.channel<32x128xf32, depth = 2, swizzled>
!firsts = !gdn_gpu.channel<16x128xf16, depth = 2, swizzled>
!decays = !gdn_gpu.channel<2x128xf32, depth = 2>
!all_products = !gdn_gpu.channel<32x64xf16, depth = 2, swizzled>
!ends = !gdn_gpu.channel<128xf32, depth = 2>
!signals = !gdn_gpu.channel<4xf32, depth = 2>

func.func @channel_c9_committed_ahead(%s: f32, %b: !gdn_gpu.fragment<32xf32, #gdn_gpu.per_row<#one>>)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %q = gdn_gpu.channel : !tiles
  %k = gdn_gpu.channel : !tiles with %q : !tiles
  %g = gdn_gpu.channel : !all_logs with %q : !tiles
  %p = gdn_gpu.channel zeroed : !all_products with %q : !tiles
  %e = gdn_gpu.channel : !ends with %q : !tiles
  %q2 = gdn_gpu.channel : !tiles of %q : !tiles
  %k2 = gdn_gpu.channel : !tiles with %q2 : !tiles of %k : !tiles
  %g2 = gdn_gpu.channel : !all_logs with %q2 : !tiles of %g : !all_logs
  %p2 = gdn_gpu.channel : !all_products with %q2 : !tiles of %p : !all_products
  %e2 = gdn_gpu.channel : !ends with %q2 : !tiles of %e : !ends
  %f = gdn_gpu.channel : !firsts
  %d = gdn_gpu.channel : !decays with %f : !firsts
  %between = gdn_gpu.channel : !signals
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 4 {
      %qt = gdn_gpu.acquire %q : !tiles -> !tile
      %kt = gdn_gpu.acquire %k : !tiles -> !tile
      %gt = gdn_gpu.acquire %g : !all_logs -> !logs
      %pt = gdn_gpu.acquire %p : !all_products -> !products
      %et = gdn_gpu.acquire %e : !ends -> !gdn_gpu.shared<128xf32>
      %ft = gdn_gpu.acquire %f : !firsts -> !first
      %dt = gdn_gpu.acquire %d : !decays -> !gdn_gpu.shared<2x128xf32>
      gdn_gpu.decay_within %qt, %kt, %gt, %ft, %dt
          : !tile, !logs, !first, !gdn_gpu.shared<2x128xf32>
      gdn_gpu.commit %d : !decays
      gdn_gpu.commit %f : !firsts
      gdn_gpu.commit %e : !ends
      gdn_gpu.commit %p : !all_products
      gdn_gpu.commit %g : !all_logs
      gdn_gpu.commit %k : !tiles
      gdn_gpu.commit %q : !tiles
    }
    gdn_gpu.warps 4 for 2 {
      %qt = gdn_gpu.receive %q : !tiles -> !tile
      %kt = gdn_gpu.receive %k : !tiles -> !tile
      %gt = gdn_gpu.receive %g : !all_logs -> !logs
      %pt = gdn_gpu.receive %p : !all_products -> !products
      %et = gdn_gpu.receive %e : !ends -> !gdn_gpu.shared<128xf32>
      %ft = gdn_gpu.receive %f : !firsts -> !first
      %dt = gdn_gpu.receive %d : !decays -> !gdn_gpu.shared<2x128xf32>
      %st = gdn_gpu.acquire %between : !signals -> !gdn_gpu.shared<4xf32>
      gdn_gpu.commit %between : !signals
      // expected-note@+1 {{written here}}
      gdn_gpu.decay_between %qt, %kt, %gt, %ft, %dt, %pt, %et scale(%s)
          : !tile, !logs, !first, !gdn_gpu.shared<2x128xf32>, !products,
            !gdn_gpu.shared<128xf32>
      gdn_gpu.release %d : !decays
      gdn_gpu.release %f : !firsts
      gdn_gpu.hand_on %q to %q2 : !tiles, !tiles
    }
    gdn_gpu.warps 6 for 1 {
      %qt = gdn_gpu.receive %q : !tiles -> !tile
      %gt = gdn_gpu.receive %g : !all_logs -> !logs
      %pt = gdn_gpu.receive %p : !all_products -> !products
      gdn_gpu.block_inverses %gt, %pt, %b scale(%s)
          : !logs, !products, !gdn_gpu.fragment<32xf32, #gdn_gpu.per_row<#one>>
      %st = gdn_gpu.receive %between : !signals -> !gdn_gpu.shared<4xf32>
      gdn_gpu.release %between : !signals
      // expected-error@+1 {{'gdn_gpu.join_inverses' op expects a gdn_gpu.channel between it and the role that has received the same tile and writes it}}
      gdn_gpu.join_inverses %gt, %pt : !logs, !products
      gdn_gpu.hand_on %q to %q2 : !tiles, !tiles
    }
    gdn_gpu.warps 7 for 1 {
      %t = gdn_gpu.receive %q2 : !tiles -> !tile
      gdn_gpu.release %q2 : !tiles
    }
  }
  return
}

// -----

#one = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
!tile = !gdn_gpu.shared<32x128xf16, swizzled>
!logs = !gdn_gpu.shared<32x128xf32, swizzled>
!first = !gdn_gpu.shared<16x128xf16, swizzled>
!products = !gdn_gpu.shared<32x64xf16, swizzled>
!tiles = !gdn_gpu.channel<32x128xf16, depth = 2, swizzled>
!all_logs = !gdn_gpu.channel<32x128xf32, depth = 2, swizzled>
!firsts = !gdn_gpu.channel<16x128xf16, depth = 2, swizzled>
!decays = !gdn_gpu.channel<2x128xf32, depth = 2>
!all_products = !gdn_gpu.channel<32x64xf16, depth = 2, swizzled>
!ends = !gdn_gpu.channel<128xf32, depth = 2>
!signals = !gdn_gpu.channel<4xf32, depth = 2>

func.func @block_inverses_c4(%s: f32, %b: !gdn_gpu.fragment<32xf32, #gdn_gpu.per_row<#one>>)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %q = gdn_gpu.channel : !tiles
  %k = gdn_gpu.channel : !tiles with %q : !tiles
  %g = gdn_gpu.channel : !all_logs with %q : !tiles
  %p = gdn_gpu.channel zeroed : !all_products with %q : !tiles
  %e = gdn_gpu.channel : !ends with %q : !tiles
  %q2 = gdn_gpu.channel : !tiles of %q : !tiles
  %k2 = gdn_gpu.channel : !tiles with %q2 : !tiles of %k : !tiles
  %g2 = gdn_gpu.channel : !all_logs with %q2 : !tiles of %g : !all_logs
  %p2 = gdn_gpu.channel : !all_products with %q2 : !tiles of %p : !all_products
  %e2 = gdn_gpu.channel : !ends with %q2 : !tiles of %e : !ends
  %f = gdn_gpu.channel : !firsts
  %d = gdn_gpu.channel : !decays with %f : !firsts
  %between = gdn_gpu.channel : !signals
  %own = gdn_gpu.alloc : !products
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 4 {
      %qt = gdn_gpu.acquire %q : !tiles -> !tile
      %kt = gdn_gpu.acquire %k : !tiles -> !tile
      %gt = gdn_gpu.acquire %g : !all_logs -> !logs
      %pt = gdn_gpu.acquire %p : !all_products -> !products
      %et = gdn_gpu.acquire %e : !ends -> !gdn_gpu.shared<128xf32>
      %ft = gdn_gpu.acquire %f : !firsts -> !first
      %dt = gdn_gpu.acquire %d : !decays -> !gdn_gpu.shared<2x128xf32>
      gdn_gpu.decay_within %qt, %kt, %gt, %ft, %dt
          : !tile, !logs, !first, !gdn_gpu.shared<2x128xf32>
      gdn_gpu.commit %d : !decays
      gdn_gpu.commit %f : !firsts
      gdn_gpu.commit %e : !ends
      gdn_gpu.commit %p : !all_products
      gdn_gpu.commit %g : !all_logs
      gdn_gpu.commit %k : !tiles
      gdn_gpu.commit %q : !tiles
    }
    gdn_gpu.warps 4 for 2 {
      %qt = gdn_gpu.receive %q : !tiles -> !tile
      %kt = gdn_gpu.receive %k : !tiles -> !tile
      %gt = gdn_gpu.receive %g : !all_logs -> !logs
      %pt = gdn_gpu.receive %p : !all_products -> !products
      %et = gdn_gpu.receive %e : !ends -> !gdn_gpu.shared<128xf32>
      %ft = gdn_gpu.receive %f : !firsts -> !first
      %dt = gdn_gpu.receive %d : !decays -> !gdn_gpu.shared<2x128xf32>
      %st = gdn_gpu.acquire %between : !signals -> !gdn_gpu.shared<4xf32>
      gdn_gpu.decay_between %qt, %kt, %gt, %ft, %dt, %pt, %et scale(%s)
          : !tile, !logs, !first, !gdn_gpu.shared<2x128xf32>, !products,
            !gdn_gpu.shared<128xf32>
      gdn_gpu.commit %between : !signals
      gdn_gpu.release %d : !decays
      gdn_gpu.release %f : !firsts
      gdn_gpu.hand_on %q to %q2 : !tiles, !tiles
    }
    gdn_gpu.warps 6 for 1 {
      %qt = gdn_gpu.receive %q : !tiles -> !tile
      %gt = gdn_gpu.receive %g : !all_logs -> !logs
      %pt = gdn_gpu.receive %p : !all_products -> !products
      // expected-error@+1 {{'gdn_gpu.block_inverses' op expects tiles of channels inside a role of gdn_gpu.roles, but got one of gdn_gpu.alloc}}
      gdn_gpu.block_inverses %gt, %own, %b scale(%s)
          : !logs, !products, !gdn_gpu.fragment<32xf32, #gdn_gpu.per_row<#one>>
      %st = gdn_gpu.receive %between : !signals -> !gdn_gpu.shared<4xf32>
      gdn_gpu.release %between : !signals
      gdn_gpu.join_inverses %gt, %pt : !logs, !products
      gdn_gpu.hand_on %q to %q2 : !tiles, !tiles
    }
    gdn_gpu.warps 7 for 1 {
      %t = gdn_gpu.receive %q2 : !tiles -> !tile
      gdn_gpu.release %q2 : !tiles
    }
  }
  return
}
