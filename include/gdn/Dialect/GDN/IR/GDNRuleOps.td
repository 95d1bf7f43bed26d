// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rules: recurrences over the tokens of sequences whose states are matrices in
// a pool.
#ifndef GDN_DIALECT_GDN_IR_GDNRULEOPS_TD
#define GDN_DIALECT_GDN_IR_GDNRULEOPS_TD

include "gdn/Dialect/GDN/IR/GDNStateOps.td"

// What every rule reads of each token, and where its states are.
defvar GDN_RuleInputs = (ins
    Arg<GDN_FloatTensor<3>, "queries, T x Hk x dk">:$query,
    Arg<GDN_FloatTensor<3>, "keys, T x Hk x dk">:$key,
    Arg<GDN_FloatTensor<3>, "values, T x Hv x dv">:$value,
    Arg<GDN_F32Tensor<[2, 3]>, "log of the decay, T x Hv (x dk)">:$log_decay);
defvar GDN_RuleStates = GDN_StateOperands<"states, P x Hv x dv x dk">;

def GDN_DeltaRuleOp : GDN_Op<"delta_rule", [
    AttrSizedOperandSegments, GDN_RuleOpInterface]> {
  let summary = "Gated delta rule over a ragged batch, states in a pool";
  let description = [{
    Per live sequence and value head `h`, with key head `h' = h / (Hv/Hk)` and the
    state `M` (`dv x dk`) of the sequence's slot (zeros where `has_initial` is
    false), token after token:

        M <- M * exp(log_decay[t,h])                 // per head or per channel
        d  = beta[t,h] * (value[t,h] - M key[t,h'])
        M <- M + d key[t,h']^T
        output[t,h] = M (scale * query[t,h'])

    The last `M` goes to `write_slots` if given, else to the slot read, rounded
    once to the pool's element type. With rank-3 `log_decay` (`T x Hv x dk`)
    column `j` of `M` decays by `exp(log_decay[t,h,j])`.

    Skipped sequences and padding give zeros; sequences of length 0 change nothing; a
    sequence whose write slot is skipped gives its result and leaves the pool alone.

    With `checkpoints(%cu_checkpoints, %tokens, %slots)` live sequence `n` also
    writes `M` as it is after `tokens[c]` of its tokens to `slots[c]` of the
    same pool, for `cu_checkpoints[n] <= c < cu_checkpoints[n+1]`. See
    docs/spec/slots.md for counts and slots that write nothing.

    With `token_slots(%table)` live sequence `n` writes `M` as it is after its token
    `t` to `table[n, t]` of the same pool, for every `t < S`, and its last state
    nowhere else.

    With `parents(%parents)` too, token `t` of the sequence starts from the state
    after its token `parents[n, t]`, which lies before it and whose slot is not
    skipped, and else from the sequence's state: the tokens are a tree.

    With `token_pool(%buffer)` these slots are those of another pool, and the
    sequence's own slot keeps its state; see `gdn.pool_copy` for the way back.

    With `pending(%num_accepted, %keys, %deltas, %decays)` the state lacks the
    tokens of the sequence's previous step, which are pending in three more pools.
    The first `a = num_accepted[n]` of them are right. They are put into the
    state first, token after token,

        M <- M * exp(decays[slot,h,j])
        M <- M + deltas[slot,h,j] keys[slot,h',j]^T      j = 0 .. a-1

    and where `a > 0` the slot read receives `M`, rounded once, from which this
    step starts. What this step's tokens add to `M` is not written; the keys,
    `d` and log decays of its first `min(L, S)` tokens become pending in their
    turn. A sequence whose count is not from 0 to `S` is skipped.

    `double_beta` says that `beta` may be up to 2, not 1. The formulas are the
    same; forms that round keys, whose errors add up then, are not taken.

    **Preconditions**

    - (C1) `query`, `key` are `T x Hk x dk`, `value` and the result
      `T x Hv x dv`, `log_decay` `T x Hv` or `T x Hv x dk`, `beta` `T x Hv`;
      sizes agree.
    - (C2) `dk` and `dv` are static multiples of 8 up to 256.
    - (C3) where static, `Hv` is a multiple of `Hk`.
    - (C4) `pool` is `P x Hv x dv x dk`.
    - (C5) `cu_seqlens` has one more element than `slots`; without it there is
      one slot per token. `write_slots` and `has_initial` have one element per
      sequence.
    - (C6) `scale` is finite; the default is `dk^(-1/2)`.
    - (C7) the three operands of `checkpoints` come together, and with
      `cu_seqlens`; `cu_checkpoints` has as many elements as `cu_seqlens`, the
      others have one per checkpoint.
    - (C8) `token_slots` is `N x S`, where static with `S` from 1 to 8; it comes
      with `cu_seqlens`, and without `write_slots` and `checkpoints`.
    - (C9) `parents` is `N x S`, and comes with `token_slots`.
    - (C10) `num_accepted`, which is `N`, and the pools `pending_keys`,
      `P x Hk x S x dk`, `pending_deltas`, `P x Hv x S x dv`, and
      `pending_decays`, `P x Hv x S` or `P x Hv x S x dk` as `log_decay`, all of
      f32 and where static with `S` from 1 to 8, come together, with
      `cu_seqlens`, and without `write_slots`, `has_initial`, `checkpoints` and
      `token_slots`.
    - (C11) `token_pool` has the shape and elements of `pool`, but for the number
      of slots, and comes with `token_slots`.

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
    GDN_RuleStates.operands, (ins GDN_NumAccepted:$num_accepted,
    Arg<Optional<GDN_PoolType>, "keys of pending tokens, P x Hk x S x dk",
        GDN_PoolReadWrite>:$pending_keys,
    Arg<Optional<GDN_PoolType>, "what they add, P x Hv x S x dv",
        GDN_PoolReadWrite>:$pending_deltas,
    Arg<Optional<GDN_PoolType>, "their log decays, P x Hv x S (x dk)",
        GDN_PoolReadWrite>:$pending_decays,
    OptionalAttr<F32Attr>:$scale, UnitAttr:$double_beta));
  let results = (outs Res<GDN_FloatTensor<3>, "T x Hv x dv">:$output);
  let builders = [OpBuilder<(ins "::mlir::Type":$output, "::mlir::Value":$query,
      "::mlir::Value":$key, "::mlir::Value":$value, "::mlir::Value":$logDecay,
      "::mlir::Value":$beta, "const ::gdn::StateOperands &":$states,
      "const ::gdn::PendingOperands &":$pending, "::mlir::UnitAttr":$doubleBeta), [{
    build($_builder, $_state, output, query, key, value, logDecay, beta, states.pool,
          states.slots, states.writeSlots, states.cuSeqlens, states.hasInitial,
          states.cuCheckpoints, states.checkpointTokens, states.checkpointSlots,
          states.tokenSlots, states.parents, states.tokenPool, states.numAccepted,
          pending.keys, pending.deltas, pending.decays,
          /*scale=*/::mlir::FloatAttr(), doubleBeta);
  }]>];
  let assemblyFormat = !strconcat([{
    $query `,` $key `,` $value `gates` `(` $log_decay `,` $beta `)`
  }], GDN_StateSyntax, [{
    (`pending` `(` $num_accepted^ `,` $pending_keys `,` $pending_deltas `,` $pending_decays `)`)?
    attr-dict
    `:` type($query) `,` type($key) `,` type($value) `,` type($log_decay) `,`
    type($beta) `,`
  }], GDN_StateTypes, [{
    (`pending` type($num_accepted)^ `,` qualified(type($pending_keys)) `,`
     qualified(type($pending_deltas)) `,` qualified(type($pending_decays)))?
    `->` type($output)
  }]);
  let extraClassDeclaration = [{
    /// The operands that have one entry per token.
    ::llvm::SmallVector<::mlir::Value> getTokenOperands() {
      return {getQuery(), getKey(), getValue(), getLogDecay(), getBeta()};
    }
  }];
  let hasVerifier = 1;
}

def GDN_GatedLinearAttentionOp : GDN_Op<"gated_linear_attention", [
    AttrSizedOperandSegments, GDN_RuleOpInterface]> {
  let summary = "Gated linear attention over a ragged batch, states in a pool";
  let description = [{
    Per live sequence and value head `h`, with key head `h' = h / (Hv/Hk)` and the
    state `M` (`dv x dk`) of the sequence's slot (zeros where `has_initial` is
    false), token after token:

        M <- M * exp(log_decay[t,h])                 // per head or per channel
        M <- M + value[t,h] key[t,h']^T
        output[t,h] = M (scale * query[t,h'])

    This is `gdn.delta_rule` without the delta: what is written does not depend on
    the state. The last `M` goes to `write_slots` if given, else to the slot read,
    rounded once to the pool's element type. With rank-3 `log_decay`
    (`T x Hv x dk`) column `j` of `M` decays by `exp(log_decay[t,h,j])`.

    Skipped sequences, padding, sequences of length 0, `checkpoints`,
    `token_slots`, `parents` and `token_pool` are as in `gdn.delta_rule`.

    **Preconditions**

    - (C1) `query`, `key` are `T x Hk x dk`, `value` and the result
      `T x Hv x dv`, `log_decay` `T x Hv` or `T x Hv x dk`; sizes agree.
    - (C2) `dk` and `dv` are static multiples of 8 up to 256.
    - (C3) where static, `Hv` is a multiple of `Hk`.
    - (C4) `pool` is `P x Hv x dv x dk`.
    - (C5) `cu_seqlens` has one more element than `slots`; without it there is
      one slot per token. `write_slots` and `has_initial` have one element per
      sequence.
    - (C6) `scale` is finite; the default is `dk^(-1/2)`.
    - (C7) the three operands of `checkpoints` come together, and with
      `cu_seqlens`; `cu_checkpoints` has as many elements as `cu_seqlens`, the
      others have one per checkpoint.
    - (C8) `token_slots` is `N x S`, where static with `S` from 1 to 8; it comes
      with `cu_seqlens`, and without `write_slots` and `checkpoints`.
    - (C9) `parents` is `N x S`, and comes with `token_slots`.
    - (C10) `token_pool` has the shape and elements of `pool`, but for the number
      of slots, and comes with `token_slots`.

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
