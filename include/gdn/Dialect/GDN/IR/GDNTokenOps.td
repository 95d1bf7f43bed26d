// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops whose result for a token depends only on that token.
#ifndef GDN_DIALECT_GDN_IR_GDNTOKENOPS_TD
#define GDN_DIALECT_GDN_IR_GDNTOKENOPS_TD

include "gdn/Dialect/GDN/IR/GDNTypes.td"
include "gdn/Dialect/GDN/IR/GDNAttrs.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def GDN_UnpackOp : GDN_Op<"unpack", [Pure]> {
  let summary = "Parts of a packed projection, head by head";
  let description = [{
    Splits the columns of `packed` into parts. `parts` names the parts in column
    order, by one letter each: `q`, `k` (`dk` columns per key head), `v`, `z`
    (`dv` columns per value head), `a`, `b` (one column per value head). Each
    letter has one result, in the same order.

    The layouts, with `R = Hv / Hk`:

    - `flat`: all of the first part, head-major, then all of the second, ...
    - `interleaved`: one block for every key head `g`. A block has, in part
      order, head `g` of `q` and `k` and the `R` heads `g*R .. g*R+R-1` of the
      other parts.

    **Preconditions**

    - (C1) `parts` has each of the letters `q k v z a b` at most once, and at
      least one of them.
    - (C2) there is one result per part, of the element type of `packed`: rank
      3, `T x H x d`, for `q k v z`, and rank 2, `T x H`, for `a b`.
    - (C3) `d` of rank-3 results is static and a multiple of 8 up to 256; `q`
      and `k` have the same `d`, and so have `v` and `z`.
    - (C4) when all head counts and columns are static, the columns of the
      parts add up to the columns of `packed`.
    - (C5) where static, `Hv` is a multiple of `Hk`.

    **Postconditions**

    - No value is changed; the lowering creates strided views, not copies.

    **Example**

    ```mlir
    func.func @qwen3_next(%x: tensor<?x?xbf16>, %hk: index, %hv: index)
        -> tensor<?x?x128xbf16> {
      %q, %k, %v, %z = gdn.unpack "qkvz" interleaved %x heads(%hk, %hv)
          : tensor<?x?xbf16> -> tensor<?x?x128xbf16>, tensor<?x?x128xbf16>,
            tensor<?x?x128xbf16>, tensor<?x?x128xbf16>
      return %z : tensor<?x?x128xbf16>
    }
    ```
  }];
  let arguments = (ins
    StrAttr:$parts,
    GDN_PackLayout:$layout,
    Arg<GDN_FloatTensor<2>, "packed projection, T x columns">:$packed,
    Arg<Index, "Hk">:$key_heads,
    Arg<Index, "Hv">:$value_heads);
  let results = (outs Variadic<GDN_FloatTensorOf<[2, 3]>>:$results);
  let assemblyFormat = [{
    $parts $layout $packed `heads` `(` $key_heads `,` $value_heads `)` attr-dict
    `:` type($packed) `->` type($results)
  }];
  let hasVerifier = 1;
}

def GDN_GatesOp : GDN_Op<"gates", [Pure]> {
  let summary = "Log decay and write strength from the gate projections";
  let description = [{
    Per token and value head, with `u = a + dt_bias`:

        softplus(u) = u                 if u > softplus_threshold
                      log(1 + exp(u))   otherwise
        log_decay   = -exp(a_log) * softplus(u)          // at most 0
        beta        = sigmoid(b)        // times 2 with double_beta

    With `lower_bound` the log decay is bounded, and `a_log` scales the argument
    in place of the result:

        log_decay   = lower_bound * sigmoid(exp(a_log) * u)

    Without `a_log` the factor `exp(a_log)` is 1.

    With an `a` of rank 3 (`T x Hv x dk`, and `dt_bias` `Hv x dk`) the decay is
    per channel, as in KDA; `a_log` and `beta` stay per head.

    **Preconditions**

    - (C1) `a` is `T x Hv` or `T x Hv x dk`; `dt_bias` has the shape of `a`
      without `T`.
    - (C2) `b` is `T x Hv`; `a_log` is `Hv`. Sizes of the same name agree.
    - (C3) `log_decay` has the shape of `a`, `beta` the shape of `b`.
    - (C4) `softplus_threshold` is positive and finite.
    - (C5) `lower_bound` is negative and finite.
    - (C6) there is an `a_log`, or a `lower_bound`.

    **Postconditions**

    - `log_decay` is at most 0, and not below `lower_bound` if there is one.

    **Example**

    ```mlir
    func.func @gates(%a: tensor<?x?xbf16>, %b: tensor<?x?xbf16>,
                     %a_log: tensor<?xf32>, %dt_bias: tensor<?xf32>)
        -> (tensor<?x?xf32>, tensor<?x?xf32>) {
      %g, %beta = gdn.gates %a, %b, %a_log, %dt_bias {double_beta}
          : tensor<?x?xbf16>, tensor<?x?xbf16>, tensor<?xf32>, tensor<?xf32>
            -> tensor<?x?xf32>, tensor<?x?xf32>
      return %g, %beta : tensor<?x?xf32>, tensor<?x?xf32>
    }
    ```
  }];
  let arguments = (ins
    Arg<GDN_FloatTensorOf<[2, 3]>, "decay projection, T x Hv (x dk)">:$a,
    Arg<GDN_FloatTensor<2>, "write strength projection, T x Hv">:$b,
    Arg<Optional<GDN_F32Tensor<[1]>>, "log of the decay rate, Hv">:$a_log,
    Arg<GDN_FloatTensorOf<[1, 2]>, "bias of the step size, Hv (x dk)">:$dt_bias,
    DefaultValuedAttr<F32Attr, "20.0f">:$softplus_threshold,
    OptionalAttr<F32Attr>:$lower_bound,
    UnitAttr:$double_beta);
  let results = (outs
    Res<GDN_F32Tensor<[2, 3]>, "log decay, at most 0">:$log_decay,
    Res<GDN_F32Tensor<[2]>, "write strength">:$beta);
  let assemblyFormat = [{
    $a `,` $b `,` custom<GateWeights>($a_log, $dt_bias) attr-dict
    `:` type($a) `,` type($b) `,`
        custom<GateWeightTypes>(type($a_log), type($dt_bias))
    `->` type($log_decay) `,` type($beta)
  }];
  let hasVerifier = 1;
}

def GDN_L2NormOp : GDN_Op<"l2norm", [Pure]> {
  let summary = "Each head scaled to unit length";
  let description = [{
    `y = x * (sum(x^2) + eps)^(-1/2)`, where the sum is over the last dimension.
    A head of zeros stays zero.

    **Preconditions**

    - (C1) `x` and the result have the same shape `T x H x d`, `d` static.
    - (C2) `eps` is positive and finite.

    **Example**

    ```mlir
    func.func @unit(%x: tensor<?x?x128xbf16>) -> tensor<?x?x128xf32> {
      %y = gdn.l2norm %x : tensor<?x?x128xbf16> -> tensor<?x?x128xf32>
      return %y : tensor<?x?x128xf32>
    }
    ```
  }];
  let arguments = (ins
    Arg<GDN_FloatTensor<3>, "heads, T x H x d">:$input,
    DefaultValuedAttr<F32Attr, "1.0e-6f">:$eps);
  let results = (outs GDN_FloatTensor<3>:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def GDN_GatedRMSNormOp : GDN_Op<"gated_rms_norm", [Pure]> {
  let summary = "RMS norm of each head, gated";
  let description = [{
    Per token and value head, over `dv`:

        norm(x) = x * (mean(x^2) + eps)^(-1/2) * weight
        y = norm(x) * act(gate)          // default
        y = norm(x * act(gate))          // with norm_after_gate

    With `constants`, two numbers in memory, `eps` is the first, and `act` is
    `silu` if the second is 1 and `sigmoid` if it is 0, so that one kernel
    serves layers that differ in these.

    **Preconditions**

    - (C1) `x`, `gate` and the result have the same shape `T x Hv x dv`, `dv`
      static.
    - (C2) `weight` is `dv`.
    - (C3) the activation is `silu` or `sigmoid`, or absent with `constants`.
    - (C4) `eps` is positive and finite.
    - (C5) `constants` has two elements.
    - (P1) its first element is positive and finite, the second 0 or 1.

    **Example**

    ```mlir
    func.func @norm(%x: tensor<?x?x128xf32>, %z: tensor<?x?x128xbf16>,
                    %w: tensor<128xf32>) -> tensor<?x?x128xbf16> {
      %y = gdn.gated_rms_norm %x, %z, %w silu
          : tensor<?x?x128xf32>, tensor<?x?x128xbf16>, tensor<128xf32>
            -> tensor<?x?x128xbf16>
      return %y : tensor<?x?x128xbf16>
    }
    ```
  }];
  let arguments = (ins
    Arg<GDN_FloatTensor<3>, "values, T x Hv x dv">:$input,
    Arg<GDN_FloatTensor<3>, "gate, T x Hv x dv">:$gate,
    Arg<GDN_FloatTensor<1>, "weight, dv">:$weight,
    Arg<Optional<GDN_F32Tensor<[1]>>, "eps, and 1 for silu or 0 for sigmoid">:$constants,
    OptionalAttr<GDN_Activation>:$activation,
    DefaultValuedAttr<F32Attr, "1.0e-6f">:$eps,
    UnitAttr:$norm_after_gate);
  let results = (outs GDN_FloatTensor<3>:$result);
  let assemblyFormat = [{
    $input `,` $gate `,` $weight ($activation^)?
    (`constants` `(` $constants^ `:` type($constants) `)`)? attr-dict
    `:` type($input) `,` type($gate) `,` type($weight) `->` type($result)
  }];
  let hasVerifier = 1;
}

def GDN_CastOp : GDN_Op<"cast", [Pure]> {
  let summary = "The same values in another element type";
  let description = [{
    Each element of the result is the element of `input`, rounded to nearest
    even if the type of the result is narrower.

    **Preconditions**

    - (C1) input and result have the same shape.

    **Example**

    ```mlir
    func.func @round(%x: tensor<?x?x128xf32>) -> tensor<?x?x128xbf16> {
      %y = gdn.cast %x : tensor<?x?x128xf32> -> tensor<?x?x128xbf16>
      return %y : tensor<?x?x128xbf16>
    }
    ```
  }];
  let arguments = (ins Arg<GDN_FloatTensorOf<[2, 3]>, "T x ...">:$input);
  let results = (outs GDN_FloatTensorOf<[2, 3]>:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

#endif // GDN_DIALECT_GDN_IR_GDNTOKENOPS_TD
