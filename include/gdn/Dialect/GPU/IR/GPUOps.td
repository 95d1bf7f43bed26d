// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ops of gdn_gpu: who works, and work on fragments; the others are in the
// files that this one includes.
#ifndef GDN_DIALECT_GPU_IR_GPUOPS_TD
#define GDN_DIALECT_GPU_IR_GPUOPS_TD

include "gdn/Dialect/GPU/IR/GPUChannelOps.td"
include "gdn/Dialect/GPU/IR/GPUConvOps.td"
include "gdn/Dialect/GPU/IR/GPUCopyOps.td"
include "gdn/Dialect/GPU/IR/GPUDecayOps.td"
include "gdn/Dialect/GPU/IR/GPUByteOps.td"
include "gdn/Dialect/GPU/IR/GPUMatrixOps.td"
include "gdn/Dialect/GPU/IR/GPUMemoryOps.td"
include "gdn/Dialect/GPU/IR/GPUOrderOps.td"
include "gdn/Dialect/GPU/IR/GPURoleOps.td"
include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

//===-- Who works ---------------------------------------------------------===//

def GPU_BlockIdOp : GPU_Op<"block_id", [Pure]> {
  let summary = "Coordinate of this unit in the grid";
  let description = [{
    As `gdn_tile.block_id`: the coordinate along `axis` of the unit of work that
    this block does. The last axis runs fastest.

    **Preconditions**

    - (C1) the enclosing function has a grid in `gdn_tile.stage` with more than `axis`
      entries.
    - (C2) in a function with `gdn_gpu.units` it is inside one of them: there it
      is the unit at hand; checked on the function.

    **Example**

    ```mlir
    func.func @row() -> index
        attributes {gdn_gpu.kernel = {threads = 32 : i64}, gdn_tile.stage = {grid = ["N"]}} {
      %n = gdn_gpu.block_id 0
      return %n : index
    }
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative]>:$axis);
  let results = (outs Index:$result);
  let assemblyFormat = "$axis attr-dict";
  let hasVerifier = 1;
}

def GPU_WarpsOp : GPU_Op<"warps", [RecursiveMemoryEffects, NoRegionArguments,
    SingleBlockImplicitTerminator<"::gdn::gpu::YieldOp">]> {
  let summary = "Work of some warps";
  let description = [{
    Warps `first` to `first + count - 1` run the body; the others go past it.
    Layouts inside count their warps from `first`. The results are fragments or
    scalars that only these warps hold: other ops may use them inside a
    `gdn_gpu.warps` of the same warps only.

    **Preconditions**

    - (C1) the warps are there: `(first + count) * 32` is at most
      `threads` of the function's `gdn_gpu.kernel`, or at most what the role around it
      has; `count` is at least 1. It is not inside another `gdn_gpu.warps` that
      is no role.
    - (C2) `gdn_gpu.yield` gives the results.
    - (C3) a result is used inside a `gdn_gpu.warps` of the same warps only.
    - (C4) fragments of ops inside are laid out over `count` warps.
    - (C5) `registers`, which a thread of a role has as long as it runs, are a
      multiple of 8 from 24 to 256; `first` and `count` are multiples of 4, or
      all warps are of one group of four, which begins at a multiple of 4.
    - (C6) with `alternate` it is a role of a function with `cluster = 2` in `gdn_gpu.kernel`:
      of two blocks each has every second place of its channels, from the block's
      number in the cluster on.
    - (C7) with `in_turns` = `N`, at least 2, it is a role, not `alternate`, of `N` groups of as many warps:
      group `I` has every `N`th place of its channels from place `I` on. Ops on channels are inside a
      `gdn_gpu.each_warp` of all its warps; the channels have at least `N` buffers.

    **Example**

    ```mlir
    #row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
    func.func @roles(%x: memref<?xf32>, %buffer: !gdn_gpu.shared<128xf32>)
        attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
      %c0 = arith.constant 0 : index
      gdn_gpu.warps 1 for 1 {
        %t = gdn_gpu.load %x[%c0] dims [0] : memref<?xf32>,
            !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#row>>
        gdn_gpu.store_shared %t, %buffer
            : !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#row>>,
              !gdn_gpu.shared<128xf32>
      }
      return
    }
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative]>:$first,
                       ConfinedAttr<I64Attr, [IntPositive]>:$count,
                       OptionalAttr<I64Attr>:$registers, UnitAttr:$alternate,
                       DefaultValuedAttr<ConfinedAttr<I64Attr, [IntPositive]>, "1">:$in_turns);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $first `for` $count (`registers` $registers^)? (`alternate` $alternate^)? (`in_turns` $in_turns^)?
    (`->` type($results)^)? $body
    attr-dict
  }];
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// The warps that are there for one turn.
    int64_t getTurnWarps() { return getCount() / getInTurns(); }
  }];
}

def GPU_EachWarpOp : GPU_Op<"each_warp", [
    RecursiveMemoryEffects, SingleBlockImplicitTerminator<"::gdn::gpu::YieldOp">]> {
  let summary = "The same work on several warps, each by itself";
  let description = [{
    Warps `first` to `first + count - 1` run the body; the others go past it. The
    body's argument is the number of the warp among them, from 0 on: what is
    computed from it differs from warp to warp, conditions and bounds of loops
    too. Layouts inside are those of one warp. The results are what each warp
    holds of its own.

    **Preconditions**

    - (C1) the warps are there, and it is not inside another `gdn_gpu.warps` or
      `gdn_gpu.each_warp`; as `gdn_gpu.warps` (C1).
    - (C2) `gdn_gpu.yield` gives the results.
    - (C3) a result is used inside a `gdn_gpu.each_warp` of the same warps only.
    - (C4) fragments of ops inside are laid out over one warp.
    - (C5) the body has one argument, an index.

    **Example**

    Each warp a token.

    ```mlir
    #row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
    func.func @tokens(%x: memref<?x128xf32>, %buffer: !gdn_gpu.shared<8x128xf32>)
        attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
      %c0 = arith.constant 0 : index
      gdn_gpu.each_warp 0 for 8 {
      ^bb0(%t: index):
        %row = gdn_gpu.load %x[%t, %c0] dims [1] : memref<?x128xf32>,
            !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#row>>
        gdn_gpu.store_shared %row, %buffer row(%t)
            : !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#row>>,
              !gdn_gpu.shared<8x128xf32>
      }
      return
    }
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative]>:$first,
                       ConfinedAttr<I64Attr, [IntPositive]>:$count);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$first `for` $count (`->` type($results)^)? $body attr-dict";
  let hasRegionVerifier = 1;
}

def GPU_FillOp : GPU_Op<"fill", [Pure]> {
  let summary = "A fragment of one value";
  let description = [{
    Every element of the tile is `value`.

    **Preconditions**

    - (C1) `value` has the tile's element type.

    **Example**

    ```mlir
    #rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
    func.func @zeros() -> !gdn_gpu.fragment<128x128xf32, #rows>
        attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
      %zero = arith.constant 0.0 : f32
      %t = gdn_gpu.fill %zero : f32 -> !gdn_gpu.fragment<128x128xf32, #rows>
      return %t : !gdn_gpu.fragment<128x128xf32, #rows>
    }
    ```
  }];
  let arguments = (ins AnyTypeOf<[F32, BF16, F16, I32, I8]>:$value);
  let results = (outs GPU_FragmentType:$tile);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($tile)";
  let hasVerifier = 1;
}

def GPU_MapRowsOp : GPU_Op<"map_rows", [
    RecursiveMemoryEffects, SingleBlockImplicitTerminator<"::gdn::gpu::YieldOp">]> {
  let summary = "The same work on each row of fragments";
  let description = [{
    As `gdn_tile.map_rows`. The body's arguments are the row's number and, for
    each input, what a row has of it: its row, a rank-1 vector, of a tile in the
    layout `rows`; a scalar of a tile `per_row`; the whole tile, a rank-1 vector,
    of a tile `per_column`, the same for every row. Reductions along a row
    (`vector.reduction`) run over the lanes that hold it, in an order that
    depends on layout and size alone. Work that is the same for every row, such
    as a reduction of tiles `per_column`, is done once.

    With `share_sums` the lanes of a row share out the sums of their rows: as long
    as their number is even a lane goes on with half of them, and in the end it
    loads each row's from the lane that has it. The same additions, with fewer
    shuffles (16 instead of 32 for eight rows over 16 lanes), and two selections
    for each exchange that halves.

    The body computes on whole rows with `arith`, `math`, `vector.broadcast` of a
    scalar and `vector.reduction`; which lane has which columns is not its
    business.

    **Preconditions**

    - (C1) all layouts belong to one `rows` layout; there is at least one result;
      no result is `per_column`; inputs and results agree in rows and columns.
    - (C2) the body's arguments are an index and what a row has of the inputs.
    - (C3) `gdn_gpu.yield` gives what a row has of the results.
    - (C4) the body has no ops but those named above and `vector.step`, the numbers
      of the columns; vectors in it come from the body or are constants of one
      value; reductions add, or take the largest.

    **Example**

    The delta rule for one token: a state of 128 x 128, key and query in every
    row, a value per row.

    ```mlir
    #rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
    func.func @token(
        %m: !gdn_gpu.fragment<128x128xf32, #rows>,
        %k: !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>,
        %v: !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>, %beta: f32)
        -> !gdn_gpu.fragment<128x128xf32, #rows>
        attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
      %next = gdn_gpu.map_rows %m, %k, %v
          : !gdn_gpu.fragment<128x128xf32, #rows>,
            !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>,
            !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
          -> !gdn_gpu.fragment<128x128xf32, #rows> {
      ^bb0(%i: index, %row: vector<128xf32>, %key: vector<128xf32>, %value: f32):
        %product = arith.mulf %row, %key : vector<128xf32>
        %known = vector.reduction <add>, %product fastmath<reassoc> : vector<128xf32> into f32
        %error = arith.subf %value, %known : f32
        %d = arith.mulf %beta, %error : f32
        %all = vector.broadcast %d : f32 to vector<128xf32>
        %change = arith.mulf %all, %key : vector<128xf32>
        %new = arith.addf %row, %change : vector<128xf32>
        gdn_gpu.yield %new : vector<128xf32>
      }
      return %next : !gdn_gpu.fragment<128x128xf32, #rows>
    }
    ```
  }];
  let arguments = (ins Variadic<GPU_FragmentType>:$inputs, UnitAttr:$share_sums);
  let results = (outs Variadic<GPU_FragmentType>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    ($inputs^ `:` type($inputs))? `->` type($results) $body attr-dict
  }];
  // Of the default ones two take the same arguments.
  let skipDefaultBuilders = 1;
  let builders = [
    OpBuilder<(ins "::mlir::TypeRange":$results, "::mlir::ValueRange":$inputs), [{
      $_state.addOperands(inputs);
      $_state.addTypes(results);
      $_state.addRegion();
    }]>];
  let extraClassDeclaration = [{
    /// Creates the body with its arguments; `builder` stands in it then.
    ::mlir::Block *openBody(::mlir::OpBuilder &builder);
  }];
  let hasRegionVerifier = 1;
}

def GPU_YieldOp : GPU_Op<"yield", [
    Pure, Terminator, ReturnLike,
    ParentOneOf<["::gdn::gpu::MapRowsOp", "::gdn::gpu::ConvColumnsOp",
                 "::gdn::gpu::WarpsOp", "::gdn::gpu::EachWarpOp",
                 "::gdn::gpu::UnitsOp"]>]> {
  let summary = "What the body of a gdn_gpu op gives";
  let description = [{
    Ends the body; see there.
  }];
  let arguments = (ins Variadic<AnyType>:$results);
  let assemblyFormat = "attr-dict ($results^ `:` type($results))?";
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange()); }]>];
}

def GPU_Conv1dOp : GPU_Op<"conv1d", [Pure]> {
  let summary = "Causal depthwise convolution of the tokens of a fragment";
  let description = [{
    As `gdn_tile.conv1d`. A lane holds all tokens of its channels, so that
    nothing crosses lanes.

    **Preconditions**

    - (C1) shapes as `gdn_tile.conv1d`, all f32.
    - (C2) rank-2 tiles are in one `rows` layout with one warp and 32 lanes,
      `bias` is `per_column` of it.
    - (C3) `valid` is at most the tokens of `input`. Not checked.

    **Example**

    ```mlir
    #row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
    func.func @conv(%x: !gdn_gpu.fragment<1x128xf32, #row>,
                    %win: !gdn_gpu.fragment<3x128xf32, #row>,
                    %w: !gdn_gpu.fragment<4x128xf32, #row>, %n: index)
        -> (!gdn_gpu.fragment<1x128xf32, #row>, !gdn_gpu.fragment<3x128xf32, #row>)
        attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
      %y, %next = gdn_gpu.conv1d %x, %win, %w valid(%n)
          : !gdn_gpu.fragment<1x128xf32, #row>, !gdn_gpu.fragment<3x128xf32, #row>,
            !gdn_gpu.fragment<4x128xf32, #row>
          -> !gdn_gpu.fragment<1x128xf32, #row>, !gdn_gpu.fragment<3x128xf32, #row>
      return %y, %next
          : !gdn_gpu.fragment<1x128xf32, #row>, !gdn_gpu.fragment<3x128xf32, #row>
    }
    ```
  }];
  let arguments = (ins
    GPU_FragmentType:$input, GPU_FragmentType:$window, GPU_FragmentType:$weight,
    Optional<GPU_FragmentType>:$bias, Index:$valid);
  let results = (outs GPU_FragmentType:$result, GPU_FragmentType:$new_window);
  let assemblyFormat = [{
    $input `,` $window `,` $weight (`bias` `(` $bias^ `:` type($bias) `)`)?
    `valid` `(` $valid `)` attr-dict
    `:` type($input) `,` type($window) `,` type($weight) `->` type($result) `,` type($new_window)
  }];
  let hasVerifier = 1;
}

def GPU_ExtractOp : GPU_Op<"extract", [Pure]> {
  let summary = "One element of a fragment, in every thread that runs the op";
  let description = [{
    Element `index` of a rank-1 tile `per_row`, or of a rank-1 tile
    `per_column`, sent from the lane that holds it.

    **Preconditions**

    - (C1) `tile` is of rank 1 and over one warp; `index` is inside it.
    - (C2) `value` has the tile's element type.

    **Example**

    ```mlir
    #one = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
    func.func @gate(%g: !gdn_gpu.fragment<4xf32, #gdn_gpu.per_row<#one>>) -> f32
        attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
      %x = gdn_gpu.extract %g[2]
          : !gdn_gpu.fragment<4xf32, #gdn_gpu.per_row<#one>> -> f32
      return %x : f32
    }
    ```
  }];
  let arguments = (ins GPU_FragmentType:$tile,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$index);
  let results = (outs AnyTypeOf<[F32, BF16, F16]>:$value);
  let assemblyFormat = "$tile `[` $index `]` attr-dict `:` type($tile) `->` type($value)";
  let hasVerifier = 1;
}

//===-- Order ----------------------------------------------------------------===//

#endif // GDN_DIALECT_GPU_IR_GPUOPS_TD
