// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The gdn dialect: what a gated-delta-network layer computes, over ragged
// batches and pooled states. No tiles, no threads.
#ifndef GDN_DIALECT_GDN_IR_GDNDIALECT_TD
#define GDN_DIALECT_GDN_IR_GDNDIALECT_TD

include "mlir/IR/OpBase.td"

def GDN_Dialect : Dialect {
  let name = "gdn";
  let cppNamespace = "::gdn";
  let summary = "Gated delta networks over ragged batches and pooled states";
  let description = [{
    Ops of one gated-delta-network layer. Names of sizes used throughout:

    | name | meaning |
    |---|---|
    | `T` | tokens of the whole ragged batch |
    | `N` | sequences of the batch |
    | `P` | slots of a pool |
    | `Hk`, `Hv` | key heads, value heads; `Hv` is a multiple of `Hk` |
    | `dk`, `dv` | head dimensions; multiples of 8 up to 256 |
    | `K` | width of the causal convolution |
    | `D` | convolution channels, `2*Hk*dk + Hv*dv` |

    **Ragged batch.** A batch is a tensor `[T, ...]` with `cu_seqlens` `[N+1]`.
    Sequence `n` owns the tokens `cu_seqlens[n] <= t < cu_seqlens[n+1]`. Without
    `cu_seqlens` every token is a sequence of its own (`N = T`), as in a decode
    step. Tokens that belong to no sequence are padding.

    **Slots.** Sequence `n` keeps its state in slot `slots[n]` of a pool. A slot
    id is *skipped* if it is negative, equal to the null slot of the pool, or at
    least `P`. The results of a sequence with a skipped slot are zero, and no
    element of the pool is read or written. A sequence whose slot is not skipped
    is *live*.

    **Functions.** Arguments of an entry function have the attributes
    `gdn.name` and `gdn.dims`; see `docs/spec/entry.md`.
  }];
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerTypes();
  }];
}

class GDN_Op<string mnemonic, list<Trait> traits = []>
    : Op<GDN_Dialect, mnemonic, traits>;

#endif // GDN_DIALECT_GDN_IR_GDNDIALECT_TD
