// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Roles that run at the same time, and the units that each works on.
#ifndef GDN_DIALECT_GPU_IR_GPUROLEOPS_TD
#define GDN_DIALECT_GPU_IR_GPUROLEOPS_TD

include "gdn/Dialect/GPU/IR/GPUDialect.td"
include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

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
    - (C6) all threads together have no more `registers` than a block begins with: a multiple of
      8 for each, of which multiprocessors have 65,536. One that asks for more waits forever.

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
    - (C5) what the body gives is the number of `gdn_gpu.take_unit`, or one from a channel
      that is filled with it; checked on the function.

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

#endif // GDN_DIALECT_GPU_IR_GPUROLEOPS_TD
