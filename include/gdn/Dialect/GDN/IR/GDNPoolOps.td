// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops on whole slots of pools. Engines use them between calls, to copy and to
// clear the states of sequences.
#ifndef GDN_DIALECT_GDN_IR_GDNPOOLOPS_TD
#define GDN_DIALECT_GDN_IR_GDNPOOLOPS_TD

include "gdn/Dialect/GDN/IR/GDNTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def GDN_PoolCopyOp : GDN_Op<"pool_copy", []> {
  let summary = "Copy slots, bit for bit";
  let description = [{
    For every `n`, slot `slots[n]` of `source` is copied to slot
    `write_slots[n]` of `target`. If either slot is skipped by its pool, the
    pair is ignored. `target` may be the same pool as `source`, for example to
    fork a sequence. No pair that is copied writes a slot that another pair
    reads or writes.

    **Preconditions**

    - (C1) `target` has the shape of `source`, except for the number of slots.
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
    For every `n`, every element of slot `slots[n]` becomes +0. A skipped slot
    is not changed. No slot that is not skipped may occur twice.

    **Preconditions**

    Only those of the types.

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
