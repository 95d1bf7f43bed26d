// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops over the sequences of a ragged batch whose states are in pools.
#ifndef GDN_DIALECT_GDN_IR_GDNSTATEOPS_TD
#define GDN_DIALECT_GDN_IR_GDNSTATEOPS_TD

include "gdn/Dialect/GDN/IR/GDNTypes.td"
include "gdn/Dialect/GDN/IR/GDNAttrs.td"
include "gdn/Dialect/GDN/IR/GDNInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

defvar GDN_PoolReadWrite = [MemRead<DefaultResource, 0, FullEffect>,
                            MemWrite<DefaultResource, 1, FullEffect>];

// The operands that all ops with states have: where the states of sequences are
// read and where they are written. `states` describes the content of the pool.
class GDN_StateOperands<string states> {
  dag operands = (ins
    Arg<GDN_PoolType, states, GDN_PoolReadWrite>:$pool,
    Arg<GDN_SlotsTensor, "slot of each sequence">:$slots,
    Arg<Optional<GDN_SlotsTensor>, "slot to write, if not the one read">:$write_slots,
    Arg<Optional<GDN_SequencesTensor>, "bounds of the sequences, N+1">:$cu_seqlens,
    Arg<Optional<GDN_FlagsTensor>, "false: the sequence starts from zeros">:$has_initial,
    // States inside a sequence.
    Arg<Optional<GDN_SequencesTensor>,
        "bounds of each sequence's checkpoints, N+1">:$cu_checkpoints,
    Arg<Optional<GDN_SequencesTensor>,
        "tokens of the sequence before each checkpoint, C">:$checkpoint_tokens,
    Arg<Optional<GDN_SlotsTensor>, "slot of each checkpoint, C">:$checkpoint_slots,
    // States after every token of a sequence. The next step starts from one.
    Arg<Optional<GDN_SlotsTable>,
        "slot of the state after each token of a sequence, N x S">:$token_slots,
    Arg<Optional<GDN_SlotsTable>,
        "token whose state each token starts from, N x S">:$parents,
    // The pool of those states, if not the pool that sequences start from.
    Arg<Optional<GDN_PoolType>,
        "states after tokens, of the shape of the pool except for the slots",
        GDN_PoolReadWrite>:$token_pool);
}

// The syntax of these operands and of their types.
defvar GDN_StateSyntax = [{
    `pool` `(` $pool `)` `slots` `(` $slots (`->` $write_slots^)? `)`
    (`sequences` `(` $cu_seqlens^ `)`)? (`initial` `(` $has_initial^ `)`)?
    (`checkpoints` `(` $cu_checkpoints^ `,` $checkpoint_tokens `,` $checkpoint_slots `)`)?
    (`token_slots` `(` $token_slots^ `)`)? (`parents` `(` $parents^ `)`)?
    (`token_pool` `(` $token_pool^ `)`)?
}];
defvar GDN_StateTypes = [{
    qualified(type($pool)) `,` type($slots) (`into` type($write_slots)^)?
    (`,` type($cu_seqlens)^)? (`initial` type($has_initial)^)?
    (`checkpoints` type($cu_checkpoints)^ `,` type($checkpoint_tokens) `,` type($checkpoint_slots))?
    (`token_slots` type($token_slots)^)? (`parents` type($parents)^)?
    (`token_pool` qualified(type($token_pool))^)?
}];

// How many tokens of the previous step are accepted; for pending tokens.
defvar GDN_NumAccepted = Arg<Optional<GDN_SequencesTensor>,
    "accepted tokens of the previous step, N">;

def GDN_Conv1dOp : GDN_Op<"conv1d", [
    AttrSizedOperandSegments, GDN_StateOpInterface]> {
  let summary = "Causal depthwise convolution of a ragged batch, with state";
  let description = [{
    The inputs are consecutive sections of the `D` channels (`q`, `k` and `v`,
    or one input with all channels). Channel `c` of their concatenation has the
    weights `weight[c]`. For each live sequence with tokens `x_0 .. x_{L-1}`,
    and with `x_{-j} = state[slot, c, K-1-j]` for `j = 1 .. K-1` (0 if
    `has_initial` is false):

        y_t    = act(bias + sum_j weight[c, j] * x_{t-K+1+j})
        state' = the last K-1 of (state ++ x_0 .. x_{L-1})     // raw inputs

    `state'` is written to `write_slots` if given, else to the slot that was
    read. A sequence with `L = 0` changes nothing. The results of skipped
    sequences and of padding are zero. A sequence whose write slot is skipped
    gives its result and does not change the pool.

    With `checkpoints(%cu_checkpoints, %tokens, %slots)` live sequence `n` also
    writes the `state'` after its first `tokens[c]` tokens to `slots[c]` of the
    same pool, for `cu_checkpoints[n] <= c < cu_checkpoints[n+1]`. See
    docs/spec/slots.md for the checkpoints that are not written.

    With `token_slots(%table)` live sequence `n` writes the `state'` after its
    token `t` to slot `table[n, t]` of the same pool, for every `t < S`. Its
    last state is written nowhere else.

    With `parents(%parents)` in addition, the tokens are a tree: token `t` of
    the sequence starts from the state after its token `parents[n, t]`. If that
    token does not lie before `t`, or its slot is skipped, token `t` starts from
    the state of the sequence.

    With `token_pool(%buffer)` the slots of `token_slots` are those of another
    pool, and the slot of the sequence keeps its state. `gdn.pool_copy` copies
    a state back.

    With `pending(%num_accepted)` a slot has `S` more inputs: those of the
    previous step of the sequence, after the state before that step. The first
    `a = num_accepted[n]` of them are accepted, so
    `x_{-j} = state[slot, c, K-1-j+a]`. The inputs of this step become pending
    in their place:

        state'[p] = x_{p-K+1}     p = 0 .. K-2 + min(L, S)

    A sequence whose count is not from 0 to `S` is skipped.

    **Preconditions**

    - (C1) inputs are `T x H x d` or `T x C`, with the same `T` and element
      type; result `i` has the shape of input `i`.
    - (C2) `weight` is `D x K` with static `K` from 2 to 8; `bias` is `D`.
    - (C3) `pool` is `P x D x (K-1)`; with `num_accepted` it is as in (C10).
    - (C4) `cu_seqlens` has one more element than `slots`; without it there is
      one slot per token. `write_slots` and `has_initial` have one element per
      sequence.
    - (C5) the activation is `identity` or `silu`.
    - (C6) where static, the channels of the inputs add up to `D`.
    - (C7) the three operands of `checkpoints` are given together, and only with
      `cu_seqlens`; `cu_checkpoints` has as many elements as `cu_seqlens`, the
      others have one per checkpoint.
    - (C8) `token_slots` is `N x S`, with `S` from 1 to 8 where static; it
      requires `cu_seqlens` and excludes `write_slots` and `checkpoints`.
    - (C9) `parents` is `N x S` and requires `token_slots`.
    - (C10) with `num_accepted`, `pool` is `P x D x (K-1+S)`, with `S` from 1 to
      8 where static. `num_accepted` is `N`; it requires `cu_seqlens` and
      excludes `write_slots`, `has_initial`, `checkpoints` and `token_slots`.
    - (C11) `token_pool` has the shape and element type of `pool`, except for
      the number of slots, and requires `token_slots`.

    **Example**

    ```mlir
    func.func @conv(%q: tensor<?x?x128xbf16>, %k: tensor<?x?x128xbf16>,
        %v: tensor<?x?x128xbf16>, %w: tensor<?x4xbf16>,
        %pool: !gdn.pool<?x?x3xbf16>, %cu: tensor<?xi32>, %slots: tensor<?xi32>)
        -> tensor<?x?x128xf32> {
      %qc, %kc, %vc = gdn.conv1d %q, %k, %v weight(%w) silu
          pool(%pool) slots(%slots) sequences(%cu)
          : (tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?x128xbf16>),
            tensor<?x4xbf16>, !gdn.pool<?x?x3xbf16>, tensor<?xi32>, tensor<?xi32>
            -> tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<?x?x128xf32>
      return %vc : tensor<?x?x128xf32>
    }
    ```
  }];
  let arguments = !con((ins
    Arg<Variadic<GDN_FloatTensorOf<[2, 3]>>, "sections of the channels">:$inputs,
    Arg<GDN_FloatTensor<2>, "weights, D x K">:$weight,
    Arg<Optional<GDN_FloatTensor<1>>, "bias, D">:$bias,
    GDN_Activation:$activation),
    GDN_StateOperands<"raw inputs before each sequence, P x D x (K-1)">.operands,
    (ins GDN_NumAccepted:$num_accepted));
  let results = (outs Variadic<GDN_FloatTensorOf<[2, 3]>>:$results);
  let builders = [OpBuilder<(ins "::mlir::TypeRange":$results,
      "::mlir::ValueRange":$inputs, "::mlir::Value":$weight, "::mlir::Value":$bias,
      "::gdn::Activation":$activation, "const ::gdn::StateOperands &":$states), [{
    build($_builder, $_state, results, inputs, weight, bias, activation, states.pool,
          states.slots, states.writeSlots, states.cuSeqlens, states.hasInitial,
          states.cuCheckpoints, states.checkpointTokens, states.checkpointSlots,
          states.tokenSlots, states.parents, states.tokenPool, states.numAccepted);
  }]>];
  let assemblyFormat = !strconcat([{
    $inputs `weight` `(` $weight `)` (`bias` `(` $bias^ `)`)? $activation
  }], GDN_StateSyntax, [{
    (`pending` `(` $num_accepted^ `)`)? attr-dict
    `:` `(` type($inputs) `)` `,` type($weight) (`bias` type($bias)^)? `,`
  }], GDN_StateTypes, [{
    (`pending` type($num_accepted)^)? `->` type($results)
  }]);
  let extraClassDeclaration = [{
    /// The operands that have one entry per token.
    ::llvm::SmallVector<::mlir::Value> getTokenOperands() {
      return ::llvm::to_vector_of<::mlir::Value>(getInputs());
    }
  }];
  let hasVerifier = 1;
}

def GDN_AcceptedSlotsOp : GDN_Op<"accepted_slots", [Pure]> {
  let summary = "Slots of the states after the last accepted tokens";
  let description = [{
    Element `n` of the result is `token_slots[n, num_accepted[n] - 1]`: the slot
    of the state after the last accepted token of the previous step of sequence
    `n`. It is -1, which every op skips, if `num_accepted[n]` is not from 1 to
    `S`. With `cu_seqlens` it is -1 also if sequence `n` has more than
    `max_tokens` tokens. So a target may assume that
    no live sequence has more tokens, and compute all of them at once.

    **Preconditions**

    - (C1) `token_slots` is `N x S`, `num_accepted` and the result are `N`;
      `cu_seqlens`, if given, is `N + 1`.
    - (C2) the result has the element type of `token_slots`.
    - (C3) `max_tokens` is given if and only if `cu_seqlens` is; it is at least
      1.

    **Example**

    ```mlir
    func.func @last(%table: tensor<?x5xi64>, %accepted: tensor<?xi32>,
                    %cu: tensor<?xi32>) -> tensor<?xi64> {
      %slots = gdn.accepted_slots %table[%accepted] sequences(%cu) max_tokens(8)
          : tensor<?x5xi64>, tensor<?xi32>, tensor<?xi32> -> tensor<?xi64>
      return %slots : tensor<?xi64>
    }
    ```
  }];
  let arguments = (ins
    Arg<GDN_SlotsTable, "slots of the states after each token, N x S">:$token_slots,
    Arg<GDN_SequencesTensor, "accepted tokens of the previous step, N">:$num_accepted,
    Arg<Optional<GDN_SequencesTensor>, "bounds of the sequences, N + 1">:$cu_seqlens,
    OptionalAttr<I64Attr>:$max_tokens);
  let results = (outs GDN_SlotsTensor:$result);
  let assemblyFormat = [{
    $token_slots `[` $num_accepted `]` (`sequences` `(` $cu_seqlens^ `)`)?
    (`max_tokens` `(` $max_tokens^ `)`)? attr-dict
    `:` type($token_slots) `,` type($num_accepted) (`,` type($cu_seqlens)^)?
    `->` type($result)
  }];
  let hasVerifier = 1;
}

def GDN_TakenSlotsOp : GDN_Op<"taken_slots", [
    Pure, AllTypesMatch<["slots", "result"]>]> {
  let summary = "Slots of the sequences that an entry takes";
  let description = [{
    Element `n` of the result is `slots[n]` if `flags[n]` is true, with
    `where_not` if it is false. The entry takes these sequences; the others are
    another entry's, which has the same arrays. An entry leaves what it does not
    take as it is: it reads and writes no state of such a sequence, and does not
    write the tokens of its results. Where values are new tensors, as in the
    reference, the element is -1 and the tokens are zeros.

    **Preconditions**

    - (C1) `slots`, `flags` and the result are `N`.

    **Example**

    ```mlir
    func.func @short(%slots: tensor<?xi32>, %is_prefill: tensor<?xi1>)
        -> tensor<?xi32> {
      %own = gdn.taken_slots %slots where_not(%is_prefill)
          : tensor<?xi32>, tensor<?xi1>
      return %own : tensor<?xi32>
    }
    ```
  }];
  let arguments = (ins
    Arg<GDN_SlotsTensor, "slot of each sequence, N">:$slots,
    Arg<GDN_FlagsTensor, "which sequences are meant, N">:$flags,
    UnitAttr:$negated);
  let results = (outs GDN_SlotsTensor:$result);
  let assemblyFormat = [{
    $slots (`where_not` $negated^):(`where`)? `(` $flags `)` attr-dict
    `:` type($slots) `,` type($flags)
  }];
  let hasVerifier = 1;
}

def GDN_MaskSequencesOp : GDN_Op<"mask_sequences", [
    Pure, GDN_SequenceOpInterface]> {
  let summary = "Zeros in the tokens of skipped sequences and of padding";
  let description = [{
    The result is `input` for tokens of live sequences, and exactly zero for all
    other tokens, whatever `input` holds there (NaN included). The op uses only
    the size and the null slot of the pool, which are fixed at binding, so it
    reads no memory.

    **Preconditions**

    - (C1) input and result have the same shape and element type; dimension 0
      is `T`.
    - (C2) `cu_seqlens` has one more element than `slots`; without it there is
      one slot per token.

    **Example**

    ```mlir
    func.func @mask(%x: tensor<?x?x128xf32>, %slots: tensor<?xi32>,
        %pool: !gdn.pool<?x?x128x128xf32>) -> tensor<?x?x128xf32> {
      %y = gdn.mask_sequences %x of(%pool) slots(%slots)
          : tensor<?x?x128xf32>, !gdn.pool<?x?x128x128xf32>, tensor<?xi32>
            -> tensor<?x?x128xf32>
      return %y : tensor<?x?x128xf32>
    }
    ```
  }];
  let arguments = (ins
    Arg<GDN_FloatTensorOf<[2, 3]>, "T x ...">:$input,
    Arg<GDN_PoolType, "pool that decides which slots are skipped">:$pool,
    Arg<GDN_SlotsTensor, "slot of each sequence">:$slots,
    Arg<Optional<GDN_SequencesTensor>, "bounds of the sequences, N+1">:$cu_seqlens);
  let results = (outs GDN_FloatTensorOf<[2, 3]>:$result);
  let assemblyFormat = [{
    $input `of` `(` $pool `)` `slots` `(` $slots `)` (`sequences` `(` $cu_seqlens^ `)`)?
    attr-dict `:` type($input) `,` qualified(type($pool)) `,` type($slots)
    (`,` type($cu_seqlens)^)? `->` type($result)
  }];
  let extraClassDeclaration = [{
    /// The operands that have one entry per token.
    ::llvm::SmallVector<::mlir::Value> getTokenOperands() { return {getInput()}; }
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def GDN_PoolReadOp : GDN_Op<"pool_read", []> {
  let summary = "States of some slots, as a tensor";
  let description = [{
    Row `n` of the result is slot `slots[n]` of the pool, or zeros if that slot
    is skipped.

    **Preconditions**

    - (C1) the result has the shape of the pool, with `N` in place of `P`.

    **Example**

    ```mlir
    func.func @gather(%pool: !gdn.pool<?x?x128x128xf32>, %slots: tensor<?xi32>)
        -> tensor<?x?x128x128xf32> {
      %s = gdn.pool_read %pool[%slots]
          : !gdn.pool<?x?x128x128xf32>, tensor<?xi32> -> tensor<?x?x128x128xf32>
      return %s : tensor<?x?x128x128xf32>
    }
    ```
  }];
  let arguments = (ins
    Arg<GDN_PoolType, "pool", [MemRead]>:$pool,
    Arg<GDN_SlotsTensor, "slots, N">:$slots);
  let results = (outs GDN_FloatTensorOf<[3, 4]>:$result);
  let assemblyFormat = [{
    $pool `[` $slots `]` attr-dict `:` qualified(type($pool)) `,` type($slots) `->` type($result)
  }];
  let hasVerifier = 1;
}

def GDN_PoolWriteOp : GDN_Op<"pool_write", []> {
  let summary = "Put states into some slots";
  let description = [{
    Row `n` of `value` is written to slot `slots[n]` of the pool, rounded once
    to the element type of the pool. A skipped slot is not changed. No slot that
    is not skipped may occur twice.

    **Preconditions**

    - (C1) `value` has the shape of the pool, with `N` in place of `P`.

    **Example**

    ```mlir
    func.func @scatter(%s: tensor<?x?x128x128xf32>,
        %pool: !gdn.pool<?x?x128x128xf32>, %slots: tensor<?xi32>) {
      gdn.pool_write %s, %pool[%slots]
          : tensor<?x?x128x128xf32>, !gdn.pool<?x?x128x128xf32>, tensor<?xi32>
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<GDN_FloatTensorOf<[3, 4]>, "states, N x ...">:$value,
    Arg<GDN_PoolType, "pool", [MemWrite]>:$pool,
    Arg<GDN_SlotsTensor, "slots, N">:$slots);
  let assemblyFormat = [{
    $value `,` $pool `[` $slots `]` attr-dict
    `:` type($value) `,` qualified(type($pool)) `,` type($slots)
  }];
  let hasVerifier = 1;
}

#endif // GDN_DIALECT_GDN_IR_GDNSTATEOPS_TD
