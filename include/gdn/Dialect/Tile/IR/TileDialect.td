// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The gdn_tile dialect: what one block of a kernel does, in order, on tiles.
#ifndef GDN_DIALECT_TILE_IR_TILEDIALECT_TD
#define GDN_DIALECT_TILE_IR_TILEDIALECT_TD

include "mlir/IR/OpBase.td"

def Tile_Dialect : Dialect {
  let name = "gdn_tile";
  let cppNamespace = "::gdn::tile";
  let summary = "One block's work on tiles, in sequential order";
  let description = [{
    A function of this level is the program of one block of a kernel. It has a
    sequential meaning: no threads, no barriers, no roles. How many blocks there
    are the function's attribute `gdn_tile.stage` says: its grid is one linear form over the
    entry's symbols per axis; blocks are independent of each other. The page
    `docs/spec/attributes.md` has all attributes of such a function.

    **Values.** A *tile* is a builtin vector of rank 1 or 2 with static sizes. A
    *view* is a memref, usually with dynamic strides: memory of the caller.
    Tiles come into being by `gdn_tile.load` and leave by `gdn_tile.store`;
    nothing else touches memory.

    **Arithmetic.** Elementwise work and reductions along a row are written
    with `arith`, `math` and `vector` ops on single rows inside
    `gdn_tile.map_rows`. Products and recurrences over whole tiles are ops of
    their own, which each target expands in its way.

    **Rounding is explicit.** Ops compute in the types they show; a value is
    rounded where an `arith.truncf` stands and nowhere else.
  }];
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::vector::VectorDialect"];
}

class Tile_Op<string mnemonic, list<Trait> traits = []>
    : Op<Tile_Dialect, mnemonic, traits>;

defvar Tile_FloatTypes = [F32, BF16, F16];
// Bytes are those of states in planes.
def Tile_AnyTile : FixedVectorOfRankAndType<[1, 2], Tile_FloatTypes # [I8]>;
def Tile_F32Matrix : FixedVectorOfRankAndType<[2], [F32]>;
def Tile_ScanState : FixedVectorOfRankAndType<[2], [F32, BF16, F16]>;
def Tile_F32Tile : FixedVectorOfRankAndType<[1, 2], [F32]>;
def Tile_F32Row : FixedVectorOfRankAndType<[1], [F32]>;

#endif // GDN_DIALECT_TILE_IR_TILEDIALECT_TD
