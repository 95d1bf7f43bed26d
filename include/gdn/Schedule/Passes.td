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
    Turns tile programs that have one `gdn_tile.delta_scan`, of a single token and outside of any
    loop, into programs of a block of GPU threads. The whole state of a value head is in the
    registers of the block; its rows are distributed over the warps. While the state is loaded, one
    warp each computes the query, the key, the value and the gates. The last warp does what follows
    the scan. Warps exchange tiles through shared memory:

        warps 0 .. 2      begin to load the windows of the convolution
        all warps         load the state
                          wait for the launch ahead
        warps 0 .. 3      query, key, value, gates -> shared
        barrier
        all warps         scan; output -> shared; store the state
        barrier
        warps 0 .. 2      store the windows of the convolution
        last warp         gated norm, store the output

    The program reads slot ids and the contents of slots before it waits for the launch ahead. So
    programmatic dependent launch is allowed only if the launch ahead writes neither.

    With `narrow-units` a program of a delta rule whose state is loaded in 16 bits, and which has
    one decay for a head, gets a second program: the variant "narrow", for launches of at least so
    many units. It has four warps and three blocks per multiprocessor. The state stays in 16 bits in
    registers, and its rows are widened one at a time (`rows_apart` of `gdn_gpu.kernel`). The
    operands are also loaded by way of shared memory, and only the last warp waits at the second
    barrier.

    With `crowded-units` a program that reads a state in planes gets a second program: the variant
    "crowded", for launches of at least so many units. It is the same program, of fewer warps: these
    do at once what each warp does for itself, and more blocks fit. In blocks of four warps the one
    that makes no operand waits for the count of pending tokens and copies them, ahead of its part
    of the state. Unless two planes are in registers it also makes what remains of the tokens. The
    value's warp makes the gates there. Where tokens see the upper one of two planes, which is
    not kept, last readers are asked for behind the products. With `sparse-units` launches of up to so many units have the
    variant "sparse" there: blocks that keep the state for a fold.

    With `crowded-narrow-units` a program with pending tokens and a state of 16 bits gets such a
    second program, too. Tensor cores multiply the state as it is with key and query, each the sum
    of three rows of 16 bits, and a state that receives its pending tokens gives its products
    without them first. So its bits are others than those of the first program.

    A state that does not fit in the registers of a block is computed in passes over equal blocks of
    its rows, which do not depend on each other. A loop loads, scans and stores one block after
    another, and collects the output in shared memory.

    **Runs after** `convert-gdn-to-tile` with `value-heads` and `gdn-tile-fuse-rows`; **before**
    `convert-gdn-gpu-to-nvvm`.

    **Needs**: tile programs, a value head per block.

    **Leaves**: programs of `gdn_gpu` for those with such a scan, with `gdn_gpu.kernel`. Other
    tile programs are left alone, and with a remark those whose state does not fit in passes
    either.

    **Numerics**: sums along a row are added per lane first and then over lanes in a fixed tree.
    The product of the state with the query is computed before the update: `M' q = e^g M q + d (k
    . q)`.

    **Fails** with an error on the scan or the op that the schedule does not take: an erase key, a
    state of several passes that is not loaded and stored as it is, or an op that is neither before
    nor after the scan.

    Before and after: `test/Schedule/resident-recurrence.mlir`, and in passes
    `test/Schedule/passes-over-rows.mlir`.
  }];
  let options = [
    Option<"threads", "threads", "int64_t", /*default=*/"256",
           "Threads per block; a multiple of 32, at least 160">,
    Option<"minBlocks", "min-blocks", "int64_t", /*default=*/"2",
           "Blocks per multiprocessor that registers must allow">,
    Option<"narrowUnits", "narrow-units", "int64_t", /*default=*/"0", "Units "
           "(sequences times value heads) from which 'narrow' is taken; 0: none">,
    Option<"onePlaneBlocks", "one-plane-blocks", "int64_t", /*default=*/"4",
           "The same where one plane of a state is in registers">,
    Option<"upperBlocks", "upper-blocks", "int64_t", /*default=*/"3",
           "The same with the upper one of two">,
    Option<"twoPlaneBlocks", "two-plane-blocks", "int64_t", /*default=*/"2",
           "The same with two planes in registers">,
    Option<"sparseUnits", "sparse-units", "int64_t", /*default=*/"0", "Units of "
           "a launch up to which 'sparse' is taken where tokens see one plane: "
           "blocks as with two, which keep the state; 0: no such variant">,
    Option<"sparseRows", "sparse-rows", "int64_t", "0", "Rows from which two turns "
           "of these blocks take the place of two of 'upper-blocks'; 0: none">,
    Option<"crowdedUnits", "crowded-units", "int64_t", /*default=*/"0", "Units "
           "from which 'crowded' is taken for states in planes; 0: no variant">,
    Option<"crowdedThreads", "crowded-threads", "int64_t", /*default=*/"128",
           "Threads per block of that variant">,
    Option<"crowdedOnePlaneBlocks", "crowded-one-plane-blocks", "int64_t",
           /*default=*/"5", "Its blocks with one plane in registers">,
    Option<"crowdedUpperBlocks", "crowded-upper-blocks", "int64_t",
           /*default=*/"6", "The same with the upper one of two">,
    Option<"crowdedTwoPlaneBlocks", "crowded-two-plane-blocks", "int64_t",
           /*default=*/"4", "Its blocks with two planes in registers">,
    Option<"crowdedNarrowUnits", "crowded-narrow-units", "int64_t",
           /*default=*/"0", "Units of a launch from which 'crowded' is taken "
           "where tokens are pending and a state has 16 bits; 0: no variant">,
    Option<"crowdedNarrowBlocks", "crowded-narrow-blocks", "int64_t",
           /*default=*/"4", "Its blocks with such a state in registers">
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
  let summary = "Persistent blocks with a ring of states, for many units";
  let description = [{
    Adds a second program to tile programs that have one `gdn_tile.delta_scan`
    or `gdn_tile.delta_replay`, of a single token: the variant "persistent" of the entry. Its blocks are
    persistent: each works on many units, and its warps have roles that exchange
    tiles through channels:

        warps 0 .. 3   scan: some rows of a state at a time, from the ring
                       through registers to memory
        warp 4         query
        warp 5         key
        warp 6         value and gates
        warp 7         what follows from the output
        warp 8         bulk copies of states into the ring, prefetches

    Of a `gdn_tile.delta_replay` the scan multiplies states with key and query,
    and stores a state only if it receives its pending tokens; warp 7 adds what
    these give, and one warp more copies them ahead:

        warp 9         pending tokens of units to come, and for all other warps
                       what a unit is: its coordinates, and its slot if it is
                       live

    Each role would compute that for itself otherwise, a fifth of the scan's
    time. A launch takes the variant from `replay-units` units on.

    A warp waits only for what it needs next. The states of the next units are
    copied into the ring while the current unit is computed. A launch takes the
    variant if it has from `min-units` to `max-units` units and may begin before
    the launch ahead has ended (`dependent`). If it may not, the variant "rows"
    is as fast. The original programs are left for
    `gdn-schedule-resident-recurrence`, which schedules that variant.

    **Runs after** `convert-gdn-to-tile` with `value-heads` and
    `gdn-tile-fuse-rows`; **before** `gdn-schedule-resident-recurrence`.

    **Needs**: tile programs, a value head per block; a target with bulk copies.

    **Leaves**: a function `<entry>_persistent` of `gdn_gpu`, with
    `stage_of`, `variant` and `conditions` in `gdn_tile.stage`, for each
    program that it can schedule. It adds none to programs with rows of the
    state that are not a multiple of 16 bytes, with a state that is not read and
    written as a whole, with a state that does not fit twice into the shared
    memory of a block, or with a decay per channel.

    **Numerics**: the same bits as `gdn-schedule-resident-recurrence`: a row of
    the state is in the same number of lanes, in the same order.

    **Fails** with an error on a scan with an erase key, or on an op before or
    after the scan that the schedule does not take.

    Before and after: `test/Schedule/persistent-recurrence.mlir`.
  }];
  let options = [
    Option<"replayUnits", "replay-units", "int64_t", /*default=*/"288",
           "Units from which a launch with pending tokens takes the variant; 0: "
           "none does">,
    Option<"maxNarrowReplayUnits", "max-narrow-replay-units", "int64_t",
           /*default=*/"2147483647",
           "Units up to which a launch with pending tokens takes it where the "
           "state has 16 bits and tensor cores take it as it is; below "
           "replay-units: none does">,
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
  let summary = "Hold the state in registers over many tokens: GPU blocks";
  let description = [{
    Turns tile programs whose only `gdn_tile.delta_scan` is in a loop over the
    tokens of a sequence into programs of a block of GPU threads. As in
    `gdn-schedule-resident-recurrence`, the state of a value head is in the
    registers of the block, and warps exchange tiles through shared memory. Here
    the operands of eight tokens are computed at once, decays per channel of a
    token by each warp, and each warp finishes the output of one token:

        all warps         load the state wait for the launch ahead; begin to
        copy pending tokens a warp each       query, key, value, gates of the
        tokens -> shared barrier all warps         fold pending tokens into the
        state and store it token by token: scan; output -> shared; store the
        state warps 0 .. 2      store the windows of the convolution after each
        token barrier each warp         gated norm of a token, store the output;
        store what stays pending of a token

    A sequence of more tokens goes on with the next eight.

    The program may say that no sequence has more than eight tokens: its loop
    then ends at the minimum of some number and of its lower bound plus at most
    eight. In this case there is no loop, and with at most four tokens the tiles
    have four tokens. If also inputs have 16 bits, and tensor cores take the
    state or no token is pending, the block has eight warps with 128 registers.
    Two warps of each convolution read its inputs to shared memory and, after a
    barrier, compute operands of a token at a time. Windows are stored last
    unless a token is pending.

    A convolution whose window is carried by the loop becomes a convolution of
    several tokens. A convolution that loads its window at each token, as in a
    tree of tokens, is computed token by token. A state that is loaded inside
    the loop is read back by the threads that wrote it.

    **Runs after** `convert-gdn-to-tile` with `value-heads` and
    `gdn-tile-fuse-rows`; **before** `convert-gdn-gpu-to-nvvm`.

    **Needs**: tile programs, a value head per block.

    **Leaves**: programs of `gdn_gpu` for those with such a loop whose results
    are unused. Other tile programs are left alone, and with a remark those
    whose state does not fit in the registers of a block.

    **Numerics**: as `gdn-schedule-resident-recurrence`, with the same order of
    sums: an f32 state has the bits that steps of one token leave. The exception
    is tokens that stay pending, with a decay per head: their deltas are solved
    for together, where possible by products on tensor cores that are as
    accurate as in f32.

    **Fails** with an error on a scan with an erase key, and on an op that the
    schedule does not take because it is neither before nor after the scan.

    Before and after: `test/Schedule/resident-tokens.mlir`.
  }];
  let options = [
    Option<"threads", "threads", "int64_t", /*default=*/"128",
           "Threads per block; a multiple of 32, at least 128. At least 256 "
           "where tensor cores take the state and no sequence has more tokens "
           "than are computed at once">,
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

def ScheduleScalars : Pass<"gdn-schedule-scalars", "::mlir::ModuleOp"> {
  let summary = "Programs without tiles to GPU blocks";
  let description = [{
    Turns tile programs that store single elements and have no tiles into
    programs of a block of one warp. All lanes compute the same and one stores,
    so that the arrays of a batch, which are small, need no other schedule.

    **Runs after** `convert-gdn-to-tile`; **before** `convert-gdn-gpu-to-nvvm`.

    **Needs**: tile programs.

    **Leaves**: programs of `gdn_gpu` for those without tiles, with
    `gdn_gpu.kernel`. Other tile programs are left alone.

    **Numerics**: integers only.

    **Fails**: never.

    Before and after: `test/Schedule/scalars.mlir`.
  }];
  let dependentDialects = ["::gdn::gpu::GPUDialect"];
  let statistics = [
    Statistic<"numKernels", "kernels", "Kernels scheduled">
  ];
}

def ScheduleSlotMoves : Pass<"gdn-schedule-slot-moves", "::mlir::ModuleOp"> {
  let summary = "Copies and fills of slots to GPU blocks";
  let description = [{
    Turns tile programs that only load or fill tiles and store them into
    programs of a block of GPU threads. A lane moves 16 bytes per access, in a copy
    twice at least, and rows are distributed over all warps. The last warp moves a
    tile whose rows are not contiguous in memory, such as the inputs of a
    convolution by channel.

    Between load and store, one `gdn_tile.delta_fold` may fold pending tokens
    into a state (a commit), or one `gdn_tile.map_rows` may make numbers of f32 of
    a state in planes, or planes of such numbers. The state is in registers
    meanwhile; a large one is computed one block of its rows after another.

    **Runs after** `convert-gdn-to-tile`; **before** `convert-gdn-gpu-to-nvvm`.

    **Needs**: tile programs.

    **Leaves**: programs of `gdn_gpu` for those that move tiles only, with
    `gdn_gpu.kernel`. Other tile programs are left alone.

    **Numerics**: bit-preserving; a fold rounds as the scan that made its deltas
    does.

    **Fails** with an error if `threads` is not a valid size of a block.

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
    Turns tile programs whose products all have 16-bit operands into programs of
    a block of GPU threads. All warps work on each op. A warp computes 16 rows
    of every product (or 32, 48, ..), and left operands stay in its registers.
    Right operands, and tiles that are read transposed, are in shared memory;
    most of them are copied there without a change of layout. The first warp
    computes tiles of rank 1, and tiles of fewer than 16 rows, such as a window
    of a convolution. In a loop over chunks, what an iteration needs first is
    copied during the iteration before it, and the rest while its first products
    run.

    If such a loop also has products that do not depend on what it carries, its
    work is divided among five roles, which exchange tiles through channels:

    - the consumers compute the inter-chunk recurrence;
    - the producer computes the intra-chunk products;
    - the load role copies tiles, by TMA where tensor maps allow it;
    - the gate role computes what needs no product;
    - the scale role multiplies rows of copied tiles by gates.

    So the intra-chunk work of a chunk is done while the recurrence computes the
    chunk before it.

    Tiles that are no longer needed give their shared memory to later ones.
    Where registers hold an f32 tile transposed, `gdn_tile.map_rows` on it, such
    as a norm of outputs, is transposed as well: a sum over a row becomes a
    `gdn_gpu.column_sum`.

    **Runs after** `convert-gdn-to-tile` with `chunk-stages=staged` and
    `gdn-tile-fuse-rows`; **before** `gdn-gpu-place-barriers`.

    **Needs**: tile programs, a value head per block.

    **Leaves**: programs of `gdn_gpu` for those with such products, without
    barriers: `gdn-gpu-place-barriers` adds these. Other tile programs, and
    those that contain a convolution or a scan over tokens, are left alone.

    A program is also left alone, with a remark that has the figures, if it
    would need more registers than a thread has (by a model of what ptxas needs)
    or more shared memory than a block has. With `warpgroups`, a program gets
    the field `single_warps` of `gdn_gpu.kernel` if it has too few registers for
    products that four warps make together.

    **Numerics**: products are summed in the order of the instructions of the
    target, from the first inner element to the last. `gdn_tile.prefix_sum` and
    `gdn_tile.suffix_sum` add in a tree. Sums of transposed rows add over warps
    last. `gdn_tile.decay_matrix` is the exponential of a difference of running
    sums, of log decays that are bounded to at least -18: below, the factor is
    zero in 16 bits.

    **Fails** with an error on an op that it does not know, and on a branch
    (`scf.if`) whose results are tiles.

    Before and after: `test/Schedule/tile-products.mlir`, in roles
    `test/Schedule/product-roles.mlir`.
  }];
  let options = [
    Option<"warps", "warps", "int64_t", /*default=*/"8",
           "Warps per multiprocessor that registers must allow; 8 at most for "
           "a program that carries a matrix through a loop">,
    Option<"warpgroups", "warpgroups", "bool", /*default=*/"false",
           "Whether `gdn-gpu-use-warpgroups` follows">,
    Option<"sharedBytes", "shared-bytes", "int64_t",
           /*default=*/"::gdn::gpufacts::maxSharedBytesPerBlock",
           "Bytes of shared memory that a block may have">,
    Option<"blocksAhead", "blocks-ahead", "int64_t", "::gdn::gpufacts::blocksAhead",
           "Blocks whose tokens are prefetched, with a decay per channel">
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
  let summary = "Token-wise programs to GPU blocks, a warp per token group";
  let description = [{
    Takes tile programs of loads, `gdn_tile.map_rows`, convolutions and stores whose last axis is
    pieces of tokens: up to 16, by `token_pieces` of `gdn_tile.stage`. They become programs of a
    block of GPU threads with a warp for each piece, which does the work of that coordinate by
    itself. A lane holds columns of all tokens of its warp. So a convolution needs only the
    registers of its lane, and a norm is a sum over lanes. A block issues all its loads before it
    uses any result of them. Loops may carry tiles.

    A tile of which warps take rows (`gdn_tile.extract_rows`) is the block's, in shared memory.

    Takes in the same way programs of a kernel without a rule, such as a convolution or a norm
    alone: each block is one warp. The last of several blocks may write what they all have read.

    **Runs after** `convert-gdn-to-tile` with `chunk-stages=staged` and
    `gdn-tile-fuse-rows`; **before** `gdn-drop-unscheduled`.

    **Needs**: tile programs, a value head per block.

    **Leaves**: programs of `gdn_gpu` for those; of pieces, with the grid without its last axis.
    Other tile programs are left alone, and so are programs with tiles of more than 64 elements
    per lane, or with a bias of a convolution that is not of f32 in memory.

    **Numerics**: sums over rows are reordered, in an order that depends on the
    number of columns alone.

    **Fails**: never.

    Before and after: `test/Schedule/token-groups.mlir`.
  }];
  let options = [
    Option<"warps", "warps", "int64_t", /*default=*/"32",
           "Warps per multiprocessor that registers must allow; half as "
           "many where a lane has more than 256 bits of a loaded tile, and "
           "half where a block has more than two warps and so short pieces">
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
    Removes functions with a grid in `gdn_tile.stage` that are not programs of `gdn_gpu`.
    If one stage of a variant is removed, all other stages of that variant are
    removed too; a stage of several variants stays for those that are complete.
    If nothing is left of an entry, it has no code for this target, and
    `gdn-compile` warns. Other targets of the image may still have code for it.

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
