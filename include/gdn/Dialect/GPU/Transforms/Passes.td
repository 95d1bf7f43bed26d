// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes within the gdn_gpu dialect.
#ifndef GDN_DIALECT_GPU_TRANSFORMS_PASSES_TD
#define GDN_DIALECT_GPU_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def CheckGPU : Pass<"gdn-gpu-check", "::mlir::ModuleOp"> {
  let summary = "Refuse GPU programs whose threads would race";
  let description = [{
    Follows the accesses to every shared tile through each function with
    `gdn_gpu.kernel`, and checks:

    - on every path there is a `gdn_gpu.barrier` between a
      `gdn_gpu.store_shared` and a `gdn_gpu.load_shared` that reads its value;
    - there is a barrier between any two accesses to a tile of which at least
      one writes, also from one iteration of a loop to the next;
    - outside of `gdn_gpu.warps`, fragments are laid out over all warps of the
      block;
    - channels are filled and emptied in turns, and no tile is used behind its end;
    - no tile of `gdn_gpu.alloc` that one role writes is used by another role;
    - accesses to the same elements of global memory by different threads of a
      block have a barrier in between, or a `gdn_gpu.warp_barrier` within a warp;
    - what several blocks have, one of them writes, the last one that reads it;
    - what stands ahead of a `gdn_gpu.await_launch` neither writes global memory nor
      reads what the launch ahead may write;
    - a launch that began early does not end before the ones ahead of it;
    - in each variant of an entry, a stage reads nothing ahead of its wait that a stage ahead of
      it writes, and lets the next launch begin ahead of its wait only if that is another stage;
    - in each variant of an entry, stages that signal add up to what another one awaits;
    - what is begun (an arrival, a ticket, a load, a copy) is waited for.

    The constraints of the ops say of each how far it is followed.

    Inside a role the same rules hold for the warps of the role. Accesses per
    warpgroup (`gdn_gpu.begin_copy per_warpgroup`, `gdn_gpu.copy_out`, tiles
    that are loaded or stored transposed) need no barrier among themselves.

    **Runs after** the schedules; **before** `convert-gdn-gpu-to-nvvm`,
    which begins with the same checks of each program.

    **Needs**: nothing.

    **Leaves**: the module as it is.

    **Numerics**: bit-preserving.

    **Fails** with an error on an access that lacks a barrier, or that reads a
    tile to which nothing has been written; a note names the other access.

    Examples: `test/Dialect/GPU/Transforms/check_invalid.mlir`.
  }];
}

def PlaceBarriers : Pass<"gdn-gpu-place-barriers", "::mlir::ModuleOp"> {
  let summary = "Barriers where an access has to wait for another";
  let description = [{
    Follows every shared tile as `gdn-gpu-check` does, and inserts a
    `gdn_gpu.barrier` wherever that pass would report a missing one. The barrier
    is placed as late as possible: before the access that needs it, or before
    the `gdn_gpu.warps` around that access. If a copy is in flight,
    `gdn_gpu.await_copies` is placed before the barrier.

    **Runs after** schedules that leave barriers out; **before**
    `gdn-gpu-check`.

    **Needs**: shared tiles that are written, by `gdn_gpu.store_shared` or a
    copy, on every path to a read.

    **Leaves**: programs that `gdn-gpu-check` accepts.

    **Numerics**: bit-preserving.

    **Fails** with an error on an access that would need a barrier inside a
    `gdn_gpu.warps`, or that reads a tile to which nothing has been written.

    Before and after: `test/Conversion/GPUToNVVM/place-barriers.mlir`.
  }];
  let dependentDialects = ["::gdn::gpu::GPUDialect"];
}

def UseWarpgroups : Pass<"gdn-gpu-use-warpgroups", "::mlir::ModuleOp"> {
  let summary = "Four warps make a product together";
  let description = [{
    Sets `warpgroup` on each `gdn_gpu.matmul` that `wgmma` can compute: the
    number of warps is a multiple of four, the rows of the shared tile have a
    multiple of 128 bytes, and there are at most 256 columns. Four warps then
    read the tile once instead of four times. A function with such a product
    gets `warpgroups` in its `gdn_gpu.kernel`. In a function with
    `single_warps` there no product is changed; the pass removes that
    attribute.

    **Runs after** `gdn-schedule-tile-products`; **before**
    `convert-gdn-gpu-to-nvvm`.

    **Needs**: a target with `wgmma`.

    **Leaves**: the same ops.

    **Numerics**: unchanged, except for the order in which an instruction adds
    16 products.

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
    Turns each `gdn_gpu.matmul` of warpgroups into a `gdn_gpu.start_matmul` and
    a `gdn_gpu.await_matmul`, which stands before the first of

      - the first use of the product,
      - a barrier, and a wait or a signal of a channel,
      - a write to a tile that it reads,
      - a loop, a branch, the end of the block.

    If the left operand was loaded from shared memory only for the product, and
    has 64 rows for four warps, the product reads it from shared memory instead.

    So independent products run one after another without a wait between them,
    and elementwise work overlaps with them.

    **Runs after** `gdn-gpu-place-barriers`; **before**
    `convert-gdn-gpu-to-nvvm`.

    **Needs**: programs with all their barriers.

    **Leaves**: the same program otherwise.

    **Numerics**: unchanged.

    **Fails**: never.

    Before and after: `test/Schedule/use-warpgroups.mlir`.
  }];
  let statistics = [
    Statistic<"numProducts", "num-products", "Products that overlap other work">
  ];
  let dependentDialects = ["::gdn::gpu::GPUDialect"];
}

def AddAlignedVariants : Pass<"gdn-add-aligned-variants", "::mlir::ModuleOp"> {
  let summary = "Variants for calls whose arrays are contiguous and aligned";
  let description = [{
    Adds a variant "aligned" ahead of each program of `gdn_gpu` that has
    `aligned_variant` in `gdn_gpu.kernel`. It is for calls whose arrays meet two conditions:

    - where a thread moves several columns of a fragment at once, these columns
      are contiguous in memory, or, where a column is contiguous, each column
      follows the one before it without a gap;
    - the address and all other strides are multiples of 16 bytes.

    The variant then has code for one way of access to each array only. This
    helps launches of few blocks, which wait for instruction fetches as much as
    for memory.

    The program states these conditions on its arguments, as static strides in
    their types and as `gdn_gpu.alignment`. A launch takes the variant if they
    hold.

    **Runs after** the schedules; **before** `gdn-gpu-check`.

    **Needs**: programs of `gdn_gpu`.

    **Leaves**: these programs, without `aligned_variant`, and a variant
    of each. There is no variant where it would require no more than the program
    itself does.

    **Numerics**: bit-preserving.

    **Fails**: never.

    Before and after: `test/Schedule/aligned-variants.mlir`.
  }];
  let statistics = [
    Statistic<"numAdded", "num-added", "Variants added">
  ];
}

def AwaitStages : Pass<"gdn-gpu-await-stages", "::mlir::ModuleOp"> {
  let summary = "Stages of a launch begin while those ahead of them end";
  let description = [{
    A stage in roles (`gdn_gpu.roles`), or ahead of one, that is behind another
    stage gets a `gdn_gpu.await_launch` ahead of its first use of global memory, numbers
    of the call but for that, so that its blocks take the multiprocessors as these
    become free. Where the stage releases nobody, keeps no loops as they are
    (`keep_loops` of `gdn_gpu.kernel`) and copies nothing ahead, each role waits for itself instead,
    ahead of what first has to: what writes, or reads what a stage ahead of this one writes,
    regions of the workspace or arguments. Inputs of the call and pools are read before.
    Where no role waits on every way, the first block waits at its end, since who comes next
    waits for this stage alone. Such a stage has `awaits_stage` in its `gdn_tile.stage`.

    A stage gets a `gdn_gpu.release_launch` ahead of its first use of global memory, behind
    its own wait if it has one, if what follows it begins early in all of its variants.
    Where all uses of a stage without roles are in one branch, it waits and releases there;
    blocks that do not take the branch release at once, and the first of these waits at its
    end.

    A stage that follows (`follows` of `gdn_tile.stage`) begins early, too, and waits where it
    ends, in its first block: what it reads it awaits by signals. The stage ahead of it
    releases it as soon as one of its roles has waited.

    It does not where

    - the stage overlaps with the last one (`overlaps` of `gdn_tile.stage`): it
      waits where it ends, as before;
    - it overlaps with the next one: both read what the stage ahead of them writes;
    - it has a warp for each piece of tokens (`gdn_gpu.each_warp` outside of roles): there are many
      such blocks, and those that begin early crowd on the few multiprocessors that
      are free.

    **Runs after** the schedules; **before** `gdn-gpu-check`.

    **Needs**: a target with dependent launches, and stages in the order of
    launches.

    **Leaves**: the same programs otherwise.

    **Numerics**: bit-preserving.

    **Fails**: never.

    Before and after: `test/Dialect/GPU/Transforms/await-stages.mlir`.
  }];
  let statistics = [
    Statistic<"numAwaits", "num-awaits", "Stages that wait for the one ahead">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::gdn::gpu::GPUDialect",
                           "::mlir::scf::SCFDialect"];
}

#endif // GDN_DIALECT_GPU_TRANSFORMS_PASSES_TD
