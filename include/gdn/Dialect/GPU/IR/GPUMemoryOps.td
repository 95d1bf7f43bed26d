// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiles between global memory, registers and shared memory.
#ifndef GDN_DIALECT_GPU_IR_GPUMEMORYOPS_TD
#define GDN_DIALECT_GPU_IR_GPUMEMORYOPS_TD

include "gdn/Dialect/GPU/IR/GPUDialect.td"
include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def GPU_LoadOp : GPU_Op<"load", [AttrSizedOperandSegments]> {
  let summary = "A fragment from global memory";
  let description = [{
    As `gdn_tile.load`, into registers: each thread reads what it holds. Buffers
    that hold nothing, and rows from `rows` on, are zero and nothing is read
    for them. `aligned` bytes divide the address of the element at `indices` and
    the strides of all of `dims` but the innermost, in bytes; 0 if nothing is
    known. The code asks at run time what it needs beyond that to read several
    columns at once, and reads element by element where it does not hold.

    With `whole`, `rows` is 0 or all rows: all that is read stands under one
    branch, so that no row waits for another.

    A tile that a `gdn_gpu.begin_load` has begun to load to the buffer `begun` is
    taken from there, once it has come.

    **Preconditions**

    - (C1) one index per dimension of the view; `dims` names as many distinct
      dimensions of the view as the tile has.
    - (C2) tile and view have the same element type.
    - (C3) the elements that are read lie inside the view. Not checked.
    - (C4) `begun` is the place of one `gdn_gpu.begin_load`, which asks for the
      same tile of the same view, at the same indices.
    - (C5) there are `rows` where it is `whole`.

    **Example**

    ```mlir
    #rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
    func.func @state(%pool: memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>,
                     %slot: index, %h: index)
        -> !gdn_gpu.fragment<128x128xf32, #rows>
        attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
      %c0 = arith.constant 0 : index
      %m = gdn_gpu.load %pool[%slot, %h, %c0, %c0] dims [2, 3] aligned 16
          : memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>,
            !gdn_gpu.fragment<128x128xf32, #rows>
      return %m : !gdn_gpu.fragment<128x128xf32, #rows>
    }
    ```
  }];
  let arguments = (ins
    Arg<AnyMemRef, "view", [MemRead]>:$view, Variadic<Index>:$indices,
    DenseI64ArrayAttr:$dims, Optional<Index>:$rows,
    Optional<GPU_SharedType>:$begun,
    DefaultValuedAttr<ConfinedAttr<I64Attr, [IntNonNegative]>, "0">:$aligned,
    UnitAttr:$whole);
  let results = (outs GPU_FragmentType:$tile);
  let assemblyFormat = [{
    $view `[` $indices `]` `dims` $dims (`rows` `(` $rows^ `)`)?
    (`whole` $whole^)? (`begun` `(` $begun^ `:` type($begun) `)`)? (`aligned` $aligned^)? attr-dict
    `:` type($view) `,` type($tile)
  }];
  let builders = [OpBuilder<(ins "::mlir::Type":$tile, "::mlir::Value":$view,
                                 "::mlir::ValueRange":$indices,
                                 "::llvm::ArrayRef<int64_t>":$dims,
                                 "::mlir::Value":$rows, "int64_t":$aligned), [{
    build($_builder, $_state, tile, view, indices, dims, rows,
          /*begun=*/::mlir::Value(), aligned);
  }]>];
  let hasVerifier = 1;
}

def GPU_BeginLoadOp : GPU_Op<"begin_load", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Begins to load a tile, by way of shared memory";
  let description = [{
    Each thread of a warp begins to copy what it will hold of the tile to a part
    of `buffer` of its own, and goes on: until the `gdn_gpu.load` that takes the
    tile from there, no register waits. So the op may stand far ahead of it, also
    ahead of `gdn_gpu.await_launch` where the launch ahead does not write the
    tile. What has to be read element by element is waited for here.

    **Preconditions**

    - (C1) one index per dimension of the view; `dims` names as many distinct
      dimensions of the view as the tile has.
    - (C2) tile, buffer and view have the same element type.
    - (C3) the elements lie inside the view, which is not checked, and nothing writes
      them before the load that takes them; checked on the function where the indices
      of the write are the same values.
    - (C4) the tile is laid out over one warp, whose threads hold no buffers
      without an element; `buffer` has as many elements, and no other use than the
      load.
    - (C5) there is such a load, by the same warps, and it stands behind the op on every
      way; checked on the function.

    **Example**

    ```mlir
    #rows = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
    func.func @early(%weights: memref<?x4xbf16>, %channel: index)
        -> !gdn_gpu.fragment<4x128xbf16, #rows>
        attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
      %c0 = arith.constant 0 : index
      %buffer = gdn_gpu.alloc : !gdn_gpu.shared<512xbf16>
      gdn_gpu.begin_load %weights[%channel, %c0] dims [1, 0], %buffer
          : memref<?x4xbf16>, !gdn_gpu.fragment<4x128xbf16, #rows>,
            !gdn_gpu.shared<512xbf16>
      gdn_gpu.await_launch
      %w = gdn_gpu.load %weights[%channel, %c0] dims [1, 0]
          begun(%buffer : !gdn_gpu.shared<512xbf16>)
          : memref<?x4xbf16>, !gdn_gpu.fragment<4x128xbf16, #rows>
      return %w : !gdn_gpu.fragment<4x128xbf16, #rows>
    }
    ```
  }];
  let arguments = (ins AnyMemRef:$view, Variadic<Index>:$indices,
                       DenseI64ArrayAttr:$dims, GPU_SharedType:$buffer,
                       TypeAttrOf<GPU_FragmentType>:$tile);
  let assemblyFormat = [{
    $view `[` $indices `]` `dims` $dims `,` $buffer attr-dict
    `:` type($view) `,` $tile `,` type($buffer)
  }];
  let hasVerifier = 1;
}

def GPU_PrefetchOp : GPU_Op<"prefetch", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Asks for a tile that will be loaded";
  let description = [{
    Brings what a `gdn_gpu.load` of the tile would read nearer to the
    multiprocessors, as far as all of them, and all launches, see the same of it.
    It changes no value, so it may stand ahead of `gdn_gpu.await_launch`, whatever
    is written in between.

    **Preconditions**

    - (C1) one index per dimension of the view; `dims` names as many distinct
      dimensions of the view as the tile has.
    - (C2) tile and view have the same element type.
    - (C3) the elements lie inside the view. Not checked.

    **Example**

    ```mlir
    #rows = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
    func.func @soon(%weights: memref<?x4xbf16>, %channel: index)
        attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
      %c0 = arith.constant 0 : index
      gdn_gpu.prefetch %weights[%channel, %c0] dims [1, 0]
          : memref<?x4xbf16>, !gdn_gpu.fragment<4x128xbf16, #rows>
      return
    }
    ```
  }];
  let arguments = (ins AnyMemRef:$view, Variadic<Index>:$indices,
                       DenseI64ArrayAttr:$dims, TypeAttrOf<GPU_FragmentType>:$tile);
  let assemblyFormat = [{
    $view `[` $indices `]` `dims` $dims attr-dict `:` type($view) `,` $tile
  }];
  let hasVerifier = 1;
}

def GPU_StoreOp : GPU_Op<"store", [AttrSizedOperandSegments]> {
  let summary = "A fragment to global memory";
  let description = [{
    The mirror image of `gdn_gpu.load`. Where several lanes hold the same
    element, one writes it.

    **Preconditions**

    - (C1) one index per dimension of the view; `dims` names as many distinct
      dimensions of the view as the tile has.
    - (C2) tile and view have the same element type.
    - (C3) the elements that are written lie inside the view. Not checked.
    - (C4) where several blocks have the place, since a coordinate comes in by a division
      alone, it is in a branch that one of them takes, by its coordinate; and where they
      also read it, by `gdn_gpu.last_reader` or `gdn_gpu.is_last`; checked on the function.
    - (C5) a `gdn_gpu.warp_barrier` stands between it and another access of its warp to the
      view by other lanes, unless indices show that the elements are others; checked on
      the function.
    - (C6) a `gdn_gpu.barrier` stands between it and another access of the block to the same
      elements by other threads; checked on the function where the indices are the same
      values. Not behind a load `per_row`, of its place and layout, if rows of that
      layout were added up or compared in between: all lanes of a row have come there.

    **Example**

    ```mlir
    #rows = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
    func.func @put(%y: !gdn_gpu.fragment<16x128xbf16, #rows>,
                   %out: memref<?x128xbf16>, %t: index, %n: index)
        attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
      %c0 = arith.constant 0 : index
      gdn_gpu.store %y, %out[%t, %c0] dims [0, 1] rows(%n)
          : !gdn_gpu.fragment<16x128xbf16, #rows>, memref<?x128xbf16>
      return
    }
    ```
  }];
  let arguments = (ins
    GPU_FragmentType:$tile, Arg<AnyMemRef, "view", [MemWrite]>:$view,
    Variadic<Index>:$indices, DenseI64ArrayAttr:$dims, Optional<Index>:$rows,
    DefaultValuedAttr<ConfinedAttr<I64Attr, [IntNonNegative]>, "0">:$aligned);
  let assemblyFormat = [{
    $tile `,` $view `[` $indices `]` `dims` $dims (`rows` `(` $rows^ `)`)?
    (`aligned` $aligned^)? attr-dict `:` type($tile) `,` type($view)
  }];
  let hasVerifier = 1;
}

def GPU_StoreElementOp : GPU_Op<"store_element"> {
  let summary = "One element to global memory, by one thread";
  let description = [{
    Writes `value`, which all threads that run the op have, to the element at
    `indices`. A truth value takes a byte.

    **Preconditions**

    - (C1) one index per dimension of the view.
    - (C2) `value` has the element type of the view.
    - (C3) the element lies inside the view. Not checked.

    **Example**

    ```mlir
    func.func @put(%slot: i32, %slots: memref<?xi32>, %n: index)
        attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
      gdn_gpu.store_element %slot, %slots[%n] : i32, memref<?xi32>
      return
    }
    ```
  }];
  let arguments = (ins
    AnyTypeOf<[I1, I32, I64]>:$value, Arg<AnyMemRef, "view", [MemWrite]>:$view,
    Variadic<Index>:$indices);
  let assemblyFormat = [{
    $value `,` $view `[` $indices `]` attr-dict `:` type($value) `,` type($view)
  }];
  let hasVerifier = 1;
}

def GPU_AllocOp : GPU_Op<"alloc", [MemoryEffects<[MemAlloc]>]> {
  let summary = "A tile of shared memory";
  let description = [{
    Memory of its own for the life of the block, 16-byte aligned. Its content is
    unspecified until the first `gdn_gpu.store_shared`.

    **Preconditions**

    - (C1) it is directly in the function: memory is there once, whatever runs.

    **Example**

    ```mlir
    func.func @place() -> !gdn_gpu.shared<128xf32>
        attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
      %buffer = gdn_gpu.alloc : !gdn_gpu.shared<128xf32>
      return %buffer : !gdn_gpu.shared<128xf32>
    }
    ```
  }];
  let results = (outs GPU_SharedType:$tile);
  let assemblyFormat = "attr-dict `:` type($tile)";
  let hasVerifier = 1;
}

def GPU_ReshapeOp : GPU_Op<"reshape", [Pure]> {
  let summary = "A tile of shared memory in another shape";
  let description = [{
    The same memory, row-major, as a tile of other sizes or elements: rows of a
    tile may be pieces of a longer row. A smaller tile is the beginning of the memory.
    Accesses through either are accesses of one tile.

    **Preconditions**

    - (C1) elements of `buffer` and `result` have as many bits, and `result` has no more
      of them than `buffer`; where panels of `result` lie apart, it has no more bytes.

    **Example**

    ```mlir
    func.func @halves() attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
      %row = gdn_gpu.alloc : !gdn_gpu.shared<1x256xf32>
      %halves = gdn_gpu.reshape %row
          : !gdn_gpu.shared<1x256xf32> to !gdn_gpu.shared<2x128xf32>
      return
    }
    ```
  }];
  let arguments = (ins GPU_SharedType:$buffer);
  let results = (outs GPU_SharedType:$result);
  let assemblyFormat = "$buffer attr-dict `:` type($buffer) `to` type($result)";
  let hasVerifier = 1;
}

def GPU_StoreSharedOp : GPU_Op<"store_shared"> {
  let summary = "A fragment to shared memory";
  let description = [{
    Writes the tile; with `row` to a rank-2 shared tile a rank-1 tile to that row, a
    rank-2 one to the rows from `row` on; with `transpose` the transpose of the
    tile. Where several lanes hold the same element, one writes it.

    **Preconditions**

    - (C1) fragment and shared tile have the same element type, and the same
      shape; with `row`, the shared tile has rank 2 and the fragment the shape
      of its row, or of some of its rows; with `transpose`, the fragment has the
      shape of its transpose.
    - (C2) a `gdn_gpu.barrier` stands between this op and the last
      `gdn_gpu.load_shared` or `gdn_gpu.store_shared` of the tile before it, other than a
      `gdn_gpu.store_shared` of another row; checked on the function. Rows are taken for
      others unless they are the same value or constants that show that they are not.
    - (C3) the rows lie inside the tile. Not checked.
    - (C4) as `gdn_gpu.load_shared` (C4).
    - (C5) inside a `gdn_gpu.each_warp` of several warps it has `row`, which differs
      from warp to warp so that they write other rows; only that it is there is
      checked.

    **Example**

    ```mlir
    #rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
    func.func @hand_over(%o: !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>)
        attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
      %buffer = gdn_gpu.alloc : !gdn_gpu.shared<128xf32>
      gdn_gpu.store_shared %o, %buffer : !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>,
                                 !gdn_gpu.shared<128xf32>
      return
    }
    ```
  }];
  let arguments = (ins GPU_FragmentType:$tile,
                       Arg<GPU_SharedType, "buffer", [MemWrite]>:$buffer,
                       Optional<Index>:$row, UnitAttr:$transpose);
  let assemblyFormat = [{
    (`transpose` $transpose^)? $tile `,` $buffer (`row` `(` $row^ `)`)? attr-dict
    `:` type($tile) `,` type($buffer)
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$tile, "::mlir::Value":$buffer,
                                 "::mlir::Value":$row), [{
    build($_builder, $_state, tile, buffer, row, /*transpose=*/false);
  }]>];
  let hasVerifier = 1;
}

def GPU_LoadSharedOp : GPU_Op<"load_shared"> {
  let summary = "A fragment from shared memory";
  let description = [{
    Reads the tile, with `row` that row of it, or as many rows from it on as the
    result has, or with `transpose` its transpose, in the layout of the result.
    Positions that hold nothing are zero.

    **Preconditions**

    - (C1) fragment and shared tile have the same element type, and the same
      shape; with `row`, the shared tile has rank 2 and the fragment the shape
      of its row, or of some of its rows; with `transpose`, the fragment has the
      shape of its transpose.
    - (C2) the tile has been shared or copied, with a `gdn_gpu.barrier` between
      that and this op; checked on the function.
    - (C3) `row` lies inside the tile, and is what (C4) asks for. Checked where it is constant and (C4) asks.
    - (C4) with `transpose`, or of a swizzled tile: elements of 16 bits in a
      layout of matrix instructions (`lanes = 4, vector = 2`), sizes that are
      multiples of 8, and no `row`; a swizzled tile may also be read in pieces
      of `vector` elements that divide 16 bytes, all of it or, with a `row` that
      is a multiple of 8, some of its rows. With `transpose`, elements of 32
      bits of a tile that is not swizzled are read one by one, without `row`.

    **Example**

    ```mlir
    #rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
    #row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
    func.func @key(%k: f32) -> !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
        attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
      %buffer = gdn_gpu.alloc : !gdn_gpu.shared<128xf32>
      gdn_gpu.warps 0 for 1 {
        %one = gdn_gpu.fill %k : f32
            -> !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#row>>
        gdn_gpu.store_shared %one, %buffer
            : !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#row>>,
              !gdn_gpu.shared<128xf32>
      }
      gdn_gpu.barrier
      %all = gdn_gpu.load_shared %buffer : !gdn_gpu.shared<128xf32>
          -> !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
      return %all : !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
    }
    ```
  }];
  let arguments = (ins Arg<GPU_SharedType, "buffer", [MemRead]>:$buffer,
                       Optional<Index>:$row, UnitAttr:$transpose);
  let results = (outs GPU_FragmentType:$tile);
  let assemblyFormat = [{
    (`transpose` $transpose^)? $buffer (`row` `(` $row^ `)`)? attr-dict
    `:` type($buffer) `->` type($tile)
  }];
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$buffer,
                                 "::mlir::Value":$row), [{
    build($_builder, $_state, type, buffer, row, /*transpose=*/false);
  }]>];
  let hasVerifier = 1;
}

def GPU_LoadSharedElementOp : GPU_Op<"load_shared_element"> {
  let summary = "One element of a shared tile, in every thread";
  let description = [{
    Reads element `index`, the same in all threads that run the op.

    **Preconditions**

    - (C1) `buffer` has rank 1 and `value` its element type.
    - (C2) ordered by barriers as `gdn_gpu.load_shared` (C2).
    - (C3) `index` lies inside the tile. Not checked.

    **Example**

    ```mlir
    #one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 1>
    func.func @gate(%g: f32, %i: index) -> f32
        attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
      %gates = gdn_gpu.alloc : !gdn_gpu.shared<8xf32>
      gdn_gpu.warps 3 for 1 {
        %t = gdn_gpu.fill %g : f32
            -> !gdn_gpu.fragment<8xf32, #gdn_gpu.per_column<#one>>
        gdn_gpu.store_shared %t, %gates
            : !gdn_gpu.fragment<8xf32, #gdn_gpu.per_column<#one>>,
              !gdn_gpu.shared<8xf32>
      }
      gdn_gpu.barrier
      %x = gdn_gpu.load_shared_element %gates[%i] : !gdn_gpu.shared<8xf32> -> f32
      return %x : f32
    }
    ```
  }];
  let arguments = (ins Arg<GPU_SharedType, "buffer", [MemRead]>:$buffer, Index:$index);
  let results = (outs AnyTypeOf<[F32, BF16, F16, I32]>:$value);
  let assemblyFormat = "$buffer `[` $index `]` attr-dict `:` type($buffer) `->` type($value)";
  let hasVerifier = 1;
}

#endif // GDN_DIALECT_GPU_IR_GPUMEMORYOPS_TD
