// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Conversions from one level to the next.
#ifndef GDN_CONVERSION_PASSES_TD
#define GDN_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertGDNToTile : Pass<"convert-gdn-to-tile", "::mlir::ModuleOp"> {
  let summary = "Choose the algorithm: gdn kernels to tile programs";
  let description = [{
    Replaces every entry function by the tile program of its kernel. The
    arguments become views: first an index for each symbol of the entry, then
    a memref for each tensor and each result, and for each pool a memref and
    its null slot. `gdn.unpack` becomes strided views of the packed argument,
    grouped by key head, so later passes do not depend on the layout.

    A *unit* is the work of one coordinate of the grid. It computes one
    sequence and one key head with its `Hv/Hk` value heads, so no two units
    touch the same channel of the convolution state. With `value-heads` a unit
    computes one value head. The units of a key head then share the windows of
    its keys and queries, and the last of them writes these windows
    (`gdn_tile.last_in_group`). The field `groups` of the function's `gdn_tile.stage`
    has forms whose product is the number of such groups.

    A sequence is computed in blocks of `tokens` tokens (one token in a decode
    entry). The state of the recurrence and the windows of the convolution are
    carried from block to block as f32 tiles. The grid has one more coordinate
    than there are sequences: that unit writes zeros to the padding tokens
    before the first sequence and after the last.

    - With checkpoints, the recurrence stops at each checkpoint in turn and
      writes the carried tiles to its slot.
    - With `token_slots`, the recurrence goes token by token and writes the
      carried tiles after each token. With `parents`, a token starts from the
      tiles that its parent has written.
    - With pending tokens, the accepted ones are first folded into the state
      (`gdn_tile.delta_fold`), and the state is written. The tokens of this
      step then become pending in their place: the kernel stores their keys,
      decays and deltas (a result of `gdn_tile.delta_scan`), not the new state.
    - With an erase key, the recurrence goes token by token, whatever
      `chunk-from` says: none of the variants below has a form for it.

    A kernel of commits has a unit for each sequence and value head. A kernel of
    `gdn.pool_copy` and `gdn.pool_zero` moves slots in pieces of up to `slot-piece`
    bytes: it has a unit for each piece of the first pool of states and each
    sequence.

    With `segments`, an entry with `cu_seqlens` also gets the functions of its
    variant `segments`, for devices with more workers than a batch has
    sequences: `@<entry>__maps`, `__scan` and `__segments`. They run one after
    another and share a workspace (`workspace` of `gdn_tile.stage`). Each sequence is cut
    into segments. `__maps` computes the outputs of the first segment, and an
    affine map of the state for each segment between the first and the last.
    `__scan` applies these maps one after another, which gives the state at the
    start of each segment. `__segments` computes the other segments from these
    states. There is no such variant of a kernel with checkpoints, `token_slots`
    or pending tokens, with `value-heads`, or with convolution windows longer
    than a chunk.

    With `segment-maps`, an entry that could have that variant gets
    `@<entry>__segment_maps`, the only stage of its variant `segment-maps`. It
    computes the map of each whole sequence, and keeps `H`, then `P`, of all
    sequences in the workspace. No launch takes the variant unless it is told to.

    With `segments` and `value-heads`, a ragged convolution without a rule gets
    the variant `segments`, too: `@<entry>__segments` alone, since outputs
    depend on nothing but the inputs ahead of them. The block that comes last of
    all segments of a sequence writes its window.

    With `chunk-stages=staged`, an entry also gets the stages of its variant
    `staged`:

    - `@<entry>__prologue` computes values, queries and keys where they are not
      yet in memory in the form that products take. It has a unit for each piece
      of 32 tokens and each head of values, queries or keys.
    - `__intra_chunk` computes the rest of what does not depend on the state. It
      has a unit for each chunk and value head.
    - `__inter_chunk` is the recurrence from state to state. It has a unit for
      each sequence and value head, and states in rows.
    - `__norm` exists where a gated norm follows the rule. It reads its input
      from a result of the entry, where it has been rounded to the type of that
      result. It has a unit for each piece and value head.

    All tokens are computed in chunks. The place of a chunk in the workspace
    follows from `cu_seqlens` without a plan; there are at most
    `T floordiv C + N` chunks. Variants share `@<entry>__intra_chunk`.

    `variants` lists the variants; a policy of the target writes it. Each text
    is a name, a colon, and fields separated by `;`. Every field is optional:

    - `v-split=<k>`: `k` blocks share the recurrence of a value head, and each
      has some rows of the state. The variant is not made if `k` does not divide
      the number of values, if an op after the rule needs whole rows, or if
      there are checkpoints.
    - `segments=<n>`: sequences are cut into at most `<n> + N` segments, which
      are computed at the same time. `@<entry>__maps_segments_<n>` computes the
      map of each. With `fused`, `v-split` and `scan=<t>`, two sequences stay whole if
      the longer one has no more tokens than two segments and `<t>`.
    - `fused=<c>`: `@<entry>__inter_chunk_fused` computes the intra-chunk work
      of `c` chunks at once inside its loop over chunks, so it needs no
      `__intra_chunk`. With `by-lengths=<cost>/<workers>` there are two
      recurrences, one of whole heads and one of V-splits of two. Both are
      launched; the lengths of the sequences decide which of the two does the
      work. `cost` is the time of a chunk of a whole head in hundredths of the
      time of a chunk of a V-split of two, on a device with `workers`
      multiprocessors. With `fused=1` and ready inputs the choice is between stages,
      `@<entry>__intra_chunk_by_lengths` among them, and blocks that prepare their
      chunks: these where the longest sequence takes them, at `cost` hundredths of what
      a chunk of one head takes in stages, no longer than stages take for all.
    - `maps=alone`, with `fused` and nothing else: `@<entry>__maps_alone` is all
      that the variant has. It computes the map of each whole sequence, without
      outputs, and keeps `H`, then `P`, of all sequences at the beginning of the
      workspace, in f32. Neither pools nor results are written. Chunks lie behind
      the maps, so it has a prologue of its own (`@<entry>__prologue_alone`)
      where others have one. Without `fused`, with or without `v-split`, it is
      for a decay per channel, and has `@<entry>__intra_chunk_alone`.
    - `norm=with-rule`, with `fused`: of kernels with `norm_with_rule` whose keys
      are rounded to f16, the recurrence has the gated norm, so this variant
      needs no `__norm`. The outputs of the rule are rounded as they would be on
      their way to it. What a token's key is multiplied by on its way into the
      state is multiplied by the token's error instead, so that nothing is kept
      of scaled keys. `norm=behind`, with `fused` and without `segments`: of such
      kernels the recurrence takes keys in the same way, and the norm stays
      behind it; the bits are those of `norm=with-rule`. Then `__norm` has
      `row_values`, for the order of its sums, also for other variants. With
      `by-lengths` the recurrence of whole heads has the norm, and
      `@<entry>__norm_by_lengths` stands behind the other, with no more blocks
      than run at the same time. `norm=follows`, with `fused=2`, `v-split=2`
      and without `conv`, of kernels with a norm whose values a prologue leaves
      in the workspace, and without states in planes: the norm runs beside the
      recurrence
      (`follows` of `gdn_tile.stage`), which signals each chunk. The bits are
      those of `norm=behind`, with `segments` those of a norm behind. Such
      variants have a prologue, a recurrence and a norm of their own
      (`@<entry>__prologue_followed`, `.._followed`) and stand before those
      without, but behind those with `conv`; where that cannot be, they are
      left out.
    - `conv=with-rule`, with `fused` and without `segments`: of kernels with
      `conv_with_rule` whose convolution has no bias, inputs of 16 bits and windows of
      the same type, the recurrence convolves the values. Its loop carries the
      window in front of a chunk, the first of which is the pool's. The bits are
      the same. `@<entry>__prologue_keys` computes the rest for such variants.
      With `by-lengths` the recurrence of whole heads does so, and
      `@<entry>__values_by_lengths` computes values where the other is taken.
      Such variants stand before those without, `by-lengths` first.
    - `pieces=<t>`: for few tokens. This variant shares everything with the
      variant that has the same `v-split` and neither `fused` nor `segments`,
      except that its prologue and norm (`@<entry>__prologue_short`,
      `__norm_short`) work in pieces of `t` tokens. The bits are the same. Such
      a variant stands before all others.
    - `chunk=<t>`, with `v-split` and no other of these: chunks of `t` tokens, a power of
      two from 16 on, where other variants may have fewer or more. All stages are the
      variant's own, from `@<entry>__prologue_v_split_<k>_chunk_<t>` to `__norm_..`, and so
      are its bits. The variant is not made of kernels with checkpoints, with
      operands in parts or with a decay per channel. It stands behind variants with
      `conv` and ahead of those that share a prologue.
    - `copies=ahead`, without `fused`, `segments` and `pieces`: the recurrence,
      `@<entry>__inter_chunk_v_split_<k>_ahead`, has `copies_ahead` in `gdn_tile.stage`. The
      bits are the same.
    - `blocks=stay`, with `fused` and without `v-split`, `segments`, `by-lengths` and
      `maps`: the recurrence, `@<entry>__inter_chunk_fused_stay`, has `blocks_stay` in
      `gdn_tile.stage`. The bits are the same.
    - `where=<conditions>` over `keys` and `values`, the sizes of heads,
      `parts`, those of each operand of products, `channels`, 1 with a decay per
      channel and else 0, `bounded`, 1 if those of channels are computed and have a bound
      and else 0, and `scaled`, 1 if queries and keys beside decays of channels have nothing but a
      norm ahead of the rule and else 0: the variant is made only if they hold.
    - `when=<conditions>` over `sequences`, `heads` (value heads), `tokens` and
      `workers`: a launch takes the variant only if they hold
      (`conditions` of `gdn_tile.stage`). They may also use `keys`, `values`, `parts`, `chunk`,
      `norms` and `convs` (1 if recurrences can have the gated norm, or convolve values), `follows`
      (1 if a norm can follow them, `norm=follows`), `computed` (1 if decays of channels are
      computed), `bounded` and `scaled`, which are replaced by numbers.

    - `any-batch=<conditions>` over the same, or `always`, without `segments`: launches
      that ask for the same bits in any batch take the variant if they hold
      (`any_batch` there). Of the variants that have it, those with the bits of
      the first are for such launches.

    Conditions compare products, as in `2*sequences*heads<=workers`, and are joined
    by `&`. Alternatives stand in parentheses and are joined by `|`.

    There are no such variants of kernels that keep f32 operands, that have
    `token_slots`, pending tokens or checkpoints that cut chunks, or that use
    inputs of the rule after the rule.

    **Runs after** `gdn-fuse`; **before** `convert-tile-to-cpu`.

    **Needs**: one `gdn.kernel` per entry; static head dimensions; all ops of a
    kernel over the same sequences and slots.

    **Leaves**: no gdn op. The pass ignores functions without `gdn.entry`.

    **Numerics**: sums are in f32 for all element types; results are rounded
    once, when they are stored. The recurrent form keeps the order of the
    recurrence; the chunk form sums in the order of its products. With
    `precision=mixed` (or `mixed-io`) casts in the program round the operands of
    these products to 16 bits; kernels whose keys are computed from f32 inputs,
    that may write with more than 1, or that have no delta term, keep f32
    operands. In stages those with a delta term and a decay per head take each
    operand in two parts of f16, and three products of parts are one of f32
    (`parts`). `facts` of `gdn_tile.stage` of a function says which precision it has, from how many tokens on it takes
    chunks, and how many tokens a chunk has.

    **Fails** with an error on the op that has no tile program:

    - a kernel whose results are not zero in skipped sequences;
    - `gdn.unpack` of a value that is not an argument;
    - two kernels in one entry;
    - ops over different sequences, or with different checkpoints, `token_slots`
      or `parents`;
    - pending tokens of only some ops of a kernel, or in slots that do not come
      from `gdn.counted_slots` of the same counts and the same `cu_seqlens`;
    - ops that move slots in one kernel with other ops.

    It fails on the module where `chunk-stages=staged` comes with
    `precision=f32`.

    Before and after, all in `test/Conversion/GDNToTile/`: `decode.mlir`;
    `checkpoints.mlir`; `token-slots.mlir`; `parents.mlir`; `pending.mlir`
    (pending tokens); `commit.mlir`; `erase.mlir`; `slot-moves.mlir`; and with
    `chunk-stages=staged` `staged.mlir`, `staged-segments.mlir`, `fused.mlir`
    `fused-norm.mlir` (a norm in the recurrence), `fused-conv.mlir` (the
    convolution of values, too), `staged-short.mlir` (short
    pieces) and `staged-chunk.mlir` (chunks of a variant's own).
  }];
  let options = [
    Option<"tokens", "tokens", "int64_t", /*default=*/"16",
           "Tokens per block of the recurrent form">,
    Option<"chunk", "chunk", "int64_t", /*default=*/"64",
           "Tokens per chunk of the chunk form">,
    Option<"chunkFrom", "chunk-from", "int64_t", /*default=*/"0",
           "A sequence is computed in chunks while at least so many of its "
           "tokens are left, and then token by token; negative: no chunks; "
           "0: chosen by 'lanes'">,
    Option<"lanes", "lanes", "int64_t", /*default=*/"0",
           "f32 elements per vector of the target CPU, from which, with "
           "'form-costs', 'chunk-from' is chosen; 0: not known, no chunks">,
    ListOption<"formCosts", "form-costs", "double",
               "What a token and a chunk cost on the target CPU: the members of "
               "gdn::FormCosts in their order; none: no chunks">,
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
                          "also the variant 'staged': one stage for what does "
                          "not depend on the state, then the recurrence; the "
                          "whole sequence in chunks"))}]>,
    ListOption<"variants", "variants", "std::string",
               "With 'chunk-stages=staged', the variants of prefill, in the "
               "order in which a launch tries them, as in "
               "'NAME:fused=2;v-split=2;segments=5;where=..;when=..' (see "
               "above). None: 'staged:'">,
    Option<"shortChunks", "short-chunks", "std::string", /*default=*/"",
           "With 'chunk-stages=staged' and 'value-heads', for which heads chunks "
           "have fewer tokens: <tokens>:<conditions over keys, values and "
           "parts>">,
    Option<"longestFirst", "longest-first", "bool", /*default=*/"false",
           "With 'chunk-stages=staged', recurrences behind a stage of all chunks "
           "take long sequences first; not where a variant is fused">,
    Option<"tokenByToken", "token-by-token", "bool", /*default=*/"false",
           "Prefill with f32 operands goes token by token, and stores states "
           "and windows in the iteration of their last token, as "
           "gdn-schedule-resident-tokens needs it">,
    Option<"valueHeads", "value-heads", "bool", /*default=*/"false",
           "A unit computes one value head instead of one key head">,
    Option<"segments", "segments", "int64_t", /*default=*/"0",
           "Segments of a sequence in the variant that computes them at the "
           "same time; 0: no such variant">,
    Option<"segmentMaps", "segment-maps", "bool", /*default=*/"false",
           "Whether prefill also has the variant 'segment-maps', which makes "
           "maps of sequences and nothing else">,
    Option<"segmentsFrom", "segments-from", "int64_t", /*default=*/"512",
           "Mean tokens of a sequence from which a device takes that variant">,
    Option<"slotPiece", "slot-piece", "int64_t", /*default=*/"16384",
           "The most bytes of a state that a unit moves of slots that are "
           "copied or zeroed, at least a row">,
    Option<"wholeLoads", "whole-loads", "bool", /*default=*/"false",
           "With 'chunk-stages=staged', passes over memory say which of their "
           "loads have none of their rows or all, so that these stand under one "
           "branch; not in kernels with a decay per channel">,
    Option<"chunkPieces", "chunk-pieces", "int64_t", /*default=*/"0",
           "With 'chunk-stages=staged', tokens of a warp where a block of the "
           "prologue has a chunk of inputs, with the window ahead of it, as one "
           "tile, from which its warps take theirs; 0: each warp loads its own. "
           "Not in kernels with a decay per channel, nor in pieces for few tokens">
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
    Gives every tile a buffer in a block of scratch memory and turns the ops of
    gdn_tile into loops over the rows of their tiles. If a tile has no use after
    the op that reads it, the result takes over its buffer, so carried states
    are updated in place. In a decode step of one token the state is read from
    its pool and written back row by row, without a copy.

    The function becomes the code of the entry, with the signature
    `(words, begin, end, scratch)`: it reads its views from the words of a bound
    call and runs units `begin` to `end` of the grid. `scratch_bytes` of `gdn_tile.stage`
    says how many bytes of scratch memory it needs.

    Rows of the state are split into vectors of `lanes` elements. A sum over a
    row first adds these vectors lane by lane, and then adds the lanes in a
    fixed tree. The order is the same for every token, batch and entry.

    **Runs after** `convert-gdn-to-tile`; **before** the conversion to LLVM.

    **Needs**: tile programs (functions with a grid in `gdn_tile.stage`).

    **Leaves**: arith, math, memref, scf and vector ops (rank 1), llvm ops for
    the words. No gdn_tile op.

    **Numerics**: multiplications and additions of f32 are fused: one rounding.

    **Fails** with an error on the function or op, before any change: a tile
    program with results, with several basic blocks, or with arguments that are
    neither strided memrefs nor indices; a tile that is made or used by an op
    other than `scf.for` and those of gdn_tile; gdn_tile ops inside
    `gdn_tile.map_rows`; a product of operands that are not f32
    (`gdn-tile-widen-operands` removes them).

    Before and after: `test/Conversion/TileToCPU/delta_scan.mlir`.
  }];
  let options = [
    Option<"lanes", "lanes", "int64_t", /*default=*/"16",
           "f32 elements per vector register; 4, 8 or 16">
  ];
  let statistics = [
    Statistic<"numTiles", "num-tiles", "Tiles with a buffer of their own">,
    Statistic<"numInPlace", "num-in-place", "Results that took over a buffer">
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
    Replaces functions such as `math.exp` and `math.log1p` by polynomials, and
    conversions from and to bf16 by integer arithmetic. The code then calls no
    library and gives the same bits on every processor.

    **Runs after** `convert-tile-to-cpu`; **before** the conversion to LLVM.

    **Needs**: nothing.

    **Leaves**: `math.sqrt`, `math.rsqrt` and `math.fma`, which are
    instructions.

    **Numerics**: not bit-preserving: the polynomials are accurate to a few
    units in the last place of f32.

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
    those of a bound call, then the workspace and the number of units. The
    number of a block is its unit, or the first of its units where
    `blocks_per_sm` of `gdn_gpu.kernel` asks for persistent blocks. The attribute
    `gdn_gpu.launch` has what the runtime needs for a launch, and
    `gdn_gpu.alignments` has what the code assumes of each array.

    A fragment becomes a vector of the elements of the thread. Memory is read
    and written in pieces of up to 16 bytes where strides and addresses allow
    it. Where neither types nor `aligned` say whether they do, the code tests it
    at run time. A thread does not touch elements that its layout does not give
    it, nor rows beyond `rows`. Loads from arguments that the program never
    writes are invariant, unless they stand after `gdn_gpu.await_launch`. All
    shared tiles are in one allocation of shared memory, which is dynamic beyond
    48 KiB. A channel becomes tiles there, with two mbarriers for each ring
    stage and part. Each mbarrier expects as many arrivals as the roles make.

    **Runs after** `gdn-gpu-check`; **before** `gdn-expand-gpu-math` and the
    conversions of arith, math, memref, scf and vector to LLVM.

    **Needs**: programs with `grid` and `symbols` in `gdn_tile.stage`, no results,
    and arguments that are strided memrefs or indices, symbols first.

    **Leaves**: no gdn_gpu op; arith, math, memref views, scf, rank-1 vector,
    llvm and nvvm ops, each with the location of the op that it was made of.

    **Numerics**: inside `gdn_gpu.map_rows`, a product that is only added or
    subtracted is fused with that operation. The sum over a row first adds the
    even and the odd elements of each thread, and then the lanes in a butterfly:
    the order depends on layout and size only. `gdn_gpu.conv1d` uses fused
    multiply-adds.

    **Fails** with an error on the function or op, before any change: programs
    that `gdn-gpu-check` refuses, other signatures than the above, ops of other
    dialects, and channels where the target has no bulk copies.

    Before and after: `test/Conversion/GPUToNVVM/kernel.mlir`.
  }];
  let options = [
    Option<"dependentLaunch", "dependent-launch", "bool", /*default=*/"true",
           "The target can begin a launch before the one ahead of it has "
           "ended">,
    Option<"bulkCopies", "bulk-copies", "bool", /*default=*/"true",
           "The target has bulk copies and the barriers that count their "
           "bytes">,
    Option<"everyThreadArrives", "every-thread-arrives", "bool",
           /*default=*/"false",
           "Each thread of a warp arrives at the mbarriers of channels, not "
           "one thread for the warp: for tools that look for races">
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
  let summary = "Functions of math and conversions as instructions";
  let description = [{
    Replaces functions so that the code calls no library:

    - `math.exp` by an exact range reduction and two power-of-two instructions
      of the chip;
    - `math.rsqrt` and division by the approximate instructions of the chip;
    - other functions of `math` by polynomials;
    - conversions from and to bf16 by shifts and packed conversions;
    - the lowest byte and the one above it of four numbers, planes of a state,
      by permutations of bytes, where a thread has registers for it, and
      numbers of such bytes, where it has more.

    **Runs after** `convert-gdn-gpu-to-nvvm`; **before** the conversion to LLVM.

    **Needs**: f32 functions.

    **Leaves**: `math.sqrt`, `math.fma` and `math.absf`, which are instructions.

    **Numerics**: not bit-preserving. `exp` is accurate to 2 units in the last
    place from -87 to 88; below, where the result would be subnormal, it is 0,
    and above it is infinity. `rsqrt`, division and reciprocals are accurate to
    2 units, other functions to a few.

    **Fails** where a pattern does not converge.

    Before and after: `test/Conversion/GPUToNVVM/expand-math.mlir`,
    `permute-bytes.mlir`.
  }];
  let options = [
    Option<"bytesRegisters", "bytes-registers", "int64_t", /*default=*/"0",
           "Registers of a thread from which planes of numbers are "
           "permutations of bytes; 0: never">,
    Option<"numbersRegisters", "numbers-registers", "int64_t",
           /*default=*/"0", "The same of numbers of planes">
  ];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::vector::VectorDialect"
  ];
}

#endif // GDN_CONVERSION_PASSES_TD
