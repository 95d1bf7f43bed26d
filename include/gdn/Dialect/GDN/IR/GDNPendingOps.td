// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops over pending tokens: the tokens of the last step of each sequence, which
// are not yet part of its state. See docs/spec/slots.md.
#ifndef GDN_DIALECT_GDN_IR_GDNPENDINGOPS_TD
#define GDN_DIALECT_GDN_IR_GDNPENDINGOPS_TD

include "gdn/Dialect/GDN/IR/GDNTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

defvar GDN_PendingReadWrite = [MemRead<DefaultResource, 0, FullEffect>,
                               MemWrite<DefaultResource, 1, FullEffect>];

def GDN_CountedSlotsOp : GDN_Op<"counted_slots", [
    Pure, AllTypesMatch<["slots", "result"]>]> {
  let summary = "Slots of the sequences with a valid count of accepted tokens";
  let description = [{
    Element `n` of the result is `slots[n]` if `num_accepted[n]` is from 0 to
    `steps`, else -1, which every op skips. With `cu_seqlens` it is -1 also if
    sequence `n` has more than `max_tokens` tokens. So a target may assume that
    no live sequence has more tokens, and compute all of them at once.

    **Preconditions**

    - (C1) `slots`, `num_accepted` and the result are `N`; `cu_seqlens`, if
      given, is `N + 1`.
    - (C2) `max_tokens` is given if and only if `cu_seqlens` is; it is at least
      1.

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
    For every sequence `n` whose slot is not skipped and with
    `a = num_accepted[n]` from 1 to `S`, and for all channels `c` of slot
    `slots[n]`:

        state'[c, p] = state[c, p + a]      p = 0 .. window-1

    Other columns keep their bits. With a count of 0 no token is accepted, and
    the slot keeps its bits. A sequence whose count is below 0 or above `S` is
    skipped. After the op, no token of the other sequences is pending.

    **Preconditions**

    - (C1) `pool` is `P x D x (window+S)`, with `S` from 1 to 8 where static.
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

def GDN_CommitDeltaRuleOp : GDN_Op<"commit_delta_rule", [
    AttrSizedOperandSegments]> {
  let summary = "Put accepted tokens into the states of the delta rule";
  let description = [{
    For every sequence `n` whose slot is not skipped and with
    `a = num_accepted[n]` from 1 to `S`, and for all value heads `h` with key
    head `h' = h / (Hv/Hk)`, where `M` is the state in slot `slots[n]`:

        M <- M * exp(decays[slot,h,j])
        M <- M + deltas[slot,h,j] keys[slot,h',j]^T      j = 0 .. a-1

    The slot receives `M`, rounded once to the element type of the pool. With a
    count of 0 no token is accepted, and the slot keeps its bits. A sequence
    whose count is below 0 or above `S` is skipped. After the op, no token of
    the other sequences is pending. The pools of pending tokens keep their bits.

    With `counts(%counts)` the tokens are those of several steps:
    `counts[slot,h'] + a` of them are put into the state, with `a = 0` without
    `accepted`, and `counts[slot,h']` becomes 0. With `delta_scales(%scales)`
    keys and deltas are f16, and `deltas[slot,h,j]` is those numbers times
    `scales[slot,h,j]`.

    **Preconditions**

    - (C1) `pool` is `P x Hv x dv x dk`, with static `dk` and `dv`, in planes with
      `state_scales` and `state_low`, as in `delta_rule`.
    - (C2) `slots` and `num_accepted` are `N`.
    - (C3) `keys` is `P x Hk x S x dk`, `deltas` is `P x Hv x S x dv`, and
      `decays` is `P x Hv x S` or `P x Hv x S x dk`; all are f32, with `S` from
      1 to 8 where static. `num_accepted` or `counts` is given. With `counts`,
      `P x Hk` of i32, `S` may be up to 32 and `decays` has rank 3, and the
      elements of `keys` and `deltas` may both be f16: then, and only then,
      `pending_scales` is given, `P x Hv x S` of f32.

    **Example**

    ```mlir
    func.func @commit(%pool: !gdn.pool<?x?x128x128xf32>, %slots: tensor<?xi32>,
        %accepted: tensor<?xi32>, %keys: !gdn.pool<?x?x4x128xf32>,
        %deltas: !gdn.pool<?x?x4x128xf32>, %decays: !gdn.pool<?x?x4xf32>) {
      gdn.commit_delta_rule %pool[%slots] accepted(%accepted)
          pending(%keys, %deltas, %decays)
          : !gdn.pool<?x?x128x128xf32>, tensor<?xi32> accepted tensor<?xi32>
            pending !gdn.pool<?x?x4x128xf32>, !gdn.pool<?x?x4x128xf32>,
            !gdn.pool<?x?x4xf32>
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<GDN_PoolType, "states, P x Hv x dv x dk", GDN_PendingReadWrite>:$pool,
    Arg<GDN_SlotsTensor, "slot of each sequence">:$slots,
    Arg<Optional<GDN_SequencesTensor>, "accepted tokens, N">:$num_accepted,
    Arg<GDN_PoolType, "keys of pending tokens, P x Hk x S x dk", [MemRead]>:$keys,
    Arg<GDN_PoolType, "deltas of pending tokens, P x Hv x S x dv",
        [MemRead]>:$deltas,
    Arg<GDN_PoolType, "log decays of pending tokens, P x Hv x S (x dk)",
        [MemRead]>:$decays,
    Arg<Optional<GDN_PoolType>, "how many tokens are pending, P x Hk",
        GDN_PendingReadWrite>:$counts,
    Arg<Optional<GDN_PoolType>, "scales of deltas in f16, P x Hv x S",
        [MemRead]>:$pending_scales,
    Arg<Optional<GDN_PoolType>, "scales of rows, P x Hv x dv",
        GDN_PendingReadWrite>:$state_scales,
    Arg<Optional<GDN_PoolType>, "lower plane, P x Hv x dv x dk",
        GDN_PendingReadWrite>:$state_low);
  let assemblyFormat = [{
    $pool `[` $slots `]` (`accepted` `(` $num_accepted^ `)`)?
    `pending` `(` $keys `,` $deltas `,` $decays `)` (`counts` `(` $counts^ `)`)?
    (`delta_scales` `(` $pending_scales^ `)`)?
    (`scales` `(` $state_scales^ `)`)? (`low` `(` $state_low^ `)`)? attr-dict
    `:` qualified(type($pool)) `,` type($slots) (`accepted` type($num_accepted)^)?
    `pending` qualified(type($keys)) `,` qualified(type($deltas)) `,`
    qualified(type($decays)) (`counts` qualified(type($counts))^)?
    (`delta_scales` qualified(type($pending_scales))^)?
    (`scales` qualified(type($state_scales))^)? (`low` qualified(type($state_low))^)?
  }];
  let hasVerifier = 1;
}

#endif // GDN_DIALECT_GDN_IR_GDNPENDINGOPS_TD
