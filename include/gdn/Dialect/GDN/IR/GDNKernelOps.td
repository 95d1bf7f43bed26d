// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Grouping of ops into kernels; made by gdn-fuse.
#ifndef GDN_DIALECT_GDN_IR_GDNKERNELOPS_TD
#define GDN_DIALECT_GDN_IR_GDNKERNELOPS_TD

include "gdn/Dialect/GDN/IR/GDNDialect.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def GDN_KernelOp : GDN_Op<"kernel", [
    RecursiveMemoryEffects, NoRegionArguments,
    SingleBlockImplicitTerminator<"::gdn::YieldOp">]> {
  let summary = "Ops that share one kernel";
  let description = [{
    The ops of the body become one kernel. The body may use values from outside.
    The results are the operands of `gdn.yield`. The op means the same as its
    body without the op around it.

    With `norm_with_rule`, the outputs of the rule go to the gated norm behind it
    without a way through memory, where the kernel has a form that can do so. With
    `conv_with_rule`, the rule takes values where their convolution is computed, in
    the same way.

    **Preconditions**

    - (C1) the operands of `gdn.yield` have the types of the results.
    - (C2) the body holds gdn ops only, and no other `gdn.kernel`.
    - (C3) with `norm_with_rule`, the body has one rule, and one
      `gdn.gated_rms_norm`, which alone uses the rule's output, by way of
      `gdn.cast` at most.
    - (C4) with `conv_with_rule`, the body has one rule, whose values are the result of
      a `gdn.conv1d` of the body that nothing else uses.

    **Example**

    ```mlir
    func.func @unit(%x: tensor<?x?x128xbf16>) -> tensor<?x?x128xf32> {
      %0 = gdn.kernel "normalise" {
        %y = gdn.l2norm %x : tensor<?x?x128xbf16> -> tensor<?x?x128xf32>
        gdn.yield %y : tensor<?x?x128xf32>
      } : tensor<?x?x128xf32>
      return %0 : tensor<?x?x128xf32>
    }
    ```
  }];
  let arguments = (ins StrAttr:$name, UnitAttr:$norm_with_rule,
                       UnitAttr:$conv_with_rule);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $name (`norm_with_rule` $norm_with_rule^)? (`conv_with_rule` $conv_with_rule^)? $body attr-dict (`:` type($results)^)?
  }];
  let extraClassDeclaration = [{
    /// The norm that alone uses the output of the rule in `body`; null if there
    /// is none, or more than one of either.
    static ::gdn::GatedRMSNormOp findNormOfRule(::mlir::Block &body);
    /// The convolution in `body` whose result the one rule there takes as its
    /// values, and nothing else does; null if there is none.
    static ::gdn::Conv1dOp findConvOfValues(::mlir::Block &body);
  }];
  let hasRegionVerifier = 1;
  let hasCanonicalizer = 1;
}

def GDN_YieldOp : GDN_Op<"yield", [
    Pure, Terminator, ReturnLike, HasParent<"::gdn::KernelOp">]> {
  let summary = "Results of a gdn.kernel";
  let description = [{
    Ends the body of a `gdn.kernel`. Its operands are the results of the kernel.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = "attr-dict ($results^ `:` type($results))?";
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange()); }]>];
}

#endif // GDN_DIALECT_GDN_IR_GDNKERNELOPS_TD
