// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of whole tiles, and the other matrix ops of the chunk form.
#ifndef GDN_DIALECT_TILE_IR_TILEMATRIXOPS_TD
#define GDN_DIALECT_TILE_IR_TILEMATRIXOPS_TD

include "gdn/Dialect/Tile/IR/TileDialect.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_MatmulOp : Tile_Op<"matmul", [Pure]> {
  let summary = "Product of two tiles";
  let description = [{
    `result = acc + op(lhs) * rhs`. `op(lhs)` is the transpose of `lhs` if
    `transpose_lhs` is given, else `lhs`. Without `acc`, `acc` is zero. Products
    are summed in f32 for all types of the operands. The target chooses the
    order of the sums, which depends on the types only.

    Two attributes say that one half of a matrix is not needed. With `lower_lhs`
    all elements of `op(lhs)` above its diagonal are zero, and the target need
    not read them. With `lower_result` the elements of the result above its
    diagonal are not used: they are unspecified and may be NaN.

    **Preconditions**

    - (C1) `op(lhs)` is `M x K`, `rhs` `K x N`, `acc` and `result` `M x N`.
    - (C2) `lhs` and `rhs` have the same element type.
    - with `lower_lhs`, the elements above the diagonal are zero. Not checked.

    **Example**

    ```mlir
    func.func @scores(%q: vector<64x128xbf16>, %kt: vector<128x64xbf16>)
        -> vector<64x64xf32> {
      %s = gdn_tile.matmul %q, %kt
          : vector<64x128xbf16>, vector<128x64xbf16> -> vector<64x64xf32>
      return %s : vector<64x64xf32>
    }
    ```
  }];
  let arguments = (ins
    VectorOfRankAndType<[2], Tile_FloatTypes>:$lhs,
    VectorOfRankAndType<[2], Tile_FloatTypes>:$rhs,
    Optional<Tile_F32Matrix>:$acc,
    UnitAttr:$transpose_lhs,
    UnitAttr:$lower_lhs,
    UnitAttr:$lower_result);
  let results = (outs Tile_F32Matrix:$result);
  let assemblyFormat = [{
    (`transpose` $transpose_lhs^)? $lhs `,` $rhs (`acc` `(` $acc^ `:` type($acc) `)`)? attr-dict
    `:` type($lhs) `,` type($rhs) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_TransposeOp : Tile_Op<"transpose", [Pure]> {
  let summary = "A tile with rows and columns exchanged";
  let description = [{
    **Preconditions**

    - (C1) `tile` is `M x N`, the result `N x M`, of the same element type.

    **Example**

    ```mlir
    func.func @keys(%k: vector<64x128xf32>) -> vector<128x64xf32> {
      %t = gdn_tile.transpose %k : vector<64x128xf32> -> vector<128x64xf32>
      return %t : vector<128x64xf32>
    }
    ```
  }];
  let arguments = (ins VectorOfRankAndType<[2], Tile_FloatTypes>:$tile);
  let results = (outs VectorOfRankAndType<[2], Tile_FloatTypes>:$result);
  let assemblyFormat = "$tile attr-dict `:` type($tile) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_TriInverseOp : Tile_Op<"tri_inverse", [Pure, SameOperandsAndResultType]> {
  let summary = "Inverse of one plus a strictly lower triangle";
  let description = [{
    `result = (1 + L)^(-1)`, where `L` is the part of `matrix` strictly below
    its diagonal. Elements on and above the diagonal are not read. The result is
    lower triangular, with ones on its diagonal and zeros above.

    In f32 the target chooses how to compute it: row by row, or in blocks that
    are merged.

    In f16 the roundings are fixed, because they determine the error. With
    blocks of 16 rows and columns, and `L_ij` the blocks of `L`:

        D_i  = (1 + L_ii)^(-1)                  substitution in f32, then f16
        B_ij = D_i L_ij               j < i     f16
        R_ij = -sum_(j<=m<i) B_im R_mj, R_ii = D_i   f16

    Products take the f16 operands without a further conversion and sum in f32.
    The target chooses the order of the sums. It may also compute `D_i` from two
    diagonal blocks of 8 rows, each as above, and the block `-D_11 L_10 D_00`
    below the diagonal, by two such products.

    **Preconditions**

    - (C1) `matrix` is square.
    - (C2) in f16, `matrix` has a multiple of 16 rows.

    **Example**

    ```mlir
    func.func @solve(%a: vector<64x64xf32>) -> vector<64x64xf32> {
      %t = gdn_tile.tri_inverse %a : vector<64x64xf32>
      return %t : vector<64x64xf32>
    }
    ```
  }];
  let arguments = (ins VectorOfRankAndType<[2], [F32, F16]>:$matrix);
  let results = (outs VectorOfRankAndType<[2], [F32, F16]>:$result);
  let assemblyFormat = "$matrix attr-dict `:` type($matrix)";
  let hasVerifier = 1;
}

#endif // GDN_DIALECT_TILE_IR_TILEMATRIXOPS_TD
