// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Convolutions of tokens that lie in shared memory, on channels dealt as rows of
// products.
#ifndef GDN_DIALECT_GPU_IR_GPUCONVOPS_TD
#define GDN_DIALECT_GPU_IR_GPUCONVOPS_TD

include "gdn/Dialect/GPU/IR/GPUDialect.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def GPU_ConvColumnsOp : GPU_Op<"conv_columns", [
    AllTypesMatch<["window", "new_window"]>,
    SingleBlockImplicitTerminator<"::gdn::gpu::YieldOp">]> {
  let summary = "Causal depthwise convolution of the columns of a shared tile";
  let description = [{
    Rows of `inputs` are `B` tokens, its columns channels, and so are those of
    `values`, which may be the same memory (`gdn_gpu.reshape`). As `gdn_tile.conv1d`
    with all tokens valid, but channels are the rows of fragments: with
    `h = window ++ transpose(inputs)` along a row,

        y[c, t]          = sum_j weight[c, j] * h[c, t + j],   j = 0 .. K-1
        new_window[c, p] = h[c, B + p],                        p = 0 .. K-2

    in f32, `j` ascending, each product added with one rounding. The body gets a
    row of `y` and gives what `values` has of the channel then. A warp reads and
    writes the columns that are its rows, as where a tile is loaded or stored
    transposed, and a token's neighbours by reading the tile some rows further up.

    **Preconditions**

    - (C1) `inputs` is a swizzled `B x d` of 16 bits, `B` a multiple of 16, and `values`
      another of 16 bits; `window` is `d x (K-1)` with elements of `inputs`, in the layout
      of matrix instructions (`lanes = 4, vector = 2`) over the warps that run the op,
      16 rows each, and `weight` `d x K` of floats in the same layout; `K` is from 2 to 8.
    - (C2) the body has one argument, `B` elements of f32, and gives `B` of `values`.
    - (C3) the body has ops of `arith` and `math` that go element by element, and
      constants of one value.
    - (C4) ordered by barriers as a `gdn_gpu.load_shared` of `inputs` and a
      `gdn_gpu.store_shared` to `values`, both with `transpose`.
    - (C5) it is not inside a `gdn_gpu.warps` that is no role.

    **Example**

    ```mlir
    #rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
    func.func @values(%window: !gdn_gpu.fragment<64x3xbf16, #rows>,
                      %weight: !gdn_gpu.fragment<64x4xbf16, #rows>,
                      %v: memref<?x64xbf16, strided<[?, 1]>>, %t: index)
        -> (!gdn_gpu.fragment<64x64xf16, #rows>, !gdn_gpu.fragment<64x3xbf16, #rows>)
        attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
      %c0 = arith.constant 0 : index
      %inputs = gdn_gpu.alloc : !gdn_gpu.shared<64x64xbf16, swizzled>
      gdn_gpu.begin_copy per_warpgroup %v[%t, %c0] dims [0, 1], %inputs
          : memref<?x64xbf16, strided<[?, 1]>>, !gdn_gpu.shared<64x64xbf16, swizzled>
      gdn_gpu.await_copies
      %values = gdn_gpu.reshape %inputs
          : !gdn_gpu.shared<64x64xbf16, swizzled> to !gdn_gpu.shared<64x64xf16, swizzled>
      %next = gdn_gpu.conv_columns %inputs, %window, %weight to %values
          : !gdn_gpu.shared<64x64xbf16, swizzled>, !gdn_gpu.fragment<64x3xbf16, #rows>,
            !gdn_gpu.fragment<64x4xbf16, #rows>, !gdn_gpu.shared<64x64xf16, swizzled> {
      ^bb0(%row: vector<64xf32>):
        %rounded = arith.truncf %row : vector<64xf32> to vector<64xf16>
        gdn_gpu.yield %rounded : vector<64xf16>
      }
      %y = gdn_gpu.load_shared transpose %values
          : !gdn_gpu.shared<64x64xf16, swizzled> -> !gdn_gpu.fragment<64x64xf16, #rows>
      return %y, %next
          : !gdn_gpu.fragment<64x64xf16, #rows>, !gdn_gpu.fragment<64x3xbf16, #rows>
    }
    ```
  }];
  let arguments = (ins
    Arg<GPU_SharedType, "inputs", [MemRead]>:$inputs,
    GPU_FragmentType:$window, GPU_FragmentType:$weight,
    Arg<GPU_SharedType, "values", [MemWrite]>:$values);
  let results = (outs GPU_FragmentType:$new_window);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $inputs `,` $window `,` $weight `to` $values
    `:` type($inputs) `,` type($window) `,` type($weight) `,` type($values)
    $body attr-dict
  }];
  let extraClassDeclaration = [{
    /// K: inputs that go into a result.
    int64_t getTaps() { return getWeight().getType().getDimSize(1); }
    /// Creates the body with its argument; `builder` stands in it then.
    ::mlir::Block *openBody(::mlir::OpBuilder &builder);
  }];
  let hasRegionVerifier = 1;
}

#endif // GDN_DIALECT_GPU_IR_GPUCONVOPS_TD
