// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes within the gdn dialect.
#ifndef GDN_DIALECT_GDN_TRANSFORMS_PASSES_TD
#define GDN_DIALECT_GDN_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def GDNFuse : Pass<"gdn-fuse", "::mlir::ModuleOp"> {
  let summary = "Decide which ops share one kernel";
  let description = [{
    Wraps the gdn ops of every entry in `gdn.kernel`. What shares a kernel is
    decided here and nowhere else:

    - `conv1d`, rules and `mask_sequences` with the same `slots` and
      `cu_seqlens`, and the same checkpoints, `token_slots` or pending tokens
      where they have some, share one, and so do the token-wise ops (`gates`, `l2norm`, `gated_rms_norm`, `cast`)
      connected to them;
    - token-wise ops that are connected to each other only share one;
    - `commit_conv1d` and `commit_delta_rule` of the same `slots` and
      `num_accepted` share one;
    - `pool_copy` and `pool_zero` with the same slots share one;
    - `pool_read` and `pool_write` have a kernel each;
    - `unpack`, `accepted_slots` and `counted_slots` stay outside: they only say where things are.

    *Connected* means that one op uses a result of the other, or that both read
    the same tokens: the same value, or parts of the same packed projection.
    Ops are not put together where something between them has to stay outside,
    such as an `unpack` of a result or a `pool_read` between two writes. Two ops
    on one pool share a kernel only if both write the slots they read and no
    others: sequences of one kernel run in any order, so no sequence may read what
    another one wrote.

    The kernel has the name of its entry; if the entry needs several, they are
    numbered in program order. Names are unique in the module. Ops outside
    entries, and kernels that exist already, are left alone, so running the pass
    again changes nothing.

    **Runs after** canonicalisation of `gdn`; **before** `convert-gdn-to-tile`.

    **Needs**: entries of one block, gdn ops directly in it. Two pools of an
    entry do not overlap (binding sees to that).

    **Leaves**: in entries, no gdn op outside a kernel but `unpack`. The order
    of the ops on each pool is kept.

    **Numerics**: bit-preserving.

    **Fails** with an error on an entry that has several blocks and on a gdn op
    inside another op's region.

    Before and after: `test/Dialect/GDN/Transforms/fuse.mlir`.
  }];
  let statistics = [
    Statistic<"numKernels", "num-kernels", "Kernels made">,
    Statistic<"numFusedOps", "num-fused-ops", "Ops that share a kernel with another op">
  ];
  let dependentDialects = ["::gdn::GDNDialect"];
}

#endif // GDN_DIALECT_GDN_TRANSFORMS_PASSES_TD
