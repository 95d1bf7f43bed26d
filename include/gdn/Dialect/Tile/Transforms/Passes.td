// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes within the gdn_tile dialect.
#ifndef GDN_DIALECT_TILE_TRANSFORMS_PASSES_TD
#define GDN_DIALECT_TILE_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def WidenTileOperands : Pass<"gdn-tile-widen-operands", "::mlir::ModuleOp"> {
  let summary = "Products of 16-bit operands as products of f32";
  let description = [{
    Widens bf16 and f16 operands of `gdn_tile.matmul` to f32, which is exact,
    for targets whose products take f32. A tile is widened once for all products
    that use it. A transposed tile becomes the transpose of the widened tile.

    **Runs after** `convert-gdn-to-tile`; **before** `gdn-tile-fuse-rows`, which
    merges the widening with the rounding before it, and `convert-tile-to-cpu`.

    **Needs**: tile programs.

    **Leaves**: no `gdn_tile.matmul` with operands of fewer than 32 bits.

    **Numerics**: bit-preserving.

    **Fails**: never.

    Before and after: `test/Conversion/TileToCPU/widen-operands.mlir`.
  }];
  let statistics = [
    Statistic<"numWidened", "num-widened", "Tiles widened to f32">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::gdn::tile::TileDialect"];
}

def FuseTileRows : Pass<"gdn-tile-fuse-rows", "::mlir::ModuleOp"> {
  let summary = "Merge chains of map_rows";
  let description = [{
    If the results of a `gdn_tile.map_rows` are used only by one other
    `gdn_tile.map_rows`, as whole inputs, the first is merged into the second.
    Each row is then read and written once instead of once per op. A
    `gdn_tile.delta_scan` of one token also takes over the casts before and
    after its state.

    **Runs after** `convert-gdn-to-tile`; **before** the conversion to a target.

    **Needs**: tile programs.

    **Leaves**: the same values, computed in the same order within a row.

    **Numerics**: bit-preserving.

    **Fails**: never.

    Before and after: `test/Dialect/Tile/Transforms/fuse-rows.mlir`.
  }];
  let statistics = [Statistic<"numMerged", "num-merged", "map_rows merged">];
  let dependentDialects = ["::gdn::tile::TileDialect"];
}

#endif // GDN_DIALECT_TILE_TRANSFORMS_PASSES_TD
