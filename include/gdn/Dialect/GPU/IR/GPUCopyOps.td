// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies of tiles to shared memory and back that go on while threads do other
// work.
#ifndef GDN_DIALECT_GPU_IR_GPUCOPYOPS_TD
#define GDN_DIALECT_GPU_IR_GPUCOPYOPS_TD

include "gdn/Dialect/GPU/IR/GPUDialect.td"
include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def GPU_BeginCopyOp : GPU_Op<"begin_copy", [AttrSizedOperandSegments]> {
  let summary = "Begins to copy a tile to shared memory";
  let description = [{
    All threads of the block, or of a role, begin to copy the tile at
    `indices` of `view`, in pieces of 16 bytes, or with `scattered` element by
    element, and go on. Rows from `rows` on (elements, of a tile of rank 1) become
    zero; nothing is read for them. The tile is there behind a `gdn_gpu.barrier`
    behind a `gdn_gpu.await_copies`.

    With `per_warpgroup`, each group of four warps (each warp, where there are fewer) copies
    the columns that are its rows where the tile is loaded or stored transposed:
    of `G` groups, group `g` has the `g`th part. The op waits for the group to have
    read what was there, and `gdn_gpu.await_copies` for the whole group's copies: as
    long as a tile is used in such ways alone, no group has to wait for another.

    With `tensor_map`, a tile of which all rows are there comes as one box, by a tensor
    map that the launch brings: one thread asks, and the barrier of the channel that
    the tile belongs to counts its bytes: it is there for who receives it, not
    behind a `gdn_gpu.await_copies`. Other tiles come in pieces.

    With `any_alignment`, the code asks at run time whether 16 bytes divide the address
    and the stride of rows, and where they do not the block copies element by element,
    and waits for them.

    **Preconditions**

    - (C1) one index per dimension of the view; `dims` names as many distinct
      dimensions of the view as the tile has.
    - (C2) view and buffer have the same element type; a row of the buffer, or all
      of it for rank 1, is a multiple of 16 bytes.
    - (C3) without `scattered`, the columns of the tile lie side by side in the
      view; without `any_alignment`, 16 bytes divide the address and the stride of rows.
      Not checked.
    - (C4) with `per_warpgroup` or `tensor_map` it is not inside a `gdn_gpu.warps` that is
      no role; in other such warps these alone copy.
    - (C5) a `gdn_gpu.barrier` stands between this op and the last access to the
      tile before it; checked on the function.
    - (C6) with `scattered`, the tile has rank 1 and elements of 32 bits.
    - (C7) with `per_warpgroup`, the tile is swizzled and the columns of a warp are whole
      pieces.
    - (C8) with `tensor_map`, and neither `per_warpgroup` nor `scattered`, the tile comes from a
      `gdn_gpu.acquire`, is swizzled, has rank 2, elements of 16 bits or f32, at most 256
      rows, of up to 512 bytes, a multiple of 128, which are all of the view's last
      dimension, from index 0 on, or rows of 128 bytes, from a multiple of them on (not
      checked); the view is an argument of the function, of up to 4
      dimensions. 16 bytes divide all strides but the last: not checked. Needs a
      target with bulk copies.
    - (C9) a `gdn_gpu.await_copies` and a `gdn_gpu.barrier` stand between it and a write to
      the elements of the view; checked on the function where the indices are the same
      values.
    - (C10) with `any_alignment`, and neither `per_warpgroup`, `tensor_map` nor `scattered`, the tile
      has rank 2 and is not swizzled.

    **Example**

    ```mlir
    func.func @keys(%k: memref<?x?x128xbf16, strided<[?, ?, 1]>>, %t: index,
                    %h: index, %valid: index)
        attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
      %c0 = arith.constant 0 : index
      %buffer = gdn_gpu.alloc : !gdn_gpu.shared<64x128xbf16, swizzled>
      gdn_gpu.begin_copy %k[%t, %h, %c0] dims [0, 2] rows(%valid), %buffer
          : memref<?x?x128xbf16, strided<[?, ?, 1]>>,
            !gdn_gpu.shared<64x128xbf16, swizzled>
      gdn_gpu.await_copies
      gdn_gpu.barrier
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<AnyMemRef, "view", [MemRead]>:$view, Variadic<Index>:$indices,
    DenseI64ArrayAttr:$dims, Optional<Index>:$rows,
    Arg<GPU_SharedType, "buffer", [MemWrite]>:$buffer, UnitAttr:$scattered,
    UnitAttr:$per_warpgroup, UnitAttr:$tensor_map, UnitAttr:$any_alignment);
  let assemblyFormat = [{
    (`scattered` $scattered^)? (`per_warpgroup` $per_warpgroup^)? (`tensor_map` $tensor_map^)? (`any_alignment` $any_alignment^)? $view `[` $indices `]` `dims` $dims (`rows` `(` $rows^ `)`)? `,` $buffer
    attr-dict `:` type($view) `,` type($buffer)
  }];
  let hasVerifier = 1;
}

def GPU_CopyOutOp : GPU_Op<"copy_out", [AttrSizedOperandSegments]> {
  let summary = "Copies a shared tile to memory, per warpgroup";
  let description = [{
    Each group of warps writes the columns that are its rows where it shared the
    tile transposed, as `gdn_gpu.begin_copy per_warpgroup` deals them; rows from `rows` on
    are left out. The op waits for the group to have shared, and behind it the group
    may store into its columns again.

    With `tensor_map`, the columns of a group go as a box, by a tensor map that the
    runtime makes (`cp.async.bulk.tensor`, sm_90a): one thread asks. What shares
    into the tile next waits until it has been read. There are all rows, or none
    (not checked).

    With `full_until_last`, all rows are there in each turn of the loop around but the
    last (not checked), as of a `gdn_tile.store`.

    **Preconditions**

    - (C1) one index per dimension of the view; `dims` names as many distinct
      dimensions of the view as the tile has.
    - (C2) view and buffer have the same element type; the buffer is swizzled and the
      columns of a warp are whole pieces of 16 bytes.
    - (C3) the columns of the tile lie side by side in the view; 16 bytes divide
      the address and the stride of rows. Not checked.
    - (C4) it is not inside a `gdn_gpu.warps` that is no role.
    - (C5) with `tensor_map`, the view is an argument of the function, of up to 4
      dimensions, the last of which is a known multiple of 64, at most 256; the
      tile has rows of that and elements of 16 bits, and 64 columns for each
      group, together no more than the view; they begin at a multiple of 64 (not
      checked).
    - (C6) with `tensor_map`, the tile is one of `gdn_gpu.alloc`, into which the role
      stores columns per warpgroup, and does so behind the op in its block; nothing else
      writes it; and the function has `warpgroups` in `gdn_gpu.kernel`, with which tiles lie
      where the swizzle begins. `gdn-gpu-check` makes sure of this.
    - (C7) with `full_until_last` it has `rows` and stands in the body of an
      `scf.for` whose step is a constant, the tile's rows.

    **Example**

    ```mlir
    #rows = #gdn_gpu.rows<warps = 8, lanes = 4, vector = 2>
    func.func @outputs(%o: memref<?x128xbf16, strided<[?, 1]>>, %t: index,
                       %transposed: !gdn_gpu.fragment<128x64xbf16, #rows>,
                       %valid: index)
        attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
      %c0 = arith.constant 0 : index
      %buffer = gdn_gpu.alloc : !gdn_gpu.shared<64x128xbf16, swizzled>
      gdn_gpu.store_shared transpose %transposed, %buffer
          : !gdn_gpu.fragment<128x64xbf16, #rows>,
            !gdn_gpu.shared<64x128xbf16, swizzled>
      gdn_gpu.copy_out %buffer, %o[%t, %c0] dims [0, 1] rows(%valid)
          : !gdn_gpu.shared<64x128xbf16, swizzled>,
            memref<?x128xbf16, strided<[?, 1]>>
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<GPU_SharedType, "buffer", [MemRead]>:$buffer,
    Arg<AnyMemRef, "view", [MemWrite]>:$view, Variadic<Index>:$indices,
    DenseI64ArrayAttr:$dims, Optional<Index>:$rows, UnitAttr:$tensor_map,
    UnitAttr:$full_until_last);
  let assemblyFormat = [{
    (`tensor_map` $tensor_map^)? $buffer `,` $view `[` $indices `]` `dims` $dims (`rows` `(` $rows^ `)`)?
    (`full_until_last` $full_until_last^)? attr-dict `:` type($buffer) `,` type($view)
  }];
  let hasVerifier = 1;
}

def GPU_AwaitCopiesOp : GPU_Op<"await_copies", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "The copies that this thread began are done";
  let description = [{
    Waits for all `gdn_gpu.begin_copy` before it. What other threads copied is there
    behind the next `gdn_gpu.barrier`; in a role with copies `per_warpgroup`, what its group of
    warps copied is there at once.

    **Preconditions**

    - (C1) it is not inside a `gdn_gpu.warps` that is no role.

    **Example**

    ```mlir
    func.func @wait() attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
      gdn_gpu.await_copies
      gdn_gpu.barrier
      return
    }
    ```
  }];
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

#endif // GDN_DIALECT_GPU_IR_GPUCOPYOPS_TD
