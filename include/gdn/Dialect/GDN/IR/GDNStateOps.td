// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops over the sequences of a ragged batch whose states live in pools.
#ifndef GDN_DIALECT_GDN_IR_GDNSTATEOPS_TD
#define GDN_DIALECT_GDN_IR_GDNSTATEOPS_TD

include "gdn/Dialect/GDN/IR/GDNTypes.td"
include "gdn/Dialect/GDN/IR/GDNAttrs.td"
include "gdn/Dialect/GDN/IR/GDNInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

defvar GDN_PoolReadWrite = [MemRead<DefaultResource, 0, FullEffect>,
                            MemWrite<DefaultResource, 1, FullEffect>];

// What ops with states have in common: where the states of sequences are, and where
// they go. `states` says what the pool holds.
class GDN_StateOperands<string states> {
  dag operands = (ins
    Arg<GDN_PoolType, states, GDN_PoolReadWrite>:$pool,
    Arg<GDN_SlotsTensor, "slot of each sequence">:$slots,
    Arg<Optional<GDN_SlotsTensor>, "slot to write, if not the one read">:$write_slots,
    Arg<Optional<GDN_SequencesTensor>, "bounds of the sequences, N+1">:$cu_seqlens,
    Arg<Optional<GDN_FlagsTensor>, "false: the sequence starts from zeros">:$has_initial,
    // States inside a sequence, written on the way.
    Arg<Optional<GDN_SequencesTensor>,
        "bounds of each sequence's checkpoints, N+1">:$cu_checkpoints,
    Arg<Optional<GDN_SequencesTensor>,
        "tokens of the sequence before each checkpoint, C">:$checkpoint_tokens,
    Arg<Optional<GDN_SlotsTensor>, "slot of each checkpoint, C">:$checkpoint_slots,
    // States after every token of a sequence, of which one will turn out to be right.
    Arg<Optional<GDN_SlotsTable>,
        "slot of the state after each token of a sequence, N x S">:$token_slots,
    Arg<Optional<GDN_SlotsTable>,
        "token whose state each token starts from, N x S">:$parents,
    // Where those states go, if not to the pool that sequences start from.
    Arg<Optional<GDN_PoolType>, "states after tokens, the pool's shape but for the slots",
        GDN_PoolReadWrite>:$token_pool);
}

// How they are written, and their types.
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

// How many tokens of the step before were right, where that step's tokens are
// pending.
defvar GDN_NumAccepted = Arg<Optional<GDN_SequencesTensor>,
    "accepted tokens of the previous step, N">;

def GDN_Conv1dOp : GDN_Op<"conv1d", [
    AttrSizedOperandSegments, GDN_StateOpInterface]> {
  let summary = "Causal depthwise convolution of a ragged batch, with state";
  let description = [{
    The inputs are consecutive sections of the `D` channels (`q`, `k`, `v`, or
    one of all); channel `c` of the concatenation has the weights `weight[c]`.
    Per live sequence with tokens `x_0 .. x_{L-1}`, and `x_{-j} = state[slot, c, K-1-j]`
    for `j = 1 .. K-1` (0 where `has_initial` is false):

        y_t    = act(bias + sum_j weight[c, j] * x_{t-K+1+j})
        state' = the last K-1 of (state ++ x_0 .. x_{L-1})     // raw inputs

    `state'` goes to `write_slots` if given, else to the slot read. A sequence with
    `L = 0` changes nothing. Skipped sequences and padding give zeros; a sequence whose
    write slot is skipped gives its result and leaves the pool alone.

    With `checkpoints(%cu_checkpoints, %tokens, %slots)` live sequence `n` also
    writes what `state'` is after `tokens[c]` of its tokens to `slots[c]` of the
    same pool, for `cu_checkpoints[n] <= c < cu_checkpoints[n+1]`. See
    docs/spec/slots.md for counts and slots that write nothing.

    With `token_slots(%table)` live sequence `n` writes what `state'` is after its
    token `t` to `table[n, t]` of the same pool, for every `t < S`, and its last
    state nowhere else.

    With `parents(%parents)` too, token `t` of the sequence starts from the state
    after its token `parents[n, t]`, which lies before it and whose slot is not
    skipped, and else from the sequence's state: the tokens are a tree.

    With `token_pool(%buffer)` these slots are those of another pool, and the
    sequence's own slot keeps its state; see `gdn.pool_copy` for the way back.

    With `pending(%num_accepted)` the pool keeps `S` inputs more, those of the
    sequence's previous step behind the state before it, of which the first
    `a = num_accepted[n]` are right: `x_{-j} = state[slot, c, K-1-j+a]`. The
    inputs of this step become pending in turn:

        state'[p] = x_{p-K+1}     p = 0 .. K-2 + min(L, S)

    A sequence whose count is not from 0 to `S` is skipped.

    **Preconditions**

    - (C1) inputs are `T x H x d` or `T x C`, with the same `T` and element
      type; result `i` has the shape of input `i`.
    - (C2) `weight` is `D x K` with static `K` from 2 to 8; `bias` is `D`.
    - (C3) `pool` is `P x D x (K-1)`, but with `num_accepted` as in (C10).
    - (C4) `cu_seqlens` has one more element than `slots`; without it there is
      one slot per token. `write_slots` and `has_initial` have one element per
      sequence.
    - (C5) the activation is `identity` or `silu`.
    - (C6) where static, the channels of the inputs add up to `D`.
    - (C7) the three operands of `checkpoints` come together, and with
      `cu_seqlens`; `cu_checkpoints` has as many elements as `cu_seqlens`, the
      others have one per checkpoint.
    - (C8) `token_slots` is `N x S`, where static with `S` from 1 to 8; it comes
      with `cu_seqlens`, and without `write_slots` and `checkpoints`.
    - (C9) `parents` is `N x S`, and comes with `token_slots`.
    - (C10) with `num_accepted`, which is `N`, `pool` is `P x D x (K-1+S)`, where
      static with `S` from 1 to 8; it comes with `cu_seqlens`, and without
      `write_slots`, `has_initial`, `checkpoints` and `token_slots`.
    - (C11) `token_pool` has the shape and elements of `pool`, but for the number
      of slots, and comes with `token_slots`.

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
    Element `n` of the result is `token_slots[n, num_accepted[n] - 1]`: where the
    state after the last accepted token of a sequence's previous step is. It is -1,
    which is skipped, where `num_accepted[n]` is not from 1 to `S`. With
    `cu_seqlens` it is -1 also where sequence `n` has more than `max_tokens` tokens: a
    target may then count on sequences that it takes in one go.

    **Preconditions**

    - (C1) `token_slots` is `N x S`, `num_accepted` and the result are `N`;
      `cu_seqlens`, where there is one, is `N + 1`.
    - (C2) the result has the element type of `token_slots`.
    - (C3) `max_tokens` is given where `cu_seqlens` is, and nowhere else; it is at
      least 1.

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

def GDN_MaskSequencesOp : GDN_Op<"mask_sequences", [
    Pure, GDN_SequenceOpInterface]> {
  let summary = "Zeros in the tokens of skipped sequences and of padding";
  let description = [{
    The result is `input` where the token belongs to a live sequence, and exactly
    zero elsewhere, whatever `input` holds there (NaN included). The pool is
    asked for its size and null slot only, which are fixed when it is bound:
    the op reads no memory.

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
    Arg<GDN_PoolType, "whose slots count">:$pool,
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

    - (C1) the result is the pool's shape with `N` in place of `P`.

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
    Slot `slots[n]` of the pool becomes row `n` of `value`, rounded once to the
    pool's element type; a skipped slot is left alone. No live slot may occur
    twice.

    **Preconditions**

    - (C1) `value` is the pool's shape with `N` in place of `P`.

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
