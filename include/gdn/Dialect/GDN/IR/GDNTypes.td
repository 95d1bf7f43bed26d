// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pool type, and the type constraints that the ops share.
#ifndef GDN_DIALECT_GDN_IR_GDNTYPES_TD
#define GDN_DIALECT_GDN_IR_GDNTYPES_TD

include "gdn/Dialect/GDN/IR/GDNDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/CommonTypeConstraints.td"

def GDN_PoolType : TypeDef<GDN_Dialect, "Pool"> {
  let mnemonic = "pool";
  let summary = "states of many sequences, one slot each";
  let description = [{
    A buffer of `P` slots that outlives the function. A slot keeps what a
    sequence carries from one call to the next. Dimension 0 is the slot axis and
    is dynamic. Shapes of states are:

    - `!gdn.pool<? x Hv x dv x dk>`: recurrent states;
    - `!gdn.pool<? x D x (K-1)>`: the last raw inputs of the convolution, oldest
      first.

    Pools of pending tokens have other shapes. Counts of them are `i32`; states
    and tokens are floats, but for states in planes (docs/spec/slots.md), whose
    elements are `i8`.

    The type has no strides. Padded slots, both layouts of the convolution state
    (SD and DS) and both of the recurrent state ([dv, dk] and [dk, dv], see
    `gdn.contiguous` in docs/spec/entry.md) are expressed by the strides of the
    buffer that is bound.
    A pool also has a null slot, which is given at binding.

    **Preconditions**

    - (C1) the rank is 2 or more.
    - (C2) dimension 0 is dynamic.
    - (C3) other dimensions are positive or dynamic.
    - (C4) the elements are `f32`, `bf16`, `f16`, `i32` or `i8`.

    **Example**

    ```mlir
    func.func private @keeps(!gdn.pool<?x?x128x128xf32>, !gdn.pool<?x?x3xbf16>)
    ```
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape,
                        "::mlir::Type":$elementType);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getRank() const { return getShape().size(); }
    int64_t getDimSize(unsigned i) const { return getShape()[i]; }
  }];
}

defvar GDN_FloatTypes = [F32, BF16, F16];

// Tensors by rank; sizes are checked by the ops' verifiers.
class GDN_FloatTensor<int rank> : TensorRankOf<GDN_FloatTypes, [rank]>;
class GDN_FloatTensorOf<list<int> ranks> : TensorRankOf<GDN_FloatTypes, ranks>;
class GDN_F32Tensor<list<int> ranks> : TensorRankOf<[F32], ranks>;
def GDN_SequencesTensor : TensorRankOf<[I32, I64], [1]>;
def GDN_SlotsTensor : TensorRankOf<[I32, I64], [1]>;
def GDN_SlotsTable : TensorRankOf<[I32, I64], [2]>;
def GDN_FlagsTensor : TensorRankOf<[I1], [1]>;

#endif // GDN_DIALECT_GDN_IR_GDNTYPES_TD
