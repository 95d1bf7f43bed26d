// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Work on matrices with a decay per channel.
#ifndef GDN_DIALECT_GPU_IR_GPUDECAYOPS_TD
#define GDN_DIALECT_GPU_IR_GPUDECAYOPS_TD

include "gdn/Dialect/GPU/IR/GPUDialect.td"
include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def GPU_DecayOperandsOp : GPU_Op<"decay_operands", [
    AllTypesMatch<["query", "key"]>,
    AllTypesMatch<["query_scores", "key_scores"]>]> {
  let summary = "What products of a chunk take, with a decay per channel";
  let description = [{
    As `gdn_tile.decay_operands`, with the roundings that it fixes. A warp has 16
    tokens. `query` and `key` hold these; behind the op they hold `from_query` and
    `from_key` of it, in place, f16 whatever their type was, and `to_end` and `end` hold what they are called after.
    `sums` holds what the warps pass to each other; what it held is lost.

    The 16 tokens of a warp are multiplied in registers, by products of tf32:
    rows of a left operand and columns of a right one are held by the lanes in
    the same way. Their decays are exponentials of sums of logs, which are products of
    these, in f16, with matrices of zeros and ones; `to_end` holds the logs on the way.
    Behind a barrier it multiplies its tokens with those of the warps
    before it.

    **Preconditions**

    - (C1) `log_decay` is f32 with 16 rows per warp and a multiple of 16 columns, in the layout of
      `getLogRows`; the results are f32 in a layout of matrix instructions, with a row and a column for
      each of its rows.
    - (C2) `query`, `key` and `to_end` are swizzled and in the shape of `log_decay`;
      `query` and `key` are of f16 or bf16, `to_end` of f16.
    - (C3) `sums` is f32, not swizzled, with as many columns as `log_decay` and the
      rows of `countSumRows`; `end` is f32 with an element for each column.
    - (C4) it is not inside a `gdn_gpu.warps`.
    - (C5) a `gdn_gpu.barrier` stands between this op and the last access to a buffer of
      it before it, and behind this op before the next; checked on the function.

    **Example**

    ```mlir
    #logs = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
    #rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
    func.func @operands(%g: !gdn_gpu.fragment<64x32xf32, #logs>)
        attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
      %q = gdn_gpu.alloc : !gdn_gpu.shared<64x32xf16, swizzled>
      %k = gdn_gpu.alloc : !gdn_gpu.shared<64x32xf16, swizzled>
      %t = gdn_gpu.alloc : !gdn_gpu.shared<64x32xf16, swizzled>
      %s = gdn_gpu.alloc : !gdn_gpu.shared<11x32xf32>
      %e = gdn_gpu.alloc : !gdn_gpu.shared<32xf32>
      %p, %l = gdn_gpu.decay_operands %g, %q, %k, %t, %s, %e
          : !gdn_gpu.fragment<64x32xf32, #logs>, !gdn_gpu.shared<64x32xf16, swizzled>,
            !gdn_gpu.shared<64x32xf16, swizzled>, !gdn_gpu.shared<11x32xf32>, !gdn_gpu.shared<32xf32>
          -> !gdn_gpu.fragment<64x64xf32, #rows>
      return
    }
    ```
  }];
  let arguments = (ins GPU_FragmentType:$log_decay,
                       Arg<GPU_SharedType, "query", [MemRead, MemWrite]>:$query,
                       Arg<GPU_SharedType, "key", [MemRead, MemWrite]>:$key,
                       Arg<GPU_SharedType, "to_end", [MemRead, MemWrite]>:$to_end,
                       Arg<GPU_SharedType, "sums", [MemRead, MemWrite]>:$sums,
                       Arg<GPU_SharedType, "end", [MemRead, MemWrite]>:$end);
  let results = (outs GPU_FragmentType:$query_scores, GPU_FragmentType:$key_scores);
  let assemblyFormat = [{
    $log_decay `,` $query `,` $key `,` $to_end `,` $sums `,` $end attr-dict
    `:` type($log_decay) `,` type($query) `,` type($to_end) `,` type($sums) `,` type($end)
    `->` type($query_scores)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    static constexpr int64_t block = 16;
    /// As of `gdn_tile.decay_operands`.
    static constexpr float leastLogOfScores = -14;
    static constexpr float scaleOfScores = 1 + 0x1p-10f;
    /// Rows of `sums` for `warps` warps: of each warp its decay; two in the
    /// place of one, what lies before and behind it, and of each two warps what
    /// lies between them.
    static int64_t countSumRows(int64_t warps);
    static SharedType getSumsType(FragmentType logDecay);
    static SharedType getTileType(FragmentType logDecay);
    static FragmentType getScoresType(FragmentType logDecay);
    /// The layout of log decays: four columns for a lane, and as many lanes for
    /// a row as there can be, so that it comes from memory as whole lines.
    static RowsAttr getLogRows(mlir::VectorType logDecay, int64_t warps);
  }];
}

#endif // GDN_DIALECT_GPU_IR_GPUDECAYOPS_TD
