// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes within the gdn dialect.
#ifndef GDN_DIALECT_GDN_TRANSFORMS_PASSES_TD
#define GDN_DIALECT_GDN_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def GDNFuse : Pass<"gdn-fuse", "::mlir::ModuleOp"> {
  let summary = "Decide which ops share one kernel";
  let description = [{
    Wraps the gdn ops of every entry in `gdn.kernel`. No other pass decides
    which ops share a kernel. The rules are:

    - `conv1d`, rules and `mask_sequences` share a kernel if they have the same
      `slots` and `cu_seqlens`, and the same checkpoints, `token_slots` or
      pending tokens, if any. The token-wise ops (`gates`, `l2norm`,
      `gated_rms_norm`, `cast`) that are connected to them are in that kernel
      too.
    - Token-wise ops that are connected only to each other share a kernel.
    - `commit_conv1d` and `commit_delta_rule` share a kernel if they have the
      same `slots` and `num_accepted`.
    - `pool_copy` and `pool_zero` with the same slots share a kernel.
    - Each `pool_read` and `pool_write` has a kernel of its own.
    - `unpack`, `accepted_slots` and `counted_slots` stay outside of kernels:
      they only compute addresses and slots.

    *Connected* means that one op uses a result of the other, or that both read
    the same tokens: the same value, or parts of the same packed projection.
    Ops do not share a kernel if an op between them has to stay outside, such as
    an `unpack` of a result or a `pool_read` between two writes. Two ops on one
    pool share a kernel only if each writes exactly the slots that it reads:
    sequences of one kernel run in any order, so no sequence may read what
    another one wrote.

    With `norm-with-rule`, a kernel gets the attribute `norm_with_rule` if the
    outputs of its rule are used by one gated norm alone, with or without casts
    between the two, and the norm's result has 16 bits: what the outputs would be
    rounded to on their way through memory. A norm behind a rule whose output is
    a result too stays apart from the rule. With `conv-with-rule`, a kernel gets the
    attribute `conv_with_rule` if the values of its rule are a result of a
    convolution that nothing else uses.

    The kernel has the name of its entry. If an entry needs several kernels,
    they are numbered in program order. Names are unique in the module. Ops
    outside of entries, and kernels that exist already, are left alone, so a
    second run of the pass changes nothing.

    **Runs after** canonicalisation of `gdn`; **before** `convert-gdn-to-tile`.

    **Needs**: entries of one basic block with the gdn ops directly in it. Two
    pools of an entry do not overlap (binding checks that).

    **Leaves**: in entries, no gdn ops outside of kernels except `unpack`,
    `accepted_slots` and `counted_slots`. The order of the ops on each pool is
    kept.

    **Numerics**: bit-preserving.

    **Fails** with an error on an entry that has several basic blocks, and on a
    gdn op inside the region of another op.

    Before and after: `test/Dialect/GDN/Transforms/fuse.mlir`, and
    `fuse-norm.mlir` and `fuse-conv.mlir` with the options.
  }];
  let options = [
    Option<"normWithRule", "norm-with-rule", "bool", /*default=*/"false",
           "Gated norms take the outputs of rules without a way through memory, "
           "where kernels have a form that can do so">,
    Option<"convWithRule", "conv-with-rule", "bool", /*default=*/"false",
           "Rules take convolved values without a way through memory, where "
           "kernels have a form that can do so">
  ];
  let statistics = [
    Statistic<"numKernels", "num-kernels", "Kernels made">,
    Statistic<"numFusedOps", "num-fused-ops",
              "Ops that share a kernel with another op">
  ];
  let dependentDialects = ["::gdn::GDNDialect"];
}

#endif // GDN_DIALECT_GDN_TRANSFORMS_PASSES_TD
