def @DIALECT@_@Camel@Op : @DIALECT@_Op<"@name@", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "What it computes, in a few words";
  let description = [{
    One paragraph and a formula.

    **Preconditions**

    - (C1) input and result have the same type.

    **Example**

    ```mlir
    func.func @example(%x: tensor<4x2x128xf32>) -> tensor<4x2x128xf32> {
      %y = @mnemonic@ %x : tensor<4x2x128xf32>
      return %y : tensor<4x2x128xf32>
    }
    ```
  }];
  let arguments = (ins Arg<AnyRankedTensor, "what it reads">:$input);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
  let hasVerifier = 1;
}

