// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products on tensor cores, and sums over fragments.
#ifndef GDN_DIALECT_GPU_IR_GPUMATRIXOPS_TD
#define GDN_DIALECT_GPU_IR_GPUMATRIXOPS_TD

include "gdn/Dialect/GPU/IR/GPUDialect.td"
include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def GPU_ShareProductsOp : GPU_Op<"share_products", [
    AllTypesMatch<["first", "second"]>,
    AllTypesMatch<["first_to", "second_to"]>]> {
  let summary = "Products of a fragment's rows with the rows of shared tiles";
  let description = [{
    For each row `r` of `lhs` and each `n` below `rows`

        first_to[n, r]  = lhs[r, :] . first[n, :]
        second_to[n, r] = lhs[r, :] . second[n, :]

    on tensor cores and as good as in f32: each factor is the sum of two parts
    of 11 bits (tf32), and of the four products of the parts all but the smallest
    are summed. Where `exact` is true the elements of `lhs` have no more than
    11 bits, as those of a narrow state. What a row of `first` or `second` gives depends on no other. Rows of the
    results from `rows` on may be written too, with numbers that mean nothing.

    **Preconditions**

    - (C1) `lhs` is `R x C` of f32, in a layout of 4 lanes and a vector of 4 or 8
      over all warps, `R` a multiple of 16 times the warps, `C` of 4 times the vector.
    - (C2) `first` and `second` have the same type, `N x C` of f32; `first_to` and
      `second_to` are `N x R` of f32; `N` is a multiple of 4.
    - (C3) ordered by barriers as `gdn_gpu.load_shared` (C2) and `gdn_gpu.store_shared` (C2).
    - (C4) it is not inside a `gdn_gpu.warps`.

    **Example**

    ```mlir
    #rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 4>
    #row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
    func.func @seen(%state: !gdn_gpu.fragment<16x128xf32, #rows>,
                    %k: !gdn_gpu.fragment<4x128xf32, #row>, %count: index)
        attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
      %keys = gdn_gpu.alloc : !gdn_gpu.shared<4x128xf32>
      %queries = gdn_gpu.alloc : !gdn_gpu.shared<4x128xf32>
      %known = gdn_gpu.alloc : !gdn_gpu.shared<4x16xf32>
      %seen = gdn_gpu.alloc : !gdn_gpu.shared<4x16xf32>
      gdn_gpu.store_shared %k, %keys : !gdn_gpu.fragment<4x128xf32, #row>,
                                !gdn_gpu.shared<4x128xf32>
      gdn_gpu.store_shared %k, %queries : !gdn_gpu.fragment<4x128xf32, #row>,
                                   !gdn_gpu.shared<4x128xf32>
      gdn_gpu.barrier
      gdn_gpu.share_products %state, %keys, %queries rows(%count), %known, %seen
          : !gdn_gpu.fragment<16x128xf32, #rows>, !gdn_gpu.shared<4x128xf32>,
            !gdn_gpu.shared<4x16xf32>
      return
    }
    ```
  }];
  let arguments = (ins
    GPU_FragmentType:$lhs, Arg<GPU_SharedType, "first", [MemRead]>:$first,
    Arg<GPU_SharedType, "second", [MemRead]>:$second, Index:$rows,
    Arg<GPU_SharedType, "first_to", [MemWrite]>:$first_to,
    Arg<GPU_SharedType, "second_to", [MemWrite]>:$second_to,
    Optional<I1>:$exact);
  let assemblyFormat = [{
    $lhs (`exact` `(` $exact^ `)`)? `,` $first `,` $second `rows` `(` $rows `)` `,` $first_to `,` $second_to attr-dict
    `:` type($lhs) `,` type($first) `,` type($first_to)
  }];
  let hasVerifier = 1;
}

def GPU_MatmulOp : GPU_Op<"matmul"> {
  let summary = "Product of a fragment and a shared tile";
  let description = [{
    `result = acc + lhs * rhs` on tensor cores, summed in f32, with `rhs` the
    shared tile, or with `transpose_rhs` its transpose. Each warp multiplies its
    own rows; `rhs` is the same for all. A result in 16 bits is the `lhs` of
    another product as it is.

    With `from`, the columns of `rhs` from there on, as many as `lhs` has, are what
    its transpose is of.

    With `warpgroup`, four warps multiply 64 rows together (`wgmma`): they read
    `rhs` once instead of four times.

    **Preconditions**

    - (C1) `lhs` is `M x K`, `rhs` `K x N` (`N x K` with `transpose_rhs`), `acc` and the
      result `M x N`, in f32; `M` is a multiple of 16 times the warps, `K` and `N`
      of 16.
    - (C2) `lhs` and `rhs` are both bf16 or both f16.
    - (C3) all fragments have one layout, of matrix instructions (`lanes = 4, vector
      = 2`).
    - (C4) `rhs` is swizzled.
    - (C5) ordered by barriers as `gdn_gpu.load_shared` (C2).
    - (C6) with `warpgroup`: warps in multiples of 4, rows of `rhs` of a multiple of
      128 bytes, `N` at most 256, and a function with `warpgroups` in `gdn_gpu.kernel`, on
      sm_90a.
    - (C7) with `from`: it is a multiple of 16, `rhs` is taken as its transpose and has
      that many columns more than `lhs`, or more; `lhs` is a fragment.

    **Example**

    ```mlir
    #rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
    func.func @scores(%k: !gdn_gpu.fragment<64x128xbf16, #rows>)
        -> !gdn_gpu.fragment<64x64xf32, #rows>
        attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
      %buffer = gdn_gpu.alloc : !gdn_gpu.shared<64x128xbf16, swizzled>
      gdn_gpu.store_shared %k, %buffer : !gdn_gpu.fragment<64x128xbf16, #rows>,
                                 !gdn_gpu.shared<64x128xbf16, swizzled>
      gdn_gpu.barrier
      %s = gdn_gpu.matmul %k, transpose %buffer
          : !gdn_gpu.fragment<64x128xbf16, #rows>,
            !gdn_gpu.shared<64x128xbf16, swizzled>
          -> !gdn_gpu.fragment<64x64xf32, #rows>
      return %s : !gdn_gpu.fragment<64x64xf32, #rows>
    }
    ```
  }];
  let arguments = (ins GPU_FragmentType:$lhs,
                       Arg<GPU_SharedType, "rhs", [MemRead]>:$rhs,
                       Optional<GPU_FragmentType>:$acc, UnitAttr:$transpose_rhs,
                       UnitAttr:$warpgroup, OptionalAttr<I64Attr>:$from);
  let results = (outs GPU_FragmentType:$result);
  let assemblyFormat = [{
    (`warpgroup` $warpgroup^)? $lhs `,` (`transpose` $transpose_rhs^)? $rhs
    (`from` $from^)? (`acc` `(` $acc^ `:` type($acc) `)`)? attr-dict
    `:` type($lhs) `,` type($rhs) `->` type($result)
  }];
  let extraClassDeclaration = [{
    /// Whether warps in groups of four can multiply by such a tile.
    static bool fitsWarpgroups(RowsAttr rows, SharedType rhs, int64_t columns);
  }];
  let hasVerifier = 1;
}

def GPU_StartMatmulOp : GPU_Op<"start_matmul"> {
  let summary = "Begin a product of warpgroups";
  let description = [{
    As `gdn_gpu.matmul` with `warpgroup`, but the program goes on while tensor cores
    work. `gdn_gpu.await_matmul` gives the product. `lhs` may be a shared tile too,
    or with `transposed` its transpose, which spares the registers of a fragment.

    **Preconditions**

    - (C1) those of `gdn_gpu.matmul` with `warpgroup`.
    - (C2) the result has one use, a `gdn_gpu.await_matmul` further down in the same
      block; between the two there is no loop or branch, and no region but of
      `gdn_gpu.map_rows` and `gdn_gpu.warps`.
    - (C3) nobody writes `rhs` before all warps have awaited the product and met at a
      `gdn_gpu.barrier` (asked by `gdn-gpu-check`); the same of an `lhs` that is
      shared.
    - (C4) a shared `lhs` has 64 rows for four warps, is swizzled and has rows of a
      multiple of 128 bytes; `transposed` is for such ones alone.

    **Example**

    ```mlir
    #rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
    func.func @scores(%k: !gdn_gpu.fragment<64x128xbf16, #rows>)
        -> !gdn_gpu.fragment<64x64xf32, #rows>
        attributes {gdn_gpu.kernel = {threads = 128 : i64, warpgroups}} {
      %buffer = gdn_gpu.alloc : !gdn_gpu.shared<64x128xbf16, swizzled>
      gdn_gpu.store_shared %k, %buffer : !gdn_gpu.fragment<64x128xbf16, #rows>,
                                 !gdn_gpu.shared<64x128xbf16, swizzled>
      gdn_gpu.barrier
      %p = gdn_gpu.start_matmul %k, transpose %buffer
          : !gdn_gpu.fragment<64x128xbf16, #rows>,
            !gdn_gpu.shared<64x128xbf16, swizzled>
          -> !gdn_gpu.async_token<64x64xf32, #rows>
      %s = gdn_gpu.await_matmul %p : !gdn_gpu.async_token<64x64xf32, #rows>
      return %s : !gdn_gpu.fragment<64x64xf32, #rows>
    }
    ```
  }];
  let arguments = (ins
    Arg<AnyTypeOf<[GPU_FragmentType, GPU_SharedType]>, "lhs", [MemRead]>:$lhs,
    Arg<GPU_SharedType, "rhs", [MemRead]>:$rhs,
    Optional<GPU_FragmentType>:$acc, UnitAttr:$transpose_rhs,
    UnitAttr:$transposed, OptionalAttr<I64Attr>:$from);
  let results = (outs GPU_AsyncTokenType:$result);
  let assemblyFormat = [{
    (`transposed` $transposed^)? $lhs `,` (`transpose` $transpose_rhs^)? $rhs
    (`from` $from^)? (`acc` `(` $acc^ `:` type($acc) `)`)? attr-dict
    `:` type($lhs) `,` type($rhs) `->` type($result)
  }];
  let extraClassDeclaration = [{
    /// The shared tiles that it reads.
    ::llvm::SmallVector<::mlir::Value, 2> getBuffers();
  }];
  let hasVerifier = 1;
}

def GPU_AwaitMatmulOp : GPU_Op<"await_matmul", [MemoryEffects<[MemRead]>,
    TypesMatchWith<"result is the fragment under way", "product", "result",
                   "::llvm::cast<AsyncTokenType>($_self).getFragment()">]> {
  let summary = "The product of a start_matmul";
  let description = [{
    Waits for the product, and for those begun before it.

    **Preconditions**

    - (C1) the result is the fragment that `product` names.

    **Example**

    ```mlir
    #rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
    func.func @product(%s: !gdn_gpu.async_token<64x64xf32, #rows>)
        -> !gdn_gpu.fragment<64x64xf32, #rows> {
      %a = gdn_gpu.await_matmul %s : !gdn_gpu.async_token<64x64xf32, #rows>
      return %a : !gdn_gpu.fragment<64x64xf32, #rows>
    }
    ```
  }];
  let arguments = (ins GPU_AsyncTokenType:$product);
  let results = (outs GPU_FragmentType:$result);
  let assemblyFormat = "$product attr-dict `:` type($product)";
}

def GPU_TriInverseOp : GPU_Op<"tri_inverse"> {
  let summary = "Inverses of one plus a strictly lower triangle";
  let description = [{
    As `gdn_tile.tri_inverse` of f16, with the roundings that it fixes, of one
    matrix or of two at the same time: steps wait for products and for shared
    memory, and those of one matrix fill the waits of the other. A warp
    inverts its own block of 16 rows; then each warp works down one column of
    blocks. `scratch` holds what they pass to each other; what it held is lost.
    With `transposed` the results are the transposes of the inverses, which is how
    they come out of the last products.
    Of one matrix, without `transposed`, `scratch` then holds the inverse, too.

    **Preconditions**

    - (C1) there are one or two matrices, of one type: square, of f16, with 16 rows
      per warp, in a layout of matrix instructions; the results have their type.
      Two matrices have four warps and transposed inverses.
    - (C2) `scratch` has the shape and element type of a matrix and is swizzled. For
      two it has 16 rows more: what is below the diagonal of the second lies above
      that of the first, and its diagonal in those rows.
    - (C3) it is not inside a `gdn_gpu.warps`.
    - (C4) a `gdn_gpu.barrier` stands between this op and the last access to `scratch`
      before it, and behind this op before the next; checked on the function.

    **Example**

    ```mlir
    #rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
    func.func @solve(%a: !gdn_gpu.fragment<64x64xf16, #rows>)
        -> !gdn_gpu.fragment<64x64xf16, #rows>
        attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
      %scratch = gdn_gpu.alloc : !gdn_gpu.shared<64x64xf16, swizzled>
      %t = gdn_gpu.tri_inverse %a in %scratch
          : (!gdn_gpu.fragment<64x64xf16, #rows>,
             !gdn_gpu.shared<64x64xf16, swizzled>)
          -> !gdn_gpu.fragment<64x64xf16, #rows>
      return %t : !gdn_gpu.fragment<64x64xf16, #rows>
    }
    ```
  }];
  let arguments = (ins Variadic<GPU_FragmentType>:$matrices,
                       Arg<GPU_SharedType, "scratch", [MemRead, MemWrite]>:$scratch,
                       UnitAttr:$transposed);
  let results = (outs Variadic<GPU_FragmentType>:$inverses);
  let assemblyFormat = [{
    (`transposed` $transposed^)? $matrices `in` $scratch attr-dict `:`
    functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    static constexpr int64_t block = 16;
    /// The type of `scratch` for `count` matrices like `matrix`.
    static SharedType getScratchType(FragmentType matrix, int64_t count);
  }];
}

def GPU_RunningSumOp : GPU_Op<"running_sum", [Pure, AllTypesMatch<["values", "result"]>]> {
  let summary = "Sums of a tile of rank 1 up to each element";
  let description = [{
    `result[i] = values[0] + ... + values[i]`, or with `suffix`
    `result[i] = values[i + 1] + ... + values[n - 1]`, in f32, in an order that
    depends on the size alone: first within groups of 32 elements, over the lanes,
    in a tree.

    **Preconditions**

    - (C1) the layout is `per_row` with one warp and one lane to a row; elements
      are f32.

    **Example**

    ```mlir
    #one = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
    func.func @sums(%g: !gdn_gpu.fragment<64xf32, #gdn_gpu.per_row<#one>>)
        attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
      %s = gdn_gpu.running_sum %g : !gdn_gpu.fragment<64xf32, #gdn_gpu.per_row<#one>>
      return
    }
    ```
  }];
  let arguments = (ins GPU_FragmentType:$values, UnitAttr:$suffix);
  let results = (outs GPU_FragmentType:$result);
  let assemblyFormat = "(`suffix` $suffix^)? $values attr-dict `:` type($values)";
  let hasVerifier = 1;
}

def GPU_ColumnSumOp : GPU_Op<"column_sum"> {
  let summary = "Sums of the columns of a fragment";
  let description = [{
    `result[j] = tile[0, j] + tile[1, j] + ...`, in f32, in every thread, in an order
    that depends on shape and layout alone: over the rows of a lane, then over the
    lanes of a column in a butterfly, then over the warps. `scratch` has a row for the
    sums of each warp; what it held is lost.

    **Preconditions**

    - (C1) `tile` is of f32 and rank 2; its rows are a multiple of those that all
      warps work on at once, its columns of those that the lanes of a row hold at
      once; `result` has its columns, `per_column` of its layout.
    - (C2) `scratch` has a row per warp, and the columns and element type of `tile`;
      it is not swizzled.
    - (C3) it is not inside a `gdn_gpu.warps`.
    - (C4) a `gdn_gpu.barrier` stands between this op and the last access to `scratch`
      before it, and behind this op before the next; checked on the function.

    **Example**

    ```mlir
    #rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
    func.func @squares(%x: !gdn_gpu.fragment<64x32xf32, #rows>)
        -> !gdn_gpu.fragment<32xf32, #gdn_gpu.per_column<#rows>>
        attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
      %scratch = gdn_gpu.alloc : !gdn_gpu.shared<4x32xf32>
      %s = gdn_gpu.column_sum %x, %scratch
          : !gdn_gpu.fragment<64x32xf32, #rows>, !gdn_gpu.shared<4x32xf32>
          -> !gdn_gpu.fragment<32xf32, #gdn_gpu.per_column<#rows>>
      return %s : !gdn_gpu.fragment<32xf32, #gdn_gpu.per_column<#rows>>
    }
    ```
  }];
  let arguments = (ins GPU_FragmentType:$tile,
                       Arg<GPU_SharedType, "scratch", [MemRead, MemWrite]>:$scratch);
  let results = (outs GPU_FragmentType:$result);
  let assemblyFormat = [{
    $tile `,` $scratch attr-dict `:` type($tile) `,` type($scratch) `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif // GDN_DIALECT_GPU_IR_GPUMATRIXOPS_TD
