// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-fuse: what it refuses. The first line shows that the input itself is
// fine.
//
// RUN: gdn-opt %s -split-input-file -o /dev/null
// RUN: gdn-opt %s -split-input-file -gdn-fuse -verify-diagnostics

// expected-error @+1 {{'func.func' op expects an entry to have one block, but got 2}}
func.func @two_blocks() attributes {gdn.entry} {
  cf.br ^end
^end:
  return
}

// -----

func.func @inside_a_loop(
    %n: index {gdn.name = "H"},
    %x: tensor<?x?x8xf32> {gdn.name = "x", gdn.dims = ["N", "H", "8"]})
    -> (tensor<?x?x8xf32> {gdn.name = "y", gdn.dims = ["N", "H", "8"]}) attributes {gdn.entry} {
  %zero = arith.constant 0 : index
  %y = scf.for %i = %zero to %n step %n iter_args(%last = %x) -> tensor<?x?x8xf32> {
    // expected-error @+1 {{'gdn.l2norm' op expects to stand directly in its entry 'inside_a_loop', but is inside 'scf.for'}}
    %next = gdn.l2norm %last : tensor<?x?x8xf32> -> tensor<?x?x8xf32>
    scf.yield %next : tensor<?x?x8xf32>
  }
  return %y : tensor<?x?x8xf32>
}
