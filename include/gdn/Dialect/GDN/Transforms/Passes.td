// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes within the gdn dialect.
#ifndef GDN_DIALECT_GDN_TRANSFORMS_PASSES_TD
#define GDN_DIALECT_GDN_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def GDNFuse : Pass<"gdn-fuse", "::mlir::ModuleOp"> {
  let summary = "Decide which ops share one kernel";
  let description = [{
    Wraps the ops of every entry function that share one kernel in a
    `gdn.kernel`. `gdn.unpack` stays outside: it is addressing, not work. All
    other gdn ops of an entry become one kernel named after the entry when they
    work on the same rows and slots, which is what makes a decode step one
    launch. `gdn.pool_read` and `gdn.pool_write` get a kernel each.

    **Runs after** canonicalisation; **before** `convert-gdn-to-tile`.

    **Needs**: entries of one block.

    **Leaves**: no gdn op other than `gdn.unpack` outside a `gdn.kernel`.
    Entries that already hold a `gdn.kernel` are left alone.

    **Numerics**: bit-preserving; ops keep their order.

    **Fails** with an error on an entry of several blocks.

    Before and after: `test/Dialect/GDN/Transforms/fuse.mlir`.
  }];
  let statistics = [
    Statistic<"numKernels", "num-kernels", "Kernels made">,
    Statistic<"numFusedOps", "num-fused-ops", "Ops moved into a kernel">
  ];
  let dependentDialects = ["::gdn::GDNDialect"];
}

#endif // GDN_DIALECT_GDN_TRANSFORMS_PASSES_TD
