// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ops of gdn_tile: block coordinates, memory, rows, and the operations on
// whole tiles that a target expands.
#ifndef GDN_DIALECT_TILE_IR_TILEOPS_TD
#define GDN_DIALECT_TILE_IR_TILEOPS_TD

include "gdn/Dialect/Tile/IR/TileDialect.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/IR/CommonAttrConstraints.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_BlockIdOp : Tile_Op<"block_id", [Pure]> {
  let summary = "Coordinate of this block in the grid";
  let description = [{
    **Preconditions**

    - (C1) the enclosing function has a grid in `gdn_tile.stage` with more than `axis`
      entries.

    **Example**

    ```mlir
    func.func @row() -> index attributes {gdn_tile.stage = {grid = ["N"]}} {
      %n = gdn_tile.block_id 0
      return %n : index
    }
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative]>:$axis);
  let results = (outs Index:$result);
  let assemblyFormat = "$axis attr-dict";
  let hasVerifier = 1;
}

def Tile_LastInGroupOp : Tile_Op<"last_in_group", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "True in the last of the blocks that share something";
  let description = [{
    `count` blocks run the op with the same `group`, each once. It is true in
    exactly one of them, and there all that the others do before the op has been
    done. So that block may overwrite what all of them read.

    **Preconditions**

    - (C1) the enclosing function has `groups` in `gdn_tile.stage`, an array of linear
      forms whose product is the number of groups.
    - (C2) `group` is below the number of groups. Not checked.

    **Example**

    ```mlir
    func.func @turn(%n: index, %count: index) -> i1
        attributes {gdn_tile.stage = {groups = ["N"]}} {
      %last = gdn_tile.last_in_group %n of %count
      return %last : i1
    }
    ```
  }];
  let arguments = (ins Index:$group, Index:$count);
  let results = (outs I1:$last);
  let assemblyFormat = "$group `of` $count attr-dict";
  let hasVerifier = 1;
}

def Tile_SignalOp : Tile_Op<"signal", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "What the block has stored is there for who awaits it";
  let description = [{
    Adds `amount` to the counter at `indices`, behind all stores of the block that stand
    ahead of the op: a block of a later stage that runs beside this one, and has seen
    the sum of all amounts at a `gdn_tile.await_signals`, finds them. A stage ahead of
    both stores zeros there: the bits of 0.0 are the number 0.

    **Preconditions**

    - (C1) one index per dimension of the view, whose elements are f32.

    **Example**

    ```mlir
    func.func @tell(%counters: memref<?x?xf32>, %chunk: index, %head: index) {
      gdn_tile.signal 64, %counters[%chunk, %head] : memref<?x?xf32>
      return
    }
    ```
  }];
  let arguments = (ins
    ConfinedAttr<I64Attr, [IntPositive]>:$amount,
    Arg<AnyMemRef, "view", [MemRead, MemWrite]>:$view,
    Variadic<Index>:$indices);
  let assemblyFormat = "$amount `,` $view `[` $indices `]` attr-dict `:` type($view)";
  let hasVerifier = 1;
}

def Tile_AwaitSignalsOp : Tile_Op<"await_signals", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Waits until a counter has what signals are to add up to";
  let description = [{
    See `gdn_tile.signal`. Who signals has to run already, or to have ended: else the
    block may wait in the place of one that it waits for.

    **Preconditions**

    - (C1) as `gdn_tile.signal` (C1).
    - (C2) the amounts add up to `total`. Not checked.

    **Example**

    ```mlir
    func.func @follow(%counters: memref<?x?xf32>, %chunk: index, %head: index) {
      gdn_tile.await_signals 128, %counters[%chunk, %head] : memref<?x?xf32>
      return
    }
    ```
  }];
  let arguments = (ins
    ConfinedAttr<I64Attr, [IntPositive]>:$total,
    Arg<AnyMemRef, "view", [MemRead]>:$view,
    Variadic<Index>:$indices);
  let assemblyFormat = "$total `,` $view `[` $indices `]` attr-dict `:` type($view)";
  let hasVerifier = 1;
}

def Tile_LoadOp : Tile_Op<"load", [AttrSizedOperandSegments]> {
  let summary = "A tile from memory";
  let description = [{
    Element `(i, j)` of the tile is the view's element at `indices` with `i`
    added to index `dims[0]` and `j` to index `dims[1]`. With `rows(%n)` only
    the first `n` rows are read and the others are zero: rows past a tail, or
    all of them when the tile has no value yet, are never touched. With `whole`,
    `n` is 0 or all rows, and code for it does well to ask that once.

    **Preconditions**

    - (C1) one index per dimension of the view; `dims` names as many distinct
      dimensions of the view as the tile has.
    - (C2) tile and view have the same element type.
    - (C3) `n` is at most the tile's rows, and with `whole` none or all of them; the
      elements that are read lie inside the view. Not checked.
    - (C4) there are `rows` where it is `whole`.

    **Example**

    ```mlir
    func.func @tail(%x: memref<?x?x128xbf16, strided<[?, ?, 1], offset: ?>>,
                    %t: index, %h: index, %n: index) -> vector<16x128xbf16> {
      %c0 = arith.constant 0 : index
      %tile = gdn_tile.load %x[%t, %h, %c0] dims [0, 2] rows(%n)
          : memref<?x?x128xbf16, strided<[?, ?, 1], offset: ?>>, vector<16x128xbf16>
      return %tile : vector<16x128xbf16>
    }
    ```
  }];
  let arguments = (ins
    Arg<AnyMemRef, "view", [MemRead]>:$view,
    Variadic<Index>:$indices,
    DenseI64ArrayAttr:$dims,
    Optional<Index>:$rows, UnitAttr:$whole);
  let results = (outs Tile_AnyTile:$tile);
  let assemblyFormat = [{
    $view `[` $indices `]` `dims` $dims (`rows` `(` $rows^ `)`)? (`whole` $whole^)? attr-dict
    `:` type($view) `,` type($tile)
  }];
  let hasVerifier = 1;
}

def Tile_ExtractRowsOp : Tile_Op<"extract_rows", [Pure]> {
  let summary = "Rows of a tile that follow one another";
  let description = [{
    `result[i, j] = tile[row + i, j]`. With `rows(%n)` that is so if `n` is all
    rows of the result; if it is 0, the result is zero, whatever `row` is.

    **Preconditions**

    - (C1) the result has no more rows than `tile`, as many columns and its
      element type.
    - (C2) the rows lie inside the tile; `n` is 0 or all of them. Not checked.

    **Example**

    ```mlir
    func.func @group(%chunk: vector<67x128xbf16>, %t: index) -> vector<4x128xbf16> {
      %group = gdn_tile.extract_rows %chunk[%t]
          : vector<67x128xbf16> -> vector<4x128xbf16>
      return %group : vector<4x128xbf16>
    }
    ```
  }];
  let arguments = (ins Tile_AnyTile:$tile, Index:$row, Optional<Index>:$rows);
  let results = (outs Tile_AnyTile:$result);
  let assemblyFormat = [{
    $tile `[` $row `]` (`rows` `(` $rows^ `)`)? attr-dict
    `:` type($tile) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_StoreOp : Tile_Op<"store", [AttrSizedOperandSegments]> {
  let summary = "A tile to memory";
  let description = [{
    The mirror image of `gdn_tile.load`: with `rows(%n)` only the first `n`
    rows are written.

    With `full_until_last` a lowering promises that `n` is less than the tile's rows in
    the last turn of the loop around alone (not checked): who copies a tile a turn
    later copies all of it.

    **Preconditions**

    - (C1) one index per dimension of the view; `dims` names as many distinct
      dimensions of the view as the tile has.
    - (C2) tile and view have the same element type.
    - (C3) `n` is at most the tile's rows; the elements that are written lie
      inside the view. Not checked.
    - (C4) with `full_until_last` it has `rows` and stands in the body of an
      `scf.for` whose step is a constant, the tile's rows.

    **Example**

    ```mlir
    func.func @put(%tile: vector<128x128xf32>,
                   %pool: memref<?x?x128x128xf32, strided<[?, ?, ?, 1], offset: ?>>,
                   %slot: index, %h: index) {
      %c0 = arith.constant 0 : index
      gdn_tile.store %tile, %pool[%slot, %h, %c0, %c0] dims [2, 3]
          : vector<128x128xf32>,
            memref<?x?x128x128xf32, strided<[?, ?, ?, 1], offset: ?>>
      return
    }
    ```
  }];
  let arguments = (ins
    Tile_AnyTile:$tile,
    Arg<AnyMemRef, "view", [MemWrite]>:$view,
    Variadic<Index>:$indices,
    DenseI64ArrayAttr:$dims,
    Optional<Index>:$rows, UnitAttr:$full_until_last);
  let assemblyFormat = [{
    $tile `,` $view `[` $indices `]` `dims` $dims (`rows` `(` $rows^ `)`)?
    (`full_until_last` $full_until_last^)? attr-dict `:` type($tile) `,` type($view)
  }];
  let hasVerifier = 1;
}

def Tile_FillOp : Tile_Op<"fill", [Pure]> {
  let summary = "A tile of one value";
  let description = [{
    Every element of the tile is `value`.

    **Preconditions**

    - (C1) `value` has the tile's element type.

    **Example**

    ```mlir
    func.func @zeros() -> vector<16x128xbf16> {
      %zero = arith.constant 0.0 : bf16
      %t = gdn_tile.fill %zero : bf16 -> vector<16x128xbf16>
      return %t : vector<16x128xbf16>
    }
    ```
  }];
  let arguments = (ins AnyTypeOf<[F32, BF16, F16, I8]>:$value);
  let results = (outs Tile_AnyTile:$tile);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($tile)";
  let hasVerifier = 1;
}

def Tile_MapRowsOp : Tile_Op<"map_rows", [
    RecursiveMemoryEffects, SingleBlockImplicitTerminator<"::gdn::tile::YieldOp">]> {
  let summary = "The same work on each row";
  let description = [{
    Runs the body once per row. Its arguments are the row's number and the row
    of each input: a rank-1 vector for a rank-2 tile, a scalar for a rank-1
    tile. `gdn_tile.yield` gives the row of each result. Values from outside
    may be used. Rows are independent of each other.

    **Preconditions**

    - (C1) all inputs and results have the same number of rows; there is at
      least one result.
    - (C2) the body's arguments are an index and the rows of the inputs.
    - (C3) `gdn_tile.yield` gives the rows of the results.

    **Example**

    ```mlir
    func.func @scale_rows(%x: vector<16x128xf32>, %s: vector<16xf32>)
        -> vector<16x128xf32> {
      %y = gdn_tile.map_rows %x, %s : vector<16x128xf32>, vector<16xf32>
          -> vector<16x128xf32> {
      ^bb0(%i: index, %row: vector<128xf32>, %factor: f32):
        %f = vector.broadcast %factor : f32 to vector<128xf32>
        %r = arith.mulf %row, %f : vector<128xf32>
        gdn_tile.yield %r : vector<128xf32>
      }
      return %y : vector<16x128xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<Tile_AnyTile>:$inputs);
  let results = (outs Variadic<Tile_AnyTile>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    ($inputs^ `:` type($inputs))? `->` type($results) $body attr-dict
  }];
  let hasRegionVerifier = 1;
}

def Tile_YieldOp : Tile_Op<"yield", [
    Pure, Terminator, ReturnLike,
    HasParent<"::gdn::tile::MapRowsOp">]> {
  let summary = "What a body gives";
  let description = [{
    Ends the body of a `gdn_tile.map_rows`; see there.
  }];
  let arguments = (ins Variadic<AnyType>:$results);
  let assemblyFormat = "attr-dict ($results^ `:` type($results))?";
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange()); }]>];
}

def Tile_Conv1dOp : Tile_Op<"conv1d", [Pure]> {
  let summary = "Causal depthwise convolution of the tokens of a tile";
  let description = [{
    Rows of `input` are `B` tokens, of which the first `valid` count; `window`
    holds the `K-1` inputs before them, oldest first. With
    `h = window ++ input`:

        result[t]     = bias + sum_j weight[j] * h[t + j],  j = 0 .. K-1
        new_window[p] = h[valid + p],                       p = 0 .. K-2

    in f32, `j` ascending, each product added with one rounding. Rows of
    `result` past `valid` are unspecified.

    **Preconditions**

    - (C1) `input` and `result` are `B x d`, `window` and `new_window`
      `(K-1) x d`, `weight` `K x d` with `K` at least 2, `bias` `d`.
    - (C2) `valid` is at most `B`. Not checked.

    **Example**

    ```mlir
    func.func @conv(%x: vector<16x128xf32>, %win: vector<3x128xf32>,
                    %w: vector<4x128xf32>, %n: index)
        -> (vector<16x128xf32>, vector<3x128xf32>) {
      %y, %next = gdn_tile.conv1d %x, %win, %w valid(%n)
          : vector<16x128xf32>, vector<3x128xf32>, vector<4x128xf32>
      return %y, %next : vector<16x128xf32>, vector<3x128xf32>
    }
    ```
  }];
  let arguments = (ins
    Tile_F32Matrix:$input, Tile_F32Matrix:$window, Tile_F32Matrix:$weight,
    Optional<Tile_F32Row>:$bias, Index:$valid);
  let results = (outs Tile_F32Matrix:$result, Tile_F32Matrix:$new_window);
  let assemblyFormat = [{
    $input `,` $window `,` $weight (`bias` `(` $bias^ `:` type($bias) `)`)?
    `valid` `(` $valid `)` attr-dict
    `:` custom<ConvTypes>(type($input), type($window), type($weight),
                          type($result), type($new_window))
  }];
  let hasVerifier = 1;
}

include "gdn/Dialect/Tile/IR/TileDecayOps.td"
include "gdn/Dialect/Tile/IR/TileMatrixOps.td"
include "gdn/Dialect/Tile/IR/TileRuleOps.td"

#endif // GDN_DIALECT_TILE_IR_TILEOPS_TD
