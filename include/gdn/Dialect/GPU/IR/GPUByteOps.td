// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products on tensor cores of bytes and of numbers of 16 bits as they lie in
// memory, and of tiles as sums of such numbers.
#ifndef GDN_DIALECT_GPU_IR_GPUBYTEOPS_TD
#define GDN_DIALECT_GPU_IR_GPUBYTEOPS_TD

include "gdn/Dialect/GPU/IR/GPUDialect.td"
include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def GPU_ShareByteProductsOp : GPU_Op<"share_byte_products", [
    AllTypesMatch<["first", "second"]>, AttrSizedOperandSegments]> {
  let summary = "Products of fragments of bytes with two rows";
  let description = [{
    For each row `r` of fragment `i` of `upper`, with `x = upper - 128`, or with
    `low` `x = upper - 128 + (low - 128) / 256`,

        to[first_at + i, r] = scales[r] * first_scale
            * sum over c of x[r, c] * (f[0, c] + 256 f[1, c] + 65536 f[2, c])

    with `f = first - 128`, and the same of `second` to `second_at`; `scales` is that of the
    fragment. On tensor cores as integers: sums for each of the three rows are exact.

    **Preconditions**

    - (C1) `upper` is one or two fragments, `low` none or as many, of the same
      type: `R x C` of bytes, in a layout of 4 lanes and a vector of 16 over all
      warps, not tall; `R` is a multiple of 8 times the warps, `C` of 64. Of
      `scales` there are as many, `R` of f32, per row of the layout.
    - (C2) `first` and `second` are `3 x C` of bytes; `to` has rows of `R` f32; none
      is swizzled.
    - (C3) ordered by barriers as `gdn_gpu.load_shared` (C2) and `gdn_gpu.store_shared` (C2).

    **Example**

    ```mlir
    #rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 16>
    func.func @seen(%state: !gdn_gpu.fragment<8x128xi8, #rows>,
                    %scales: !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#rows>>,
                    %one: f32)
        attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %key = gdn_gpu.alloc : !gdn_gpu.shared<3x128xi8>
      %query = gdn_gpu.alloc : !gdn_gpu.shared<3x128xi8>
      %to = gdn_gpu.alloc : !gdn_gpu.shared<2x8xf32>
      gdn_gpu.share_byte_products %state low() scales(%scales),
          %key scaled(%one) to(%c0), %query scaled(%one) to(%c1), %to
          : !gdn_gpu.fragment<8x128xi8, #rows>,
            !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#rows>>,
            !gdn_gpu.shared<3x128xi8>, !gdn_gpu.shared<2x8xf32>
      return
    }
    ```
  }];
  let arguments = (ins
    Variadic<GPU_FragmentType>:$upper, Variadic<GPU_FragmentType>:$low,
    Variadic<GPU_FragmentType>:$scales,
    Arg<GPU_SharedType, "first", [MemRead]>:$first, F32:$first_scale,
    Index:$first_at,
    Arg<GPU_SharedType, "second", [MemRead]>:$second, F32:$second_scale,
    Index:$second_at,
    Arg<GPU_SharedType, "to", [MemWrite]>:$to);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The type of all fragments.
    FragmentType getBytesType() {
      return ::llvm::cast<FragmentType>(getUpper().front().getType());
    }
  }];
}

def GPU_SharePartProductsOp : GPU_Op<"share_part_products", [
    AllTypesMatch<["first", "second"]>]> {
  let summary = "Products of a fragment of 16 bits with two rows";
  let description = [{
    For each row `r` of `lhs`

        to[0, r] = first_scale * sum over c of lhs[r, c] * (first[0, c] + first[1, c] + first[2, c])

    and the same of `second` to row 1, on tensor cores, summed in f32.

    **Preconditions**

    - (C1) `lhs` is `R x C` of bf16 or f16, in a layout of 4 lanes and a vector of 8, not
      tall; `R` is a multiple of 16 times the warps, `C` of 32.
    - (C2) `first` and `second` are `3 x C` of the same type, `to` is `2 x R` of f32; none is
      swizzled.
    - (C3) ordered by barriers as `gdn_gpu.load_shared` (C2) and `gdn_gpu.store_shared` (C2).

    **Example**

    ```mlir
    #rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 8>
    func.func @seen(%state: !gdn_gpu.fragment<16x128xbf16, #rows>)
        attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
      %one = arith.constant 1.0 : f32
      %key = gdn_gpu.alloc : !gdn_gpu.shared<3x128xbf16>
      %query = gdn_gpu.alloc : !gdn_gpu.shared<3x128xbf16>
      %to = gdn_gpu.alloc : !gdn_gpu.shared<2x16xf32>
      gdn_gpu.share_part_products %state, %key scaled(%one), %query scaled(%one), %to
          : !gdn_gpu.fragment<16x128xbf16, #rows>, !gdn_gpu.shared<3x128xbf16>,
            !gdn_gpu.shared<2x16xf32>
      return
    }
    ```
  }];
  let arguments = (ins
    GPU_FragmentType:$lhs,
    Arg<GPU_SharedType, "first", [MemRead]>:$first, F32:$first_scale,
    Arg<GPU_SharedType, "second", [MemRead]>:$second, F32:$second_scale,
    Arg<GPU_SharedType, "to", [MemWrite]>:$to);
  let assemblyFormat = [{
    $lhs `,` $first `scaled` `(` $first_scale `)` `,` $second `scaled` `(` $second_scale `)` `,` $to
    attr-dict `:` type($lhs) `,` type($first) `,` type($to)
  }];
  let hasVerifier = 1;
}

def GPU_ShareColumnPartsOp : GPU_Op<"share_column_parts"> {
  let summary = "The columns of a shared tile as sums of two numbers of bf16";
  let description = [{
    `from[j, c]` becomes `to[c, 8 (j / 4) + j mod 4]`, rounded, and what that
    leaves, rounded, `to[c, 8 (j / 4) + 4 + j mod 4]`. Numbers of `to` that stand
    for rows behind those of `from` become zero. Each thread has a column; with
    `spread` several of a column share out its rows if a block has as many.

    **Preconditions**

    - (C1) `from` is `W x C` of f32 or f16, `to` is `C x 2 W'` of bf16 with `W'` the next
      multiple of 16 from `W` on; neither is swizzled.
    - (C2) ordered by barriers as `gdn_gpu.load_shared` (C2) and `gdn_gpu.store_shared` (C2).

    **Example**

    ```mlir
    func.func @parts() attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
      %keys = gdn_gpu.alloc : !gdn_gpu.shared<16x128xf32>
      %parts = gdn_gpu.alloc : !gdn_gpu.shared<128x32xbf16>
      gdn_gpu.share_column_parts %keys, %parts
          : !gdn_gpu.shared<16x128xf32>, !gdn_gpu.shared<128x32xbf16>
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<GPU_SharedType, "from", [MemRead]>:$from,
    Arg<GPU_SharedType, "to", [MemWrite]>:$to,
    UnitAttr:$spread);
  let assemblyFormat = "(`spread` $spread^)? $from `,` $to attr-dict `:` type($from) `,` type($to)";
  let hasVerifier = 1;
}

def GPU_AddPartProductsOp : GPU_Op<"add_part_products", [
    AllTypesMatch<["sum", "result"]>]> {
  let summary = "A fragment with products of two tiles added";
  let description = [{
    With `W` weights and `n = rows(deltas) / W`,

        result[r, c] = sum[r, c]
            + sum over j of weights[j] * deltas[j n + at, r] * (parts of column c at j)

    on tensor cores; `parts` is what `gdn_gpu.share_column_parts` makes. A weighted
    delta is a sum of two numbers of bf16, too.

    **Preconditions**

    - (C1) `sum` is `R x C` of f32, in a layout of 4 lanes and a vector of 8 or 16, not
      tall; `R` is a multiple of 8 times the warps, `C` of 4 times the vector.
    - (C2) `weights` is `W` of f32, `deltas` `n W x R` of f32 or f16, `parts`
      `C x 2 W'` of bf16 with `W'` the next multiple of 16 from `W` on, `W` a multiple of 4.
    - (C3) ordered by barriers as `gdn_gpu.load_shared` (C2).

    **Example**

    ```mlir
    #rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 16>
    func.func @add(%state: !gdn_gpu.fragment<8x128xf32, #rows>)
        attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
      %c0 = arith.constant 0 : index
      %deltas = gdn_gpu.alloc : !gdn_gpu.shared<16x8xf32>
      %weights = gdn_gpu.alloc : !gdn_gpu.shared<16xf32>
      %parts = gdn_gpu.alloc : !gdn_gpu.shared<128x32xbf16>
      %new = gdn_gpu.add_part_products %state, %deltas[%c0], %weights, %parts
          : !gdn_gpu.fragment<8x128xf32, #rows>, !gdn_gpu.shared<16x8xf32>,
            !gdn_gpu.shared<16xf32>, !gdn_gpu.shared<128x32xbf16>
      return
    }
    ```
  }];
  let arguments = (ins
    GPU_FragmentType:$sum, Arg<GPU_SharedType, "deltas", [MemRead]>:$deltas,
    Index:$at, Arg<GPU_SharedType, "weights", [MemRead]>:$weights,
    Arg<GPU_SharedType, "parts", [MemRead]>:$parts);
  let results = (outs GPU_FragmentType:$result);
  let assemblyFormat = [{
    $sum `,` $deltas `[` $at `]` `,` $weights `,` $parts attr-dict
    `:` type($sum) `,` type($deltas) `,` type($weights) `,` type($parts)
  }];
  let hasVerifier = 1;
}

def GPU_ShareKeyColumnsOp : GPU_Op<"share_key_columns"> {
  let summary = "The columns of a shared tile of keys in the order of products";
  let description = [{
    With `m = j mod 4`, each column `c` of each 16 tokens `j` of `from` goes to where lanes
    find their words of `gdn_gpu.fold_planes` side by side: row
    `C / 16 (j / 16) + 8 (c / 128) + c / 2 mod 8` of `to`, from element
    `32 (c / 16 mod 8) + 8 (j / 4 mod 4)` on, where element `4 (c mod 2) + m` is the
    number, or `2 (c mod 2) + 4 (m / 2) + m mod 2` with `left`. Numbers of `to` that
    stand for rows behind those of `from` become zero; each row has 8 elements more.

    **Preconditions**

    - (C1) `from` is `W x C` of f16, `W` a multiple of 4 and `C` of 128, `to` is
      `W' / 16 * C / 16 x 264` of f16 with `W'` the next multiple of 16 from `W` on; neither
      is swizzled.
    - (C2) ordered by barriers as `gdn_gpu.load_shared` (C2) and `gdn_gpu.store_shared` (C2).

    **Example**

    ```mlir
    func.func @columns() attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
      %keys = gdn_gpu.alloc : !gdn_gpu.shared<16x128xf16>
      %columns = gdn_gpu.alloc : !gdn_gpu.shared<8x264xf16>
      gdn_gpu.share_key_columns left %keys, %columns
          : !gdn_gpu.shared<16x128xf16>, !gdn_gpu.shared<8x264xf16>
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<GPU_SharedType, "from", [MemRead]>:$from,
    Arg<GPU_SharedType, "to", [MemWrite]>:$to,
    UnitAttr:$left);
  let assemblyFormat = "(`left` $left^)? $from `,` $to attr-dict `:` type($from) `,` type($to)";
  let hasVerifier = 1;
}

def GPU_TokenUnitOp : GPU_Op<"token_unit"> {
  let summary = "A power of two with which weighted deltas are numbers of f16";
  let description = [{
    The largest of the `weights` below 2^72 times the result is from 256 to 512, unless that
    is below 2^-100; no weight is negative. Larger ones are those of deltas that are not
    finite, beside which other tokens would be lost.

    **Preconditions**

    - (C1) `weights` is `W` of f32, `W` a multiple of 4.
    - (C2) ordered by barriers as `gdn_gpu.load_shared` (C2).

    **Example**

    ```mlir
    func.func @unit() -> f32 attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
      %weights = gdn_gpu.alloc : !gdn_gpu.shared<16xf32>
      %unit = gdn_gpu.token_unit %weights : !gdn_gpu.shared<16xf32>
      return %unit : f32
    }
    ```
  }];
  let arguments = (ins Arg<GPU_SharedType, "weights", [MemRead]>:$weights);
  let results = (outs F32:$unit);
  let assemblyFormat = "$weights attr-dict `:` type($weights)";
  let hasVerifier = 1;
}

def GPU_FoldPlanesOp : GPU_Op<"fold_planes", [InferTypeOpAdaptor]> {
  let summary = "A state in planes that receives its pending tokens";
  let description = [{
    With `x[r, c] = scales[r] (upper - 128)`, or with `low`
    `x = scales[r] (upper - 128 + (low - 128) / 256)`, `W` weights and `n = rows(deltas) / W`,

        y[r, c] = kept * x[r, c]
            + sum over j of weights[j] * deltas[j n + at, r] * (column c of the keys at j)

    on tensor cores, where a weighted delta is a sum of two numbers of f16, or with `rounded`
    one; and the results are the [planes](slots.md#states-in-planes) of `y`. Sums begin with
    `kept * x`, in a unit of the row in which that is exact, and in which deltas lie as with
    `unit`, from `gdn_gpu.token_unit`, or lower. Where they are no numbers of f16 by it, the row
    is not finite.

    **Preconditions**

    - (C1) `upper`, and `low`, is `R x C` of bytes, `C` a multiple of 128, in a layout with a
      vector of 16, not tall or cyclic: `crossed` of 8 lanes, `R` a multiple of 8 times the
      warps, or of 4 lanes and not crossed, `R` a multiple of 16 times the warps. `scales` is
      `R` of f32, per row of the layout.
    - (C2) `weights` is `W` of f32, `deltas` `n W x R` of f16, `keys` what
      `gdn_gpu.share_key_columns` makes of `W x C`, with `left` if the layout is crossed.
    - (C3) ordered by barriers as `gdn_gpu.load_shared` (C2).

    **Example**

    ```mlir
    #rows = #gdn_gpu.rows<warps = 1, lanes = 8, vector = 16, crossed = true>
    func.func @fold(%state: !gdn_gpu.fragment<8x128xi8, #rows>,
                    %scales: !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#rows>>,
                    %kept: f32)
        attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
      %c0 = arith.constant 0 : index
      %deltas = gdn_gpu.alloc : !gdn_gpu.shared<16x8xf16>
      %weights = gdn_gpu.alloc : !gdn_gpu.shared<16xf32>
      %keys = gdn_gpu.alloc : !gdn_gpu.shared<8x264xf16>
      %unit = gdn_gpu.token_unit %weights : !gdn_gpu.shared<16xf32>
      %new, %new_scales = gdn_gpu.fold_planes %state low() scales(%scales) kept(%kept),
          %deltas[%c0], %weights unit(%unit), %keys
          : !gdn_gpu.fragment<8x128xi8, #rows>,
            !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#rows>>, !gdn_gpu.shared<16x8xf16>,
            !gdn_gpu.shared<16xf32>, !gdn_gpu.shared<8x264xf16>
      return
    }
    ```
  }];
  let arguments = (ins
    GPU_FragmentType:$upper, Optional<GPU_FragmentType>:$low,
    GPU_FragmentType:$scales, F32:$kept,
    Arg<GPU_SharedType, "deltas", [MemRead]>:$deltas, Index:$at,
    Arg<GPU_SharedType, "weights", [MemRead]>:$weights, F32:$unit,
    Arg<GPU_SharedType, "keys", [MemRead]>:$keys, UnitAttr:$rounded);
  let results = (outs GPU_FragmentType:$new_upper, GPU_FragmentType:$new_scales,
                      Optional<GPU_FragmentType>:$new_low);
  let assemblyFormat = [{
    (`rounded` $rounded^)? $upper `low` `(` ($low^ `:` type($low))? `)` `scales` `(` $scales `)` `kept` `(` $kept `)` `,`
    $deltas `[` $at `]` `,` $weights `unit` `(` $unit `)` `,` $keys attr-dict
    `:` type($upper) `,` type($scales) `,` type($deltas) `,` type($weights) `,` type($keys)
  }];
  let hasVerifier = 1;
}

#endif // GDN_DIALECT_GPU_IR_GPUBYTEOPS_TD
