// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Roles that run at the same time, the units that each works on, and channels
// through which they hand tiles over.
#ifndef GDN_DIALECT_GPU_IR_GPUCHANNELOPS_TD
#define GDN_DIALECT_GPU_IR_GPUCHANNELOPS_TD

include "gdn/Dialect/GPU/IR/GPUDialect.td"
include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

//===-- Roles -------------------------------------------------------------===//

def GPU_RolesOp : GPU_Op<"roles", [
    RecursiveMemoryEffects, NoRegionArguments, SingleBlock, NoTerminator]> {
  let summary = "Work of several warps at the same time";
  let description = [{
    Each `gdn_gpu.warps` of the body is a role. Roles run at the same time, each
    once; what one does is ordered before what another does by channels alone.
    Before the first of them, all threads of the block meet.

    **Preconditions**

    - (C1) it is directly in a function, which has no other.
    - (C2) the body holds `gdn_gpu.warps` without results and nothing else; no
      warp is in two of them.
    - (C3) with `registers`, roles that have parts of a group of four warps have
      all of it, and the same number of registers.
    - (C4) a tile of `gdn_gpu.alloc` that one role writes is used by no other; checked on
      the function.
    - (C5) elements of global memory that one role writes are used by no other; checked on
      the function where the indices of both are the same values.

    **Example**

    A warp asks for blocks of rows, two others add them up as they come.

    ```mlir
    #rows = #gdn_gpu.rows<warps = 2, lanes = 8, vector = 4>
    func.func @sums(%n: index, %x: memref<?x32xf32>, %out: memref<?xf32>)
        attributes {gdn_gpu.kernel = {threads = 96 : i64, blocks_per_sm = 2 : i64},
                    gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
      %c0 = arith.constant 0 : index
      %c8 = arith.constant 8 : index
      %ring = gdn_gpu.channel : !gdn_gpu.channel<8x32xf32, depth = 4, parts = 2>
      gdn_gpu.roles {
        gdn_gpu.warps 0 for 2 {
          gdn_gpu.units {
            %i = gdn_gpu.block_id 0
            %first = arith.muli %i, %c8 : index
            %tile = gdn_gpu.receive %ring
                : !gdn_gpu.channel<8x32xf32, depth = 4, parts = 2>
                  -> !gdn_gpu.shared<8x32xf32>
            %t = gdn_gpu.load_shared %tile : !gdn_gpu.shared<8x32xf32>
                -> !gdn_gpu.fragment<8x32xf32, #rows>
            gdn_gpu.release %ring
                : !gdn_gpu.channel<8x32xf32, depth = 4, parts = 2>
            %s = gdn_gpu.map_rows %t : !gdn_gpu.fragment<8x32xf32, #rows>
                -> !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#rows>> {
            ^bb0(%row: index, %v: vector<32xf32>):
              %sum = vector.reduction <add>, %v fastmath<reassoc>
                  : vector<32xf32> into f32
              gdn_gpu.yield %sum : f32
            }
            gdn_gpu.store %s, %out[%first] dims [0]
                : !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#rows>>, memref<?xf32>
          }
        }
        gdn_gpu.warps 2 for 1 {
          gdn_gpu.units {
            %i = gdn_gpu.block_id 0
            %first = arith.muli %i, %c8 : index
            %tile = gdn_gpu.acquire %ring
                : !gdn_gpu.channel<8x32xf32, depth = 4, parts = 2>
                  -> !gdn_gpu.shared<8x32xf32>
            gdn_gpu.copy %x[%first, %c0] dims [0, 1], %tile
                : memref<?x32xf32>, !gdn_gpu.shared<8x32xf32>
            gdn_gpu.commit %ring
                : !gdn_gpu.channel<8x32xf32, depth = 4, parts = 2>
          }
        }
      }
      return
    }
    ```
  }];
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$body attr-dict";
  let hasRegionVerifier = 1;
}

def GPU_UnitsOp : GPU_Op<"units", [
    RecursiveMemoryEffects, NoRegionArguments, SingleBlock, NoTerminator]> {
  let summary = "Work for each unit of this block";
  let description = [{
    Runs the body for each unit that falls to the block; inside, `gdn_gpu.block_id`
    says which. Of `U` units and `G` blocks, block `b` has every `G`th from `b` on,
    or with `contiguous` those from `b U / G` to below `(b + 1) U / G`. Each role
    has the same units in the same order.

    With `taken`, `b` is a block's first unit, and each further one is what the
    body gives: one role asks for it by `gdn_gpu.take_unit`, as soon as it has
    room for more work, and the others receive its number. So a block whose units
    are short has more of them.

    **Preconditions**

    - (C1) it is inside a role of `gdn_gpu.roles` and no other `gdn_gpu.units`.
    - (C2) the function has `blocks_per_sm` of at least 1 in `gdn_gpu.kernel`.
    - (C3) with `taken`, and only then, the body ends with a `gdn_gpu.yield` of
      an index; it is not `contiguous`.
    - (C4) if one is `taken`, all of the function are, and one `gdn_gpu.take_unit`
      says which comes next; checked on the function.
    - (C5) all roles are given the number of `gdn_gpu.take_unit`. Not checked.

    **Example**

    ```mlir
    func.func @count(%n: index)
        attributes {gdn_gpu.kernel = {threads = 32 : i64, blocks_per_sm = 1 : i64},
                    gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
      gdn_gpu.roles {
        gdn_gpu.warps 0 for 1 {
          gdn_gpu.units contiguous {
            %i = gdn_gpu.block_id 0
          }
        }
      }
      return
    }
    ```
  }];
  let arguments = (ins UnitAttr:$contiguous, UnitAttr:$taken);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    (`contiguous` $contiguous^)? (`taken` $taken^)? $body attr-dict
  }];
  let hasRegionVerifier = 1;
}

def GPU_TakeUnitOp : GPU_Op<"take_unit", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "The next unit that no block has taken";
  let description = [{
    Counts the units of the launch that blocks have taken, each its first one
    aside. Behind the last unit it gives numbers that are none. The counter is
    zero when every block has been given such a number.

    **Preconditions**

    - (C1) it is inside a `gdn_gpu.warps` of one warp, in the body of a
      `gdn_gpu.units` that is `taken`, in no other region.
    - (C2) the function has one of `counters` in `gdn_gpu.kernel`.

    **Example**

    ```mlir
    func.func @count(%n: index)
        attributes {gdn_gpu.kernel = {threads = 32 : i64, blocks_per_sm = 1 : i64,
                                      counters = ["1"]},
                    gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
      gdn_gpu.roles {
        gdn_gpu.warps 0 for 1 {
          gdn_gpu.units taken {
            %i = gdn_gpu.block_id 0
            %next = gdn_gpu.take_unit
            gdn_gpu.yield %next : index
          }
        }
      }
      return
    }
    ```
  }];
  let results = (outs Index:$unit);
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

//===-- Channels ------------------------------------------------------------===//

def GPU_ChannelOp : GPU_Op<"channel", [MemoryEffects<[MemAlloc]>]> {
  let summary = "A ring of tiles between roles";
  let description = [{
    Shared memory for the tiles and the barriers of the channel. One role fills
    it, tile by tile; every tile goes to each role that empties it.

    Tiles of a channel with a `leader` come and go with those of that one, behind
    the same barriers: they are acquired behind the acquire of the leader and
    committed before its commit, received behind its receive and released before
    its release.

    A *paired* channel is of two blocks, a cluster: its buffers are filled by the
    `alternate` roles of both in turn, and what one of them commits goes to the
    place of both.

    An *exchanged* channel is of two blocks, too, and of one role of them: each
    fills the row of its tiles that has the block's number in the cluster, and
    receives both rows.

    **Preconditions**

    - (C1) it is directly in the function.
    - (C2) one role has all its `gdn_gpu.acquire`; other roles have its
      `gdn_gpu.receive`, at least one, but those of an exchanged channel are of
      the same role, each right behind a commit; checked on the function.
    - (C3) a channel in parts is filled by `gdn_gpu.copy`, and emptied by roles of
      as many warps as it has parts, in fragments of which each warp holds its
      part; checked on the function.
    - (C4) no role passes more tiles than the one that fills it; those that it
      leaves are lost when the block ends. Not checked.
    - (C5) a leader has no leader, and as many buffers; neither is in parts; both
      are paired or neither is.
    - (C6) a paired channel, and one that `alternate` roles use, has an even
      number of buffers and no parts; the role that fills it is `alternate` if and
      only if it is paired, and then by threads, not by copies. Where `alternate`
      roles receive from a leader, so does one that is not, which takes all tiles.
    - (C7) an exchanged channel has a depth of at least 2 and tiles of two rows,
      each a multiple of 16 bytes; it has neither leader nor parts, is not
      swizzled nor paired, and its role is not `alternate`.

    **Example**

    ```mlir
    func.func @place() attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
      %ring = gdn_gpu.channel : !gdn_gpu.channel<1x128xf32, depth = 3>
      return
    }
    ```
  }];
  let arguments = (ins Optional<GPU_ChannelType>:$leader, UnitAttr:$paired,
                       UnitAttr:$exchanged);
  let results = (outs GPU_ChannelType:$channel);
  let assemblyFormat = [{
    (`paired` $paired^)? (`exchanged` $exchanged^)? attr-dict `:` type($channel) (`with` $leader^ `:` type($leader))?
  }];
  let hasVerifier = 1;
}

class GPU_ChannelTileOp<string mnemonic> : GPU_Op<mnemonic, [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let arguments = (ins GPU_ChannelType:$channel);
  let results = (outs GPU_SharedType:$tile);
  let assemblyFormat = "$channel attr-dict `:` type($channel) `->` type($tile)";
  let hasVerifier = 1;
}

class GPU_ChannelEndOp<string mnemonic> : GPU_Op<mnemonic, [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let arguments = (ins GPU_ChannelType:$channel);
  let assemblyFormat = "$channel attr-dict `:` type($channel)";
}

def GPU_AcquireOp : GPU_ChannelTileOp<"acquire"> {
  let summary = "The next tile of a channel, to fill";
  let description = [{
    Waits until the roles that empty the channel have given back what was in the
    next place of the ring.

    **Preconditions**

    - (C1) the tile has the element type of the channel and as many elements; its
      shape may be another, row-major over the same memory.
    - (C2) on every way the next op of this role on the channel is a
      `gdn_gpu.commit`, if any; the tile is used before it, filled by
      `gdn_gpu.store_shared`, `gdn_gpu.begin_copy` or `gdn_gpu.copy`; checked on the
      function.

    **Example**

    ```mlir
    func.func @next(%x: f32)
        attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
      %ring = gdn_gpu.channel : !gdn_gpu.channel<1x128xf32, depth = 3>
      gdn_gpu.roles {
        gdn_gpu.warps 0 for 1 {
          %one = gdn_gpu.fill %x : f32 -> !gdn_gpu.fragment<
              1x128xf32, #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>>
          %tile = gdn_gpu.acquire %ring
              : !gdn_gpu.channel<1x128xf32, depth = 3> -> !gdn_gpu.shared<1x128xf32>
          gdn_gpu.store_shared %one, %tile : !gdn_gpu.fragment<
              1x128xf32, #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>>,
              !gdn_gpu.shared<1x128xf32>
          gdn_gpu.commit %ring : !gdn_gpu.channel<1x128xf32, depth = 3>
        }
      }
      return
    }
    ```
  }];
}

def GPU_CommitOp : GPU_Op<"commit", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "The tile is filled";
  let description = [{
    What was shared into the tile by the warps of this role, and what a
    `gdn_gpu.copy` brings there, is what the roles that empty the channel receive.
    The result, if wanted, is the tile, which this role may read as well until it
    acquires the buffer again; a barrier lies between.

    **Preconditions**

    - (C1) the op of this role on the channel before it is a `gdn_gpu.acquire` on
      every way; checked on the function.
    - (C2) a `gdn_gpu.await_copies` stands between it and a `gdn_gpu.begin_copy` to the tile;
      checked on the function.
    - (C3) a `gdn_gpu.barrier` stands between reads of the result and the
      `gdn_gpu.acquire` of the same buffer; checked on the function, in loops for rings of
      up to two buffers.

    **Example**

    ```mlir
    func.func @filled(%x: f32)
        attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
      %ring = gdn_gpu.channel : !gdn_gpu.channel<1x128xf32, depth = 3>
      gdn_gpu.roles {
        gdn_gpu.warps 0 for 1 {
          %one = gdn_gpu.fill %x : f32 -> !gdn_gpu.fragment<
              1x128xf32, #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>>
          %tile = gdn_gpu.acquire %ring
              : !gdn_gpu.channel<1x128xf32, depth = 3> -> !gdn_gpu.shared<1x128xf32>
          gdn_gpu.store_shared %one, %tile : !gdn_gpu.fragment<
              1x128xf32, #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>>,
              !gdn_gpu.shared<1x128xf32>
          gdn_gpu.commit %ring : !gdn_gpu.channel<1x128xf32, depth = 3>
        }
      }
      return
    }
    ```
  }];
  let arguments = (ins GPU_ChannelType:$channel);
  let results = (outs Optional<GPU_SharedType>:$tile);
  let assemblyFormat = "$channel attr-dict `:` type($channel) (`->` type($tile)^)?";
  let hasVerifier = 1;
}

def GPU_ReceiveOp : GPU_ChannelTileOp<"receive"> {
  let summary = "The next tile of a channel, to read";
  let description = [{
    Waits until the tile is there. Each warp waits for itself; of a channel in
    parts, for its part. With `ahead`, the tile behind the one that the role has
    already: it is given back by the second `gdn_gpu.release` from here.

    **Preconditions**

    - (C1) the tile has the element type of the channel and as many elements; its
      shape may be another, row-major over the same memory.
    - (C2) the next op of this role on the channel, but for a receive ahead, is a
      `gdn_gpu.release` in the same block; the tile is used before it, by
      `gdn_gpu.load_shared` or `gdn_gpu.load_shared_element`; checked on the function.
    - (C3) the channel of one that is `ahead` is not in parts and has at least two
      buffers; it stands right behind a receive that is not, and two releases in the
      same block follow, which is checked on the function.

    **Example**

    ```mlir
    func.func @read(%x: f32)
        attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
      %ring = gdn_gpu.channel : !gdn_gpu.channel<1x128xf32, depth = 3>
      gdn_gpu.roles {
        gdn_gpu.warps 0 for 1 {
          %tile = gdn_gpu.receive %ring
              : !gdn_gpu.channel<1x128xf32, depth = 3> -> !gdn_gpu.shared<128xf32>
          %row = gdn_gpu.load_shared %tile : !gdn_gpu.shared<128xf32> -> !gdn_gpu.fragment<
              128xf32, #gdn_gpu.per_column<#gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>>>
          gdn_gpu.release %ring : !gdn_gpu.channel<1x128xf32, depth = 3>
        }
      }
      return
    }
    ```
  }];
  let arguments = (ins GPU_ChannelType:$channel, UnitAttr:$ahead);
  let assemblyFormat = [{
    (`ahead` $ahead^)? $channel attr-dict `:` type($channel) `->` type($tile)
  }];
}

def GPU_ReleaseOp : GPU_ChannelEndOp<"release"> {
  let summary = "The tile has been read";
  let description = [{
    Gives the buffer in the ring back to the role that fills the channel.

    **Preconditions**

    - (C1) the op of this role on the channel before it is a `gdn_gpu.receive` in
      the same block, or a release behind a receive ahead; checked on the function.
    - (C2) where `gdn_gpu.copy` or a `gdn_gpu.begin_copy tensor_map` fills the channel, a fragment loaded from the tile
      that has uses has one before the release: copies are not ordered behind reads
      that are still under way, and a use such as a sum over lanes has waited for
      them; checked on the function.

    **Example**

    ```mlir
    func.func @give_back(%x: f32)
        attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
      %ring = gdn_gpu.channel : !gdn_gpu.channel<1x128xf32, depth = 3>
      gdn_gpu.roles {
        gdn_gpu.warps 0 for 1 {
          %tile = gdn_gpu.receive %ring
              : !gdn_gpu.channel<1x128xf32, depth = 3> -> !gdn_gpu.shared<128xf32>
          %row = gdn_gpu.load_shared %tile : !gdn_gpu.shared<128xf32> -> !gdn_gpu.fragment<
              128xf32, #gdn_gpu.per_column<#gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>>>
          gdn_gpu.release %ring : !gdn_gpu.channel<1x128xf32, depth = 3>
        }
      }
      return
    }
    ```
  }];
}

def GPU_CopyOp : GPU_Op<"copy"> {
  let summary = "A tile of global memory to a channel, past the registers";
  let description = [{
    Asks for the tile at `indices` along `dims` of `view` and goes on; it counts
    as there when all its bytes are. Needs a target with bulk copies.

    **Preconditions**

    - (C1) one index per dimension of the view; `dims` names as many distinct
      dimensions of the view as the tile has.
    - (C2) tile and view have the same element type.
    - (C3) the tile has rank 2, comes from a `gdn_gpu.acquire` and has the shape of
      the channel; a row is a multiple of 16 bytes; the elements of a row lie side
      by side, by the view's type.
    - (C4) 16 bytes divide the address of the tile and the stride of its rows. Not
      checked.
    - (C5) it is the only op that fills the tile; inside a role of one warp;
      checked on the function.

    **Example**

    ```mlir
    func.func @ask(%pool: memref<?x128xbf16>, %first: index)
        attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
      %c0 = arith.constant 0 : index
      %ring = gdn_gpu.channel : !gdn_gpu.channel<64x128xbf16, depth = 3>
      gdn_gpu.roles {
        gdn_gpu.warps 0 for 1 {
          %tile = gdn_gpu.acquire %ring : !gdn_gpu.channel<64x128xbf16, depth = 3>
              -> !gdn_gpu.shared<64x128xbf16>
          gdn_gpu.copy %pool[%first, %c0] dims [0, 1], %tile
              : memref<?x128xbf16>, !gdn_gpu.shared<64x128xbf16>
          gdn_gpu.commit %ring : !gdn_gpu.channel<64x128xbf16, depth = 3>
        }
      }
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<AnyMemRef, "view", [MemRead]>:$view, Variadic<Index>:$indices,
    DenseI64ArrayAttr:$dims, Arg<GPU_SharedType, "tile", [MemWrite]>:$tile);
  let assemblyFormat = [{
    $view `[` $indices `]` `dims` $dims `,` $tile attr-dict `:` type($view) `,` type($tile)
  }];
  let hasVerifier = 1;
}

#endif // GDN_DIALECT_GPU_IR_GPUCHANNELOPS_TD
