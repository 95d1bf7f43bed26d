// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rules: recurrences over the tokens of a sequence, whose state is a matrix
// in a pool.
#ifndef GDN_DIALECT_GDN_IR_GDNRULEOPS_TD
#define GDN_DIALECT_GDN_IR_GDNRULEOPS_TD

include "gdn/Dialect/GDN/IR/GDNStateOps.td"

// The inputs of every rule for each token, and the operands for its states.
defvar GDN_RuleInputs = (ins
    Arg<GDN_FloatTensor<3>, "queries, T x Hk x dk">:$query,
    Arg<GDN_FloatTensor<3>, "keys, T x Hk x dk">:$key,
    Arg<GDN_FloatTensor<3>, "values, T x Hv x dv">:$value,
    Arg<GDN_F32Tensor<[2, 3]>, "log of the decay, T x Hv (x dk)">:$log_decay);
defvar GDN_RuleStates = GDN_StateOperands<"states, P x Hv x dv x dk">;

// Of states in planes.
defvar GDN_StatePlanes = (ins
    Arg<Optional<GDN_PoolType>, "scales of rows, P x Hv x dv",
        GDN_PoolReadWrite>:$state_scales,
    Arg<Optional<GDN_PoolType>, "lower plane, P x Hv x dv x dk",
        GDN_PoolReadWrite>:$state_low);

def GDN_DeltaRuleOp : GDN_Op<"delta_rule", [
    AttrSizedOperandSegments, GDN_RuleOpInterface]> {
  let summary = "Gated delta rule over a ragged batch, states in a pool";
  let description = [{
    For each live sequence and each value head `h`, with key head
    `h' = h / (Hv/Hk)`, the state `M` (`dv x dk`) starts as the state in the
    slot of the sequence, or as zeros if `has_initial` is false. Then, for one
    token `t` after another:

        M <- M * exp(log_decay[t,h])                 // per head or per channel
        d  = beta[t,h] * (value[t,h] - M key[t,h'])
        M <- M + d key[t,h']^T
        output[t,h] = M (scale * query[t,h'])

    The last `M` is written to `write_slots` if given, else to the slot that was
    read, rounded once to the element type of the pool. With a `log_decay` of
    rank 3 (`T x Hv x dk`), column `j` of `M` decays by
    `exp(log_decay[t,h,j])`.

    The results of skipped sequences and of padding are zero. A sequence of
    length 0 changes nothing. A sequence whose write slot is skipped gives its
    result and does not change the pool.

    With `checkpoints(%cu_checkpoints, %tokens, %slots)` live sequence `n` also
    writes the `M` after its first `tokens[c]` tokens to `slots[c]` of the same
    pool, for `cu_checkpoints[n] <= c < cu_checkpoints[n+1]`. See
    docs/spec/slots.md for the checkpoints that are not written.

    With `token_slots(%table)` live sequence `n` writes the `M` after its token
    `t` to slot `table[n, t]` of the same pool, for every `t < S`. Its last
    state is written nowhere else.

    With `parents(%parents)` in addition, the tokens are a tree: token `t` of
    the sequence starts from the state after its token `parents[n, t]`. If that
    token does not lie before `t`, or its slot is skipped, token `t` starts from
    the state of the sequence.

    With `token_pool(%buffer)` the slots of `token_slots` are those of another
    pool, and the slot of the sequence keeps its state. `gdn.pool_copy` copies
    a state back.

    With `accepted(%num_accepted) pending(%keys, %deltas, %decays)` the state
    does not yet include the tokens of the previous step of the sequence. They
    are pending in three more pools, and the first `a = num_accepted[n]` of them
    are accepted. These are put into the state first, one after another:

        M <- M * exp(decays[slot,h,j])
        M <- M + deltas[slot,h,j] keys[slot,h',j]^T      j = 0 .. a-1

    If `a > 0`, the slot receives this `M`, rounded once, and the step starts
    from the rounded state. The state after the tokens of this step is not
    written. Instead the keys, `d` and log decays of its first `min(L, S)`
    tokens (`L` is the number of tokens of the sequence) become pending. A
    sequence whose count is not from 0 to `S` is skipped.

    With `counts(%counts)` in addition, tokens stay pending over several steps,
    and the slot knows how many there are. The pools have room for `S` tokens.
    `m = counts[slot,h'] + a` are pending when the step begins, with `a = 0`
    without `accepted`. Only if `m + L > S` they are put into the state, which
    the slot receives as above, and `m` becomes 0. Otherwise the slot keeps its
    state, and the step starts from the one that they would give. The tokens of
    this step become the pending tokens `m .. m+L-1`, and `counts[slot,h']`
    becomes `m + L`; with `accepted` it becomes `m`, and the next step says what
    is accepted.

    With `delta_scales(%scales)` beside counts, keys and deltas of pending tokens
    are f16: a key is rounded to it, and a delta is a row of f16 times a power of
    two, which `scales` has for each token and value head. See
    docs/spec/slots.md.

    With `scales(%scales)` states are in planes: a state is the integers of the
    pool times a scale for each row of `M`, and with `low(%low)` these have eight
    more bits in a second pool. See docs/spec/slots.md. `reads_upper` says that
    tokens read these eight bits no more: output and `d` are those of a state
    without them, and of all pending tokens. A slot that receives pending tokens
    has all bits.

    `double_beta` says that `beta` may be up to 2 instead of 1. The formulas are
    the same, but forms that round the keys are not used, because their errors
    would accumulate.

    With `erase(%erase)` a token takes away what the state has along one key, and
    writes along another:

        d  = beta[t,h] * (value[t,h] - M erase[t,h'])

    With `beta` of 1 that is GDN-2, whose `erase` is the key times a gate per
    channel. With `erase` equal to `key` it is the rule without. `M` may grow:
    `I - key erase^T` is no contraction. CPUs compute it token by token, GPUs
    have no form for it.

    **Preconditions**

    - (C1) `query` and `key` are `T x Hk x dk`; `value` and the result are
      `T x Hv x dv`; `log_decay` is `T x Hv` or `T x Hv x dk`; `beta` is
      `T x Hv`. Sizes of the same name agree.
    - (C2) `dk` and `dv` are static multiples of 8 up to 256.
    - (C3) where static, `Hv` is a multiple of `Hk`.
    - (C4) `pool` is `P x Hv x dv x dk` of floats, or of i8 with scales.
    - (C5) `cu_seqlens` has one more element than `slots`; without it there is
      one slot per token. `write_slots` and `has_initial` have one element per
      sequence.
    - (C6) `scale` is finite; the default is `dk^(-1/2)`.
    - (C7) the three operands of `checkpoints` are given together, and only with
      `cu_seqlens`; `cu_checkpoints` has as many elements as `cu_seqlens`, the
      others have one per checkpoint.
    - (C8) `token_slots` is `N x S`, with `S` from 1 to 8 where static; it
      requires `cu_seqlens` and excludes `write_slots` and `checkpoints`.
    - (C9) `parents` is `N x S` and requires `token_slots`.
    - (C10) `pending_keys`, `pending_deltas` and `pending_decays` are given
      together, with `num_accepted` or `pending_counts` or both; they exclude
      `write_slots`, `has_initial`, `checkpoints` and `token_slots`.
      `num_accepted` is `N` and requires `cu_seqlens`. The pools are of f32:
      `pending_keys` is `P x Hk x S x dk`, `pending_deltas` is
      `P x Hv x S x dv`, and `pending_decays` is `P x Hv x S`, or
      `P x Hv x S x dk` if `log_decay` has rank 3; `S` is from 1 to 8 where
      static. With `pending_counts`, `P x Hk` of i32, `S` may be up to 32 and
      `log_decay` has rank 2, and the elements of `pending_keys` and
      `pending_deltas` may both be f16: then, and only then, `pending_scales`
      is given, `P x Hv x S` of f32.
    - (C11) `token_pool` has the shape and element type of `pool`, except for
      the number of slots, and requires `token_slots`.
    - (C12) `state_scales` is `P x Hv x dv` of f32 and is given if and only if
      the elements of `pool` are i8; `state_low` has the type of `pool` and
      requires `state_scales`. They exclude `token_slots`.
    - (C13) `reads_upper` requires `state_low` and `pending_counts`, and excludes
      `num_accepted`.
    - (C14) `erase` is `T x Hk x dk`, and excludes `pending_counts` and
      `double_beta`.

    **Example**

    ```mlir
    func.func @decode(%q: tensor<?x?x128xf32>, %k: tensor<?x?x128xf32>,
        %v: tensor<?x?x128xf32>, %g: tensor<?x?xf32>, %beta: tensor<?x?xf32>,
        %pool: !gdn.pool<?x?x128x128xf32>, %slots: tensor<?xi32>)
        -> tensor<?x?x128xbf16> {
      %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots)
          : tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<?x?x128xf32>,
            tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x128x128xf32>,
            tensor<?xi32> -> tensor<?x?x128xbf16>
      return %o : tensor<?x?x128xbf16>
    }
    ```
  }];
  let arguments = !con(GDN_RuleInputs,
    (ins Arg<GDN_F32Tensor<[2]>, "write strength, T x Hv">:$beta),
    GDN_RuleStates.operands, GDN_StatePlanes, (ins GDN_NumAccepted:$num_accepted,
    Arg<Optional<GDN_PoolType>, "keys of pending tokens, P x Hk x S x dk",
        GDN_PoolReadWrite>:$pending_keys,
    Arg<Optional<GDN_PoolType>, "deltas of pending tokens, P x Hv x S x dv",
        GDN_PoolReadWrite>:$pending_deltas,
    Arg<Optional<GDN_PoolType>,
        "log decays of pending tokens, P x Hv x S (x dk)",
        GDN_PoolReadWrite>:$pending_decays,
    Arg<Optional<GDN_PoolType>, "how many tokens are pending, P x Hk",
        GDN_PoolReadWrite>:$pending_counts,
    Arg<Optional<GDN_PoolType>, "scales of pending deltas in f16, P x Hv x S",
        GDN_PoolReadWrite>:$pending_scales,
    Arg<Optional<GDN_FloatTensor<3>>, "keys to erase along, T x Hk x dk">:$erase,
    OptionalAttr<F32Attr>:$scale, UnitAttr:$double_beta, UnitAttr:$reads_upper));
  let results = (outs Res<GDN_FloatTensor<3>, "T x Hv x dv">:$output);
  let builders = [OpBuilder<(ins "::mlir::Type":$output, "::mlir::Value":$query,
      "::mlir::Value":$key, "::mlir::Value":$value, "::mlir::Value":$logDecay,
      "::mlir::Value":$beta, "const ::gdn::StateOperands &":$states,
      "const ::gdn::PendingOperands &":$pending, "::mlir::UnitAttr":$doubleBeta,
      CArg<"::mlir::UnitAttr", "{}">:$readsUpper), [{
    build($_builder, $_state, output, query, key, value, logDecay, beta, states.pool,
          states.slots, states.writeSlots, states.cuSeqlens, states.hasInitial,
          states.cuCheckpoints, states.checkpointTokens, states.checkpointSlots,
          states.tokenSlots, states.parents, states.tokenPool, states.scales, states.low,
          states.numAccepted, pending.keys, pending.deltas, pending.decays, pending.counts,
          pending.scales, /*erase=*/::mlir::Value(), /*scale=*/::mlir::FloatAttr(),
          doubleBeta, readsUpper);
  }]>];
  let assemblyFormat = !strconcat([{
    $query `,` $key `,` $value `gates` `(` $log_decay `,` $beta `)`
    (`erase` `(` $erase^ `)`)?
  }], GDN_StateSyntax, [{
    (`scales` `(` $state_scales^ `)`)? (`low` `(` $state_low^ `)`)?
    (`accepted` `(` $num_accepted^ `)`)?
    (`pending` `(` $pending_keys^ `,` $pending_deltas `,` $pending_decays `)`)?
    (`counts` `(` $pending_counts^ `)`)?
    (`delta_scales` `(` $pending_scales^ `)`)?
    attr-dict
    `:` type($query) `,` type($key) `,` type($value) `,` type($log_decay) `,`
    type($beta) (`erase` type($erase)^)? `,`
  }], GDN_StateTypes, [{
    (`scales` qualified(type($state_scales))^)? (`low` qualified(type($state_low))^)?
    (`accepted` type($num_accepted)^)?
    (`pending` qualified(type($pending_keys))^ `,` qualified(type($pending_deltas)) `,`
     qualified(type($pending_decays)))? (`counts` qualified(type($pending_counts))^)?
    (`delta_scales` qualified(type($pending_scales))^)?
    `->` type($output)
  }]);
  let extraClassDeclaration = [{
    /// The operands that have one entry per token.
    ::llvm::SmallVector<::mlir::Value> getTokenOperands() {
      ::llvm::SmallVector<::mlir::Value> operands = {
          getQuery(), getKey(), getValue(), getLogDecay(), getBeta()};
      if (getErase())
        operands.push_back(getErase());
      return operands;
    }
  }];
  let hasVerifier = 1;
}

def GDN_GatedLinearAttentionOp : GDN_Op<"gated_linear_attention", [
    AttrSizedOperandSegments, GDN_RuleOpInterface]> {
  let summary = "Gated linear attention over a ragged batch, states in a pool";
  let description = [{
    For each live sequence and each value head `h`, with key head
    `h' = h / (Hv/Hk)`, the state `M` (`dv x dk`) starts as the state in the
    slot of the sequence, or as zeros if `has_initial` is false. Then, for one
    token `t` after another:

        M <- M * exp(log_decay[t,h])                 // per head or per channel
        M <- M + value[t,h] key[t,h']^T
        output[t,h] = M (scale * query[t,h'])

    This is `gdn.delta_rule` without the delta: what a token writes does not
    depend on the state. The last `M` is written to `write_slots` if given, else
    to the slot that was read, rounded once to the element type of the pool.
    With a `log_decay` of rank 3 (`T x Hv x dk`), column `j` of `M` decays by
    `exp(log_decay[t,h,j])`.

    Skipped sequences, padding, sequences of length 0, `checkpoints`,
    `token_slots`, `parents` and `token_pool` are as in `gdn.delta_rule`.

    **Preconditions**

    - (C1) `query` and `key` are `T x Hk x dk`; `value` and the result are
      `T x Hv x dv`; `log_decay` is `T x Hv` or `T x Hv x dk`. Sizes of the same
      name agree.
    - (C2) `dk` and `dv` are static multiples of 8 up to 256.
    - (C3) where static, `Hv` is a multiple of `Hk`.
    - (C4) `pool` is `P x Hv x dv x dk` of floats.
    - (C5) `cu_seqlens` has one more element than `slots`; without it there is
      one slot per token. `write_slots` and `has_initial` have one element per
      sequence.
    - (C6) `scale` is finite; the default is `dk^(-1/2)`.
    - (C7) the three operands of `checkpoints` are given together, and only with
      `cu_seqlens`; `cu_checkpoints` has as many elements as `cu_seqlens`, the
      others have one per checkpoint.
    - (C8) `token_slots` is `N x S`, with `S` from 1 to 8 where static; it
      requires `cu_seqlens` and excludes `write_slots` and `checkpoints`.
    - (C9) `parents` is `N x S` and requires `token_slots`.
    - (C10) `token_pool` has the shape and element type of `pool`, except for
      the number of slots, and requires `token_slots`.

    **Example**

    ```mlir
    func.func @decode(%q: tensor<?x?x128xf32>, %k: tensor<?x?x128xf32>,
        %v: tensor<?x?x128xf32>, %g: tensor<?x?xf32>,
        %pool: !gdn.pool<?x?x128x128xf32>, %slots: tensor<?xi32>)
        -> tensor<?x?x128xbf16> {
      %o = gdn.gated_linear_attention %q, %k, %v decay(%g) pool(%pool) slots(%slots)
          : tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<?x?x128xf32>,
            tensor<?x?xf32>, !gdn.pool<?x?x128x128xf32>, tensor<?xi32>
            -> tensor<?x?x128xbf16>
      return %o : tensor<?x?x128xbf16>
    }
    ```
  }];
  let arguments = !con(GDN_RuleInputs, GDN_RuleStates.operands,
                       (ins OptionalAttr<F32Attr>:$scale));
  let results = (outs Res<GDN_FloatTensor<3>, "T x Hv x dv">:$output);
  let assemblyFormat = !strconcat([{
    $query `,` $key `,` $value `decay` `(` $log_decay `)`
  }], GDN_StateSyntax, [{
    attr-dict `:` type($query) `,` type($key) `,` type($value) `,` type($log_decay) `,`
  }], GDN_StateTypes, [{
    `->` type($output)
  }]);
  let extraClassDeclaration = [{
    /// The operands that have one entry per token.
    ::llvm::SmallVector<::mlir::Value> getTokenOperands() {
      return {getQuery(), getKey(), getValue(), getLogDecay()};
    }
  }];
  let hasVerifier = 1;
}

#endif // GDN_DIALECT_GDN_IR_GDNRULEOPS_TD
