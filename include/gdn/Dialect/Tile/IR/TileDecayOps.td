// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sums of log decays along the tokens of a tile, and scores between tokens
// with a decay of their own in every channel.
#ifndef GDN_DIALECT_TILE_IR_TILEDECAYOPS_TD
#define GDN_DIALECT_TILE_IR_TILEDECAYOPS_TD

include "gdn/Dialect/Tile/IR/TileDialect.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_PrefixSumOp : Tile_Op<"prefix_sum", [Pure, SameOperandsAndResultType]> {
  let summary = "Running sums over the rows of a tile";
  let description = [{
    `result[i] = values[0] + ... + values[i]`, added in this order in f32. A
    tile of rank 2 has one sum per column.

    **Preconditions**

    - the result has the type of `values`, f32.

    **Example**

    ```mlir
    func.func @decay(%g: vector<64xf32>, %channels: vector<64x128xf32>)
        -> (vector<64xf32>, vector<64x128xf32>) {
      %sum = gdn_tile.prefix_sum %g : vector<64xf32>
      %sums = gdn_tile.prefix_sum %channels : vector<64x128xf32>
      return %sum, %sums : vector<64xf32>, vector<64x128xf32>
    }
    ```
  }];
  let arguments = (ins Tile_F32Tile:$values);
  let results = (outs Tile_F32Tile:$result);
  let assemblyFormat = "$values attr-dict `:` type($values)";
}

def Tile_SuffixSumOp : Tile_Op<"suffix_sum", [Pure, SameOperandsAndResultType]> {
  let summary = "Sums of the rows after each row of a tile";
  let description = [{
    `result[i] = values[C-1] + ... + values[i+1]`, added in this order in f32;
    the last row is 0. A tile of rank 2 has one sum per column.

    For log decays this is the log decay from token `i` to the end of a chunk.
    A difference of two running sums has the same value, but it is inaccurate:
    after a token with a very small decay both sums are large, and their
    difference cancels.

    **Preconditions**

    - the result has the type of `values`, f32.

    **Example**

    ```mlir
    func.func @decay_to_end(%g: vector<64x128xf32>) -> vector<64x128xf32> {
      %sums = gdn_tile.suffix_sum %g : vector<64x128xf32>
      return %sums : vector<64x128xf32>
    }
    ```
  }];
  let arguments = (ins Tile_F32Tile:$values);
  let results = (outs Tile_F32Tile:$result);
  let assemblyFormat = "$values attr-dict `:` type($values)";
}

def Tile_SumOfPairOp : Tile_Op<"sum_of_pair", [SameOperandsAndResultType]> {
  let summary = "Sums over both blocks that share rows";
  let description = [{
    `result[i] = values[i]` of the block with the number 0 on the last axis of the
    grid, plus that of the block with the number 1: what two blocks of a V-split
    know of whole rows when each has half of their columns. Both blocks come here
    equally often.

    **Preconditions**

    - (C1) the function has a `gdn_tile.stage` with `same_chunks` of 2.
    - (C2) both blocks run the op equally often. Not checked.

    **Example**

    ```mlir
    func.func @squares(%own: vector<64xf32>) -> vector<64xf32>
        attributes {gdn_tile.stage = {grid = ["2"], same_chunks = 2 : i64}} {
      %all = gdn_tile.sum_of_pair %own : vector<64xf32>
      return %all : vector<64xf32>
    }
    ```
  }];
  let arguments = (ins Tile_F32Tile:$values);
  let results = (outs Tile_F32Tile:$result);
  let assemblyFormat = "$values attr-dict `:` type($values)";
  let hasVerifier = 1;
}

def Tile_ExtractRowOp : Tile_Op<"extract_row", [Pure]> {
  let summary = "One row of a tile";
  let description = [{
    `result[j] = tile[row, j]`.

    **Preconditions**

    - (C1) `row` is less than the number of the tile's rows.
    - (C2) the result is one row of `tile`.

    **Example**

    ```mlir
    func.func @last(%sums: vector<64x128xf32>) -> vector<128xf32> {
      %last = gdn_tile.extract_row %sums[63] : vector<64x128xf32> -> vector<128xf32>
      return %last : vector<128xf32>
    }
    ```
  }];
  let arguments = (ins Tile_F32Matrix:$tile,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$row);
  let results = (outs Tile_F32Row:$result);
  let assemblyFormat =
      "$tile `[` $row `]` attr-dict `:` type($tile) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_DecayMatrixOp : Tile_Op<"decay_matrix", [Pure]> {
  let summary = "Decay from each token of a tile to each later one";
  let description = [{
    With `g` the `log_decay` of `C` tokens, for `j <= i`

        result[i, j] = exp(g[j+1] + ... + g[i])

    and 0 for `j > i`, in f32. As in `gdn_tile.suffix_sum`, plain differences of
    running sums are too inaccurate to compute this: after a token with a very
    small decay they cancel. These ways are accurate:

    - sums that begin at `j`;
    - products of the decays of single tokens;
    - differences of running sums, if each log decay is first bounded from below
      by a value whose exponential is zero for the uses of the result.
      `gdn-schedule-tile-products` does so for factors of 16 bits.

    **Preconditions**

    - (C1) the result is `C x C`.
    - (C2) no element of `log_decay` is positive. Not checked.

    **Example**

    ```mlir
    func.func @decay(%g: vector<64xf32>) -> vector<64x64xf32> {
      %e = gdn_tile.decay_matrix %g : vector<64xf32> -> vector<64x64xf32>
      return %e : vector<64x64xf32>
    }
    ```
  }];
  let arguments = (ins Tile_F32Row:$log_decay);
  let results = (outs Tile_F32Matrix:$result);
  let assemblyFormat = [{
    $log_decay attr-dict `:` type($log_decay) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_DecayScoresOp : Tile_Op<"decay_scores", [
    Pure, AllTypesMatch<["query", "key", "log_decay"]>,
    AllTypesMatch<["query_scores", "key_scores"]>]> {
  let summary = "Scores between tokens, with a decay per channel";
  let description = [{
    With `x` the `query` or the `key`, for `j <= i`

        scores[i, j] = sum_d x[i, d] * key[j, d] * e[i, j, d]
        e[i, j, d]   = exp(log_decay[j+1, d] + ... + log_decay[i, d])

    and 0 for `j > i`, in f32. Both results come from one op because they share
    the decays, which cost more than the products.

    With one decay for all channels, `e` could be moved out of the sum, and the
    scores would be a product of matrices; with a decay per channel they are
    not. A target may split `e[i, j, d]` into `exp(G_i - c) * exp(c - G_j)` only
    if neither factor is above 1: `c` has to be the running sum `G_r` of a row
    `j <= r <= i`. The target chooses how it divides the tile into blocks with
    such rows, or whether it multiplies the decays token by token instead.

    **Preconditions**

    - (C1) `query`, `key` and `log_decay` have the same type, `C x dk`.
    - (C2) both results are `C x C`.
    - (C3) no element of `log_decay` is positive. Not checked.

    **Example**

    ```mlir
    func.func @scores(%q: vector<64x128xf32>, %k: vector<64x128xf32>,
                      %g: vector<64x128xf32>)
        -> (vector<64x64xf32>, vector<64x64xf32>) {
      %p, %l = gdn_tile.decay_scores %q, %k decay(%g)
          : vector<64x128xf32> -> vector<64x64xf32>
      return %p, %l : vector<64x64xf32>, vector<64x64xf32>
    }
    ```
  }];
  let arguments = (ins Tile_F32Matrix:$query, Tile_F32Matrix:$key,
                       Tile_F32Matrix:$log_decay);
  let results = (outs Tile_F32Matrix:$query_scores, Tile_F32Matrix:$key_scores);
  let assemblyFormat = [{
    $query `,` $key `decay` `(` $log_decay `)` attr-dict
    `:` type($query) `->` type($query_scores)
  }];
  let hasVerifier = 1;
}

def Tile_DecayOperandsOp : Tile_Op<"decay_operands", [
    Pure, AllTypesMatch<["query", "key"]>,
    AllTypesMatch<["from_query", "from_key", "to_end"]>,
    AllTypesMatch<["query_scores", "key_scores"]>,
    TypesMatchWith<"'log_decay' is f32 and has the shape of 'query'",
                   "query", "log_decay",
                   "::llvm::cast<::mlir::VectorType>($_self).clone("
                   "::mlir::Float32Type::get($_self.getContext()))">,
    TypesMatchWith<"results have f16 and the shape of 'query'",
                   "query", "from_query",
                   "::llvm::cast<::mlir::VectorType>($_self).clone("
                   "::mlir::Float16Type::get($_self.getContext()))">]> {
  let summary = "What products of a chunk take, with a decay per channel";
  let description = [{
    With `x` the `query` or the `key` of `C` tokens, `g` the `log_decay`, and for
    tokens `j <= i`

        e[i, j, d]      = exp(g[j+1, d] + ... + g[i, d])
        scores[i, j]    = sum_d x[i, d] * key[j, d] * e[i, j, d]
        from[i, d]      = x[i, d] * exp(g[0, d] + ... + g[i, d])
        to_end[j, d]    = key[j, d] * e[C-1, j, d]
        end[d]          = exp(g[0, d] + ... + g[C-1, d])

    and 0 for scores with `j > i`, and for those of keys with `j = i`, which no
    one asks for. `from` and `to_end` are f16; scores and `end` are f32.
    All results come from one op because they share decays, which cost more than
    products: each is a product of at most a few of the decays within 16 tokens and
    of those of 16 tokens.

    Scores are products of matrices between blocks of tokens. Their factors are finite
    for any decay. These
    roundings are fixed, because they determine the error: `x` and `key`, decays, and
    a row times a decay are rounded to f16, and sums are f32. Within 16 tokens decays
    are of logs to base 2 that are rounded to f16: of `x` below 0 that changes them by at
    most `|x| e^-|x| 2^-11`, below 2e-4.

    - tokens of one block of 16: with `c[i]` the sum of logs to base 2 from behind the eighth token of
      the block to `i`, and for tokens before that minus the sum from behind `i` to the eighth, the factors
      are `x[i] * 2^c[i]` and `key[j] * 2^-c[j]`, f32 of which the last 13 bits are dropped, and the
      scores are multiplied with `1 + 2^-10`, what that takes off in the mean. Logs below
      -14 count as -14 here, so that factors are finite: a decay of a token is not less than 6e-5;
    - tokens of two blocks of 16: with `s` the first token of the block of `i` and `e`
      the last of the block of `j`, `x[i] * exp(g[s] + ... + g[i])` and
      `(key[j] * exp(g[j+1] + ... + g[e])) * exp(g[e+1] + ... + g[s-1])`;
    - `from` is that left factor times `exp(g[0] + ... + g[s-1])`, and `to_end` the
      right one, `key[j] * exp(g[j+1] + ... + g[e])`, times `exp(g[e+1] + ... + g[C-1])`.

    Other decays are products of `exp(g[t])`, or exponentials of sums of `g` that begin where
    the decay begins; never of a difference of running sums, which is inexact. So are
    `c`, of eight tokens at most.

    **Preconditions**

    - (C1) `log_decay` is f32 and has the shape of `query`, with a multiple of 16 rows
      and a multiple of 16 columns.
    - (C2) the scores are `C x C`, and `end` has an element for each column.
    - (C3) no element of `log_decay` is positive. Not checked.

    **Example**

    ```mlir
    func.func @operands(%q: vector<64x128xf16>, %k: vector<64x128xf16>,
                        %g: vector<64x128xf32>)
        -> (vector<64x64xf32>, vector<64x64xf32>, vector<128xf32>) {
      %p, %l, %fq, %fk, %te, %end = gdn_tile.decay_operands %q, %k decay(%g)
          : vector<64x128xf16> -> vector<64x64xf32>, vector<64x128xf16>, vector<128xf32>
      return %p, %l, %end
          : vector<64x64xf32>, vector<64x64xf32>, vector<128xf32>
    }
    ```
  }];
  let arguments = (ins VectorOfRankAndType<[2], [F16, BF16]>:$query,
                       VectorOfRankAndType<[2], [F16, BF16]>:$key,
                       Tile_F32Matrix:$log_decay);
  let results = (outs Tile_F32Matrix:$query_scores, Tile_F32Matrix:$key_scores,
                      VectorOfRankAndType<[2], [F16]>:$from_query,
                      VectorOfRankAndType<[2], [F16]>:$from_key,
                      VectorOfRankAndType<[2], [F16]>:$to_end,
                      Tile_F32Row:$end);
  let assemblyFormat = [{
    $query `,` $key `decay` `(` $log_decay `)` attr-dict
    `:` type($query) `->` type($query_scores) `,` type($from_query) `,` type($end)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Tokens whose scores with each other are one product, of factors with decays
    /// around their middle.
    static constexpr int64_t block = 16;
    /// To base 2, of a token, in these decays: those of half a block lie in the
    /// range of f32.
    static constexpr float leastLogOfScores = -14;
    /// These factors drop bits, in the mean 2^-11 of each.
    static constexpr float scaleOfScores = 1 + 0x1p-10f;
    /// Of logs that are stored as f16: logs to base 2 times 256, so that those
    /// of a decay of 0 are finite, and of one near 1 not subnormal.
    static constexpr float scaleOfNarrowLogs = 256 * 1.442695041f;
    static constexpr float leastNarrowLog = -65504;
  }];
}

#endif // GDN_DIALECT_TILE_IR_TILEDECAYOPS_TD
