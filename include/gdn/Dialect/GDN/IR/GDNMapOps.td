// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops on maps of runs of tokens, which ranks exchange where a sequence is
// spread over them.
#ifndef GDN_DIALECT_GDN_IR_GDNMAPOPS_TD
#define GDN_DIALECT_GDN_IR_GDNMAPOPS_TD

include "gdn/Dialect/GDN/IR/GDNTypes.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def GDN_CombineMapsOp : GDN_Op<"combine_maps", [
    Pure, DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "The map of segments of tokens, one after the other";
  let description = [{
    Segment `m` maps the state of a value head to `S linear[m] + constant[m]`.
    Sequence `n` has the segments from `first_segments[n]` on, `num_segments[n]`
    of them. What all of them do to the state is a map again, which `maps[n]`
    holds with the constant part, `dv` rows, ahead of the linear one, `dk` rows:

        A = [0; 1]
        for each segment m of n:   A = A linear[m] + [constant[m]; 0]
        maps[n] = A

    A sequence without segments has the map that changes nothing. Segments of no
    sequence are not read.

    **Preconditions**

    - (C1) `constant` is `M x Hv x dv x dk`, `linear` is `M x Hv x dk x dk`; `dk`
      and `dv` are static.
    - (C2) `first_segments` and `num_segments` are both `N`.

    **Example**

    ```mlir
    func.func @own(%h: tensor<?x?x128x128xf32>, %p: tensor<?x?x128x128xf32>,
                   %first: tensor<?xi32>, %count: tensor<?xi32>)
        -> tensor<?x?x256x128xf32> {
      %maps = gdn.combine_maps segments(%h, %p) of(%first, %count)
          : tensor<?x?x128x128xf32>, tensor<?x?x128x128xf32>, tensor<?xi32>,
            tensor<?xi32>
      return %maps : tensor<?x?x256x128xf32>
    }
    ```
  }];
  let arguments = (ins
    Arg<GDN_F32Tensor<[4]>, "H of each segment, M x Hv x dv x dk">:$constant,
    Arg<GDN_F32Tensor<[4]>, "P of each segment, M x Hv x dk x dk">:$linear,
    Arg<GDN_SequencesTensor, "first segment of each sequence, N">:$first_segments,
    Arg<GDN_SequencesTensor, "segments of each sequence, N">:$num_segments);
  let results = (outs
    Res<GDN_F32Tensor<[4]>, "H and P of each sequence, N x Hv x (dv + dk) x dk">:$maps);
  let assemblyFormat = [{
    `segments` `(` $constant `,` $linear `)`
    `of` `(` $first_segments `,` $num_segments `)` attr-dict
    `:` type($constant) `,` type($linear) `,` type($first_segments) `,`
    type($num_segments)
  }];
  let hasVerifier = 1;
}

def GDN_ApplyMapsOp : GDN_Op<"apply_maps", [
    DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "States before segments and behind all ranks, from maps";
  let description = [{
    `maps[r, n]` is what the tokens of sequence `n` on rank `r` do to its state,
    as `combine_maps` makes it. With the state in slot `slots[n]`, or zeros if
    the pool skips that slot:

        S = pool[slots[n]]
        for r in 0 .. R - 1:
          if r = rank[0]: B = S
          S = S maps[r, n].linear + maps[r, n].constant
        pool[write_slots[n]] = S            if the pool does not skip that slot
        for each segment m of n:            those of this rank, as combine_maps
          states[m] = B
          B = B linear[m] + constant[m]

    `states` of segments that no sequence has are not set.

    **Preconditions**

    - (C1) `slots`, `write_slots`, `first_segments` and `num_segments` are all
      `N`.
    - (C2) `pool` is `P x Hv x dv x dk` of floats, `maps` is
      `R x N x Hv x (dv + dk) x dk`, `constant` is `M x Hv x dv x dk` and
      `linear` is `M x Hv x dk x dk`; `dk` and `dv` are static.
    - (C3) `rank` has one element.

    **Example**

    ```mlir
    func.func @states(%pool: !gdn.pool<?x?x128x128xf32>, %slots: tensor<?xi32>,
        %to: tensor<?xi32>, %maps: tensor<?x?x?x256x128xf32>,
        %rank: tensor<1xi32>, %h: tensor<?x?x128x128xf32>,
        %p: tensor<?x?x128x128xf32>, %first: tensor<?xi32>,
        %count: tensor<?xi32>) -> tensor<?x?x128x128xf32> {
      %states = gdn.apply_maps %pool[%slots to %to] ranks(%maps, %rank)
          segments(%h, %p) of(%first, %count)
          : !gdn.pool<?x?x128x128xf32>, tensor<?xi32>, tensor<?xi32>,
            tensor<?x?x?x256x128xf32>, tensor<1xi32>, tensor<?x?x128x128xf32>,
            tensor<?x?x128x128xf32>, tensor<?xi32>, tensor<?xi32>
      return %states : tensor<?x?x128x128xf32>
    }
    ```
  }];
  let arguments = (ins
    Arg<GDN_PoolType, "states", [MemRead, MemWrite]>:$pool,
    Arg<GDN_SlotsTensor, "slot that a sequence begins with, N">:$slots,
    Arg<GDN_SlotsTensor, "slot of the last state, N">:$write_slots,
    Arg<GDN_F32Tensor<[5]>, "maps of ranks, R x N x Hv x (dv + dk) x dk">:$maps,
    Arg<TensorRankOf<[I32], [1]>, "number of this rank, one element">:$rank,
    Arg<GDN_F32Tensor<[4]>, "H of each segment, M x Hv x dv x dk">:$constant,
    Arg<GDN_F32Tensor<[4]>, "P of each segment, M x Hv x dk x dk">:$linear,
    Arg<GDN_SequencesTensor, "first segment of each sequence, N">:$first_segments,
    Arg<GDN_SequencesTensor, "segments of each sequence, N">:$num_segments);
  let results = (outs
    Res<GDN_F32Tensor<[4]>, "state before each segment, M x Hv x dv x dk">:$states);
  let assemblyFormat = [{
    $pool `[` $slots `to` $write_slots `]` `ranks` `(` $maps `,` $rank `)`
    `segments` `(` $constant `,` $linear `)`
    `of` `(` $first_segments `,` $num_segments `)` attr-dict
    `:` qualified(type($pool)) `,` type($slots) `,` type($write_slots) `,`
    type($maps) `,` type($rank) `,` type($constant) `,` type($linear) `,`
    type($first_segments) `,` type($num_segments)
  }];
  let hasVerifier = 1;
}

#endif // GDN_DIALECT_GDN_IR_GDNMAPOPS_TD
