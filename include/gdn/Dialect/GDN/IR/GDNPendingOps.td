// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops over tokens that are pending: those of each sequence's last step, which are
// not in the sequence's state yet. See docs/spec/slots.md.
#ifndef GDN_DIALECT_GDN_IR_GDNPENDINGOPS_TD
#define GDN_DIALECT_GDN_IR_GDNPENDINGOPS_TD

include "gdn/Dialect/GDN/IR/GDNTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

defvar GDN_PendingReadWrite = [MemRead<DefaultResource, 0, FullEffect>,
                               MemWrite<DefaultResource, 1, FullEffect>];

def GDN_CountedSlotsOp : GDN_Op<"counted_slots", [
    Pure, AllTypesMatch<["slots", "result"]>]> {
  let summary = "Slots of the sequences whose count of accepted tokens is one";
  let description = [{
    Element `n` of the result is `slots[n]` where `num_accepted[n]` is from 0 to
    `steps`, and -1, which is skipped, elsewhere. With `cu_seqlens` it is -1 also
    where sequence `n` has more than `max_tokens` tokens: a target may then count on
    sequences that it takes in one go.

    **Preconditions**

    - (C1) `slots`, `num_accepted` and the result are `N`; `cu_seqlens`, where there
      is one, is `N + 1`.
    - (C2) `max_tokens` is given where `cu_seqlens` is, and nowhere else; it is at
      least 1.

    **Example**

    ```mlir
    func.func @rows(%slots: tensor<?xi64>, %accepted: tensor<?xi32>,
                    %steps: index, %cu: tensor<?xi32>) -> tensor<?xi64> {
      %rows = gdn.counted_slots %slots[%accepted] up_to(%steps) sequences(%cu)
          max_tokens(8) : tensor<?xi64>, tensor<?xi32>, tensor<?xi32>
      return %rows : tensor<?xi64>
    }
    ```
  }];
  let arguments = (ins
    Arg<GDN_SlotsTensor, "slot of each sequence">:$slots,
    Arg<GDN_SequencesTensor, "accepted tokens of the previous step, N">:$num_accepted,
    Arg<Index, "the most that can be accepted">:$steps,
    Arg<Optional<GDN_SequencesTensor>, "bounds of the sequences, N + 1">:$cu_seqlens,
    OptionalAttr<I64Attr>:$max_tokens);
  let results = (outs GDN_SlotsTensor:$result);
  let assemblyFormat = [{
    $slots `[` $num_accepted `]` `up_to` `(` $steps `)`
    (`sequences` `(` $cu_seqlens^ `)`)? (`max_tokens` `(` $max_tokens^ `)`)? attr-dict
    `:` type($slots) `,` type($num_accepted) (`,` type($cu_seqlens)^)?
  }];
  let hasVerifier = 1;
}

def GDN_CommitConv1dOp : GDN_Op<"commit_conv1d", []> {
  let summary = "Move the window of a convolution past accepted tokens";
  let description = [{
    For every sequence `n` whose slot is not skipped and with `a = num_accepted[n]`
    from 1 to `S`, all channels `c` of slot `slots[n]`:

        state'[c, p] = state[c, p + a]      p = 0 .. window-1

    Other columns keep their bits, and so do other sequences' slots: nothing is
    accepted of a sequence whose count is 0, and one that is no count skips its
    sequence. Afterwards none of the sequence's tokens is pending.

    **Preconditions**

    - (C1) `pool` is `P x D x (window+S)`, where static with `S` from 1 to 8.
    - (C2) `slots` and `num_accepted` are `N`.
    - (C3) `window` is from 1 to 7.

    **Example**

    ```mlir
    func.func @commit(%pool: !gdn.pool<?x?x7xbf16>, %slots: tensor<?xi32>,
                      %accepted: tensor<?xi32>) {
      gdn.commit_conv1d %pool[%slots] accepted(%accepted) window 3
          : !gdn.pool<?x?x7xbf16>, tensor<?xi32>, tensor<?xi32>
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<GDN_PoolType, "inputs before and of the last step, P x D x (window+S)",
        GDN_PendingReadWrite>:$pool,
    Arg<GDN_SlotsTensor, "slot of each sequence">:$slots,
    Arg<GDN_SequencesTensor, "accepted tokens, N">:$num_accepted,
    I64Attr:$window);
  let assemblyFormat = [{
    $pool `[` $slots `]` `accepted` `(` $num_accepted `)` `window` $window attr-dict
    `:` qualified(type($pool)) `,` type($slots) `,` type($num_accepted)
  }];
  let hasVerifier = 1;
}

def GDN_CommitDeltaRuleOp : GDN_Op<"commit_delta_rule", []> {
  let summary = "Put accepted tokens into the states of the delta rule";
  let description = [{
    For every sequence `n` whose slot is not skipped and with `a = num_accepted[n]`
    from 1 to `S`, all value heads `h` with key head `h' = h / (Hv/Hk)`, and `M`
    the state in slot `slots[n]`:

        M <- M * exp(decays[slot,h,j])
        M <- M + deltas[slot,h,j] keys[slot,h',j]^T      j = 0 .. a-1

    The slot receives `M`, rounded once to the pool's element type. Nothing is
    accepted of a sequence whose count is 0, and one that is no count skips its
    sequence. Afterwards none of the sequence's tokens is pending; the pools that held
    them keep their bits.

    **Preconditions**

    - (C1) `pool` is `P x Hv x dv x dk`, with static `dk` and `dv`.
    - (C2) `slots` and `num_accepted` are `N`.
    - (C3) `keys` is `P x Hk x S x dk`, `deltas` `P x Hv x S x dv` and `decays`
      `P x Hv x S` or `P x Hv x S x dk`, all of f32, where static with `S` from
      1 to 8.

    **Example**

    ```mlir
    func.func @commit(%pool: !gdn.pool<?x?x128x128xf32>, %slots: tensor<?xi32>,
        %accepted: tensor<?xi32>, %keys: !gdn.pool<?x?x4x128xf32>,
        %deltas: !gdn.pool<?x?x4x128xf32>, %decays: !gdn.pool<?x?x4xf32>) {
      gdn.commit_delta_rule %pool[%slots] accepted(%accepted)
          pending(%keys, %deltas, %decays)
          : !gdn.pool<?x?x128x128xf32>, tensor<?xi32>, tensor<?xi32>,
            !gdn.pool<?x?x4x128xf32>, !gdn.pool<?x?x4x128xf32>,
            !gdn.pool<?x?x4xf32>
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<GDN_PoolType, "states, P x Hv x dv x dk", GDN_PendingReadWrite>:$pool,
    Arg<GDN_SlotsTensor, "slot of each sequence">:$slots,
    Arg<GDN_SequencesTensor, "accepted tokens, N">:$num_accepted,
    Arg<GDN_PoolType, "keys of pending tokens, P x Hk x S x dk", [MemRead]>:$keys,
    Arg<GDN_PoolType, "what they add, P x Hv x S x dv", [MemRead]>:$deltas,
    Arg<GDN_PoolType, "their log decays, P x Hv x S (x dk)", [MemRead]>:$decays);
  let assemblyFormat = [{
    $pool `[` $slots `]` `accepted` `(` $num_accepted `)`
    `pending` `(` $keys `,` $deltas `,` $decays `)` attr-dict
    `:` qualified(type($pool)) `,` type($slots) `,` type($num_accepted) `,`
    qualified(type($keys)) `,` qualified(type($deltas)) `,` qualified(type($decays))
  }];
  let hasVerifier = 1;
}

#endif // GDN_DIALECT_GDN_IR_GDNPENDINGOPS_TD
