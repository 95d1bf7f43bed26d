// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Conversions from one level to the next.
#ifndef GDN_CONVERSION_PASSES_TD
#define GDN_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertGDNToTile : Pass<"convert-gdn-to-tile", "::mlir::ModuleOp"> {
  let summary = "Choose the algorithm: gdn kernels to tile programs";
  let description = [{
    Replaces every entry function by the tile program of its kernel. Arguments
    become views: index arguments for all symbols of the entry, then a memref
    per tensor and per result, and a memref and its null slot per pool.
    `gdn.unpack` becomes strided views of the packed argument, grouped by key
    head, so that what follows does not depend on the layout.

    One block serves one row and one key head with its `Hv/Hk` value heads, so
    no two blocks touch the same channel of the convolution state. With
    `value-heads` it serves one value head: the blocks of a key head then share
    the windows of its keys and queries, and the last one writes them
    (`gdn_tile.last_in_group`); `groups` of its `gdn_tile.stage`, forms whose
    product counts the groups, says so. A row is
    done in blocks of `tokens` tokens (one token in a decode entry); the
    state of the recurrence and the windows of the convolution are carried from
    block to block as f32 tiles. The program has one block more than there are
    rows: it writes zeros to the padding, before the first row and behind the
    last. Where ops have checkpoints, the recurrence stops at each in turn and writes
    the carried tiles to its slot. Where they have `token_slots`, the recurrence goes
    token by token and writes them after each; with `parents` a token starts
    from what its parent has written. Where their tokens are pending, those that
    the row accepts are folded into the state, which is written before the recurrence,
    and what the recurrence's own tokens would do to it takes their place
    (`gdn_tile.delta_fold`, and the deltas of `gdn_tile.delta_scan`). A kernel of
    commits has a block per row and value head.

    A kernel of `gdn.pool_copy` and `gdn.pool_zero` moves slots in pieces of up to
    16 KiB, a block for each piece of the first pool of states and each row.

    With `segments` an entry with row bounds also gets the functions of its
    variant `segments`, for devices with more workers than a batch has rows:
    `@<entry>__maps`, `__scan` and `__segments`, which run one after another and
    share a workspace (`workspace` of `gdn_tile.stage`). A row is cut into segments; what
    each does to the state is an affine map; the states between them follow by
    products; then each segment is computed from its own state. Kernels with
    checkpoints, `token_slots` or pending tokens, with `value-heads`, and with windows of the convolution longer
    than a chunk have no such variant.

    With `chunk-stages=staged` it gets those of its variant `staged`: `@<entry>__prologue`, a
    block per piece of 32 tokens and head of values, queries or keys, computes these
    where they are not in memory as products take them; `__intra_chunk`, a
    block per chunk and value head, does all else that does not depend on the state; `__inter_chunk`,
    a block per row and value head, goes from state to state, with states in rows. Where a
    gated norm follows the rule, `__norm`, a block per piece and value head, finds its input in
    a result of the entry, rounded to that result's type. All tokens go in chunks. Chunks have slots in the workspace that need no plan: their
    number is at most `T floordiv C + N`. Variants share `@<entry>__intra_chunk`.

    `variants` says which variants there are; a policy of the target writes it. Each text is a
    name, a colon and fields with `;` between them, all of which may be left out:

    - `v-split=<k>`: so many blocks share the recurrence of a value head, each with a part of the
      state's rows. There is no such variant where `k` does not divide the values, where
      something behind the rule wants whole rows, and with checkpoints.
    - `segments=<n>`: rows are cut into segments, at most `<n> + N` of them:
      `@<entry>__maps_segments_<n>` says what each does to the state, and each is computed at the
      same time.
    - `fused=<c>`: `@<entry>__inter_chunk_fused` prepares `c` chunks at once in the loop over
      them, and needs no `__intra_chunk`. With `by-lengths=<cost>/<workers>` there are two recurrences,
      of whole heads and of V-splits of two, and the lengths of rows decide in which of them blocks do
      anything: `cost` hundredths of the time of a chunk of V-splits of two are that of a whole one,
      on a device of so many multiprocessors.
    - `pieces=<t>`: the variant without `fused` and `segments` that has as many blocks for a
      head, with passes over memory (`@<entry>__prologue_short`, `__norm_short`) in pieces of
      so many tokens; all else and all bits are the other's. It comes first of all.
    - `where=<conditions>` over `keys` and `values`, the sizes of heads: otherwise there is no
      such variant.
    - `when=<conditions>` over `rows`, `heads` (of values), `tokens` and `workers`: launches
      take it then (`conditions` of `gdn_tile.stage`). `keys`, `values` and `chunk` are numbers in it.

    Conditions are products that are compared, `2*rows*heads<=workers`, joined by `&`; in
    parentheses stand alternatives, joined by `|`.
    Kernels that keep f32 operands, kernels with
    `token_slots` or pending tokens, with checkpoints that cut chunks, and kernels that use inputs of the rule
    behind it have no such variant.

    **Runs after** `gdn-fuse`; **before** `convert-tile-to-cpu`.

    **Needs**: one `gdn.kernel` per entry; static head dimensions; all ops of a
    kernel over the same rows and slots.

    **Leaves**: no gdn op. Functions without `gdn.entry` are left alone.

    **Numerics**: f32 accumulation whatever the element types; results are
    rounded once, where they are stored. No reordering of the recurrence in the
    recurrent form; the chunk form sums in the order of its products. With
    `precision=mixed` (or `mixed-io`) the operands of these products are rounded
    to 16 bits by casts that the program shows; kernels whose keys are made of
    f32 inputs, or whose decay is per channel, keep f32 operands. `facts` of `gdn_tile.stage`
    of a function says which it became, from how many tokens on there are chunks,
    and of how many tokens.

    **Fails** with an error on the op that has no tile program: a kernel whose
    results are not zero in skipped rows, `gdn.unpack` of a value that is not an
    argument, two kernels in one entry, ops over different rows or with different
    checkpoints, `token_slots` or `parents`; pending tokens of some of its ops, or
    in slots that `gdn.counted_slots` did not give for the same counts, or for rows of
    other bounds; ops that move slots beside others; on the module where `chunk-stages=staged` comes with
    `precision=f32`.

    Before and after: `test/Conversion/GDNToTile/decode.mlir`, and with
    checkpoints `test/Conversion/GDNToTile/checkpoints.mlir`, with `token_slots`
    `test/Conversion/GDNToTile/token-slots.mlir`, with `parents`
    `test/Conversion/GDNToTile/parents.mlir`, with pending tokens
    `test/Conversion/GDNToTile/pending.mlir`, a commit
    `test/Conversion/GDNToTile/commit.mlir`, slots that are moved
    `test/Conversion/GDNToTile/slot-moves.mlir`, with `chunk-stages=staged`
    `test/Conversion/GDNToTile/staged.mlir`, of segments
    `test/Conversion/GDNToTile/staged-segments.mlir`, fused
    `test/Conversion/GDNToTile/fused.mlir`, and with short pieces
    `test/Conversion/GDNToTile/staged-short.mlir`.
  }];
  let options = [
    Option<"tokens", "tokens", "int64_t", /*default=*/"16",
           "Tokens per block of the recurrent form">,
    Option<"chunk", "chunk", "int64_t", /*default=*/"64",
           "Tokens per chunk of the chunk form">,
    Option<"chunkFrom", "chunk-from", "int64_t", /*default=*/"0",
           "Chunks go on while so many tokens are left of a row, the rest goes "
           "token by token; negative: no chunks; 0: by the rule for 'lanes'">,
    Option<"lanes", "lanes", "int64_t", /*default=*/"0",
           "f32 elements per vector of the CPU that is to run the program, for "
           "the rule of 'chunk-from'; 0: not known, no chunks">,
    Option<"precision", "precision", "::gdn::Precision",
           /*default=*/"::gdn::Precision::f32",
           "Operands of the chunk form's products",
           [{::llvm::cl::values(
               clEnumValN(::gdn::Precision::f32, "f32", "f32, as loaded"),
               clEnumValN(::gdn::Precision::mixed, "mixed",
                          "rounded to f16, as tensor cores take them"),
               clEnumValN(::gdn::Precision::mixedIo, "mixed-io",
                          "the same, with keys, queries and the state in the "
                          "type of the keys in memory"))}]>,
    Option<"chunkStages", "chunk-stages", "::gdn::ChunkStages",
           /*default=*/"::gdn::ChunkStages::onePass",
           "Stages of the chunk form",
           [{::llvm::cl::values(
               clEnumValN(::gdn::ChunkStages::onePass, "one-pass",
                          "one program"),
               clEnumValN(::gdn::ChunkStages::staged, "staged",
                          "also the variant 'staged': what does not depend on "
                          "the state, then the recurrence; in chunks to the end of "
                          "each row"))}]>,
    ListOption<"variants", "variants", "std::string",
               "With 'chunk-stages=staged', the variants of prefill in the order in which "
               "launches ask for them: 'NAME:fused=2;v-split=2;segments=5;where=..;when=..', "
               "see above. None: 'staged:'">,
    Option<"tokenByToken", "token-by-token", "bool", /*default=*/"false",
           "Prefill whose products would take f32 operands goes token by token and "
           "writes states and windows in the turns of the tokens that they are kept "
           "after, as schedules want it that hold a state while tokens pass">,
    Option<"valueHeads", "value-heads", "bool", /*default=*/"false",
           "A block serves one value head instead of one key head">,
    Option<"segments", "segments", "int64_t", /*default=*/"0",
           "Segments of a row in the variant that works on them at the same "
           "time; 0: no such variant">,
    Option<"segmentsFrom", "segments-from", "int64_t", /*default=*/"512",
           "Mean tokens of a row from which a device takes that variant">
  ];
  let statistics = [
    Statistic<"numKernels", "num-kernels", "Kernels converted">,
    Statistic<"numStages", "num-stages", "Stage functions of the variants">
  ];
  let dependentDialects = [
    "::gdn::tile::TileDialect", "::mlir::arith::ArithDialect",
    "::mlir::func::FuncDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def ConvertTileToCPU : Pass<"convert-tile-to-cpu", "::mlir::ModuleOp"> {
  let summary = "Tile programs to loops over vectors in memory";
  let description = [{
    Gives every tile a place in a scratch block and turns the ops of gdn_tile
    into loops over its rows. A tile that is dead after its only use hands its
    place to the result, so carried states are updated in place; the state of a
    single token is read from its pool and written back row by row, without a
    copy.

    The function becomes the entry's code, `(words, begin, end, scratch)`: it
    reads its views from the words of a bound call and runs blocks `begin` to
    `end` of the grid. `scratch_bytes` of `gdn_tile.stage` says how much scratch it needs.

    Rows of the recurrence are split into vectors of `lanes`; the sum over a
    row adds lane by lane first and the lanes in a fixed tree last, the same for
    every token, batch and entry.

    **Runs after** `convert-gdn-to-tile`; **before** the conversion to LLVM.

    **Needs**: tile programs (functions with a grid in `gdn_tile.stage`).

    **Leaves**: arith, math, memref, scf and vector ops (rank 1), llvm ops for
    the words. No gdn_tile op.

    **Numerics**: f32 products are added with one rounding (fused).

    **Fails** with an error on the function or op, before anything is changed:
    a tile program with results, several blocks, or arguments that are neither
    strided memrefs nor indices; a tile that another op than those of gdn_tile
    and `scf.for` makes or uses; gdn_tile ops inside `gdn_tile.map_rows`; a
    product of operands that are not f32 (`gdn-tile-widen-operands` removes
    them).

    Before and after: `test/Conversion/TileToCPU/delta_scan.mlir`.
  }];
  let options = [
    Option<"lanes", "lanes", "int64_t", /*default=*/"16",
           "f32 elements per vector register; 4, 8 or 16">
  ];
  let statistics = [
    Statistic<"numTiles", "num-tiles", "Tiles with a place of their own">,
    Statistic<"numInPlace", "num-in-place", "Results that took over a place">
  ];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect",
    "::mlir::func::FuncDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def ExpandCPUMath : Pass<"gdn-expand-cpu-math", "::mlir::ModuleOp"> {
  let summary = "Functions of math and bf16 conversions as arithmetic";
  let description = [{
    Replaces `math.exp`, `math.log1p` and their kin by polynomials, and
    conversions from and to bf16 by integer arithmetic, so that the code calls
    no library and gives the same bits on every processor.

    **Runs after** `convert-tile-to-cpu`; **before** the conversion to LLVM.

    **Needs**: nothing.

    **Leaves**: `math.sqrt`, `math.rsqrt` and `math.fma`, which are instructions.

    **Numerics**: not bit-preserving: the polynomials are good to a few units in
    the last place of f32.

    **Fails** where a pattern does not converge.

    Before and after: `test/Conversion/TileToCPU/expand-math.mlir`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::vector::VectorDialect"];
}

def ConvertGPUToNVVM : Pass<"convert-gdn-gpu-to-nvvm", "::mlir::ModuleOp"> {
  let summary = "GPU programs to kernels of one thread";
  let description = [{
    Every function with `gdn_gpu.kernel` becomes an `llvm.func` with
    `nvvm.kernel`, the code of one thread. Its parameter is an array of words:
    those of a bound call, then the workspace and the number of units. The block's
    number is its unit, or the first of its units where `blocks_per_sm` of `gdn_gpu.kernel`
    asks for blocks that stay. `gdn_gpu.launch` says what a launch has to know,
    `gdn_gpu.alignments` what each parameter promises.

    A fragment becomes the vector of the thread's elements. Memory is read and
    written in pieces of up to 16 bytes where strides and addresses allow it,
    which the block asks at run time as far as types and `aligned` do not say it;
    what neither `rows` nor the layout gives a thread is not touched. Loads from
    arguments that the program never writes are invariant, unless they stand
    behind `gdn_gpu.await_launch`. Shared tiles share one block of memory, which
    is dynamic beyond 48 KiB. A channel becomes tiles there and two mbarriers for
    each place and part, with as many arrivals as its roles make.

    **Runs after** `gdn-gpu-check`; **before** `gdn-expand-gpu-math` and the
    conversions of arith, math, memref, scf and vector to LLVM.

    **Needs**: programs with `grid` and `symbols` in `gdn_tile.stage`, no results,
    and arguments that are strided memrefs or indices, symbols first.

    **Leaves**: no gdn_gpu op; arith, math, memref views, scf, rank-1 vector, llvm
    and nvvm ops.

    **Numerics**: inside `gdn_gpu.map_rows`, a product that is only added or
    subtracted is not rounded, and the sum over a row goes over even and odd
    places of a thread, then over the lanes in a butterfly: an order that depends
    on layout and size alone. `gdn_gpu.conv1d` adds its products with one
    rounding.

    **Fails** with an error on the function or op, before anything is changed:
    what `gdn-gpu-check` refuses, other signatures than the above, ops of other
    dialects; channels where the target has no bulk copies.

    Before and after: `test/Conversion/GPUToNVVM/kernel.mlir`.
  }];
  let options = [
    Option<"dependentLaunch", "dependent-launch", "bool", /*default=*/"true",
           "The target can begin a launch before the one ahead of it has ended">,
    Option<"bulkCopies", "bulk-copies", "bool", /*default=*/"true",
           "The target has bulk copies and the barriers that count their bytes">,
    Option<"everyThreadArrives", "every-thread-arrives", "bool",
           /*default=*/"false",
           "At barriers of channels each thread of a warp arrives, not one for "
           "all: for tools that look for races">
  ];
  let statistics = [Statistic<"numKernels", "num-kernels", "Kernels made">];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def ExpandGPUMath : Pass<"gdn-expand-gpu-math"> {
  let summary = "Functions of math and conversions of bf16 as instructions";
  let description = [{
    Replaces `math.exp` by two of the chip's powers of two behind an exact
    reduction, `math.rsqrt` and division by the chip's approximations, other
    functions of `math` by polynomials, and conversions from and to bf16 by shifts
    and packed conversions, so that the code calls no library.

    **Runs after** `convert-gdn-gpu-to-nvvm`; **before** the conversion to LLVM.

    **Needs**: f32 functions.

    **Leaves**: `math.sqrt`, `math.fma` and `math.absf`, which are instructions.

    **Numerics**: not bit-preserving. `exp` is good to 2 units in the last place
    from -87 to 88, 0 below where the result would be subnormal, infinity above;
    `rsqrt`, division and reciprocals to 2; other functions to a few.

    **Fails** where a pattern does not converge.

    Before and after: `test/Conversion/GPUToNVVM/expand-math.mlir`.
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::vector::VectorDialect"
  ];
}

#endif // GDN_CONVERSION_PASSES_TD
