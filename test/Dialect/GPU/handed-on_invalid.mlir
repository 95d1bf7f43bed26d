// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Channels of other ones (channel_c8), what is handed on (hand_on), and turns
// (warps_c7).
//
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics -gdn-gpu-check

!ring = !gdn_gpu.channel<32x64xf16, depth = 2, swizzled>

func.func @of_nothing(%ring: !ring) attributes {gdn_gpu.kernel = {threads = 96 : i64}} {
  // expected-error@+1 {{'gdn_gpu.channel' op expects to be of a gdn_gpu.channel that has memory of its own}}
  %made = gdn_gpu.channel : !ring of %ring : !ring
  return
}

// -----

!ring = !gdn_gpu.channel<32x64xf16, depth = 2, swizzled>
!other = !gdn_gpu.channel<32x64xf32, depth = 2, swizzled>

func.func @other_bytes() attributes {gdn_gpu.kernel = {threads = 96 : i64}} {
  %loaded = gdn_gpu.channel : !ring
  // expected-error@+1 {{'gdn_gpu.channel' op expects the shape, depth and bytes of the channel that it is of, and no parts, but got '!gdn_gpu.channel<32x64xf32, depth = 2, swizzled>' of '!gdn_gpu.channel<32x64xf16, depth = 2, swizzled>'}}
  %made = gdn_gpu.channel : !other of %loaded : !ring
  return
}

// -----

!ring = !gdn_gpu.channel<32x64xf16, depth = 2, swizzled>

func.func @not_led() attributes {gdn_gpu.kernel = {threads = 96 : i64}} {
  %first = gdn_gpu.channel : !ring
  %second = gdn_gpu.channel : !ring with %first : !ring
  // expected-error@+1 {{'gdn_gpu.channel' op expects a leader, of the leader of the channel that it is of, if and only if that has one}}
  %made = gdn_gpu.channel : !ring of %second : !ring
  return
}

// -----

!ring = !gdn_gpu.channel<32x64xf16, depth = 2, swizzled>

func.func @nobody_hands_on() attributes {gdn_gpu.kernel = {threads = 96 : i64}} {
  %loaded = gdn_gpu.channel : !ring
  // expected-error@+1 {{'gdn_gpu.channel' op expects a gdn_gpu.hand_on to it}}
  %made = gdn_gpu.channel : !ring of %loaded : !ring
  return
}

// -----

!ring = !gdn_gpu.channel<32x64xf16, depth = 2, swizzled>

func.func @filled() attributes {gdn_gpu.kernel = {threads = 96 : i64}} {
  %loaded = gdn_gpu.channel : !ring
  %made = gdn_gpu.channel : !ring of %loaded : !ring
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      // expected-error@+1 {{'gdn_gpu.acquire' op expects a channel with memory of its own}}
      %tile = gdn_gpu.acquire %made : !ring -> !gdn_gpu.shared<32x64xf16, swizzled>
    }
  }
  return
}

// -----

!ring = !gdn_gpu.channel<32x64xf16, depth = 2, swizzled>

func.func @to_another() attributes {gdn_gpu.kernel = {threads = 96 : i64}} {
  %loaded = gdn_gpu.channel : !ring
  %other = gdn_gpu.channel : !ring
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      // expected-error@+1 {{'gdn_gpu.hand_on' op expects channels of the same memory, without leaders}}
      gdn_gpu.hand_on %loaded to %other : !ring, !ring
    }
  }
  return
}

// -----

// Channels that hand tiles on to each other would wait for each other.
!ring = !gdn_gpu.channel<32x64xf16, depth = 2, swizzled>

func.func @backwards() attributes {gdn_gpu.kernel = {threads = 96 : i64}} {
  %loaded = gdn_gpu.channel : !ring
  %first = gdn_gpu.channel : !ring of %loaded : !ring
  %second = gdn_gpu.channel : !ring of %loaded : !ring
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      gdn_gpu.hand_on %first to %second : !ring, !ring
    }
    gdn_gpu.warps 1 for 1 {
      // expected-error@+1 {{'gdn_gpu.hand_on' op expects the channel that it hands tiles on to behind the other one}}
      gdn_gpu.hand_on %second to %first : !ring, !ring
    }
  }
  return
}

// -----

!ring = !gdn_gpu.channel<32x64xf16, depth = 2, swizzled>

func.func @not_received() attributes {gdn_gpu.kernel = {threads = 96 : i64}} {
  %loaded = gdn_gpu.channel : !ring
  %made = gdn_gpu.channel : !ring of %loaded : !ring
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %tile = gdn_gpu.acquire %loaded : !ring -> !gdn_gpu.shared<32x64xf16, swizzled>
      gdn_gpu.commit %loaded : !ring
    }
    gdn_gpu.warps 1 for 1 {
      %tile = gdn_gpu.receive %loaded : !ring -> !gdn_gpu.shared<32x64xf16, swizzled>
      gdn_gpu.hand_on %loaded to %made : !ring, !ring
      // expected-error@+1 {{'gdn_gpu.hand_on' op expects a gdn_gpu.receive of the channel before it in the same block}}
      gdn_gpu.hand_on %loaded to %made : !ring, !ring
    }
    gdn_gpu.warps 2 for 1 {
      %tile = gdn_gpu.receive %made : !ring -> !gdn_gpu.shared<32x64xf16, swizzled>
      gdn_gpu.release %made : !ring
    }
  }
  return
}

// -----

// What is released is read alone.
!keys = !gdn_gpu.channel<32x128xf16, depth = 2, swizzled>
!logs = !gdn_gpu.channel<32x128xf32, depth = 2, swizzled>
!products = !gdn_gpu.channel<32x64xf16, depth = 2, swizzled>

func.func @changed() attributes {gdn_gpu.kernel = {threads = 96 : i64}} {
  %g = gdn_gpu.channel : !logs
  %p = gdn_gpu.channel : !products with %g : !logs
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %tile = gdn_gpu.acquire %g : !logs -> !gdn_gpu.shared<32x128xf32, swizzled>
      %other = gdn_gpu.acquire %p : !products -> !gdn_gpu.shared<32x64xf16, swizzled>
      gdn_gpu.commit %p : !products
      gdn_gpu.commit %g : !logs
    }
    gdn_gpu.warps 1 for 1 {
      %tile = gdn_gpu.receive %g : !logs -> !gdn_gpu.shared<32x128xf32, swizzled>
      %other = gdn_gpu.receive %p : !products -> !gdn_gpu.shared<32x64xf16, swizzled>
      // expected-error@+1 {{'gdn_gpu.join_inverses' op expects to read a tile that was received, by gdn_gpu.load_shared, gdn_gpu.load_shared_element or a product}}
      gdn_gpu.join_inverses %tile, %other : !gdn_gpu.shared<32x128xf32, swizzled>, !gdn_gpu.shared<32x64xf16, swizzled>
      gdn_gpu.release %p : !products
      gdn_gpu.release %g : !logs
    }
  }
  return
}

// -----

func.func @one_turn() attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  gdn_gpu.roles {
    // expected-error@+1 {{'gdn_gpu.warps' op expects to be a role, not alternate, of as many warps for each of its turns}}
    gdn_gpu.warps 0 for 1 in_turns 2 {
    }
  }
  return
}

// -----

func.func @no_role() attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  // expected-error@+1 {{'gdn_gpu.warps' op expects to be a role, not alternate, of as many warps for each of its turns}}
  gdn_gpu.warps 0 for 2 in_turns 2 {
  }
  return
}

// -----

!ring = !gdn_gpu.channel<4xf32, depth = 1>

func.func @turns_of_one_place() attributes {gdn_gpu.kernel = {threads = 96 : i64}} {
  %ring = gdn_gpu.channel : !ring
  gdn_gpu.roles {
    gdn_gpu.warps 1 for 2 in_turns 2 {
      gdn_gpu.each_warp 0 for 2 {
      ^bb0(%turn: index):
        // expected-error@+1 {{'gdn_gpu.receive' op expects a channel of a depth of at least 2, a place for each turn}}
        %tile = gdn_gpu.receive %ring : !ring -> !gdn_gpu.shared<4xf32>
        gdn_gpu.release %ring : !ring
      }
    }
  }
  return
}

// -----

!ring = !gdn_gpu.channel<4xf32, depth = 2>

func.func @together() attributes {gdn_gpu.kernel = {threads = 96 : i64}} {
  %ring = gdn_gpu.channel : !ring
  gdn_gpu.roles {
    gdn_gpu.warps 1 for 2 in_turns 2 {
      // expected-error@+1 {{'gdn_gpu.receive' op expects a role that is not in turns, or to be inside gdn_gpu.each_warp of all its warps}}
      %tile = gdn_gpu.receive %ring : !ring -> !gdn_gpu.shared<4xf32>
      gdn_gpu.release %ring : !ring
    }
  }
  return
}

// -----

!ring = !gdn_gpu.channel<4xf32, depth = 2>

func.func @some_turns() attributes {gdn_gpu.kernel = {threads = 96 : i64}} {
  %ring = gdn_gpu.channel : !ring
  gdn_gpu.roles {
    gdn_gpu.warps 1 for 2 in_turns 2 {
      gdn_gpu.each_warp 0 for 1 {
      ^bb0(%turn: index):
        // expected-error@+1 {{'gdn_gpu.receive' op expects a role that is not in turns, or to be inside gdn_gpu.each_warp of all its warps}}
        %tile = gdn_gpu.receive %ring : !ring -> !gdn_gpu.shared<4xf32>
        gdn_gpu.release %ring : !ring
      }
    }
  }
  return
}

// -----

// A user that lacks an operand is behind the channel, and not verified yet.
!ring = !gdn_gpu.channel<32x64xf16, depth = 2, swizzled>

func.func @without_second() attributes {gdn_gpu.kernel = {threads = 96 : i64}} {
  %loaded = gdn_gpu.channel : !ring
  // expected-error@+1 {{'gdn_gpu.channel' op expects a gdn_gpu.hand_on to it}}
  %made = gdn_gpu.channel : !ring of %loaded : !ring
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      "gdn_gpu.hand_on"(%made) : (!ring) -> ()
    }
  }
  return
}
