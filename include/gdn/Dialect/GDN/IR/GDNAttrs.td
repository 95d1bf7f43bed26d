// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Enumerations of the gdn dialect.
#ifndef GDN_DIALECT_GDN_IR_GDNATTRS_TD
#define GDN_DIALECT_GDN_IR_GDNATTRS_TD

include "mlir/IR/EnumAttr.td"

// How a packed projection orders its columns.
def GDN_PackLayout : I32EnumAttr<"PackLayout", "column order of a packed projection", [
    I32EnumAttrCase<"interleaved", 0>, // one block per key head (Qwen3-Next)
    I32EnumAttrCase<"flat", 1>         // one block per part (Qwen3.5)
  ]> {
  let cppNamespace = "::gdn";
}

def GDN_Activation : I32EnumAttr<"Activation", "elementwise activation", [
    I32EnumAttrCase<"identity", 0>,
    I32EnumAttrCase<"silu", 1>,
    I32EnumAttrCase<"sigmoid", 2>
  ]> {
  let cppNamespace = "::gdn";
}

// Which sequences of a step put tokens of the step before into their state
// before anything else is launched.
def GDN_Commits : I32EnumAttr<"Commits", "sequences that commit tokens", [
    I32EnumAttrCase<"none", 0>,
    I32EnumAttrCase<"prefill", 1>, // verify takes in its own (--verify=lazy)
    I32EnumAttrCase<"all", 2>,     // (--verify=buffer)
    I32EnumAttrCase<"counted", 3>  // slots count tokens (--defer-writes)
  ]> {
  let cppNamespace = "::gdn";
}

#endif // GDN_DIALECT_GDN_IR_GDNATTRS_TD
