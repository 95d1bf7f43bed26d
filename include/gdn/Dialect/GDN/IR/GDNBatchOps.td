// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What kernels need to know of a batch, made where the batch is.
#ifndef GDN_DIALECT_GDN_IR_GDNBATCHOPS_TD
#define GDN_DIALECT_GDN_IR_GDNBATCHOPS_TD

include "gdn/Dialect/GDN/IR/GDNTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def GDN_PlanBatchOp : GDN_Op<"plan_batch", [Pure]> {
  let summary = "Which sequences of a batch are prefill's, and a list of them";
  let description = [{
    The arrays are those of a serving engine. With
    `L_n = max(0, query_start_loc[n+1] - query_start_loc[n])`, the tokens of
    sequence `n` in this step:

        is_prefill[n] = L_n > 0 and drafts[n] < 0
                        and not (accepted is given and L_n = 1 < seq_lens[n])

    A sequence that goes on by one token is a verify of one token where the
    states after tokens have slots of their own, which is what `accepted` says.

    The other results are lists of the same `N` elements. Each sequence of
    prefill is an element. All sequences with tokens between two of them, before
    the first or behind the last are one element together. The elements are in
    the order of the sequences:

        cu_seqlens[e]  = query_start_loc of the first sequence of element e
        taken[e]       = the element is a sequence of prefill
        has_initial[e] = seq_lens[n] > L_n
        write_slots[e] = block_table[n, 0]
        slots[e]       = block_table[n, a-1]    a = accepted[n], 1 if not given
                                                or if not has_initial[e]

    `slots[e]` is -1, which every op skips, if `seq_lens[n] < L_n` or if `a` is
    not from 1 to `B`; `write_slots[e]` is -1 if `B` is 0. Elements that are no
    sequence, and those behind the last one, have the slots -1 and
    `has_initial`; the latter have no tokens. `cu_seqlens` ends with the end of
    the last sequence that has tokens.

    **Preconditions**

    - (C1) `query_start_loc` and `cu_seqlens` are `N + 1`, `block_table` is
      `N x B`, everything else is `N`.
    - (C2) `cu_seqlens` has the element type of `query_start_loc`; `slots` and
      `write_slots` have that of `block_table`.

    **Example**

    ```mlir
    func.func @plan(%starts: tensor<?xi32>, %lens: tensor<?xi32>,
        %table: tensor<?x?xi32>, %drafts: tensor<?xi32>, %accepted: tensor<?xi32>)
        -> (tensor<?xi1>, tensor<?xi32>) {
      %is_prefill, %cu, %slots, %write, %initial, %taken =
          gdn.plan_batch sequences(%starts, %lens) table(%table) drafts(%drafts)
          accepted(%accepted)
          : tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>, tensor<?xi32>,
            accepted tensor<?xi32>
            -> tensor<?xi1>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>,
               tensor<?xi1>, tensor<?xi1>
      return %is_prefill, %cu : tensor<?xi1>, tensor<?xi32>
    }
    ```
  }];
  let arguments = (ins
    Arg<GDN_SequencesTensor, "first token of each sequence, N+1">:$query_start_loc,
    Arg<GDN_SequencesTensor, "all tokens of each sequence, N">:$seq_lens,
    Arg<GDN_SlotsTable, "slots of each sequence, N x B">:$block_table,
    Arg<GDN_SequencesTensor, "drafts of each sequence, N">:$drafts,
    Arg<Optional<GDN_SequencesTensor>,
        "accepted tokens of the previous step, N">:$accepted);
  let results = (outs
    GDN_FlagsTensor:$is_prefill, GDN_SequencesTensor:$cu_seqlens,
    GDN_SlotsTensor:$slots, GDN_SlotsTensor:$write_slots,
    GDN_FlagsTensor:$has_initial, GDN_FlagsTensor:$taken);
  let assemblyFormat = [{
    `sequences` `(` $query_start_loc `,` $seq_lens `)` `table` `(` $block_table `)`
    `drafts` `(` $drafts `)` (`accepted` `(` $accepted^ `)`)? attr-dict
    `:` type($query_start_loc) `,` type($seq_lens) `,` type($block_table) `,`
    type($drafts) (`,` `accepted` type($accepted)^)?
    `->` type($is_prefill) `,` type($cu_seqlens) `,` type($slots) `,`
    type($write_slots) `,` type($has_initial) `,` type($taken)
  }];
  let hasVerifier = 1;
}

#endif // GDN_DIALECT_GDN_IR_GDNBATCHOPS_TD
