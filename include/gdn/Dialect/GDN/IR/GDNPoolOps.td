// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops on whole slots of pools: what an engine does to the states of sequences
// between the calls that compute.
#ifndef GDN_DIALECT_GDN_IR_GDNPOOLOPS_TD
#define GDN_DIALECT_GDN_IR_GDNPOOLOPS_TD

include "gdn/Dialect/GDN/IR/GDNTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def GDN_PoolCopyOp : GDN_Op<"pool_copy", []> {
  let summary = "Copy slots, bit for bit";
  let description = [{
    For every `n`, slot `write_slots[n]` of `target` becomes slot `slots[n]`
    of `source`. A pair is left alone if either slot is skipped by its pool.
    `target` may be `source`: a fork. No live pair writes a slot that another one
    reads or writes.

    **Preconditions**

    - (C1) `target` has the shape of `source`, but for the number of slots.
    - (C2) `target` has the element type of `source`.
    - (C3) `slots` and `write_slots` are both `N`.

    **Example**

    ```mlir
    func.func @fork(%pool: !gdn.pool<?x?x128x128xf32>, %from: tensor<?xi32>,
                    %to: tensor<?xi32>) {
      gdn.pool_copy %pool[%from] to %pool[%to]
          : !gdn.pool<?x?x128x128xf32>, tensor<?xi32>
            to !gdn.pool<?x?x128x128xf32>, tensor<?xi32>
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<GDN_PoolType, "source", [MemRead]>:$source,
    Arg<GDN_SlotsTensor, "slots of the source, N">:$slots,
    Arg<GDN_PoolType, "target", [MemWrite]>:$target,
    Arg<GDN_SlotsTensor, "slots of the target, N">:$write_slots);
  let assemblyFormat = [{
    $source `[` $slots `]` `to` $target `[` $write_slots `]` attr-dict
    `:` qualified(type($source)) `,` type($slots)
    `to` qualified(type($target)) `,` type($write_slots)
  }];
  let hasVerifier = 1;
}

def GDN_PoolZeroOp : GDN_Op<"pool_zero", []> {
  let summary = "Zero slots";
  let description = [{
    Every element of slot `slots[n]` becomes +0, for every `n`; a skipped
    slot is left alone. No live slot may occur twice.

    **Preconditions**

    Those of the types.

    **Example**

    ```mlir
    func.func @fresh(%pool: !gdn.pool<?x?x128x128xf32>, %slots: tensor<?xi32>) {
      gdn.pool_zero %pool[%slots] : !gdn.pool<?x?x128x128xf32>, tensor<?xi32>
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<GDN_PoolType, "pool", [MemWrite]>:$pool,
    Arg<GDN_SlotsTensor, "slots, N">:$slots);
  let assemblyFormat = [{
    $pool `[` $slots `]` attr-dict `:` qualified(type($pool)) `,` type($slots)
  }];
}

#endif // GDN_DIALECT_GDN_IR_GDNPOOLOPS_TD
