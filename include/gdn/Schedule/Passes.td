// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From tile programs to gdn_gpu, one pass per family of schedules.
#ifndef GDN_SCHEDULE_PASSES_TD
#define GDN_SCHEDULE_PASSES_TD

include "mlir/Pass/PassBase.td"

def ScheduleResidentRecurrence
    : Pass<"gdn-schedule-resident-recurrence", "::mlir::ModuleOp"> {
  let summary = "Hold the state in registers: one-token programs to GPU blocks";
  let description = [{
    Turns tile programs with one `gdn_tile.delta_scan` of a single token, outside
    of any loop, into programs of a block of GPU threads. The whole state of a value head is in
    the registers of the block, rows dealt to warps. What the scan needs is made
    by a warp each while the state is on its way: query, key, value and gates;
    what follows the scan is the work of the last warp. They pass tiles through
    shared memory:

        warps 0 .. 2      begin to load the windows of the convolution
        all warps         load the state
                          wait for the launch ahead
        warps 0 .. 3      query, key, value, gates -> shared
        barrier
        all warps         scan; output -> shared; store the state
        barrier
        warps 0 .. 2      store the windows of the convolution
        last warp         gated norm, store the output

    Slot ids, and what lies in slots, are read before the wait for the launch ahead,
    so a launch may depend on it (programmatic dependent launch) only if that one
    writes none of it.

    With `narrow-units` a program with a state of 16 bits, as it is loaded, and one decay
    for a head has a second program, the variant "narrow" for launches of at least so many
    units: four warps, three blocks per multiprocessor, a state whose rows are widened
    one at a time (`rows_apart` of `gdn_gpu.kernel`) and that stays narrow otherwise. There the
    operands too come by way of shared memory, and for the second barrier only the last
    warp waits.

    A state that the registers of a block cannot hold is taken in passes over equal
    blocks of its rows, which do not depend on each other: a loop loads, scans and
    stores one after another, and the output is collected in shared memory.

    **Runs after** `convert-gdn-to-tile` with `value-heads` and
    `gdn-tile-fuse-rows`; **before** `convert-gdn-gpu-to-nvvm`.

    **Needs**: tile programs, a value head per block.

    **Leaves**: programs of `gdn_gpu` for those with such a scan, with
    `gdn_gpu.kernel`. Other tile programs are left alone.

    **Numerics**: sums along a row are added per lane first and over lanes in a
    fixed tree; the state's product with the query is taken before the update,
    `M' q = e^g M q + d (k . q)`.

    **Fails** with an error on the scan or the op that the schedule does not
    take: a state of several passes that is not loaded and stored as it is, an op
    that is neither before nor after the scan.

    Before and after: `test/Schedule/resident-recurrence.mlir`, and in passes
    `test/Schedule/passes-over-rows.mlir`.
  }];
  let options = [
    Option<"threads", "threads", "int64_t", /*default=*/"256",
           "Threads per block; a multiple of 32, at least 160">,
    Option<"minBlocks", "min-blocks", "int64_t", /*default=*/"2",
           "Blocks per multiprocessor that registers must allow">,
    Option<"narrowUnits", "narrow-units", "int64_t", /*default=*/"0",
           "Units of a launch, rows times value heads, from which the variant "
           "'narrow' is for; 0 for none">
  ];
  let statistics = [
    Statistic<"numKernels", "num-kernels", "Kernels scheduled">
  ];
  let dependentDialects = [
    "::gdn::gpu::GPUDialect", "::mlir::arith::ArithDialect",
    "::mlir::math::MathDialect", "::mlir::vector::VectorDialect"
  ];
}

def SchedulePersistentRecurrence
    : Pass<"gdn-schedule-persistent-recurrence", "::mlir::ModuleOp"> {
  let summary = "Stream states through blocks that stay: a variant for many units";
  let description = [{
    Adds to tile programs with one `gdn_tile.delta_scan` of a single token a second
    program, the entry's variant "persistent": blocks that stay and work on the
    units, with roles that hand tiles over through channels:

        warps 0 .. 3   scan: some rows of a state at a time, out of a ring,
                       through registers, to memory
        warp 4         query
        warp 5         key
        warp 6         value and gates
        warp 7         what follows from the output
        warp 8         bulk copies of states into the ring, prefetches

    No warp waits for more than what it needs next, and the ring asks for states
    of the units to come while this one is worked on. The variant is taken from
    `min-units` to `max-units` units of launches that may begin before the one ahead
    has ended (`dependent`): without, "rows" is as fast. The programs themselves are left for
    `gdn-schedule-resident-recurrence`, which lays out the other variant.

    **Runs after** `convert-gdn-to-tile` with `value-heads` and
    `gdn-tile-fuse-rows`; **before** `gdn-schedule-resident-recurrence`.

    **Needs**: tile programs, a value head per block; a target with bulk copies.

    **Leaves**: a function `<entry>_persistent` of `gdn_gpu`, with
    `stage_of`, `variant` and `conditions` in `gdn_tile.stage`, for each
    program that it can lay out. It passes over those with rows of the state that
    are no multiple of 16 bytes, with a state that is not read whole and written
    whole, with one that does not fit twice into a block's share of shared
    memory, or with a decay per channel.

    **Numerics**: bit for bit those of `gdn-schedule-resident-recurrence`: a row of
    the state lies in as many lanes, in the same order.

    **Fails** with an error on the scan or the op that it does not take before or after
    the scan.

    Before and after: `test/Schedule/persistent-recurrence.mlir`.
  }];
  let options = [
    Option<"minUnits", "min-units", "int64_t", /*default=*/"512",
           "Units of a dependent launch from which the variant is taken">,
    Option<"minWideUnits", "min-wide-units", "int64_t", /*default=*/"512",
           "The same for states of f32">,
    Option<"maxUnits", "max-units", "int64_t", /*default=*/"4096",
           "Units of a dependent launch up to which the variant is taken">,
    Option<"sharedBytes", "shared-bytes", "int64_t", /*default=*/"115712",
           "Bytes of shared memory that a block may take">,
    Option<"maxWideUnits", "max-wide-units", "int64_t", /*default=*/"1024",
           "The same for states of f32; 0: none of them">
  ];
  let statistics = [
    Statistic<"numKernels", "num-kernels", "Variants scheduled">
  ];
  let dependentDialects = [
    "::gdn::gpu::GPUDialect", "::mlir::arith::ArithDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def ScheduleResidentTokens
    : Pass<"gdn-schedule-resident-tokens", "::mlir::ModuleOp"> {
  let summary = "Hold the state in registers while tokens pass: recurrences to GPU blocks";
  let description = [{
    Turns tile programs whose one `gdn_tile.delta_scan` stands in a loop over the
    tokens of a row into programs of a block of GPU threads. As in
    `gdn-schedule-resident-recurrence`, the state of a value head is in the
    registers of the block, and tiles pass through shared memory; but eight
    tokens are prepared at once, and their outputs are finished by a warp each:

        all warps         load the state
                          wait for the launch ahead; begin to copy pending tokens
        a warp each       query, key, value, gates of the tokens -> shared
        barrier
        all warps         fold pending tokens into the state and store it
                          token by token: scan; output -> shared; store the state
        warps 0 .. 2      store the windows of the convolution after each token
        barrier
        each warp         gated norm of a token, store the output;
                          store what stays pending of a token

    A row of more tokens goes on with the next eight. Where the program says
    that no row has more (a loop that ends at the minimum of some number and of
    its begin and at most eight), there is no loop, and with at most four, tiles
    of four tokens; and where tensor cores also take the state and inputs have
    16 bits, the block has eight warps of 128 registers: two of each convolution
    read its inputs to shared memory, and behind a barrier prepare a token at a
    time; where no token stays pending, the last three warps store windows
    behind the outputs. A convolution whose window the loop carries is one of
    several tokens; one that finds its window anew at each token, as in a tree
    of tokens, stays one token by token. A state that is loaded inside the loop
    is read back by the threads that wrote it.

    **Runs after** `convert-gdn-to-tile` with `value-heads` and
    `gdn-tile-fuse-rows`; **before** `convert-gdn-gpu-to-nvvm`.

    **Needs**: tile programs, a value head per block.

    **Leaves**: programs of `gdn_gpu` for those with such a loop whose results
    nothing uses. Other tile programs are left alone.

    **Numerics**: as `gdn-schedule-resident-recurrence`, with the same order of
    sums: a state of f32 has the bits that steps of one token leave. But for
    tokens that stay pending with a decay per head: these are solved for together, where
    it can be with products on tensor cores that are as good as in f32.

    **Fails** with an error on the scan or the op that the schedule does not
    take: a state that does not fit in the registers of a block, an op that is
    neither before nor after the scan.

    Before and after: `test/Schedule/resident-tokens.mlir`.
  }];
  let options = [
    Option<"threads", "threads", "int64_t", /*default=*/"128",
           "Threads per block; a multiple of 32, at least 128. At least 256 where "
           "tensor cores take the state of rows of one block of tokens">,
    Option<"minBlocks", "min-blocks", "int64_t", /*default=*/"2",
           "Blocks per multiprocessor that registers must allow">
  ];
  let statistics = [
    Statistic<"numKernels", "num-kernels", "Kernels scheduled">
  ];
  let dependentDialects = [
    "::gdn::gpu::GPUDialect", "::mlir::arith::ArithDialect",
    "::mlir::math::MathDialect", "::mlir::vector::VectorDialect",
    "::mlir::scf::SCFDialect"
  ];
}

def ScheduleSlotMoves : Pass<"gdn-schedule-slot-moves", "::mlir::ModuleOp"> {
  let summary = "Store tiles as they are loaded: slot moves to GPU blocks";
  let description = [{
    Turns tile programs whose tiles are loaded or filled and then stored, and
    nothing else, into programs of a block of GPU threads: 16 bytes per lane
    and access, rows dealt to all warps. A tile that lies across memory, such as
    a convolution's inputs by channel, is the last warp's.

    Between its load and its store a state may take pending tokens in, by one
    `gdn_tile.delta_fold` (a commit). It is in registers meanwhile, a block of its
    rows after another where it is large.

    **Runs after** `convert-gdn-to-tile`; **before** `convert-gdn-gpu-to-nvvm`.

    **Needs**: tile programs.

    **Leaves**: programs of `gdn_gpu` for those that move tiles only, with
    `gdn_gpu.kernel`. Other tile programs are left alone.

    **Numerics**: bit-preserving; a fold has the roundings of the scan that made its
    deltas.

    **Fails** with an error on options that make no block.

    Before and after: `test/Schedule/slot-moves.mlir`.
  }];
  let options = [
    Option<"threads", "threads", "int64_t", /*default=*/"256",
           "Threads per block; a multiple of 32">
  ];
  let statistics = [
    Statistic<"numKernels", "num-kernels", "Kernels scheduled">
  ];
  let dependentDialects = [
    "::gdn::gpu::GPUDialect", "::mlir::arith::ArithDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def ScheduleTileProducts
    : Pass<"gdn-schedule-tile-products", "::mlir::ModuleOp"> {
  let summary = "Products on tensor cores: programs of chunks to GPU blocks";
  let description = [{
    Turns tile programs whose products all have 16-bit operands into programs of a
    block of GPU threads. All warps work on each op: a warp has 16 rows of every
    product (or 32, 48, ..), and left operands never leave its registers. Right
    operands, and tiles that are read the other way round, are in shared memory,
    most of them copied there as they lie in memory. Tiles of rank 1 are the work
    of the first warp. A loop over chunks copies what a turn needs first while the
    turn before it is at work, and the rest while the first products run.

    Where such a loop also has products that do not need what it carries, its work is
    that of five roles: one has the inter-chunk recurrence, one makes what needs no state,
    one copies, as boxes where tensor maps can bring them, one makes what needs no
    product, and one scales rows of what was copied. They hand tiles over through
    channels, so that a chunk has its intra-chunk work done while the recurrence is at the one before it.

    Tiles that are not needed any more give their shared memory to later ones. Work
    on rows of f32 tiles that registers hold transposed, a norm of outputs, is
    transposed itself: a sum over a row becomes a `gdn_gpu.column_sum`. Tiles of fewer than
    16 rows, a window of a convolution, are the work of the first warp.

    **Runs after** `convert-gdn-to-tile` with `chunk-stages=staged` and
    `gdn-tile-fuse-rows`; **before** `gdn-gpu-place-barriers`.

    **Needs**: tile programs, a value head per block.

    **Leaves**: programs of `gdn_gpu` for those with such products. Other tile
    programs, and those with a convolution or a scan over tokens in them, are left
    alone. Barriers are missing.

    **Numerics**: sums of products in the order of the target's instructions, from
    the first inner element to the last. `gdn_tile.prefix_sum` and
    `gdn_tile.suffix_sum` in a tree, sums of transposed rows over warps last. `gdn_tile.decay_matrix` as the exponential of a
    difference of running sums, of decays of at least -18: below, the factor is
    zero in 16 bits.

    Left alone with a remark that has the figures: programs that would take more
    registers than a thread of so many warps has, by a model of what ptxas needs, or
    more shared memory than a block has. With `warpgroups`, a program gets the
    field `single_warps` of `gdn_gpu.kernel` if it would have too few registers for products
    that four warps make together.

    **Fails** with an error on a branch that gives tiles.

    Before and after: `test/Schedule/tile-products.mlir`, in roles
    `test/Schedule/product-roles.mlir`.
  }];
  let options = [
    Option<"warps", "warps", "int64_t", /*default=*/"8",
           "Warps per multiprocessor that registers must allow; 8 at most for a "
           "program that carries a matrix through a loop">,
    Option<"warpgroups", "warpgroups", "bool", /*default=*/"false",
           "Whether `gdn-gpu-use-warpgroups` follows">,
    Option<"sharedBytes", "shared-bytes", "int64_t", /*default=*/"::gdn::gpufacts::maxSharedBytesPerBlock",
           "Bytes of shared memory that a block may have">
  ];
  let statistics = [
    Statistic<"numKernels", "num-kernels", "Kernels scheduled">
  ];
  let dependentDialects = [
    "::gdn::gpu::GPUDialect", "::mlir::arith::ArithDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def ScheduleTokenGroups
    : Pass<"gdn-schedule-token-groups", "::mlir::ModuleOp"> {
  let summary = "A warp for each group of tokens: token-wise programs to GPU blocks";
  let description = [{
    Turns tile programs of loads, work on rows, convolutions and stores, whose
    last axis of the grid is a number, into programs of a block of GPU threads
    with as many warps: each warp does the work of one coordinate on that axis, by
    itself. A lane holds columns of all tokens of its warp, so that the
    convolution goes from register to register, and a norm is a sum over lanes. What a
    block reads is asked for before any of it is used; loops may carry tiles.

    **Runs after** `convert-gdn-to-tile` with `chunk-stages=staged` and
    `gdn-tile-fuse-rows`; **before** `gdn-drop-unscheduled`.

    **Needs**: tile programs, a value head per block.

    **Leaves**: programs of `gdn_gpu` for those, with the grid without its last
    axis. Other tile programs, convolutions with a bias among them, are left
    alone, and tiles of more than 64 elements per lane.

    **Numerics**: sums over rows are reordered, in an order that depends on the
    number of columns alone.

    **Fails**: never.

    Before and after: `test/Schedule/token-groups.mlir`.
  }];
  let options = [
    Option<"warps", "warps", "int64_t", /*default=*/"32",
           "Warps per multiprocessor that registers must allow; half as many where a "
           "lane has more than 256 bits of a loaded tile, and half where a block has "
           "more than two warps, whose pieces are short">
  ];
  let statistics = [
    Statistic<"numKernels", "num-kernels", "Kernels scheduled">
  ];
  let dependentDialects = [
    "::gdn::gpu::GPUDialect", "::mlir::arith::ArithDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def DropUnscheduled : Pass<"gdn-drop-unscheduled", "::mlir::ModuleOp"> {
  let summary = "Leave out tile programs that no schedule has taken";
  let description = [{
    Removes functions with a grid in `gdn_tile.stage` that are no program of `gdn_gpu`, and all
    stages of a variant of which one is not. A stage of several variants stays in those
    that are whole. Entries of which nothing is left have no code for this target, of
    which `gdn-compile` warns; other targets of an image may have some.

    **Runs after** the schedules; **before** `gdn-gpu-check`.

    **Needs**: nothing.

    **Leaves**: programs of `gdn_gpu`, and functions of other kinds.

    **Numerics**: bit-preserving.

    **Fails**: never.

    Before and after: `test/Schedule/drop-unscheduled.mlir`.
  }];
  let statistics = [
    Statistic<"numDropped", "num-dropped", "Programs left out">
  ];
}

#endif // GDN_SCHEDULE_PASSES_TD
