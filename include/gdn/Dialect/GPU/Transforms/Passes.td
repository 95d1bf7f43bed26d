// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes within the gdn_gpu dialect.
#ifndef GDN_DIALECT_GPU_TRANSFORMS_PASSES_TD
#define GDN_DIALECT_GPU_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def CheckGPU : Pass<"gdn-gpu-check", "::mlir::ModuleOp"> {
  let summary = "Refuse GPU programs whose threads would race";
  let description = [{
    Follows every shared tile through each function with `gdn_gpu.kernel`: a
    `gdn_gpu.load_shared` stands behind a `gdn_gpu.barrier` behind the `gdn_gpu.store_shared`
    it reads, on every way to it; between accesses of which one writes there is a
    barrier, also from one iteration of a loop to the next. Outside
    `gdn_gpu.warps`, fragments are laid out over all warps of the block. Inside a
    role the same holds of its warps; accesses per warpgroup (`gdn_gpu.begin_copy
    per_warpgroup`, `gdn_gpu.copy_out`, tiles loaded or stored transposed) need none among
    themselves.

    **Runs after** the schedules; **before** `convert-gdn-gpu-to-nvvm`,
    which begins with the same check.

    **Needs**: nothing.

    **Leaves**: the module as it is.

    **Numerics**: bit-preserving.

    **Fails** with an error on the access that lacks a barrier or a value.

    Examples: `test/Dialect/GPU/check_invalid.mlir`.
  }];
}

def PlaceBarriers : Pass<"gdn-gpu-place-barriers", "::mlir::ModuleOp"> {
  let summary = "Barriers where an access has to wait for another";
  let description = [{
    Follows every shared tile as `gdn-gpu-check` does, and puts a
    `gdn_gpu.barrier` where that would miss one: as late as possible, before the
    access that needs it, or before the `gdn_gpu.warps` around it. Where a copy is
    under way, `gdn_gpu.await_copies` goes before the barrier.

    **Runs after** schedules that leave barriers out; **before** `gdn-gpu-check`.

    **Needs**: shared tiles that are shared or copied on every way to their use.

    **Leaves**: programs that `gdn-gpu-check` accepts.

    **Numerics**: bit-preserving.

    **Fails** with an error on an access inside `gdn_gpu.warps` that would need a
    barrier there, or to a tile without a value.

    Before and after: `test/Conversion/GPUToNVVM/place-barriers.mlir`.
  }];
  let dependentDialects = ["::gdn::gpu::GPUDialect"];
}

def UseWarpgroups : Pass<"gdn-gpu-use-warpgroups", "::mlir::ModuleOp"> {
  let summary = "Four warps make a product together";
  let description = [{
    Sets `warpgroup` on each `gdn_gpu.matmul` that `wgmma` can make: warps in
    multiples of four, a tile with rows of a multiple of 128 bytes, at most 256
    columns. Four warps then read the tile once instead of four times. A
    function with such a product gets `warpgroups` in its `gdn_gpu.kernel`. One
    with `single_warps` there is left as it is, without that field.

    **Runs after** `gdn-schedule-tile-products`; **before**
    `convert-gdn-gpu-to-nvvm`.

    **Needs**: a target with `wgmma`.

    **Leaves**: the same ops.

    **Numerics**: unchanged but for the order in which an instruction sums 16
    products.

    **Fails**: never.

    Before and after: `test/Schedule/use-warpgroups.mlir`.
  }];
  let statistics = [
    Statistic<"numProducts", "num-products", "Products of warpgroups">
  ];
  let dependentDialects = ["::gdn::gpu::GPUDialect"];
}

def OverlapProducts : Pass<"gdn-gpu-overlap-products", "::mlir::ModuleOp"> {
  let summary = "Let products of warpgroups run while the program goes on";
  let description = [{
    Turns each `gdn_gpu.matmul` of warpgroups into a `gdn_gpu.start_matmul` and a
    `gdn_gpu.await_matmul`, which stands before the first of

      - the first use of the product,
      - a barrier, and a wait or a signal of a channel,
      - a write to a tile that it reads,
      - a loop, a branch, the end of the block.

    A left side that was loaded for the product alone, 64 rows for four warps, is read
    from shared memory.

    So products that do not need each other run one behind the other without a
    wait between them, and elementwise work in their shadow.

    **Runs after** `gdn-gpu-place-barriers`; **before** `convert-gdn-gpu-to-nvvm`.

    **Needs**: programs with all their barriers.

    **Leaves**: the same program otherwise.

    **Numerics**: unchanged.

    **Fails**: never.

    Before and after: `test/Schedule/use-warpgroups.mlir`.
  }];
  let statistics = [
    Statistic<"numProducts", "num-products", "Products that run on the side">
  ];
  let dependentDialects = ["::gdn::gpu::GPUDialect"];
}

def AddAlignedVariants : Pass<"gdn-add-aligned-variants", "::mlir::ModuleOp"> {
  let summary = "Variants for calls whose arrays lie well";
  let description = [{
    Gives each program of `gdn_gpu` with `aligned_variant` in `gdn_gpu.kernel` a variant
    "aligned" ahead of it, for calls that promise how their arrays lie: where a
    thread moves several columns of a fragment at once, these lie side by side (or,
    where rows do, behind each other's rows), and the address and all other strides
    are multiples of 16 bytes. Then there is one way to each array, and no code for
    the others: a launch of few blocks waits for instructions as it does for memory.

    The promise is what the program says of its arguments: static strides in
    their types, and `gdn_gpu.alignment`. A launch takes the variant where it holds.

    **Runs after** the schedules; **before** `gdn-gpu-check`.

    **Needs**: programs of `gdn_gpu`.

    **Leaves**: these, without the mark, and a variant of each, unless that
    promises no more than the program itself asks for.

    **Numerics**: bit-preserving.

    **Fails**: never.

    Before and after: `test/Schedule/aligned-variants.mlir`.
  }];
  let statistics = [
    Statistic<"numAdded", "num-added", "Variants added">
  ];
}

#endif // GDN_DIALECT_GPU_TRANSFORMS_PASSES_TD
