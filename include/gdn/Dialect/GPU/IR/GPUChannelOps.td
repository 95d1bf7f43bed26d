// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Channels through which roles hand tiles over.
#ifndef GDN_DIALECT_GPU_IR_GPUCHANNELOPS_TD
#define GDN_DIALECT_GPU_IR_GPUCHANNELOPS_TD

include "gdn/Dialect/GPU/IR/GPUDialect.td"
include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

//===-- Channels ------------------------------------------------------------===//

def GPU_ChannelOp : GPU_Op<"channel", [
    MemoryEffects<[MemAlloc]>, AttrSizedOperandSegments]> {
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

    A channel *of* another one has no memory of its own: its tiles are those of
    that one, changed in place by roles that have received them and hand them on
    (`gdn_gpu.hand_on`). Tiles are there when all of these roles have handed them
    on, and a place of the ring is free when the roles that release its tiles,
    from the channel with the memory or from one of it, have done so.

    With `zeroed`, its memory is zero before the first tile is filled.

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
    - (C8) a channel of another one has its shape, depth and size of elements; that one is of no
      other; both have no parts and are neither paired nor exchanged, and neither
      has `alternate` roles. Where that one has a leader, so has this one, which is of
      it. It is filled by `gdn_gpu.hand_on` alone, at least one unless it has a leader.
    - (C9) of two roles that receive the same tile and one of which writes it, one commits a
      tile of another channel behind its use, which the other one receives ahead of its own; but
      `decay_between` and `block_inverses` have parts of their own. Checked on the function.

    **Example**

    ```mlir
    func.func @place() attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
      %ring = gdn_gpu.channel : !gdn_gpu.channel<1x128xf32, depth = 3>
      return
    }
    ```
  }];
  let arguments = (ins Optional<GPU_ChannelType>:$leader,
                       Optional<GPU_ChannelType>:$memory, UnitAttr:$paired,
                       UnitAttr:$exchanged, UnitAttr:$zeroed);
  let results = (outs GPU_ChannelType:$channel);
  let assemblyFormat = [{
    (`paired` $paired^)? (`exchanged` $exchanged^)? (`zeroed` $zeroed^)? attr-dict
    `:` type($channel) (`with` $leader^ `:` type($leader))? (`of` $memory^ `:` type($memory))?
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
      `gdn_gpu.release` in the same block, or a `gdn_gpu.hand_on` of it or of its leader; the tile
      is used before it, by `gdn_gpu.load_shared` or `gdn_gpu.load_shared_element`, and where it is handed on by
      ops that change it; checked on the function.
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

def GPU_HandOnOp : GPU_Op<"hand_on", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "The tile has been changed, for the next roles";
  let description = [{
    Ends what a `gdn_gpu.receive` of `from` began, as a `gdn_gpu.release` does, but the
    tile, with those that come and go with it, is for the roles that receive from `to`
    as soon as all roles that hand tiles on to it have done so.

    **Preconditions**

    - (C1) `to` is a channel of `from`, or both are of the same one, and `to` stands behind
      `from`; neither has a leader.
    - (C2) the op of this role on `from` before it is a `gdn_gpu.receive` in the same
      block; checked on the function.
    - (C3) a role hands all tiles that it receives from a channel on to the same one, or gives
      all of them back; checked on the function.
    - (C4) a role hands tiles on to `to` from `from` alone; checked on the function.
    - (C5) it receives nothing from `to`; checked on the function.

    **Example**

    ```mlir
    func.func @twice() attributes {gdn_gpu.kernel = {threads = 96 : i64}} {
      %loaded = gdn_gpu.channel : !gdn_gpu.channel<32x64xf16, depth = 2, swizzled>
      %made = gdn_gpu.channel : !gdn_gpu.channel<32x64xf16, depth = 2, swizzled>
          of %loaded : !gdn_gpu.channel<32x64xf16, depth = 2, swizzled>
      gdn_gpu.roles {
        gdn_gpu.warps 0 for 1 {
          %tile = gdn_gpu.acquire %loaded : !gdn_gpu.channel<32x64xf16, depth = 2, swizzled>
              -> !gdn_gpu.shared<32x64xf16, swizzled>
          gdn_gpu.commit %loaded : !gdn_gpu.channel<32x64xf16, depth = 2, swizzled>
        }
        gdn_gpu.warps 1 for 1 {
          %tile = gdn_gpu.receive %loaded : !gdn_gpu.channel<32x64xf16, depth = 2, swizzled>
              -> !gdn_gpu.shared<32x64xf16, swizzled>
          gdn_gpu.hand_on %loaded to %made : !gdn_gpu.channel<32x64xf16, depth = 2, swizzled>,
              !gdn_gpu.channel<32x64xf16, depth = 2, swizzled>
        }
        gdn_gpu.warps 2 for 1 {
          %tile = gdn_gpu.receive %made : !gdn_gpu.channel<32x64xf16, depth = 2, swizzled>
              -> !gdn_gpu.shared<32x64xf16, swizzled>
          gdn_gpu.release %made : !gdn_gpu.channel<32x64xf16, depth = 2, swizzled>
        }
      }
      return
    }
    ```
  }];
  let arguments = (ins GPU_ChannelType:$from, GPU_ChannelType:$to);
  let assemblyFormat = "$from `to` $to attr-dict `:` type($from) `,` type($to)";
  let hasVerifier = 1;
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
