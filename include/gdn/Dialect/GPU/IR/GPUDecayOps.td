// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Work on matrices with a decay per channel.
#ifndef GDN_DIALECT_GPU_IR_GPUDECAYOPS_TD
#define GDN_DIALECT_GPU_IR_GPUDECAYOPS_TD

include "gdn/Dialect/GPU/IR/GPUDialect.td"
include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def GPU_DecayOperandsOp : GPU_Op<"decay_operands", [
    AllTypesMatch<["query", "key"]>,
    AllTypesMatch<["query_scores", "key_scores"]>]> {
  let summary = "What products of a chunk take, with a decay per channel";
  let description = [{
    As `gdn_tile.decay_operands`, with the roundings that it fixes. A warp has 16
    tokens. `query` and `key` hold these; behind the op they hold `from_query` and
    `from_key` of it, in place, f16 whatever their type was, and `to_end` and `end` hold what they are called after.
    `sums` holds what the warps pass to each other; what it held is lost.

    Scores within the 16 tokens of a warp are products of tf32, others of f16; decays are
    exponentials of sums of logs in f16, which `to_end` holds on the way.

    **Preconditions**

    - (C1) `log_decay` is f32 with 16 rows per warp and a multiple of 16 columns, in the layout of
      `getLogRows`; the results are f32 in a layout of matrix instructions, with a row and a column for
      each of its rows.
    - (C2) `query`, `key` and `to_end` are swizzled and in the shape of `log_decay`;
      `query` and `key` are of f16 or bf16, `to_end` of f16.
    - (C3) `sums` is f32, not swizzled, with as many columns as `log_decay` and the
      rows of `countSumRows`; `end` is f32 with an element for each column.
    - (C4) it is not inside a `gdn_gpu.warps`.
    - (C5) a `gdn_gpu.barrier` stands between this op and the last access to a buffer of
      it before it, and behind this op before the next; checked on the function.

    **Example**

    ```mlir
    #logs = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
    #rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
    func.func @operands(%g: !gdn_gpu.fragment<64x32xf32, #logs>)
        attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
      %q = gdn_gpu.alloc : !gdn_gpu.shared<64x32xf16, swizzled>
      %k = gdn_gpu.alloc : !gdn_gpu.shared<64x32xf16, swizzled>
      %t = gdn_gpu.alloc : !gdn_gpu.shared<64x32xf16, swizzled>
      %s = gdn_gpu.alloc : !gdn_gpu.shared<11x32xf32>
      %e = gdn_gpu.alloc : !gdn_gpu.shared<32xf32>
      %p, %l = gdn_gpu.decay_operands %g, %q, %k, %t, %s, %e
          : !gdn_gpu.fragment<64x32xf32, #logs>, !gdn_gpu.shared<64x32xf16, swizzled>,
            !gdn_gpu.shared<64x32xf16, swizzled>, !gdn_gpu.shared<11x32xf32>, !gdn_gpu.shared<32xf32>
          -> !gdn_gpu.fragment<64x64xf32, #rows>
      return
    }
    ```
  }];
  let arguments = (ins GPU_FragmentType:$log_decay,
                       Arg<GPU_SharedType, "query", [MemRead, MemWrite]>:$query,
                       Arg<GPU_SharedType, "key", [MemRead, MemWrite]>:$key,
                       Arg<GPU_SharedType, "to_end", [MemRead, MemWrite]>:$to_end,
                       Arg<GPU_SharedType, "sums", [MemRead, MemWrite]>:$sums,
                       Arg<GPU_SharedType, "end", [MemRead, MemWrite]>:$end);
  let results = (outs GPU_FragmentType:$query_scores, GPU_FragmentType:$key_scores);
  let assemblyFormat = [{
    $log_decay `,` $query `,` $key `,` $to_end `,` $sums `,` $end attr-dict
    `:` type($log_decay) `,` type($query) `,` type($to_end) `,` type($sums) `,` type($end)
    `->` type($query_scores)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    static constexpr int64_t block = 16;
    /// As of `gdn_tile.decay_operands`.
    static constexpr float leastLogOfScores = -14;
    static constexpr float scaleOfScores = 1 + 0x1p-10f;
    /// Rows of `sums` for `warps` warps: of each warp its decay; two in the
    /// place of one, what lies before and behind it, and of each two warps what
    /// lies between them.
    static int64_t countSumRows(int64_t warps);
    static SharedType getSumsType(FragmentType logDecay);
    static SharedType getTileType(FragmentType logDecay);
    static FragmentType getScoresType(FragmentType logDecay);
    /// The layout of log decays: four columns for a lane, and as many lanes for
    /// a row as there can be, so that it comes from memory as whole lines.
    static RowsAttr getLogRows(mlir::VectorType logDecay, int64_t warps);
  }];
}

//===-- One chunk by roles --------------------------------------------------===//
//
// A chunk of 32 tokens and 128 channels, in place, by three roles. What lies
// where, with panels of 128 bytes a row of `log_decay` (32 channels each):
//
//   tile        when it comes   when it goes
//   query       queries         from_query, f16
//   key         keys            from_key, f16
//   log_decay   log decays      panels 0, 2: to_end, f16, of 64 channels each;
//                               panels 1, 3: lost
//   products    zeros above     columns 0-31: T, the inverse times beta;
//               diagonals       columns 32-63: P, scores of queries
//   end                         decays of the chunk
//
// decay_within (4 warps) -> decay_between (2) -> block_inverses, join_inverses
// (1). block_inverses runs beside decay_between.

class GPU_ChunkDecayOp<string mnemonic, list<Trait> traits = []>
    : GPU_Op<mnemonic, traits> {
  let hasVerifier = 1;
}

def GPU_DecayWithinOp : GPU_ChunkDecayOp<"decay_within", [AllTypesMatch<["query", "key"]>]> {
  let summary = "Decays, and scores within 16 tokens, of a chunk";
  let description = [{
    The first of three steps that make of a chunk what its products take, with a
    decay per channel. Warp `2 b + c` of four has the block of tokens
    `16 b` to `16 b + 15` and the channels `64 c` to `64 c + 63`; it touches no other part
    of `query`, `key` and `log_decay`. Behind the op:

    - rows of `query` and `key` are multiplied by the decay from the first of the
      block's tokens up to theirs, f16;
    - keys times the decay from behind them to the last token of the block are in
      `first_keys` for the first block, and for the second in `log_decay`, in
      rows 16 to 31 of what is `to_end` in the end;
    - `decays` has the decays of both blocks;
    - panels 1 and 3 of `log_decay` hold sums of scores, for `block_inverses`.

    Log decays of f16, in panels 0 and 2 before the op, are `scaleOfNarrowLogs` of
    `gdn_tile.decay_operands` times the logs. With `norms` rows of queries are multiplied by its
    first row, those of keys by its second, before all else.

    Scores are products of tf32: with `x` a query or a key, `x_i e^(g_f + ... + g_i)` by
    `k_j e^-(g_f + ... + g_j)`, where `f` is the first of the eight tokens that have both, or the
    middle of 16. Where the decay of a block is less than 2^-120, it is the middle for all of 16
    channels, and logs of less than -9.7 count as -9.7.
    Decays are exponentials of sums of logs, which are products of tf32, too, or of f16.

    **Preconditions**

    - (C1) `query` and `key` are 32 x 128 of f16 or bf16, `log_decay` is of that shape and f32, or
      f16 with `apart = 2`, `first_keys` 16 x 128 of f16; all are swizzled.
    - (C2) `decays` is 2 x 128 and `norms` 2 x 32 of f32, not swizzled.
    - (C3) it is run by four warps.
    - (C4) no element of `log_decay` is positive; those of f16 are finite or NaN. Not checked.
    - (C5) a `gdn_gpu.barrier` or a channel orders it and other accesses to its tiles; barriers
      are checked on the function.

    **Example**

    ```mlir
    !tile = !gdn_gpu.shared<32x128xbf16, swizzled>
    !logs = !gdn_gpu.shared<32x128xf32, swizzled>
    !first = !gdn_gpu.shared<16x128xf16, swizzled>
    func.func @within() attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
      %q = gdn_gpu.alloc : !tile
      %k = gdn_gpu.alloc : !tile
      %g = gdn_gpu.alloc : !logs
      %f = gdn_gpu.alloc : !first
      %d = gdn_gpu.alloc : !gdn_gpu.shared<2x128xf32>
      gdn_gpu.decay_within %q, %k, %g, %f, %d
          : !tile, !logs, !first, !gdn_gpu.shared<2x128xf32>
      return
    }
    ```
  }];
  let arguments = (ins Arg<GPU_SharedType, "query", [MemRead, MemWrite]>:$query,
                       Arg<GPU_SharedType, "key", [MemRead, MemWrite]>:$key,
                       Arg<GPU_SharedType, "log_decay", [MemRead, MemWrite]>:$log_decay,
                       Arg<GPU_SharedType, "first_keys", [MemWrite]>:$first_keys,
                       Arg<GPU_SharedType, "decays", [MemWrite]>:$decays,
                       Arg<Optional<GPU_SharedType>, "norms", [MemRead]>:$norms);
  let assemblyFormat = [{
    $query `,` $key `,` $log_decay `,` $first_keys `,` $decays (`norms` `(` $norms^ `)`)? attr-dict
    `:` type($query) `,` type($log_decay) `,` type($first_keys) `,` type($decays)
    (`,` type($norms)^)?
  }];
  let extraClassDeclaration = [{
    static constexpr int64_t block = 16, tokens = 32, channels = 128;
    /// Of e to base 2, a little more for what tf32 takes off logs.
    static constexpr float log2e = 1.443359375f;
    /// As of `gdn_tile.decay_operands`.
    static constexpr float scaleOfNarrowLogs = 256 * 1.442695041f;
    /// To base 2.
    static constexpr float leastLogDecayOfScores = -120;
    static constexpr float leastLogOfScores = -9.7f;
    /// For what tf32 takes off both factors.
    static constexpr float scaleOfScores = 1 + 0x1p-10f;
  }];
}

def GPU_DecayBetweenOp : GPU_ChunkDecayOp<"decay_between", [AllTypesMatch<["query", "key"]>]> {
  let summary = "Scores of 16 tokens with those before, and decays of blocks";
  let description = [{
    The second step, by two warps: one has the queries, one the keys of tokens 16 to 31.
    They are multiplied with `first_keys`, and then get the decay of the first block.
    `first_keys` go to rows 0 to 15 of `to_end`, in `log_decay`, with the decay of the second block,
    by each warp 64 channels of them; the second
    writes `end`. Scores of queries times `scale` go to `products`, rows 16 to 31 and columns 32 to 47;
    those of keys into panel 3 of `log_decay`, for `join_inverses`.

    Before it, `decay_within` of the chunk is done by all of its warps. Behind it
    `first_keys` and `decays` are free for the next but one chunk.

    **Preconditions**

    - (C1) `query` and `key` are 32 x 128 of f16; `log_decay` and `first_keys` are those of
      `decay_within`.
    - (C2) `decays` is 2 x 128, `end` 128 of f32, not swizzled; `products` is 32 x 64 of f16, swizzled.
    - (C3) it is run by two warps.
    - (C4) as `decay_within` (C5).

    **Example**

    ```mlir
    !tile = !gdn_gpu.shared<32x128xf16, swizzled>
    !logs = !gdn_gpu.shared<32x128xf32, swizzled>
    !first = !gdn_gpu.shared<16x128xf16, swizzled>
    !products = !gdn_gpu.shared<32x64xf16, swizzled>
    func.func @between(%q: !tile, %k: !tile, %g: !logs, %f: !first,
                       %d: !gdn_gpu.shared<2x128xf32>, %p: !products,
                       %e: !gdn_gpu.shared<128xf32>, %s: f32)
        attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
      gdn_gpu.decay_between %q, %k, %g, %f, %d, %p, %e scale(%s)
          : !tile, !logs, !first, !gdn_gpu.shared<2x128xf32>, !products,
            !gdn_gpu.shared<128xf32>
      return
    }
    ```
  }];
  let arguments = (ins Arg<GPU_SharedType, "query", [MemRead, MemWrite]>:$query,
                       Arg<GPU_SharedType, "key", [MemRead, MemWrite]>:$key,
                       Arg<GPU_SharedType, "log_decay", [MemWrite]>:$log_decay,
                       Arg<GPU_SharedType, "first_keys", [MemRead]>:$first_keys,
                       Arg<GPU_SharedType, "decays", [MemRead]>:$decays,
                       Arg<GPU_SharedType, "products", [MemWrite]>:$products,
                       Arg<GPU_SharedType, "end", [MemWrite]>:$end,
                       F32:$scale);
  let assemblyFormat = [{
    $query `,` $key `,` $log_decay `,` $first_keys `,` $decays `,` $products `,` $end
    `scale` `(` $scale `)` attr-dict
    `:` type($query) `,` type($log_decay) `,` type($first_keys) `,` type($decays)
    `,` type($products) `,` type($end)
  }];
}

def GPU_BlockInversesOp : GPU_ChunkDecayOp<"block_inverses"> {
  let summary = "Inverses and scores of the blocks of 16 tokens on the diagonal";
  let description = [{
    By one warp, behind `decay_within` of all of its warps and beside `decay_between`.
    Of the sums of scores in panels 1 and 3 of `log_decay` it makes, in `products`, for each
    block: scores of queries times `scale` up to the diagonal (columns 32 to 63), and the inverse of one
    plus `beta_i` times the scores of keys below the diagonal, its column `j` times
    `beta_j` (columns 0 to 31). Panels 1 and 3 of `log_decay`, but for the last 512 bytes of panel 3,
    are scratch memory.

    Blocks above the diagonal of `products` are not written: they are zero from the start.

    **Preconditions**

    - (C1) `log_decay` is that of `decay_within`, `products` that of `decay_between`.
    - (C2) `beta` is 32 of f32, an element for each lane of a warp:
      `per_row<rows<warps = 1, lanes = 1, vector = 1>>`.
    - (C3) it is run by one warp.
    - (C4) as `decay_within` (C5), but for `join_inverses` of the same warp; inside
      `gdn_gpu.roles` its tiles are of channels; checked on the function.

    **Example**

    ```mlir
    #one = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
    !logs = !gdn_gpu.shared<32x128xf32, swizzled>
    !products = !gdn_gpu.shared<32x64xf16, swizzled>
    func.func @invert(%g: !logs, %p: !products, %s: f32,
                      %b: !gdn_gpu.fragment<32xf32, #gdn_gpu.per_row<#one>>)
        attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
      gdn_gpu.block_inverses %g, %p, %b scale(%s)
          : !logs, !products, !gdn_gpu.fragment<32xf32, #gdn_gpu.per_row<#one>>
      return
    }
    ```
  }];
  let arguments = (ins Arg<GPU_SharedType, "log_decay", [MemRead, MemWrite]>:$log_decay,
                       Arg<GPU_SharedType, "products", [MemRead, MemWrite]>:$products,
                       GPU_FragmentType:$beta, F32:$scale);
  let assemblyFormat = [{
    $log_decay `,` $products `,` $beta `scale` `(` $scale `)` attr-dict
    `:` type($log_decay) `,` type($products) `,` type($beta)
  }];
}

def GPU_JoinInversesOp : GPU_ChunkDecayOp<"join_inverses"> {
  let summary = "The inverse below the blocks on the diagonal";
  let description = [{
    The last step, by the warp of `block_inverses` and behind it, and behind `decay_between` of both
    warps: rows 16 to 31 and columns 0 to 15 of T, in `products`, are minus the second
    inverse by the scores of keys in panel 3 of `log_decay` by the first.

    **Preconditions**

    - (C1) as `block_inverses` (C1).
    - (C2) it is run by one warp.
    - (C3) as `block_inverses` (C4).

    **Example**

    ```mlir
    !logs = !gdn_gpu.shared<32x128xf32, swizzled>
    !products = !gdn_gpu.shared<32x64xf16, swizzled>
    func.func @join(%g: !logs, %p: !products)
        attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
      gdn_gpu.join_inverses %g, %p : !logs, !products
      return
    }
    ```
  }];
  let arguments = (ins Arg<GPU_SharedType, "log_decay", [MemRead]>:$log_decay,
                       Arg<GPU_SharedType, "products", [MemRead, MemWrite]>:$products);
  let assemblyFormat = [{
    $log_decay `,` $products attr-dict `:` type($log_decay) `,` type($products)
  }];
}

#endif // GDN_DIALECT_GPU_IR_GPUDECAYOPS_TD
