// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What kernels need to know of a batch, made where the batch is.
#ifndef GDN_DIALECT_GDN_IR_GDNBATCHOPS_TD
#define GDN_DIALECT_GDN_IR_GDNBATCHOPS_TD

include "gdn/Dialect/GDN/IR/GDNAttrs.td"
include "gdn/Dialect/GDN/IR/GDNTypes.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def GDN_PlanBatchOp : GDN_Op<"plan_batch", [
    Pure, DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "What verify, prefill and commit of a mixed batch read";
  let description = [{
    The arrays are those of a serving engine, of a batch of `T = tokens` tokens
    in which verify takes up to `S = columns` of a sequence. Sequence `n` has the
    tokens from `first[n]` to `first[n+1]`, `L[n]` of them:

        first[n]      = max(0, query_start_loc[0], .., query_start_loc[n])
        is_prefill[n] = L[n] > 0 and drafts[n] < 0
                        and not (counts are of slots and L[n] = 1 < seq_lens[n])

    `accepted` are counts of slots with `commits none`, from 1 to `S`: a sequence
    goes on from column `accepted[n] - 1` of its row of the table, and by one
    token it is a verify of one token. Otherwise they are counts of pending
    tokens, from 0 to `S`. A sequence is valid if it has tokens,
    `L[n] <= seq_lens[n]`, `first[n+1] <= T`, its count is in range or it is a
    prompt that begins, and, of verify, `L[n] <= S`. Kernels skip the others.

    Verify reads an element for each sequence:

        verify_slots[n]    = block_table[n, 0]   valid and verify's, else -1
        verify_accepted[n] = accepted[n]         likewise, else 0

    `verify_cu_seqlens` has the starts, up to `T`. Sequences behind the last one
    with tokens share the tokens from its end to `T`, the padding.

    Prefill reads lists of `N` elements, in the order of the tokens. Each of its
    sequences is an element. All other tokens between two of them are one:

        prefill_cu_seqlens[e]  = first[n]               of its first sequence n
        prefill_taken[e]       = is_prefill[n]
        prefill_has_initial[e] = seq_lens[n] > L[n]     of a sequence of prefill
        prefill_write_slots[e] = block_table[n, 0]      valid, else -1
        prefill_slots[e]       = the slot that a sequence goes on from, likewise

    A commit reads an element for each sequence:

        commit_slots[n]    = block_table[n, 0]   if it commits, else -1
        commit_accepted[n] = accepted[n]         if it commits and goes on, else 0

    A valid sequence commits if it goes on, `accepted[n] > 0`, and `commits` is
    `all`, or `prefill` and the sequence is prefill's. With `counted` a valid
    sequence commits if it is prefill's: its slot may count pending tokens.

    **Preconditions**

    - (C1) `query_start_loc` is `N + 1`, `block_table` is `N x B`, everything else
      is `N`.
    - (C2) `commits` is `none` if `accepted` is not given.

    **Example**

    ```mlir
    func.func @plan(%starts: tensor<?xi32>, %lens: tensor<?xi32>,
        %table: tensor<?x?xi32>, %drafts: tensor<?xi32>, %tokens: index,
        %columns: index, %accepted: tensor<?xi32>) -> tensor<?xi1> {
      %is_prefill, %verify:3, %prefill:5, %commit:2 =
          gdn.plan_batch sequences(%starts, %lens) table(%table) drafts(%drafts)
          limits(%tokens, %columns) accepted(%accepted) commits all
          : tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>, tensor<?xi32>,
            accepted tensor<?xi32>
      return %is_prefill : tensor<?xi1>
    }
    ```
  }];
  let arguments = (ins
    Arg<GDN_SequencesTensor, "first token of each sequence, N+1">:$query_start_loc,
    Arg<GDN_SequencesTensor, "all tokens of each sequence, N">:$seq_lens,
    Arg<GDN_SlotsTable, "slots of each sequence, N x B">:$block_table,
    Arg<GDN_SequencesTensor, "drafts of each sequence, N">:$drafts,
    Arg<Index, "tokens of the batch, T">:$tokens,
    Arg<Index, "maximum of tokens of a verified sequence, S">:$columns,
    Arg<Optional<GDN_SequencesTensor>,
        "accepted tokens of the previous step, N">:$accepted,
    DefaultValuedAttr<GDN_Commits, "::gdn::Commits::none">:$commits);
  let results = (outs
    GDN_FlagsTensor:$is_prefill, GDN_SequencesTensor:$verify_cu_seqlens,
    GDN_SlotsTensor:$verify_slots, GDN_SequencesTensor:$verify_accepted,
    GDN_SequencesTensor:$prefill_cu_seqlens, GDN_SlotsTensor:$prefill_slots,
    GDN_SlotsTensor:$prefill_write_slots, GDN_FlagsTensor:$prefill_has_initial,
    GDN_FlagsTensor:$prefill_taken, GDN_SlotsTensor:$commit_slots,
    GDN_SequencesTensor:$commit_accepted);
  let assemblyFormat = [{
    `sequences` `(` $query_start_loc `,` $seq_lens `)` `table` `(` $block_table `)`
    `drafts` `(` $drafts `)` `limits` `(` $tokens `,` $columns `)`
    (`accepted` `(` $accepted^ `)`)? (`commits` $commits^)? attr-dict
    `:` type($query_start_loc) `,` type($seq_lens) `,` type($block_table) `,`
    type($drafts) (`,` `accepted` type($accepted)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether a sequence goes on from the column of its count.
    bool countsSlots() {
      return getAccepted() && getCommits() == ::gdn::Commits::none;
    }
  }];
}

#endif // GDN_DIALECT_GDN_IR_GDNBATCHOPS_TD
